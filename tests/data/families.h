/* families.h - {family, parameters, config.json}: small models of families, each with the keys
** that size it or change its layers. Parameters: counted on the meta device by transformers 5.24;
** the selection biases of routers, which it keeps as buffers, are added. */
    {"afmoe", INT64_C(3023130432),
     "{\"attention_bias\":false,\"global_attn_every_n_layers\":4,\"head_dim\":128,\"hidden_a"
     "ct\":\"silu\",\"hidden_size\":2048,\"intermediate_size\":6144,\"layer_types\":[\"slidi"
     "ng_attention\",\"sliding_attention\",\"sliding_attention\",\"full_attention\",\"slidin"
     "g_attention\",\"sliding_attention\"],\"max_position_embeddings\":512,\"model_type\":\""
     "afmoe\",\"moe_intermediate_size\":1408,\"mup_enabled\":false,\"num_attention_heads\":1"
     "6,\"num_dense_layers\":1,\"num_experts\":64,\"num_experts_per_tok\":6,\"num_hidden_lay"
     "ers\":6,\"num_key_value_heads\":16,\"num_shared_experts\":2,\"rms_norm_eps\":1e-05,\"r"
     "ope_parameters\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"},\"route_scale\":1."
     "0,\"sliding_window\":1024,\"tie_word_embeddings\":false,\"vocab_size\":1000}"},
    {"apertus", INT64_C(1115543052),
     "{\"attention_bias\":false,\"hidden_act\":\"xielu\",\"hidden_size\":4096,\"intermediate"
     "_size\":14336,\"max_position_embeddings\":512,\"model_type\":\"apertus\",\"num_attenti"
     "on_heads\":32,\"num_hidden_layers\":6,\"num_key_value_heads\":32,\"rms_norm_eps\":1e-0"
     "5,\"rope_parameters\":{\"factor\":8.0,\"high_freq_factor\":4.0,\"low_freq_factor\":1.0"
     ",\"original_max_position_embeddings\":8192,\"rope_theta\":12000000.0,\"rope_type\":\"l"
     "lama3\"},\"tie_word_embeddings\":false,\"vocab_size\":1000}"},
    {"arcee", INT64_C(728670720),
     "{\"attention_bias\":false,\"head_dim\":80,\"hidden_act\":\"relu2\",\"hidden_size\":256"
     "0,\"intermediate_size\":18432,\"max_position_embeddings\":512,\"mlp_bias\":false,\"mod"
     "el_type\":\"arcee\",\"num_attention_heads\":32,\"num_hidden_layers\":6,\"num_key_value"
     "_heads\":32,\"rms_norm_eps\":1e-05,\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_"
     "type\":\"default\"},\"tie_word_embeddings\":false,\"vocab_size\":1000}"},
    {"aria_text", INT64_C(3430993920),
     "{\"attention_bias\":false,\"head_dim\":128,\"hidden_act\":\"silu\",\"hidden_size\":409"
     "6,\"intermediate_size\":4096,\"max_position_embeddings\":512,\"mlp_bias\":false,\"mode"
     "l_type\":\"aria_text\",\"moe_num_experts\":8,\"moe_num_shared_experts\":2,\"moe_topk\""
     ":2,\"num_attention_heads\":32,\"num_hidden_layers\":6,\"num_key_value_heads\":32,\"rms"
     "_norm_eps\":1e-06,\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_type\":\"default"
     "\"},\"tie_word_embeddings\":false,\"vocab_size\":1000}"},
    {"axk1", INT64_C(4761561168),
     "{\"attention_bias\":false,\"head_dim\":64,\"hidden_act\":\"silu\",\"hidden_size\":7168"
     ",\"intermediate_size\":18432,\"kv_lora_rank\":512,\"max_position_embeddings\":512,\"ml"
     "p_layer_types\":[\"dense\",\"sparse\",\"sparse\",\"sparse\",\"sparse\",\"sparse\"],\"m"
     "odel_type\":\"axk1\",\"moe_intermediate_size\":2048,\"n_group\":8,\"n_routed_experts\""
     ":16,\"n_shared_experts\":1,\"norm_topk_prob\":true,\"num_attention_heads\":64,\"num_ex"
     "perts_per_tok\":8,\"num_hidden_layers\":6,\"num_key_value_heads\":64,\"q_lora_rank\":1"
     "536,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"rms_norm_eps\":1e-06,\"rope_int"
     "erleave\":true,\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"},"
     "\"routed_scaling_factor\":2.5,\"tie_word_embeddings\":false,\"topk_group\":4,\"v_head_"
     "dim\":128,\"vocab_size\":1000}"},
    {"bamba", INT64_C(1562443264),
     "{\"attention_bias\":false,\"attn_layer_indices\":[2,5],\"hidden_act\":\"silu\",\"hidde"
     "n_size\":4096,\"intermediate_size\":14336,\"mamba_conv_bias\":true,\"mamba_d_conv\":4,"
     "\"mamba_d_head\":64,\"mamba_d_state\":256,\"mamba_expand\":2,\"mamba_n_groups\":1,\"ma"
     "mba_n_heads\":128,\"mamba_proj_bias\":false,\"max_position_embeddings\":512,\"mlp_bias"
     "\":false,\"model_type\":\"bamba\",\"num_attention_heads\":32,\"num_hidden_layers\":6,"
     "\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,\"rope_parameters\":{\"partial_rotary"
     "_factor\":0.5,\"rope_theta\":10000.0,\"rope_type\":\"default\"},\"tie_word_embeddings"
     "\":false,\"vocab_size\":1000}"},
    {"biogpt", INT64_C(77129728),
     "{\"hidden_act\":\"gelu\",\"hidden_size\":1024,\"intermediate_size\":4096,\"layer_norm_"
     "eps\":1e-12,\"max_position_embeddings\":512,\"model_type\":\"biogpt\",\"num_attention_"
     "heads\":16,\"num_hidden_layers\":6,\"scale_embedding\":true,\"tie_word_embeddings\":tr"
     "ue,\"vocab_size\":1000}"},
    {"codegen", INT64_C(1216332776),
     "{\"activation_function\":\"gelu_new\",\"layer_norm_epsilon\":1e-05,\"model_type\":\"co"
     "degen\",\"n_ctx\":512,\"n_embd\":4096,\"n_head\":16,\"n_layer\":6,\"n_positions\":512,"
     "\"rotary_dim\":64,\"tie_word_embeddings\":false,\"vocab_size\":1000}"},
    {"cohere", INT64_C(435150848),
     "{\"attention_bias\":false,\"hidden_act\":\"silu\",\"hidden_size\":1024,\"intermediate_"
     "size\":22528,\"layer_norm_eps\":1e-05,\"logit_scale\":0.0625,\"max_position_embeddings"
     "\":512,\"model_type\":\"cohere\",\"num_attention_heads\":8,\"num_hidden_layers\":6,\"n"
     "um_key_value_heads\":4,\"rope_parameters\":{\"rope_theta\":500000.0,\"rope_type\":\"de"
     "fault\"},\"tie_word_embeddings\":true,\"use_qk_norm\":true,\"vocab_size\":1000}"},
    {"cohere2_moe", INT64_C(28194365440),
     "{\"attention_bias\":false,\"expert_selection_fn\":\"softmax\",\"head_dim\":128,\"hidde"
     "n_act\":\"silu\",\"hidden_size\":8192,\"intermediate_size\":22528,\"layer_norm_eps\":1"
     "e-05,\"layer_types\":[\"sliding_attention\",\"sliding_attention\",\"sliding_attention"
     "\",\"full_attention\",\"sliding_attention\",\"sliding_attention\"],\"logit_scale\":0.0"
     "625,\"max_position_embeddings\":512,\"mlp_layer_types\":[\"sparse\",\"sparse\",\"spars"
     "e\",\"sparse\",\"sparse\",\"sparse\"],\"model_type\":\"cohere2_moe\",\"norm_topk_prob"
     "\":true,\"num_attention_heads\":64,\"num_experts\":8,\"num_experts_per_tok\":2,\"num_h"
     "idden_layers\":6,\"num_key_value_heads\":64,\"num_shared_experts\":0,\"prefix_dense_sl"
     "iding_window_pattern\":1,\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_type\":\"d"
     "efault\"},\"rope_theta\":10000.0,\"shared_expert_combination_strategy\":\"average\",\""
     "sliding_window\":4096,\"sliding_window_pattern\":4,\"tie_word_embeddings\":true,\"voca"
     "b_size\":1000}"},
    {"dbrx", INT64_C(230713344),
     "{\"attn_config\":{\"kv_n_heads\":8,\"clip_qkv\":8.0,\"rope_theta\":500000},\"d_model\""
     ":2048,\"ffn_config\":{\"ffn_hidden_size\":512,\"moe_num_experts\":8,\"moe_top_k\":2,\""
     "hidden_size\":2048},\"max_seq_len\":2048,\"model_type\":\"dbrx\",\"n_heads\":16,\"n_la"
     "yers\":6,\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"},\"tie_"
     "word_embeddings\":false,\"vocab_size\":1000}"},
    {"deepseek_v2", INT64_C(6084632576),
     "{\"attention_bias\":false,\"first_k_dense_replace\":1,\"head_dim\":64,\"hidden_act\":"
     "\"silu\",\"hidden_size\":4096,\"intermediate_size\":11008,\"kv_lora_rank\":512,\"max_p"
     "osition_embeddings\":512,\"mlp_bias\":false,\"model_type\":\"deepseek_v2\",\"moe_inter"
     "mediate_size\":1407,\"n_routed_experts\":64,\"n_shared_experts\":2,\"norm_topk_prob\":"
     "false,\"num_attention_heads\":32,\"num_experts_per_tok\":6,\"num_hidden_layers\":6,\"n"
     "um_key_value_heads\":32,\"q_lora_rank\":1536,\"qk_nope_head_dim\":128,\"qk_rope_head_d"
     "im\":64,\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_type"
     "\":\"default\"},\"routed_scaling_factor\":1.0,\"tie_word_embeddings\":false,\"topk_met"
     "hod\":\"greedy\",\"v_head_dim\":128,\"vocab_size\":1000}"},
    {"exaone4", INT64_C(1618859520),
     "{\"hidden_act\":\"silu\",\"hidden_size\":4096,\"intermediate_size\":16384,\"layer_type"
     "s\":[\"sliding_attention\",\"sliding_attention\",\"sliding_attention\",\"full_attentio"
     "n\",\"sliding_attention\",\"sliding_attention\"],\"max_position_embeddings\":512,\"mod"
     "el_type\":\"exaone4\",\"num_attention_heads\":32,\"num_hidden_layers\":6,\"num_key_val"
     "ue_heads\":32,\"rms_norm_eps\":1e-05,\"rope_parameters\":{\"rope_theta\":10000.0,\"rop"
     "e_type\":\"default\"},\"sliding_window\":4096,\"sliding_window_pattern\":4,\"tie_word_"
     "embeddings\":false,\"vocab_size\":1000}"},
    {"exaone_moe", INT64_C(1682101840),
     "{\"first_k_dense_replace\":1,\"hidden_act\":\"silu\",\"hidden_size\":4096,\"intermedia"
     "te_size\":16384,\"layer_types\":[\"sliding_attention\",\"sliding_attention\",\"sliding"
     "_attention\",\"full_attention\",\"sliding_attention\",\"sliding_attention\"],\"max_pos"
     "ition_embeddings\":512,\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\",\"sparse\""
     ",\"sparse\",\"sparse\"],\"model_type\":\"exaone_moe\",\"moe_intermediate_size\":1024,"
     "\"n_group\":1,\"norm_topk_prob\":true,\"num_attention_heads\":32,\"num_experts\":16,\""
     "num_experts_per_tok\":8,\"num_hidden_layers\":6,\"num_key_value_heads\":32,\"num_share"
     "d_experts\":1,\"rms_norm_eps\":1e-05,\"rope_parameters\":{\"rope_theta\":10000.0,\"rop"
     "e_type\":\"default\"},\"routed_scaling_factor\":2.5,\"sliding_window\":4096,\"sliding_"
     "window_pattern\":4,\"tie_word_embeddings\":false,\"topk_group\":1,\"vocab_size\":1000}"},
    {"flex_olmo", INT64_C(6092304384),
     "{\"attention_bias\":false,\"hidden_act\":\"silu\",\"hidden_size\":4096,\"intermediate_"
     "size\":11008,\"max_position_embeddings\":512,\"model_type\":\"flex_olmo\",\"norm_topk_"
     "prob\":false,\"num_attention_heads\":32,\"num_experts\":7,\"num_experts_per_tok\":5,\""
     "num_hidden_layers\":6,\"num_key_value_heads\":32,\"rms_norm_eps\":1e-06,\"rope_paramet"
     "ers\":{\"rope_theta\":500000.0,\"rope_type\":\"default\"},\"tie_word_embeddings\":fals"
     "e,\"vocab_size\":1000}"},
    {"flint", INT64_C(419491520),
     "{\"attention_bias\":false,\"decoder_sparse_step\":1,\"head_dim\":128,\"hidden_act\":\""
     "silu\",\"hidden_size\":2048,\"intermediate_size\":6144,\"layer_types\":[\"full_attenti"
     "on\",\"full_attention\",\"sliding_attention\",\"sliding_attention\",\"sliding_attentio"
     "n\",\"full_attention\"],\"max_position_embeddings\":512,\"mlp_only_layers\":[0,1],\"mo"
     "del_type\":\"flint\",\"moe_intermediate_size\":512,\"norm_topk_prob\":true,\"num_atten"
     "tion_heads\":32,\"num_experts\":16,\"num_experts_per_tok\":6,\"num_hidden_layers\":6,"
     "\"num_key_value_heads\":4,\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"rope_theta\":1"
     "0000.0,\"rope_type\":\"default\"},\"shared_expert_intermediate_size\":1024,\"sliding_w"
     "indow\":513,\"tie_word_embeddings\":false,\"vocab_size\":1000}"},
    {"gemma4_unified_text", INT64_C(483661568),
     "{\"attention_bias\":false,\"attention_k_eq_v\":false,\"head_dim\":256,\"hidden_activat"
     "ion\":\"gelu_pytorch_tanh\",\"hidden_size\":2304,\"intermediate_size\":9216,\"layer_ty"
     "pes\":[\"sliding_attention\",\"sliding_attention\",\"sliding_attention\",\"sliding_att"
     "ention\",\"sliding_attention\",\"full_attention\"],\"max_position_embeddings\":512,\"m"
     "odel_type\":\"gemma4_unified_text\",\"num_attention_heads\":8,\"num_hidden_layers\":6,"
     "\"num_key_value_heads\":4,\"num_kv_shared_layers\":0,\"per_layer_config\":{\"05\":{\"h"
     "ead_dim\":512}},\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"full_attention\":{\"part"
     "ial_rotary_factor\":0.25,\"rope_theta\":1000000.0,\"rope_type\":\"proportional\"},\"sl"
     "iding_attention\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"}},\"sliding_window"
     "\":1024,\"tie_word_embeddings\":true,\"use_double_wide_mlp\":false,\"vocab_size\":1000"
     "}"},
    {"glm4_moe", INT64_C(11959216256),
     "{\"attention_bias\":true,\"first_k_dense_replace\":1,\"hidden_act\":\"silu\",\"hidden_"
     "size\":4096,\"intermediate_size\":10944,\"max_position_embeddings\":512,\"model_type\""
     ":\"glm4_moe\",\"moe_intermediate_size\":1408,\"n_group\":1,\"n_routed_experts\":128,\""
     "n_shared_experts\":1,\"norm_topk_prob\":true,\"num_attention_heads\":96,\"num_experts_"
     "per_tok\":8,\"num_hidden_layers\":6,\"num_key_value_heads\":8,\"num_nextn_predict_laye"
     "rs\":1,\"rms_norm_eps\":1e-05,\"rope_parameters\":{\"partial_rotary_factor\":0.5,\"rop"
     "e_theta\":10000.0,\"rope_type\":\"default\"},\"routed_scaling_factor\":1.0,\"tie_word_"
     "embeddings\":false,\"topk_group\":1,\"use_qk_norm\":true,\"vocab_size\":1000,\"head_di"
     "m\":128}"},
    {"glm4_moe_lite", INT64_C(999917136),
     "{\"attention_bias\":false,\"hidden_act\":\"silu\",\"hidden_size\":2048,\"intermediate_"
     "size\":10240,\"kv_lora_rank\":512,\"max_position_embeddings\":512,\"mlp_layer_types\":"
     "[\"dense\",\"sparse\",\"sparse\",\"sparse\",\"sparse\",\"sparse\"],\"model_type\":\"gl"
     "m4_moe_lite\",\"moe_intermediate_size\":1536,\"n_group\":1,\"n_routed_experts\":16,\"n"
     "_shared_experts\":1,\"norm_topk_prob\":true,\"num_attention_heads\":20,\"num_experts_p"
     "er_tok\":4,\"num_hidden_layers\":6,\"num_key_value_heads\":20,\"q_lora_rank\":768,\"qk"
     "_nope_head_dim\":192,\"qk_rope_head_dim\":64,\"rms_norm_eps\":1e-05,\"rope_interleave"
     "\":true,\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"},\"route"
     "d_scaling_factor\":1.8,\"tie_word_embeddings\":false,\"topk_group\":1,\"v_head_dim\":2"
     "56,\"vocab_size\":1000}"},
    {"glm_moe_dsa", INT64_C(3663690288),
     "{\"attention_bias\":false,\"first_k_dense_replace\":3,\"head_dim\":64,\"hidden_act\":"
     "\"silu\",\"hidden_size\":6144,\"index_head_dim\":128,\"index_n_heads\":32,\"index_topk"
     "\":2048,\"indexer_types\":[\"full\",\"full\",\"full\",\"full\",\"full\",\"full\"],\"in"
     "termediate_size\":12288,\"kv_lora_rank\":512,\"layer_types\":[\"indexed_attention\",\""
     "indexed_attention\",\"indexed_attention\",\"indexed_attention\",\"indexed_attention\","
     "\"indexed_attention\"],\"max_position_embeddings\":512,\"mlp_bias\":false,\"mlp_layer_"
     "types\":[\"dense\",\"dense\",\"dense\",\"sparse\",\"sparse\",\"sparse\"],\"model_type"
     "\":\"glm_moe_dsa\",\"moe_intermediate_size\":2048,\"n_group\":1,\"n_routed_experts\":1"
     "6,\"n_shared_experts\":1,\"norm_topk_prob\":true,\"num_attention_heads\":64,\"num_expe"
     "rts_per_tok\":8,\"num_hidden_layers\":6,\"num_key_value_heads\":64,\"q_lora_rank\":204"
     "8,\"qk_nope_head_dim\":192,\"qk_rope_head_dim\":64,\"rms_norm_eps\":1e-05,\"rope_param"
     "eters\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"},\"routed_scaling_factor\":2"
     ".5,\"tie_word_embeddings\":false,\"topk_group\":1,\"v_head_dim\":256,\"vocab_size\":10"
     "00}"},
    {"gpt_neo", INT64_C(305213440),
     "{\"activation_function\":\"gelu_new\",\"attention_layers\":[\"global\",\"local\",\"glo"
     "bal\",\"local\",\"global\",\"local\"],\"attention_types\":[[[\"global\",\"local\"],3]]"
     ",\"hidden_size\":2048,\"layer_norm_epsilon\":1e-05,\"max_position_embeddings\":512,\"m"
     "odel_type\":\"gpt_neo\",\"num_heads\":16,\"num_layers\":6,\"tie_word_embeddings\":true"
     ",\"vocab_size\":1000,\"window_size\":256}"},
    {"granite_swa", INT64_C(474452600),
     "{\"attention_bias\":false,\"attention_multiplier\":1.0,\"embedding_multiplier\":1.0,\""
     "hidden_act\":\"silu\",\"hidden_size\":2560,\"intermediate_size\":8192,\"layer_rope_the"
     "ta\":[0,10000.0,10000.0,0,10000.0,10000.0],\"layer_types\":[\"full_attention\",\"slidi"
     "ng_attention\",\"sliding_attention\",\"sliding_attention\",\"full_attention\",\"slidin"
     "g_attention\"],\"logits_scaling\":1.0,\"max_position_embeddings\":512,\"mlp_bias\":fal"
     "se,\"model_type\":\"granite_swa\",\"num_attention_heads\":20,\"num_hidden_layers\":6,"
     "\"num_key_value_heads\":4,\"residual_multiplier\":1.0,\"rms_norm_eps\":1e-05,\"rope_pa"
     "rameters\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"},\"sliding_window\":128,"
     "\"tie_word_embeddings\":true,\"vocab_size\":1000}"},
    {"granitemoehybrid", INT64_C(7124286976),
     "{\"attention_bias\":false,\"attention_multiplier\":1.0,\"embedding_multiplier\":1.0,\""
     "hidden_act\":\"silu\",\"hidden_size\":4096,\"intermediate_size\":11008,\"layer_types\""
     ":[\"mamba\",\"mamba\",\"attention\",\"mamba\",\"mamba\",\"attention\"],\"logits_scalin"
     "g\":1.0,\"mamba_conv_bias\":true,\"mamba_d_conv\":4,\"mamba_d_head\":64,\"mamba_d_stat"
     "e\":256,\"mamba_expand\":2,\"mamba_n_groups\":1,\"mamba_n_heads\":128,\"mamba_proj_bia"
     "s\":false,\"max_position_embeddings\":512,\"model_type\":\"granitemoehybrid\",\"num_at"
     "tention_heads\":32,\"num_experts_per_tok\":2,\"num_hidden_layers\":6,\"num_key_value_h"
     "eads\":32,\"num_local_experts\":8,\"position_embedding_type\":\"nope\",\"residual_mult"
     "iplier\":1.0,\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"rope_theta\":10000.0,\"rope"
     "_type\":\"default\"},\"shared_intermediate_size\":1024,\"tie_word_embeddings\":false,"
     "\"vocab_size\":1000}"},
    {"helium", INT64_C(486842880),
     "{\"attention_bias\":false,\"head_dim\":128,\"hidden_act\":\"silu\",\"hidden_size\":256"
     "0,\"intermediate_size\":7040,\"max_position_embeddings\":512,\"mlp_bias\":false,\"mode"
     "l_type\":\"helium\",\"num_attention_heads\":20,\"num_hidden_layers\":6,\"num_key_value"
     "_heads\":20,\"rms_norm_eps\":1e-08,\"rope_parameters\":{\"rope_theta\":100000.0,\"rope"
     "_type\":\"default\"},\"tie_word_embeddings\":false,\"vocab_size\":1000}"},
    {"hy_v3", INT64_C(2229458512),
     "{\"attention_bias\":false,\"enable_moe_fp32_combine\":true,\"head_dim\":128,\"hidden_a"
     "ct\":\"silu\",\"hidden_size\":4096,\"intermediate_size\":13312,\"max_position_embeddin"
     "gs\":512,\"mlp_bias\":false,\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\",\"spa"
     "rse\",\"sparse\",\"sparse\"],\"model_type\":\"hy_v3\",\"moe_intermediate_size\":1536,"
     "\"num_attention_heads\":64,\"num_experts\":16,\"num_experts_per_tok\":8,\"num_hidden_l"
     "ayers\":6,\"num_key_value_heads\":8,\"num_shared_experts\":1,\"rms_norm_eps\":1e-05,\""
     "rope_parameters\":{\"rope_theta\":11158840.0,\"rope_type\":\"default\"},\"router_scali"
     "ng_factor\":2.826,\"tie_word_embeddings\":false,\"vocab_size\":1000}"},
    {"hyperclovax", INT64_C(1222545408),
     "{\"attention_bias\":false,\"attention_multiplier\":0.08838834764831845,\"embedding_mul"
     "tiplier\":1.0,\"head_dim\":128,\"hidden_act\":\"silu\",\"hidden_size\":4096,\"intermed"
     "iate_size\":11008,\"logits_scaling\":1.0,\"max_position_embeddings\":512,\"mlp_bias\":"
     "false,\"model_type\":\"hyperclovax\",\"num_attention_heads\":32,\"num_hidden_layers\":"
     "6,\"num_key_value_heads\":32,\"residual_multiplier\":1.0,\"rms_norm_eps\":1e-06,\"rope"
     "_parameters\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"},\"tie_word_embeddings"
     "\":false,\"use_post_norm\":true,\"vocab_size\":1000}"},
    {"jais2", INT64_C(1336072192),
     "{\"attention_bias\":true,\"head_dim\":128,\"hidden_act\":\"relu2\",\"hidden_size\":332"
     "8,\"intermediate_size\":26624,\"layer_norm_eps\":1e-05,\"max_position_embeddings\":512"
     ",\"mlp_bias\":true,\"model_type\":\"jais2\",\"num_attention_heads\":26,\"num_hidden_la"
     "yers\":6,\"num_key_value_heads\":26,\"rope_parameters\":{\"rope_theta\":10000.0,\"rope"
     "_type\":\"default\"},\"tie_word_embeddings\":false,\"vocab_size\":1000}"},
    {"kimi_linear", INT64_C(896830064),
     "{\"attention_bias\":false,\"head_dim\":64,\"hidden_act\":\"silu\",\"hidden_size\":2304"
     ",\"intermediate_size\":9216,\"kv_lora_rank\":512,\"layer_types\":[\"linear_attention\""
     ",\"linear_attention\",\"linear_attention\",\"linear_attention\",\"full_attention\",\"l"
     "inear_attention\"],\"linear_conv_kernel_dim\":4,\"linear_head_dim\":128,\"linear_num_h"
     "eads\":32,\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\",\"sparse\",\"sparse\","
     "\"sparse\"],\"model_max_length\":1048576,\"model_type\":\"kimi_linear\",\"moe_intermed"
     "iate_size\":1024,\"moe_renormalize\":true,\"num_attention_heads\":32,\"num_expert_grou"
     "p\":1,\"num_experts\":16,\"num_experts_per_token\":8,\"num_hidden_layers\":6,\"num_key"
     "_value_heads\":32,\"num_shared_experts\":1,\"qk_nope_head_dim\":128,\"qk_rope_head_dim"
     "\":64,\"rms_norm_eps\":1e-05,\"routed_scaling_factor\":2.446,\"tie_word_embeddings\":f"
     "alse,\"topk_group\":1,\"v_head_dim\":128,\"vocab_size\":1000}"},
    {"kolibri1", INT64_C(610984032),
     "{\"head_dim\":128,\"hidden_act\":\"silu\",\"hidden_size\":2560,\"layer_types\":[\"slid"
     "ing_attention\",\"sliding_attention\",\"sliding_attention\",\"sliding_attention\",\"fu"
     "ll_attention\",\"sliding_attention\"],\"max_position_embeddings\":512,\"model_type\":"
     "\"kolibri1\",\"moe_intermediate_size\":512,\"norm_topk_prob\":false,\"num_attention_he"
     "ads\":48,\"num_experts_per_tok\":6,\"num_hidden_layers\":6,\"num_key_value_heads\":4,"
     "\"num_local_experts\":16,\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"rope_theta\":10"
     "000.0,\"rope_type\":\"default\"},\"shared_expert_intermediate_size\":512,\"sliding_win"
     "dow\":513,\"tie_word_embeddings\":false,\"vocab_size\":1000}"},
    {"laguna", INT64_C(532442704),
     "{\"attention_bias\":false,\"gating\":true,\"head_dim\":128,\"hidden_act\":\"silu\",\"h"
     "idden_size\":2048,\"intermediate_size\":8192,\"layer_types\":[\"full_attention\",\"sli"
     "ding_attention\",\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"slid"
     "ing_attention\"],\"max_position_embeddings\":512,\"mlp_layer_types\":[\"dense\",\"spar"
     "se\",\"sparse\",\"sparse\",\"sparse\",\"sparse\"],\"model_type\":\"laguna\",\"moe_appl"
     "y_router_weight_on_input\":false,\"moe_intermediate_size\":512,\"moe_routed_scaling_fa"
     "ctor\":1.0,\"moe_router_logit_softcapping\":0.0,\"num_attention_heads\":48,\"num_atten"
     "tion_heads_per_layer\":[48,64,64,48,64,64],\"num_experts\":16,\"num_experts_per_tok\":"
     "8,\"num_hidden_layers\":6,\"num_key_value_heads\":8,\"rms_norm_eps\":1e-06,\"rope_para"
     "meters\":{\"full_attention\":{\"partial_rotary_factor\":0.5,\"rope_theta\":500000.0,\""
     "rope_type\":\"default\"},\"sliding_attention\":{\"partial_rotary_factor\":1.0,\"rope_t"
     "heta\":10000.0,\"rope_type\":\"default\"}},\"shared_expert_intermediate_size\":512,\"s"
     "liding_window\":512,\"tie_word_embeddings\":false,\"vocab_size\":1000}"},
    {"lara_mini", INT64_C(202610912),
     "{\"attention_bias\":false,\"head_dim\":128,\"hidden_act\":\"silu\",\"hidden_size\":102"
     "4,\"layer_types\":[\"linear_attention\",\"sliding_attention\",\"linear_attention\",\"f"
     "ull_attention\",\"sliding_attention\",\"linear_attention\"],\"linear_conv_kernel_dim\""
     ":4,\"linear_key_head_dim\":128,\"linear_num_key_heads\":8,\"linear_num_value_heads\":1"
     "6,\"linear_value_head_dim\":128,\"max_position_embeddings\":512,\"model_type\":\"lara_"
     "mini\",\"moe_intermediate_size\":512,\"norm_topk_prob\":true,\"num_attention_heads\":1"
     "6,\"num_experts\":16,\"num_experts_per_tok\":4,\"num_hidden_layers\":6,\"num_key_value"
     "_heads\":4,\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_t"
     "ype\":\"default\"},\"shared_expert_intermediate_size\":512,\"sliding_window\":512,\"ti"
     "e_word_embeddings\":true,\"vocab_size\":1000}"},
    {"lfm2", INT64_C(517737280),
     "{\"block_auto_adjust_ff_dim\":true,\"block_ffn_dim_multiplier\":1.0,\"block_multiple_o"
     "f\":256,\"conv_L_cache\":3,\"conv_bias\":false,\"hidden_size\":2560,\"intermediate_siz"
     "e\":12288,\"layer_types\":[\"conv\",\"conv\",\"full_attention\",\"conv\",\"conv\",\"fu"
     "ll_attention\"],\"max_position_embeddings\":512,\"model_type\":\"lfm2\",\"norm_eps\":1"
     "e-05,\"num_attention_heads\":32,\"num_hidden_layers\":6,\"num_key_value_heads\":8,\"ro"
     "pe_parameters\":{\"rope_theta\":1000000.0,\"rope_type\":\"default\"},\"tie_word_embedd"
     "ings\":true,\"vocab_size\":1000}"},
    {"lfm2_moe", INT64_C(1587808640),
     "{\"conv_L_cache\":3,\"conv_bias\":false,\"hidden_size\":2048,\"intermediate_size\":716"
     "8,\"layer_types\":[\"conv\",\"conv\",\"full_attention\",\"conv\",\"conv\",\"full_atten"
     "tion\"],\"max_position_embeddings\":512,\"model_type\":\"lfm2_moe\",\"moe_intermediate"
     "_size\":1792,\"norm_eps\":1e-05,\"norm_topk_prob\":true,\"num_attention_heads\":32,\"n"
     "um_dense_layers\":2,\"num_experts\":32,\"num_experts_per_tok\":4,\"num_hidden_layers\""
     ":6,\"num_key_value_heads\":8,\"rope_parameters\":{\"rope_theta\":1000000.0,\"rope_type"
     "\":\"default\"},\"routed_scaling_factor\":1.0,\"tie_word_embeddings\":true,\"use_exper"
     "t_bias\":true,\"vocab_size\":1000}"},
    {"lfm3", INT64_C(373418496),
     "{\"attention_bias\":false,\"conv_L_cache\":7,\"conv_bias\":false,\"head_dim\":128,\"hi"
     "dden_size\":2048,\"intermediate_size\":7680,\"layer_types\":[\"conv\",\"conv\",\"full_"
     "attention\",\"conv\",\"sliding_attention\",\"conv\"],\"max_position_embeddings\":512,"
     "\"model_type\":\"lfm3\",\"norm_eps\":1e-05,\"num_attention_heads\":16,\"num_hidden_lay"
     "ers\":6,\"num_key_value_heads\":4,\"rope_parameters\":{\"full_attention\":{\"partial_r"
     "otary_factor\":0.5,\"rope_theta\":1000000.0,\"rope_type\":\"proportional\"},\"sliding_"
     "attention\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"}},\"sliding_window\":256"
     ",\"tie_word_embeddings\":true,\"use_attention_gate\":true,\"use_sandwich_norm\":true,"
     "\"vocab_size\":1000}"},
    {"mamba2", INT64_C(666036480),
     "{\"conv_kernel\":4,\"head_dim\":64,\"hidden_act\":\"silu\",\"hidden_size\":4096,\"laye"
     "r_norm_epsilon\":1e-05,\"model_type\":\"mamba2\",\"n_groups\":8,\"num_heads\":128,\"nu"
     "m_hidden_layers\":6,\"state_size\":128,\"tie_word_embeddings\":false,\"use_bias\":fals"
     "e,\"use_conv_bias\":true,\"vocab_size\":1000}"},
    {"mellum", INT64_C(2511096576),
     "{\"attention_bias\":false,\"head_dim\":128,\"hidden_act\":\"silu\",\"hidden_size\":230"
     "4,\"intermediate_size\":7168,\"layer_types\":[\"full_attention\",\"sliding_attention\""
     ",\"full_attention\",\"sliding_attention\",\"full_attention\",\"sliding_attention\"],\""
     "max_position_embeddings\":512,\"mlp_layer_types\":[\"sparse\",\"sparse\",\"sparse\",\""
     "sparse\",\"sparse\",\"sparse\"],\"model_type\":\"mellum\",\"moe_intermediate_size\":89"
     "6,\"norm_topk_prob\":true,\"num_attention_heads\":32,\"num_experts_per_tok\":8,\"num_h"
     "idden_layers\":6,\"num_key_value_heads\":4,\"num_local_experts\":64,\"rms_norm_eps\":1"
     "e-06,\"rope_parameters\":{\"full_attention\":{\"rope_theta\":500000.0,\"rope_type\":\""
     "default\"},\"sliding_attention\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"}},"
     "\"sliding_window\":1024,\"tie_word_embeddings\":false,\"vocab_size\":1000}"},
    {"mimo_v2_flash", INT64_C(2778911056),
     "{\"attention_bias\":false,\"attention_value_scale\":0.707,\"head_dim\":192,\"hidden_ac"
     "t\":\"silu\",\"hidden_size\":4096,\"intermediate_size\":16384,\"layer_types\":[\"full_"
     "attention\",\"sliding_attention\",\"sliding_attention\",\"sliding_attention\",\"slidin"
     "g_attention\",\"full_attention\"],\"max_position_embeddings\":512,\"mlp_layer_types\":"
     "[\"dense\",\"sparse\",\"sparse\",\"sparse\",\"sparse\",\"sparse\"],\"model_type\":\"mi"
     "mo_v2_flash\",\"moe_intermediate_size\":2048,\"n_group\":1,\"n_routed_experts\":16,\"n"
     "orm_topk_prob\":true,\"num_attention_heads\":64,\"num_experts_per_tok\":8,\"num_hidden"
     "_layers\":6,\"num_key_value_heads\":4,\"rms_norm_eps\":1e-05,\"rope_parameters\":{\"fu"
     "ll_attention\":{\"partial_rotary_factor\":0.334,\"rope_theta\":5000000.0,\"rope_type\""
     ":\"default\"},\"sliding_attention\":{\"partial_rotary_factor\":0.334,\"rope_theta\":10"
     "000.0,\"rope_type\":\"default\"}},\"routed_scaling_factor\":1.0,\"sliding_window\":129"
     ",\"tie_word_embeddings\":false,\"topk_group\":1,\"v_head_dim\":128,\"vocab_size\":1000"
     "}"},
    {"minimax_m2", INT64_C(1629717600),
     "{\"head_dim\":128,\"hidden_act\":\"silu\",\"hidden_size\":3072,\"intermediate_size\":1"
     "536,\"max_position_embeddings\":512,\"model_type\":\"minimax_m2\",\"num_attention_head"
     "s\":48,\"num_experts_per_tok\":8,\"num_hidden_layers\":6,\"num_key_value_heads\":8,\"n"
     "um_local_experts\":16,\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"rope_theta\":50000"
     "00.0,\"rope_type\":\"default\"},\"tie_word_embeddings\":false,\"vocab_size\":1000}"},
    {"mpt", INT64_C(304064512),
     "{\"attn_config\":{\"alibi\":true,\"alibi_bias_max\":8,\"attn_impl\":\"torch\",\"attn_t"
     "ype\":\"multihead_attention\",\"attn_uses_sequence_id\":false,\"prefix_lm\":false,\"qk"
     "_ln\":false},\"d_model\":2048,\"embedding_fraction\":1.0,\"expansion_ratio\":4,\"layer"
     "_norm_epsilon\":1e-05,\"learned_pos_emb\":true,\"max_seq_len\":2048,\"model_type\":\"m"
     "pt\",\"n_heads\":16,\"n_layers\":6,\"no_bias\":true,\"norm_type\":\"low_precision_laye"
     "rnorm\",\"tie_word_embeddings\":true,\"vocab_size\":1000}"},
    {"nanochat", INT64_C(91189248),
     "{\"attention_bias\":false,\"final_logit_softcapping\":15.0,\"hidden_act\":\"relu2\",\""
     "hidden_size\":768,\"intermediate_size\":8192,\"max_position_embeddings\":512,\"model_t"
     "ype\":\"nanochat\",\"num_attention_heads\":6,\"num_hidden_layers\":6,\"num_key_value_h"
     "eads\":6,\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_typ"
     "e\":\"default\"},\"tie_word_embeddings\":false,\"vocab_size\":1000}"},
    {"olmo", INT64_C(1222443008),
     "{\"attention_bias\":false,\"hidden_act\":\"silu\",\"hidden_size\":4096,\"intermediate_"
     "size\":11008,\"max_position_embeddings\":512,\"model_type\":\"olmo\",\"num_attention_h"
     "eads\":32,\"num_hidden_layers\":6,\"num_key_value_heads\":32,\"rope_parameters\":{\"ro"
     "pe_theta\":10000.0,\"rope_type\":\"default\"},\"tie_word_embeddings\":false,\"vocab_si"
     "ze\":1000}"},
    {"olmo_hybrid", INT64_C(1271344620),
     "{\"attention_bias\":false,\"hidden_act\":\"silu\",\"hidden_size\":3840,\"intermediate_"
     "size\":11008,\"layer_types\":[\"linear_attention\",\"linear_attention\",\"linear_atten"
     "tion\",\"full_attention\",\"linear_attention\",\"linear_attention\"],\"linear_a_log_ma"
     "x\":16.0,\"linear_a_log_min\":0.0,\"linear_allow_neg_eigval\":true,\"linear_conv_kerne"
     "l_dim\":4,\"linear_dt_max\":0.1,\"linear_dt_min\":0.001,\"linear_key_head_dim\":96,\"l"
     "inear_num_key_heads\":30,\"linear_num_value_heads\":30,\"linear_value_head_dim\":192,"
     "\"max_position_embeddings\":512,\"model_type\":\"olmo_hybrid\",\"num_attention_heads\""
     ":30,\"num_hidden_layers\":6,\"num_key_value_heads\":30,\"rms_norm_eps\":1e-06,\"rope_p"
     "arameters\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"},\"tie_word_embeddings\""
     ":false,\"vocab_size\":1000}"},
    {"opt", INT64_C(43691520),
     "{\"_remove_final_layer_norm\":false,\"activation_function\":\"relu\",\"do_layer_norm_b"
     "efore\":true,\"enable_bias\":true,\"ffn_dim\":3072,\"hidden_size\":768,\"layer_norm_el"
     "ementwise_affine\":true,\"max_position_embeddings\":512,\"model_type\":\"opt\",\"num_a"
     "ttention_heads\":12,\"num_hidden_layers\":6,\"tie_word_embeddings\":true,\"vocab_size"
     "\":1000,\"word_embed_proj_dim\":768}"},
    {"phimoe", INT64_C(7810159592),
     "{\"attention_bias\":true,\"hidden_act\":\"silu\",\"hidden_size\":4096,\"intermediate_s"
     "ize\":6400,\"lm_head_bias\":true,\"max_position_embeddings\":512,\"model_type\":\"phim"
     "oe\",\"num_attention_heads\":32,\"num_experts_per_tok\":2,\"num_hidden_layers\":6,\"nu"
     "m_key_value_heads\":8,\"num_local_experts\":16,\"rms_norm_eps\":1e-05,\"rope_parameter"
     "s\":{\"rope_theta\":1000000.0,\"rope_type\":\"default\"},\"tie_word_embeddings\":false"
     ",\"vocab_size\":1000}"},
    {"qwen3_moe", INT64_C(3686198016),
     "{\"attention_bias\":false,\"decoder_sparse_step\":1,\"hidden_act\":\"silu\",\"hidden_s"
     "ize\":2048,\"intermediate_size\":6144,\"max_position_embeddings\":512,\"mlp_only_layer"
     "s\":[],\"model_type\":\"qwen3_moe\",\"moe_intermediate_size\":768,\"norm_topk_prob\":f"
     "alse,\"num_attention_heads\":32,\"num_experts_per_tok\":8,\"num_hidden_layers\":6,\"nu"
     "m_key_value_heads\":4,\"num_local_experts\":128,\"rms_norm_eps\":1e-06,\"rope_paramete"
     "rs\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"},\"tie_word_embeddings\":false,"
     "\"use_sliding_window\":false,\"vocab_size\":1000}"},
    {"sarvam_mla", INT64_C(17011957376),
     "{\"attention_bias\":false,\"first_k_dense_replace\":1,\"head_dim\":64,\"hidden_act\":"
     "\"silu\",\"hidden_size\":4096,\"intermediate_size\":16384,\"kv_lora_rank\":512,\"max_p"
     "osition_embeddings\":512,\"model_type\":\"sarvam_mla\",\"moe_intermediate_size\":2048,"
     "\"n_group\":1,\"n_routed_experts\":128,\"n_shared_experts\":1,\"norm_topk_prob\":true,"
     "\"num_attention_heads\":64,\"num_experts_per_tok\":8,\"num_hidden_layers\":6,\"num_key"
     "_value_heads\":64,\"num_nextn_predict_layers\":0,\"qk_nope_head_dim\":128,\"qk_rope_he"
     "ad_dim\":64,\"rms_norm_eps\":1e-06,\"rope_interleave\":true,\"rope_parameters\":{\"rop"
     "e_theta\":10000.0,\"rope_type\":\"default\"},\"routed_scaling_factor\":2.5,\"tie_word_"
     "embeddings\":false,\"topk_group\":1,\"v_head_dim\":128,\"vocab_size\":1000}"},
    {"sarvam_moe", INT64_C(8441419136),
     "{\"attention_bias\":false,\"first_k_dense_replace\":1,\"head_dim\":64,\"hidden_act\":"
     "\"silu\",\"hidden_size\":4096,\"intermediate_size\":8192,\"max_position_embeddings\":5"
     "12,\"model_type\":\"sarvam_moe\",\"moe_intermediate_size\":1024,\"n_group\":1,\"n_rout"
     "ed_experts\":128,\"n_shared_experts\":1,\"norm_topk_prob\":true,\"num_attention_heads"
     "\":64,\"num_experts_per_tok\":6,\"num_hidden_layers\":6,\"num_key_value_heads\":4,\"nu"
     "m_nextn_predict_layers\":0,\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"partial_rotar"
     "y_factor\":1.0,\"rope_theta\":8000000.0,\"rope_type\":\"default\"},\"routed_scaling_fa"
     "ctor\":2.5,\"tie_word_embeddings\":false,\"topk_group\":1,\"use_qk_norm\":true,\"vocab"
     "_size\":1000}"},
    {"seed_oss", INT64_C(2600398848),
     "{\"attention_bias\":true,\"attention_out_bias\":false,\"head_dim\":128,\"hidden_act\":"
     "\"silu\",\"hidden_size\":4096,\"intermediate_size\":27648,\"max_position_embeddings\":"
     "512,\"mlp_bias\":false,\"model_type\":\"seed_oss\",\"num_attention_heads\":80,\"num_hi"
     "dden_layers\":6,\"num_key_value_heads\":8,\"rms_norm_eps\":1e-06,\"rope_parameters\":{"
     "\"rope_theta\":10000.0,\"rope_type\":\"default\"},\"tie_word_embeddings\":false,\"voca"
     "b_size\":1000}"},
    {"solar_open", INT64_C(12638343936),
     "{\"attention_bias\":false,\"head_dim\":128,\"hidden_act\":\"silu\",\"hidden_size\":409"
     "6,\"max_position_embeddings\":512,\"model_type\":\"solar_open\",\"moe_intermediate_siz"
     "e\":1280,\"n_group\":1,\"n_routed_experts\":128,\"n_shared_experts\":1,\"norm_topk_pro"
     "b\":true,\"num_attention_heads\":64,\"num_experts_per_tok\":8,\"num_hidden_layers\":6,"
     "\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,\"rope_parameters\":{\"rope_theta\":1"
     "000000.0,\"rope_type\":\"default\"},\"routed_scaling_factor\":1.0,\"tie_word_embedding"
     "s\":false,\"topk_group\":1,\"vocab_size\":1000}"},
    {"xglm", INT64_C(76603392),
     "{\"activation_function\":\"gelu\",\"add_cross_attention\":false,\"attention_heads\":16"
     ",\"d_model\":1024,\"ffn_dim\":4096,\"max_position_embeddings\":512,\"model_type\":\"xg"
     "lm\",\"num_layers\":6,\"scale_embedding\":true,\"tie_word_embeddings\":true,\"vocab_si"
     "ze\":1000}"},
    {"youtu", INT64_C(320591872),
     "{\"attention_bias\":false,\"head_dim\":64,\"hidden_act\":\"silu\",\"hidden_size\":2048"
     ",\"intermediate_size\":6144,\"kv_lora_rank\":512,\"max_position_embeddings\":512,\"mod"
     "el_type\":\"youtu\",\"num_attention_heads\":16,\"num_hidden_layers\":6,\"num_key_value"
     "_heads\":16,\"q_lora_rank\":1536,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"rm"
     "s_norm_eps\":1e-06,\"rope_interleave\":true,\"rope_parameters\":{\"rope_theta\":10000."
     "0,\"rope_type\":\"default\"},\"tie_word_embeddings\":true,\"v_head_dim\":128,\"vocab_s"
     "ize\":1000}"},
