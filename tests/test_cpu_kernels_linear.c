/* Linear kernels of every level against the decoded weights in double. */
#include "tests/cpu_support.h"

static const plm_dtype types[] = {
    PLM_DT_Q8_0, PLM_DT_Q4_0, PLM_DT_BF16,   PLM_DT_Q4_1,   PLM_DT_Q5_0,  PLM_DT_Q5_1, PLM_DT_Q4_K,
    PLM_DT_Q5_K, PLM_DT_Q6_K, PLM_DT_IQ4_NL, PLM_DT_IQ4_XS, PLM_DT_MXFP4, PLM_DT_F16,  PLM_DT_F32,
};

/* A weight in file layout, packed, and decoded. */
typedef struct operand {
    plm_dtype type;
    int64_t n, k;
    unsigned char *file, *packed;
    double *value;
    plm_cpu_weight w;
} operand;

static operand make_operand(uint64_t *seed, plm_dtype type, int64_t n, int64_t k, int shift)
{
    plm_error err;
    const plm_dtype_info *t = plm_dtype_get(type);
    operand o = {.type = type, .n = n, .k = k};
    o.file = cpu_alloc((size_t)(n * k / t->block * t->block_bytes));
    o.value = cpu_alloc((size_t)(n * k) * sizeof(double));
    fill_weights(seed, type, n * k, o.file);
    assert_ok(plm_decode(type, o.file, n * k, o.value, &err), err);
    int64_t bytes = plm_cpu_pack_bytes((plm_backend_dtype)type, n, k);
    assert_true(bytes >= 0);
    o.packed = cpu_alloc((size_t)bytes + 64);
    o.w = (plm_cpu_weight){o.packed + shift, n, k, (plm_backend_dtype)type};
    plm_cpu_pack((plm_backend_dtype)type, n, k, o.file, o.packed + shift, 0, plm_cpu_panels(n));
    return o;
}

static void free_operand(operand *o)
{
    free(o->file);
    free(o->packed);
    free(o->value);
}

static plm_cpu_acts make_acts(const plm_cpu_kernels *t, plm_cpu_kind kind, const float *x,
                              int64_t m, int64_t k)
{
    plm_cpu_acts a = {kind, m, k, NULL};
    a.data = cpu_alloc((size_t)plm_cpu_acts_bytes(kind, m, k) + 64);
    t->activate(x, k, &a, NULL);
    return a;
}

/* The numbers that the activations stand for. The codes' formula in double, independent of the lanes:
** only a code at a tie (or within a rounding of one) may differ, by one step. */
static void round_acts(plm_cpu_kind kind, const float *x, int64_t n, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = kind == PLM_CPU_BF16 ? plm_bf16_decode(plm_bf16_encode((double)x[i])) : (double)x[i];
    for (int64_t b = 0; kind == PLM_CPU_I8 && b < n / 32; b++) {
        double most = 0;
        for (int i = 0; i < 32; i++)
            most = fmax(most, fabs((double)x[32 * b + i]));
        for (int i = 0; i < 32 && most > 0; i++)
            y[32 * b + i] = nearbyint((double)x[32 * b + i] * 127 / most) * most / 127;
    }
}

/* Input-energy error of an output: err^2 / sum_k (w x)^2. */
typedef struct energy {
    double err, in;
} energy;

static energy check_linear(const operand *o, const double *x, int64_t m, const float *bias,
                           const float *y, int64_t ldy)
{
    energy e = {0, 0};
    for (int64_t r = 0; r < m; r++)
        for (int64_t j = 0; j < o->n; j++) {
            double sum = bias != NULL ? (double)bias[j] : 0, in = 0;
            for (int64_t i = 0; i < o->k; i++) {
                double p = o->value[j * o->k + i] * x[r * o->k + i];
                sum += p;
                in += p * p;
            }
            double diff = (double)y[r * ldy + j] - sum;
            if (!isfinite(diff))
                fail_msg("%s row %d column %d: %g, want %g", plm_dtype_get(o->type)->name, (int)r,
                         (int)j, (double)y[r * ldy + j], sum);
            e.err += diff * diff;
            e.in += in + (bias != NULL ? (double)bias[j] * (double)bias[j] : 0);
        }
    return e;
}

/* Bounds of the classes (plimsoll/backend.h). exact: activations as the kernel sees them, so that only
** float32 sums are left; else the true ones, and the class of int8 or bf16 activations. */
static double bound(plm_cpu_kind kind, int64_t k, bool exact)
{
    double f32 = 1e-14 * (double)(k < 16 ? 16 : k);
    return exact ? f32 * (kind == PLM_CPU_I8 ? 10 : 1) : kind == PLM_CPU_I8 ? 1e-4 : kind == PLM_CPU_BF16 ? 6e-5 : f32;
}

static void check_case(const plm_cpu_kernels *t, const operand *o, const float *x, int64_t m,
                       const float *bias, int shift)
{
    char what[128];
    plm_cpu_kind kind = t->kind((plm_backend_dtype)o->type);
    int64_t ldy = o->n + 3;
    plm_cpu_acts a = make_acts(t, kind, x, m, o->k);
    guarded g = guard_open(m > 0 ? (m - 1) * ldy + o->n : 0, shift);
    snprintf(what, sizeof what, "%s %s m=%d n=%d k=%d", t->name, plm_dtype_get(o->type)->name,
             (int)m, (int)o->n, (int)o->k);
    t->linear(&o->w, &a, bias, g.y, ldy, shift % 2 != 0 ? &backwards : NULL);
    double *rounded = cpu_alloc((size_t)(m * o->k) * sizeof(double));
    for (int exact = 0; exact < 2; exact++) {
        round_acts(exact ? kind : PLM_CPU_F32, x, m * o->k, rounded);
        energy e = check_linear(o, rounded, m, bias, g.y, ldy);
        double limit = bound(kind, o->k, exact != 0);
        /* A tie that falls the other way moves one term by 1/254 of its block's greatest. */
        if (exact && kind == PLM_CPU_I8)
            limit += 1e-7;
        if (!(e.err <= limit * e.in))
            fail_msg("%s: error %g of the input energy, limit %g", what,
                     e.in > 0 ? e.err / e.in : e.err, limit);
    }
    for (int64_t r = 0; r + 1 < m; r++) /* columns between the rows */
        for (int64_t j = o->n; j < ldy; j++)
            assert_true(isnan(g.y[r * ldy + j]));
    guard_close(&g, what);
    free(rounded);
    free(a.data);
}

/* k: multiples of the block for quantised types, anything for floats. */
static int64_t k_of(plm_dtype type, int64_t i)
{
    static const int64_t blocks[] = {1, 2, 3, 17, 0, 33}, numbers[] = {1, 2, 31, 257, 0, 129};
    int64_t block = plm_dtype_get(type)->block;
    return block == 1 ? numbers[i] : block == 256 ? 256 * (i == 4 ? 0 : i + 1) : 32 * blocks[i];
}

static void awkward_shapes(void **state)
{
    (void)state;
    static const int64_t size[] = {0, 1, 2, 3, 7, 13, 31, 33, 63, 127, 129};
    static const struct { int64_t m, n; int ik; } more[] = {{255, 17, 0}, {257, 33, 1}, {2, 257, 3}};
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels), cases = 0;
    uint64_t seed = test_seed("awkward_shapes");
    float *bias = cpu_alloc(300 * 4), *x = cpu_alloc(257 * 1600 * 4);
    fill_normal(&seed, bias, 300);
    for (size_t ti = 0; ti < COUNT(types); ti++)
        for (size_t c = 0; c < 40 + COUNT(more); c++) {
            int64_t m = c < 40 ? size[(c * 5 + ti) % COUNT(size)] : more[c - 40].m;
            int64_t n = c < 40 ? size[(c * 7 + c / 11 + 2 * ti) % COUNT(size)] : more[c - 40].n;
            int64_t k = k_of(types[ti], c < 40 ? (int64_t)(c + ti) % 6 : more[c - 40].ik);
            while (m * n * k > 4000000)
                m /= 2;
            operand o = make_operand(&seed, types[ti], n, k, (int)(c % 3) * 4);
            fill_normal(&seed, x, m * k);
            for (size_t l = 0; l < n_levels; l++, cases++)
                check_case(levels[l], &o, x, m, c % 2 != 0 ? bias : NULL, (int)(c % 4));
            free_operand(&o);
        }
    assert_true(cases >= 43 * COUNT(types));
    free(bias);
    free(x);
}

/* A row's result is the same to the bit alone, among others, and in either path. */
static void rows_are_independent(void **state)
{
    (void)state;
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    uint64_t seed = test_seed("rows_are_independent");
    enum { M = 23, N = 70, K = 1024 };
    float *x = cpu_alloc(M * K * 4), *all = cpu_alloc(M * N * 4), *one = cpu_alloc(N * 4);
    fill_normal(&seed, x, M * K);
    for (size_t ti = 0; ti < COUNT(types); ti++) {
        operand o = make_operand(&seed, types[ti], N, K, 0);
        for (size_t l = 0; l < n_levels; l++) {
            plm_cpu_kind kind = levels[l]->kind((plm_backend_dtype)types[ti]);
            plm_cpu_acts a = make_acts(levels[l], kind, x, M, K);
            plm_cpu_par par = plm_cpu_openmp(2);
            levels[l]->linear(&o.w, &a, NULL, all, N, &par);
            for (int64_t r = 0; r < M; r++) {
                plm_cpu_acts row = {kind, 1, K, a.data + r * plm_cpu_acts_row(kind, K)};
                levels[l]->linear(&o.w, &row, NULL, one, N, NULL);
                assert_memory_equal(one, all + r * N, N * 4);
            }
            free(a.data);
        }
        free_operand(&o);
    }
    free(x);
    free(all);
    free(one);
}

static void packed_rows_decode(void **state)
{
    (void)state;
    uint64_t seed = test_seed("packed_rows_decode");
    for (size_t ti = 0; ti < COUNT(types); ti++) {
        operand o = make_operand(&seed, types[ti], 37, 512, 0);
        float row[512];
        for (int64_t r = 0; r < o.n; r++) {
            plm_cpu_unpack_row(&o.w, r, row);
            for (int64_t i = 0; i < o.k; i++)
                assert_close((double)row[i], o.value[r * o.k + i], 1e-7, 1e-38);
        }
        free_operand(&o);
    }
}

static void sizes_are_checked(void **state)
{
    (void)state;
    assert_int_equal(plm_cpu_pack_bytes(PLM_BACKEND_DT_Q8_0, 17, 64), 2 * 2 * 34 * 16);
    assert_int_equal(plm_cpu_pack_bytes(PLM_BACKEND_DT_Q4_0, 16, 64), 2 * 18 * 16);
    assert_int_equal(plm_cpu_pack_bytes(PLM_BACKEND_DT_Q8_0, 1, 33), -1);
    assert_int_equal(plm_cpu_pack_bytes(PLM_BACKEND_DT_Q4_K, 1, 128), -1);
    assert_int_equal(plm_cpu_pack_bytes(PLM_BACKEND_DT_NF4, 1, 64), -1);
    assert_int_equal(plm_cpu_pack_bytes(PLM_BACKEND_DT_F32, INT64_C(1) << 40, INT64_C(1) << 40), -1);
    assert_int_equal(plm_cpu_pack_bytes(PLM_BACKEND_DT_F32, -1, 4), -1);
    assert_int_equal(plm_cpu_acts_bytes(PLM_CPU_F32, 3, 5), 3 * 64);
    assert_int_equal(plm_cpu_acts_bytes(PLM_CPU_F32, INT64_MAX / 8, 1 << 20), -1);
}

/* Groups of rows by expert, some empty, against one linear each: equal to the bit. */
static void grouped_equals_linear(void **state)
{
    (void)state;
    static const int64_t offsets[] = {2, 2, 7, 7, 8, 30, 30, 43};
    enum { X = 7, E = 45, N = 33, K = 256 };
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    uint64_t seed = test_seed("grouped_equals_linear");
    float *x = cpu_alloc(E * K * 4), *one = cpu_alloc(E * N * 4), bias[X * N];
    fill_normal(&seed, x, E * K);
    fill_normal(&seed, bias, X * N);
    for (size_t ti = 0; ti < COUNT(types); ti++) {
        operand o[X];
        plm_cpu_weight w[X];
        for (int e = 0; e < X; e++) {
            o[e] = make_operand(&seed, types[ti], N, K, 0);
            w[e] = o[e].w;
        }
        for (size_t l = 0; l < n_levels; l++) {
            plm_cpu_acts a = make_acts(levels[l], levels[l]->kind(w[0].type), x, E, K);
            guarded g = guard_open(E * N, 0);
            levels[l]->linear_grouped(w, X, offsets, &a, bias, g.y, N, &backwards);
            for (int e = 0; e < X; e++) {
                plm_cpu_acts rows = a;
                rows.m = offsets[e + 1] - offsets[e];
                rows.data += offsets[e] * plm_cpu_acts_row(a.kind, K);
                levels[l]->linear(&w[e], &rows, bias + e * N, one, N, NULL);
                assert_memory_equal(one, g.y + offsets[e] * N, (size_t)(rows.m * N) * 4);
            }
            for (int64_t r = 0; r < E; r++) /* rows of no expert stay */
                assert_int_equal(isnan(g.y[r * N]) != 0, r < 2 || r >= 43);
            guard_close(&g, "linear_grouped");
            free(a.data);
        }
        for (int e = 0; e < X; e++)
            free_operand(&o[e]);
    }
    free(x);
    free(one);
}

/* Infinities and NaN of x show in the row they are in, and nowhere else. */
static void bad_numbers_show(void **state)
{
    (void)state;
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    uint64_t seed = test_seed("bad_numbers_show");
    float x[3 * 64], y[3 * 5];
    operand o = make_operand(&seed, PLM_DT_Q8_0, 5, 64, 0);
    for (size_t l = 0; l < n_levels; l++)
        for (int bad = 0; bad < 2; bad++) {
            fill_normal(&seed, x, 3 * 64);
            x[64 + 40] = bad ? NAN : -INFINITY;
            memset(x, 0, 32 * 4); /* a block of zeros */
            x[5] = 1e-38f;        /* and one too small to matter */
            plm_cpu_acts a = make_acts(levels[l], PLM_CPU_I8, x, 3, 64);
            levels[l]->linear(&o.w, &a, NULL, y, 5, NULL);
            for (int j = 0; j < 5; j++) {
                assert_true(isfinite(y[j]) && isfinite(y[10 + j]));
                assert_true(isnan(y[5 + j]));
            }
            free(a.data);
        }
    free_operand(&o);
}

static void levels_have_names(void **state)
{
    (void)state;
    assert_true(plm_cpu_has(PLM_CPU_GENERIC));
    assert_null(plm_cpu_table(PLM_CPU_NEON));
    assert_null(plm_cpu_table(PLM_CPU_LEVELS));
    assert_non_null(plm_cpu_best());
    for (int l = 0; l < PLM_CPU_LEVELS; l++)
        if (plm_cpu_has((plm_cpu_level)l)) {
            assert_int_equal(plm_cpu_table((plm_cpu_level)l)->level, l);
            assert_string_equal(plm_cpu_table((plm_cpu_level)l)->name,
                                plm_cpu_level_name((plm_cpu_level)l));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_have_names),     cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(packed_rows_decode),    cmocka_unit_test(awkward_shapes),
        cmocka_unit_test(rows_are_independent),  cmocka_unit_test(grouped_equals_linear),
        cmocka_unit_test(bad_numbers_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
