/* test_oracle_pointwise.c - oracles of norms and element-wise ops. Values of the functions were
** worked out with 17 digits from their formulas in another language. */
#include "core/ir/codec.h"
#include "tests/oracle_support.h"

static void rms_norm_by_hand(void **state)
{
    (void)state;
    /* Mean squares 12.5 and 1; with eps 0.5 the first row's root is sqrt(13). */
    static const double x[] = {3, 4, 1, -1}, w[] = {2, -1};
    double y[4];
    node_case k;
    case_init(&k, PLM_OP_RMS_NORM);
    case_real(&k, PLM_ATTR_EPS, 0.5);
    case_in(&k, 0, x, DIMS(2, 2));
    case_out(&k, 0, y, DIMS(2, 2));
    case_ok(&k, plm_oracle_rms_norm);
    const double a = sqrt(13), b = sqrt(1.5);
    assert_all_close(y, (const double[]){3 / a, 4 / a, 1 / b, -1 / b}, 4, 1e-15, 0);
    case_in(&k, 1, w, DIMS(2));
    case_real(&k, PLM_ATTR_WEIGHT_OFFSET, 1);
    case_ok(&k, plm_oracle_rms_norm);
    assert_all_close(y, (const double[]){9 / a, 0, 3 / b, 0}, 4, 1e-15, 0);
    case_in(&k, 1, w, DIMS(1));
    case_refused(&k, plm_oracle_rms_norm, "w");
}

static void layer_norm_by_hand(void **state)
{
    (void)state;
    /* Mean 3, deviations -2 0 2, variance 8/3. */
    static const double x[] = {1, 3, 5}, w[] = {1, 1, 2}, bias[] = {0, 10, 1};
    double y[3];
    node_case k;
    case_init(&k, PLM_OP_LAYER_NORM);
    case_real(&k, PLM_ATTR_EPS, 4.0 / 3);
    case_in(&k, 0, x, DIMS(1, 3));
    case_in(&k, 1, w, DIMS(3));
    case_in(&k, 2, bias, DIMS(3));
    case_out(&k, 0, y, DIMS(1, 3));
    case_ok(&k, plm_oracle_layer_norm);
    assert_all_close(y, (const double[]){-1, 10, 3}, 3, 1e-15, 0);
}

static void gated_and_l2_norms_by_hand(void **state)
{
    (void)state;
    static const double x[] = {3, 4}, z[] = {0, 1}, w[] = {1, 2};
    double y[2];
    node_case k;
    case_init(&k, PLM_OP_RMS_NORM_GATED);
    case_int(&k, PLM_ATTR_FN, PLM_FN_SIGMOID);
    case_in(&k, 0, x, DIMS(1, 2));
    case_in(&k, 1, z, DIMS(1, 2));
    case_in(&k, 2, w, DIMS(2));
    case_out(&k, 0, y, DIMS(1, 2));
    case_ok(&k, plm_oracle_rms_norm_gated);
    const double root = sqrt(12.5);
    assert_all_close(y, (const double[]){1.5 / root, 8 / root * 0.7310585786300049}, 2, 1e-15, 0);
    k.attrs[0].v.i = PLM_FN_SILU;
    case_ok(&k, plm_oracle_rms_norm_gated);
    assert_all_close(y, (const double[]){0, 8 / root * 0.7310585786300049}, 2, 1e-15, 0);
    k.attrs[0].v.i = PLM_FN_TANH;
    case_refused(&k, plm_oracle_rms_norm_gated, "fn");

    case_init(&k, PLM_OP_L2_NORM);
    case_real(&k, PLM_ATTR_EPS, 11);
    case_in(&k, 0, x, DIMS(1, 2));
    case_out(&k, 0, y, DIMS(1, 2));
    case_ok(&k, plm_oracle_l2_norm);
    assert_all_close(y, (const double[]){0.5, 4.0 / 6}, 2, 1e-15, 0);
}

static void add_and_mul_broadcast(void **state)
{
    (void)state;
    static const double a[] = {1, 2, 3, 4, 5, 6};
    double y[6];
    node_case k;
    case_init(&k, PLM_OP_ADD);
    case_in(&k, 0, a, DIMS(3, 2));
    case_out(&k, 0, y, DIMS(3, 2));
    case_in(&k, 1, a, DIMS(3, 2));
    case_ok(&k, plm_oracle_add);
    assert_all_equal(y, (const double[]){2, 4, 6, 8, 10, 12}, 6);
    case_in(&k, 1, (const double[]){10, 20}, DIMS(2)); /* over leading dims */
    case_ok(&k, plm_oracle_add);
    assert_all_equal(y, (const double[]){11, 22, 13, 24, 15, 26}, 6);
    case_in(&k, 1, (const double[]){10, 20, 30}, DIMS(3, 1)); /* over a last dim of 1 */
    case_ok(&k, plm_oracle_add);
    assert_all_equal(y, (const double[]){11, 12, 23, 24, 35, 36}, 6);
    case_ok(&k, plm_oracle_mul);
    assert_all_equal(y, (const double[]){10, 20, 60, 80, 150, 180}, 6);
    case_in(&k, 1, (const double[]){10, 20, 30}, DIMS(3));
    case_refused(&k, plm_oracle_add, "b");
    case_in(&k, 1, a, DIMS(1, 3, 2));
    case_refused(&k, plm_oracle_mul, "b");
}

static void unary_functions(void **state)
{
    (void)state;
    static const double x[4] = {-2, -0.5, 1, 3};
    static const struct {
        plm_fn fn;
        double y[4];
    } cases[] = {
        {PLM_FN_NONE, {-2, -0.5, 1, 3}},
        {PLM_FN_SILU,
         {-0.2384058440442351, -0.1887703343990727, 0.7310585786300049, 2.8577223804673}},
        {PLM_FN_GELU_TANH,
         {-0.04540230591222494, -0.15428599017485606, 0.8411919906082768, 2.996362607918227}},
        {PLM_FN_GELU_ERF,
         {-0.04550026389635842, -0.15426876936299344, 0.8413447460685429, 2.99595030590511}},
        {PLM_FN_SIGMOID,
         {0.11920292202211755, 0.3775406687981454, 0.7310585786300049, 0.9525741268224334}},
        {PLM_FN_SOFTPLUS,
         {0.1269280110429726, 0.4740769841801067, 1.3132616875182228, 3.048587351573742}},
        {PLM_FN_SQRT_SOFTPLUS,
         {0.3562695763645453, 0.6885324859293908, 1.145976303209723, 1.7460204327480655}},
        {PLM_FN_TANH,
         {-0.9640275800758169, -0.46211715726000976, 0.7615941559557649, 0.9950547536867305}},
        {PLM_FN_EXP,
         {0.1353352832366127, 0.6065306597126334, 2.718281828459045, 20.085536923187668}},
        {PLM_FN_RELU, {0, 0, 1, 3}},
        {PLM_FN_RELU2, {0, 0, 1, 9}},
    };
    double y[4];
    for (size_t i = 0; i < COUNT(cases); i++) {
        node_case k;
        case_init(&k, PLM_OP_UNARY);
        case_int(&k, PLM_ATTR_FN, cases[i].fn);
        case_in(&k, 0, x, DIMS(4));
        case_out(&k, 0, y, DIMS(4));
        case_ok(&k, plm_oracle_unary);
        assert_all_close(y, cases[i].y, 4, 1e-13, 0);
    }
    node_case k;
    case_init(&k, PLM_OP_UNARY);
    case_int(&k, PLM_ATTR_FN, PLM_FN_SOFTMAX);
    case_in(&k, 0, x, DIMS(4));
    case_out(&k, 0, y, DIMS(4));
    case_refused(&k, plm_oracle_unary, "fn");
}

/* Far out the functions meet their asymptotes, without overflow or NaN. */
/* Learned 0, 0: softplus is ln 2. At 2: 4 ln 2 + 1; at -1: (ln 2 + 1/2) / e - 1/2. */
static void xielu_by_hand(void **state)
{
    (void)state;
    const double x[] = {2, -1, 0}, learned[2] = {0};
    double y[3];
    node_case k;
    case_init(&k, PLM_OP_UNARY);
    case_int(&k, PLM_ATTR_FN, PLM_FN_XIELU);
    case_in(&k, 0, x, DIMS(3));
    case_out(&k, 0, y, DIMS(3));
    case_refused(&k, plm_oracle_unary, "learned");
    case_in(&k, 1, learned, DIMS(2));
    case_ok(&k, plm_oracle_unary);
    assert_close(y[0], 4 * log(2.0) + 1, 1e-12, 0);
    assert_close(y[1], (log(2.0) + 0.5) / exp(1.0) - 0.5, 1e-12, 0);
    assert_close(y[2], 0, 0, 0);
}

static void unary_functions_far_out(void **state)
{
    (void)state;
    static const plm_fn fns[] = {PLM_FN_SILU, PLM_FN_GELU_TANH, PLM_FN_GELU_ERF, PLM_FN_SOFTPLUS,
                                 PLM_FN_RELU};
    double y;
    for (size_t i = 0; i < COUNT(fns); i++) {
        assert_true(plm_oracle_fn1(fns[i], 1e4, &y) && y == 1e4);
        assert_true(plm_oracle_fn1(fns[i], -1e4, &y) && y == 0);
        assert_true(plm_oracle_fn1(fns[i], (double)-INFINITY, &y) && y == 0);
        assert_true(plm_oracle_fn1(fns[i], (double)INFINITY, &y) && isinf(y) && y > 0);
        assert_true(plm_oracle_fn1(fns[i], (double)NAN, &y) && isnan(y));
    }
    assert_true(plm_oracle_fn1(PLM_FN_SIGMOID, -800, &y) && y == 0);
    assert_true(plm_oracle_fn1(PLM_FN_SIGMOID, 800, &y) && y == 1);
    assert_true(plm_oracle_fn1(PLM_FN_SOFTPLUS, -700, &y));
    assert_close(y, exp(-700), 1e-14, 0);
}

static void run_glu(plm_fn fn, double limit, double alpha, const double *gate, const double *up,
                    int64_t n, double *y)
{
    node_case k;
    case_init(&k, PLM_OP_GLU);
    case_int(&k, PLM_ATTR_FN, fn);
    if (limit != 0)
        case_real(&k, PLM_ATTR_LIMIT, limit);
    if (alpha != 0)
        case_real(&k, PLM_ATTR_ALPHA, alpha);
    case_in(&k, 0, gate, DIMS(1, n));
    case_in(&k, 1, up, DIMS(1, n));
    case_out(&k, 0, y, DIMS(1, n));
    case_ok(&k, plm_oracle_glu);
    /* The same with gate and up in one operand. */
    double both[16], again[8];
    memcpy(both, gate, (size_t)n * sizeof *gate);
    memcpy(both + n, up, (size_t)n * sizeof *up);
    case_in(&k, 0, both, DIMS(1, 2 * n));
    case_in(&k, 1, NULL, DIMS(1, n));
    case_out(&k, 0, again, DIMS(1, n));
    case_ok(&k, plm_oracle_glu);
    assert_all_equal(again, y, (size_t)n);
}

static void glu_variants(void **state)
{
    (void)state;
    static const double gate[] = {1, 9, -9}, up[] = {2, -10, 8};
    double y[3];
    run_glu(PLM_FN_SILU, 0, 0, gate, up, 3, y);
    assert_all_close(
        y, (const double[]){2 * 0.7310585786300049, -90 / (1 + exp(-9)), -72 / (1 + exp(9))}, 3,
        1e-14, 0);
    /* Clamped: gate 9 -> 7 but -9 stays; up -10 -> -7, 8 -> 7. */
    run_glu(PLM_FN_SILU, 7, 0, gate, up, 3, y);
    assert_all_close(
        y, (const double[]){2 * 0.7310585786300049, -49 / (1 + exp(-7)), -63 / (1 + exp(9))}, 3,
        1e-14, 0);
    run_glu(PLM_FN_GELU_TANH, 0, 0, gate, up, 1, y);
    assert_close(y[0], 2 * 0.8411919906082768, 1e-14, 0);
    static const double oai[] = {2.537387297798464, -41.99971876981991, -1.602542389246808e-05};
    run_glu(PLM_FN_SWIGLU_OAI, 7, 1.702, gate, up, 3, y);
    assert_all_close(y, oai, 3, 1e-13, 0);
    run_glu(PLM_FN_SWIGLU_OAI, 7, 0, gate, up, 3, y); /* 1.702 is the default */
    assert_all_close(y, oai, 3, 1e-13, 0);
    run_glu(PLM_FN_SITU, 25, 4, (const double[]){3, -2}, (const double[]){30, -1}, 2, y);
    assert_all_close(y, (const double[]){50.438309467826464, 0.2202254208164922}, 2, 1e-13, 0);
}

static void softmax_rows(void **state)
{
    (void)state;
    const double inf = (double)INFINITY;
    /* BE-01: a row of -inf is 0, not NaN and not uniform. */
    const double x[] = {-inf, -inf, -inf, -inf, 0, 0, -inf, 0, 1e300, -1e300, 1e300, 0};
    double y[12];
    node_case k;
    case_init(&k, PLM_OP_SOFTMAX);
    case_in(&k, 0, x, DIMS(3, 4));
    case_out(&k, 0, y, DIMS(3, 4));
    case_ok(&k, plm_oracle_softmax);
    const double third = 1.0 / 3;
    assert_all_equal(y, (const double[]){0, 0, 0, 0, third, third, 0, third, 0.5, 0, 0.5, 0}, 12);
    /* Finite minima are numbers like others: equal ones share. */
    case_in(&k, 0, (const double[]){-3.4e38, -3.4e38}, DIMS(1, 2));
    case_out(&k, 0, y, DIMS(1, 2));
    case_ok(&k, plm_oracle_softmax);
    assert_all_equal(y, (const double[]){0.5, 0.5}, 2);
    case_in(&k, 0, (const double[]){(double)NAN, -inf}, DIMS(1, 2));
    case_ok(&k, plm_oracle_softmax);
    assert_true(isnan(y[0]));
    /* e^(ln 3) : e^0 = 3 : 1 */
    case_in(&k, 0, (const double[]){log(3), 0}, DIMS(1, 2));
    case_ok(&k, plm_oracle_softmax);
    assert_all_close(y, (const double[]){0.75, 0.25}, 2, 1e-15, 0);
    case_in(&k, 0, x, DIMS(3, 0));
    case_out(&k, 0, y, DIMS(3, 0));
    case_ok(&k, plm_oracle_softmax);
}

/* Two streams of three columns by hand; two tokens. */
static void streams_by_hand(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 10, 20, 30, 4, 5, 6, -1, -2, -3};
    static const double w[] = {0.5, 0.1, 2, 1}, m[] = {1, 0, 0.5, 2, 0, 1, 1, 0};
    static const double y[] = {100, 200, 300, 1, 1, 1};
    double sum[6], mixed[12];
    node_case k;
    case_init(&k, PLM_OP_STREAM_SUM);
    case_in(&k, 0, x, DIMS(2, 2, 3));
    case_in(&k, 1, w, DIMS(2, 2));
    case_out(&k, 0, sum, DIMS(2, 3));
    case_ok(&k, plm_oracle_stream_sum);
    assert_all_close(sum, (const double[]){1.5, 3, 4.5, 7, 8, 9}, 6, 1e-15, 0);
    case_in(&k, 1, w, DIMS(4, 1));
    case_refused(&k, plm_oracle_stream_sum, "w");
    case_init(&k, PLM_OP_STREAM_MIX);
    case_in(&k, 0, x, DIMS(2, 2, 3));
    case_in(&k, 1, m, DIMS(2, 2, 2));
    case_in(&k, 2, y, DIMS(2, 3));
    case_in(&k, 3, w, DIMS(2, 2));
    case_out(&k, 0, mixed, DIMS(2, 2, 3));
    case_ok(&k, plm_oracle_stream_mix);
    /* x0 + 0.5 y; 0.5 x0 + 2 x1 + 0.1 y; x1 + 2 y; x0 + y */
    assert_all_close(mixed,
                     (const double[]){51, 102, 153, 30.5, 61, 91.5, 1, 0, -1, 5, 6, 7}, 12, 1e-15,
                     0);
    case_in(&k, 2, y, DIMS(3, 2));
    case_refused(&k, plm_oracle_stream_mix, "y");
}

static void scale_softcap_and_in_place(void **state)
{
    (void)state;
    double x[] = {-1e9, 30, 0};
    node_case k;
    case_init(&k, PLM_OP_SOFTCAP);
    case_real(&k, PLM_ATTR_LIMIT, 30);
    case_in(&k, 0, x, DIMS(3));
    k.out[0] = make_array(x, DIMS(3));
    case_ok(&k, plm_oracle_softcap);
    assert_all_close(x, (const double[]){-30, 30 * 0.7615941559557649, 0}, 3, 1e-15, 0);
    case_init(&k, PLM_OP_SOFTCAP);
    case_in(&k, 0, x, DIMS(3));
    k.out[0] = make_array(x, DIMS(3));
    case_refused(&k, plm_oracle_softcap, "limit");
    case_init(&k, PLM_OP_SCALE);
    case_real(&k, PLM_ATTR_SCALE, -2);
    case_in(&k, 0, (const double[]){1, 2, 3}, DIMS(3));
    case_out(&k, 0, x, DIMS(3));
    case_ok(&k, plm_oracle_scale);
    assert_all_equal(x, (const double[]){-2, -4, -6}, 3);
}

static void cast_rounds_to_the_dtype(void **state)
{
    (void)state;
    static const double x[] = {1.0 / 3, 65520, 1e-10, 449};
    double y[4];
    node_case k;
    case_init(&k, PLM_OP_CAST);
    case_in(&k, 0, x, DIMS(4));
    case_out(&k, 0, y, DIMS(4));
    k.values[0].dtype = PLM_DT_F16; /* 1/3 = 1365.33 / 4096; overflow; below half of 2^-24 */
    case_ok(&k, plm_oracle_cast);
    assert_all_equal(y, (const double[]){1365.0 / 4096, (double)INFINITY, 0, 449}, 4);
    k.values[0].dtype = PLM_DT_BF16; /* 1/3 = 170.67 / 512 -> 171; 65520 -> 65536; 449 -> 448 */
    case_ok(&k, plm_oracle_cast);
    assert_true(y[0] == 171.0 / 512 && y[1] == 65536 && y[3] == 448 && y[2] > 0);
    k.values[0].dtype = PLM_DT_F8E4M3; /* 1/3 = 10.67 / 32 -> 11; the rest saturates */
    case_ok(&k, plm_oracle_dequant);
    assert_all_equal(y, (const double[]){11.0 / 32, 448, 0, 448}, 4);
    k.values[0].dtype = PLM_DT_Q4_K;
    assert_int_equal(plm_oracle_cast(&k.c, k.in, k.out, &k.err), PLM_E_UNSUPPORTED);
}

static void quant_int8_blocks_by_hand(void **state)
{
    (void)state;
    /* Blocks of 2: scales 127/127 = 1 and 254/127 = 2; a block of zeros; a short last block. */
    static const double x[] = {127, 0.4, -254, 3, 0, 0, 12.7};
    double y[7];
    node_case k;
    case_init(&k, PLM_OP_QUANT);
    case_int(&k, PLM_ATTR_BLOCK, 2);
    k.values[0].dtype = PLM_DT_I8;
    case_in(&k, 0, x, DIMS(1, 7));
    case_out(&k, 0, y, DIMS(1, 7));
    case_ok(&k, plm_oracle_quant);
    assert_all_close(y, (const double[]){127, 0, -254, 4, 0, 0, 12.7}, 7, 1e-7, 0);
    /* By row: one scale of 254/127 = 2. 0.4 -> 0; 3 / 2 = 1.5 -> 2, away from 0; 12.7 / 2 -> 6. */
    k.attrs[0].v.i = 0;
    case_ok(&k, plm_oracle_quant);
    assert_all_equal(y, (const double[]){128, 0, -254, 4, 0, 0, 12}, 7);
    k.values[0].dtype = PLM_DT_BF16;
    assert_int_equal(plm_oracle_quant(&k.c, k.in, k.out, &k.err), PLM_E_UNSUPPORTED);
}

/* Rounding error of each format stays within half a step of the greatest number of its block, and a
** second trip changes nothing (the codes are stable). */
static void quant_errors_are_within_half_a_step(void **state)
{
    (void)state;
    static const struct {
        plm_dtype dtype;
        int64_t block;
        double step; /* widest step of the codes over their greatest value */
        bool stable;
    } cases[] = {
        {PLM_DT_I8, 32, 1.0 / 127, true},       {PLM_DT_Q8_0, 32, 1.13 / 127, false},
        {PLM_DT_F8E4M3, 128, 32.0 / 448, true}, {PLM_DT_F8E5M2, 0, 8192.0 / 57344, true},
        {PLM_DT_MXFP8, 32, 1.0 / 4, true},      {PLM_DT_MXFP4, 32, 2 / 3.0, true},
        {PLM_DT_NVFP4, 16, 2.3 / 6, false},
    };
    enum { N = 1040 }; /* BE-06: no multiple of 32 */
    double x[N], y[N], again[N];
    uint64_t seed = test_seed("quant");
    fill_random(&seed, x, N);
    for (size_t i = 0; i < COUNT(cases); i++) {
        node_case k;
        case_init(&k, PLM_OP_QUANT);
        case_int(&k, PLM_ATTR_BLOCK, cases[i].block);
        k.values[0].dtype = cases[i].dtype;
        case_in(&k, 0, x, DIMS(1, N));
        case_out(&k, 0, y, DIMS(1, N));
        case_ok(&k, plm_oracle_quant);
        int64_t block = cases[i].block > 0 ? cases[i].block : N;
        double worst = 0;
        for (int64_t j = 0; j < N; j++) {
            double amax = 0;
            for (int64_t m = j / block * block; m < N && m / block == j / block; m++)
                amax = fabs(x[m]) > amax ? fabs(x[m]) : amax;
            double err = fabs(y[j] - x[j]) / amax;
            worst = err > worst ? err : worst;
        }
        if (!(worst <= cases[i].step / 2 * 1.0001 && worst > cases[i].step / 20))
            fail_msg("format %zu: error %g of the block's greatest", i, worst);
        case_in(&k, 0, y, DIMS(1, N));
        case_out(&k, 0, again, DIMS(1, N));
        case_ok(&k, plm_oracle_quant);
        if (cases[i].stable)
            assert_all_close(again, y, N, 1e-6, 0);
    }
}

/* BE-06: K = 16, 32, 48, 1024, 1040 in groups of 16: a matrix product from rounded numbers equals
 *one
 ** made of integer codes and group scales. */
static void quant_nvfp4_product_by_codes(void **state)
{
    (void)state;
    static const int64_t widths[] = {16, 32, 48, 1024, 1040};
    double w[1040], q[1040], x[1040], y[1];
    uint64_t seed = test_seed("nvfp4");
    fill_random(&seed, w, COUNT(w));
    fill_random(&seed, x, COUNT(x));
    for (size_t i = 0; i < COUNT(widths); i++) {
        int64_t n = widths[i];
        node_case k;
        case_init(&k, PLM_OP_QUANT);
        k.values[0].dtype = PLM_DT_NVFP4;
        case_in(&k, 0, w, DIMS(1, n));
        case_out(&k, 0, q, DIMS(1, n));
        case_ok(&k, plm_oracle_quant);
        double want = 0;
        for (int64_t g = 0; g < n / 16; g++) {
            double amax = 0, sum = 0;
            for (int64_t j = 16 * g; j < 16 * (g + 1); j++)
                amax = fabs(w[j]) > amax ? fabs(w[j]) : amax;
            double scale = plm_small_round(&plm_float_f8e4m3, amax / 6, true);
            for (int64_t j = 16 * g; j < 16 * (g + 1); j++) {
                /* Twice the E2M1 values are the integers 0 1 2 3 4 6 8 12: pick the nearest. */
                static const int codes[] = {0, 1, 2, 3, 4, 6, 8, 12};
                double r = fabs(w[j]) / scale * 2;
                int best = 0;
                for (int m = 1; m < 8; m++)
                    if (fabs(codes[m] - r) < fabs(codes[best] - r))
                        best = m;
                sum += x[j] * (w[j] < 0 ? -codes[best] : codes[best]);
            }
            want += sum * scale / 2;
        }
        node_case m;
        case_init(&m, PLM_OP_LINEAR);
        case_in(&m, 0, x, DIMS(1, n));
        case_in(&m, 1, q, DIMS(1, n));
        case_out(&m, 0, y, DIMS(1, 1));
        case_ok(&m, plm_oracle_linear);
        assert_close(y[0], want, 1e-12, 1e-13);
    }
}

static void zero_rows_are_no_trouble(void **state)
{
    (void)state;
    double x[1], y[1];
    static const plm_oracle_fn fns[] = {
        plm_oracle_rms_norm, plm_oracle_layer_norm, plm_oracle_l2_norm, plm_oracle_softmax,
        plm_oracle_unary,    plm_oracle_quant,      plm_oracle_scale};
    for (size_t i = 0; i < COUNT(fns); i++)
        for (int wide = 0; wide < 2; wide++) {
            node_case k;
            case_init(&k, PLM_OP_UNARY);
            k.values[0].dtype = PLM_DT_I8;
            case_in(&k, 0, x, DIMS(wide ? 0 : 5, wide ? 5 : 0));
            case_out(&k, 0, y, DIMS(wide ? 0 : 5, wide ? 5 : 0));
            case_ok(&k, fns[i]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rms_norm_by_hand),
        cmocka_unit_test(layer_norm_by_hand),
        cmocka_unit_test(gated_and_l2_norms_by_hand),
        cmocka_unit_test(add_and_mul_broadcast),
        cmocka_unit_test(unary_functions),
        cmocka_unit_test(unary_functions_far_out),
        cmocka_unit_test(xielu_by_hand),
        cmocka_unit_test(glu_variants),
        cmocka_unit_test(softmax_rows),
        cmocka_unit_test(streams_by_hand),
        cmocka_unit_test(scale_softcap_and_in_place),
        cmocka_unit_test(cast_rounds_to_the_dtype),
        cmocka_unit_test(quant_int8_blocks_by_hand),
        cmocka_unit_test(quant_errors_are_within_half_a_step),
        cmocka_unit_test(quant_nvfp4_product_by_codes),
        cmocka_unit_test(zero_rows_are_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
