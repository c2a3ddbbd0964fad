/* test_oracle_rope.c - the rotary embedding in all its scalings.
**
** Frequencies were worked out in another language from the published formulas in their wavelength
** form (llama3) and ramp form (yarn), with the settings of the models named. */
#include "tests/oracle_support.h"

typedef struct rope_case {
    plm_rope_scaling scaling;
    double theta, factor, low_freq, high_freq, orig_ctx, beta_fast, beta_slow;
} rope_case;

static void set_rope(node_case *k, const rope_case *r)
{
    case_init(k, PLM_OP_ROPE);
    case_int(k, PLM_ATTR_ROPE_SCALING, r->scaling);
    case_real(k, PLM_ATTR_THETA, r->theta);
    case_real(k, PLM_ATTR_FACTOR, r->factor);
    case_real(k, PLM_ATTR_LOW_FREQ, r->low_freq);
    case_real(k, PLM_ATTR_HIGH_FREQ, r->high_freq);
    case_real(k, PLM_ATTR_ORIG_CTX, r->orig_ctx);
    case_real(k, PLM_ATTR_BETA_FAST, r->beta_fast);
    case_real(k, PLM_ATTR_BETA_SLOW, r->beta_slow);
}

/* Plain, by hand: theta 100 and 4 dims give frequencies 1 and 1/10. */
static void rotation_by_hand(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4, 9}, pos[] = {5};
    double y[5];
    node_case k;
    set_rope(&k, &(rope_case){.scaling = PLM_ROPE_NONE, .theta = 100, .factor = 1});
    case_int(&k, PLM_ATTR_ROPE_DIMS, 4);
    case_in(&k, 0, x, DIMS(1, 1, 5));
    case_in(&k, 1, pos, DIMS(1));
    case_out(&k, 0, y, DIMS(1, 1, 5));
    case_ok(&k, plm_oracle_rope);
    /* Halves: pairs (1, 3) by 5 rad and (2, 4) by 0.5 rad; the fifth column stays. */
    const double halves[] = {cos(5) - 3 * sin(5), 2 * cos(0.5) - 4 * sin(0.5), sin(5) + 3 * cos(5),
                             2 * sin(0.5) + 4 * cos(0.5), 9};
    assert_all_close(y, halves, 5, 1e-14, 0);
    case_int(&k, PLM_ATTR_ROPE_STYLE, 1);
    case_ok(&k, plm_oracle_rope);
    const double pairs[] = {cos(5) - 2 * sin(5), sin(5) + 2 * cos(5), 3 * cos(0.5) - 4 * sin(0.5),
                            3 * sin(0.5) + 4 * cos(0.5), 9};
    assert_all_close(y, pairs, 5, 1e-14, 0);
    /* mscale multiplies what is rotated and nothing else. */
    case_real(&k, PLM_ATTR_MSCALE, 2);
    case_ok(&k, plm_oracle_rope);
    for (int i = 0; i < 4; i++)
        assert_close(y[i], 2 * pairs[i], 1e-14, 0);
    assert_true(y[4] == 9);
}

/* The product of a rotated query and a rotated key depends on their distance alone. */
static void products_depend_on_distance(void **state)
{
    (void)state;
    enum { D = 16 };
    uint64_t seed = test_seed("distance");
    double q[D], kk[D], x[4 * D], y[4 * D];
    static const double pos[] = {7, 3, 1007, 1003};
    fill_random(&seed, q, D);
    fill_random(&seed, kk, D);
    for (int i = 0; i < 4; i++)
        memcpy(&x[i * D], i % 2 == 0 ? q : kk, sizeof q);
    for (int style = 0; style < 2; style++) {
        node_case k;
        set_rope(&k, &(rope_case){.scaling = PLM_ROPE_NONE, .theta = 10000, .factor = 1});
        case_int(&k, PLM_ATTR_ROPE_STYLE, style);
        case_in(&k, 0, x, DIMS(4, 1, D));
        case_in(&k, 1, pos, DIMS(4));
        case_out(&k, 0, y, DIMS(4, 1, D));
        case_ok(&k, plm_oracle_rope);
        double near = 0, far = 0;
        for (int i = 0; i < D; i++) {
            near += y[i] * y[D + i];
            far += y[2 * D + i] * y[3 * D + i];
        }
        assert_close(far, near, 1e-11, 1e-12);
    }
}

static void check_freq(const rope_case *r, int64_t dims, int64_t seq_len, const double *factors,
                       const int *index, const double *want, size_t n)
{
    double freq[64];
    node_case k;
    set_rope(&k, r);
    assert_ok(plm_oracle_rope_freq(&k.c, dims, seq_len, factors, freq, &k.err), k.err);
    for (size_t i = 0; i < n; i++)
        assert_close(freq[index[i]], want[i], 1e-13, 0);
}

static void frequencies_linear(void **state)
{
    (void)state;
    static const int index[] = {0, 1, 2, 3};
    static const double want[] = {0.25, 0.025, 0.0025, 0.00025};
    check_freq(&(rope_case){.scaling = PLM_ROPE_LINEAR, .theta = 10000, .factor = 4}, 8, 0, NULL,
               index, want, COUNT(want));
}

/* Llama-3.1: factor 8, low 1, high 4, original context 8192, theta 500000, 128 dims. */
static void frequencies_llama3(void **state)
{
    (void)state;
    static const int index[] = {0, 20, 28, 29, 30, 31, 32, 35, 36, 40, 63};
    static const double want[] = {
        1.0,
        0.016560440080994446,
        0.0032114459947525913,
        0.002166570763503359,
        0.0013718935677611381,
        0.0008567514129196321,
        0.0005248461609929547,
        9.556212353964683e-05,
        7.78465527393245e-05,
        3.428102195952591e-05,
        3.068925988914511e-07,
    };
    check_freq(&(rope_case){.scaling = PLM_ROPE_LLAMA3,
                            .theta = 500000,
                            .factor = 8,
                            .low_freq = 1,
                            .high_freq = 4,
                            .orig_ctx = 8192},
               128, 0, NULL, index, want, COUNT(want));
}

static const rope_case deepseek = {.scaling = PLM_ROPE_YARN,
                                   .theta = 10000,
                                   .factor = 40,
                                   .orig_ctx = 4096,
                                   .beta_fast = 32,
                                   .beta_slow = 1};

/* DeepSeek-V2 and V3: factor 40, beta 32 and 1, original context 4096, 64 dims: the ramp runs from
** frequency 10 to 23. */
static void frequencies_yarn(void **state)
{
    (void)state;
    static const int index[] = {0, 9, 10, 11, 15, 20, 22, 23, 24, 31};
    static const double want[] = {
        1.0,
        0.07498942093324558,
        0.056234132519034905,
        0.03900692656714386,
        0.008334508951020777,
        0.0007905694150420945,
        0.0001778279410038922,
        3.33380358040831e-05,
        2.5e-05,
        3.33380358040831e-06,
    };
    check_freq(&deepseek, 64, 0, NULL, index, want, COUNT(want));
}

/* A ramp of no width falls between two frequencies and does not divide by 0. */
static void frequencies_yarn_without_ramp(void **state)
{
    (void)state;
    static const int index[] = {0, 1, 2, 3};
    /* Original context 2 pi: the one turn is frequency 0, so low = high = 0. */
    static const double want[] = {1, 0.1 / 2, 0.01 / 2, 0.001 / 2};
    check_freq(&(rope_case){.scaling = PLM_ROPE_YARN,
                            .theta = 10000,
                            .factor = 2,
                            .orig_ctx = 6.283185307179586,
                            .beta_fast = 1,
                            .beta_slow = 1},
               8, 0, NULL, index, want, COUNT(want));
}

/* Bounds of the ramp outside 0 .. dims - 1 are drawn in. 8 dims, theta 10000: the index of x turns
** is ln(original / (2 pi x)) / ln 10; here it reaches from -0.3 to 1.99 (so 0 to 2), then from
** 0.04 to 8.04 (so 0 to 7). */
static void frequencies_yarn_with_ramp_drawn_in(void **state)
{
    (void)state;
    static const int index[] = {0, 1, 2, 3};
    rope_case r = {.scaling = PLM_ROPE_YARN,
                   .theta = 10000,
                   .factor = 2,
                   .orig_ctx = 3.141592653589793,
                   .beta_fast = 1,
                   .beta_slow = 0.0051};
    check_freq(&r, 8, 0, NULL, index, (const double[]){1, 0.075, 0.005, 0.0005}, 4);
    r.orig_ctx = 1.1 * 6.283185307179586;
    r.beta_slow = 1e-8;
    check_freq(&r, 8, 0, NULL, index,
               (const double[]){1, 0.1 * 13 / 14, 0.01 * 12 / 14, 0.001 * 11 / 14}, 4);
}

/* FL-14: where a model puts g(m) = 1 + 0.1 m ln 40 on cos and sin, lengths grow by it: 1.260804 for
** m = 0.707 (DeepSeek-V2-Lite), 1.368888 for m = 1 (V3). The two scales of these models divide to
** 1, so there lengths stay; scores then get the square, 1.589626 and 1.873854. */
static void yarn_scales_of_cos_and_sin(void **state)
{
    (void)state;
    static const struct {
        double mscale, square;
    } cases[] = {{1.260804, 1.589626}, {1.368888, 1.873854}};
    enum { D = 64 };
    double x[D], y[D];
    uint64_t seed = test_seed("FL-14");
    fill_random(&seed, x, D);
    for (size_t i = 0; i < COUNT(cases); i++) {
        node_case k;
        set_rope(&k, &deepseek);
        case_real(&k, PLM_ATTR_MSCALE, cases[i].mscale);
        case_in(&k, 0, x, DIMS(1, 1, D));
        case_in(&k, 1, (const double[]){12345}, DIMS(1));
        case_out(&k, 0, y, DIMS(1, 1, D));
        case_ok(&k, plm_oracle_rope);
        double before = 0, after = 0;
        for (int j = 0; j < D; j++) {
            before += x[j] * x[j];
            after += y[j] * y[j];
        }
        assert_close(after / before, cases[i].square, 1e-5, 0);
        k.attrs[k.n.n_attr - 1].v.f = 1;
        case_ok(&k, plm_oracle_rope);
        after = 0;
        for (int j = 0; j < D; j++)
            after += y[j] * y[j];
        assert_close(after / before, 1, 1e-14, 0);
    }
}

/* LongRoPE: factors divide the frequencies; FL-15: which set (short up to the original length, long
** from one token more) is the caller's, so the two differ by the operand alone. */
static void frequencies_longrope(void **state)
{
    (void)state;
    static const int index[] = {0, 1, 2, 3};
    static const double shorter[] = {1, 1, 2, 4}, longer[] = {1, 2, 8, 64};
    const rope_case r = {
        .scaling = PLM_ROPE_LONGROPE, .theta = 10000, .factor = 32, .orig_ctx = 4096};
    check_freq(&r, 8, 4096, shorter, index, (const double[]){1, 0.1, 0.005, 0.00025}, 4);
    check_freq(&r, 8, 4097, longer, index, (const double[]){1, 0.05, 0.00125, 0.001 / 64}, 4);
    double freq[4];
    node_case k;
    set_rope(&k, &r);
    assert_int_equal(plm_oracle_rope_freq(&k.c, 8, 0, NULL, freq, &k.err), PLM_E_INVALID);
}

/* Dynamic NTK, factor 2, original context 2048: unchanged up to it, base 10000 * 3^(8/6) at 4096.
 *The
 ** length is that of the token's own sequence. */
static void frequencies_dynamic(void **state)
{
    (void)state;
    static const int index[] = {0, 1, 2, 3};
    static const double grown[] = {1, 0.06933612743506347, 0.004807498567691361, 0.001 / 3};
    static const double plain[] = {1, 0.1, 0.01, 0.001};
    const rope_case r = {
        .scaling = PLM_ROPE_DYNAMIC, .theta = 10000, .factor = 2, .orig_ctx = 2048};
    check_freq(&r, 8, 2048, NULL, index, plain, 4);
    check_freq(&r, 8, 4096, NULL, index, grown, 4);
    static const int64_t seq[] = {0, 1, 1};
    static const double pos[] = {10, 10, 4095};
    const double x[] = {1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0};
    double y[24];
    node_case k;
    set_rope(&k, &r);
    k.c.token_seq = seq;
    case_in(&k, 0, x, DIMS(3, 1, 8));
    case_in(&k, 1, pos, DIMS(3));
    case_out(&k, 0, y, DIMS(3, 1, 8));
    case_ok(&k, plm_oracle_rope);
    for (int i = 0; i < 4; i++) {
        assert_close(y[i], cos(10 * plain[i]), 1e-13, 1e-15);
        assert_close(y[8 + i], cos(10 * grown[i]), 1e-13, 1e-15);
        assert_close(y[20 + i], sin(4095 * grown[i]), 1e-10, 1e-12);
    }
    k.c.token_seq = NULL;
    case_refused(&k, plm_oracle_rope, "batch");
}

static void bad_settings_are_refused(void **state)
{
    (void)state;
    double x[8] = {0}, y[8], pos[1] = {0};
    static const struct {
        rope_case r;
        int64_t dims;
        const char *word;
    } cases[] = {
        {{.scaling = PLM_ROPE_NONE, .theta = 10000, .factor = 1}, 5, "rope_dims"},
        {{.scaling = PLM_ROPE_NONE, .theta = 10000, .factor = 1}, 10, "rope_dims"},
        {{.scaling = PLM_ROPE_NONE, .theta = 0, .factor = 1}, 8, "theta"},
        {{.scaling = PLM_ROPE_YARN, .theta = 10000, .factor = 1}, 8, "orig_ctx"},
        {{.scaling = PLM_ROPE_LLAMA3, .theta = 1e4, .factor = 1, .orig_ctx = 9}, 8, "high_freq"},
        {{.scaling = PLM_ROPE_SCALING_COUNT, .theta = 1e4, .factor = 1}, 8, "rope_scaling"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        node_case k;
        set_rope(&k, &cases[i].r);
        case_int(&k, PLM_ATTR_ROPE_DIMS, cases[i].dims);
        case_in(&k, 0, x, DIMS(1, 1, 8));
        case_in(&k, 1, pos, DIMS(1));
        case_out(&k, 0, y, DIMS(1, 1, 8));
        case_refused(&k, plm_oracle_rope, cases[i].word);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotation_by_hand),
        cmocka_unit_test(products_depend_on_distance),
        cmocka_unit_test(frequencies_linear),
        cmocka_unit_test(frequencies_llama3),
        cmocka_unit_test(frequencies_yarn),
        cmocka_unit_test(frequencies_yarn_without_ramp),
        cmocka_unit_test(frequencies_yarn_with_ramp_drawn_in),
        cmocka_unit_test(yarn_scales_of_cos_and_sin),
        cmocka_unit_test(frequencies_longrope),
        cmocka_unit_test(frequencies_dynamic),
        cmocka_unit_test(bad_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
