/* config_keys.c - keys of a config.json that would change the model and that nothing here reads.
**
** A config may hold any number of keys that do not matter. One that names a mixer, a kind of layer
*or
** of expert does; so a key whose name has such a part, which is not in the lists below and whose
*value
** is not empty, stops the reading by its name.
*/
#include <string.h>

#include "core/model/config_keys.h"

/* Parts of names that stand for structure. */
static const char *const part[] = {
    "attn",   "attention", "layer",  "expert",   "moe",      "ssm",      "mamba",     "conv",
    "memory", "block",     "recurr", "lru",      "mixer",    "lora",     "window",    "index",
    "hybrid", "state_s",   "engram", "compress", "altup",    "laurel",   "encoder",   "rwkv",
    "retent", "delta",     "hyena",  "mla_",     "kv_share", "cross_",   "_ratio",    "linear_num",
    "_rank",  "gate_",     "gating", "gated",    "loop",     "cycles",   "ngram",     "adapter",
    "hc_",    "sub_norm",  "stack",  "lambda",   "_norm_",   "sandwich", "post_norm", "sink",
};

/* Parts of names of training, of storage and of numerics: such a key never matters. */
static const char *const harmless[] = {
    "dropout",     "pdrop",     "_loss",   "loss_",         "coef",           "token_id",
    "_init",       "init_",     "_std",    "dtype",         "implementation", "jitter",
    "capacity",    "fp32",      "float32", "_eps",          "fused",          "checkpoint",
    "token_index", "drop_path", "aux_",    "output_router", "output_hidden",  "output_attentions",
};

/* Read by config_*.c, or known not to change sizes or arithmetic. Sorted by purpose, not by name.
 */
static const char *const fine[] = {
    /* read */
    "num_hidden_layers",
    "n_layer",
    "num_layers",
    "n_layers",
    "layer_types",
    "attn_config",
    "per_layer_config",
    "num_attention_heads_per_layer",
    "attention_heads",
    "attention_layers",
    "attention_types",
    "attn_layer_indices",
    "full_attn_idxs",
    "hybrid_layer_pattern",
    "global_attn_every_n_layers",
    "window_size",
    "swa_num_attention_heads",
    "layer_rope_theta",
    "attn_output_gate",
    "gating",
    "use_attention_gate",
    "use_sandwich_norm",
    "use_post_norm",
    "use_qk_norm",
    "qk_norm_type",
    "expert_selection_fn",
    "moe_top_k",
    "moe_router_topk",
    "num_selected_experts",
    "num_activated_experts",
    "n_activated_experts",
    "num_experts_per_topk",
    "n_experts",
    "expert_intermediate_size",
    "moe_ffn_dim",
    "share_expert_dim",
    "moe_n_shared_experts",
    "shared_experts_intermediate_size",
    "moe_router_score_function",
    "moe_router_use_correction_bias",
    "moe_routed_scaling_factor",
    "moe_router_scaling_factor",
    "state_size",
    "time_step_rank",
    "index_block_size",
    "index_topk_blocks",
    "sparse_attention_config",
    "do_layer_norm_before",
    "mamba_n_heads",
    "mamba_d_head",
    "mamba_d_state",
    "mamba_d_conv",
    "mamba_conv_bias",
    "conv_L_cache",
    "conv_bias",
    "block_auto_adjust_ff_dim",
    "block_ffn_dim_multiplier",
    "block_multiple_of",
    "linear_head_dim",
    "expansion_ratio",
    "prefix_dense_intermediate_size",
    "norm_topk_prob",
    "rms_norm_eps",
    "hc_mult",
    "layers_block_type",
    "mlp_layer_types",
    "hybrid_override_pattern",
    "sliding_window",
    "sliding_window_pattern",
    "_sliding_window_pattern",
    "use_sliding_window",
    "max_window_layers",
    "attention_chunk_size",
    "no_rope_layers",
    "no_rope_layer_interval",
    "num_attention_heads",
    "attention_bias",
    "attention_head_dim",
    "attention_out_bias",
    "query_pre_attn_scalar",
    "attn_logit_softcapping",
    "attention_multiplier",
    "attention_k_eq_v",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "layernorm_epsilon",
    "num_local_experts",
    "n_routed_experts",
    "num_experts",
    "moe_num_experts",
    "num_routed_experts",
    "num_experts_per_tok",
    "num_experts_per_token",
    "moe_topk",
    "moe_k",
    "top_k_experts",
    "experts_per_token",
    "moe_intermediate_size",
    "expert_ffn_hidden_size",
    "moe_ffn_hidden_size",
    "n_shared_experts",
    "num_shared_expert",
    "num_shared_experts",
    "moe_num_shared_experts",
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "first_k_dense_replace",
    "moe_layer_start_index",
    "num_dense_layers",
    "decoder_sparse_step",
    "interleave_moe_layer_step",
    "moe_layer_freq",
    "moe_layer_interval",
    "moe_layers",
    "mlp_only_layers",
    "moe_renormalize",
    "moe_router_activation_func",
    "use_expert_bias",
    "num_expert_group",
    "kv_lora_rank",
    "q_lora_rank",
    "o_lora_rank",
    "index_n_heads",
    "index_head_dim",
    "index_topk",
    "compress_ratios",
    "compress_rates",
    "compress_rope_theta",
    "num_hash_layers",
    "n_hash_layers",
    "full_attention_interval",
    "linear_attn_config",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_conv_kernel_dim",
    "linear_num_heads",
    "mamba_num_heads",
    "mamba_head_dim",
    "mamba_n_groups",
    "ssm_state_size",
    "conv_kernel",
    "mla_use_nope",
    "mla_use_output_gate",
    "num_nextn_predict_layers",
    "mtp_num_hidden_layers",
    "enable_moe_block",
    "moe_latent_size",
    "parallel_attn",
    "num_ln_in_parallel_attn",
    "compression_config",
    "mtp_transformer_layers",
    "attn_type_list",
    /* without effect here */
    "full_attn_mod",
    "indexer_rope_interleave",
    "layer_switch",
    "order_of_interleaved_layers",
    "moe_gate",
    "moe_use_aux_free",
    "num_expert_groups",
    "layernorm_full_attention_beta",
    "layernorm_linear_attention_beta",
    "layernorm_mlp_beta",
    "layernorm_linear_attention_alpha",
    "layernorm_mlp_alpha",
    "block_dim",
    "block_ff_dim",
    "block_use_swiglu",
    "block_use_xavier_init",
    "conv_dim",
    "conv_dim_out",
    "conv_use_xavier_init",
    "use_parallel_block",
    "hybrid_block_size",
    "use_gated_activation",
    "use_gated_mlp",
    "expert_parallel_size",
    "moe_parallel_size",
    "ep_size",
    "use_attention_mask",
    "use_flash_attention",
    "index_local_blocks",
    "attention_value_scale",
    "prefix_dense_sliding_window_pattern",
    "shared_expert_combination_strategy",
    "add_swa_attention_sink_bias",
    "add_full_attention_sink_bias",
    "hc_sinkhorn_iters",
    "router_logit_softcapping",
    "moe_router_logit_softcapping",
    "moe_apply_router_weight_on_input",
    "moe_normalize_expert_weights",
    "final_norm_type",
    "swa_rope_theta",
    "attn_impl",
    "use_bidirectional_attention",
    "rescale_prenorm_residual",
    "pre_norm",
    "mamba_chunk_size_limit",
    "attention_dropout",
    "attn_pdrop",
    "attn_implementation",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "attn_temperature_tuning",
    "attn_scale",
    "attention_dropout_prob",
    "attention_probs_dropout_prob",
    "output_attentions",
    "add_cross_attention",
    "cross_attention_hidden_size",
    "is_encoder_decoder",
    "layerdrop",
    "layer_norm_elementwise_affine",
    "moe_aux_loss_coeff",
    "moe_layer_num_skipped",
    "moe_jitter_eps",
    "moe_dropout",
    "moe_drop_tokens",
    "moe_random_routing_dropped_token",
    "moe_router_enable_expert_bias",
    "moe_shared_expert_overlap",
    "mamba_ssm_cache_dtype",
    "mamba_hidden_act",
    "mamba_proj_bias",
    "mamba_ssm_dtype",
    "use_mamba_kernels",
    "use_conv_bias",
    "mamba_expand",
    "mtp_layers_block_type",
    "mtp_hybrid_override_pattern",
    "encoder_no_repeat_ngram_size",
    "decoder_start_token_id",
    "chunk_size_feed_forward",
    "apply_residual_connection_post_layernorm",
    "scale_attn_weights",
    "scale_attn_by_inverse_layer_idx",
    "reorder_and_upcast_attn",
    "scale_attention_softmax_in_fp32",
    "attention_softmax_in_fp32",
    "use_parallel_residual",
    "moe_router_aux_loss_coef",
    "mamba_chunk_size",
    "moe_norm_min",
    "moe_layer_end_index",
    "tf_legacy_loss",
    "num_key_value_layers",
    "attn_output_gate",
    "attn_gate",
    "index_topk_freq",
    "indexer_types",
    "moe_router_type",
    "layer_norm_bias",
    "layernorm_full_attention_alpha",
    "n_layer_eval",
    "moe_router_dtype",
    "mla_scale",
    "aux_loss_alpha",
    "shared_moe_mode",
    "deltanet_dtype",
    "mtp_use_dedicated_embeddings",
    "moe_gate_dtype",
    "use_fused_attn",
    "moe_aux_loss_coef",
    "moe_aux_loss_alpha",
    "moe_expert_capacity_factor",
    "moe_z_loss_coef",
    "window_attention_dropout",
    "sliding_window_layers",
    "sliding_window_size",
    "vocab_size_per_layer_input",
    "shared_intermediate_size",
    "router_aux_loss_coef",
    "vit_add_patchifier_window",
};

/* Constructs that are refused whenever the key says anything. */
static const char *const refused[] = {
    "use_cla",
    "use_double_wide_mlp",
    "hidden_size_per_layer_input",
    "num_kv_shared_layers",
    "zero_expert_num",
    "cross_attention_layers",
    "add_cross_attention",
    "altup_num_inputs",
    "laurel_rank",
    "attn_res_block_size",
    "scale_attn_by_inverse_layer_idx",
    "apply_residual_connection_post_layernorm",
    "clip_qkv",
};

bool plm_config_value_empty(const json_t *v)
{
    if (json_is_integer(v))
        return json_integer_value(v) == 0;
    if (json_is_real(v))
        return json_real_value(v) == 0;
    if (json_is_string(v))
        return json_string_length(v) == 0;
    if (json_is_array(v))
        return json_array_size(v) == 0;
    if (json_is_object(v))
        return json_object_size(v) == 0;
    return !json_is_true(v);
}

static bool in_list(const char *const *list, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], key) == 0)
            return true;
    return false;
}

static bool holds_part(const char *const *list, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(key, list[i]) != NULL)
            return true;
    return false;
}
#define IN_LIST(list, key) in_list((list), sizeof(list) / sizeof *(list), (key))

bool plm_config_key_matters(const char *key, const json_t *value)
{
    if (plm_config_value_empty(value))
        return false;
    if (IN_LIST(refused, key))
        return true;
    if (IN_LIST(fine, key) || holds_part(harmless, sizeof harmless / sizeof *harmless, key))
        return false;
    return holds_part(part, sizeof part / sizeof *part, key);
}
