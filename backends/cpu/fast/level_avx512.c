/* level_avx512.c - the kernels of one level: its lanes under the loops of the *_tile.h. */
#include <stddef.h>

#include "backends/cpu/fast/level.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && \
    defined(__AVX512VNNI__)
#include "backends/cpu/fast/lanes_avx512.h"

#include "backends/cpu/fast/linear_tile.h"
/* in this order */
#include "backends/cpu/fast/activate_tile.h"
#include "backends/cpu/fast/exp_tile.h"
#include "backends/cpu/fast/attention_tile.h"
#include "backends/cpu/fast/pointwise_tile.h"

static const plm_cpu_kernels table = {
    .level = PLM_CPU_AVX512,
    .name = "avx512",
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

const plm_cpu_kernels *plm_level_avx512(void)
{
    return &table;
}
#else
const plm_cpu_kernels *plm_level_avx512(void)
{
    return NULL; /* built without its instructions */
}
#endif
