/* test_rope.c - rotary frequencies and the factors of YaRN and longrope. */
#include "tests/support.h"

#include "core/model/build.h"

static plm_arch arch; /* without longrope factors */

/* DeepSeek-V2-Lite (0.707) and V3 (1.0), factor 40: kekzl/imp issue 880, onnxruntime/mobius 548. */
static void test_yarn_scales(void **state)
{
    (void)state;
    static const double want[][3] = {{0.707, 1.260804, 1.589626}, {1.0, 1.368888, 1.873854}};
    for (size_t i = 0; i < 2; i++) {
        plm_rope r = {.theta = 10000, .dims = 64, .scaling = PLM_ROPE_YARN, .factor = 40,
                      .mscale = want[i][0], .mscale_all = want[i][0]};
        double cs, sm;
        plm_rope_scales(&r, &cs, &sm);
        assert_close(cs, 1.0, 0, 1e-15);
        assert_close(plm_yarn_mscale(40, want[i][0]), want[i][1], 1e-6, 0);
        assert_close(sm, want[i][2], 1e-6, 0);
    }
    assert_close(1.0 / plm_yarn_mscale(40, 1.0), 0.73052, 1e-5, 0);
    assert_close(plm_yarn_mscale(1.0, 1.0), 1.0, 0, 0);
    assert_close(plm_yarn_mscale(0.5, 1.0), 1.0, 0, 0);
    /* gpt-oss: no mscale given, so 0.1 ln 32 + 1 = 1.3465735902799727 on cos and sin. */
    plm_rope r = {.scaling = PLM_ROPE_YARN, .factor = 32, .dims = 64, .theta = 150000};
    double cs, sm;
    plm_rope_scales(&r, &cs, &sm);
    assert_close(cs, 1.3465735902799727, 1e-14, 0);
    assert_close(sm, 1.0, 0, 0);
    r.attn_factor = 0.5;
    plm_rope_scales(&r, &cs, &sm);
    assert_close(cs, 0.5, 0, 0);
}

/* Phi-3-mini (4,096) and Phi-3-small (8,192): onnxruntime-genai issue 1161. Phi-3-mini-128k has
** factor 32 over 4,096: sqrt(1 + ln 32 / ln 4096) = sqrt(1 + 5/12) = 1.1902380714238083. */
static void test_longrope(void **state)
{
    (void)state;
    plm_rope r = {.theta = 10000, .dims = 4, .scaling = PLM_ROPE_LONGROPE, .factor = 32,
                  .orig_ctx = 4096, .n_factors = 2};
    float lo[2] = {1.0f, 2.0f}, hi[2] = {4.0f, 64.0f};
    plm_arch a = {.rope_short = lo, .rope_long = hi};
    double cs, sm, f[2];
    assert_int_equal(plm_longrope_switch(&r), 4097);
    plm_rope_scales(&r, &cs, &sm);
    assert_close(cs, 1.1902380714238083, 1e-14, 0);
    plm_rope_inv_freq(&a, &r, 4096, f);
    assert_close(f[0], 1.0, 1e-15, 0);
    assert_close(f[1], 0.01 / 2, 1e-15, 0);
    plm_rope_inv_freq(&a, &r, 4097, f);
    assert_close(f[0], 0.25, 1e-15, 0);
    assert_close(f[1], 0.01 / 64, 1e-15, 0);
    r.orig_ctx = 8192;
    assert_int_equal(plm_longrope_switch(&r), 8193);
    r.scaling = PLM_ROPE_NONE;
    assert_int_equal(plm_longrope_switch(&r), 0);
}

static void test_plain_and_linear(void **state)
{
    (void)state;
    plm_rope r = {.theta = 10000, .dims = 8};
    double f[4];
    plm_rope_inv_freq(&arch, &r, 1, f);
    for (int i = 0; i < 4; i++)
        assert_close(f[i], pow(10.0, -i), 1e-14, 0);
    r.scaling = PLM_ROPE_LINEAR;
    r.factor = 8;
    plm_rope_inv_freq(&arch, &r, 1, f);
    for (int i = 0; i < 4; i++)
        assert_close(f[i], pow(10.0, -i) / 8, 1e-14, 0);
}

/* Llama-3.1: factor 8, bands 1 and 4, original context 8,192: wavelengths under 2,048 are kept,
** those over 8,192 are divided by 8, and one of 8192/2.5 turns is the mean of both. */
static void test_llama3(void **state)
{
    (void)state;
    plm_rope r = {.theta = 500000, .dims = 128, .scaling = PLM_ROPE_LLAMA3, .factor = 8,
                  .low_freq = 1, .high_freq = 4, .orig_ctx = 8192};
    double f[64], plain[64];
    plm_rope_inv_freq(&arch, &r, 1, f);
    plm_rope none = r;
    none.scaling = PLM_ROPE_NONE;
    plm_rope_inv_freq(&arch, &none, 1, plain);
    int kept = 0, divided = 0, between = 0;
    for (int i = 0; i < 64; i++) {
        double wave = 2 * 3.14159265358979323846 / plain[i];
        if (wave < 2048) {
            kept++;
            assert_close(f[i], plain[i], 1e-15, 0);
        } else if (wave > 8192) {
            divided++;
            assert_close(f[i], plain[i] / 8, 1e-15, 0);
        } else {
            between++;
            assert_true(f[i] < plain[i] && f[i] > plain[i] / 8);
        }
    }
    assert_true(kept > 20 && divided > 20 && between >= 5);
    /* 2.5 turns lie half way between the bands: (1 + 1/8) / 2. */
    plm_rope one = {.theta = 1, .dims = 2, .scaling = PLM_ROPE_LLAMA3, .factor = 8, .low_freq = 1,
                    .high_freq = 4, .orig_ctx = 2.5 * 2 * 3.14159265358979323846};
    plm_rope_inv_freq(&arch, &one, 1, f);
    assert_close(f[0], 0.5625, 1e-12, 0);
    one.high_freq = 1; /* Llama-4-Scout: equal bands leave no slope */
    one.orig_ctx = 8192;
    plm_rope_inv_freq(&arch, &one, 1, f);
    assert_close(f[0], 1.0, 0, 0);
}

/* DeepSeek-V3: dims 64, theta 10,000, original 4,096, beta 32 and 1. The pair that turns n times is
** 64 ln(4096 / (2 pi n)) / (2 ln 10000): 10.47 for 32 and 22.51 for 1, so pairs to 10 are kept and
** pairs from 23 are divided by 40, linearly between. */
static void test_yarn(void **state)
{
    (void)state;
    plm_rope r = {.theta = 10000, .dims = 64, .scaling = PLM_ROPE_YARN, .factor = 40,
                  .orig_ctx = 4096, .beta_fast = 32, .beta_slow = 1, .mscale = 1, .mscale_all = 1};
    double f[32];
    plm_rope_inv_freq(&arch, &r, 1, f);
    for (int i = 0; i < 32; i++) {
        double plain = pow(10000.0, -i / 32.0);
        double ramp = i <= 10 ? 0.0 : i >= 23 ? 1.0 : (i - 10) / 13.0;
        assert_close(f[i], plain * (1 - ramp) + plain / 40 * ramp, 1e-13, 0);
    }
}

static void test_dynamic(void **state)
{
    (void)state;
    plm_rope r = {.theta = 10000, .dims = 8, .scaling = PLM_ROPE_DYNAMIC, .factor = 2,
                  .orig_ctx = 2048};
    double f[4];
    plm_rope_inv_freq(&arch, &r, 2048, f);
    assert_close(f[3], 1e-3, 1e-14, 0);
    /* 4,096 tokens: base * (2 * 4096 / 2048 - 1)^(8/6) = base * 3^(4/3) */
    plm_rope_inv_freq(&arch, &r, 4096, f);
    assert_close(f[3], pow(10000 * pow(3.0, 4.0 / 3.0), -0.75), 1e-14, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yarn_scales),      cmocka_unit_test(test_longrope),
        cmocka_unit_test(test_plain_and_linear), cmocka_unit_test(test_llama3),
        cmocka_unit_test(test_yarn),             cmocka_unit_test(test_dynamic),
    };
    return cmocka_run_group_tests_name("rope", tests, NULL, NULL);
}
