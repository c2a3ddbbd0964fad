/* test_parallel.c - legal plans and the messages that name them. */
#include "tests/support.h"

#include "core/model/build.h"

static plm_error err;

static void dense(plm_arch *a, int32_t layers, int32_t heads, int32_t kv, int32_t ffn)
{
    plm_layer l = {.attn = PLM_ATTN_FULL, .heads = heads, .kv_heads = kv, .dk = 128, .dv = 128,
                   .ffn = ffn, .kv_shared_layer = -1};
    plm_arch_init(a);
    a->layers = layers;
    a->hidden = heads * 128;
    a->vocab = 32000;
    plm_arch_add_kind(a, &l);
}

/* vllm issues 11797, 414, 2652, 596, 52535: head counts and tp that were refused. */
static void test_head_rule(void **state)
{
    (void)state;
    int64_t legal[8];
    size_t n = 0;
    for (int64_t tp = 1; tp <= 32; tp++)
        if (plm_tp_heads_legal(28, 4, tp))
            legal[n++] = tp;
    assert_int_equal(n, 4);
    assert_true(legal[0] == 1 && legal[1] == 2 && legal[2] == 4 && legal[3] == 28);
    static const int64_t bad[][2] = {{52, 3}, {52, 8}, {40, 3}, {12, 8}, {64, 3}, {28, 8}};
    for (size_t i = 0; i < 6; i++)
        assert_false(plm_tp_heads_legal(bad[i][0], bad[i][0], bad[i][1]));
    assert_true(plm_tp_heads_legal(16, 2, 8)); /* KV heads copied */
    assert_false(plm_tp_heads_legal(0, 0, 1));
    assert_false(plm_tp_heads_legal(8, 8, 0));
}

static void test_messages(void **state)
{
    (void)state;
    plm_arch a;
    plm_parallel p = plm_parallel_one();
    dense(&a, 28, 28, 4, 28 * 512);
    assert_ok(plm_parallel_check(&a, &p, &err), err);
    p.tp = 8;
    assert_int_equal(plm_parallel_check(&a, &p, &err), PLM_E_INVALID);
    assert_string_equal(err.text, "--tp, 8: 28 heads and 4 KV heads allow 1, 2, 4, 28; choose one "
                                  "of these or use --pp");
    /* Qwen2.5-7B: the feed-forward width 18,944 = 2^9 * 37 rules out 28. */
    dense(&a, 28, 28, 4, 18944);
    assert_int_equal(plm_parallel_check(&a, &p, &err), PLM_E_INVALID);
    assert_non_null(strstr(err.text, "allow 1, 2, 4, 28"));
    assert_non_null(strstr(err.text, "these 1, 2, 4;"));
    p.tp = 28;
    assert_int_equal(plm_parallel_check(&a, &p, &err), PLM_E_INVALID);
    assert_non_null(strstr(err.text, "18944"));
    int64_t legal[8];
    assert_int_equal(plm_parallel_legal_tp(&a, 64, legal, 8), 3);
    assert_true(legal[0] == 1 && legal[1] == 2 && legal[2] == 4);
    assert_int_equal(plm_parallel_legal_tp(&a, 64, legal, 2), 2);
}

static void test_ranges(void **state)
{
    (void)state;
    plm_arch a;
    dense(&a, 32, 32, 8, 14336);
    static const plm_parallel bad[] = {
        {0, 1, 1, 1, 1, 0},     {1, 33, 1, 1, 1, 0}, {1, 1, 1, 1, -2, 0},
        {1, 1, 2, 1, 1, 0},     {1, 1, 1, 2, 2, 0},  {1, 1, 1, 1, 1, -1},
        {65536, 2, 1, 1, 1, 0}, {1, INT32_MAX, 1, INT32_MAX, 1, 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(plm_parallel_check(&a, &bad[i], &err), PLM_E_INVALID);
        assert_non_null(strchr(err.text, ';')); /* what to do */
    }
    plm_parallel good = {8, 4, 1, 2, 1, 8};
    assert_ok(plm_parallel_check(&a, &good, &err), err);
    assert_int_equal(plm_parallel_devices(&good), 64);
}

/* DeepSeek-V3: MLA (latent copied, so 128 heads alone decide), 256 experts of 2,048. */
static void test_experts(void **state)
{
    (void)state;
    plm_arch a;
    plm_layer l = {.attn = PLM_ATTN_MLA, .heads = 128, .kv_heads = 128, .dk = 192, .dv = 128,
                   .kv_lora = 512, .rope_dim = 64, .nope = 128, .experts = 256, .top_k = 8,
                   .expert_ffn = 2048, .shared_experts = 1, .shared_ffn = 2048,
                   .kv_shared_layer = -1};
    plm_arch_init(&a);
    a.layers = 61;
    plm_arch_add_kind(&a, &l);
    plm_parallel p = {1, 1, 8, 8, 1, 8};
    assert_ok(plm_parallel_check(&a, &p, &err), err);
    p = (plm_parallel){8, 1, 8, 1, 1, 8};
    assert_ok(plm_parallel_check(&a, &p, &err), err);
    p = (plm_parallel){6, 1, 3, 1, 1, 8};
    assert_int_equal(plm_parallel_check(&a, &p, &err), PLM_E_INVALID);
    assert_non_null(strstr(err.text, "256 experts over tp 6 x dp 1 allow 1, 2;"));
    /* Experts of width 100 do not split over 8 ranks, whole experts do. */
    l.expert_ffn = 100;
    l.shared_experts = 0;
    plm_arch_init(&a);
    a.layers = 61;
    plm_arch_add_kind(&a, &l);
    p = (plm_parallel){8, 1, 1, 1, 1, 8};
    assert_int_equal(plm_parallel_check(&a, &p, &err), PLM_E_INVALID);
    assert_non_null(strstr(err.text, "--ep"));
    p.ep = 8;
    assert_ok(plm_parallel_check(&a, &p, &err), err);
}

static void test_linear_layers(void **state)
{
    (void)state;
    plm_arch a;
    plm_layer l = {.attn = PLM_ATTN_GATED_DELTA, .lin_k_heads = 16, .lin_v_heads = 48,
                   .lin_dk = 128, .lin_dv = 128, .kv_shared_layer = -1, .ffn = 18432};
    plm_arch_init(&a);
    a.layers = 4;
    plm_arch_add_kind(&a, &l);
    int64_t legal[16];
    /* divisors of 48 that divide 16 or are multiples of it: 1 2 4 8 16 48 */
    size_t n = plm_parallel_legal_tp(&a, 64, legal, 16);
    assert_int_equal(n, 6);
    assert_int_equal(legal[5], 48);
}

static void test_stages(void **state)
{
    (void)state;
    plm_arch a;
    dense(&a, 61, 32, 8, 14336);
    for (int32_t pp = 1; pp <= 61; pp++) {
        plm_parallel p = plm_parallel_one();
        int32_t next = 0, most = 0, last = 0;
        p.pp = pp;
        for (int32_t s = 0; s < pp; s++) {
            int32_t first, count;
            plm_parallel_stage(&a, &p, s, &first, &count);
            assert_int_equal(first, next);
            assert_true(count >= 1);
            most = count > most ? count : most;
            last = count;
            next = first + count;
        }
        assert_int_equal(next, 61);
        assert_int_equal(last, 61 / pp); /* the remainder never lands on the stage with the head */
        assert_true(most - last <= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head_rule), cmocka_unit_test(test_messages),
        cmocka_unit_test(test_ranges),    cmocka_unit_test(test_experts),
        cmocka_unit_test(test_linear_layers), cmocka_unit_test(test_stages),
    };
    return cmocka_run_group_tests_name("parallel", tests, NULL, NULL);
}
