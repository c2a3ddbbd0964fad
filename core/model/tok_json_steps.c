/* tok_json_steps.c - the steps around the model of a tokenizer.json: normalizer, pre_tokenizer,
** post_processor, decoder. Types and fields: huggingface/tokenizers 0.21, their serialised
** forms. A type that is not understood is refused by name. */
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/model/tok_json.h"

#define DEPTH_MAX 8

static const char *type_of(const json_t *o)
{
    const char *s = json_string_value(json_object_get(o, "type"));
    return s != NULL ? s : "";
}

static bool is(const json_t *o, const char *type)
{
    return strcmp(type_of(o), type) == 0;
}

static bool flag(const json_t *o, const char *key, bool otherwise)
{
    const json_t *v = json_object_get(o, key);
    return json_is_boolean(v) ? json_is_true(v) : otherwise;
}

static const char *text(const json_t *o, const char *key, const char *otherwise)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : otherwise;
}

plm_status plm_tok_json_refuse(const plm_tok_json *r, const char *what, const char *name)
{
    return plm_fail(r->err, PLM_E_UNSUPPORTED,
                    "tokenizer, %s: %s %.60s is not understood; use the model's GGUF", r->where,
                    what, name);
}

/* {"Regex": p} as it is, {"String": s} with everything quoted. Heap text. */
static plm_status pattern(const plm_tok_json *r, const json_t *o, char **out)
{
    const char *regex = json_string_value(json_object_get(o, "Regex"));
    const char *plain = json_string_value(json_object_get(o, "String"));
    plm_tok_text q = {0};
    plm_status status = PLM_OK;
    if (regex == NULL && plain == NULL)
        return plm_tok_json_refuse(r, "pattern", "without Regex or String");
    for (const char *p = regex != NULL ? regex : plain; *p != '\0' && status == PLM_OK; p++) {
        bool quote = regex == NULL && strchr("\\^$.[|()?*+{}-]#", *p) != NULL;
        if (quote)
            status = plm_tok_append(&q, "\\", 1, r->err);
        if (status == PLM_OK)
            status = plm_tok_append(&q, p, 1, r->err);
    }
    if (status == PLM_OK)
        status = plm_tok_append(&q, "", 1, r->err);
    if (status != PLM_OK)
        plm_tok_text_fini(&q);
    *out = q.items;
    return status;
}

/* ---- normalizer ---- */

static plm_status replace(plm_tok_json *r, const json_t *n)
{
    const json_t *p = json_object_get(n, "pattern");
    const char *plain = json_string_value(json_object_get(p, "String"));
    if (plain != NULL)
        return plm_tok_add_norm(r->t, PLM_STEP_REPLACE, plain, text(n, "content", ""), r->where,
                                r->err);
    char *regex;
    PLM_TRY(pattern(r, p, &regex));
    plm_status status = plm_tok_add_replace(r->t, regex, text(n, "content", ""), r->where, r->err);
    plm_free(regex);
    return status;
}

static plm_status normalizer(plm_tok_json *r, const json_t *n, int depth)
{
    static const struct {
        const char *type;
        plm_tok_step_kind kind;
    } plain[] = {{"NFC", PLM_STEP_NFC},         {"NFD", PLM_STEP_NFD},
                 {"NFKC", PLM_STEP_NFKC},       {"NFKD", PLM_STEP_NFKD},
                 {"Lowercase", PLM_STEP_LOWER}, {"StripAccents", PLM_STEP_STRIP_ACCENTS}};
    size_t i;
    json_t *each;
    for (i = 0; i < sizeof plain / sizeof *plain; i++)
        if (is(n, plain[i].type))
            return plm_tok_add_norm(r->t, plain[i].kind, "", "", r->where, r->err);
    if (is(n, "Sequence") && depth < DEPTH_MAX) {
        json_array_foreach(json_object_get(n, "normalizers"), i, each)
            PLM_TRY(normalizer(r, each, depth + 1));
        return PLM_OK;
    }
    if (is(n, "Prepend"))
        return plm_tok_add_norm(r->t, PLM_STEP_PREPEND, "", text(n, "prepend", ""), r->where,
                                r->err);
    if (is(n, "Strip")) {
        PLM_TRY(plm_tok_add_norm(r->t, PLM_STEP_STRIP, "", "", r->where, r->err));
        r->t->norm[r->t->n_norm - 1].flag =
            (flag(n, "strip_left", true) ? 1u : 0u) | (flag(n, "strip_right", true) ? 2u : 0u);
        return PLM_OK;
    }
    if (is(n, "Replace"))
        return replace(r, n);
    if (is(n, "Precompiled"))
        return plm_tok_add_charsmap(r->t, r->where, r->err);
    return plm_tok_json_refuse(r, "normalizer", type_of(n));
}

plm_status plm_tok_json_normalizer(plm_tok_json *r, const json_t *n)
{
    return json_is_object(n) ? normalizer(r, n, 0) : PLM_OK;
}

/* ---- pre_tokenizer ---- */

static plm_status behavior(const plm_tok_json *r, const char *name, plm_tok_split *out)
{
    static const char *const names[] = {"Isolated", "Removed", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    for (int i = 0; i < 5; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (plm_tok_split)i; /* in the order of plm_tok_split */
            return PLM_OK;
        }
    return plm_tok_json_refuse(r, "behavior", name);
}

static plm_status split(plm_tok_json *r, const json_t *p)
{
    plm_tok_split how;
    char *regex;
    PLM_TRY(behavior(r, text(p, "behavior", ""), &how));
    PLM_TRY(pattern(r, json_object_get(p, "pattern"), &regex));
    plm_status status =
        plm_tok_add_split(r->t, regex, how, flag(p, "invert", false), r->where, r->err);
    plm_free(regex);
    return status;
}

static plm_status add_pre(plm_tok_json *r, plm_tok_step_kind kind, const char *mark)
{
    plm_tokenizer *t = r->t;
    if (t->n_pre >= PLM_TOK_STEPS_MAX)
        return plm_tok_json_refuse(r, "pre_tokenizer", "with so many steps");
    plm_tok_step *s = &t->pre[t->n_pre++];
    *s = (plm_tok_step){.kind = kind, .text = plm_strdup(mark)};
    return s->text != NULL ? PLM_OK : plm_fail_memory(r->err, "tokenizer");
}

static plm_status byte_level(plm_tok_json *r, const json_t *p)
{
    r->t->byte_level = true;
    if (flag(p, "add_prefix_space", true))
        PLM_TRY(add_pre(r, PLM_STEP_PREFIX_SPACE, ""));
    return flag(p, "use_regex", true)
               ? plm_tok_add_split(r->t, plm_tok_gpt2_pattern, PLM_SPLIT_ISOLATED, false, r->where,
                                   r->err)
               : PLM_OK;
}

static plm_tok_prepend prepend_scheme(const json_t *p)
{
    const char *scheme =
        text(p, "prepend_scheme", flag(p, "add_prefix_space", true) ? "always" : "never");
    return strcmp(scheme, "always") == 0  ? PLM_PREPEND_ALWAYS
           : strcmp(scheme, "first") == 0 ? PLM_PREPEND_FIRST
                                          : PLM_PREPEND_NEVER;
}

static plm_status metaspace(plm_tok_json *r, const json_t *p)
{
    const char *mark = text(p, "replacement", "\xe2\x96\x81");
    if (*mark == '\0')
        return plm_tok_json_refuse(r, "Metaspace", "without a replacement");
    PLM_TRY(add_pre(r, PLM_STEP_METASPACE, mark));
    r->t->pre[r->t->n_pre - 1].prepend = prepend_scheme(p);
    r->t->pre[r->t->n_pre - 1].flag = flag(p, "split", true);
    return PLM_OK;
}

static plm_status pre_tokenizer(plm_tok_json *r, const json_t *p, int depth)
{
    /* Patterns of the plain ones, by what their code calls white space, numbers and punctuation. */
    static const char words[] = "\\w+|[^\\w\\s]+", white[] = "\\s+", number[] = "\\p{N}",
                      punctuation[] = "[\\p{P}!-/:-@\\[-`{-~]";
    plm_tok_split how;
    size_t i;
    json_t *each;
    if (is(p, "Sequence") && depth < DEPTH_MAX) {
        json_array_foreach(json_object_get(p, "pretokenizers"), i, each)
            PLM_TRY(pre_tokenizer(r, each, depth + 1));
        return PLM_OK;
    }
    if (is(p, "ByteLevel"))
        return byte_level(r, p);
    if (is(p, "Split"))
        return split(r, p);
    if (is(p, "Metaspace"))
        return metaspace(r, p);
    if (is(p, "Digits"))
        return plm_tok_add_split(r->t, number,
                                 flag(p, "individual_digits", false) ? PLM_SPLIT_ISOLATED
                                                                     : PLM_SPLIT_CONTIGUOUS,
                                 false, r->where, r->err);
    if (is(p, "Punctuation")) {
        PLM_TRY(behavior(r, text(p, "behavior", "Isolated"), &how));
        return plm_tok_add_split(r->t, punctuation, how, false, r->where, r->err);
    }
    if (is(p, "Whitespace"))
        return plm_tok_add_split(r->t, words, PLM_SPLIT_REMOVED, true, r->where, r->err);
    if (is(p, "WhitespaceSplit"))
        return plm_tok_add_split(r->t, white, PLM_SPLIT_REMOVED, false, r->where, r->err);
    return plm_tok_json_refuse(r, "pre_tokenizer", type_of(p));
}

plm_status plm_tok_json_pre(plm_tok_json *r, const json_t *p)
{
    return json_is_object(p) ? pre_tokenizer(r, p, 0) : PLM_OK;
}

/* ---- post_processor ---- */

static plm_status add_end(plm_tok_json *r, bool after, const json_t *id)
{
    plm_tokenizer *t = r->t;
    size_t *n = after ? &t->n_after : &t->n_before;
    if (!json_is_integer(id) || json_integer_value(id) < 0 ||
        json_integer_value(id) >= (json_int_t)t->n_tokens || *n >= PLM_TOK_ENDS_MAX)
        return plm_fail(
            r->err, PLM_E_INVALID,
            "tokenizer, %s: post_processor names no token of the vocabulary; the file is "
            "damaged",
            r->where);
    (after ? t->after : t->before)[(*n)++] = (uint32_t)json_integer_value(id);
    return PLM_OK;
}

/* "single": special tokens around {"Sequence": {"id": "A"}}. */
static plm_status template(plm_tok_json *r, const json_t *p)
{
    const json_t *special = json_object_get(p, "special_tokens");
    bool after = false;
    size_t i, k;
    json_t *part, *id;
    json_array_foreach(json_object_get(p, "single"), i, part)
    {
        const json_t *s = json_object_get(part, "SpecialToken");
        if (s == NULL) {
            after = true;
            continue;
        }
        const json_t *ids = json_object_get(json_object_get(special, text(s, "id", "")), "ids");
        if (json_array_size(ids) == 0)
            return add_end(r, after, NULL);
        json_array_foreach(ids, k, id) PLM_TRY(add_end(r, after, id));
    }
    return PLM_OK;
}

static plm_status post_processor(plm_tok_json *r, const json_t *p, int depth)
{
    size_t i;
    json_t *each;
    if (is(p, "Sequence") && depth < DEPTH_MAX) {
        json_array_foreach(json_object_get(p, "processors"), i, each)
            PLM_TRY(post_processor(r, each, depth + 1));
        return PLM_OK;
    }
    if (is(p, "ByteLevel"))
        return PLM_OK; /* offsets only */
    if (is(p, "TemplateProcessing"))
        return template(r, p);
    if (is(p, "BertProcessing") || is(p, "RobertaProcessing")) {
        PLM_TRY(add_end(r, false, json_array_get(json_object_get(p, "cls"), 1)));
        return add_end(r, true, json_array_get(json_object_get(p, "sep"), 1));
    }
    return plm_tok_json_refuse(r, "post_processor", type_of(p));
}

plm_status plm_tok_json_post(plm_tok_json *r, const json_t *p)
{
    return json_is_object(p) ? post_processor(r, p, 0) : PLM_OK;
}

/* ---- decoder ---- */

/* Pieces are spelled by the model's kind; what a decoder adds to that is the space it drops. */
static plm_status decoder(plm_tok_json *r, const json_t *d, int depth)
{
    static const char *const known[] = {"ByteLevel", "ByteFallback", "Fuse", "Replace"};
    size_t i;
    json_t *each;
    if (is(d, "Sequence") && depth < DEPTH_MAX) {
        json_array_foreach(json_object_get(d, "decoders"), i, each)
            PLM_TRY(decoder(r, each, depth + 1));
        return PLM_OK;
    }
    if (is(d, "Metaspace")) {
        r->t->strip_first = prepend_scheme(d) != PLM_PREPEND_NEVER;
        return PLM_OK;
    }
    if (is(d, "Strip")) {
        r->t->strip_first = json_integer_value(json_object_get(d, "start")) > 0;
        return PLM_OK;
    }
    for (i = 0; i < sizeof known / sizeof *known; i++)
        if (is(d, known[i]))
            return PLM_OK;
    return plm_tok_json_refuse(r, "decoder", type_of(d));
}

plm_status plm_tok_json_decoder(plm_tok_json *r, const json_t *d)
{
    return json_is_object(d) ? decoder(r, d, 0) : PLM_OK;
}
