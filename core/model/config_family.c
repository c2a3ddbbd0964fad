/* config_family.c - what the name of a family implies, and its files do not say.
**
** Each row: names of model_type joined by '|', and JSON. Plain keys are defaults of the family's
** configuration class (transformers 4.57 and 5, configuration_*.py; files leave out values equal to
** these). Keys "plm_..." are traits of its code (modeling_*.py):
**   norms      plm_norm: "layer" LayerNorm with bias, "layer_nobias"; plm_norm_offset: weight used
**              as 1 + w; plm_norm_plain: no weights; plm_norms: weights a layer, plm_norms_moe of
**              one with a dense half besides, plm_norms_routed of a routed one; plm_embed_norm;
**              plm_post_norm: behind the halves alone;
**              plm_parallel: both halves read one input;
**   q and k    plm_qk_norm: "head", "full" (also a weight for each head, Command R+), "l2";
**              plm_qk_flag: the same where a key asks for it; plm_qk_after_rope;
**   biases     plm_qkv_bias: q, k, v always; plm_bias_qkv_only: attention_bias leaves o alone;
**              plm_out_bias: o always; plm_all_bias: every linear layer; plm_mlp_bias: the MLP's;
**              plm_head_bias;
**   MLP        plm_plain_mlp: up, fn, down without gate; plm_act: activation whatever the file says;
**   positions  plm_interleaved: rotary pairs are neighbours; plm_no_rope; plm_nope_full: full layers
**              of a windowed model do not rotate; plm_rope_said: rotates only where
**              position_embedding_type says so; plm_alibi; plm_pos_embed: learned positions,
**              plm_pos_offset rows before the first; plm_embed_sqrt: embeddings times sqrt(hidden);
**   experts    plm_router: scores; plm_router_bias: selection bias; plm_renorm: chosen weights sum
**              to one; plm_shared_gate; plm_shared_dense: the shared width is the dense one of a
**              model without experts; plm_dense_and_moe: a routed layer has both halves;
**   attention  plm_out_gate; plm_head_gate: one gate a head; plm_sinks, "sliding" in windowed layers
**              alone; plm_pattern: layers of a period, the last one full; plm_window_all:
**              sliding_window applies to every layer; plm_blocks: attends chosen blocks;
**   mixers     plm_mamba: layers without attention are Mamba-2; plm_mamba_all: every layer is, and
**              nothing else; plm_single: a layer is a mixer or a feed-forward half; plm_kda;
**   reading    plm_floor_head: hidden / heads rounded down; plm_nested: attn_config and ffn_config
**              hold keys; plm_refuse: why it is not understood.
** A model whose family has no row is read as a Llama with its own keys. Rows were checked against
** the parameters that transformers 5.24 counts, by its defaults and by tests/data/families.h.
*/
#include <ctype.h>
#include <string.h>

#include "core/model/config.h"

static const struct {
    const char *types, *json;
} family[] = {
    {"llama|yi|internlm3|arcee_llama|smollm", "{\"rms_norm_eps\":1e-6}"},
    {"mistral|ministral|ministral3|mistral3", "{\"plm_window_all\":true,\"rms_norm_eps\":1e-6}"},
    {"mixtral",
     "{\"plm_window_all\":true,\"plm_router\":\"softmax_topk\",\"num_experts_per_tok\":2,"
     "\"rms_norm_eps\":1e-5,\"rope_theta\":1000000}"},
    {"qwen2|qwen2_5_vl_text|qwen2_vl_text|qwen2_vl|qwen2_5_vl",
     "{\"plm_qkv_bias\":true,\"use_sliding_window\":false,\"max_window_layers\":28,"
     "\"rms_norm_eps\":1e-6}"},
    {"qwen2_moe", "{\"plm_qkv_bias\":true,\"use_sliding_window\":false,\"max_window_layers\":28,"
                  "\"plm_router\":\"softmax\",\"norm_topk_prob\":false,\"plm_shared_gate\":true,"
                  "\"rms_norm_eps\":1e-6}"},
    {"qwen3|qwen3_vl_text",
     "{\"plm_qk_norm\":\"head\",\"head_dim\":128,\"use_sliding_window\":false,"
     "\"max_window_layers\":28,\"rms_norm_eps\":1e-6}"},
    {"qwen3_moe|qwen3_vl_moe_text",
     "{\"plm_qk_norm\":\"head\",\"use_sliding_window\":false,"
     "\"max_window_layers\":28,\"plm_router\":\"softmax\",\"norm_topk_prob\":false,"
     "\"rms_norm_eps\":1e-6}"},
    {"qwen3_next",
     "{\"plm_qk_norm\":\"head\",\"plm_norm_offset\":true,\"plm_out_gate\":true,"
     "\"plm_shared_gate\":true,\"plm_router\":\"softmax\",\"norm_topk_prob\":true,"
     "\"full_attention_interval\":4,\"partial_rotary_factor\":0.25,\"linear_conv_kernel_dim\":4,"
     "\"num_nextn_predict_layers\":1,\"rms_norm_eps\":1e-6,\"head_dim\":256}"},
    {"qwen3_5|qwen3_5_text|qwen3_5_moe|qwen3_5_moe_text",
     "{\"plm_qk_norm\":\"head\",\"plm_norm_offset\":true,\"plm_out_gate\":true,"
     "\"plm_shared_gate\":true,\"plm_router\":\"softmax\",\"plm_renorm\":true,"
     "\"full_attention_interval\":4,\"partial_rotary_factor\":0.25,\"linear_conv_kernel_dim\":4,"
     "\"rms_norm_eps\":1e-6,\"head_dim\":256}"},
    {"gemma", "{\"plm_norm_offset\":true,\"plm_embed_sqrt\":true,\"tie_word_embeddings\":true,"
              "\"plm_act\":\"gelu_pytorch_tanh\",\"head_dim\":256,\"rms_norm_eps\":1e-6}"},
    {"gemma2", "{\"plm_norm_offset\":true,\"plm_embed_sqrt\":true,\"tie_word_embeddings\":true,"
               "\"hidden_activation\":\"gelu_pytorch_tanh\",\"head_dim\":256,\"rms_norm_eps\":1e-6,"
               "\"plm_norms\":4,\"attn_logit_softcapping\":50.0,\"final_logit_softcapping\":30.0,"
               "\"query_pre_attn_scalar\":256,\"sliding_window\":4096,\"plm_pattern\":2}"},
    {"gemma3|gemma3_text",
     "{\"plm_norm_offset\":true,\"plm_embed_sqrt\":true,\"tie_word_embeddings\":true,"
     "\"hidden_activation\":\"gelu_pytorch_tanh\",\"vocab_size\":262208,"
     "\"num_attention_heads\":8,\"num_key_value_heads\":4,\"head_dim\":256,\"rms_norm_eps\":1e-6,"
     "\"plm_norms\":4,\"plm_qk_norm\":\"head\",\"query_pre_attn_scalar\":256,"
     "\"sliding_window\":4096,\"sliding_window_pattern\":6,\"rope_theta\":1000000,"
     "\"rope_local_base_freq\":10000,\"max_position_embeddings\":131072}"},
    {"gemma4|gemma4_text|gemma4_unified|gemma4_unified_text",
     "{\"plm_embed_sqrt\":true,\"tie_word_embeddings\":true,\"plm_attn_scale_one\":true,"
     "\"hidden_activation\":\"gelu_pytorch_tanh\",\"rms_norm_eps\":1e-6,\"plm_norms\":4,"
     "\"plm_norms_moe\":7,\"plm_qk_norm\":\"head\",\"plm_router\":\"softmax\",\"plm_renorm\":true,"
     "\"sliding_window\":512,\"sliding_window_pattern\":6,\"rope_theta\":1000000,"
     "\"rope_local_base_freq\":10000,\"plm_dense_and_moe\":true,\"max_position_embeddings\":"
     "131072}"},
    {"phi3|phi4", "{\"plm_window_all\":true,\"rms_norm_eps\":1e-5}"},
    {"phi", "{\"plm_norm\":\"layer\",\"plm_norms\":1,\"plm_parallel\":true,\"plm_all_bias\":true,"
            "\"plm_head_bias\":true,\"plm_plain_mlp\":true,\"partial_rotary_factor\":0.5,"
            "\"hidden_act\":\"gelu_new\",\"layer_norm_eps\":1e-5}"},
    {"gpt2", "{\"plm_norm\":\"layer\",\"tie_word_embeddings\":true,\"plm_no_rope\":true,"
             "\"plm_pos_embed\":true,\"plm_all_bias\":true,\"plm_plain_mlp\":true,"
             "\"activation_function\":\"gelu_new\",\"layer_norm_epsilon\":1e-5}"},
    {"gpt_bigcode",
     "{\"plm_norm\":\"layer\",\"tie_word_embeddings\":true,\"plm_no_rope\":true,"
     "\"plm_pos_embed\":true,\"plm_all_bias\":true,\"plm_plain_mlp\":true,\"multi_query\":true,"
     "\"activation_function\":\"gelu_pytorch_tanh\",\"layer_norm_epsilon\":1e-5}"},
    {"gptj|codegen",
     "{\"plm_norm\":\"layer\",\"plm_norms\":1,\"plm_parallel\":true,\"plm_mlp_bias\":true,"
     "\"plm_head_bias\":true,\"plm_plain_mlp\":true,\"rotary_dim\":64,\"plm_interleaved\":true,"
     "\"activation_function\":\"gelu_new\",\"layer_norm_epsilon\":1e-5}"},
    {"gpt_neox",
     "{\"plm_norm\":\"layer\",\"plm_all_bias\":true,\"plm_plain_mlp\":true,\"rotary_pct\":0.25,"
     "\"use_parallel_residual\":true,\"hidden_act\":\"gelu\",\"layer_norm_eps\":1e-5}"},
    {"falcon|RefinedWeb|RefinedWebModel",
     "{\"plm_norm\":\"layer\",\"tie_word_embeddings\":true,\"plm_plain_mlp\":true,"
     "\"plm_falcon\":true,\"activation\":\"gelu\",\"multi_query\":true,\"parallel_attn\":true,"
     "\"layer_norm_epsilon\":1e-5,\"max_position_embeddings\":2048}"},
    {"bloom",
     "{\"plm_norm\":\"layer\",\"tie_word_embeddings\":true,\"plm_plain_mlp\":true,"
     "\"plm_all_bias\":true,\"plm_no_rope\":true,\"plm_alibi\":true,\"plm_embed_norm\":true,"
     "\"plm_act\":\"gelu_pytorch_tanh\",\"layer_norm_epsilon\":1e-5,\"seq_length\":2048}"},
    {"starcoder2", "{\"plm_norm\":\"layer\",\"tie_word_embeddings\":true,\"plm_plain_mlp\":true,"
                   "\"use_bias\":true,\"hidden_act\":\"gelu_pytorch_tanh\",\"norm_epsilon\":1e-5,"
                   "\"plm_window_all\":true}"},
    {"cohere", "{\"plm_qk_flag\":\"full\",\"plm_norm\":\"layer_nobias\",\"plm_norms\":1,\"plm_"
               "parallel\":true,"
               "\"tie_word_embeddings\":true,\"plm_interleaved\":true,\"logit_scale\":0.0625,"
               "\"layer_norm_eps\":1e-5}"},
    {"cohere2", "{\"plm_norm\":\"layer_nobias\",\"plm_norms\":1,\"plm_parallel\":true,"
                "\"tie_word_embeddings\":true,\"plm_interleaved\":true,\"logit_scale\":0.0625,"
                "\"sliding_window_pattern\":4,\"plm_nope_full\":true,\"head_dim\":128,"
                "\"layer_norm_eps\":1e-5}"},
    {"olmo2", "{\"plm_post_norm\":true,\"plm_qk_norm\":\"full\",\"rms_norm_eps\":1e-5}"},
    {"olmo3", "{\"plm_post_norm\":true,\"plm_qk_norm\":\"full\",\"rms_norm_eps\":1e-5,"
              "\"sliding_window_pattern\":4}"},
    {"olmoe", "{\"plm_qk_norm\":\"full\",\"plm_router\":\"softmax\",\"norm_topk_prob\":false,"
              "\"rms_norm_eps\":1e-5}"},
    {"granite|hyperclovax", "{\"rms_norm_eps\":1e-6}"},
    {"granitemoe|granitemoeshared", "{\"plm_router\":\"softmax_topk\",\"rms_norm_eps\":1e-6}"},
    {"granite_swa|granitemoe_swa",
     "{\"plm_router\":\"softmax_topk\",\"plm_sinks\":true,\"sliding_window\":128,"
     "\"rms_norm_eps\":1e-5}"},
    {"granitemoehybrid", "{\"plm_router\":\"softmax_topk\",\"plm_mamba\":true,"
                         "\"plm_rope_said\":true,\"plm_shared_dense\":true,\"rms_norm_eps\":1e-6}"},
    {"bamba", "{\"plm_mamba\":true,\"partial_rotary_factor\":0.5,\"rms_norm_eps\":1e-5}"},
    {"mamba2", "{\"plm_mamba_all\":true,\"plm_norms\":1,\"num_heads\":128,\"head_dim\":64,"
               "\"n_groups\":8,\"state_size\":128,\"layer_norm_epsilon\":1e-5}"},
    {"olmo", "{\"plm_norm\":\"layer_nobias\",\"plm_norm_plain\":true,\"layer_norm_eps\":1e-5}"},
    {"nanochat", "{\"plm_norm_plain\":true,\"plm_embed_norm\":true,\"plm_plain_mlp\":true,"
                 "\"plm_qk_norm\":\"l2\",\"plm_qk_after_rope\":true,\"hidden_act\":\"relu2\","
                 "\"final_logit_softcapping\":15.0,\"rms_norm_eps\":1e-6}"},
    {"flex_olmo", "{\"plm_qk_norm\":\"full\",\"plm_router\":\"softmax\","
                  "\"norm_topk_prob\":false,\"rms_norm_eps\":1e-6}"},
    {"olmo_hybrid", "{\"plm_qk_norm\":\"full\",\"linear_conv_kernel_dim\":4,"
                    "\"rms_norm_eps\":1e-6}"},
    {"lara_mini", "{\"plm_qk_norm\":\"head\",\"plm_nope_full\":true,\"plm_router\":\"softmax\","
                  "\"norm_topk_prob\":true,\"rms_norm_eps\":1e-6}"},
    {"helium", "{\"plm_interleaved\":true,\"rms_norm_eps\":1e-8}"},
    {"apertus|apertus1p5_text",
     "{\"plm_plain_mlp\":true,\"plm_qk_norm\":\"head\",\"hidden_act\":\"xielu\","
     "\"rms_norm_eps\":1e-5}"},
    {"jais2", "{\"plm_norm\":\"layer\",\"plm_plain_mlp\":true,\"hidden_act\":\"relu2\","
              "\"attention_bias\":true,\"mlp_bias\":true,\"layer_norm_eps\":1e-5}"},
    {"opt", "{\"plm_norm\":\"layer\",\"tie_word_embeddings\":true,\"plm_no_rope\":true,"
            "\"plm_pos_embed\":true,\"plm_pos_offset\":2,\"plm_all_bias\":true,"
            "\"plm_plain_mlp\":true,\"activation_function\":\"relu\",\"layer_norm_eps\":1e-5,"
            "\"max_position_embeddings\":2048}"},
    {"biogpt", "{\"plm_norm\":\"layer\",\"tie_word_embeddings\":true,\"plm_no_rope\":true,"
               "\"plm_pos_embed\":true,\"plm_pos_offset\":2,\"plm_all_bias\":true,"
               "\"plm_plain_mlp\":true,\"hidden_act\":\"gelu\",\"scale_embedding\":true,"
               "\"layer_norm_eps\":1e-12}"},
    {"xglm", "{\"plm_norm\":\"layer\",\"tie_word_embeddings\":true,\"plm_no_rope\":true,"
             "\"plm_all_bias\":true,\"plm_plain_mlp\":true,\"activation_function\":\"gelu\","
             "\"scale_embedding\":true,\"layer_norm_eps\":1e-5}"},
    {"gpt_neo",
     "{\"plm_norm\":\"layer\",\"tie_word_embeddings\":true,\"plm_no_rope\":true,"
     "\"plm_pos_embed\":true,\"plm_out_bias\":true,\"plm_mlp_bias\":true,\"plm_plain_mlp\":true,"
     "\"plm_attn_scale_one\":true,\"window_size\":256,\"activation_function\":\"gelu_new\","
     "\"layer_norm_epsilon\":1e-5}"},
    {"mpt", "{\"plm_norm\":\"layer_nobias\",\"tie_word_embeddings\":true,\"plm_plain_mlp\":true,"
            "\"plm_act\":\"gelu\",\"plm_nested\":true,\"plm_no_rope\":true,\"alibi\":true,"
            "\"layer_norm_epsilon\":1e-5}"},
    {"dbrx", "{\"plm_norm\":\"layer_nobias\",\"plm_nested\":true,\"plm_act\":\"silu\","
             "\"plm_router\":\"softmax\",\"plm_renorm\":true,\"layer_norm_eps\":1e-5}"},
    {"phimoe", "{\"plm_norm\":\"layer\",\"plm_window_all\":true,\"plm_router\":\"softmax\","
               "\"rms_norm_eps\":1e-5}"},
    {"lfm2|lfm2_moe",
     "{\"plm_qk_norm\":\"head\",\"tie_word_embeddings\":true,\"plm_router\":\"sigmoid\","
     "\"plm_router_bias\":true,\"norm_topk_prob\":true,\"norm_eps\":1e-5}"},
    {"lfm3", "{\"plm_qk_norm\":\"head\",\"tie_word_embeddings\":true,\"plm_head_gate\":true,"
             "\"norm_eps\":1e-5}"},
    {"stablelm", "{\"plm_norm\":\"layer\",\"partial_rotary_factor\":0.25,\"layer_norm_eps\":1e-5}"},
    {"internlm2", "{\"rms_norm_eps\":1e-6,\"bias\":false}"},
    {"nemotron", "{\"plm_norm\":\"layer\",\"plm_norm_offset\":true,\"plm_plain_mlp\":true,"
                 "\"hidden_act\":\"relu2\",\"partial_rotary_factor\":0.5,\"norm_eps\":1e-5}"},
    {"arcee", "{\"plm_plain_mlp\":true,\"hidden_act\":\"relu2\",\"rms_norm_eps\":1e-5}"},
    {"deepseek", "{\"plm_router\":\"softmax\",\"norm_topk_prob\":false,\"rms_norm_eps\":1e-6}"},
    {"deepseek_v2", "{\"plm_router\":\"softmax\",\"norm_topk_prob\":false,\"plm_interleaved\":true,"
                    "\"rms_norm_eps\":1e-6}"},
    {"deepseek_v3|deepseek_v32|kimi_k2|glm4_moe_lite|glm_moe_dsa|kimi_k25|sarvam_mla",
     "{\"plm_router\":\"sigmoid\",\"plm_router_bias\":true,\"norm_topk_prob\":true,"
     "\"plm_interleaved\":true,\"rms_norm_eps\":1e-6}"},
    {"axk1", "{\"plm_router\":\"sigmoid\",\"plm_router_bias\":true,\"norm_topk_prob\":true,"
             "\"plm_norms_routed\":3,\"plm_interleaved\":true,\"rms_norm_eps\":1e-6}"},
    {"deepseek_v4", "{\"plm_router_bias\":true,\"norm_topk_prob\":true,\"plm_interleaved\":true,"
                    "\"plm_sinks\":true,\"scoring_func\":\"sqrtsoftplus\",\"rms_norm_eps\":1e-6,"
                    "\"qk_rope_head_dim\":64,"
                    "\"sliding_window\":128,\"rope_theta\":10000,\"compress_rope_theta\":160000}"},
    {"kimi_linear", "{\"plm_router\":\"sigmoid\",\"plm_router_bias\":true,\"plm_interleaved\":true,"
                    "\"moe_renormalize\":true,\"rms_norm_eps\":1e-5,\"plm_kda\":true}"},
    {"gpt_oss",
     "{\"plm_sinks\":true,\"plm_router\":\"softmax_topk\",\"plm_router_linear_bias\":true,"
     "\"plm_expert_bias\":true,\"plm_act\":\"swiglu_oai\",\"swiglu_limit\":7.0,"
     "\"swiglu_alpha\":1.702,\"attention_bias\":true,\"head_dim\":64,\"plm_pattern\":2,"
     "\"sliding_window\":128,\"rope_theta\":150000,\"rms_norm_eps\":1e-5}"},
    {"glm", "{\"plm_bias_qkv_only\":true,\"plm_interleaved\":true,\"partial_rotary_factor\":0.5,"
            "\"head_dim\":128,\"rms_norm_eps\":1.5625e-07}"},
    {"glm4", "{\"plm_bias_qkv_only\":true,\"plm_interleaved\":true,\"partial_rotary_factor\":0.5,"
             "\"head_dim\":128,\"plm_norms\":4,\"rms_norm_eps\":1.5625e-07}"},
    {"glm4_moe|sarvam_moe",
     "{\"plm_floor_head\":true,\"plm_bias_qkv_only\":true,\"partial_rotary_factor\":0.5,\"plm_"
     "router\":\"sigmoid\","
     "\"plm_router_bias\":true,\"norm_topk_prob\":true,\"use_qk_norm\":false,"
     "\"plm_qk_flag\":\"head\",\"rms_norm_eps\":1e-5}"},
    {"minimax_m2", "{\"plm_qk_flag\":\"full\",\"use_qk_norm\":true,\"plm_router\":\"sigmoid\","
                   "\"plm_router_bias\":true,\"plm_renorm\":true,\"rms_norm_eps\":1e-6}"},
    {"dots1", "{\"plm_qk_norm\":\"head\",\"plm_router\":\"sigmoid\",\"plm_router_bias\":true,"
              "\"norm_topk_prob\":false,\"use_sliding_window\":false,\"rms_norm_eps\":1e-6}"},
    {"hunyuan_v1_moe|hunyuan",
     "{\"plm_qk_norm\":\"head\",\"plm_qk_after_rope\":true,\"plm_router\":\"softmax\","
     "\"plm_renorm\":true,\"rms_norm_eps\":1e-5}"},
    {"hunyuan_v1_dense",
     "{\"plm_qk_norm\":\"head\",\"plm_qk_after_rope\":true,\"rms_norm_eps\":1e-5}"},
    {"seed_oss", "{\"plm_bias_qkv_only\":true,\"attention_bias\":true,\"rms_norm_eps\":1e-6,"
                 "\"head_dim\":128}"},
    {"smollm3",
     "{\"tie_word_embeddings\":true,\"use_sliding_window\":false,\"no_rope_layer_interval\":4,"
     "\"rms_norm_eps\":1e-6}"},
    {"solar_open", "{\"plm_router\":\"sigmoid\",\"plm_router_bias\":true,"
                   "\"norm_topk_prob\":true,\"rms_norm_eps\":1e-5}"},
    {"hy_v3", "{\"plm_qk_norm\":\"head\",\"plm_router\":\"sigmoid\",\"plm_router_bias\":true,"
              "\"plm_renorm\":true,\"rms_norm_eps\":1e-5}"},
    {"kolibri1", "{\"plm_qk_norm\":\"head\",\"plm_norms\":4,\"plm_router\":\"sigmoid\","
                 "\"plm_router_bias\":true,\"norm_topk_prob\":false,\"rms_norm_eps\":1e-6}"},
    {"flint", "{\"plm_qk_norm\":\"head\",\"plm_sinks\":true,\"plm_nope_full\":true,"
              "\"plm_router\":\"sigmoid\",\"norm_topk_prob\":true,\"rms_norm_eps\":1e-6}"},
    {"mellum", "{\"plm_qk_norm\":\"head\",\"plm_router\":\"softmax\",\"norm_topk_prob\":true,"
               "\"rms_norm_eps\":1e-6}"},
    {"aria_text", "{\"plm_router\":\"softmax_topk\",\"rms_norm_eps\":1e-6}"},
    {"afmoe",
     "{\"plm_qk_norm\":\"head\",\"plm_norms\":4,\"plm_out_gate\":true,\"plm_nope_full\":true,"
     "\"plm_router\":\"sigmoid\",\"plm_router_bias\":true,\"plm_renorm\":true,"
     "\"global_attn_every_n_layers\":4,\"rms_norm_eps\":1e-5}"},
    {"laguna", "{\"plm_qk_norm\":\"head\",\"plm_head_gate\":true,\"plm_router\":\"sigmoid\","
               "\"plm_router_bias\":true,\"plm_renorm\":true,\"rms_norm_eps\":1e-6}"},
    {"step3p5|step3p7", "{\"plm_qk_norm\":\"head\",\"plm_norm_offset\":true,\"plm_head_gate\":true,"
                        "\"plm_router\":\"sigmoid\",\"plm_router_bias\":true,\"plm_renorm\":true,"
                        "\"rms_norm_eps\":1e-5}"},
    {"mimo_v2_flash",
     "{\"plm_sinks\":\"sliding\",\"plm_router\":\"sigmoid\",\"plm_router_bias\":true,"
     "\"norm_topk_prob\":true,\"head_dim\":192,\"v_head_dim\":128,\"swa_num_key_value_heads\":8,"
     "\"partial_rotary_factor\":0.334,\"rms_norm_eps\":1e-5}"},
    {"minimax_m3_vl_text|minimax_m3",
     "{\"plm_qk_norm\":\"head\",\"plm_blocks\":true,\"plm_router\":\"sigmoid\","
     "\"plm_router_bias\":true,\"plm_renorm\":true,\"rms_norm_eps\":1e-6}"},
    {"cohere2_moe", "{\"plm_norm\":\"layer_nobias\",\"plm_norms\":1,\"plm_parallel\":true,"
                    "\"tie_word_embeddings\":true,\"plm_interleaved\":true,\"logit_scale\":0.0625,"
                    "\"sliding_window_pattern\":4,\"plm_nope_full\":true,\"head_dim\":128,"
                    "\"plm_router\":\"softmax\",\"norm_topk_prob\":true,\"layer_norm_eps\":1e-5}"},
    {"exaone_moe", "{\"plm_qk_norm\":\"head\",\"plm_nope_full\":true,\"plm_router\":\"sigmoid\","
                   "\"plm_router_bias\":true,\"norm_topk_prob\":true,\"rms_norm_eps\":1e-5}"},
    {"exaone", "{\"layer_norm_epsilon\":1e-5,\"activation_function\":\"silu\"}"},
    {"exaone4", "{\"plm_post_norm\":true,\"plm_qk_norm\":\"head\",\"plm_nope_full\":true,\"rms_norm_eps\":1e-5}"},
    {"ernie4_5", "{\"tie_word_embeddings\":true,\"plm_interleaved\":true,\"rms_norm_eps\":1e-5}"},
    {"ernie4_5_moe",
     "{\"tie_word_embeddings\":true,\"plm_interleaved\":true,\"plm_router\":\"softmax\","
     "\"plm_router_bias\":true,\"plm_renorm\":true,\"rms_norm_eps\":1e-5}"},
    {"llama4|llama4_text",
     "{\"plm_interleaved\":true,\"plm_router\":\"sigmoid\",\"no_rope_layer_interval\":4,"
     "\"interleave_moe_layer_step\":1,\"attention_chunk_size\":8192,\"plm_qk_flag\":\"l2\","
     "\"use_qk_norm\":true,\"plm_qk_after_rope\":true,\"num_experts_per_tok\":1,"
     "\"plm_llama4\":true,\"rope_theta\":500000,\"head_dim\":128,\"rms_norm_eps\":1e-5}"},
    {"nemotron_h",
     "{\"plm_norms\":1,\"plm_no_rope\":true,\"plm_plain_mlp\":true,\"plm_router\":\"sigmoid\","
     "\"plm_router_bias\":true,\"mlp_hidden_act\":\"relu2\",\"conv_kernel\":4,"
     "\"norm_topk_prob\":true,\"plm_mamba\":true,\"plm_single\":true,"
     "\"layer_norm_epsilon\":1e-5}"},
    {"gemma3n|gemma3n_text", "{\"plm_refuse\":\"alternating updates and per-layer embeddings\"}"},
    {"minimax|minimax_text_01", "{\"plm_refuse\":\"lightning attention\"}"},
    {"rwkv|rwkv5|rwkv6|rwkv7", "{\"plm_refuse\":\"RWKV time mixing\"}"},
    {"mamba|falcon_mamba", "{\"plm_refuse\":\"Mamba-1 selective scan\"}"},
    {"recurrent_gemma", "{\"plm_refuse\":\"RG-LRU recurrence\"}"},
    {"jamba", "{\"plm_refuse\":\"Mamba-1 layers\"}"},
    {"falcon_h1", "{\"plm_refuse\":\"attention and Mamba side by side\"}"},
    {"longcat_flash", "{\"plm_refuse\":\"pairs of attention blocks and zero experts\"}"},
    {"jetmoe", "{\"plm_refuse\":\"experts of attention\"}"},
    {"bitnet", "{\"plm_refuse\":\"norms inside the halves of a layer\"}"},
    {"persimmon", "{\"plm_refuse\":\"layer norms of queries and keys\"}"},
    {"diffllama", "{\"plm_refuse\":\"differential attention\"}"},
    {"axk2", "{\"plm_refuse\":\"gated norms\"}"},
    {"beam", "{\"plm_refuse\":\"biased attention gates\"}"},
    {"bailing_hybrid", "{\"plm_refuse\":\"full-rank gates of delta attention\"}"},
    {"dots3_note|dots3_note_text", "{\"plm_refuse\":\"windowed latent attention\"}"},
    {"hy_v4", "{\"plm_refuse\":\"shared indexers and scaled streams\"}"},
    {"zaya", "{\"plm_refuse\":\"convolved queries and keys\"}"},
    {"gpt_neox_japanese", "{\"plm_refuse\":\"bias of the last layer alone\"}"},
};

static bool names_hold(const char *names, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = names; p != NULL && *p != '\0';) {
        const char *bar = strchr(p, '|');
        size_t len = bar != NULL ? (size_t)(bar - p) : strlen(p);
        if (len == n && memcmp(p, name, n) == 0)
            return true;
        p = bar != NULL ? bar + 1 : NULL;
    }
    return false;
}

const char *plm_config_family(const char *type)
{
    for (size_t i = 0; i < sizeof family / sizeof *family; i++)
        if (names_hold(family[i].types, type))
            return family[i].json;
    return NULL;
}

/* Letters and digits of a and b are the same, whatever their case. */
static bool same_letters(const char *a, size_t na, const char *b, size_t nb)
{
    size_t i = 0, k = 0;
    for (;;) {
        while (i < na && !isalnum((unsigned char)a[i]))
            i++;
        while (k < nb && !isalnum((unsigned char)b[k]))
            k++;
        if (i == na || k == nb)
            return i == na && k == nb;
        if (tolower((unsigned char)a[i++]) != tolower((unsigned char)b[k++]))
            return false;
    }
}

const char *plm_config_family_of_class(const char *name)
{
    static const char *const ends[] = {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t m = strlen(ends[i]);
        if (n <= m || strcmp(name + n - m, ends[i]) != 0)
            continue;
        for (size_t k = 0; k < sizeof family / sizeof *family; k++)
            for (const char *p = family[k].types; p != NULL && *p != '\0';) {
                const char *bar = strchr(p, '|');
                if (same_letters(p, bar != NULL ? (size_t)(bar - p) : strlen(p), name, n - m))
                    return family[k].json;
                p = bar != NULL ? bar + 1 : NULL;
            }
    }
    return NULL;
}

bool plm_config_family_at(size_t i, const char **types, const char **json)
{
    if (i >= sizeof family / sizeof *family)
        return false;
    *types = family[i].types;
    *json = family[i].json;
    return true;
}
