/* bench_cpu.c - CPU kernels: GFLOP/s or GB/s, and the share of what this machine gives in the same run.
**
**   bench_cpu [seconds a row, 0.1] [kernel name part]
** Peaks: a loop over registers for each multiplier; a sweep over 512 MiB for reads. A row is the best of
** its repetitions; bandwidth rows walk through weights of 512 MiB in all, so that no cache holds them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/cpu/fast/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define SWEEP_BYTES ((int64_t)512 << 20)

static double seconds_a_row = 0.1;
static const char *only = "";

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *take(int64_t bytes)
{
    void *p = bytes >= 0 ? aligned_alloc(64, (size_t)(bytes + 64) / 64 * 64) : NULL;
    if (p == NULL) {
        fprintf(stderr, "bench_cpu: no memory for %lld bytes\n", (long long)bytes);
        exit(3);
    }
    return p;
}

/* Seconds of one call of fn, the best of repeated ones. */
static double best_of(void (*fn)(void *), void *arg)
{
    double best = INFINITY, end = now() + seconds_a_row;
    for (int i = 0; i < 3 || now() < end; i++) {
        double t = now();
        fn(arg);
        t = now() - t;
        best = t < best ? t : best;
    }
    return best;
}

/* ---- what the machine gives ---- */
typedef struct peaks {
    double i8, bf16, f32, read; /* 1e9 a second */
} peaks;
enum { TURNS = 200000 }; /* of a loop with 12 independent instructions */

typedef struct spin {
    void (*loop)(void);
    const plm_cpu_par *par;
    int threads;
} spin;
static void spin_body(void *arg, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        ((const spin *)arg)->loop();
}
static void spin_all(void *arg)
{
    spin *s = arg;
    plm_cpu_run(s->par, s->threads * 8, 1, spin_body, s);
}

#if defined(__x86_64__)
/* Twelve sums in turn: two a cycle, six cycles each at most. The empty assembly keeps each turn's value
** computed, in a register. */
#define SPIN_EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define SPIN_NEW(i) a##i = zero,
#define SPIN(name, target_, type, first, STEP)                                                     \
    __attribute__((target(target_), noinline)) static void name(void)                              \
    {                                                                                              \
        type zero = first, SPIN_EACH(SPIN_NEW) unused = zero;                                      \
        for (int t = 0; t < TURNS; t++) {                                                          \
            SPIN_EACH(STEP)                                                                        \
        }                                                                                          \
        (void)unused;                                                                              \
    }
#define SPIN_STEP(i, op)                                                                           \
    a##i = op;                                                                                     \
    __asm__ volatile("" : "+v"(a##i));
#define STEP_I8(i) SPIN_STEP(i, _mm512_dpbusd_epi32(a##i, _mm512_set1_epi8(3), _mm512_set1_epi8(5)))
#define STEP_BF16(i)                                                                               \
    SPIN_STEP(i, _mm512_dpbf16_ps(a##i, (__m512bh)_mm512_set1_epi32(0x3f803f80),                   \
                                  (__m512bh)_mm512_set1_epi32(1)))
#define STEP_F512(i) SPIN_STEP(i, _mm512_fmadd_ps(a##i, _mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f)))
#define STEP_F256(i) SPIN_STEP(i, _mm256_fmadd_ps(a##i, _mm256_set1_ps(0.5f), _mm256_set1_ps(0.25f)))
SPIN(spin_i8, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(), STEP_I8)
SPIN(spin_bf16, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(), STEP_BF16)
SPIN(spin_f512, "avx512f", __m512, _mm512_setzero_ps(), STEP_F512)
SPIN(spin_f256, "avx2,fma", __m256, _mm256_setzero_ps(), STEP_F256)
#endif

static double spin_rate(void (*loop)(void), int ops, int threads, const plm_cpu_par *par)
{
    spin s = {loop, par, threads};
    return 1e-9 * threads * 8.0 * TURNS * 12 * ops / best_of(spin_all, &s);
}

typedef struct sweep {
    const unsigned char *data;
    const plm_cpu_par *par;
} sweep;
static void sweep_plain(const unsigned char *p, int64_t bytes)
{
    int64_t sum = 0, x;
    for (int64_t i = 0; i < bytes; i += 8) {
        memcpy(&x, p + i, 8);
        sum += x;
    }
    volatile int64_t sink = sum;
    (void)sink;
}
#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void sweep_avx512(const unsigned char *p, int64_t bytes)
{
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
    for (int64_t i = 0; i < bytes; i += 256) {
        a = _mm512_or_si512(a, _mm512_loadu_si512(p + i));
        b = _mm512_or_si512(b, _mm512_loadu_si512(p + i + 64));
        c = _mm512_or_si512(c, _mm512_loadu_si512(p + i + 128));
        d = _mm512_or_si512(d, _mm512_loadu_si512(p + i + 192));
        _mm_prefetch((const char *)p + i + 4096, _MM_HINT_T0);
        _mm_prefetch((const char *)p + i + 4160, _MM_HINT_T0);
        _mm_prefetch((const char *)p + i + 4224, _MM_HINT_T0);
        _mm_prefetch((const char *)p + i + 4288, _MM_HINT_T0);
    }
    volatile int sink = (int)_mm512_test_epi32_mask(_mm512_or_si512(a, b), _mm512_or_si512(c, d));
    (void)sink;
}
#endif
static void sweep_body(void *arg, int64_t from, int64_t to)
{
    const sweep *s = arg;
#if defined(__x86_64__)
    if (plm_cpu_has(PLM_CPU_AVX512)) {
        sweep_avx512(s->data + from * 4096, (to - from) * 4096);
        return;
    }
#endif
    sweep_plain(s->data + from * 4096, (to - from) * 4096);
}
static void sweep_all(void *arg)
{
    sweep *s = arg;
    plm_cpu_run(s->par, SWEEP_BYTES / 4096, 64, sweep_body, s);
}

static peaks measure_peaks(void *memory, int threads, const plm_cpu_par *par)
{
    peaks p = {0};
    sweep s = {memory, par};
#if defined(__x86_64__)
    if (plm_cpu_has(PLM_CPU_AVX512)) {
        p.i8 = spin_rate(spin_i8, 128, threads, par);
        p.f32 = spin_rate(spin_f512, 32, threads, par);
    } else if (plm_cpu_has(PLM_CPU_AVX2)) {
        p.f32 = spin_rate(spin_f256, 16, threads, par);
    }
    if (plm_cpu_has(PLM_CPU_AVX512BF16))
        p.bf16 = spin_rate(spin_bf16, 64, threads, par);
#endif
    p.read = 1e-9 * (double)SWEEP_BYTES / best_of(sweep_all, &s);
    return p;
}

/* ---- linears ---- */
typedef struct linear_case {
    const plm_cpu_kernels *t;
    plm_cpu_weight w;
    plm_cpu_acts a;
    float *x, *y;
    int64_t weights, next, bytes; /* copies of w to walk through */
    const plm_cpu_par *par;
} linear_case;

static void linear_once(void *arg)
{
    linear_case *c = arg;
    plm_cpu_weight w = c->w;
    w.data += c->next * c->bytes;
    c->next = (c->next + 1) % c->weights;
    c->t->activate(c->x, w.k, &c->a, c->par);
    c->t->linear(&w, &c->a, NULL, c->y, w.n, c->par);
}

/* memory: SWEEP_BYTES of packed weights, whatever they hold. */
static void bench_linear(const plm_cpu_kernels *t, plm_backend_dtype type, const char *name,
                         int64_t m, int64_t n, int64_t k, unsigned char *memory, const peaks *p,
                         int threads, const plm_cpu_par *par)
{
    char what[64];
    snprintf(what, sizeof what, "linear %s %s", name, t->name);
    if (strstr(what, only) == NULL)
        return;
    linear_case c = {.t = t, .w = {memory, n, k, type}, .par = par};
    c.bytes = plm_cpu_pack_bytes(type, n, k);
    c.weights = SWEEP_BYTES / c.bytes;
    c.a = (plm_cpu_acts){t->kind(type), m, k, NULL};
    c.a.data = take(plm_cpu_acts_bytes(c.a.kind, m, k));
    c.x = take(m * k * 4);
    c.y = take(m * n * 4);
    for (int64_t i = 0; i < m * k; i++)
        c.x[i] = (float)(i % 37) * 0.1f - 1.7f;
    double seconds = best_of(linear_once, &c);
    double gflop_s = 2e-9 * (double)(m * n * k) / seconds, gb_s = 1e-9 * (double)c.bytes / seconds;
    double peak = c.a.kind == PLM_CPU_I8 ? p->i8 : c.a.kind == PLM_CPU_BF16 ? p->bf16 : p->f32;
    printf("%-30s m=%-4lld n=%-6lld k=%-5lld threads=%d %8.1f GFLOP/s %3.0f%% of peak %6.1f GB/s %3.0f%% of read\n",
           what, (long long)m, (long long)n, (long long)k, threads, gflop_s,
           peak > 0 ? 100 * gflop_s / peak : 0, gb_s, 100 * gb_s / p->read);
    fflush(stdout);
    free(c.a.data);
    free(c.x);
    free(c.y);
}

/* ---- attention ---- */
typedef struct attention_case {
    const plm_cpu_kernels *t;
    plm_cpu_attention a;
    const plm_cpu_par *par;
} attention_case;
static void attention_once(void *arg)
{
    attention_case *c = arg;
    c->t->attention(&c->a, c->par);
}

/* `tokens` queries after `past` positions, one sequence, f16 cache. */
static void bench_attention(const plm_cpu_kernels *t, int64_t tokens, int64_t past, int64_t H, int64_t G,
                            int64_t d, int64_t splits, unsigned char *memory, const peaks *p, int threads,
                            const plm_cpu_par *par)
{
    int64_t len = past + tokens, bytes = len * G * d * 2 * 2;
    int32_t seq_token[2] = {0, (int32_t)tokens}, seq_past = (int32_t)past;
    int32_t *block = take((len / 16 + 1) * 4);
    float *q = take(tokens * H * d * 4), *y = take(tokens * H * d * 4);
    float *scratch = take(plm_cpu_attention_scratch(tokens, H, d, splits) * 4 + 4);
    if (strstr("attention", only) != NULL && bytes <= SWEEP_BYTES) {
        for (int64_t i = 0; i < len / 16 + 1; i++)
            block[i] = (int32_t)i;
        for (int64_t i = 0; i < tokens * H * d; i++)
            q[i] = (float)(i % 37) * 0.1f - 1.7f;
        attention_case c = {t,
                            {.n_seqs = 1, .H = H, .G = G, .dk = d, .dv = d, .q = q,
                             .cache = PLM_BACKEND_DT_F16, .k = memory, .v = memory + bytes / 2,
                             .seq_token = seq_token, .seq_past = &seq_past, .block = block,
                             .block_stride = len / 16 + 1, .block_tokens = 16, .scale = 0.1f,
                             .causal = true, .y = y, .splits = splits, .scratch = scratch},
                            par};
        double s = best_of(attention_once, &c);
        double flop = 4.0 * (double)(H * d * tokens) * ((double)past + 0.5 * (double)(tokens + 1));
        printf("%-30s T=%-4lld past=%-6lld H=%lld/%lld d=%lld threads=%d %7.1f GFLOP/s %3.0f%% of peak "
               "%6.1f GB/s %3.0f%% of read\n",
               "attention f16", (long long)tokens, (long long)past, (long long)H, (long long)G,
               (long long)d, threads, 1e-9 * flop / s, p->f32 > 0 ? 1e-7 * flop / s / p->f32 : 0,
               1e-9 * (double)bytes / s, 1e-7 * (double)bytes / s / p->read);
        fflush(stdout);
    }
    free(block);
    free(q);
    free(y);
    free(scratch);
}

/* ---- rows ---- */
typedef struct rows_case {
    const plm_cpu_kernels *t;
    int what;
    float *x, *y;
    const float *cos_t;
    int64_t rows, n;
    const plm_cpu_par *par;
} rows_case;
static void rows_once(void *arg)
{
    rows_case *c = arg;
    plm_cpu_acts a = {PLM_CPU_I8, c->rows, c->n, (unsigned char *)c->y};
    switch (c->what) {
    case 0: c->t->rms_norm(c->x, NULL, c->x, 1e-5f, 0, c->rows, c->n, NULL, c->y, c->par); return;
    case 1: (void)c->t->glu(PLM_BACKEND_FN_SILU, 0, 0, c->x, c->x, c->n, c->rows, c->n, c->y, c->par); return;
    case 2: c->t->softmax(c->x, c->rows, c->n, c->y, c->par); return;
    case 3: c->t->activate(c->x, c->n, &a, c->par); return;
    default: c->t->rope(c->y, c->n, c->rows, c->n / 64, 64, 64, false, c->cos_t, c->cos_t, c->par); return;
    }
}

static void bench_rows(const plm_cpu_kernels *t, int threads, const plm_cpu_par *par)
{
    static const char *const names[] = {"rms_norm", "silu glu", "softmax", "activate int8", "rope"};
    enum { ROWS = 512, N = 2048 };
    rows_case c = {t, 0, take(ROWS * N * 4), take(ROWS * N * 4), NULL, ROWS, N, par};
    for (int64_t i = 0; i < (int64_t)ROWS * N; i++)
        c.x[i] = c.y[i] = (float)(i % 41) * 0.1f - 2;
    c.cos_t = c.x;
    for (; c.what < 5; c.what++)
        if (strstr(names[c.what], only) != NULL)
            printf("%-30s [%d,%d] threads=%d %7.2f numbers/ns\n", names[c.what], ROWS, N, threads,
                   1e-9 * ROWS * N / best_of(rows_once, &c));
    free(c.x);
    free(c.y);
}

int main(int argc, char **argv)
{
    static const struct { plm_backend_dtype type; const char *name; } types[] = {
        {PLM_BACKEND_DT_Q8_0, "q8_0"}, {PLM_BACKEND_DT_Q4_0, "q4_0"}, {PLM_BACKEND_DT_Q4_K, "q4_k"},
        {PLM_BACKEND_DT_Q6_K, "q6_k"}, {PLM_BACKEND_DT_Q5_K, "q5_k"}, {PLM_BACKEND_DT_BF16, "bf16"},
        {PLM_BACKEND_DT_F16, "f16"},   {PLM_BACKEND_DT_F32, "f32"},
    };
    if (argc > 1)
        seconds_a_row = strtod(argv[1], NULL);
    if (argc > 2)
        only = argv[2];
    unsigned char *memory = take(SWEEP_BYTES);
    memset(memory, 1, SWEEP_BYTES);
    for (int threads = 1; threads <= 2; threads++) {
        plm_cpu_par par = plm_cpu_openmp(threads);
        peaks p = measure_peaks(memory, threads, &par);
        printf("threads=%d peak: int8 %.0f GOP/s, bf16 %.0f, f32 %.0f GFLOP/s, read %.1f GB/s\n",
               threads, p.i8, p.bf16, p.f32, p.read);
        const plm_cpu_kernels *t = plm_cpu_best();
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            bench_linear(t, types[i].type, types[i].name, 512, 2048, 2048, memory, &p, threads, &par);
            bench_linear(t, types[i].type, types[i].name, 1, 8192, 2048, memory, &p, threads, &par);
        }
        bench_attention(t, 512, 0, 16, 8, 128, 1, memory, &p, threads, &par);
        bench_attention(t, 1, 16384, 16, 8, 128, 1, memory, &p, threads, &par);
        bench_attention(t, 1, 32768, 8, 1, 128, 8, memory, &p, threads, &par);
        bench_rows(t, threads, &par);
    }
    free(memory);
    return 0;
}
