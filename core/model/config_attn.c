/* config_attn.c - the attention half of a layer from a config.json. */
#include <math.h>
#include <string.h>

#include "core/model/config.h"

static plm_status read_recurrent(const plm_config *c, plm_layer *k)
{
    if (k->attn == PLM_ATTN_MAMBA2) {
        PLM_TRY(plm_config_int(c, "mamba_num_heads|mamba_n_heads|num_heads", PLM_CONFIG_NEEDED,
                               1 << 16, &k->lin_v_heads));
        PLM_TRY(plm_config_int(c, "mamba_head_dim|mamba_d_head|head_dim", PLM_CONFIG_NEEDED,
                               1 << 16, &k->lin_dv));
        PLM_TRY(plm_config_int(c, "n_groups|mamba_n_groups", PLM_CONFIG_NEEDED, 1 << 16,
                               &k->ssm_groups));
        PLM_TRY(plm_config_int(c, "ssm_state_size|mamba_d_state|state_size", PLM_CONFIG_NEEDED,
                               1 << 16, &k->ssm_state));
        return plm_config_int(c, "conv_kernel|mamba_d_conv", 4, 256, &k->conv_taps);
    }
    if (k->attn == PLM_ATTN_SHORT_CONV) {
        bool bias = false;
        k->lin_v_heads = c->arch->hidden;
        k->lin_dv = 1;
        PLM_TRY(plm_config_flag(c, "conv_bias", false, &bias));
        k->bias_q = k->bias_k = k->bias_o = bias;
        return plm_config_int(c, "conv_L_cache", 3, 256, &k->conv_taps);
    }
    const char *taps = "linear_conv_kernel_dim";
    if (k->attn == PLM_ATTN_KDA) {
        plm_config inner = *c;
        const json_t *l = plm_config_get(c, "linear_attn_config");
        bool apart = json_is_object(l); /* its keys have short names in an object of their own */
        if (apart)
            inner.text = l;
        PLM_TRY(plm_config_int(&inner, apart ? "num_heads" : "linear_num_heads", PLM_CONFIG_NEEDED,
                               1 << 16, &k->lin_v_heads));
        PLM_TRY(plm_config_int(&inner, apart ? "head_dim" : "linear_head_dim", PLM_CONFIG_NEEDED,
                               1 << 16, &k->lin_dv));
        k->lin_k_heads = k->lin_v_heads;
        k->lin_dk = k->lin_dv;
        return plm_config_int(&inner, "short_conv_kernel_size|linear_conv_kernel_dim", 4, 256,
                              &k->conv_taps);
    }
    PLM_TRY(plm_config_int(c, "linear_num_key_heads", PLM_CONFIG_NEEDED, 1 << 16, &k->lin_k_heads));
    PLM_TRY(
        plm_config_int(c, "linear_num_value_heads", PLM_CONFIG_NEEDED, 1 << 16, &k->lin_v_heads));
    PLM_TRY(plm_config_int(c, "linear_key_head_dim", PLM_CONFIG_NEEDED, 1 << 16, &k->lin_dk));
    PLM_TRY(plm_config_int(c, "linear_value_head_dim", PLM_CONFIG_NEEDED, 1 << 16, &k->lin_dv));
    return plm_config_int(c, taps, 4, 256, &k->conv_taps);
}

static plm_status read_index(const plm_config *c, plm_layer *k)
{
    size_t i;
    json_t *v;
    json_array_foreach(plm_config_get(c, "indexer_types"), i, v)
    {
        if (json_is_string(v) && strcmp(json_string_value(v), "full") != 0)
            return plm_config_refuse(c, "indexer_types", json_string_value(v));
    }
    PLM_TRY(plm_config_int(c, "index_n_heads", 0, 1 << 16, &k->index_heads));
    PLM_TRY(plm_config_int(c, "index_head_dim", 0, 1 << 16, &k->index_dim));
    return plm_config_int(c, "index_topk", 0, 1 << 24, &k->index_top_k);
}

static plm_status read_mla(const plm_config *c, plm_layer *k)
{
    bool nope = false;
    k->attn = PLM_ATTN_MLA;
    k->kv_heads = k->heads;
    PLM_TRY(plm_config_int(c, "kv_lora_rank", PLM_CONFIG_NEEDED, 1 << 20, &k->kv_lora));
    PLM_TRY(plm_config_int(c, "q_lora_rank", 0, 1 << 20, &k->q_lora));
    PLM_TRY(plm_config_int(c, "qk_nope_head_dim", PLM_CONFIG_NEEDED, 1 << 16, &k->nope));
    PLM_TRY(plm_config_int(c, "qk_rope_head_dim", PLM_CONFIG_NEEDED, 1 << 16, &k->rope_dim));
    PLM_TRY(plm_config_int(c, "v_head_dim", PLM_CONFIG_NEEDED, 1 << 16, &k->dv));
    k->dk = k->nope + k->rope_dim;
    PLM_TRY(plm_config_flag(c, "mla_use_nope", false, &nope));
    PLM_TRY(plm_config_flag(c, "mla_use_output_gate", false, &k->out_gate));
    if (!nope)
        PLM_TRY(plm_config_rope(c, k->rope_dim, false, &k->rope));
    return read_index(c, k);
}

/* DeepSeek-V4: one shared key-value head; the ratio says how many tokens an entry stands for. */
static plm_status read_compressed(const plm_config *c, int32_t layer, plm_layer *k)
{
    int64_t ratio = -1;
    double theta = 0;
    const char *name = NULL;
    int32_t dims = 64;
    k->sinks = plm_config_trait(c, "plm_sinks");
    PLM_TRY(plm_config_int(c, "sliding_window", PLM_CONFIG_NEEDED, 1 << 30, &k->window));
    PLM_TRY(plm_config_int(c, "q_lora_rank", 0, 1 << 20, &k->q_lora));
    PLM_TRY(plm_config_int(c, "o_lora_rank", 0, 1 << 20, &k->o_lora));
    PLM_TRY(plm_config_int(c, "o_groups", 0, 1 << 16, &k->o_groups));
    PLM_TRY(plm_config_int(c, "qk_rope_head_dim", 64, 1 << 16, &dims));
    PLM_TRY(plm_config_int_at(c, "compress_ratios", layer, &ratio));
    if (ratio < 0) {
        PLM_TRY(plm_config_layer_type(c, "layer_types", layer, &name));
        const json_t *rates = plm_config_get(c, "compress_rates");
        const json_t *rate = name != NULL ? json_object_get(rates, name) : NULL;
        if (!json_is_integer(rate))
            return plm_config_refuse(c, "compress_rates", name != NULL ? name : "missing");
        ratio = json_integer_value(rate);
    }
    if (ratio < 0 || ratio > 1 << 16)
        return plm_config_refuse(c, "compress_ratios", "out of range");
    k->ratio = (int32_t)ratio;
    PLM_TRY(plm_config_rope(c, dims, ratio == 0, &k->rope));
    if (ratio == 0) { /* windowed keys are not extended */
        plm_rope plain = {.theta = k->rope.theta, .dims = dims, .interleaved = true};
        k->rope = plain;
        return PLM_OK;
    }
    PLM_TRY(plm_config_real(c, "compress_rope_theta", k->rope.theta, &theta));
    k->rope.theta = theta;
    return ratio == 4 ? read_index(c, k) : PLM_OK; /* the lightly compressed layers select */
}

static plm_status read_biases(const plm_config *c, plm_layer *k)
{
    bool all = plm_config_trait(c, "plm_all_bias"), bias = false, out = false;
    PLM_TRY(plm_config_flag(c, "attention_bias|use_bias|bias|enable_bias", all, &bias));
    out =
        (bias && !plm_config_trait(c, "plm_bias_qkv_only")) || plm_config_trait(c, "plm_out_bias");
    PLM_TRY(plm_config_flag(c, "attention_out_bias", out, &out));
    PLM_TRY(plm_config_flag(c, "qkv_bias|use_qkv_bias|plm_qkv_bias", bias, &bias));
    k->bias_q = k->bias_k = k->bias_v = bias;
    k->bias_o = out;
    return PLM_OK;
}

static plm_status read_qk_norm(const plm_config *c, bool rope, plm_layer *k)
{
    const char *kind = plm_config_trait_text(c, "plm_qk_norm", NULL);
    const char *by_flag = plm_config_trait_text(c, "plm_qk_flag", NULL);
    const char *type = NULL;
    bool use = false, layer_norm = false;
    PLM_TRY(plm_config_text(c, "qk_norm_type", NULL, &type));
    if (type != NULL && strcmp(type, "per_layer") == 0)
        by_flag = "full";
    else if (type != NULL && strcmp(type, "per_head") == 0)
        by_flag = "head";
    else if (type != NULL)
        return plm_config_refuse(c, "qk_norm_type", type);
    PLM_TRY(plm_config_flag(c, "use_qk_norm|qk_norm", kind != NULL, &use));
    PLM_TRY(plm_config_flag(c, "qk_layernorm|qk_ln", false, &layer_norm));
    if (layer_norm && kind == NULL && by_flag == NULL)
        return plm_config_refuse(c, "key", "qk_layernorm");
    if (kind == NULL && (use || layer_norm)) /* where nothing else is known, one norm a head */
        kind = by_flag != NULL ? by_flag : "head";
    if (kind == NULL)
        return PLM_OK;
    if (strcmp(kind, "l2") == 0 && !rope)
        return PLM_OK; /* Llama-4 normalises the rotated layers only */
    k->qk_norm = strcmp(kind, "full") == 0 ? PLM_QK_FULL
                 : strcmp(kind, "l2") == 0 ? PLM_QK_L2
                                           : PLM_QK_HEAD;
    k->qk_norm_after_rope = plm_config_trait(c, "plm_qk_after_rope");
    return PLM_OK;
}

static plm_status read_scale(const plm_config *c, plm_layer *k)
{
    double scalar = 0;
    PLM_TRY(plm_config_real(c, "attn_logit_softcapping", 0, &k->softcap));
    PLM_TRY(plm_config_real(c, "query_pre_attn_scalar", 0, &scalar));
    PLM_TRY(plm_config_real(c, "attention_multiplier", 0, &k->attn_scale));
    if (scalar > 0 && scalar != k->dk)
        k->attn_scale = 1 / sqrt(scalar);
    if (plm_config_trait(c, "plm_attn_scale_one"))
        k->attn_scale = 1;
    return PLM_OK;
}

/* Gemma-4: full layers have heads of their own width and number, and V equals K's projection. */
static plm_status read_global(const plm_config *c, plm_layer *k)
{
    if (k->attn != PLM_ATTN_FULL)
        return PLM_OK;
    if (!plm_config_has(c, "global_head_dim") && !plm_config_has(c, "attention_k_eq_v"))
        return PLM_OK;
    PLM_TRY(plm_config_int(c, "global_head_dim", k->dk, 1 << 16, &k->dk));
    PLM_TRY(plm_config_flag(c, "attention_k_eq_v", false, &k->k_eq_v));
    if (k->k_eq_v)
        PLM_TRY(
            plm_config_int(c, "num_global_key_value_heads", k->kv_heads, 1 << 16, &k->kv_heads));
    k->dv = k->dk;
    return PLM_OK;
}

/* Window, and heads of their own that windowed layers have in some families (MiMo). */
static plm_status read_windowed(const plm_config *c, plm_layer *k)
{
    if (k->attn == PLM_ATTN_SLIDING) {
        PLM_TRY(plm_config_int(c, "swa_num_attention_heads", k->heads, 1 << 16, &k->heads));
        PLM_TRY(plm_config_int(c, "swa_num_key_value_heads", k->kv_heads, 1 << 16, &k->kv_heads));
        PLM_TRY(plm_config_int(c, "swa_head_dim", k->dk, 1 << 16, &k->dk));
        PLM_TRY(plm_config_int(c, "swa_v_head_dim", k->dv, 1 << 16, &k->dv));
        return plm_config_int(c, "sliding_window|window_size", PLM_CONFIG_NEEDED, 1 << 30,
                              &k->window);
    }
    if (k->attn == PLM_ATTN_CHUNKED)
        return plm_config_int(c, "attention_chunk_size", PLM_CONFIG_NEEDED, 1 << 30, &k->window);
    return PLM_OK;
}

static plm_status rotates(const plm_config *c, int32_t layer, const plm_layer *k, bool *rope)
{
    int64_t flag = -1;
    if (plm_config_trait(c, "plm_nope_full") && k->attn == PLM_ATTN_FULL &&
        plm_config_has(c, "sliding_window"))
        *rope = false;
    if (plm_config_trait(c, "plm_llama4"))
        return PLM_OK;
    PLM_TRY(plm_config_int_at(c, "no_rope_layers", layer, &flag));
    if (flag == 0)
        *rope = false;
    const char *kind = NULL;
    PLM_TRY(plm_config_text(c, "position_embedding_type", NULL, &kind));
    if (kind != NULL && strcmp(kind, "nope") == 0)
        *rope = false;
    else if (kind != NULL && strncmp(kind, "rope", 4) != 0 && strcmp(kind, "rotary") != 0)
        return plm_config_refuse(c, "position_embedding_type", kind);
    else if (kind == NULL && plm_config_trait(c, "plm_rope_said"))
        *rope = false;
    return PLM_OK;
}

/* A rotary base for each layer (Granite with windows); 0: the layer does not rotate. */
static plm_status read_layer_theta(const plm_config *c, int32_t layer, plm_layer *k)
{
    const json_t *list = plm_config_get(c, "layer_rope_theta");
    if (!json_is_array(list))
        return PLM_OK;
    const json_t *v = json_array_get(list, (size_t)layer);
    double theta = json_is_number(v) ? json_number_value(v) : 0;
    if (!(json_is_number(v) || json_is_null(v)) || !(theta >= 0 && theta < 1e15))
        return plm_config_bad(c, "layer_rope_theta", "a number for each layer");
    k->rope.theta = theta;
    if (!(theta > 0))
        k->rope = (plm_rope){0};
    return PLM_OK;
}

/* Gates on the attention's output, and learned sinks. */
static plm_status read_gates(const plm_config *c, plm_layer *k)
{
    const char *sinks = plm_config_trait_text(c, "plm_sinks", NULL);
    PLM_TRY(
        plm_config_flag(c, "attn_output_gate", plm_config_trait(c, "plm_out_gate"), &k->out_gate));
    if (plm_config_trait(c, "plm_head_gate"))
        PLM_TRY(plm_config_flag(c, "gating|use_attention_gate", true, &k->gate_per_head));
    k->sinks = sinks != NULL ? (strcmp(sinks, "sliding") == 0) == (k->attn == PLM_ATTN_SLIDING)
                             : plm_config_trait(c, "plm_sinks");
    return PLM_OK;
}

/* MiniMax-M3: which layers choose blocks, one flag a layer or their type's name. */
static plm_status read_blocks(const plm_config *c, int32_t layer, plm_layer *k)
{
    plm_config inner = *c;
    const json_t *own = plm_config_get(c, "sparse_attention_config");
    const char *type = NULL;
    int64_t flag = -1;
    if (!plm_config_trait(c, "plm_blocks"))
        return PLM_OK;
    if (json_is_object(own))
        inner.text = own;
    PLM_TRY(plm_config_int_at(&inner, "sparse_attention_freq", layer, &flag));
    if (flag < 0) {
        PLM_TRY(plm_config_layer_type(c, "layer_types", layer, &type));
        flag = type != NULL && strcmp(type, "minimax_m3_sparse") == 0;
    }
    if (flag == 0)
        return PLM_OK;
    PLM_TRY(plm_config_int(&inner, "index_n_heads|sparse_num_index_heads", PLM_CONFIG_NEEDED,
                           1 << 16, &k->index_heads));
    PLM_TRY(plm_config_int(&inner, "index_head_dim|sparse_index_dim", PLM_CONFIG_NEEDED, 1 << 16,
                           &k->index_dim));
    PLM_TRY(plm_config_int(&inner, "index_block_size|sparse_block_size", PLM_CONFIG_NEEDED, 1 << 24,
                           &k->index_block));
    return plm_config_int(&inner, "index_topk_blocks|sparse_topk_blocks", PLM_CONFIG_NEEDED,
                          1 << 24, &k->index_top_k);
}

plm_status plm_config_attention(const plm_config *c, int32_t layer, plm_layer *k)
{
    bool rope = true, alibi = false;
    if (plm_config_trait(c, "plm_mamba_all")) {
        k->attn = PLM_ATTN_MAMBA2;
        return read_recurrent(c, k);
    }
    PLM_TRY(plm_config_kind(c, layer, &k->attn, &rope));
    bool plain =
        k->attn == PLM_ATTN_FULL || k->attn == PLM_ATTN_SLIDING || k->attn == PLM_ATTN_CHUNKED;
    if (!plain && !c->known) /* gates, norms and convolutions differ from family to family */
        return plm_config_refuse(c, "mixer (layer_types, linear_attn_config) of model_type",
                                 c->type);
    if (k->attn == PLM_ATTN_NONE)
        return PLM_OK;
    if (k->attn == PLM_ATTN_GATED_DELTA || k->attn == PLM_ATTN_KDA || k->attn == PLM_ATTN_MAMBA2 ||
        k->attn == PLM_ATTN_SHORT_CONV)
        return read_recurrent(c, k);
    k->heads = c->heads;
    k->kv_heads = c->kv_heads;
    k->dk = k->dv = c->head_dim;
    PLM_TRY(read_biases(c, k));
    if (k->attn == PLM_ATTN_COMPRESSED)
        return read_compressed(c, layer, k);
    if (plm_config_has(c, "kv_lora_rank") && k->attn != PLM_ATTN_FULL)
        return plm_config_refuse(c, "windowed layers with key", "kv_lora_rank");
    if (plm_config_has(c, "kv_lora_rank"))
        return read_mla(c, k);
    PLM_TRY(plm_config_int(c, "v_head_dim", k->dk, 1 << 16, &k->dv));
    PLM_TRY(read_windowed(c, k));
    PLM_TRY(read_global(c, k));
    PLM_TRY(rotates(c, layer, k, &rope));
    PLM_TRY(plm_config_flag(c, "alibi", plm_config_trait(c, "plm_alibi"), &alibi));
    k->alibi = alibi;
    if (rope && !alibi)
        PLM_TRY(plm_config_rope(c, k->dk, k->attn == PLM_ATTN_SLIDING, &k->rope));
    PLM_TRY(read_qk_norm(c, rope, k));
    PLM_TRY(read_scale(c, k));
    PLM_TRY(read_layer_theta(c, layer, k));
    PLM_TRY(read_gates(c, k));
    return read_blocks(c, layer, k);
}
