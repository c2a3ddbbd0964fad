/* test_recipe.c - types of weights by recipe, and file sizes against published ones. */
#include "tests/support.h"

#include "core/base/mem.h"
#include "core/model/build.h"
#include "core/model/load.h"

static plm_error err;

/* ---- bytes of a model's weights, counted matrix by matrix ---- */
typedef struct tally {
    const plm_recipe *r;
    const plm_arch *a;
    double bytes;
} tally;

static void add(tally *t, plm_role role, int32_t layer, int64_t rows, int64_t cols)
{
    int64_t b = 0;
    if (rows == 0 || cols == 0)
        return;
    plm_dtype d = plm_recipe_weight(t->r, t->a, role, layer, rows, cols);
    assert_ok(plm_dtype_bytes(d, rows, cols, &b, &err), err);
    t->bytes += (double)b;
}

static void add_attention(tally *t, const plm_layer *l, int32_t i)
{
    int64_t h = t->a->hidden, q = (int64_t)l->heads * l->dk;
    if (l->attn == PLM_ATTN_MLA) {
        add(t, PLM_ROLE_Q_A, i, l->q_lora, h);
        add(t, PLM_ROLE_Q_B, i, q, l->q_lora);
        add(t, PLM_ROLE_KV_A, i, l->kv_lora + l->rope_dim, h);
        add(t, PLM_ROLE_K_B, i, (int64_t)l->heads * l->kv_lora, l->nope);
        add(t, PLM_ROLE_V_B, i, (int64_t)l->heads * l->dv, l->kv_lora);
    } else {
        add(t, PLM_ROLE_Q, i, q, h);
        add(t, PLM_ROLE_K, i, (int64_t)l->kv_heads * l->dk, h);
        add(t, PLM_ROLE_V, i, (int64_t)l->kv_heads * l->dv, h);
        if (l->bias_q)
            add(t, PLM_ROLE_BIAS, i, 1, q + (int64_t)l->kv_heads * (l->dk + l->dv));
    }
    add(t, PLM_ROLE_O, i, h, (int64_t)l->heads * l->dv);
}

static double file_bytes(const plm_arch *a, const char *recipe)
{
    tally t = {.r = plm_recipe_by_name(recipe), .a = a};
    int64_t h = a->hidden;
    assert_non_null(t.r);
    add(&t, PLM_ROLE_EMBED, -1, a->vocab, h);
    if (!a->tied_head)
        add(&t, PLM_ROLE_HEAD, -1, a->vocab, h);
    for (int32_t i = 0; i < a->layers; i++) {
        const plm_layer *l = plm_arch_layer(a, i);
        add_attention(&t, l, i);
        add(&t, PLM_ROLE_NORM, i, 2, h);
        add(&t, PLM_ROLE_GATE, i, l->ffn, h);
        add(&t, PLM_ROLE_UP, i, l->ffn, h);
        add(&t, PLM_ROLE_DOWN, i, h, l->ffn);
        add(&t, PLM_ROLE_ROUTER, i, l->experts, h);
        add(&t, PLM_ROLE_EXPERT_GATE, i, (int64_t)l->experts * l->expert_ffn, h);
        add(&t, PLM_ROLE_EXPERT_UP, i, (int64_t)l->experts * l->expert_ffn, h);
        add(&t, PLM_ROLE_EXPERT_DOWN, i, l->experts * h, l->expert_ffn);
        add(&t, PLM_ROLE_SHARED_GATE, i, l->shared_ffn, h);
        add(&t, PLM_ROLE_SHARED_UP, i, l->shared_ffn, h);
        add(&t, PLM_ROLE_SHARED_DOWN, i, h, l->shared_ffn);
        if (l->expert_bias)
            add(&t, PLM_ROLE_BIAS, i, l->experts, 2 * l->expert_ffn + h);
    }
    return t.bytes;
}

/* ---- models: shapes from their public configs ---- */
static plm_layer attention(int32_t heads, int32_t kv, int32_t d)
{
    return (plm_layer){.attn = PLM_ATTN_FULL, .heads = heads, .kv_heads = kv, .dk = d, .dv = d,
                       .kv_shared_layer = -1};
}

static void model(plm_arch *a, int32_t layers, int32_t hidden, int32_t vocab, bool tied,
                  const plm_layer *l)
{
    plm_arch_init(a);
    a->layers = layers;
    a->hidden = hidden;
    a->vocab = vocab;
    a->tied_head = tied;
    plm_arch_add_kind(a, l);
}

static void dense(plm_arch *a, int32_t layers, int32_t hidden, int32_t heads, int32_t kv, int32_t d,
                  int32_t ffn, int32_t vocab, bool tied)
{
    plm_layer l = attention(heads, kv, d);
    l.ffn = ffn;
    model(a, layers, hidden, vocab, tied, &l);
}

static void llama2_7b(plm_arch *a) { dense(a, 32, 4096, 32, 32, 128, 11008, 32000, false); }
static void llama3_8b(plm_arch *a) { dense(a, 32, 4096, 32, 8, 128, 14336, 128256, false); }
static void llama3_70b(plm_arch *a) { dense(a, 80, 8192, 64, 8, 128, 28672, 128256, false); }
static void llama32_1b(plm_arch *a) { dense(a, 16, 2048, 32, 8, 64, 8192, 128256, true); }
static void tinyllama(plm_arch *a) { dense(a, 22, 2048, 32, 4, 64, 5632, 32000, false); }
static void qwen25_7b(plm_arch *a) { dense(a, 28, 3584, 28, 4, 128, 18944, 152064, false); }
static void qwen3_32b(plm_arch *a) { dense(a, 64, 5120, 64, 8, 128, 25600, 151936, false); }
static void phi4(plm_arch *a) { dense(a, 40, 5120, 40, 10, 128, 17920, 100352, false); }

static void moe(plm_arch *a, int32_t layers, int32_t hidden, int32_t heads, int32_t kv, int32_t d,
                int32_t experts, int32_t top_k, int32_t ffn, int32_t vocab)
{
    plm_layer l = attention(heads, kv, d);
    l.experts = experts;
    l.top_k = top_k;
    l.expert_ffn = ffn;
    model(a, layers, hidden, vocab, false, &l);
}

static void qwen3_30b(plm_arch *a) { moe(a, 48, 2048, 32, 4, 128, 128, 8, 768, 151936); }

static void gpt_oss(plm_arch *a, int32_t layers, int32_t experts)
{
    plm_layer l = attention(64, 8, 64);
    l.experts = experts;
    l.top_k = 4;
    l.expert_ffn = 2880;
    l.expert_bias = l.bias_q = true;
    model(a, layers, 2880, 201088, false, &l);
}
static void gpt_oss_20b(plm_arch *a) { gpt_oss(a, 24, 32); }
static void gpt_oss_120b(plm_arch *a) { gpt_oss(a, 36, 128); }

static void deepseek_r1(plm_arch *a)
{
    plm_layer d = {.attn = PLM_ATTN_MLA, .heads = 128, .kv_heads = 128, .dk = 192, .dv = 128,
                   .q_lora = 1536, .kv_lora = 512, .nope = 128, .rope_dim = 64, .ffn = 18432,
                   .kv_shared_layer = -1};
    plm_layer e = d;
    e.ffn = 0;
    e.experts = 256;
    e.top_k = 8;
    e.expert_ffn = 2048;
    e.shared_experts = 1;
    e.shared_ffn = 2048;
    model(a, 61, 7168, 129280, false, &e);
    plm_arch_add_kind(a, &d);
    for (int32_t i = 0; i < 3; i++)
        a->layer_kind[i] = 1;
}

/* File sizes as published with benchmark tables (llama-bench prints the sum of tensor bytes in GiB
** to two digits; llama.cpp discussions 4167, 10879 and 15396, GPU-Benchmarks-on-LLM-Inference,
** Hugging Face file lists), with the tolerance each is held to. */
static const struct {
    const char *name;
    void (*make)(plm_arch *a);
    const char *recipe;
    double bytes, tolerance;
} files[] = {
    {"Llama-2-7B", llama2_7b, "f16", 13475459891, 0.002},
    {"Llama-2-7B", llama2_7b, "q4_0", 3822520893, 0.002},
    {"Llama-2-7B", llama2_7b, "q4_1", 4241280205, 0.002},
    {"Llama-2-7B", llama2_7b, "q4_k_m", 4080218931, 0.002},
    {"Llama-2-7B", llama2_7b, "q5_k_s", 4649302098, 0.002},
    {"Llama-2-7B", llama2_7b, "q6_k", 5529770394, 0.002},
    {"Llama-2-7B", llama2_7b, "q8_0", 7161857966, 0.002},
    {"Llama-3-8B", llama3_8b, "f16", 16063177687, 0.002},
    {"Llama-3-8B", llama3_8b, "q4_k_m", 4917737554, 0.003},
    {"Llama-3-8B", llama3_8b, "q5_0", 5594194903, 0.002},
    {"Llama-3-70B", llama3_70b, "f16", 141111150510, 0.002},
    {"Llama-3-70B", llama3_70b, "q4_k_m", 42509438812, 0.002},
    {"Llama-3.2-1B", llama32_1b, "q4_k_m", 799937659, 0.005},
    {"TinyLlama-1.1B", tinyllama, "q4_0", 633507676, 0.005},
    {"TinyLlama-1.1B", tinyllama, "q4_k_m", 666793673, 0.005},
    {"Qwen2.5-7B", qwen25_7b, "q4_k_m", 4681514353, 0.005},
    {"Qwen2.5-7B", qwen25_7b, "q8_0", 8096013353, 0.005},
    {"Qwen3-32B", qwen3_32b, "q8_0", 34811783676, 0.002},
    {"Phi-4", phi4, "iq3_m", 6736656204, 0.01},
    {"Qwen3-30B-A3B", qwen3_30b, "q8_0", 32480690176, 0.003},
    {"DeepSeek-R1", deepseek_r1, "q4_k_m", 404424858010, 0.01},
    {"gpt-oss-20b", gpt_oss_20b, "mxfp4_moe", 12101070356, 0.003},
    {"gpt-oss-20b", gpt_oss_20b, "mxfp4-f16rest", 13779328827, 0.003},
    {"gpt-oss-120b", gpt_oss_120b, "mxfp4_moe", 63372242452, 0.003},
    {"gpt-oss-120b", gpt_oss_120b, "mxfp4-f16rest", 65356517343, 0.003},
    {"gpt-oss-120b", gpt_oss_120b, "mxfp4", 65.2e9, 0.003},
    /* vLLM, NVIDIA checkpoints on 4 and 2 devices: 4 x 101,017,630,802 and 2 x 21,388,937,134 B;
    ** the first holds some matrices on every rank. */
    {"DeepSeek-R1", deepseek_r1, "nvfp4", 404070523208, 0.02},
    {"Llama-3-70B", llama3_70b, "nvfp4", 42777874268, 0.005},
};

static void test_file_sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        plm_arch a;
        files[i].make(&a);
        double got = file_bytes(&a, files[i].recipe), off = got / files[i].bytes - 1;
        print_message("%-15s %-14s %7.3f GB, published %7.3f: %+.2f %%\n", files[i].name,
                      files[i].recipe, got / 1e9, files[i].bytes / 1e9, 100 * off);
        assert_close(got, files[i].bytes, files[i].tolerance, 0);
    }
}

/* The same through the catalog and the built graph. Dynamic mixes have no published rule: their
** tolerance is what the approximation reaches on published files. */
static const struct {
    const char *model, *recipe;
    double bytes, tolerance;
} built[] = {
    {"Llama-3-8B", "q4_k_m", 4917737554, 0.002},
    {"Llama-3-70B", "q4_k_m", 42509438812, 0.001},
    {"Qwen2.5-0.5B", "q4_0", 345744867, 0.002},
    {"DeepSeek-R1", "q4_k_m", 404424858010, 0.001},
    {"gpt-oss-120b", "mxfp4_moe", 63372242452, 0.001},
    {"GLM-4.7-Flash", "bf16", 59904056361, 0.001},
    {"Gemma-4-26B-A4B", "bf16", 50487340564, 0.001},
    {"Qwen3.5-35B-A3B", "bf16", 69363721830, 0.001},
    {"Ministral-3-14B", "bf16", 27015344292, 0.001},
    {"DeepSeek-V4-Flash", "ds4-q2", 86758339379, 0.02},
    {"Gemma-3-27B", "ud-q4_k_xl", 16820165673, 0.02},
    {"Gemma-4-31B", "ud-q4_k_xl", 18747532247, 0.02},
    {"Gemma-4-26B-A4B", "ud-q8_k_xl", 27852862915, 0.02},
    {"Qwen3.5-122B-A10B", "ud-q5_k_xl", 91912300134, 0.02},
    {"Nemotron-3-Super-120B-A12B", "ud-q4_k_xl", 83773337108, 0.02},
    {"Qwen3-30B-A3B", "ud-q4_k_xl", 17709223903, 0.02},
    {"Llama-4-Scout-17B-16E", "ud-q4_k_xl", 61984968016, 0.02},
    {"dots.llm1", "ud-q4_k_xl", 86837796274, 0.02},
    {"Hunyuan-A13B", "ud-q6_k_xl", 70490077004, 0.04},
    {"Qwen3.5-35B-A3B", "ud-q4_k_xl", 22838488596, 0.04},
    /* its file also carries the prediction layer, 3.4 % */
    {"GLM-4.5-Air", "ud-q4_k_xl", 73028402676, 0.12},
};

static void test_built_sizes(void **state)
{
    (void)state;
    plm_catalog *c = NULL;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    for (size_t i = 0; i < sizeof built / sizeof built[0]; i++) {
        plm_arch a;
        plm_build b;
        plm_graph g;
        int64_t bytes, embed;
        assert_ok(plm_model_load(c, built[i].model, &a, &err), err);
        plm_build_init(&b);
        b.recipe = plm_recipe_by_name(built[i].recipe);
        assert_ok(plm_build_graph(&a, &b, &g, &err), err);
        assert_ok(plm_graph_weight_bytes(&g, &bytes, &embed, &err), err);
        print_message("%-27s %-11s %7.3f GB, published %7.3f: %+.2f %%\n", built[i].model,
                      built[i].recipe, (double)bytes / 1e9, built[i].bytes / 1e9,
                      100 * ((double)bytes / built[i].bytes - 1));
        assert_close((double)bytes, built[i].bytes, built[i].tolerance, 0);
        plm_graph_fini(&g);
        plm_arch_fini(&a);
    }
    plm_catalog_destroy(c);
}

/* ik_llama.cpp pull request 84, Llama-3.1-8B IQ2_XS: repeating layers 1.923 GiB, 2.366 bits a
** weight; the whole file, whose embedding and head were left in 16 bits, 3.880 GiB, 4.150 bits. */
static void test_repeating_bits(void **state)
{
    (void)state;
    plm_arch a;
    llama3_8b(&a);
    double all = file_bytes(&a, "iq2_xs"), ends = 0;
    const plm_recipe *r = plm_recipe_by_name("iq2_xs");
    static const plm_role role[] = {PLM_ROLE_EMBED, PLM_ROLE_HEAD};
    for (size_t i = 0; i < 2; i++) {
        int64_t b;
        assert_ok(plm_dtype_bytes(plm_recipe_weight(r, &a, role[i], -1, 128256, 4096), 128256, 4096,
                                  &b, &err),
                  err);
        ends += (double)b;
    }
    double gib = (all - ends) / 1073741824.0;
    assert_close(gib, 1.923, 0.02, 0);
    assert_close(8 * (all - ends) / 6.980e9, 2.366, 0.02, 0);
    assert_close(gib + 2 * 2 * 128256 * 4096.0 / 1073741824.0, 3.880, 0.01, 0);
}

static void test_rules(void **state)
{
    (void)state;
    plm_arch a;
    const plm_recipe *km = plm_recipe_by_name("Q4_K_M");
    llama3_8b(&a);
    assert_string_equal(plm_recipe_name(km), "q4_k_m");
    /* 32 layers: 0-3 and 28-31, and of 4..27 those with (i - 4) % 3 == 2 get 6 bits. */
    for (int32_t i = 0; i < 32; i++) {
        bool more = i < 4 || i >= 28 || (i - 4) % 3 == 2;
        plm_dtype want = more ? PLM_DT_Q6_K : PLM_DT_Q4_K;
        assert_int_equal(plm_recipe_weight(km, &a, PLM_ROLE_V, i, 1024, 4096), want);
        assert_int_equal(plm_recipe_weight(km, &a, PLM_ROLE_DOWN, i, 4096, 14336), want);
        assert_int_equal(plm_recipe_weight(km, &a, PLM_ROLE_Q, i, 4096, 4096), PLM_DT_Q4_K);
    }
    assert_int_equal(plm_recipe_weight(km, &a, PLM_ROLE_HEAD, -1, 128256, 4096), PLM_DT_Q6_K);
    assert_int_equal(plm_recipe_weight(km, &a, PLM_ROLE_EMBED, -1, 128256, 4096), PLM_DT_Q4_K);
    assert_int_equal(plm_recipe_weight(km, &a, PLM_ROLE_NORM, 0, 1, 4096), PLM_DT_F32);
    a.tied_head = true;
    assert_int_equal(plm_recipe_weight(km, &a, PLM_ROLE_EMBED, -1, 128256, 4096), PLM_DT_Q6_K);
    /* Rows no multiple of 256: q4_K -> q5_0, q6_K -> q8_0, and f16 when not even of 32. */
    assert_int_equal(plm_recipe_weight(km, &a, PLM_ROLE_Q, 9, 896, 896), PLM_DT_Q5_0);
    assert_int_equal(plm_recipe_weight(km, &a, PLM_ROLE_DOWN, 0, 896, 4864 + 32), PLM_DT_Q8_0);
    assert_int_equal(plm_recipe_weight(km, &a, PLM_ROLE_Q, 9, 896, 100), PLM_DT_F16);
    /* The 70B shape keeps attn_v in q5_K where it would have had q4_K. */
    llama3_70b(&a);
    assert_int_equal(plm_recipe_weight(km, &a, PLM_ROLE_V, 10, 1024, 8192), PLM_DT_Q5_K);
    /* Mixtral: 8 experts, k and v in 8 bits, o in q5_K. */
    moe(&a, 32, 4096, 32, 8, 128, 8, 2, 14336, 32000);
    assert_int_equal(plm_recipe_weight(km, &a, PLM_ROLE_V, 10, 1024, 4096), PLM_DT_Q8_0);
    assert_int_equal(plm_recipe_weight(km, &a, PLM_ROLE_K, 10, 1024, 4096), PLM_DT_Q8_0);
    assert_int_equal(plm_recipe_weight(km, &a, PLM_ROLE_O, 10, 4096, 4096), PLM_DT_Q5_K);
}

static void test_kept_tensors(void **state)
{
    (void)state;
    static const char *const name[] = {"fp8",   "fp8_block", "nvfp4", "awq4",
                                       "gptq4", "int4",      "nf4_dq"};
    static const plm_role kept[] = {PLM_ROLE_EMBED, PLM_ROLE_HEAD, PLM_ROLE_NORM, PLM_ROLE_ROUTER};
    plm_arch a;
    qwen3_30b(&a);
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        const plm_recipe *r = plm_recipe_by_name(name[i]);
        for (size_t k = 0; k < 4; k++)
            assert_int_equal(plm_recipe_weight(r, &a, kept[k], 0, 128, 2048), PLM_DT_BF16);
        assert_int_not_equal(plm_recipe_weight(r, &a, PLM_ROLE_EXPERT_UP, 0, 128 * 768, 2048),
                             PLM_DT_BF16);
        assert_int_not_equal(plm_recipe_weight(r, &a, PLM_ROLE_Q, 0, 4096, 2048), PLM_DT_BF16);
    }
    const plm_recipe *mx = plm_recipe_by_name("mxfp4");
    gpt_oss_120b(&a);
    assert_int_equal(plm_recipe_weight(mx, &a, PLM_ROLE_Q, 0, 4096, 2880), PLM_DT_BF16);
    assert_int_equal(plm_recipe_weight(mx, &a, PLM_ROLE_EXPERT_UP, 0, 2880, 2880),
                     PLM_DT_MXFP4_PLANAR);
    assert_string_equal(plm_recipe_name(plm_recipe_gguf(mx)), "mxfp4_moe");
    assert_ptr_equal(plm_recipe_gguf(plm_recipe_by_name("q4_k_m")), plm_recipe_by_name("q4_k_m"));
}

static void test_activations(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        plm_dtype act;
    } want[] = {{"fp8", PLM_DT_F8E4M3},         {"fp8_block", PLM_DT_F8E4M3},
                {"nvfp4", PLM_DT_NVFP4_PLANAR}, {"int8", PLM_DT_I8},
                {"awq4", PLM_DT_COUNT},         {"mxfp4", PLM_DT_COUNT},
                {"q4_k_m", PLM_DT_COUNT},       {"bf16", PLM_DT_COUNT}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        assert_int_equal(plm_recipe_act(plm_recipe_by_name(want[i].name)), want[i].act);
}

/* Every quantisation name of the public measurement sets that this project is scored on. */
static void test_names(void **state)
{
    (void)state;
    static const char *const names[] = {
        "f32", "f16", "bf16", "fp16", "fp8", "fp8_block", "int8", "int4", "w4a16", "awq4", "gptq4",
        "gptq8", "gptq-mixed4/8", "nvfp4", "mxfp4", "mxfp4-f16rest", "mxfp8", "nf4", "nf4_dq",
        "mlx-4bit", "mlx-8bit", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q2_k_s", "q3_k_s",
        "q3_k_m", "q3_k_l", "q4_k_s", "q4_k_m", "q5_k_s", "q5_k_m", "q6_k", "iq1_s", "iq1_m",
        "iq2_xxs", "iq2_xs", "iq2_s", "iq2_m", "iq3_xxs", "iq3_xs", "iq3_s", "iq3_m", "iq4_xs",
        "iq4_nl", "ud-q2_k_xl", "ud-q3_k_m", "ud-q3_k_xl", "ud-q4_k_xl", "ud-q5_k_xl",
        "ud-q6_k_xl", "ud-q8_k_xl", "ds4-q2", "ds4-q4", "custom-mix", "autoround4", "int4-cw",
        "4-bit (q4f16_1 / gptq)", "4bit-unspecified", "q4_k_xl", "apex-mtp-i-mini", "q4_k_p",
        "q2_k_p", "q2_k_xl", "avq2", "iq2_k_r4", "iq4_ks_r4", "iq4_k_r4", "q4_k_r4", "q8_0_r8",
        "iq3_k", "iq3_k_r4", "iq4_kss", "iq4_k", "iq1_s_r4", "MXFP4", "4BIT", "UD-Q4_K_XL",
        "Q4_K_M", "IQ4_NL", "AWQ-INT4",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (plm_recipe_by_name(names[i]) == NULL)
            fail_msg("%s is not known", names[i]);
    assert_null(plm_recipe_by_name("q4_k_z"));
    assert_null(plm_recipe_by_name(""));
    assert_null(plm_recipe_by_name(NULL));
}

/* Every recipe gives every role of every model a type whose block divides the row. */
static void test_total(void **state)
{
    (void)state;
    void (*const make[])(plm_arch *a) = {llama2_7b, qwen3_30b, gpt_oss_20b, deepseek_r1};
    for (size_t m = 0; m < 4; m++) {
        plm_arch a;
        make[m](&a);
        double widest = file_bytes(&a, "f32");
        for (size_t i = 0; i < plm_recipe_count(); i++) {
            double b = file_bytes(&a, plm_recipe_name(plm_recipe_at(i)));
            assert_true(b > widest / 32 && b <= widest);
        }
    }
    assert_null(plm_recipe_at(plm_recipe_count()));
}

static void test_default(void **state)
{
    (void)state;
    plm_arch a;
    llama3_8b(&a);
    assert_string_equal(plm_recipe_name(plm_recipe_default(&a)), "bf16");
    a.file_dtype = PLM_DT_F16;
    assert_string_equal(plm_recipe_name(plm_recipe_default(&a)), "f16");
    strcpy(a.file_quant, "mxfp4");
    assert_string_equal(plm_recipe_name(plm_recipe_default(&a)), "mxfp4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_sizes),   cmocka_unit_test(test_repeating_bits),
        cmocka_unit_test(test_rules),        cmocka_unit_test(test_kept_tensors),
        cmocka_unit_test(test_activations),  cmocka_unit_test(test_names),
        cmocka_unit_test(test_built_sizes),  cmocka_unit_test(test_total),
        cmocka_unit_test(test_default),
    };
    return cmocka_run_group_tests_name("recipe", tests, NULL, NULL);
}
