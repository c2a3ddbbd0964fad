/* table.c - which level this machine has; sizes of activations; threads. */
#include <math.h>

#include "backends/cpu/fast/level.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

static const char *const names[PLM_CPU_LEVELS] = {"generic", "avx2", "avx512", "avx512bf16",
                                                  "neon"};

const char *plm_cpu_level_name(plm_cpu_level level)
{
    return level >= 0 && level < PLM_CPU_LEVELS ? names[level] : "unknown";
}

#if defined(__x86_64__) && defined(__GNUC__)
/* Bit 29 of ecx of leaf 1; not every compiler's __builtin_cpu_supports knows its name. */
static bool has_f16c(void)
{
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 29 & 1) != 0;
}

/* Asked of the CPU, and of the system that saves its registers, by the compiler's run time. */
static bool machine_has(plm_cpu_level level)
{
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512vnni");
    switch (level) {
    case PLM_CPU_GENERIC: return true;
    case PLM_CPU_AVX2: return avx2;
    case PLM_CPU_AVX512: return avx512;
    case PLM_CPU_AVX512BF16: return avx512 && __builtin_cpu_supports("avx512bf16");
    default: return false;
    }
}
#else
static bool machine_has(plm_cpu_level level)
{
    return level == PLM_CPU_GENERIC;
}
#endif

static const plm_cpu_kernels *built(plm_cpu_level level)
{
    switch (level) {
    case PLM_CPU_GENERIC: return plm_level_generic();
    case PLM_CPU_AVX2: return plm_level_avx2();
    case PLM_CPU_AVX512: return plm_level_avx512();
    case PLM_CPU_AVX512BF16: return plm_level_avx512bf16();
    default: return NULL;
    }
}

bool plm_cpu_has(plm_cpu_level level)
{
    return machine_has(level) && built(level) != NULL;
}

const plm_cpu_kernels *plm_cpu_table(plm_cpu_level level)
{
    return machine_has(level) ? built(level) : NULL;
}

const plm_cpu_kernels *plm_cpu_best(void)
{
    static const plm_cpu_level falling[] = {PLM_CPU_AVX512BF16, PLM_CPU_AVX512, PLM_CPU_AVX2};
    for (size_t i = 0; i < sizeof falling / sizeof *falling; i++)
        if (plm_cpu_has(falling[i]))
            return plm_cpu_table(falling[i]);
    return plm_level_generic();
}

/* int8: 64 bytes a block of 32 (forms.h); bf16 and floats: an even number of them. */
int64_t plm_cpu_acts_row(plm_cpu_kind kind, int64_t k)
{
    int64_t even = k + k % 2;
    int64_t bytes = kind == PLM_CPU_I8 ? k / 32 * 64 : kind == PLM_CPU_BF16 ? 2 * even : 4 * even;
    return (bytes + 63) / 64 * 64;
}

int64_t plm_cpu_acts_bytes(plm_cpu_kind kind, int64_t m, int64_t k)
{
    if (m < 0 || k < 0 || k > INT64_C(1) << 48)
        return -1;
    int64_t row = plm_cpu_acts_row(kind, k);
    return row > 0 && m > INT64_MAX / row ? -1 : m * row;
}

int64_t plm_cpu_attention_scratch(int64_t tokens, int64_t heads, int64_t dv, int64_t splits)
{
    return splits > 1 ? tokens * heads * splits * (dv + 2) : 0;
}

int64_t plm_cpu_cache_bytes(plm_backend_dtype cache, int64_t n)
{
    switch (cache) {
    case PLM_BACKEND_DT_F32: return 4 * n;
    case PLM_BACKEND_DT_F16:
    case PLM_BACKEND_DT_BF16: return 2 * n;
    case PLM_BACKEND_DT_Q8_0: return n % 32 == 0 ? n / 32 * 34 : -1;
    default: return -1;
    }
}

void plm_cpu_rope_table(const int32_t *pos, int64_t tokens, const double *inv_freq, int64_t dims,
                        double mscale, float *cos_t, float *sin_t)
{
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t i = 0; i < dims / 2; i++) {
            double angle = pos[t] * inv_freq[i];
            cos_t[t * (dims / 2) + i] = (float)(mscale * cos(angle));
            sin_t[t * (dims / 2) + i] = (float)(mscale * sin(angle));
        }
}

void plm_cpu_run(const plm_cpu_par *par, int64_t n, int64_t grain,
                 void (*body)(void *arg, int64_t from, int64_t to), void *arg)
{
    if (n <= 0)
        return;
    if (par == NULL || par->run == NULL || n <= grain)
        body(arg, 0, n);
    else
        par->run(par->ctx, n, grain, body, arg);
}

#ifdef _OPENMP
/* Four pieces a thread, so that one that is held up does not hold up the others. */
static void run_openmp(void *ctx, int64_t n, int64_t grain,
                       void (*body)(void *arg, int64_t from, int64_t to), void *arg)
{
    int threads = ctx != NULL ? (int)(intptr_t)ctx : omp_get_max_threads();
    int64_t piece = (n + 4 * threads - 1) / (4 * threads);
    piece = piece > grain ? piece : grain;
    int64_t pieces = (n + piece - 1) / piece;
    if (pieces < threads)
        threads = (int)pieces;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int64_t i = 0; i < pieces; i++)
        body(arg, i * piece, n - i * piece < piece ? n : (i + 1) * piece);
}

/* The context is the number itself, so that nothing is owned. */
plm_cpu_par plm_cpu_openmp(int threads)
{
    return (plm_cpu_par){(void *)(intptr_t)(threads > 0 ? threads : 0), run_openmp};
}
#else
plm_cpu_par plm_cpu_openmp(int threads)
{
    (void)threads;
    return (plm_cpu_par){NULL, NULL};
}
#endif
