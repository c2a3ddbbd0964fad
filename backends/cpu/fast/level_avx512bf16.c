/* level_avx512bf16.c - the kernels of one level: its lanes under the loops of the *_tile.h. */
#include <stddef.h>

#include "backends/cpu/fast/level.h"

#if defined(__AVX512F__) && defined(__AVX512VNNI__) && defined(__AVX512BF16__)
#include "backends/cpu/fast/lanes_avx512.h"

#define LEVEL_BF16 1
/* acc + w[2 i] x[0] + w[2 i + 1] x[1] in each lane; subnormal numbers count as 0. */
LANE vf vf_dot_bf16(vf acc, vb w, const unsigned char *x)
{
    int32_t pair;
    __builtin_memcpy(&pair, x, 4);
    return _mm512_dpbf16_ps(acc, (__m512bh)w, (__m512bh)_mm512_set1_epi32(pair));
}

#include "backends/cpu/fast/linear_tile.h"
/* in this order */
#include "backends/cpu/fast/activate_tile.h"
#include "backends/cpu/fast/exp_tile.h"
#include "backends/cpu/fast/attention_tile.h"
#include "backends/cpu/fast/pointwise_tile.h"

static const plm_cpu_kernels table = {
    .level = PLM_CPU_AVX512BF16,
    .name = "avx512bf16",
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

const plm_cpu_kernels *plm_level_avx512bf16(void)
{
    return &table;
}
#else
const plm_cpu_kernels *plm_level_avx512bf16(void)
{
    return NULL; /* built without its instructions */
}
#endif
