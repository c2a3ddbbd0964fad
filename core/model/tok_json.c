/* tok_json.c - a tokenizer from a Hugging Face tokenizer.json; opening by path. */
#include "core/model/tok_json.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/mem.h"

#define FILE_MAX_BYTES ((size_t)256 << 20)
#define CONFIG_MAX_BYTES (16u << 20)
#define PATH_ROOM 4096
#define UNKNOWN_PENALTY 10.0 /* tokenizers, models/unigram: K_UNK_PENALTY */

static plm_status damaged(const plm_tok_json *r, const char *what)
{
    return plm_fail(r->err, PLM_E_INVALID, "tokenizer, %s: %s; the file is damaged", r->where,
                    what);
}

static bool id_of(const json_t *v, uint32_t *id)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= PLM_TOKENS_MAX)
        return false;
    *id = (uint32_t)json_integer_value(v);
    return true;
}

/* ---- vocabulary ---- */

/* One past the greatest id of the vocabulary and of the added tokens. */
static plm_status count_ids(const plm_tok_json *r, json_t *vocab, json_t *added, uint32_t *n)
{
    size_t i;
    const char *key;
    json_t *v;
    uint32_t id;
    *n = json_is_array(vocab)
             ? (uint32_t)plm_min_i64((int64_t)json_array_size(vocab), PLM_TOKENS_MAX)
             : 0;
    json_object_foreach(vocab, key, v)
    {
        if (!id_of(v, &id))
            return damaged(r, "an id of the vocabulary is out of range");
        *n = id >= *n ? id + 1 : *n;
    }
    json_array_foreach(added, i, v)
    {
        if (!id_of(json_object_get(v, "id"), &id))
            return damaged(r, "an added token has no id");
        *n = id >= *n ? id + 1 : *n;
    }
    return PLM_OK;
}

static plm_status read_bpe_vocab(plm_tok_json *r, json_t *vocab)
{
    const char *key;
    json_t *v;
    json_object_foreach(vocab, key, v)
    {
        uint32_t id = 0;
        id_of(v, &id);
        PLM_TRY(plm_tok_set(r->t, id, key, strlen(key), 0, PLM_TOKEN_NORMAL, r->where, r->err));
    }
    return PLM_OK;
}

/* "a b" or ["a", "b"]. */
static plm_status read_merges(plm_tok_json *r, const json_t *merges)
{
    size_t i;
    json_t *m;
    if (!json_is_array(merges))
        return damaged(r, "merges are no list");
    PLM_TRY(plm_tok_reserve_merges(r->t, json_array_size(merges), r->where, r->err));
    json_array_foreach(merges, i, m)
    {
        const char *both = json_string_value(m), *space = both != NULL ? strchr(both, ' ') : NULL;
        const char *a = json_string_value(json_array_get(m, 0));
        const char *b = json_string_value(json_array_get(m, 1));
        if (space != NULL) {
            a = both;
            b = space + 1;
        }
        if (a == NULL || b == NULL)
            return damaged(r, "a merge is not two names");
        PLM_TRY(plm_tok_merge_add(r->t, a, space != NULL ? (size_t)(space - both) : strlen(a), b,
                                  strlen(b), (uint32_t)i, true, r->where, r->err));
    }
    return PLM_OK;
}

/* [["<unk>", 0.0], ["a", -2.5], ...] */
static plm_status read_unigram(plm_tok_json *r, const json_t *model)
{
    size_t i;
    json_t *v;
    double least = 0;
    uint32_t unknown;
    const json_t *vocab = json_object_get(model, "vocab");
    json_array_foreach(vocab, i, v)
    {
        const char *name = json_string_value(json_array_get(v, 0));
        double score = json_number_value(json_array_get(v, 1));
        if (name == NULL || !json_is_number(json_array_get(v, 1)) || i >= r->t->n_tokens ||
            !(score > -1e30 && score < 1e30))
            return damaged(r, "an entry of the vocabulary is not a name and a score");
        PLM_TRY(plm_tok_set(r->t, (uint32_t)i, name, strlen(name), score, PLM_TOKEN_NORMAL,
                            r->where, r->err));
        least = score < least ? score : least;
    }
    r->t->unknown_score = least - UNKNOWN_PENALTY;
    if (id_of(json_object_get(model, "unk_id"), &unknown) && unknown < r->t->n_tokens)
        r->t->unknown = unknown;
    return PLM_OK;
}

static bool is_empty(const json_t *v)
{
    return v == NULL || json_is_null(v) || (json_is_string(v) && *json_string_value(v) == '\0');
}

static plm_status read_bpe(plm_tok_json *r, const json_t *model)
{
    plm_tokenizer *t = r->t;
    const char *unknown = json_string_value(json_object_get(model, "unk_token"));
    if (!is_empty(json_object_get(model, "continuing_subword_prefix")))
        return plm_tok_json_refuse(r, "BPE with", "continuing_subword_prefix");
    if (!is_empty(json_object_get(model, "end_of_word_suffix")))
        return plm_tok_json_refuse(r, "BPE with", "end_of_word_suffix");
    t->ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));
    t->fuse_unknown = json_is_true(json_object_get(model, "fuse_unk"));
    PLM_TRY(read_bpe_vocab(r, json_object_get(model, "vocab")));
    if (unknown != NULL)
        t->unknown = plm_tok_find(t, unknown, strlen(unknown));
    return read_merges(r, json_object_get(model, "merges"));
}

static plm_status read_added(plm_tok_json *r, json_t *added)
{
    plm_tokenizer *t = r->t;
    size_t i;
    json_t *v;
    json_array_foreach(added, i, v)
    {
        uint32_t id = 0;
        const char *name = json_string_value(json_object_get(v, "content"));
        bool special = json_is_true(json_object_get(v, "special"));
        id_of(json_object_get(v, "id"), &id);
        if (name == NULL || *name == '\0')
            return damaged(r, "an added token has no content");
        plm_token *k = &t->token[id];
        if (k->n == 0)
            PLM_TRY(plm_tok_set(t, id, name, strlen(name), 0, PLM_TOKEN_USER, r->where, r->err));
        else if (k->n != strlen(name) || memcmp(t->pool.items + k->at, name, k->n) != 0)
            return damaged(r, "an added token and the vocabulary name one id differently");
        k->kind = special ? PLM_TOKEN_CONTROL : PLM_TOKEN_USER;
        k->lstrip = json_is_true(json_object_get(v, "lstrip"));
        k->rstrip = json_is_true(json_object_get(v, "rstrip"));
        k->single_word = json_is_true(json_object_get(v, "single_word"));
        bool normalized = json_is_true(json_object_get(v, "normalized"));
        PLM_TRY(plm_tok_added_push(normalized ? &t->normalized : &t->raw, id, r->err));
    }
    return PLM_OK;
}

static plm_status read_model(plm_tok_json *r, const json_t *root)
{
    const json_t *model = json_object_get(root, "model");
    json_t *vocab = json_object_get(model, "vocab"), *added = json_object_get(root, "added_tokens");
    const char *type = json_string_value(json_object_get(model, "type"));
    bool unigram = json_is_array(vocab);
    uint32_t n;
    if (type == NULL) /* old files leave it out */
        type = unigram ? "Unigram" : json_object_get(model, "merges") != NULL ? "BPE" : "";
    if (strcmp(type, unigram ? "Unigram" : "BPE") != 0)
        return plm_tok_json_refuse(r, "model", type);
    r->t->model = unigram ? PLM_TOK_UNIGRAM : PLM_TOK_BPE;
    r->t->byte_fallback = json_is_true(json_object_get(model, "byte_fallback"));
    PLM_TRY(count_ids(r, vocab, added, &n));
    PLM_TRY(plm_tok_reserve(r->t, n, r->where, r->err));
    PLM_TRY(unigram ? read_unigram(r, model) : read_bpe(r, model));
    return read_added(r, added);
}

/* ---- tokenizer_config.json ---- */

/* A token given as text or as {"content": text}. */
static uint32_t token_of(const plm_tok_json *r, const json_t *config, const char *key)
{
    const json_t *v = json_object_get(config, key);
    const char *name = json_string_value(json_is_object(v) ? json_object_get(v, "content") : v);
    return name != NULL ? plm_tok_find(r->t, name, strlen(name)) : PLM_TOK_NONE;
}

/* The template, or of several the one named "default". */
static plm_status read_template(plm_tok_json *r, const json_t *config)
{
    const json_t *v = json_object_get(config, "chat_template");
    const char *text = json_string_value(v);
    size_t i;
    json_t *each;
    json_array_foreach(v, i, each)
    {
        const char *name = json_string_value(json_object_get(each, "name"));
        if (name != NULL && strcmp(name, "default") == 0)
            text = json_string_value(json_object_get(each, "template"));
    }
    if (text == NULL)
        return PLM_OK;
    r->t->chat_template = plm_strdup(text);
    return r->t->chat_template != NULL ? PLM_OK : plm_fail_memory(r->err, "chat template");
}

/* Names of tokens at which chats end, beside eos_token. */
static void find_ends(plm_tokenizer *t)
{
    static const char *const names[] = {"<|eot_id|>",    "<|im_end|>", "<|end|>",
                                        "<|return|>",    "<|call|>",   "<end_of_turn>",
                                        "<|endoftext|>", "<|eom_id|>", "<turn|>"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint32_t id = plm_tok_find(t, names[i], strlen(names[i]));
        if (id != PLM_TOK_NONE && t->n_ends < PLM_TOK_ENDS_MAX)
            t->ends[t->n_ends++] = id;
    }
}

static plm_status read_config(plm_tok_json *r, const char *config, size_t bytes)
{
    json_t *j = NULL;
    plm_tokenizer *t = r->t;
    find_ends(t);
    if (config == NULL)
        return PLM_OK;
    PLM_TRY(plm_json_parse(config, bytes, r->where, &j, r->err));
    t->bos = token_of(r, j, "bos_token");
    t->eos = token_of(r, j, "eos_token");
    plm_status status = read_template(r, j);
    json_decref(j);
    return status;
}

/* ---- the whole ---- */

static plm_status read_root(plm_tok_json *r, const json_t *root)
{
    PLM_TRY(read_model(r, root));
    PLM_TRY(plm_tok_json_normalizer(r, json_object_get(root, "normalizer")));
    PLM_TRY(plm_tok_json_pre(r, json_object_get(root, "pre_tokenizer")));
    PLM_TRY(plm_tok_json_post(r, json_object_get(root, "post_processor")));
    return plm_tok_json_decoder(r, json_object_get(root, "decoder"));
}

plm_status plm_tokenizer_from_json(const char *json, size_t bytes, const char *config,
                                   size_t config_bytes, const char *where, plm_tokenizer **out,
                                   plm_error *err)
{
    plm_tok_json r = {.where = where, .err = err};
    json_t *root = NULL;
    *out = NULL;
    PLM_TRY(plm_tok_create(&r.t, err));
    plm_status status;
    PLM_GOTO(plm_json_parse(json, bytes, where, &root, err));
    PLM_GOTO(read_root(&r, root));
    PLM_GOTO(read_config(&r, config, config_bytes));
    if (r.t->bos == PLM_TOK_NONE && r.t->n_before == 1)
        r.t->bos = r.t->before[0];
    status = plm_tok_finish(r.t, err);
done:
    json_decref(root);
    if (status == PLM_OK)
        *out = r.t;
    else
        plm_tokenizer_destroy(r.t);
    return status;
}

/* ---- by path ---- */

static plm_status open_json(const char *path, const char *folder, size_t n, plm_tokenizer **out,
                            plm_error *err)
{
    char config_path[PATH_ROOM], *text = NULL, *config = NULL;
    size_t bytes = 0, config_bytes = 0;
    struct stat st;
    plm_status status;
    int len =
        snprintf(config_path, sizeof config_path, "%.*s/tokenizer_config.json", (int)n, folder);
    PLM_GOTO(plm_file_read(path, FILE_MAX_BYTES, &text, &bytes, err));
    if (len > 0 && len < PATH_ROOM && stat(config_path, &st) == 0)
        PLM_GOTO(plm_file_read(config_path, CONFIG_MAX_BYTES, &config, &config_bytes, err));
    status = plm_tokenizer_from_json(text, bytes, config, config_bytes, path, out, err);
done:
    plm_free(text);
    plm_free(config);
    return status;
}

static plm_status open_gguf(const char *path, plm_tokenizer **out, plm_error *err)
{
    plm_file f;
    plm_gguf *g;
    PLM_TRY(plm_file_map(path, &f, err));
    plm_status status = plm_gguf_open(f.data, f.bytes, f.bytes, path, &g, err);
    if (status == PLM_OK) {
        status = plm_tokenizer_from_gguf(g, path, out, err);
        plm_gguf_close(g);
    }
    plm_file_unmap(&f);
    return status;
}

plm_status plm_tokenizer_open(const char *path, plm_tokenizer **out, plm_error *err)
{
    char file[PATH_ROOM];
    struct stat st;
    size_t n = strlen(path);
    *out = NULL;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        if (snprintf(file, sizeof file, "%s/tokenizer.json", path) >= PATH_ROOM)
            return plm_fail(err, PLM_E_LIMIT,
                            "path too long, %.80s: at most %d bytes; move the file", path,
                            PATH_ROOM);
        if (stat(file, &st) != 0)
            return plm_fail(err, PLM_E_NOT_FOUND,
                            "no tokenizer.json, %.200s: the folder needs one; name a .gguf instead",
                            path);
        return open_json(file, path, n, out, err);
    }
    if (n > 5 && strcmp(path + n - 5, ".json") == 0) {
        const char *slash = strrchr(path, '/');
        return open_json(path, slash != NULL ? path : ".",
                         slash != NULL ? (size_t)(slash - path) : 1, out, err);
    }
    if (n > 5 && strcmp(path + n - 5, ".gguf") == 0)
        return open_gguf(path, out, err);
    return plm_fail(
        err, PLM_E_UNSUPPORTED,
        "no tokenizer, %.200s: want a .gguf, a tokenizer.json or a folder with one; name it", path);
}
