/* level_generic.c - the kernels of one level: its lanes under the loops of the *_tile.h. */
#include "backends/cpu/fast/level.h"
#include "backends/cpu/fast/lanes_generic.h"

#include "backends/cpu/fast/linear_tile.h"
/* in this order */
#include "backends/cpu/fast/activate_tile.h"
#include "backends/cpu/fast/exp_tile.h"
#include "backends/cpu/fast/attention_tile.h"
#include "backends/cpu/fast/pointwise_tile.h"

static const plm_cpu_kernels table = {
    .level = PLM_CPU_GENERIC,
    .name = "generic",
    .kind = linear_kind,
    .activate = activate,
    .linear = linear,
    .linear_grouped = linear_grouped,
    .attention = attention,
    .kv_write = kv_write,
    .rms_norm = rms_norm,
    .rope = rope,
    .glu = glu,
    .unary = unary,
    .softcap = softcap,
    .softmax = softmax,
    .add = add,
    .mul = mul,
    .argmax = argmax,
    .gated_delta = gated_delta,
    .conv_causal = conv_causal,
};

const plm_cpu_kernels *plm_level_generic(void)
{
    return &table;
}
