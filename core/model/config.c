/* config.c - Hugging Face config.json -> arch record: entry, top level, sequence of layers. */
#include "core/model/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/model/config_keys.h"
#include "core/model/load.h"

/* ---- top level ---- */

static plm_status read_heads(plm_config *c)
{
    bool falcon = plm_config_trait(c, "plm_falcon"), multi = false, grouped = false;
    int32_t hidden = c->arch->hidden, group = 0;
    PLM_TRY(plm_config_int(c, "num_attention_heads|n_head|n_heads|num_heads|attention_heads",
                           PLM_CONFIG_NEEDED, 1 << 16, &c->heads));
    if (c->heads == 0)
        return plm_config_bad(c, "num_attention_heads", "at least 1");
    PLM_TRY(plm_config_int(c, "num_key_value_heads|num_kv_heads|n_head_kv|n_kv_heads|kv_n_heads",
                           -1, 1 << 16, &c->kv_heads));
    PLM_TRY(plm_config_int(c, "num_key_value_groups|kv_group_size", 0, 1 << 16, &group));
    if (c->kv_heads < 0 && group > 0) { /* query heads that share a key-value head */
        if (c->heads % group != 0)
            return plm_config_bad(c, "num_key_value_groups", "a divisor of num_attention_heads");
        c->kv_heads = c->heads / group;
    }
    if (c->kv_heads < 0)
        c->kv_heads = c->heads;
    PLM_TRY(plm_config_flag(c, "multi_query", false, &multi));
    PLM_TRY(plm_config_flag(c, "new_decoder_architecture", false, &grouped));
    if (multi && !(falcon && grouped)) /* multi_query wins over a stray num_kv_heads */
        c->kv_heads = 1;
    if (c->kv_heads == 0 || c->heads % c->kv_heads != 0)
        return plm_fail(c->err, PLM_E_INVALID,
                        "bad value of \"num_attention_heads\", %s: %d is not a multiple of %d "
                        "key-value heads; correct the file",
                        c->where, c->heads, c->kv_heads);
    PLM_TRY(plm_config_int(c, "head_dim|kv_channels|attention_head_dim", 0, 1 << 16, &c->head_dim));
    if (c->head_dim == 0) {
        if (hidden % c->heads != 0 && !plm_config_has(c, "kv_lora_rank") &&
            !plm_config_trait(c, "plm_floor_head"))
            return plm_fail(c->err, PLM_E_INVALID,
                            "bad value of \"hidden_size\", %s: %d is not a multiple of %d heads; "
                            "give head_dim",
                            c->where, hidden, c->heads);
        c->head_dim = hidden / c->heads;
    }
    return PLM_OK;
}

static plm_status read_norm(const plm_config *c)
{
    plm_arch *a = c->arch;
    const char *kind = plm_config_trait_text(c, "plm_norm", "rms");
    bool layer = strncmp(kind, "layer", 5) == 0;
    /* An unlisted family is a decoder with RMS norms if it says so, or has keys that no older
    ** transformer has and none of a layer norm. */
    bool modern = plm_config_has(c, "num_key_value_heads|rope_theta|rope_parameters|rope_scaling");
    if (!c->known && !plm_config_has(c, "rms_norm_eps") &&
        (!modern ||
         plm_config_has(c, "layer_norm_eps|layer_norm_epsilon|layernorm_epsilon|norm_epsilon")))
        return plm_config_refuse(c, "model_type", c->type);
    a->norm = layer ? PLM_NORM_LAYER : PLM_NORM_RMS;
    a->norm_bias = strcmp(kind, "layer") == 0;
    a->norm_offset = plm_config_trait(c, "plm_norm_offset") ? 1 : 0;
    a->norm_plain = plm_config_trait(c, "plm_norm_plain");
    return plm_config_real(c,
                           "rms_norm_eps|layer_norm_eps|layer_norm_epsilon|norm_epsilon|norm_eps|"
                           "layernorm_epsilon",
                           1e-5, &a->norm_eps);
}

static plm_status read_scales(const plm_config *c)
{
    plm_arch *a = c->arch;
    double divide = 0;
    bool scaled = false;
    PLM_TRY(plm_config_real(c, "embedding_multiplier", 1, &a->embed_scale));
    PLM_TRY(plm_config_flag(c, "scale_embedding|mup_enabled", false, &scaled));
    if (scaled || plm_config_trait(c, "plm_embed_sqrt"))
        a->embed_scale = sqrt((double)a->hidden);
    PLM_TRY(plm_config_real(c, "final_logit_softcapping", 0, &a->logit_softcap));
    PLM_TRY(plm_config_real(c, "logit_scale", 0, &a->logit_scale));
    PLM_TRY(plm_config_real(c, "logits_scaling", 0, &divide));
    if (divide > 0 && divide != 1)
        a->logit_scale = 1 / divide;
    PLM_TRY(plm_config_real(c, "residual_multiplier", 0, &a->residual_scale));
    if (a->residual_scale == 1)
        a->residual_scale = 0;
    return PLM_OK;
}

/* Layers: a number, or the length of a list of them. */
static plm_status count_layers(const plm_config *c)
{
    const char *pattern = json_string_value(plm_config_get(c, "hybrid_override_pattern"));
    size_t listed = json_array_size(plm_config_get(c, "layers_block_type"));
    int64_t fallback = pattern != NULL ? (int64_t)strlen(pattern)
                       : listed > 0    ? (int64_t)listed
                                       : PLM_CONFIG_NEEDED;
    PLM_TRY(plm_config_int(c, "num_hidden_layers|n_layer|num_layers|n_layers", fallback,
                           PLM_LAYERS_MAX, &c->arch->layers));
    if (c->arch->layers < 1 || c->arch->layers > PLM_LAYERS_MAX)
        return plm_config_bad(c, "num_hidden_layers", "1 to 1024");
    return PLM_OK;
}

static plm_status read_top(plm_config *c)
{
    plm_arch *a = c->arch;
    int32_t first = 0;
    PLM_TRY(count_layers(c));
    PLM_TRY(plm_config_int(c, "hidden_size|n_embd|d_model|n_embed|dim", PLM_CONFIG_NEEDED, 1 << 20,
                           &a->hidden));
    PLM_TRY(
        plm_config_int(c, "vocab_size|padded_vocab_size", PLM_CONFIG_NEEDED, 1 << 26, &a->vocab));
    PLM_TRY(
        plm_config_long(c,
                        "max_position_embeddings|n_positions|max_sequence_length|model_max_length|"
                        "max_seq_len|n_ctx|seq_length",
                        0, INT64_C(1) << 39, &a->max_context));
    PLM_TRY(read_heads(c));
    PLM_TRY(read_norm(c));
    PLM_TRY(read_scales(c));
    PLM_TRY(plm_config_flag(c, "tie_word_embeddings|tie_embedding", false, &a->tied_head));
    PLM_TRY(
        plm_config_flag(c, "lm_head_bias", plm_config_trait(c, "plm_head_bias"), &a->head_bias));
    a->embed_norm = plm_config_trait(c, "plm_embed_norm");
    PLM_TRY(plm_config_int(c, "hc_mult", 0, 64, &a->hyper));
    PLM_TRY(plm_config_int(c, "plm_pos_offset", 0, 64, &first)); /* rows before position 0 */
    if (plm_config_trait(c, "plm_pos_embed"))
        a->pos_embed = (int32_t)plm_min_i64(a->max_context + first, 1 << 26);
    return plm_config_int(c, "num_nextn_predict_layers|mtp_num_hidden_layers|num_mtp_modules", 0,
                          64, &a->mtp_layers);
}

/* Norm weights of a layer, and whether its halves are parallel. */
static plm_status read_frame(const plm_config *c, plm_layer *k)
{
    int32_t lns = 2;
    bool parallel = false, grouped = false, post = false;
    PLM_TRY(plm_config_int(c, "plm_norms", 2, 4, &k->norms));
    PLM_TRY(plm_config_flag(c, "use_post_norm|use_sandwich_norm", false, &post));
    if (post)
        k->norms = 4;
    k->post_norm = plm_config_trait(c, "plm_post_norm");
    if (k->experts > 0)
        PLM_TRY(plm_config_int(c, "plm_norms_routed", k->norms, 7, &k->norms));
    if (k->experts > 0 && k->ffn > 0)
        PLM_TRY(plm_config_int(c, "plm_norms_moe", k->norms, 7, &k->norms));
    PLM_TRY(
        plm_config_flag(c, "use_parallel_residual|parallel_attn|plm_parallel", false, &parallel));
    k->parallel = parallel;
    if (!plm_config_trait(c, "plm_falcon") || !parallel) {
        if (parallel && strcmp(c->type, "stablelm") == 0)
            k->norms = 1;
        return PLM_OK;
    }
    PLM_TRY(plm_config_flag(c, "new_decoder_architecture", false, &grouped));
    PLM_TRY(plm_config_int(c, "num_ln_in_parallel_attn", grouped ? 2 : 1, 2, &lns));
    k->norms = lns == 2 ? 2 : 1;
    return PLM_OK;
}

static plm_status add_kind(const plm_config *c, const plm_layer *k, int32_t *index)
{
    *index = plm_arch_add_kind(c->arch, k);
    if (*index < 0)
        return plm_fail(c->err, PLM_E_LIMIT,
                        "too many kinds of layer, %s: more than %d; simplify it", c->where,
                        PLM_KINDS_MAX);
    return PLM_OK;
}

/* Keys that are read where they hold this kind of value; another kind would pass for absent. */
static plm_status check_kinds(const plm_config *c, const json_t *obj)
{
    static const struct {
        const char *key;
        json_type type;
        const char *want;
    } kinds[] = {
        {"rope_scaling", JSON_OBJECT, "an object or null"},
        {"rope_parameters", JSON_OBJECT, "an object or null"},
        {"quantization_config", JSON_OBJECT, "an object or null"},
        {"quantization", JSON_OBJECT, "an object or null"},
        {"compression_config", JSON_OBJECT, "an object or null"},
        {"per_layer_config", JSON_OBJECT, "an object or null"},
        {"linear_attn_config", JSON_OBJECT, "an object or null"},
        {"text_config", JSON_OBJECT, "an object or null"},
        {"mlp_only_layers", JSON_ARRAY, "a list of layers"},
        {"architectures", JSON_ARRAY, "a list of names"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const json_t *v = plm_config_member(obj, kinds[i].key);
        if (v != NULL && json_typeof(v) != kinds[i].type && !plm_config_value_empty(v))
            return plm_config_bad(c, kinds[i].key, kinds[i].want);
    }
    return PLM_OK;
}

static plm_status check_keys(const plm_config *c, const json_t *obj)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)obj, key, v)
    {
        if (plm_config_key_matters(key, v))
            return plm_config_refuse(c, "key", key);
    }
    return PLM_OK;
}

/* What a file says of one layer alone: an object of per_layer_config (transformers 5), whose names
** are the layers' numbers, and heads from a list. */
static plm_status enter_layer(const plm_config *c, int32_t layer, plm_config *own)
{
    json_t *v, *all = (json_t *)(uintptr_t)plm_config_get(c, "per_layer_config");
    const char *key;
    int64_t heads = -1;
    *own = *c;
    json_object_foreach(all, key, v)
    {
        char *end;
        if (strtol(key, &end, 10) != layer || end == key || *end != '\0')
            continue;
        if (!json_is_object(v))
            return plm_config_bad(c, "per_layer_config", "an object for a layer");
        PLM_TRY(check_keys(c, v));
        own->layer = v;
        PLM_TRY(read_heads(own));
    }
    PLM_TRY(plm_config_int_at(c, "num_attention_heads_per_layer", layer, &heads));
    if (heads > 1 << 16 || heads == 0 || (heads > 0 && heads % own->kv_heads != 0))
        return plm_config_bad(c, "num_attention_heads_per_layer",
                              "multiples of the key-value heads");
    if (heads > 0)
        own->heads = (int32_t)heads;
    return PLM_OK;
}

static plm_status read_layers(const plm_config *c)
{
    plm_arch *a = c->arch;
    int32_t kind = 0;
    plm_layer k;
    for (int32_t i = 0; i < a->layers; i++) {
        plm_config own;
        PLM_TRY(enter_layer(c, i, &own));
        memset(&k, 0, sizeof k);
        k.kv_shared_layer = -1;
        PLM_TRY(plm_config_attention(&own, i, &k));
        PLM_TRY(plm_config_ffn(&own, i, &k));
        PLM_TRY(read_frame(&own, &k));
        PLM_TRY(add_kind(&own, &k, &kind));
        a->layer_kind[i] = (uint8_t)kind;
    }
    if (a->mtp_layers == 0)
        return PLM_OK;
    if (k.attn == PLM_ATTN_COMPRESSED) { /* the draft layer keeps the window alone */
        k.ratio = k.index_heads = k.index_dim = k.index_top_k = 0;
        plm_rope plain = {.theta = 0, .dims = k.rope.dims, .interleaved = k.rope.interleaved};
        PLM_TRY(plm_config_real(c, "rope_theta", 10000, &plain.theta));
        k.rope = plain;
    }
    PLM_TRY(add_kind(c, &k, &kind));
    a->mtp_kind = kind;
    return PLM_OK;
}

/* Keys that only families of the table give a meaning. */
static plm_status check_unlisted(const plm_config *c)
{
    static const char *const keys[] = {
        "mamba_n_heads",      "mamba_num_heads",         "mamba_d_state",    "ssm_state_size",
        "conv_L_cache",       "sparse_attention_config", "index_block_size", "gating",
        "use_attention_gate", "index_topk_blocks",
    };
    const char *norm = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *v = plm_config_get(c, keys[i]);
        if (v != NULL && !plm_config_value_empty(v))
            return plm_config_refuse(c, "key", keys[i]);
    }
    PLM_TRY(plm_config_text(c, "norm_type|normalization_function", NULL, &norm));
    if (norm != NULL && strstr(norm, "rms") == NULL && strstr(norm, "RMS") == NULL)
        return plm_config_refuse(c, "norm_type", norm);
    return PLM_OK;
}

/* Values that stand for another structure than the family's usual one. */
static plm_status check_values(const plm_config *c)
{
    static const struct {
        const char *names, *want;
    } same[] = {
        {"word_embed_proj_dim|embedding_size", "hidden_size"},
        {"output_vocab_size", "vocab_size"},
    };
    static const char *const needed[] = {"do_layer_norm_before", "mamba_conv_bias",
                                         "use_conv_bias"};
    bool yes = true;
    const json_t *both = plm_config_get(c, "use_bidirectional_attention");
    const char *whom = json_string_value(both);
    if (json_is_true(both) || (whom != NULL && strcmp(whom, "vision") != 0))
        return plm_config_refuse(c, "key", "use_bidirectional_attention");
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        int32_t a = 0, b = 0;
        PLM_TRY(plm_config_int(c, same[i].names, 0, 1 << 26, &a));
        PLM_TRY(plm_config_int(c, same[i].want, 0, 1 << 26, &b));
        if (a != 0 && b != 0 && a != b)
            return plm_config_refuse(c, "key", same[i].names);
    }
    const char *attention = NULL;
    bool prefix = false;
    PLM_TRY(plm_config_text(c, "attn_type", NULL, &attention));
    PLM_TRY(plm_config_flag(c, "prefix_lm", false, &prefix));
    if (attention != NULL && strcmp(attention, "multihead_attention") != 0 &&
        strcmp(attention, "grouped_query_attention") != 0)
        return plm_config_refuse(c, "attn_type", attention);
    if (prefix)
        return plm_config_refuse(c, "key", "prefix_lm");
    PLM_TRY(plm_config_flag(c, "alibi", true, &yes));
    if (!yes && plm_config_trait(c, "plm_nested") && plm_config_trait(c, "plm_no_rope"))
        return plm_config_refuse(c, "value false of key", "alibi");
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        PLM_TRY(plm_config_flag(c, needed[i], true, &yes));
        if (!yes)
            return plm_config_refuse(c, "value false of key", needed[i]);
    }
    return PLM_OK;
}

static plm_status read_config(plm_config *c)
{
    bool both = false;
    if (!json_is_object(c->root))
        return plm_fail(c->err, PLM_E_INVALID, "bad config, %s: not a JSON object; correct it",
                        c->where);
    const char *refuse = plm_config_trait_text(c, "plm_refuse", NULL);
    if (refuse != NULL)
        return plm_config_refuse_own(c, refuse);
    PLM_TRY(plm_config_flag(c, "is_encoder_decoder", false, &both));
    if (both)
        return plm_config_refuse(c, "key", "is_encoder_decoder");
    if (!plm_config_has(c, "vocab_size|padded_vocab_size") &&
        plm_config_has(c, "image_size|patch_size"))
        return plm_config_refuse(c, "model_type", c->type[0] != '\0' ? c->type : "vision");
    PLM_TRY(check_kinds(c, c->root));
    PLM_TRY(check_kinds(c, c->text));
    PLM_TRY(check_keys(c, c->text));
    PLM_TRY(check_values(c));
    if (!c->known)
        PLM_TRY(check_unlisted(c));
    PLM_TRY(read_top(c));
    PLM_TRY(plm_config_storage(c));
    PLM_TRY(read_layers(c));
    return plm_arch_check(c->arch, c->err);
}

/* The language model's own object: text_config and its relatives when the file is multimodal. */
static const json_t *text_object(const json_t *root)
{
    static const char *const nest[] = {"text_config", "llm_config", "language_config"};
    for (size_t i = 0; i < sizeof nest / sizeof *nest; i++) {
        const json_t *v = plm_config_member(root, nest[i]);
        if (json_is_object(v) && json_object_size(v) > 0)
            return v;
    }
    return root;
}

static void set_names(plm_arch *a, const char *where, const char *type)
{
    const char *end = where + strlen(where);
    const char *tail = "/config.json";
    size_t n = strlen(tail);
    if (strlen(where) > n && strcmp(end - n, tail) == 0)
        end -= n;
    const char *start = end;
    while (start > where && start[-1] != '/')
        start--;
    snprintf(a->id, sizeof a->id, "%.*s", (int)plm_min_i64(end - start, 90), start);
    snprintf(a->family, sizeof a->family, "%.47s", type);
}

/* Python writes Infinity and NaN, which JSON has not: blanked to null, in place. */
static void blank_word(char *text, const char *word)
{
    size_t n = strlen(word);
    bool quoted = false;
    for (char *p = text; *p != '\0'; p++) {
        if (*p == '\\' && p[1] != '\0')
            p++;
        else if (*p == '"')
            quoted = !quoted;
        else if (!quoted && strncmp(p, word, n) == 0) {
            memset(p, ' ', n);
            memcpy(p, n >= 4 ? "null" : "0  ", n >= 4 ? 4 : 3);
        }
    }
}

static plm_status parse_config(const char *json, size_t bytes, const char *where, json_t **root,
                               plm_error *err)
{
    char *copy = plm_malloc(bytes + 1);
    if (copy == NULL)
        return plm_fail_memory(err, where);
    memcpy(copy, json, bytes);
    copy[bytes] = '\0';
    if (strlen(copy) == bytes) {
        blank_word(copy, "-Infinity");
        blank_word(copy, "Infinity");
        blank_word(copy, "NaN");
    }
    plm_status status = plm_json_parse(copy, bytes, where, root, err);
    plm_free(copy);
    return status;
}

plm_status plm_model_from_config(const char *json, size_t bytes, const char *where, plm_arch *out,
                                 plm_error *err)
{
    plm_arch_init(out);
    json_t *root = NULL;
    plm_config c = {.where = where, .arch = out, .err = err, .type = ""};
    plm_status status;
    PLM_GOTO(parse_config(json, bytes, where, &root, err));
    c.root = root;
    c.text = text_object(root);
    const char *type = json_string_value(plm_config_member(c.text, "model_type"));
    if (type == NULL)
        type = json_string_value(plm_config_member(root, "model_type"));
    if (type != NULL)
        c.type = type;
    set_names(out, where, c.type);
    const char *family = plm_config_family(c.type);
    const json_t *classes = plm_config_member(c.text, "architectures");
    if (family == NULL && !json_is_array(classes))
        classes = plm_config_member(root, "architectures");
    if (family == NULL && json_is_string(json_array_get(classes, 0)))
        family = plm_config_family_of_class(json_string_value(json_array_get(classes, 0)));
    c.known = family != NULL;
    if (family == NULL)
        family = "{}";
    PLM_GOTO(plm_json_parse(family, strlen(family), "family", &c.defaults, err));
    PLM_GOTO(read_config(&c));
done:
    json_decref(c.defaults);
    json_decref(root);
    return status;
}
