/* config_ffn.c - the feed-forward half of a layer from a config.json. */
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/config.h"

static const struct {
    const char *name;
    plm_fn fn;
} functions[] = {
    {"silu", PLM_FN_SILU},           {"swish", PLM_FN_SILU},
    {"swiglu", PLM_FN_SILU},         {"gelu", PLM_FN_GELU_ERF},
    {"gelu_new", PLM_FN_GELU_TANH},  {"gelu_pytorch_tanh", PLM_FN_GELU_TANH},
    {"gelu_fast", PLM_FN_GELU_TANH}, {"gelu_tanh", PLM_FN_GELU_TANH},
    {"relu", PLM_FN_RELU},           {"relu2", PLM_FN_RELU2},
    {"relu_squared", PLM_FN_RELU2},  {"swiglu_oai", PLM_FN_SWIGLU_OAI},
    {"situ", PLM_FN_SITU},           {"xielu", PLM_FN_XIELU},
};

static const struct {
    const char *name;
    plm_fn fn;
} routers[] = {
    {"softmax", PLM_FN_SOFTMAX},           {"sigmoid", PLM_FN_SIGMOID},
    {"softmax_topk", PLM_FN_SOFTMAX_TOPK}, {"sqrtsoftplus", PLM_FN_SQRT_SOFTPLUS},
    {"noaux_tc", PLM_FN_SIGMOID}, /* dots.llm1 names the method */
};

plm_status plm_config_fn(const plm_config *c, const char *name, plm_fn *out)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, name) == 0) {
            *out = functions[i].fn;
            return PLM_OK;
        }
    return plm_config_refuse(c, "hidden_act", name);
}

static plm_status read_activation(const plm_config *c, plm_layer *k)
{
    const char *name = NULL;
    PLM_TRY(plm_config_text(c,
                            "hidden_activation|hidden_act|activation_function|activation|"
                            "mlp_hidden_act|ffn_act",
                            "silu", &name));
    PLM_TRY(plm_config_fn(c, plm_config_trait_text(c, "plm_act", name), &k->act));
    k->glu = !plm_config_trait(c, "plm_plain_mlp");
    bool squared = k->act == PLM_FN_RELU2 || k->act == PLM_FN_RELU;
    if (squared && !c->known) /* with a gate in BitNet, without in Nemotron and Arcee */
        return plm_config_refuse(c, "hidden_act", plm_config_trait_text(c, "plm_act", name));
    if (k->act == PLM_FN_XIELU && k->glu)
        return plm_config_refuse(c, "hidden_act", "xielu");
    PLM_TRY(plm_config_real(c, "swiglu_limit", 0, &k->act_limit));
    return plm_config_real(c, "swiglu_alpha", 0, &k->act_alpha);
}

/* LFM2: two thirds of the width that is given, times a factor, rounded up. Source: transformers,
** modeling_lfm2.py, Lfm2MLP. */
static plm_status adjust_width(const plm_config *c, int32_t *ffn)
{
    bool adjust = false;
    double factor = 1;
    int32_t unit = 1;
    PLM_TRY(plm_config_flag(c, "block_auto_adjust_ff_dim", false, &adjust));
    if (!adjust)
        return PLM_OK;
    PLM_TRY(plm_config_real(c, "block_ffn_dim_multiplier", 1, &factor));
    PLM_TRY(plm_config_int(c, "block_multiple_of", 256, 1 << 20, &unit));
    double width = floor(factor * floor(2.0 * *ffn / 3));
    if (unit == 0 || !(width >= 1 && width <= 1 << 23))
        return plm_config_bad(c, "block_ffn_dim_multiplier", "a width from 1 to 2^23");
    *ffn = (int32_t)(plm_ceil_div((int64_t)width, unit) * unit);
    return PLM_OK;
}

static plm_status read_dense(const plm_config *c, plm_layer *k)
{
    bool bias = plm_config_trait(c, "plm_all_bias") || plm_config_trait(c, "plm_mlp_bias");
    int32_t times = 4;
    PLM_TRY(plm_config_int(c,
                           "dense_intermediate_size|prefix_dense_intermediate_size|"
                           "intermediate_size_mlp|intermediate_size|n_inner|ffn_hidden_size|"
                           "ffn_dim|d_ff|mlp_hidden_size|ffn_intermediate_size|block_ff_dim",
                           0, 1 << 24, &k->ffn));
    PLM_TRY(plm_config_int(c, "expansion_ratio", 4, 15, &times));
    if (k->ffn == 0 && plm_config_trait(c, "plm_plain_mlp"))
        k->ffn = c->arch->hidden <= (1 << 20) ? times * c->arch->hidden : 0;
    PLM_TRY(adjust_width(c, &k->ffn));
    if (k->ffn == 0)
        return plm_fail(c->err, PLM_E_INVALID,
                        "missing key \"intermediate_size\", %s: it is required; add it", c->where);
    return plm_config_flag(c, "mlp_bias|use_bias|bias|enable_bias", bias, &k->bias_mlp);
}

/* ---- experts ---- */

#define EXPERT_KEYS                                                                                \
    "n_routed_experts|num_local_experts|num_experts|moe_num_experts|num_routed_experts|n_experts"
#define TOP_K_KEYS                                                                                 \
    "num_experts_per_tok|num_experts_per_token|moe_topk|moe_top_k|moe_k|top_k_experts|"            \
    "experts_per_token|num_selected_experts|moe_router_topk|num_activated_experts|"                \
    "n_activated_experts|num_experts_per_topk|router_top_k"
#define WIDTH_KEYS                                                                                 \
    "moe_intermediate_size|expert_ffn_hidden_size|moe_ffn_hidden_size|expert_intermediate_size|"   \
    "moe_ffn_dim|ffn_hidden_size|intermediate_size"
#define SHARED_KEYS                                                                                \
    "n_shared_experts|num_shared_expert|num_shared_experts|moe_num_shared_experts|"                \
    "moe_n_shared_experts"
#define SHARED_WIDTH_KEYS                                                                          \
    "shared_expert_intermediate_size|moe_shared_expert_intermediate_size|"                         \
    "shared_intermediate_size|shared_experts_intermediate_size|share_expert_dim"

static bool list_holds(const json_t *list, int64_t value)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i,
                       v) if (json_is_integer(v) && json_integer_value(v) == value) return true;
    return false;
}

/* Is this layer routed? Each family has its own way to say so. */
static plm_status is_routed(const plm_config *c, int32_t layer, int32_t experts, bool *out)
{
    int32_t first = 0, sparse = 1, every = 1;
    int64_t flag = -1;
    const char *type = NULL;
    *out = false;
    if (experts <= 1)
        return PLM_OK;
    PLM_TRY(plm_config_layer_type(c, "mlp_layer_types", layer, &type));
    if (type != NULL) {
        bool dense = strcmp(type, "dense") == 0;
        if (!dense && strcmp(type, "sparse") != 0 && strcmp(type, "moe") != 0 &&
            strcmp(type, "hash_moe") != 0)
            return plm_config_refuse(c, "mlp_layer_types", type);
        *out = !dense;
        return PLM_OK;
    }
    if (json_is_array(plm_config_get(c, "moe_layers"))) {
        *out = list_holds(plm_config_get(c, "moe_layers"), layer);
        return PLM_OK;
    }
    if (json_is_array(plm_config_get(c, "moe_layer_freq"))) {
        PLM_TRY(plm_config_int_at(c, "moe_layer_freq", layer, &flag));
        *out = flag > 0;
        return PLM_OK;
    }
    PLM_TRY(plm_config_int(c, "first_k_dense_replace|moe_layer_start_index|num_dense_layers", 0,
                           1 << 20, &first));
    PLM_TRY(
        plm_config_int(c, "decoder_sparse_step|interleave_moe_layer_step", 1, 1 << 20, &sparse));
    PLM_TRY(plm_config_int(c, "moe_layer_freq|moe_layer_interval", 1, 1 << 20, &every));
    *out = layer >= first && sparse > 0 && (layer + 1) % sparse == 0 && every > 0 &&
           layer % every == 0 && !list_holds(plm_config_get(c, "mlp_only_layers"), layer);
    return PLM_OK;
}

static plm_status read_shared(const plm_config *c, int32_t layer, plm_layer *k)
{
    int64_t count = -1;
    int32_t width = 0;
    PLM_TRY(plm_config_int_at(c, SHARED_KEYS, layer, &count));
    PLM_TRY(plm_config_int(c, SHARED_WIDTH_KEYS, 0, 1 << 24, &width));
    if (plm_config_trait(c, "plm_llama4")) { /* one shared expert of an expert's width */
        count = 1;
        width = k->expert_ffn;
    }
    if (count <= 0 && width == 0)
        return PLM_OK;
    if (count < 0)
        count = 1;
    if (count > 1 << 10)
        return plm_config_refuse(c, "n_shared_experts", "more than 1024");
    k->shared_experts = (int32_t)count;
    int64_t whole = width > 0 ? width : count * k->expert_ffn;
    if (whole > 1 << 24)
        return plm_config_refuse(c, "n_shared_experts", "too wide");
    k->shared_ffn = count > 0 ? (int32_t)whole : 0;
    k->shared_gate = k->shared_ffn > 0 && plm_config_trait(c, "plm_shared_gate");
    return PLM_OK;
}

static plm_status read_router(const plm_config *c, int32_t layer, plm_layer *k)
{
    const char *scores = NULL, *method = NULL, *type = NULL;
    bool renorm = plm_config_trait(c, "plm_renorm");
    int32_t hashed = 0;
    /* Softmax where nothing is said: it hardly matters to size or time. */
    PLM_TRY(plm_config_text(c,
                            "scoring_func|moe_router_activation_func|score_function|score_func|"
                            "expert_selection_fn|router_activation|moe_router_score_function|"
                            "plm_router",
                            "softmax", &scores));
    for (size_t i = 0; i < sizeof routers / sizeof *routers; i++)
        if (strcmp(routers[i].name, scores) == 0)
            k->router_fn = routers[i].fn;
    if (k->router_fn == PLM_FN_NONE)
        return plm_config_refuse(c, "scoring_func", scores);
    PLM_TRY(plm_config_flag(c, "norm_topk_prob|moe_renormalize|route_norm", renorm, &renorm));
    k->renorm =
        (renorm || plm_config_trait(c, "plm_renorm")) && k->router_fn != PLM_FN_SOFTMAX_TOPK;
    PLM_TRY(plm_config_text(c, "topk_method", NULL, &method));
    k->router_bias = plm_config_trait(c, "plm_router_bias");
    if (method != NULL)
        k->router_bias = strcmp(method, "noaux_tc") == 0;
    PLM_TRY(plm_config_flag(c,
                            "use_routing_bias|use_expert_bias|moe_router_enable_expert_bias|"
                            "moe_router_use_correction_bias",
                            k->router_bias, &k->router_bias));
    k->router_linear_bias = plm_config_trait(c, "plm_router_linear_bias");
    k->expert_bias = plm_config_trait(c, "plm_expert_bias");
    PLM_TRY(plm_config_real(c,
                            "routed_scaling_factor|route_scale|router_scaling_factor|"
                            "moe_routed_scaling_factor|moe_router_scaling_factor",
                            0, &k->router_scale));
    if (k->router_scale == 1)
        k->router_scale = 0;
    PLM_TRY(plm_config_int(c, "n_group|num_expert_group", 0, 1 << 16, &k->n_group));
    PLM_TRY(plm_config_int(c, "topk_group", 0, 1 << 16, &k->topk_group));
    if (k->n_group <= 1)
        k->n_group = k->topk_group = 0;
    PLM_TRY(plm_config_int(c, "num_hash_layers|n_hash_layers", 0, 1 << 20, &hashed));
    PLM_TRY(plm_config_layer_type(c, "mlp_layer_types", layer, &type));
    k->hash_routed = layer < hashed || (type != NULL && strcmp(type, "hash_moe") == 0);
    k->router_bias = k->router_bias && !k->hash_routed;
    return PLM_OK;
}

static plm_status read_experts(const plm_config *c, int32_t layer, int32_t experts, plm_layer *k)
{
    int64_t top_k = -1, width = -1;
    k->experts = experts;
    PLM_TRY(plm_config_int_at(c, TOP_K_KEYS, layer, &top_k));
    PLM_TRY(plm_config_int_at(c, WIDTH_KEYS, layer, &width));
    if (top_k < 0)
        return plm_fail(c->err, PLM_E_INVALID,
                        "missing key \"num_experts_per_tok\", %s: experts need it; add it",
                        c->where);
    if (top_k < 1 || top_k > experts)
        return plm_fail(c->err, PLM_E_INVALID,
                        "bad num_experts_per_tok %lld, %s: want 1 to %d; correct the file",
                        (long long)top_k, c->where, experts);
    if (width < 1 || width > 1 << 24)
        return plm_fail(c->err, PLM_E_INVALID,
                        "bad moe_intermediate_size %lld, %s: want 1 to 2^24; correct the file",
                        (long long)width, c->where);
    k->top_k = (int32_t)top_k;
    k->expert_ffn = (int32_t)width;
    PLM_TRY(plm_config_int(c, "moe_latent_size|routed_expert_hidden_size", 0, 1 << 20,
                           &k->expert_hidden));
    PLM_TRY(read_shared(c, layer, k));
    return read_router(c, layer, k);
}

/* Nemotron-H: a layer is a mixer, or dense, or routed; nothing else shares it. */
static plm_status single_purpose(const plm_config *c, int32_t layer, bool *dense, bool *routed)
{
    const char *pattern = NULL, *type = NULL;
    PLM_TRY(plm_config_text(c, "hybrid_override_pattern", NULL, &pattern));
    PLM_TRY(plm_config_layer_type(c, "layers_block_type|layer_types", layer, &type));
    if (pattern != NULL) {
        *dense = pattern[layer] == '-';
        *routed = pattern[layer] == 'E';
    } else if (type != NULL) {
        *dense = strcmp(type, "mlp") == 0;
        *routed = strcmp(type, "moe") == 0;
    } else {
        return plm_config_refuse(c, "model_type", "no hybrid_override_pattern");
    }
    return PLM_OK;
}

plm_status plm_config_ffn(const plm_config *c, int32_t layer, plm_layer *k)
{
    int32_t experts = 0;
    bool routed = false, dense = true, block = true;
    PLM_TRY(plm_config_int(c, EXPERT_KEYS, 0, 1 << 16, &experts));
    PLM_TRY(plm_config_flag(c, "enable_moe_block", true, &block));
    if (!block)
        experts = 0;
    if (plm_config_trait(c, "plm_mamba_all"))
        return PLM_OK;
    if (plm_config_trait(c, "plm_single"))
        PLM_TRY(single_purpose(c, layer, &dense, &routed));
    else {
        PLM_TRY(is_routed(c, layer, experts, &routed));
        dense = !routed || plm_config_trait(c, "plm_dense_and_moe");
    }
    if (dense || routed)
        PLM_TRY(read_activation(c, k));
    if (dense)
        PLM_TRY(read_dense(c, k));
    if (dense && experts == 0 && plm_config_trait(c, "plm_shared_dense"))
        PLM_TRY(plm_config_int(c, SHARED_WIDTH_KEYS, k->ffn, 1 << 24, &k->ffn));
    return routed ? read_experts(c, layer, experts, k) : PLM_OK;
}
