/* recipe_mix.c - which weights a GGUF mix keeps in more bits, as rules in a table.
**
** Source: the type choice of llama.cpp's quantiser (src/llama-quant.cpp of ggml-org/llama.cpp, 2024
** to 2026), restated as rules; the first that applies wins. Checked against published file sizes in
** tests/test_recipe.c.
*/
#include "core/model/recipe_mix.h"

typedef enum part { HEAD, EMBED, V, K, Q, O, QKV, DOWN, GATE, UP, PARTS } part;

typedef enum when {
    ALWAYS,
    GQA4,      /* at least 4 query heads a KV head */
    EXPERTS8,  /* exactly 8 routed experts (Mixtral) */
    EXPERTS4,  /* at least 4 */
    MORE_BITS, /* first and last eighth of the layers and every third between */
    FIRST_8TH,
    FIRST_16TH,
    ORDER2, /* the first 2 attention layers */
    ORDER4,
    MIDDLE /* neither first nor last eighth */
} when;

#define M(id) (UINT64_C(1) << PLM_MIX_##id)
#define IQ2_SM (M(IQ2_S) | M(IQ2_M))
#define IQ1 (M(IQ1_S) | M(IQ1_M))
#define LOW (IQ2_SM | IQ1 | M(IQ2_XXS) | M(IQ2_XS))
#define TERNARY (M(TQ1_0) | M(TQ2_0))
#define NOT_LOW (~LOW)

typedef struct rule {
    uint64_t mixes;
    part part;
    when when;
    plm_dtype type;
} rule;

static const rule rules[] = {
    {LOW | M(IQ3_XXS), HEAD, ALWAYS, PLM_DT_Q5_K},
    {M(Q8_0), HEAD, ALWAYS, PLM_DT_Q8_0},
    {~(LOW | M(IQ3_XXS) | M(Q8_0)), HEAD, ALWAYS, PLM_DT_Q6_K},
    {M(IQ2_XXS) | M(IQ2_XS) | IQ1, EMBED, ALWAYS, PLM_DT_Q2_K},
    {IQ2_SM | M(IQ3_XXS), EMBED, ALWAYS, PLM_DT_IQ3_S},
    {TERNARY, EMBED, ALWAYS, PLM_DT_Q4_K},

    {LOW, V, GQA4, PLM_DT_Q4_K},
    {LOW, V, EXPERTS4, PLM_DT_Q4_K},
    {IQ2_SM, V, ALWAYS, PLM_DT_IQ3_S},
    {LOW, V, ALWAYS, PLM_DT_Q2_K},
    {NOT_LOW, V, EXPERTS8, PLM_DT_Q8_0},
    {M(Q2_K) | M(Q2_K_S) | M(IQ3_XXS) | M(IQ3_XS) | M(IQ3_S), V, GQA4, PLM_DT_Q4_K},
    {M(Q2_K), V, ALWAYS, PLM_DT_Q3_K},
    {M(IQ3_M), V, ALWAYS, PLM_DT_Q4_K},
    {M(Q3_K_M), V, ORDER2, PLM_DT_Q5_K},
    {M(Q3_K_M), V, ALWAYS, PLM_DT_Q4_K},
    {M(Q3_K_L), V, ALWAYS, PLM_DT_Q5_K},
    {M(IQ4_NL) | M(IQ4_XS), V, GQA4, PLM_DT_Q5_K},
    {M(Q4_K_M) | M(Q5_K_M), V, MORE_BITS, PLM_DT_Q6_K},
    {M(Q4_K_S), V, ORDER4, PLM_DT_Q5_K},

    {LOW, K, EXPERTS8, PLM_DT_Q4_K},
    {NOT_LOW, K, EXPERTS8, PLM_DT_Q8_0},
    {M(IQ3_XS), K, ALWAYS, PLM_DT_IQ3_XXS},
    {M(IQ3_XXS), K, ALWAYS, PLM_DT_IQ2_S},
    {M(IQ3_XS), Q, ALWAYS, PLM_DT_IQ3_XXS},
    {M(IQ3_XXS), Q, ALWAYS, PLM_DT_IQ2_S},

    {LOW, O, EXPERTS8, PLM_DT_Q5_K},
    {IQ1, O, ALWAYS, PLM_DT_IQ2_XXS},
    {IQ2_SM, O, ALWAYS, PLM_DT_IQ3_S},
    {M(Q2_K) | M(IQ3_XS) | M(IQ3_XXS) | M(Q3_K_S) | M(Q3_K_M) | M(IQ4_NL) | M(Q4_K_S) | M(Q4_K_M) |
         M(IQ3_S) | M(IQ3_M) | M(IQ4_XS),
     O, EXPERTS8, PLM_DT_Q5_K},
    {M(Q2_K), O, ALWAYS, PLM_DT_Q3_K},
    {M(IQ3_XXS), O, ALWAYS, PLM_DT_IQ3_S},
    {M(Q3_K_M) | M(IQ3_M), O, ALWAYS, PLM_DT_Q4_K},
    {M(Q3_K_L), O, ALWAYS, PLM_DT_Q5_K},

    {M(Q3_K_M) | M(Q3_K_L) | M(IQ3_M), QKV, ALWAYS, PLM_DT_Q4_K},
    {M(Q4_K_M), QKV, ALWAYS, PLM_DT_Q5_K},
    {M(Q5_K_M), QKV, ALWAYS, PLM_DT_Q6_K},

    {IQ2_SM, DOWN, FIRST_8TH, PLM_DT_IQ3_S},
    {LOW, DOWN, FIRST_8TH, PLM_DT_Q2_K},
    {M(Q2_K), DOWN, ALWAYS, PLM_DT_Q3_K},
    {M(Q2_K_S), DOWN, FIRST_8TH, PLM_DT_Q4_K},
    {M(Q3_K_M), DOWN, FIRST_16TH, PLM_DT_Q5_K},
    {M(Q3_K_M), DOWN, ALWAYS, PLM_DT_Q4_K},
    {M(IQ3_M), DOWN, FIRST_8TH, PLM_DT_Q4_K},
    {M(Q3_K_L), DOWN, ALWAYS, PLM_DT_Q5_K},
    {M(Q4_K_M) | M(Q5_K_M), DOWN, MORE_BITS, PLM_DT_Q6_K},
    {M(Q4_K_S), DOWN, FIRST_8TH, PLM_DT_Q5_K},

    {M(IQ3_XS), GATE, MIDDLE, PLM_DT_IQ3_XXS},
    {M(IQ3_XS), UP, MIDDLE, PLM_DT_IQ3_XXS},
};

static const plm_dtype base_type[PLM_MIX_COUNT] = {
#define MIX_BASE(id, base) [PLM_MIX_##id] = PLM_DT_##base,
    PLM_MIX_MAP(MIX_BASE)
#undef MIX_BASE
};

/* Part of the rule table a role belongs to, PARTS = the base type. */
static const uint8_t part_of[PLM_ROLE_COUNT] = {
    [PLM_ROLE_HEAD] = HEAD + 1,          [PLM_ROLE_EMBED] = EMBED + 1,
    [PLM_ROLE_V] = V + 1,                [PLM_ROLE_K] = K + 1,
    [PLM_ROLE_Q] = Q + 1,                [PLM_ROLE_O] = O + 1,
    [PLM_ROLE_QKV] = QKV + 1,            [PLM_ROLE_DOWN] = DOWN + 1,
    [PLM_ROLE_EXPERT_DOWN] = DOWN + 1,   [PLM_ROLE_SHARED_DOWN] = DOWN + 1,
    [PLM_ROLE_GATE] = GATE + 1,          [PLM_ROLE_EXPERT_GATE] = GATE + 1,
    [PLM_ROLE_SHARED_GATE] = GATE + 1,   [PLM_ROLE_UP] = UP + 1,
    [PLM_ROLE_EXPERT_UP] = UP + 1,       [PLM_ROLE_SHARED_UP] = UP + 1,
    [PLM_ROLE_GATE_UP] = UP + 1,         [PLM_ROLE_EXPERT_GATE_UP] = UP + 1,
};

bool plm_role_small(plm_role role)
{
    switch (role) {
    case PLM_ROLE_NORM:
    case PLM_ROLE_BIAS:
    case PLM_ROLE_ROUTER:
    case PLM_ROLE_SSM_SMALL:
    case PLM_ROLE_CONV:
    case PLM_ROLE_SINK:
    case PLM_ROLE_POS_EMBED:
        return true;
    default:
        return false;
    }
}

bool plm_role_expert(plm_role role)
{
    return role == PLM_ROLE_EXPERT_GATE || role == PLM_ROLE_EXPERT_UP ||
           role == PLM_ROLE_EXPERT_GATE_UP || role == PLM_ROLE_EXPERT_DOWN;
}

int32_t plm_arch_experts(const plm_arch *a)
{
    int32_t experts = 0;
    for (int32_t k = 0; k < a->n_kinds && k < PLM_KINDS_MAX; k++)
        if (a->kind[k].experts > experts)
            experts = a->kind[k].experts;
    return experts;
}

/* Query heads a KV head in a layer, 1 where it has none. */
static int32_t group_size(const plm_arch *a, int32_t layer)
{
    const plm_layer *l;
    if (layer < 0 || layer >= a->layers)
        return 1;
    l = plm_arch_layer(a, layer);
    return l->kv_heads > 0 && l->attn != PLM_ATTN_MLA ? l->heads / l->kv_heads : 1;
}

static bool has_values(const plm_layer *l)
{
    return l->attn != PLM_ATTN_NONE && l->attn != PLM_ATTN_MAMBA2 &&
           l->attn != PLM_ATTN_SHORT_CONV && l->attn != PLM_ATTN_MLA;
}

/* Position of a layer among those with an attn_v or attn_qkv matrix, and how many there are. */
static void attention_order(const plm_arch *a, int32_t layer, int32_t *order, int32_t *count)
{
    *order = *count = 0;
    for (int32_t i = 0; i < a->layers; i++) {
        if (!has_values(plm_arch_layer(a, i)))
            continue;
        *order += i < layer;
        ++*count;
    }
}

static bool more_bits(int32_t i, int32_t n)
{
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

static bool applies(when w, const plm_arch *a, part p, int32_t layer, int32_t experts)
{
    int32_t i = layer, n = a->layers;
    if (p == V)
        attention_order(a, layer, &i, &n);
    switch (w) {
    case ALWAYS:
        return true;
    case GQA4:
        return group_size(a, layer) >= 4;
    case EXPERTS8:
        return experts == 8;
    case EXPERTS4:
        return experts >= 4;
    case MORE_BITS:
        return more_bits(i, n);
    case FIRST_8TH:
        return i < n / 8;
    case FIRST_16TH:
        return i < n / 16;
    case ORDER2:
        return i < 2;
    case ORDER4:
        return i < 4;
    case MIDDLE:
        return i >= n / 8 && i < 7 * n / 8;
    }
    return false;
}

plm_dtype plm_mix_fallback(plm_dtype t, int64_t cols)
{
    if (cols % plm_dtype_get(t)->block == 0)
        return t;
    switch (t) {
    case PLM_DT_Q2_K:
    case PLM_DT_Q3_K:
    case PLM_DT_IQ1_S:
    case PLM_DT_IQ1_M:
    case PLM_DT_IQ2_XXS:
    case PLM_DT_IQ2_XS:
    case PLM_DT_IQ2_S:
    case PLM_DT_IQ3_XXS:
    case PLM_DT_IQ3_S:
    case PLM_DT_IQ4_XS:
        t = PLM_DT_IQ4_NL;
        break;
    case PLM_DT_TQ1_0:
    case PLM_DT_TQ2_0:
        t = PLM_DT_Q4_0;
        break;
    case PLM_DT_Q4_K:
        t = PLM_DT_Q5_0;
        break;
    case PLM_DT_Q5_K:
        t = PLM_DT_Q5_1;
        break;
    case PLM_DT_Q6_K:
        t = PLM_DT_Q8_0;
        break;
    default:
        return PLM_DT_F16;
    }
    return cols % plm_dtype_get(t)->block == 0 ? t : PLM_DT_F16;
}

/* llama.cpp's "70B" type: 80 dense layers with grouped query heads, whose small attn_v serves 8
** query heads each and so is cheap to keep better. */
static bool is_70b(const plm_arch *a, int32_t experts)
{
    return a->layers == 80 && experts == 0 && group_size(a, 0) > 1;
}

plm_dtype plm_mix_weight(plm_mix mix, const plm_arch *a, plm_role role, int32_t layer, int64_t cols)
{
    int32_t experts = plm_arch_experts(a);
    plm_dtype t = base_type[mix];
    if (plm_role_small(role))
        return PLM_DT_F32;
    if (mix == PLM_MIX_MXFP4_MOE)
        return plm_mix_fallback(plm_role_expert(role) ? PLM_DT_MXFP4 : PLM_DT_Q8_0, cols);
    /* A tied embedding is the head. */
    part p = (part)(role == PLM_ROLE_EMBED && a->tied_head ? HEAD : part_of[role] - 1);
    if (p == HEAD && cols % plm_dtype_get(t)->block != 0)
        return plm_mix_fallback(PLM_DT_Q8_0, cols);
    if (part_of[role] != 0) {
        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
            const rule *r = &rules[i];
            if (r->part == p && (r->mixes >> mix & 1) != 0 &&
                applies(r->when, a, p, layer, experts)) {
                t = r->type;
                break;
            }
        }
    }
    if (p == V && (t == PLM_DT_Q3_K || t == PLM_DT_Q4_K) && is_70b(a, experts))
        t = PLM_DT_Q5_K;
    return plm_mix_fallback(t, cols);
}
