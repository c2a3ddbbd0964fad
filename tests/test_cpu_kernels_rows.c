/* Norms, rotary embedding, gates, softmax, argmax and recurrences of every level against their oracles. */
#include "tests/cpu_support.h"
#include "tests/oracle_support.h"

static const int64_t sizes[] = {1, 2, 3, 7, 13, 16, 31, 33, 63, 127, 129, 255, 257};
enum { MOST = 5 * 257 * 2 };

static void widen(const float *x, int64_t n, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (double)x[i];
}

static void check(const char *what, const char *level, const float *y, const double *want, int64_t n,
                  double rel, double abs_)
{
    for (int64_t i = 0; i < n; i++)
        if (!((isnan(want[i]) && isnan(y[i])) || (double)y[i] == want[i] ||
              fabs((double)y[i] - want[i]) <= rel * fabs(want[i]) + abs_))
            fail_msg("%s %s: element %d is %.9g, want %.9g", level, what, (int)i, (double)y[i], want[i]);
}

static void norms(void **state)
{
    (void)state;
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    uint64_t seed = test_seed("norms");
    float x[MOST], b[MOST], w[257];
    double xd[MOST], wd[257], want[MOST];
    for (size_t c = 0; c < COUNT(sizes); c++) {
        int64_t n = sizes[c], rows = c % 5;
        fill_normal(&seed, x, rows * n), fill_normal(&seed, b, rows * n), fill_normal(&seed, w, n);
        bool add = c % 2 != 0, weight = c % 3 != 0;
        float offset = c % 4 == 1 ? 1 : 0;
        for (int64_t i = 0; i < rows * n; i++)
            xd[i] = (double)x[i] + (add ? (double)b[i] : 0);
        widen(w, n, wd);
        node_case k;
        case_init(&k, PLM_OP_RMS_NORM);
        case_real(&k, PLM_ATTR_EPS, 1e-5);
        case_real(&k, PLM_ATTR_WEIGHT_OFFSET, (double)offset);
        case_in(&k, 0, xd, DIMS(rows, n));
        if (weight)
            case_in(&k, 1, wd, DIMS(n));
        case_out(&k, 0, want, DIMS(rows, n));
        case_ok(&k, plm_oracle_rms_norm);
        for (size_t l = 0; l < n_levels; l++) {
            guarded y = guard_open(rows * n, (int)(c % 3)), sum = guard_open(rows * n, 1);
            levels[l]->rms_norm(x, add ? b : NULL, weight ? w : NULL, 1e-5f, offset, rows, n,
                                add ? sum.y : NULL, y.y, &backwards);
            check("rms_norm", levels[l]->name, y.y, want, rows * n, 1e-5, 1e-6);
            if (add)
                check("sum", levels[l]->name, sum.y, xd, rows * n, 1e-6, 1e-7);
            memcpy(sum.y, x, (size_t)(rows * n) * 4); /* in place */
            levels[l]->rms_norm(sum.y, add ? b : NULL, weight ? w : NULL, 1e-5f, offset, rows, n, sum.y,
                                sum.y, NULL);
            check("rms_norm in place", levels[l]->name, sum.y, want, rows * n, 1e-5, 1e-6);
            guard_close(&y, "rms_norm");
            guard_close(&sum, "rms_norm");
        }
    }
}

static void ropes(void **state)
{
    (void)state;
    static const struct { int64_t T, H, d, dims, style; } cases[] = {
        {0, 2, 8, 8, 0}, {1, 1, 2, 2, 0}, {3, 2, 64, 64, 0}, {5, 3, 80, 32, 0}, {2, 2, 66, 66, 1},
        {4, 1, 128, 128, 0}, {3, 2, 34, 30, 1},
    };
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    uint64_t seed = test_seed("ropes");
    for (size_t c = 0; c < COUNT(cases); c++) {
        int64_t T = cases[c].T, H = cases[c].H, d = cases[c].d, dims = cases[c].dims, n = T * H * d;
        float x[2048], cos_t[512], sin_t[512];
        double xd[2048], want[2048], posd[8], inv[64];
        int32_t pos[8];
        fill_normal(&seed, x, n);
        widen(x, n, xd);
        for (int64_t t = 0; t < T; t++) {
            pos[t] = (int32_t)random_below(&seed, 100000);
            posd[t] = pos[t];
        }
        node_case k;
        case_init(&k, PLM_OP_ROPE);
        case_int(&k, PLM_ATTR_ROPE_DIMS, dims);
        case_int(&k, PLM_ATTR_ROPE_STYLE, cases[c].style);
        case_real(&k, PLM_ATTR_THETA, 10000);
        case_real(&k, PLM_ATTR_MSCALE, 1.25);
        case_in(&k, 0, xd, DIMS(T, H, d));
        case_in(&k, 1, posd, DIMS(T));
        case_out(&k, 0, want, DIMS(T, H, d));
        case_ok(&k, plm_oracle_rope);
        assert_ok(plm_oracle_rope_freq(&k.c, dims, 0, NULL, inv, &k.err), k.err);
        plm_cpu_rope_table(pos, T, inv, dims, 1.25, cos_t, sin_t);
        for (size_t l = 0; l < n_levels; l++) {
            guarded y = guard_open(n, (int)(c % 4));
            memcpy(y.y, x, (size_t)n * 4);
            levels[l]->rope(y.y, H * d, T, H, d, dims, cases[c].style == 1, cos_t, sin_t, NULL);
            check("rope", levels[l]->name, y.y, want, n, 1e-6, 2e-6);
            guard_close(&y, "rope");
        }
    }
}

static const plm_backend_fn fns[] = {
    PLM_BACKEND_FN_NONE,    PLM_BACKEND_FN_SILU,     PLM_BACKEND_FN_GELU_TANH, PLM_BACKEND_FN_GELU_ERF,
    PLM_BACKEND_FN_SIGMOID, PLM_BACKEND_FN_SOFTPLUS, PLM_BACKEND_FN_TANH,      PLM_BACKEND_FN_EXP,
    PLM_BACKEND_FN_RELU,    PLM_BACKEND_FN_RELU2,    PLM_BACKEND_FN_SQRT_SOFTPLUS,
};

static void functions(void **state)
{
    (void)state;
    static const float odd[] = {0,   -0.0f, INFINITY, -INFINITY, 1e-30f, -1e-30f, 88,
                                -88, 100,   -100,     1e4f,      -1e4f,  -700,    20};
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    uint64_t seed = test_seed("functions");
    float x[300];
    double want[300];
    for (size_t f = 0; f < COUNT(fns); f++)
        for (size_t c = 0; c < COUNT(sizes); c++) {
            int64_t n = sizes[c];
            fill_normal(&seed, x, n);
            for (int64_t i = 0; i < n; i++)
                x[i] = i < (int64_t)COUNT(odd) ? odd[i] : 4 * x[i];
            for (int64_t i = 0; i < n; i++) {
                assert_true(plm_oracle_fn1((int64_t)fns[f], (double)x[i], &want[i]));
                want[i] = (double)(float)want[i]; /* overflow to infinity as floats do */
            }
            for (size_t l = 0; l < n_levels; l++) {
                guarded y = guard_open(n, (int)(c % 3));
                assert_true(levels[l]->unary(fns[f], x, n, y.y, &backwards));
                check("unary", levels[l]->name, y.y, want, n, 3e-6, 1e-7);
                x[0] = NAN;
                assert_true(levels[l]->unary(fns[f], x, 1, y.y, NULL));
                assert_true(isnan(y.y[0]) || fns[f] == PLM_BACKEND_FN_NONE);
                x[0] = odd[0];
                guard_close(&y, "unary");
            }
        }
    assert_false(levels[0]->unary(PLM_BACKEND_FN_SOFTMAX, x, 1, x, NULL));
    assert_false(levels[0]->glu(PLM_BACKEND_FN_SITU, 0, 0, x, x, 1, 1, 1, x, NULL));
}

/* Two units in the last place over the range of normal results: 2.4e-7. */
static void exponential_is_close(void **state)
{
    (void)state;
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    float x[16], y[16];
    for (size_t l = 0; l < n_levels; l++)
        for (int b = 0; b < 1090; b++) {
            for (int i = 0; i < 16; i++)
                x[i] = -87 + 0.01f * (float)(16 * b + i);
            assert_true(levels[l]->unary(PLM_BACKEND_FN_EXP, x, 16, y, NULL));
            for (int i = 0; i < 16; i++)
                assert_close((double)y[i], exp((double)x[i]), 2.4e-7, 0);
        }
}

static void gates(void **state)
{
    (void)state;
    static const struct { plm_backend_fn fn; float limit, alpha; } cases[] = {
        {PLM_BACKEND_FN_SILU, 0, 0},       {PLM_BACKEND_FN_GELU_TANH, 0, 0},
        {PLM_BACKEND_FN_GELU_ERF, 0, 0},   {PLM_BACKEND_FN_SILU, 1.5f, 0},
        {PLM_BACKEND_FN_SWIGLU_OAI, 2, 0}, {PLM_BACKEND_FN_SWIGLU_OAI, 0, 1.1f},
    };
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    uint64_t seed = test_seed("gates");
    float x[MOST];
    double xd[MOST], want[MOST];
    for (size_t g = 0; g < COUNT(cases); g++)
        for (size_t c = 0; c < COUNT(sizes); c++) {
            int64_t n = sizes[c], rows = 1 + (int64_t)(c % 4);
            fill_normal(&seed, x, rows * 2 * n);
            widen(x, rows * 2 * n, xd);
            node_case k;
            case_init(&k, PLM_OP_GLU);
            case_int(&k, PLM_ATTR_FN, (int64_t)cases[g].fn);
            case_real(&k, PLM_ATTR_LIMIT, (double)cases[g].limit);
            case_real(&k, PLM_ATTR_ALPHA, (double)cases[g].alpha);
            case_in(&k, 0, xd, DIMS(rows, 2 * n));
            case_out(&k, 0, want, DIMS(rows, n));
            case_ok(&k, plm_oracle_glu);
            for (size_t l = 0; l < n_levels; l++) {
                guarded y = guard_open(rows * n, (int)(c % 3));
                assert_true(levels[l]->glu(cases[g].fn, cases[g].limit, cases[g].alpha, x, x + n, 2 * n,
                                           rows, n, y.y, &backwards));
                check("glu", levels[l]->name, y.y, want, rows * n, 3e-6, 3e-7);
                guard_close(&y, "glu");
            }
        }
}

static void softmax_and_argmax(void **state)
{
    (void)state;
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    uint64_t seed = test_seed("softmax_and_argmax");
    float x[MOST];
    double xd[MOST], want[MOST], at[8];
    for (size_t c = 0; c < COUNT(sizes); c++) {
        int64_t n = sizes[c], rows = 4;
        fill_normal(&seed, x, rows * n);
        for (int64_t i = 0; i < n; i++) {
            x[n + i] = i % 3 == 0 ? -INFINITY : 50 * x[n + i];
            x[2 * n + i] = -INFINITY;
            x[3 * n + i] = (float)(i % 5); /* several greatest */
        }
        widen(x, rows * n, xd);
        node_case k, m;
        case_init(&k, PLM_OP_SOFTMAX);
        case_in(&k, 0, xd, DIMS(rows, n));
        case_out(&k, 0, want, DIMS(rows, n));
        case_ok(&k, plm_oracle_softmax);
        xd[0] = x[0] = NAN;
        case_init(&m, PLM_OP_ARGMAX);
        case_in(&m, 0, xd, DIMS(rows, n));
        case_out(&m, 0, at, DIMS(rows));
        case_ok(&m, plm_oracle_argmax);
        for (size_t l = 0; l < n_levels; l++) {
            guarded y = guard_open(rows * n, (int)(c % 3));
            int32_t index[4];
            levels[l]->argmax(x, rows, n, index, &backwards);
            for (int r = 0; r < 4; r++)
                assert_int_equal(index[r], (int)at[r]);
            levels[l]->softmax(x + n, rows - 1, n, y.y + n, NULL);
            check("softmax", levels[l]->name, y.y + n, want + n, (rows - 1) * n, 1e-5, 1e-9);
            guard_close(&y, "softmax");
        }
    }
}

static void sums_and_caps(void **state)
{
    (void)state;
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    uint64_t seed = test_seed("sums_and_caps");
    float a[257], b[257];
    fill_normal(&seed, a, 257), fill_normal(&seed, b, 257);
    a[3] = INFINITY;
    for (size_t l = 0; l < n_levels; l++)
        for (size_t c = 0; c < COUNT(sizes); c++) {
            int64_t n = sizes[c];
            guarded y = guard_open(n, (int)(c % 3));
            levels[l]->add(a, b, n, y.y, &backwards);
            for (int64_t i = 0; i < n; i++)
                assert_true(y.y[i] == a[i] + b[i]);
            levels[l]->mul(a, b, n, y.y, NULL);
            for (int64_t i = 0; i < n; i++)
                assert_true(y.y[i] == a[i] * b[i]);
            levels[l]->softcap(2.5f, a, n, y.y, &backwards);
            for (int64_t i = 0; i < n; i++)
                assert_close((double)y.y[i], 2.5 * tanh((double)a[i] / 2.5), 1e-6, 1e-6);
            guard_close(&y, "add, mul, softcap");
        }
}

static void delta_rule(void **state)
{
    (void)state;
    static const struct { int64_t T, Hk, Hv, dk, dv; bool by_channel; } cases[] = {
        {1, 1, 1, 1, 1, false}, {5, 2, 4, 16, 16, false}, {7, 1, 3, 31, 33, true}, {4, 2, 2, 64, 7, true},
    };
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    uint64_t seed = test_seed("delta_rule");
    for (size_t c = 0; c < COUNT(cases); c++) {
        int64_t T = cases[c].T, Hk = cases[c].Hk, Hv = cases[c].Hv, dk = cases[c].dk, dv = cases[c].dv;
        int64_t n_g = T * Hv * (cases[c].by_channel ? dk : 1), n_s = Hv * dk * dv;
        int64_t len[6] = {T * Hk * dk, T * Hk * dk, T * Hv * dv, n_g, T * Hv, n_s}, seq[8] = {0};
        float *f[6];
        double *d[6], *y = cpu_alloc((size_t)len[2] * 8), *next = cpu_alloc((size_t)n_s * 8);
        for (int i = 0; i < 6; i++) {
            f[i] = cpu_alloc((size_t)len[i] * 4);
            d[i] = cpu_alloc((size_t)len[i] * 8);
            fill_normal(&seed, f[i], len[i]);
            for (int64_t j = 0; j < len[i]; j++)
                f[i][j] = i == 3 ? -fabsf(f[i][j]) : i == 4 ? 0.5f : f[i][j] * 0.3f;
            widen(f[i], len[i], d[i]);
        }
        node_case k;
        case_init(&k, PLM_OP_GATED_DELTA);
        k.c.token_seq = seq, k.c.n_seq = 1;
        case_real(&k, PLM_ATTR_SCALE, 0.5);
        case_in(&k, 0, d[0], DIMS(T, Hk, dk));
        case_in(&k, 1, d[1], DIMS(T, Hk, dk));
        case_in(&k, 2, d[2], DIMS(T, Hv, dv));
        if (cases[c].by_channel)
            case_in(&k, 3, d[3], DIMS(T, Hv, dk));
        else
            case_in(&k, 3, d[3], DIMS(T, Hv));
        case_in(&k, 4, d[4], DIMS(T, Hv));
        case_in(&k, 5, d[5], DIMS(1, Hv, dk, dv));
        case_out(&k, 0, y, DIMS(T, Hv, dv));
        case_out(&k, 1, next, DIMS(1, Hv, dk, dv));
        case_ok(&k, plm_oracle_gated_delta);
        for (size_t l = 0; l < n_levels; l++) {
            guarded g = guard_open(len[2], 1), s = guard_open(n_s, 2);
            memcpy(s.y, f[5], (size_t)n_s * 4);
            for (int64_t t = 0; t < T; t += 3) /* in steps of up to three tokens */
                levels[l]->gated_delta(f[0], f[1], f[2], f[3], cases[c].by_channel, f[4], 0.5f, t,
                                       t + 3 < T ? t + 3 : T, Hk, Hv, dk, dv, s.y, g.y, &backwards);
            check("gated_delta", levels[l]->name, g.y, y, len[2], 1e-4, 1e-5);
            check("its state", levels[l]->name, s.y, next, n_s, 1e-4, 1e-5);
            guard_close(&g, "gated_delta");
            guard_close(&s, "gated_delta");
        }
        for (int i = 0; i < 6; i++)
            free(f[i]), free(d[i]);
        free(y);
        free(next);
    }
}

static void convolution(void **state)
{
    (void)state;
    static const struct { int64_t T, c, taps; bool silu, bias; } cases[] = {
        {1, 1, 1, false, false}, {5, 33, 4, true, true}, {2, 17, 4, false, true}, {9, 31, 2, true, false},
    };
    const plm_cpu_kernels *levels[PLM_CPU_LEVELS];
    size_t n_levels = cpu_levels(levels);
    uint64_t seed = test_seed("convolution");
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t T = cases[i].T, c = cases[i].c, taps = cases[i].taps, n_t = c * (taps - 1), seq[16] = {0};
        float x[512], w[256], bias[64], tail[256];
        double xd[512], wd[256], bd[64], td[256], y[512], next[256];
        fill_normal(&seed, x, T * c), fill_normal(&seed, w, c * taps);
        fill_normal(&seed, bias, c), fill_normal(&seed, tail, n_t);
        widen(x, T * c, xd), widen(w, c * taps, wd), widen(bias, c, bd), widen(tail, n_t, td);
        node_case k;
        case_init(&k, PLM_OP_CONV_CAUSAL);
        k.c.token_seq = seq, k.c.n_seq = 1;
        case_int(&k, PLM_ATTR_FN, cases[i].silu ? PLM_FN_SILU : PLM_FN_NONE);
        case_in(&k, 0, xd, DIMS(T, c));
        case_in(&k, 1, wd, DIMS(c, taps));
        case_in(&k, 2, td, DIMS(1, c, taps - 1));
        if (cases[i].bias)
            case_in(&k, 3, bd, DIMS(c));
        case_out(&k, 0, y, DIMS(T, c));
        case_out(&k, 1, next, DIMS(1, c, taps - 1));
        case_ok(&k, plm_oracle_conv_causal);
        for (size_t l = 0; l < n_levels; l++) {
            guarded g = guard_open(T * c, 1), t = guard_open(n_t, 0);
            memcpy(t.y, tail, (size_t)n_t * 4);
            for (int64_t at = 0; at < T; at += 2)
                levels[l]->conv_causal(x, w, cases[i].bias ? bias : NULL, cases[i].silu, at,
                                       at + 2 < T ? at + 2 : T, c, taps, t.y, g.y, &backwards);
            check("conv_causal", levels[l]->name, g.y, y, T * c, 1e-5, 1e-5);
            check("its tail", levels[l]->name, t.y, next, n_t, 0, 0);
            guard_close(&g, "conv_causal");
            guard_close(&t, "conv_causal");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms),         cmocka_unit_test(ropes),
        cmocka_unit_test(functions),     cmocka_unit_test(exponential_is_close),
        cmocka_unit_test(gates),
        cmocka_unit_test(softmax_and_argmax), cmocka_unit_test(sums_and_caps),
        cmocka_unit_test(delta_rule),    cmocka_unit_test(convolution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
