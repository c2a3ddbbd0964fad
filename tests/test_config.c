/* config.json of well-known models, written by hand from their published values, against the
** catalog's records; traits of families; constructs that must be refused by name. */
#include "core/base/catalog.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/model/build.h"
#include "core/model/config.h"
#include "core/model/fields.h"
#include "core/model/load.h"
#include "tests/support.h"

static const struct {
    const char *id, *json;
} same[] = {
#include "tests/data/configs.h"
};

static plm_status read_text(const char *json, plm_arch *a, plm_error *err)
{
    return plm_model_from_config(json, strlen(json), "x/config.json", a, err);
}

static void equals_catalog(void **state)
{
    (void)state;
    plm_error err = {0};
    plm_catalog *c;
    plm_arch got, want;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const plm_record *r = plm_catalog_find(c, "models", same[i].id);
        assert_non_null(r);
        if (plm_model_from_record(r->text, r->bytes, r->id, &want, &err) != PLM_OK)
            fail_msg("%s: record: %s", same[i].id, err.text);
        if (read_text(same[i].json, &got, &err) != PLM_OK)
            fail_msg("%s: config: %s", same[i].id, err.text);
        if (plm_arch_same(&got, &want, &err) != PLM_OK)
            fail_msg("%s: %s", same[i].id, err.text);
        plm_arch_fini(&got);
        plm_arch_fini(&want);
    }
    plm_catalog_destroy(c);
}

static const struct {
    const char *family;
    int64_t params;
    const char *json;
} counted[] = {
#include "tests/data/families.h"
};

/* Every family has just the parameters that transformers gives it. */
static void families_count(void **state)
{
    (void)state;
    plm_error err = {0};
    plm_arch a;
    plm_params p;
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        if (read_text(counted[i].json, &a, &err) != PLM_OK ||
            plm_count_params(&a, &p, &err) != PLM_OK)
            fail_msg("%s: %s", counted[i].family, err.text);
        if (p.total != counted[i].params)
            fail_msg("%s: %lld parameters, want %lld", counted[i].family, (long long)p.total,
                     (long long)counted[i].params);
        plm_arch_fini(&a);
    }
}

/* Cache a token and state a sequence of the kinds of layer that have their own, by hand, 2 bytes an
** element and 4 of a recurrent state. */
static void families_cache(void **state)
{
    (void)state;
    static const struct {
        const char *family;
        int64_t kv, state;
    } want[] = {
        /* 2 of 6 layers attend: k and v of 8 heads of 80; 4 tails of 2560 channels and 2 tokens */
        {"lfm2", INT64_C(2) * 2 * 8 * 80 * 2, INT64_C(4) * 2560 * 2 * 2},
        /* 6 states of 128 heads of 64 by 128, tails of 8192 + 2 * 8 * 128 channels and 3 tokens */
        {"mamba2", 0, INT64_C(6) * (128 * 64 * 128 * 4 + (8192 + 2048) * 3 * 2)},
        /* 2 of 6 attend with 32 heads of 128; 4 states of 128 heads of 64 by 256 */
        {"granitemoehybrid", INT64_C(2) * 2 * 32 * 128 * 2,
         INT64_C(4) * (128 * 64 * 256 * 4 + (8192 + 512) * 3 * 2)},
        /* layers 0 and 5 full with 4 heads, 4 windowed with 8; keys of 192, values of 128 */
        {"mimo_v2_flash", (INT64_C(2) * 4 + 4 * 8) * (192 + 128) * 2, 0},
        /* 5 windowed of 4 heads of 256, one full of 4 heads of 512 */
        {"gemma4_unified_text", (INT64_C(5) * 256 + 512) * 4 * 2 * 2, 0},
    };
    plm_error err = {0};
    plm_arch a;
    plm_kv_options o = {.k = PLM_DT_BF16, .v = PLM_DT_BF16};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        size_t n = 0;
        int64_t kv = 0, fixed = 0;
        while (strcmp(counted[n].family, want[i].family) != 0)
            assert_true(++n < sizeof counted / sizeof *counted);
        assert_ok(read_text(counted[n].json, &a, &err), err);
        assert_ok(plm_kv_bytes_per_token(&a, &o, &kv, &err), err);
        assert_ok(plm_state_bytes(&a, &o, &fixed, &err), err);
        if (kv != want[i].kv || fixed != want[i].state)
            fail_msg("%s: %lld and %lld bytes", want[i].family, (long long)kv, (long long)fixed);
        plm_arch_fini(&a);
    }
}

#define LLAMA_KEYS                                                                                 \
    "\"num_hidden_layers\":4,\"hidden_size\":256,\"num_attention_heads\":8,"                       \
    "\"num_key_value_heads\":2,\"intermediate_size\":512,\"vocab_size\":1000,"                     \
    "\"rms_norm_eps\":1e-5,\"hidden_act\":\"silu\""

/* The rows of the family table are JSON, and each name is in one row only. */
static void families_parse(void **state)
{
    (void)state;
    plm_error err = {0};
    const char *types, *json;
    size_t n = 0;
    for (; plm_config_family_at(n, &types, &json); n++) {
        json_t *obj;
        assert_ok(plm_json_parse(json, strlen(json), types, &obj, &err), err);
        json_decref(obj);
        char first[64];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(types, "|"), types);
        assert_ptr_equal(plm_config_family(first), json);
    }
    assert_true(n > 40);
    assert_null(plm_config_family("qwen"));
    assert_null(plm_config_family(""));
}

/* A regular decoder of a family nobody listed. */
static void unlisted_family(void **state)
{
    (void)state;
    plm_error err = {0};
    plm_arch a;
    assert_ok(read_text("{\"model_type\":\"brand_new\"," LLAMA_KEYS
                        ",\"torch_dtype\":\"bfloat16\"}",
                        &a, &err),
              err);
    assert_int_equal(a.layers, 4);
    assert_int_equal(a.n_kinds, 1);
    assert_int_equal(a.kind[0].dk, 32);
    assert_int_equal(a.kind[0].kv_heads, 2);
    assert_int_equal(a.kind[0].rope.dims, 32);
    assert_int_equal(a.file_dtype, PLM_DT_BF16);
    assert_string_equal(a.id, "x");
    plm_arch_fini(&a);
}

/* Experts of a family nobody listed: their keys under any of the usual names, scores by what the
** file says, else softmax; keys of training and numerics do not matter. */
static void unlisted_experts(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        plm_fn fn;
        bool bias;
        int32_t dense, shared;
    } given[] = {
        {"\"num_experts\":16,\"num_experts_per_tok\":2,\"moe_intermediate_size\":64",
         PLM_FN_SOFTMAX, false, 0, 0},
        {"\"n_routed_experts\":16,\"num_experts_per_tok\":2,\"moe_intermediate_size\":64,"
         "\"scoring_func\":\"sigmoid\",\"topk_method\":\"noaux_tc\",\"n_shared_experts\":2,"
         "\"first_k_dense_replace\":1",
         PLM_FN_SIGMOID, true, 1, 128},
        {"\"num_local_experts\":16,\"moe_topk\":2,\"expert_intermediate_size\":64,"
         "\"score_function\":\"sigmoid\",\"moe_router_enable_expert_bias\":true,"
         "\"shared_expert_intermediate_size\":96,\"mlp_layer_types\":[\"dense\",\"sparse\","
         "\"sparse\",\"sparse\"]",
         PLM_FN_SIGMOID, true, 1, 96},
        {"\"moe_num_experts\":16,\"num_experts_per_token\":2,\"moe_intermediate_size\":64,"
         "\"router_z_loss_coef\":0.1,\"moe_layer_dropout\":0.1,\"expert_init_std\":0.02,"
         "\"moe_router_dtype\":\"float32\",\"layer_token_id\":3",
         PLM_FN_SOFTMAX, false, 0, 0},
    };
    plm_error err = {0};
    plm_arch a;
    char text[1024];
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        snprintf(text, sizeof text, "{\"model_type\":\"brand_new\"," LLAMA_KEYS ",%s}",
                 given[i].keys);
        if (read_text(text, &a, &err) != PLM_OK)
            fail_msg("%s: %s", given[i].keys, err.text);
        const plm_layer *first = plm_arch_layer(&a, 0), *last = plm_arch_layer(&a, 3);
        assert_int_equal(first->experts == 0, given[i].dense);
        assert_int_equal(last->experts, 16);
        assert_int_equal(last->top_k, 2);
        assert_int_equal(last->expert_ffn, 64);
        assert_int_equal(last->router_fn, given[i].fn);
        assert_int_equal(last->router_bias, given[i].bias);
        assert_int_equal(last->shared_ffn, given[i].shared);
        plm_arch_fini(&a);
    }
}

/* A name of its own on a known class is that class; so is none at all. */
static void known_class(void **state)
{
    (void)state;
    plm_error err = {0};
    plm_arch a, b, c;
    assert_ok(read_text("{\"model_type\":\"qwen3\"," LLAMA_KEYS "}", &a, &err), err);
    assert_int_equal(a.kind[0].qk_norm, PLM_QK_HEAD);
    assert_ok(
        read_text("{\"model_type\":\"our_own\",\"architectures\":[\"Qwen3ForCausalLM\"]," LLAMA_KEYS
                  "}",
                  &b, &err),
        err);
    assert_ok(read_text("{\"architectures\":[\"Qwen3ForCausalLM\"]," LLAMA_KEYS "}", &c, &err),
              err);
    assert_ok(plm_arch_same(&a, &b, &err), err);
    assert_ok(plm_arch_same(&a, &c, &err), err);
}

/* Settings of one layer (transformers 5). */
static void layer_settings(void **state)
{
    (void)state;
    plm_error err = {0};
    plm_arch a;
    assert_ok(read_text("{" LLAMA_KEYS ",\"per_layer_config\":{\"02\":{\"head_dim\":64,"
                        "\"num_key_value_heads\":4,\"intermediate_size\":128}}}",
                        &a, &err),
              err);
    assert_int_equal(a.n_kinds, 2);
    for (int32_t i = 0; i < 4; i++) {
        const plm_layer *k = plm_arch_layer(&a, i);
        assert_int_equal(k->dk, i == 2 ? 64 : 32);
        assert_int_equal(k->kv_heads, i == 2 ? 4 : 2);
        assert_int_equal(k->ffn, i == 2 ? 128 : 512);
    }
    assert_int_equal(
        read_text("{" LLAMA_KEYS ",\"per_layer_config\":{\"1\":{\"ssm_d\":4}}}", &a, &err),
        PLM_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "ssm_d"));
    assert_int_equal(read_text("{" LLAMA_KEYS ",\"per_layer_config\":{\"1\":7}}", &a, &err),
                     PLM_E_INVALID);
    assert_int_equal(
        read_text("{" LLAMA_KEYS ",\"num_attention_heads_per_layer\":[8,8,7,8]}", &a, &err),
        PLM_E_INVALID);
}

/* Both old and new spellings of one model give one arch. */
static void aliases(void **state)
{
    (void)state;
    plm_error err = {0};
    plm_arch a, b;
    assert_ok(read_text("{" LLAMA_KEYS
                        ",\"rope_theta\":500000,\"rope_scaling\":{\"type\":\"linear\","
                        "\"factor\":4}}",
                        &a, &err),
              err);
    assert_ok(
        read_text("{\"n_layer\":4,\"n_embd\":256,\"n_head\":8,\"num_kv_heads\":2,\"n_inner\":512,"
                  "\"padded_vocab_size\":1000,\"rms_norm_eps\":0.00001,\"activation_function\":"
                  "\"silu\",\"rope_parameters\":{\"rope_type\":\"linear\",\"rope_theta\":500000.0,"
                  "\"factor\":4.0}}",
                  &b, &err),
        err);
    assert_ok(plm_arch_same(&a, &b, &err), err);
    plm_arch_fini(&a);
    plm_arch_fini(&b);
}

/* CA-04: 32 heads and the number 8, as key-value heads and as query heads that share one.
** heads = kv_heads * group (rasbt/LLMs-from-scratch issue 922). */
static void gqa_fields(void **state)
{
    (void)state;
    plm_error err = {0};
    plm_arch a;
    static const char head[] =
        "{\"num_hidden_layers\":1,\"hidden_size\":4096,\"intermediate_size\":64,"
        "\"vocab_size\":10,\"rms_norm_eps\":1e-5,\"num_attention_heads\":32,";
    char text[512];
    snprintf(text, sizeof text, "%s\"num_key_value_heads\":8}", head);
    assert_ok(read_text(text, &a, &err), err);
    assert_int_equal(a.kind[0].kv_heads, 8);
    assert_int_equal(a.kind[0].heads / a.kind[0].kv_heads, 4);
    snprintf(text, sizeof text, "%s\"num_key_value_groups\":8}", head);
    assert_ok(read_text(text, &a, &err), err);
    assert_int_equal(a.kind[0].kv_heads, 4);
    assert_int_equal(a.kind[0].heads / a.kind[0].kv_heads, 8);
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *extra, *named;
    } bad[] = {
        {",\"layer_types\":[\"full_attention\",\"spiral_attention\",\"full_attention\","
         "\"full_attention\"]",
         "spiral_attention"},
        {",\"rope_scaling\":{\"rope_type\":\"helix\",\"factor\":2}", "helix"},
        {",\"hidden_act\":\"xielu\"", "xielu"},
        {",\"num_memory_blocks\":4", "num_memory_blocks"},
        {",\"ssm_cfg\":{\"d\":1}", "ssm_cfg"},
        {",\"my_attn_mode\":\"x\"", "my_attn_mode"},
        {",\"special_layers\":[1]", "special_layers"},
        {",\"expert_choice\":true", "expert_choice"},
        {",\"is_encoder_decoder\":true", "is_encoder_decoder"},
        {",\"quantization_config\":{\"quant_method\":\"quip\"}", "quip"},
        {",\"sliding_window\":128", "sliding_window"},
        {",\"num_experts\":8,\"num_experts_per_tok\":2,\"scoring_func\":\"dice\"", "dice"},
        {",\"gated_norm_rank\":16", "gated_norm_rank"},
        {",\"n_recurrent_loops\":2", "n_recurrent_loops"},
        {",\"hc_count\":4", "hc_count"},
        {",\"attention_sink_tokens\":4", "attention_sink_tokens"},
        {",\"use_bidirectional_attention\":true", "use_bidirectional_attention"},
        {",\"position_embedding_type\":\"spiral\"", "spiral"},
        {",\"model_type\":\"opt\",\"word_embed_proj_dim\":64", "word_embed_proj_dim"},
        {",\"model_type\":\"opt\",\"do_layer_norm_before\":false", "do_layer_norm_before"},
        {",\"model_type\":\"diffllama\"", "differential attention"},
        {",\"mamba_n_heads\":4,\"mamba_d_state\":16", "mamba_n_heads"},
        {",\"conv_L_cache\":3", "conv_L_cache"},
        {",\"gating\":true", "gating"},
        {",\"norm_type\":\"layer_norm\"", "layer_norm"},
        {",\"hidden_act\":\"relu2\"", "relu2"},
        {",\"kv_lora_rank\":8,\"qk_nope_head_dim\":8,\"qk_rope_head_dim\":8,\"v_head_dim\":8,"
         "\"sliding_window\":16,\"layer_types\":[\"sliding_attention\",\"full_attention\","
         "\"full_attention\",\"full_attention\"]",
         "kv_lora_rank"},
        {",\"model_type\":\"mpt\",\"attn_config\":{\"alibi\":false}", "alibi"},
        {",\"model_type\":\"mpt\",\"attn_config\":{\"attn_type\":\"multiquery_attention\"}",
         "multiquery_attention"},
        {",\"model_type\":\"mpt\",\"attn_config\":{\"prefix_lm\":true}", "prefix_lm"},
        {",\"model_type\":\"glm_moe_dsa\",\"kv_lora_rank\":8,\"qk_nope_head_dim\":8,"
         "\"qk_rope_head_dim\":8,\"v_head_dim\":8,\"indexer_types\":[\"full\",\"shared\"]",
         "indexer_types"},
        {",\"model_type\":\"rwkv7\"", "rwkv7"},
        {",\"model_type\":\"recurrent_gemma\"", "RG-LRU"},
        {",\"torch_dtype\":\"float3\"", "float3"},
        {",\"qk_layernorm\":true", "qk_layernorm"},
        {",\"use_qk_norm\":true,\"qk_norm_type\":\"per_pair\"", "per_pair"},
        {",\"model_type\":\"kimi_linear\",\"linear_attn_config\":{\"num_heads\":2}",
         "full_attn_layers"},
        {",\"linear_attn_config\":{\"full_attn_layers\":[4]}", "linear_attn_config"},
        {",\"full_attention_interval\":2,\"linear_num_value_heads\":4", "mixer"},
        {",\"model_type\":\"gemma4_text\",\"hidden_size_per_layer_input\":256",
         "hidden_size_per_layer_input"},
    };
    plm_error err;
    plm_arch a;
    char text[1024];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *act =
            strstr(bad[i].extra, "hidden_act") ? ",\"x\":0" : ",\"hidden_act\":\"silu\"";
        snprintf(text, sizeof text,
                 "{\"num_hidden_layers\":4,\"hidden_size\":256,\"num_attention_heads\":8,"
                 "\"intermediate_size\":512,\"vocab_size\":1000,\"rms_norm_eps\":1e-5%s%s}",
                 act, bad[i].extra);
        memset(&err, 0, sizeof err);
        plm_status status = read_text(text, &a, &err);
        plm_arch_fini(&a);
        if (status != PLM_E_UNSUPPORTED || strstr(err.text, bad[i].named) == NULL)
            fail_msg("%s: status %d, \"%s\"", bad[i].extra, (int)status, err.text);
    }
    /* Empty values of such keys say nothing. */
    assert_ok(read_text("{" LLAMA_KEYS ",\"num_memory_blocks\":0,\"expert_choice\":false,"
                        "\"layer_types_x\":null,\"moe_stuff\":[]}",
                        &a, &err),
              err);
    /* No decoder at all: BERT has no rms_norm_eps, a vision tower no vocabulary. */
    assert_int_equal(
        read_text("{\"model_type\":\"bert\",\"num_hidden_layers\":12,\"hidden_size\":768,"
                  "\"num_attention_heads\":12,\"intermediate_size\":3072,\"vocab_size\":"
                  "30522,\"layer_norm_eps\":1e-12,\"hidden_act\":\"gelu\"}",
                  &a, &err),
        PLM_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "bert"));
    assert_int_equal(
        read_text("{\"model_type\":\"vit\",\"num_hidden_layers\":12,\"hidden_size\":768,"
                  "\"image_size\":224}",
                  &a, &err),
        PLM_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "vit"));
}

/* Each message names the key; counts from outside never wrap. */
static void bad_values(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
    } bad[] = {
        {"num_hidden_layers", "0"},
        {"num_hidden_layers", "9223372036854775807"},
        {"num_hidden_layers", "-1"},
        {"num_hidden_layers", "\"many\""},
        {"hidden_size", "-4096"},
        {"hidden_size", "null"},
        {"hidden_size", "0"},
        {"num_attention_heads", "0"},
        {"num_attention_heads", "7"},
        {"num_key_value_heads", "3"},
        {"num_key_value_heads", "2.5"},
        {"vocab_size", "1e18"},
        {"vocab_size", "0"},
        {"intermediate_size", "-5"},
        {"rms_norm_eps", "-1"},
        {"rms_norm_eps", "\"x\""},
    };
    plm_error err;
    plm_arch a;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        static const struct {
            const char *key, *value;
        } good[] = {{"num_hidden_layers", "4"},   {"hidden_size", "256"},
                    {"num_attention_heads", "8"}, {"num_key_value_heads", "2"},
                    {"intermediate_size", "512"}, {"vocab_size", "1000"},
                    {"rms_norm_eps", "1e-5"}};
        char text[1024] = "{\"model_type\":\"llama\"";
        for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
            bool swap = strcmp(good[k].key, bad[i].key) == 0;
            size_t n = strlen(text);
            snprintf(text + n, sizeof text - n, ",\"%s\":%s", good[k].key,
                     swap ? bad[i].value : good[k].value);
        }
        strcat(text, "}");
        memset(&err, 0, sizeof err);
        plm_status status = read_text(text, &a, &err);
        plm_arch_fini(&a);
        bool heads = strcmp(bad[i].key, "num_key_value_heads") == 0;
        if (status != PLM_E_INVALID ||
            (strstr(err.text, bad[i].key) == NULL && !(heads && strstr(err.text, "key-value"))) ||
            strchr(err.text, '\n') != NULL)
            fail_msg("%s: status %d, \"%s\"", text, (int)status, err.text);
    }
}

static void quantised(void **state)
{
    (void)state;
    static const struct {
        const char *json, *want;
    } q[] = {
        {"{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}", "fp8_block"},
        {"{\"quant_method\":\"fp8\"}", "fp8"},
        {"{\"quant_method\":\"mxfp4\"}", "mxfp4"},
        {"{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128}", "awq4"},
        {"{\"quant_method\":\"gptq\",\"bits\":8}", "gptq8"},
        {"{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true,\"bnb_4bit_quant_type\":\"nf4\","
         "\"bnb_4bit_use_double_quant\":true}",
         "nf4_dq"},
        {"{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"config_"
         "groups\":"
         "{\"group_0\":{\"weights\":{\"num_bits\":8,\"type\":\"float\",\"strategy\":\"channel\"}}}"
         "}",
         "fp8_row"},
        {"{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\",\"config_groups\":"
         "{\"group_0\":{\"weights\":{\"num_bits\":4,\"type\":\"int\",\"strategy\":\"group\"}}}}",
         "w4a16"},
        {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\"}", "nvfp4"},
    };
    plm_error err = {0};
    plm_arch a;
    for (size_t i = 0; i < sizeof q / sizeof *q; i++) {
        char text[1024];
        snprintf(text, sizeof text, "{" LLAMA_KEYS ",\"quantization_config\":%s}", q[i].json);
        assert_ok(read_text(text, &a, &err), err);
        assert_string_equal(a.file_quant, q[i].want);
    }
}

/* Python's Infinity is not JSON; Nemotron-H files hold it. */
static void infinity(void **state)
{
    (void)state;
    plm_error err = {0};
    plm_arch a;
    assert_ok(read_text("{" LLAMA_KEYS ",\"time_step_limit\":[0.0, Infinity],\"x\":NaN,\"y\":"
                        "\"a \\\"NaN\"}",
                        &a, &err),
              err);
}

static void longrope(void **state)
{
    (void)state;
    plm_error err = {0};
    plm_arch a;
    const char *head = "{\"num_hidden_layers\":1,\"hidden_size\":16,\"num_attention_heads\":2,"
                       "\"intermediate_size\":32,\"vocab_size\":10,\"rms_norm_eps\":1e-5,"
                       "\"model_type\":\"phi3\",\"max_position_embeddings\":131072,"
                       "\"original_max_position_embeddings\":4096,\"rope_scaling\":{\"type\":"
                       "\"longrope\",\"short_factor\":[1,1.1,1.2,1.3],\"long_factor\":";
    char text[1024];
    snprintf(text, sizeof text, "%s[1,2,3,4.5]}}", head);
    assert_ok(read_text(text, &a, &err), err);
    assert_int_equal(a.kind[0].rope.n_factors, 4);
    assert_close(a.kind[0].rope.factor, 32, 1e-12, 0);
    assert_close(a.kind[0].rope.orig_ctx, 4096, 0, 0);
    assert_close((double)a.rope_long[3], 4.5, 0, 0);
    plm_arch_fini(&a);
    snprintf(text, sizeof text, "%s[1,2,3]}}", head);
    assert_int_equal(read_text(text, &a, &err), PLM_E_INVALID);
    plm_arch_fini(&a);
}

/* Every allocation in turn fails: a clean error, and nothing is left behind. */
static void torture(void **state)
{
    (void)state;
    plm_mem_init();
    plm_arch a;
    plm_error err;
    int64_t live = plm_mem_live();
    for (uint64_t n = 1;; n++) {
        plm_mem_fail_at(n, false);
        plm_status status = read_text(same[0].json, &a, &err);
        plm_mem_fail_at(0, false);
        plm_arch_fini(&a);
        assert_int_equal(plm_mem_live(), live);
        if (status == PLM_OK)
            break;
        if (status != PLM_E_NO_MEMORY)
            fail_msg("allocation %d: %s", (int)n, err.text);
        assert_true(n < 100000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_catalog),   cmocka_unit_test(families_parse),
        cmocka_unit_test(unlisted_family),  cmocka_unit_test(aliases),
        cmocka_unit_test(families_count),   cmocka_unit_test(families_cache),
        cmocka_unit_test(unlisted_experts), cmocka_unit_test(known_class),
        cmocka_unit_test(layer_settings),   cmocka_unit_test(gqa_fields),
        cmocka_unit_test(refuses),          cmocka_unit_test(bad_values),
        cmocka_unit_test(quantised),        cmocka_unit_test(infinity),
        cmocka_unit_test(longrope),         cmocka_unit_test(torture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
