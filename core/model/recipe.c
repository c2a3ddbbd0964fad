/* recipe.c - storage recipes: which type each weight of a model is kept in, by name.
**
** Five rules cover what is published: every matrix alike; the linears quantised and the rest kept
** (compressed-tensors, AWQ, GPTQ, ModelOpt, bitsandbytes); routed experts alone quantised (gpt-oss,
** Kimi-K2.5, ds4); a mix of llama.cpp's quantiser; a dynamic mix, which has no published rule and
** is approximated. Tables are constant; any number of threads may read them.
*/
#include "core/model/recipe_mix.h"

#include <string.h>

#include "core/base/catalog.h"

typedef enum recipe_rule {
    RULE_ALL,     /* every matrix `base`, the small tensors `rest` */
    RULE_LINEAR,  /* linears `base`; embedding, head, router, norms, MLA's attention `rest` */
    RULE_FP8,     /* as linear, but MLA's attention quantised too (DeepSeek's own checkpoints) */
    RULE_EXPERTS, /* routed experts `base` (all linears when there are none), the rest `rest` */
    RULE_MLX,     /* linears, embedding and head `base`, router mlx8 */
    RULE_MIX,     /* plm_mix_weight */
    RULE_DYNAMIC, /* dense models by the mix, else experts and rest of their own */
    RULE_SPLIT    /* experts gate/up `base`, down `down`, the rest `rest` (ds4, custom mixes) */
} recipe_rule;

struct plm_recipe {
    const char *name;
    recipe_rule rule;
    plm_dtype base, rest, act;
    plm_mix mix;
    plm_mix early;      /* dynamic: mix nearest to the MoE files of 2025, COUNT = none */
    plm_dtype down;     /* experts' down projection */
    const char *gguf;   /* name of its GGUF form, NULL = itself */
    const char *note;
};

/* Fields that a rule does not read stay zero. */
#define NO PLM_DT_COUNT
#define ALL(n, t, rest_)                                                                           \
    {.name = n, .rule = RULE_ALL, .base = PLM_DT_##t, .rest = PLM_DT_##rest_, .act = NO, .note = ""}
#define LINEAR(n, t, act_, gguf_)                                                                  \
    {.name = n, .rule = RULE_LINEAR, .base = PLM_DT_##t, .rest = PLM_DT_BF16, .act = act_,         \
     .gguf = gguf_, .note = ""}
#define FP8(n, t)                                                                                  \
    {.name = n, .rule = RULE_FP8, .base = PLM_DT_##t, .rest = PLM_DT_BF16, .act = PLM_DT_F8E4M3,   \
     .gguf = "q8_0", .note = ""}
#define EXPERTS(n, t, rest_, gguf_)                                                                \
    {.name = n, .rule = RULE_EXPERTS, .base = PLM_DT_##t, .rest = PLM_DT_##rest_, .act = NO,       \
     .gguf = gguf_, .note = ""}
#define MLX(n, t)                                                                                  \
    {.name = n, .rule = RULE_MLX, .base = PLM_DT_##t, .rest = PLM_DT_BF16, .act = NO, .note = ""}
#define MIX(n, m)                                                                                  \
    {.name = n, .rule = RULE_MIX, .base = NO, .rest = PLM_DT_F32, .act = NO, .mix = PLM_MIX_##m,   \
     .note = ""}
#define SPLIT(n, up, down_, rest_, gguf_, note_)                                                   \
    {.name = n, .rule = RULE_SPLIT, .base = PLM_DT_##up, .down = PLM_DT_##down_,                   \
     .rest = PLM_DT_##rest_, .act = NO, .gguf = gguf_, .note = note_}
#define DYNAMIC(n, m, early_, up, down_, rest_)                                                    \
    {.name = n, .rule = RULE_DYNAMIC, .base = PLM_DT_##up, .down = PLM_DT_##down_,                 \
     .rest = PLM_DT_##rest_, .act = NO, .mix = PLM_MIX_##m, .early = PLM_MIX_##early_,             \
     .note = "an Unsloth dynamic mix has no published rule: sizes are approximate, give "          \
             "--weights-bytes"}

static const plm_recipe recipes[] = {
    ALL("f32", F32, F32),
    ALL("f16", F16, F32),
    ALL("bf16", BF16, BF16),
    FP8("fp8", FP8),
    FP8("fp8_row", FP8_ROW),
    FP8("fp8_block", FP8_BLOCK),
    LINEAR("mxfp8", MXFP8, PLM_DT_F8E4M3, "q8_0"),
    LINEAR("int8", INT8_ROW, PLM_DT_I8, "q8_0"),
    LINEAR("gptq8", GPTQ8, NO, "q8_0"),
    LINEAR("int4", INT4_G32, NO, "q4_0"),
    LINEAR("w4a16", GPTQ4, NO, "q4_0"),
    LINEAR("awq4", AWQ4, NO, "q4_0"),
    LINEAR("gptq4", GPTQ4, NO, "q4_0"),
    SPLIT("gptq-mixed4/8", GPTQ4, GPTQ4, GPTQ8, "q4_0",
          "which layers keep 8 bits is not published: feed-forward 4, attention 8 assumed"),
    LINEAR("nvfp4", NVFP4_PLANAR, PLM_DT_NVFP4_PLANAR, NULL),
    LINEAR("nf4", NF4, NO, "q4_0"),
    LINEAR("nf4_dq", NF4_DQ, NO, "q4_0"),
    EXPERTS("mxfp4", MXFP4_PLANAR, BF16, "mxfp4_moe"),
    EXPERTS("mxfp4-f16rest", MXFP4, F16, NULL),
    MLX("mlx-4bit", INT4_G64),
    MLX("mlx-8bit", MLX8),
    MIX("q4_0", Q4_0),
    MIX("q4_1", Q4_1),
    MIX("q5_0", Q5_0),
    MIX("q5_1", Q5_1),
    MIX("q8_0", Q8_0),
    MIX("q2_k", Q2_K),
    MIX("q2_k_s", Q2_K_S),
    MIX("q3_k_s", Q3_K_S),
    MIX("q3_k_m", Q3_K_M),
    MIX("q3_k_l", Q3_K_L),
    MIX("q4_k_s", Q4_K_S),
    MIX("q4_k_m", Q4_K_M),
    MIX("q5_k_s", Q5_K_S),
    MIX("q5_k_m", Q5_K_M),
    MIX("q6_k", Q6_K),
    MIX("iq1_s", IQ1_S),
    MIX("iq1_m", IQ1_M),
    MIX("iq2_xxs", IQ2_XXS),
    MIX("iq2_xs", IQ2_XS),
    MIX("iq2_s", IQ2_S),
    MIX("iq2_m", IQ2_M),
    MIX("iq3_xxs", IQ3_XXS),
    MIX("iq3_xs", IQ3_XS),
    MIX("iq3_s", IQ3_S),
    MIX("iq3_m", IQ3_M),
    MIX("iq4_nl", IQ4_NL),
    MIX("iq4_xs", IQ4_XS),
    MIX("tq1_0", TQ1_0),
    MIX("tq2_0", TQ2_0),
    MIX("mxfp4_moe", MXFP4_MOE),
    DYNAMIC("ud-iq1_s", IQ1_S, COUNT, IQ1_S, IQ1_M, Q5_K),
    DYNAMIC("ud-iq1_m", IQ1_M, COUNT, IQ1_M, IQ2_XXS, Q5_K),
    DYNAMIC("ud-iq2_xxs", IQ2_XXS, COUNT, IQ2_XXS, IQ2_XS, Q6_K),
    DYNAMIC("ud-iq2_m", IQ2_M, COUNT, IQ2_XS, IQ2_S, Q6_K),
    DYNAMIC("ud-iq3_xxs", IQ3_XXS, COUNT, IQ2_S, IQ3_XXS, Q6_K),
    DYNAMIC("ud-q2_k_xl", Q2_K, Q2_K, Q2_K, Q3_K, Q6_K),
    DYNAMIC("ud-q3_k_m", Q3_K_M, Q3_K_S, Q3_K, Q4_K, Q6_K),
    DYNAMIC("ud-q3_k_xl", Q3_K_M, Q3_K_S, Q3_K, Q4_K, Q6_K),
    DYNAMIC("ud-q4_k_m", Q4_K_M, Q4_K_S, Q4_K, Q5_K, Q8_0),
    DYNAMIC("ud-q4_k_xl", Q4_K_M, Q4_K_S, Q4_K, Q5_K, Q8_0),
    DYNAMIC("ud-q5_k_xl", Q5_K_M, COUNT, Q5_K, Q6_K, Q8_0),
    DYNAMIC("ud-q6_k_xl", Q6_K, COUNT, Q6_K, Q8_0, Q8_0),
    DYNAMIC("ud-q8_k_xl", Q8_0, COUNT, Q8_0, Q8_0, BF16),
    SPLIT("ds4-q2", IQ2_XXS, Q2_K, Q8_0, NULL, ""),
    SPLIT("ds4-q4", Q4_K, Q4_K, Q8_0, NULL, ""),
    SPLIT("custom-mix", IQ3_S, IQ4_XS, Q8_0, NULL,
          "a mix without a name: experts of 3 to 4 bits and 8-bit rest assumed, give "
          "--weights-bytes"),
};

/* Other names in use. Types of ik_llama.cpp stand as the mainline type of equal bits. */
static const struct {
    const char *alias, *name;
} aliases[] = {
    {"fp32", "f32"},           {"float32", "f32"},        {"fp16", "f16"},
    {"float16", "f16"},        {"half", "f16"},           {"bfloat16", "bf16"},
    {"f8e4m3", "fp8"},         {"fp8_e4m3", "fp8"},       {"fp8-dynamic", "fp8_row"},
    {"w8a8-fp8", "fp8_row"},   {"fp8-block", "fp8_block"},{"w8a8", "int8"},
    {"smoothquant", "int8"},   {"w8a8-int8", "int8"},     {"w8a16", "gptq8"},
    {"awq", "awq4"},           {"awq-int4", "awq4"},      {"gptq", "gptq4"},
    {"autoround4", "gptq4"},   {"int4-cw", "int4"},       {"4bit", "w4a16"},
    {"4bit-unspecified", "w4a16"},                        {"4-bit (q4f16_1 / gptq)", "w4a16"},
    {"fp4", "nvfp4"},          {"bnb-nf4", "nf4"},        {"qlora", "nf4_dq"},
    {"mlx4", "mlx-4bit"},      {"mlx8", "mlx-8bit"},      {"mxfp4-q8rest", "mxfp4_moe"},
    {"q3_k", "q3_k_m"},        {"q4_k", "q4_k_m"},        {"q5_k", "q5_k_m"},
    {"q2_k_p", "q2_k"},        {"q4_k_p", "q4_k_m"},      {"q2_k_xl", "ud-q2_k_xl"},
    {"q3_k_xl", "ud-q3_k_xl"}, {"q4_k_xl", "ud-q4_k_xl"}, {"q5_k_xl", "ud-q5_k_xl"},
    {"q6_k_xl", "ud-q6_k_xl"}, {"q8_k_xl", "ud-q8_k_xl"}, {"avq2", "q2_k"},
    {"apex-mtp-i-mini", "iq3_xs"},
    {"iq1_s_r4", "iq1_s"},     {"iq2_k", "iq2_xs"},       {"iq2_k_r4", "iq2_xs"},
    {"iq3_k", "iq3_s"},        {"iq3_k_r4", "iq3_s"},     {"iq4_k", "q4_k_s"},
    {"iq4_k_r4", "q4_k_s"},    {"iq4_ks", "iq4_xs"},      {"iq4_ks_r4", "iq4_xs"},
    {"iq4_kss", "iq4_xs"},     {"q4_k_r4", "q4_k_m"},     {"q8_0_r8", "q8_0"},
};

#define RECIPES (sizeof recipes / sizeof recipes[0])
#define ALIASES (sizeof aliases / sizeof aliases[0])

const plm_recipe *plm_recipe_by_name(const char *name)
{
    if (name == NULL || name[0] == '\0')
        return NULL;
    for (size_t i = 0; i < RECIPES; i++)
        if (plm_id_equal(recipes[i].name, name))
            return &recipes[i];
    for (size_t i = 0; i < ALIASES; i++)
        if (plm_id_equal(aliases[i].alias, name))
            return plm_recipe_by_name(aliases[i].name);
    return NULL;
}

const char *plm_recipe_name(const plm_recipe *r)
{
    return r->name;
}

size_t plm_recipe_count(void)
{
    return RECIPES;
}

const plm_recipe *plm_recipe_at(size_t i)
{
    return i < RECIPES ? &recipes[i] : NULL;
}

plm_dtype plm_recipe_act(const plm_recipe *r)
{
    return r->act;
}

const char *plm_recipe_note(const plm_recipe *r)
{
    return r->note;
}

const plm_recipe *plm_recipe_gguf(const plm_recipe *r)
{
    const plm_recipe *g = r->gguf != NULL ? plm_recipe_by_name(r->gguf) : NULL;
    return g != NULL ? g : r;
}

static bool is_embedding(plm_role role)
{
    return role == PLM_ROLE_EMBED || role == PLM_ROLE_HEAD;
}

/* Attention of an MLA layer, which published 4-bit checkpoints leave alone (DeepSeek-R1 NVFP4:
** 404 GB; Kimi-K2.5 INT4). */
static bool is_mla(const plm_arch *a, plm_role role, int32_t layer)
{
    if (role < PLM_ROLE_Q || role > PLM_ROLE_V_B || layer < 0 || layer >= a->layers)
        return false;
    return plm_arch_layer(a, layer)->attn == PLM_ATTN_MLA;
}

static bool is_linear_mixer(plm_role role)
{
    return role == PLM_ROLE_SSM_IN || role == PLM_ROLE_SSM_OUT;
}

/* Base for a linear, rest for what such checkpoints keep. */
static plm_dtype linear_type(const plm_recipe *r, const plm_arch *a, plm_role role, int32_t layer)
{
    if (plm_role_small(role) || is_embedding(role) || role == PLM_ROLE_LORA ||
        (r->rule == RULE_LINEAR && is_mla(a, role, layer)))
        return r->rest;
    return r->base;
}

static plm_dtype mlx_type(const plm_recipe *r, plm_role role)
{
    if (role == PLM_ROLE_ROUTER)
        return PLM_DT_MLX8;
    return plm_role_small(role) || role == PLM_ROLE_LORA ? r->rest : r->base;
}

/* gate/up `base`, down `down`, all else `rest`; without experts the feed-forward counts. */
static plm_dtype split_type(const plm_recipe *r, const plm_arch *a, plm_role role, int64_t cols)
{
    bool gguf = plm_dtype_get(r->rest)->gguf_id >= 0;
    bool dense = plm_arch_experts(a) == 0;
    plm_dtype t = r->rest;
    if (plm_role_small(role))
        return gguf ? PLM_DT_F32 : PLM_DT_BF16;
    if (!gguf && is_embedding(role))
        return PLM_DT_BF16;
    if (role == PLM_ROLE_EXPERT_DOWN || (dense && role == PLM_ROLE_DOWN))
        t = r->down;
    else if (plm_role_expert(role) || (dense && (role == PLM_ROLE_GATE || role == PLM_ROLE_UP ||
                                                 role == PLM_ROLE_GATE_UP)))
        t = r->base;
    return gguf ? plm_mix_fallback(t, cols) : t;
}

/* Models whose dynamic files date from 2026, told by what they are made of. */
static bool is_recent(const plm_arch *a)
{
    for (int32_t k = 0; k < a->n_kinds && k < PLM_KINDS_MAX; k++) {
        const plm_layer *l = &a->kind[k];
        if (l->attn == PLM_ATTN_GATED_DELTA || l->attn == PLM_ATTN_KDA ||
            l->attn == PLM_ATTN_MAMBA2 || l->attn == PLM_ATTN_COMPRESSED || l->k_eq_v)
            return true;
    }
    return false;
}

/* Dense models follow the mix. Of the 8-bit one, the embedding, the head and linear-attention
** projections are 16-bit. MoE files of 2025 are nearest to the small mix, later ones keep attention
** and shared experts in the rest's type. Fitted to some fifteen published file sizes: within 2 %
** for dense models, 6 % for most MoE ones, 12 % at worst (GLM-4.5-Air). */
static plm_dtype dynamic_type(const plm_recipe *r, const plm_arch *a, plm_role role, int32_t layer,
                              int64_t cols)
{
    bool eight = r->rest == PLM_DT_BF16;
    if (plm_role_small(role))
        return PLM_DT_F32;
    if (eight)
        return is_embedding(role) || is_linear_mixer(role) ? PLM_DT_BF16
                                                           : plm_mix_fallback(PLM_DT_Q8_0, cols);
    if (plm_arch_experts(a) == 0)
        return plm_mix_weight(r->mix, a, role, layer, cols);
    if (r->early != PLM_MIX_COUNT && !is_recent(a))
        return plm_mix_weight(r->early, a, role, layer, cols);
    return split_type(r, a, role, cols);
}

plm_dtype plm_recipe_weight(const plm_recipe *r, const plm_arch *a, plm_role role, int32_t layer,
                            int64_t rows, int64_t cols)
{
    (void)rows; /* the row length alone decides; rows are for rules to come */
    switch (r->rule) {
    case RULE_ALL:
        return plm_role_small(role) ? r->rest : r->base;
    case RULE_LINEAR:
    case RULE_FP8:
        return linear_type(r, a, role, layer);
    case RULE_EXPERTS:
        if (plm_arch_experts(a) == 0)
            return linear_type(r, a, role, layer);
        if (plm_role_expert(role))
            return r->base;
        return r->rest == PLM_DT_F16 && plm_role_small(role) ? PLM_DT_F32 : r->rest;
    case RULE_MLX:
        return mlx_type(r, role);
    case RULE_MIX:
        return plm_mix_weight(r->mix, a, role, layer, cols);
    case RULE_DYNAMIC:
        return dynamic_type(r, a, role, layer, cols);
    case RULE_SPLIT:
        return split_type(r, a, role, cols);
    }
    return PLM_DT_BF16;
}

const plm_recipe *plm_recipe_default(const plm_arch *a)
{
    const plm_recipe *r = plm_recipe_by_name(a->file_quant);
    if (r == NULL && a->file_dtype < PLM_DT_COUNT)
        r = plm_recipe_by_name(plm_dtype_get(a->file_dtype)->name);
    return r != NULL ? r : plm_recipe_by_name("bf16");
}
