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

/* Every model of the catalog: bf16 bytes a token, fixed state of a sequence (0 = not given), and the
** KV of one sequence of the greatest length for which a figure is known. Source: the kv fields of the
** model records, worked out from the configs (Kimi-K3's state is in test_state). */
static const struct {
    const char *id;
    int64_t per_token, state, tokens, bytes;
} models[] = {
    {"Llama-2-7B", 524288, 0, 4096, INT64_C(2147483648)},
    {"Llama-2-13B", 819200, 0, 4096, INT64_C(3355443200)},
    {"Llama-2-70B", 327680, 0, 4096, INT64_C(1342177280)},
    {"Llama-3-8B", 131072, 0, 4096, 536870912},
    {"Llama-3-70B", 327680, 0, 4096, INT64_C(1342177280)},
    {"Llama-3.1-8B", 131072, 0, 131072, INT64_C(17179869184)},
    {"Llama-3.1-70B", 327680, 0, 131072, INT64_C(42949672960)},
    {"Llama-3.1-405B", 516096, 0, 131072, INT64_C(67645734912)},
    {"Llama-3.2-1B", 32768, 0, 131072, INT64_C(4294967296)},
    {"Llama-3.2-3B", 114688, 0, 131072, INT64_C(15032385536)},
    {"Llama-4-Scout-17B-16E", 196608, 0, 131072, INT64_C(7650410496)},
    {"Llama-4-Maverick-17B-128E", 196608, 0, 131072, INT64_C(7650410496)},
    {"Mistral-7B-v0.1", 131072, 0, 32768, 536870912},
    {"Mistral-7B-v0.3", 131072, 0, 32768, INT64_C(4294967296)},
    {"Mixtral-8x7B-v0.1", 131072, 0, 32768, INT64_C(4294967296)},
    {"Mixtral-8x22B-v0.1", 229376, 0, 32768, INT64_C(7516192768)},
    {"Qwen2.5-0.5B", 12288, 0, 32768, 402653184},
    {"Qwen2.5-7B", 57344, 0, 131072, INT64_C(7516192768)},
    {"Qwen2.5-32B", 262144, 0, 131072, INT64_C(34359738368)},
    {"Qwen2.5-72B", 327680, 0, 131072, INT64_C(42949672960)},
    {"Qwen3-0.6B", 114688, 0, 32768, INT64_C(3758096384)},
    {"Qwen3-1.7B", 114688, 0, 32768, INT64_C(3758096384)},
    {"Qwen3-4B", 147456, 0, 32768, INT64_C(4831838208)},
    {"Qwen3-8B", 147456, 0, 32768, INT64_C(4831838208)},
    {"Qwen3-14B", 163840, 0, 32768, INT64_C(5368709120)},
    {"Qwen3-32B", 262144, 0, 32768, INT64_C(8589934592)},
    {"Qwen3-30B-A3B", 98304, 0, 32768, INT64_C(3221225472)},
    {"Qwen3-235B-A22B", 192512, 0, 32768, INT64_C(6308233216)},
    {"Qwen3-Next-80B-A3B", 24576, 77266944, 131072, INT64_C(3221225472)},
    {"Qwen3.5-0.8B", 12288, 19537920, 131072, INT64_C(1610612736)},
    {"Qwen3.5-27B", 65536, 153944064, 131072, INT64_C(8589934592)},
    {"Qwen3.8-27B", 65536, 153944064, 131072, INT64_C(8589934592)},
    {"Qwen3.5-35B-A3B", 20480, 64389120, 131072, INT64_C(2684354560)},
    {"Qwen3.5-397B-A17B", 30720, 192061440, 131072, INT64_C(4026531840)},
    {"DeepSeek-V2-Lite", 31104, 0, 131072, INT64_C(4076863488)},
    {"DeepSeek-V3", 70272, 0, 131072, INT64_C(9210691584)},
    {"DeepSeek-R1", 70272, 0, 131072, INT64_C(9210691584)},
    {"DeepSeek-V3.2", 70272, 0, 131072, INT64_C(9210691584)},
    {"Kimi-K2-Instruct", 70272, 0, 131072, INT64_C(9210691584)},
    {"Kimi-K3", 27648, 0, 131072, INT64_C(3623878656)},
    {"DeepSeek-V4-Flash", 6880, 0, 131072, 901775360},
    {"DeepSeek-V4.1-Flash", 3200, 0, 131072, 419430400},
    {"gpt-oss-20b", 49152, 0, 131072, INT64_C(3224371200)},
    {"gpt-oss-120b", 73728, 0, 131072, INT64_C(4836556800)},
    {"GLM-4.5", 376832, 0, 131072, INT64_C(49392123904)},
    {"GLM-4.6", 376832, 0, 131072, INT64_C(49392123904)},
    {"MiniMax-M2", 253952, 0, 131072, INT64_C(33285996544)},
    {"Gemma-2-9B", 344064, 0, 4096, INT64_C(1409286144)},
    {"Gemma-2-27B", 376832, 0, 4096, INT64_C(1543503872)},
    {"Gemma-3-270M", 18432, 0, 32768, 108527616},
    {"Gemma-3-1B", 26624, 0, 32768, 145752064},
    {"Gemma-3-4B", 139264, 0, 131072, INT64_C(2805989376)},
    {"Gemma-3-12B", 393216, 0, 131072, INT64_C(8925478912)},
    {"Gemma-3-27B", 507904, 0, 131072, INT64_C(11173625856)},
    {"SmolLM2-135M", 23040, 0, 4096, 94371840},
    {"SmolLM2-360M", 40960, 0, 4096, 167772160},
    {"SmolLM2-1.7B", 196608, 0, 4096, 805306368},
    {"Phi-3-mini-4k", 393216, 0, 4096, 804913152},
    {"Phi-4", 204800, 0, 4096, 838860800},
    {"Falcon-7B", 8192, 0, 0, 0},
    {"GPT-2", 36864, 0, 0, 0},
    {"LLaMA-1-30B", 1597440, 0, 0, 0},
    {"LLaMA-1-65B", 2621440, 0, 0, 0},
    {"TinyLlama-1.1B", 22528, 0, 0, 0},
    {"Gemma-2B", 18432, 0, 0, 0},
    {"Mistral-Small-3.1-24B", 163840, 0, 0, 0},
    {"Ministral-3-14B", 163840, 0, 0, 0},
    {"GPT-J-6B", 458752, 0, 0, 0},
    {"BLOOM-176B", 4014080, 0, 0, 0},
    {"Falcon-180B", 163840, 0, 0, 0},
    {"GLM-4.5-Air", 188416, 0, 0, 0},
    {"Hunyuan-A13B", 131072, 0, 0, 0},
    {"dots.llm1", 1015808, 0, 0, 0},
    {"GLM-4.7-Flash", 54144, 0, 0, 0},
    {"Qwen3.5-122B-A10B", 24576, 153649152, 0, 0},
    {"Gemma-4-26B-A4B", 225280, 0, 0, 0},
    {"Gemma-4-31B", 901120, 0, 0, 0},
    {"Nemotron-3-Super-120B-A12B", 8192, 170229760, 0, 0},
    {"Nemotron-3-Nano-30B-A3B", 6144, 49082368, 0, 0},
    {"GLM-5", 89856, 0, 0, 0},
    {"MiniMax-M3", 122880, 0, 0, 0},
};

static void test_catalog(void **state)
{
    (void)state;
    plm_catalog *c = NULL;
    assert_int_equal(sizeof models / sizeof models[0], 81);
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        const plm_record *r = plm_catalog_find(c, "models", models[i].id);
        plm_kv_options o = {.k = PLM_DT_BF16, .v = PLM_DT_BF16};
        plm_arch a;
        int64_t b, full, window;
        if (r == NULL)
            fail_msg("%s is not in the catalog", models[i].id);
        assert_ok(plm_model_from_record(r->text, r->bytes, models[i].id, &a, &err), err);
        b = per_token(&a, &o);
        if (b != models[i].per_token)
            fail_msg("%s: %lld B a token, want %lld", models[i].id, (long long)b,
                     (long long)models[i].per_token);
        assert_ok(plm_state_bytes(&a, &o, &b, &err), err);
        if (models[i].state != 0 && b != models[i].state)
            fail_msg("%s: state %lld B, want %lld", models[i].id, (long long)b,
                     (long long)models[i].state);
        assert_ok(plm_kv_bytes(&a, &o, models[i].tokens, &b, &full, &window, &err), err);
        if (plm_arch_layer(&a, a.layers - 1)->attn == PLM_ATTN_COMPRESSED)
            b = full; /* the figure leaves the 128-token window of each layer out */
        if (b != models[i].bytes)
            fail_msg("%s: %lld B at %lld tokens, want %lld", models[i].id, (long long)b,
                     (long long)models[i].tokens, (long long)models[i].bytes);
        plm_arch_fini(&a);
    }
    plm_catalog_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),         cmocka_unit_test(test_mla),
        cmocka_unit_test(test_index_cache),  cmocka_unit_test(test_tp),
        cmocka_unit_test(test_windows),      cmocka_unit_test(test_shared_layers),
        cmocka_unit_test(test_inversion),    cmocka_unit_test(test_chunked),
        cmocka_unit_test(test_compressed),   cmocka_unit_test(test_state),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_catalog),
    };
    return cmocka_run_group_tests_name("kv", tests, NULL, NULL);
}
