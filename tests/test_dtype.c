/* Storage types: ids, block sizes and exact bits against the published figures. */
#include "tests/support.h"

#include "core/ir/dtype.h"

/* GGUF: ggml type id, block, bytes of a block, bits a weight. Source: ggml-common.h and ggml.h. */
static const struct {
    const char *name;
    int32_t id;
    uint32_t block, bytes;
    double bits;
} gguf[] = {
    {"f32", 0, 1, 4, 32},          {"f16", 1, 1, 2, 16},
    {"q4_0", 2, 32, 18, 4.5},      {"q4_1", 3, 32, 20, 5.0},
    {"q5_0", 6, 32, 22, 5.5},      {"q5_1", 7, 32, 24, 6.0},
    {"q8_0", 8, 32, 34, 8.5},      {"q8_1", 9, 32, 36, 9.0},
    {"q2_k", 10, 256, 84, 2.625},  {"q3_k", 11, 256, 110, 3.4375},
    {"q4_k", 12, 256, 144, 4.5},   {"q5_k", 13, 256, 176, 5.5},
    {"q6_k", 14, 256, 210, 6.5625}, {"q8_k", 15, 256, 292, 9.125},
    {"iq2_xxs", 16, 256, 66, 2.0625}, {"iq2_xs", 17, 256, 74, 2.3125},
    {"iq3_xxs", 18, 256, 98, 3.0625}, {"iq1_s", 19, 256, 50, 1.5625},
    {"iq4_nl", 20, 32, 18, 4.5},   {"iq3_s", 21, 256, 110, 3.4375},
    {"iq2_s", 22, 256, 82, 2.5625}, {"iq4_xs", 23, 256, 136, 4.25},
    {"i8", 24, 1, 1, 8},           {"i16", 25, 1, 2, 16},
    {"i32", 26, 1, 4, 32},         {"i64", 27, 1, 8, 64},
    {"f64", 28, 1, 8, 64},         {"iq1_m", 29, 256, 56, 1.75},
    {"bf16", 30, 1, 2, 16},        {"tq1_0", 34, 256, 54, 1.6875},
    {"tq2_0", 35, 256, 66, 2.0625}, {"mxfp4", 39, 32, 17, 4.25},
    {"nvfp4", 40, 64, 36, 4.5},    {"q1_0", 41, 128, 18, 1.125},
    {"q2_0", 42, 64, 18, 2.25},
};

static void test_gguf(void **state)
{
    (void)state;
    size_t n = sizeof gguf / sizeof gguf[0], found = 0;
    for (size_t i = 0; i < n; i++) {
        plm_dtype t = plm_dtype_by_gguf(gguf[i].id);
        assert_int_not_equal(t, PLM_DT_COUNT);
        const plm_dtype_info *d = plm_dtype_get(t);
        assert_string_equal(d->name, gguf[i].name);
        assert_int_equal(d->block, gguf[i].block);
        assert_int_equal(d->block_bytes, gguf[i].bytes);
        assert_true(plm_dtype_bits(t) == gguf[i].bits);
    }
    for (int i = 0; i < PLM_DT_COUNT; i++)
        found += plm_dtype_get((plm_dtype)i)->gguf_id >= 0;
    assert_int_equal(found, n);
    /* 4, 5 (q4_2, q4_3), 31-33 and 36-38 (repacked types) were removed from ggml. */
    static const int64_t none[] = {-1, 4, 5, 31, 32, 33, 36, 37, 38, 43, 1000, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_int_equal(plm_dtype_by_gguf(none[i]), PLM_DT_COUNT);
}

static void test_planar_bits(void **state)
{
    (void)state;
    static const struct {
        plm_dtype t;
        double bits;
    } want[] = {
        {PLM_DT_NF4, 4.5},            /* 4 + 32/64: arXiv 2305.14314 section 3 */
        {PLM_DT_NF4_DQ, 4.126953125}, /* 4 + 8/64 + 32/(64*256) */
        {PLM_DT_AWQ4, 4.15625},       /* 4 + 16/128 + 4/128 */
        {PLM_DT_GPTQ4, 4.15625},
        {PLM_DT_GPTQ8, 8.1875},       /* 8 + 16/128 + 8/128 */
        {PLM_DT_INT4_G32, 4.5},       /* 4 + 16/32 */
        {PLM_DT_INT4_G64, 4.5},       /* 4 + (16 + 16)/64 */
        {PLM_DT_MLX8, 8.5},           /* 8 + (16 + 16)/64 */
        {PLM_DT_INT8_ROW, 8},
        {PLM_DT_FP8, 8},
        {PLM_DT_FP8_ROW, 8},
        {PLM_DT_FP8_BLOCK, 8.001953125}, /* 8 + 32/(128*128) */
        {PLM_DT_MXFP8, 8.25},         /* OCP MX v1.0: 8-bit scale of 32 */
        {PLM_DT_MXFP6, 6.25},
        {PLM_DT_MXFP4_PLANAR, 4.25},
        {PLM_DT_NVFP4_PLANAR, 4.5},   /* 4 + 8/16 */
    };
    size_t planar = 0;
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        assert_true(plm_dtype_bits(want[i].t) == want[i].bits);
    for (int i = 0; i < PLM_DT_COUNT; i++)
        planar += plm_dtype_get((plm_dtype)i)->family == PLM_FAMILY_PLANAR;
    assert_int_equal(planar, sizeof want / sizeof want[0]);
}

/* Expected bytes worked out by hand: codes + scales + what is once a tensor. */
static void test_bytes(void **state)
{
    (void)state;
    static const struct {
        plm_dtype t;
        int64_t rows, cols, bytes;
    } want[] = {
        {PLM_DT_BF16, 4096, 4096, 33554432},
        {PLM_DT_BOOL, 3, 5, 15},
        {PLM_DT_I4, 3, 5, 9},                                /* rows end on a byte */
        {PLM_DT_F6E2M3, 2, 8, 12},
        {PLM_DT_Q4_K, 4096, 4096, 4096 * 16 * 144},
        {PLM_DT_Q8_0, 1, 32, 34},
        {PLM_DT_Q8_0, 0, 32, 0},
        {PLM_DT_NF4, 128, 64, 4096 + 128 * 4 + 64},
        {PLM_DT_NF4, 3, 50, 75 + 3 * 4 + 64},                /* flat: 150 numbers, 3 blocks */
        {PLM_DT_NF4_DQ, 512, 64, 16384 + 512 + 2 * 4 + 1092},
        {PLM_DT_AWQ4, 2, 256, 256 + 10},                     /* 4 groups of 20 bits */
        {PLM_DT_INT8_ROW, 10, 100, 1000 + 40},
        {PLM_DT_FP8, 10, 100, 1000 + 4},
        {PLM_DT_FP8_ROW, 10, 100, 1000 + 40},
        {PLM_DT_FP8_BLOCK, 129, 257, 129 * 257 + 2 * 3 * 4},
        {PLM_DT_FP8_BLOCK, 7168, 16384, 7168 * 16384 + 56 * 128 * 4},
        {PLM_DT_MXFP4_PLANAR, 4, 64, 128 + 8},
        {PLM_DT_MXFP6, 4, 64, 192 + 8},
        {PLM_DT_NVFP4_PLANAR, 4, 64, 128 + 16 + 4},
    };
    plm_error err = {0};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        int64_t bytes = -1;
        assert_ok(plm_dtype_bytes(want[i].t, want[i].rows, want[i].cols, &bytes, &err), err);
        if (bytes != want[i].bytes)
            fail_msg("%s %lld x %lld: %lld bytes, want %lld", plm_dtype_get(want[i].t)->name,
                     (long long)want[i].rows, (long long)want[i].cols, (long long)bytes,
                     (long long)want[i].bytes);
    }
}

static void test_bad_sizes(void **state)
{
    (void)state;
    static const struct {
        plm_dtype t;
        int64_t rows, cols;
    } bad[] = {
        {PLM_DT_Q4_K, 1, 128},  {PLM_DT_Q8_0, 4, 33},
        {PLM_DT_F32, -1, 4},    {PLM_DT_F32, 4, -1},
        {PLM_DT_F32, INT64_MAX, 2}, {PLM_DT_NF4, INT64_MAX, 2},
        {PLM_DT_FP8, 1, INT64_MAX}, {PLM_DT_GPTQ8, 1, INT64_MAX},
        {PLM_DT_COUNT, 1, 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        plm_error err = {0};
        int64_t bytes = 77;
        assert_int_equal(plm_dtype_bytes(bad[i].t, bad[i].rows, bad[i].cols, &bytes, &err),
                         PLM_E_INVALID);
        assert_int_equal(bytes, 0);
        assert_true(err.text[0] != '\0');
    }
}

/* The mean of a large tensor and its bytes are two ways to one figure. */
static void test_bits_agree_with_bytes(void **state)
{
    (void)state;
    for (int i = 0; i < PLM_DT_COUNT; i++) {
        plm_error err = {0};
        int64_t bytes, side = 16384;
        assert_ok(plm_dtype_bytes((plm_dtype)i, side, side, &bytes, &err), err);
        /* scales of whole rows and of the tensor are not in the mean: 4 bytes a row of 16384 */
        assert_close(8.0 * (double)bytes / ((double)side * (double)side),
                     plm_dtype_bits((plm_dtype)i), 3e-4, 0);
    }
}

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < PLM_DT_COUNT; i++) {
        const plm_dtype_info *d = plm_dtype_get((plm_dtype)i);
        assert_int_equal(plm_dtype_by_name(d->name), i);
        if (d->safetensors != NULL)
            assert_int_equal(plm_dtype_by_safetensors(d->safetensors), i);
    }
    assert_int_equal(plm_dtype_by_name("Q4_K"), PLM_DT_Q4_K);
    assert_int_equal(plm_dtype_by_name("fp16"), PLM_DT_F16);
    assert_int_equal(plm_dtype_by_name("torch.bfloat16"), PLM_DT_BF16);
    assert_int_equal(plm_dtype_by_name("float8_e4m3fn"), PLM_DT_F8E4M3);
    assert_int_equal(plm_dtype_by_name("BFLOAT16"), PLM_DT_BF16);
    static const char *const none[] = {"", "q4", "q4_kk", "f", "torch.", "f32 ", " f32"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_int_equal(plm_dtype_by_name(none[i]), PLM_DT_COUNT);
    assert_int_equal(plm_dtype_by_name(NULL), PLM_DT_COUNT);
    assert_int_equal(plm_dtype_by_safetensors("bf16"), PLM_DT_COUNT);
    assert_int_equal(plm_dtype_by_safetensors("F8_E4M3"), PLM_DT_F8E4M3);
    assert_non_null(plm_dtype_get(PLM_DT_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gguf),      cmocka_unit_test(test_planar_bits),
        cmocka_unit_test(test_bytes),     cmocka_unit_test(test_bad_sizes),
        cmocka_unit_test(test_bits_agree_with_bytes),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
