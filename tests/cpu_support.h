/* cpu_support.h - operands for tests of CPU kernels: weights in every file layout, guarded outputs. */
#ifndef PLM_TESTS_CPU_SUPPORT_H
#define PLM_TESTS_CPU_SUPPORT_H
#include <stdlib.h>

#include "backends/cpu/fast/kernels.h"
#include "core/base/mem.h"
#include "core/ir/codec.h"
#include "core/ir/dtype.h"
#include "tests/support.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* The levels this machine has; says which it leaves out, once. */
static inline size_t cpu_levels(const plm_cpu_kernels **out)
{
    static int said;
    size_t n = 0;
    for (int l = 0; l < PLM_CPU_LEVELS; l++) {
        if (plm_cpu_has((plm_cpu_level)l))
            out[n++] = plm_cpu_table((plm_cpu_level)l);
        else if (said < PLM_CPU_LEVELS)
            print_message("level %s: skipped, this machine or build does not have it\n",
                          plm_cpu_level_name((plm_cpu_level)l));
        said++;
    }
    assert_true(n >= 1); /* generic is always there */
    return n;
}

static inline void *cpu_alloc(size_t bytes)
{
    void *p = calloc(bytes + 1, 1);
    assert_non_null(p);
    return p;
}

/* Sum of 12 uniforms less 6: close to normal, so blocks have outliers as activations do. */
static inline float random_normal(uint64_t *seed)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (double)(test_random(seed) >> 11) * 0x1p-53;
    return (float)sum;
}
static inline void fill_normal(uint64_t *seed, float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = random_normal(seed);
}

/* Random bytes for n numbers of the type, its float scales set to small finite numbers. Where they
** stand in a block: core/ir/codec_gguf.c. */
static inline void fill_weights(uint64_t *seed, plm_dtype type, int64_t n, unsigned char *w)
{
    static const struct { plm_dtype t; int halves[2]; } at[] = {
        {PLM_DT_Q8_0, {0, -1}},   {PLM_DT_Q4_0, {0, -1}},  {PLM_DT_Q4_1, {0, 2}},
        {PLM_DT_Q5_0, {0, -1}},   {PLM_DT_Q5_1, {0, 2}},   {PLM_DT_Q4_K, {0, 2}},
        {PLM_DT_Q5_K, {0, 2}},    {PLM_DT_Q6_K, {208, -1}}, {PLM_DT_IQ4_NL, {0, -1}},
        {PLM_DT_IQ4_XS, {0, -1}},
    };
    const plm_dtype_info *t = plm_dtype_get(type);
    for (int64_t i = 0; i < n / t->block; i++) {
        unsigned char *b = w + i * t->block_bytes;
        for (int64_t j = 0; j < t->block_bytes; j++)
            b[j] = (unsigned char)test_random(seed);
        if (type == PLM_DT_F32) {
            float x = random_normal(seed);
            memcpy(b, &x, 4);
        } else if (type == PLM_DT_F16 || type == PLM_DT_BF16) {
            double x = (double)random_normal(seed) * 0.1;
            uint16_t h = type == PLM_DT_F16 ? plm_half_encode(x) : plm_bf16_encode(x);
            memcpy(b, &h, 2);
        } else if (type == PLM_DT_MXFP4) {
            b[0] = (unsigned char)(i % 97 == 3 ? i % 2 : 120 + b[0] % 12); /* some subnormal scales */
        }
        for (size_t k = 0; k < COUNT(at); k++)
            for (int h = 0; h < 2 && at[k].t == type; h++)
                if (at[k].halves[h] >= 0) {
                    uint16_t d = plm_half_encode((double)random_normal(seed) * 0.01);
                    memcpy(b + at[k].halves[h], &d, 2);
                }
    }
}

/* An output of `n` floats with a band of NaN on both sides, `shift` bytes off alignment of 64. */
#define GUARD 64
typedef struct guarded {
    float *raw, *y;
    int64_t n;
} guarded;
static inline guarded guard_open(int64_t n, int shift)
{
    guarded g = {cpu_alloc(((size_t)n + 2 * GUARD + 32) * sizeof(float)), NULL, n};
    uintptr_t at = ((uintptr_t)g.raw + GUARD * 4 + 63) / 64 * 64 + (uintptr_t)shift * 4;
    g.y = (float *)at;
    memset(g.raw, 0xff, ((size_t)n + 2 * GUARD + 32) * sizeof(float)); /* all ones: a NaN */
    return g;
}
/* The bands are as they were. */
static inline void guard_close(guarded *g, const char *what)
{
    for (int i = 1; i <= GUARD - 32; i++) {
        uint32_t before, after;
        memcpy(&before, g->y - i, 4);
        memcpy(&after, g->y + g->n - 1 + i, 4);
        if (before != 0xffffffffu || (g->n >= 0 && after != 0xffffffffu))
            fail_msg("%s: wrote outside its output (%d floats off)", what, i);
    }
    free(g->raw);
    g->raw = g->y = NULL;
}

/* Two pieces in turn, the later first: what a kernel may not depend on. */
static void run_backwards(void *ctx, int64_t n, int64_t grain,
                          void (*body)(void *arg, int64_t from, int64_t to), void *arg)
{
    (void)ctx;
    (void)grain;
    for (int64_t i = n; i > 0; i -= i < 3 ? i : 3)
        body(arg, i - (i < 3 ? i : 3), i);
}
static const plm_cpu_par backwards = {NULL, run_backwards};

#endif
