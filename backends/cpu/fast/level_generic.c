/* level_generic.c - the kernels of one level: its lanes under the loops of the *_tile.h. */
#include "backends/cpu/fast/level.h"
#include "backends/cpu/fast/lanes_generic.h"

#include "backends/cpu/fast/linear_tile.h"
/* after linear_tile.h */
#include "backends/cpu/fast/activate_tile.h"

static const plm_cpu_kernels table = {
    .level = PLM_CPU_GENERIC,
    .name = "generic",
    .kind = linear_kind,
    .activate = activate,
    .linear = linear,
    .linear_grouped = linear_grouped,
};

const plm_cpu_kernels *plm_level_generic(void)
{
    return &table;
}
