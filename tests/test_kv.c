/* test_kv.c - KV cache and recurrent state against published sizes. */
#include "tests/support.h"

#include "core/base/mem.h"
#include "core/model/load.h"

static plm_error err;

/* A model of `layers` equal layers. */
static void arch_of(plm_arch *a, int32_t layers, const plm_layer *l)
{
    plm_arch_init(a);
    a->layers = layers;
    assert_int_equal(plm_arch_add_kind(a, l), 0);
}

static plm_layer gqa(int32_t heads, int32_t kv_heads, int32_t dk, int32_t dv)
{
    return (plm_layer){.attn = PLM_ATTN_FULL, .heads = heads, .kv_heads = kv_heads, .dk = dk,
                       .dv = dv, .kv_shared_layer = -1};
}

static plm_layer mla(int32_t heads, int32_t lora, int32_t rope, int32_t dk, int32_t dv)
{
    return (plm_layer){.attn = PLM_ATTN_MLA, .heads = heads, .kv_lora = lora, .rope_dim = rope,
                       .dk = dk, .dv = dv, .kv_shared_layer = -1};
}

static plm_kv_options f16(void)
{
    return (plm_kv_options){.k = PLM_DT_F16, .v = PLM_DT_F16, .tp = 1, .cp = 1};
}

static int64_t per_token(const plm_arch *a, const plm_kv_options *o)
{
    int64_t b = -1;
    assert_ok(plm_kv_bytes_per_token(a, o, &b, &err), err);
    return b;
}

static int64_t total(const plm_arch *a, const plm_kv_options *o, int64_t tokens)
{
    int64_t b = -1;
    assert_ok(plm_kv_bytes(a, o, tokens, &b, NULL, NULL, &err), err);
    return b;
}

static int64_t longest(const plm_arch *a, const plm_kv_options *o, int64_t budget)
{
    int64_t t = -1;
    assert_ok(plm_kv_max_tokens(a, o, budget, &t, &err), err);
    return t;
}

/* serving_facts S14: Qwen3-32B, 32,768 tokens = 8 GiB exactly; Llama-70B at 131,072 = 40 GiB. */
static void test_full(void **state)
{
    (void)state;
    plm_arch a;
    plm_layer l = gqa(64, 8, 128, 128);
    plm_kv_options o = f16();
    arch_of(&a, 64, &l);
    assert_int_equal(per_token(&a, &o), 262144);
    assert_int_equal(total(&a, &o, 32768), INT64_C(8) << 30);
    assert_int_equal(total(&a, &o, 0), 0);
    arch_of(&a, 80, &l);
    assert_int_equal(total(&a, &o, 131072), INT64_C(40) << 30);
    o.k = PLM_DT_Q8_0; /* K of 34 bytes in 32: 80 * 8 * (136 + 256) */
    assert_int_equal(per_token(&a, &o), 80 * 8 * (136 + 256));
    l.k_eq_v = true; /* the projection is shared, the cache is not */
    arch_of(&a, 80, &l);
    o.k = PLM_DT_F16;
    assert_int_equal(per_token(&a, &o), 327680);
}

/* llama.cpp issues 11446 and 12728: DeepSeek-V3 61 * 576 * 2; V2 unabsorbed 11,520 + 7,680 MiB. */
static void test_mla(void **state)
{
    (void)state;
    plm_arch a;
    plm_layer l = mla(128, 512, 64, 192, 128);
    plm_kv_options o = f16();
    arch_of(&a, 61, &l);
    assert_int_equal(per_token(&a, &o), 70272);
    for (int32_t tp = 1; tp <= 8; tp *= 2) { /* the latent is copied on every rank */
        o.tp = tp;
        assert_int_equal(per_token(&a, &o), 70272);
    }
    o.cp = 4; /* context parallel divides tokens, so also the latent */
    assert_int_equal(per_token(&a, &o), 17568);
    o = f16();
    o.k = o.v = PLM_DT_Q8_0;
    assert_int_equal(total(&a, &o, 32768), INT64_C(1223294976));
    o.k = o.v = PLM_DT_FP8;
    assert_int_equal(per_token(&a, &o), 35136);
    arch_of(&a, 60, &l);
    o = f16();
    o.mla_expanded = true;
    assert_int_equal(total(&a, &o, 4096), (INT64_C(11520) + 7680) << 20);
    o.tp = 8; /* heads, unlike the latent, are split */
    assert_int_equal(total(&a, &o, 4096), ((INT64_C(11520) + 7680) << 20) / 8);
}

/* Index keys of DeepSeek-V3.2 (bf16: 85,888 B a token with them) and GLM-5 (fp8: 9,984 B more). */
static void test_index_cache(void **state)
{
    (void)state;
    plm_arch a;
    plm_layer l = mla(128, 512, 64, 192, 128);
    plm_kv_options o = f16();
    l.index_dim = 128;
    l.index_heads = 64;
    l.index_top_k = 2048;
    arch_of(&a, 61, &l);
    assert_int_equal(per_token(&a, &o), 70272);
    o.index_cache = o.index_as_k = true;
    assert_int_equal(per_token(&a, &o), 85888);
    arch_of(&a, 78, &l);
    o.index_as_k = false;
    assert_int_equal(per_token(&a, &o), 89856 + 9984);
}

/* Qwen2.5-3B (36 layers, 2 KV heads): tpu-inference issue 2661. */
static void test_tp(void **state)
{
    (void)state;
    static const int32_t tp[] = {1, 2, 4, 8};
    static const int64_t want[] = {36864, 18432, 18432, 18432};
    plm_arch a;
    plm_layer l = gqa(16, 2, 128, 128);
    plm_kv_options o = f16();
    arch_of(&a, 36, &l);
    for (size_t i = 0; i < 4; i++) {
        o.tp = tp[i];
        assert_int_equal(per_token(&a, &o), want[i]);
    }
}

/* Gemma-3-27B: 10 full and 52 windowed layers (llama.cpp pull request 18720). */
static void gemma3(plm_arch *a)
{
    plm_layer full = gqa(32, 16, 128, 128), win = full;
    win.attn = PLM_ATTN_SLIDING;
    win.window = 1024;
    arch_of(a, 62, &win);
    assert_int_equal(plm_arch_add_kind(a, &full), 1);
    for (int32_t i = 5; i < 60; i += 6)
        a->layer_kind[i] = 1;
}

static void test_windows(void **state)
{
    (void)state;
    plm_arch a;
    int64_t b, full, window;
    plm_kv_options o = f16();
    gemma3(&a);
    assert_int_equal(per_token(&a, &o), 507904);
    assert_int_equal(total(&a, &o, 4096), 771751936);
    assert_int_equal(total(&a, &o, 131072), INT64_C(11173625856));
    o.window_slack = 512;
    o.window_pad = 256;
    assert_ok(plm_kv_bytes(&a, &o, 131072, &b, &full, &window, &err), err);
    assert_int_equal(full, INT64_C(10737418240));
    assert_int_equal(window, INT64_C(624) << 20);
    assert_int_equal(b, full + window);
    o.windows_full = true;
    assert_ok(plm_kv_bytes(&a, &o, 131072, &b, &full, &window, &err), err);
    assert_int_equal(full, INT64_C(10737418240));
    assert_int_equal(window, INT64_C(53248) << 20);
}

/* Gemma-4 E4B: 20 windowed layers of 2 x 256, 4 full of 2 x 512, the rest share (GenieX 1346). */
static void test_shared_layers(void **state)
{
    (void)state;
    plm_arch a;
    int64_t b, full, window;
    plm_layer win = gqa(8, 2, 256, 256), glob = gqa(8, 2, 512, 512), share;
    plm_kv_options o = f16();
    win.attn = PLM_ATTN_SLIDING;
    win.window = 512;
    share = glob;
    share.kv_shared_layer = 23;
    arch_of(&a, 42, &share);
    plm_arch_add_kind(&a, &win);
    plm_arch_add_kind(&a, &glob);
    for (int32_t i = 0; i < 24; i++)
        a.layer_kind[i] = i % 6 == 5 ? 2 : 1;
    o.window_slack = 1024;
    o.window_pad = 256;
    assert_ok(plm_kv_bytes(&a, &o, 4096, &b, &full, &window, &err), err);
    assert_int_equal(full, INT64_C(64) << 20);
    assert_int_equal(window, INT64_C(60) << 20);
    o.windows_full = true;
    assert_ok(plm_kv_bytes(&a, &o, 4096, &b, &full, &window, &err), err);
    assert_int_equal(window, INT64_C(160) << 20);
}

/* gpt-oss-20b, 1 GiB, 768 window cells: 42,922 tokens, where dividing gives 21,845
** (aiconfigurator issue 1201). */
static void test_inversion(void **state)
{
    (void)state;
    plm_arch a;
    plm_layer full = gqa(64, 8, 64, 64), win = full;
    plm_kv_options o = f16();
    win.attn = PLM_ATTN_SLIDING;
    win.window = 128;
    arch_of(&a, 24, &win);
    plm_arch_add_kind(&a, &full);
    for (int32_t i = 1; i < 24; i += 2)
        a.layer_kind[i] = 1;
    o.window_slack = 512;
    o.window_pad = 256;
    assert_int_equal(longest(&a, &o, INT64_C(1) << 30), 42922);
    assert_int_equal(longest(&a, &o, 0), 0);
    assert_int_equal(longest(&a, &o, -1), 0);
    assert_int_equal(longest(&a, &o, 49151), 0);
    assert_int_equal(longest(&a, &o, 49152), 1);
    uint64_t seed = test_seed("kv inversion");
    for (int i = 0; i < 1000; i++) {
        int64_t budget = (int64_t)(test_random(&seed) % (UINT64_C(1) << 36)) + 49152;
        int64_t t = longest(&a, &o, budget);
        assert_true(total(&a, &o, t) <= budget);
        assert_true(total(&a, &o, t + 1) > budget);
    }
    for (int32_t i = 0; i < 24; i++) /* windows alone never grow past their cap */
        a.layer_kind[i] = 0;
    assert_true(longest(&a, &o, INT64_C(1) << 30) == INT64_MAX);
}

/* Llama-4-Scout: 36 chunked layers of 8,192 and 12 full. */
static void test_chunked(void **state)
{
    (void)state;
    plm_arch a;
    plm_layer full = gqa(40, 8, 128, 128), chunk = full;
    plm_kv_options o = f16();
    chunk.attn = PLM_ATTN_CHUNKED;
    chunk.window = 8192;
    arch_of(&a, 48, &chunk);
    plm_arch_add_kind(&a, &full);
    for (int32_t i = 3; i < 48; i += 4)
        a.layer_kind[i] = 1;
    assert_int_equal(per_token(&a, &o), 196608);
    assert_int_equal(total(&a, &o, 32768), INT64_C(2818572288));
    assert_int_equal(total(&a, &o, 131072), INT64_C(7650410496));
}

/* DeepSeek-V4-Flash: 21 layers of ratio 4 with index keys, 20 of ratio 128, 2 of window alone. */
static void test_compressed(void **state)
{
    (void)state;
    plm_arch a;
    int64_t b, full, window;
    plm_layer only = {.attn = PLM_ATTN_COMPRESSED, .heads = 64, .kv_heads = 1, .dk = 512,
                      .dv = 512, .window = 128, .kv_shared_layer = -1};
    plm_layer csa = only, hca = only;
    plm_kv_options o = f16();
    csa.ratio = 4;
    csa.index_dim = 128;
    hca.ratio = 128;
    arch_of(&a, 43, &only);
    plm_arch_add_kind(&a, &csa);
    plm_arch_add_kind(&a, &hca);
    for (int32_t i = 2; i < 43; i++)
        a.layer_kind[i] = i % 2 == 0 ? 1 : 2;
    assert_int_equal(per_token(&a, &o), 6880);
    assert_ok(plm_kv_bytes(&a, &o, 131072, &b, &full, &window, &err), err);
    assert_int_equal(full, INT64_C(901775360));
    assert_int_equal(window, 5636096);
    assert_ok(plm_kv_bytes(&a, &o, 1, &b, &full, &window, &err), err);
    assert_int_equal(full, 21 * (1024 + 256) + 20 * 1024); /* a begun group holds a whole entry */
}

/* Qwen3.8-27B 153,944,064 B; Kimi-K3 434,110,464 B recurrent; Nemotron-3-Nano 49,082,368 B;
** Qwen3.5-0.8B 19,537,920 B (serving_facts 21, 26, 28 and the model records). */
static void test_state(void **state)
{
    (void)state;
    plm_arch a;
    int64_t b, rec, conv;
    plm_kv_options o = f16();
    plm_layer gdn = {.attn = PLM_ATTN_GATED_DELTA, .lin_k_heads = 16, .lin_v_heads = 48,
                     .lin_dk = 128, .lin_dv = 128, .conv_taps = 4, .kv_shared_layer = -1};
    plm_layer full = gqa(24, 4, 256, 256);
    arch_of(&a, 64, &gdn);
    plm_arch_add_kind(&a, &full);
    for (int32_t i = 3; i < 64; i += 4)
        a.layer_kind[i] = 1;
    assert_ok(plm_state_bytes(&a, &o, &b, &err), err);
    assert_int_equal(b, 153944064);
    assert_int_equal(per_token(&a, &o), 65536);
    assert_int_equal(total(&a, &o, 262144), INT64_C(1) << 34);
    o.tp = 4;
    assert_ok(plm_state_bytes(&a, &o, &b, &err), err);
    assert_int_equal(b, 153944064 / 4);
    o = f16();
    o.first_layer = 0;
    o.n_layers = 32;
    assert_ok(plm_state_bytes(&a, &o, &b, &err), err);
    assert_int_equal(b, 153944064 / 2);
    assert_int_equal(per_token(&a, &o), 32768);

    o = f16();
    gdn.lin_v_heads = 16;
    arch_of(&a, 18, &gdn);
    assert_ok(plm_state_bytes(&a, &o, &b, &err), err);
    assert_int_equal(b, 19537920);

    plm_layer kda = {.attn = PLM_ATTN_KDA, .lin_k_heads = 96, .lin_v_heads = 96, .lin_dk = 128,
                     .lin_dv = 128, .conv_taps = 4, .kv_shared_layer = -1};
    arch_of(&a, 69, &kda);
    assert_ok(plm_state_parts(&a, &o, &rec, &conv, &err), err);
    assert_int_equal(rec, 434110464);
    assert_int_equal(conv, INT64_C(69) * 3 * 96 * 128 * 3 * 2); /* q, k, v; 3 past tokens */

    plm_layer ssm = {.attn = PLM_ATTN_MAMBA2, .lin_v_heads = 64, .lin_dv = 64, .ssm_state = 128,
                     .ssm_groups = 8, .conv_taps = 4, .kv_shared_layer = -1};
    arch_of(&a, 23, &ssm);
    assert_ok(plm_state_bytes(&a, &o, &b, &err), err);
    assert_int_equal(b, 49082368);
    assert_int_equal(per_token(&a, &o), 0);
}

static void test_refusals(void **state)
{
    (void)state;
    plm_arch a;
    int64_t b;
    plm_layer l = gqa(32, 8, 80, 80);
    plm_kv_options o = f16();
    arch_of(&a, 4, &l);
    o.k = PLM_DT_Q8_0; /* a head row of 80 is no multiple of 32 */
    assert_int_equal(plm_kv_bytes_per_token(&a, &o, &b, &err), PLM_E_INVALID);
    o = f16();
    assert_int_equal(plm_kv_bytes(&a, &o, -1, &b, NULL, NULL, &err), PLM_E_INVALID);
    assert_int_equal(plm_kv_bytes(&a, &o, INT64_MAX, &b, NULL, NULL, &err), PLM_E_INVALID);
    o.first_layer = 3;
    o.n_layers = 2;
    assert_int_equal(plm_kv_bytes_per_token(&a, &o, &b, &err), PLM_E_INVALID);
    o = f16();
    o.tp = -1;
    assert_int_equal(plm_kv_bytes_per_token(&a, &o, &b, &err), PLM_E_INVALID);
    o = f16();
    o.k = PLM_DT_COUNT;
    assert_int_equal(plm_kv_bytes_per_token(&a, &o, &b, &err), PLM_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),         cmocka_unit_test(test_mla),
        cmocka_unit_test(test_index_cache),  cmocka_unit_test(test_tp),
        cmocka_unit_test(test_windows),      cmocka_unit_test(test_shared_layers),
        cmocka_unit_test(test_inversion),    cmocka_unit_test(test_chunked),
        cmocka_unit_test(test_compressed),   cmocka_unit_test(test_state),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("kv", tests, NULL, NULL);
}
