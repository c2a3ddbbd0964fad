/* config_kind.c - which kind of mixer a layer has, by a list, a pattern or a period. */
#include <string.h>

#include "core/model/config.h"

static const struct {
    const char *name;
    plm_attn attn;
} layer_types[] = {
    {"full_attention", PLM_ATTN_FULL},
    {"attention", PLM_ATTN_FULL},
    {"global", PLM_ATTN_FULL},
    {"indexed_attention", PLM_ATTN_FULL},
    {"minimax_m3_sparse", PLM_ATTN_FULL},
    {"sliding_attention", PLM_ATTN_SLIDING},
    {"local", PLM_ATTN_SLIDING},
    {"chunked_attention", PLM_ATTN_CHUNKED},
    {"linear_attention", PLM_ATTN_GATED_DELTA},
    {"conv", PLM_ATTN_SHORT_CONV},
    {"mamba", PLM_ATTN_MAMBA2},
    {"mamba2", PLM_ATTN_MAMBA2},
    {"moe", PLM_ATTN_NONE},
    {"mlp", PLM_ATTN_NONE},
    {"compressed_sparse_attention", PLM_ATTN_COMPRESSED},
    {"heavily_compressed_attention", PLM_ATTN_COMPRESSED},
};

static bool list_holds(const json_t *list, int64_t value)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i,
                       v) if (json_is_integer(v) && json_integer_value(v) == value) return true;
    return false;
}

/* hybrid_override_pattern of Nemotron-H: M Mamba-2, * attention, - MLP, E experts. */
static plm_status from_pattern(const plm_config *c, const char *pattern, int32_t layer,
                               plm_attn *out)
{
    static const char code[] = "M*-E";
    static const plm_attn attn[] = {PLM_ATTN_MAMBA2, PLM_ATTN_FULL, PLM_ATTN_NONE, PLM_ATTN_NONE};
    if (strlen(pattern) != (size_t)c->arch->layers)
        return plm_config_refuse(c, "hybrid_override_pattern", "its length is not the layers'");
    const char *at = strchr(code, pattern[layer]);
    if (at == NULL)
        return plm_config_refuse(c, "hybrid_override_pattern", pattern);
    *out = attn[at - code];
    return PLM_OK;
}

/* Lists of the layers that attend (Bamba, LFM2) and of those with a window (MiMo). */
static plm_status from_lists(const plm_config *c, int32_t layer, plm_attn *out, bool *found)
{
    const json_t *full = plm_config_get(c, "attn_layer_indices|full_attn_idxs");
    int64_t windowed = -1;
    *found = true;
    if (plm_config_trait(c, "plm_mamba") || json_is_array(full)) {
        plm_attn other = plm_config_trait(c, "plm_mamba") ? PLM_ATTN_MAMBA2 : PLM_ATTN_SHORT_CONV;
        *out = list_holds(full, layer) ? PLM_ATTN_FULL : other;
        return PLM_OK;
    }
    PLM_TRY(plm_config_int_at(c, "hybrid_layer_pattern", layer, &windowed));
    *out = windowed > 0 ? PLM_ATTN_SLIDING : PLM_ATTN_FULL;
    *found = windowed >= 0;
    return PLM_OK;
}

static plm_status from_period(const plm_config *c, int32_t layer, plm_attn *out)
{
    int32_t linear = 0, period = 0, window = 0, from = 0;
    bool use = true, found = false;
    PLM_TRY(from_lists(c, layer, out, &found));
    if (found)
        return PLM_OK;
    PLM_TRY(plm_config_int(c, "full_attention_interval", 0, 1 << 20, &linear));
    if (linear > 0 && plm_config_has(c, "linear_num_value_heads")) {
        *out = (layer + 1) % linear == 0 ? PLM_ATTN_FULL : PLM_ATTN_GATED_DELTA;
        return PLM_OK;
    }
    PLM_TRY(plm_config_int(c, "sliding_window", 0, 1 << 30, &window));
    PLM_TRY(plm_config_flag(c, "use_sliding_window", true, &use));
    *out = PLM_ATTN_FULL;
    if (window == 0 || !use)
        return PLM_OK;
    PLM_TRY(plm_config_int(c,
                           "sliding_window_pattern|_sliding_window_pattern|"
                           "global_attn_every_n_layers|plm_pattern",
                           0, 1 << 20, &period));
    if (period > 0)
        *out = (layer + 1) % period == 0 ? PLM_ATTN_FULL : PLM_ATTN_SLIDING;
    else if (plm_config_has(c, "max_window_layers")) {
        PLM_TRY(plm_config_int(c, "max_window_layers", 0, 1 << 20, &from));
        *out = layer >= from ? PLM_ATTN_SLIDING : PLM_ATTN_FULL;
    } else if (plm_config_trait(c, "plm_window_all")) {
        *out = PLM_ATTN_SLIDING;
    } else {
        return plm_config_refuse(c, "sliding_window", "which layers it applies to is not said");
    }
    return PLM_OK;
}

/* Llama-4: chunked, except layers without rotation. */
static plm_status llama4_kind(const plm_config *c, int32_t layer, plm_attn *out, bool *rope)
{
    int64_t rotates = -1;
    int32_t every = 4;
    PLM_TRY(plm_config_int_at(c, "no_rope_layers", layer, &rotates));
    PLM_TRY(plm_config_int(c, "no_rope_layer_interval", 4, 1 << 20, &every));
    if (rotates < 0)
        rotates = every > 0 && (layer + 1) % every == 0 ? 0 : 1;
    *rope = rotates != 0;
    *out = *rope ? PLM_ATTN_CHUNKED : PLM_ATTN_FULL;
    return PLM_OK;
}

/* full_attn_layers and kda_layers count from one. */
static plm_status kda_kind(const plm_config *c, int32_t layer, plm_attn *out)
{
    const json_t *linear = plm_config_get(c, "linear_attn_config");
    const json_t *full = json_object_get(linear, "full_attn_layers");
    if (!json_is_array(full))
        return plm_config_refuse(c, "linear_attn_config", "no full_attn_layers");
    *out = list_holds(full, layer + 1) ? PLM_ATTN_FULL : PLM_ATTN_KDA;
    return PLM_OK;
}

plm_status plm_config_kind(const plm_config *c, int32_t layer, plm_attn *out, bool *rope)
{
    const char *name = NULL, *pattern = NULL;
    *rope = true;
    if (plm_config_trait(c, "plm_llama4"))
        return llama4_kind(c, layer, out, rope);
    if (plm_config_has(c, "linear_attn_config"))
        return kda_kind(c, layer, out);
    if (plm_config_has(c, "compress_ratios")) {
        *out = PLM_ATTN_COMPRESSED;
        return PLM_OK;
    }
    PLM_TRY(plm_config_text(c, "hybrid_override_pattern", NULL, &pattern));
    if (pattern != NULL)
        return from_pattern(c, pattern, layer, out);
    PLM_TRY(
        plm_config_layer_type(c, "layer_types|layers_block_type|attention_layers", layer, &name));
    if (name == NULL)
        return from_period(c, layer, out);
    for (size_t i = 0; i < sizeof layer_types / sizeof *layer_types; i++)
        if (strcmp(layer_types[i].name, name) == 0) {
            *out = layer_types[i].attn;
            if (*out == PLM_ATTN_GATED_DELTA && plm_config_trait(c, "plm_mamba"))
                *out = PLM_ATTN_MAMBA2;
            if (*out == PLM_ATTN_GATED_DELTA && plm_config_trait(c, "plm_kda"))
                *out = PLM_ATTN_KDA;
            return PLM_OK;
        }
    return plm_config_refuse(c, "layer_types", name);
}
