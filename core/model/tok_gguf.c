/* tok_gguf.c - a tokenizer from a GGUF's metadata (keys: GGUF specification, "tokenizer.ggml.*";
** defaults of what a file leaves out: llama.cpp's llama-vocab.cpp). */
#include <float.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/tok_parts.h"

#define KEY(name) "tokenizer.ggml." name
#define UNKNOWN_PENALTY 10.0 /* SentencePiece: kUnkPenalty */
#define TEMPLATE_MAX (1u << 20)

typedef struct reader {
    const plm_gguf *g;
    plm_tokenizer *t;
    const char *where;
    plm_error *err;
} reader;

static plm_status damaged(const reader *r, const char *what)
{
    return plm_fail(r->err, PLM_E_INVALID, "tokenizer, %s: %s; the file is damaged", r->where,
                    what);
}

static bool text_is(const char *text, size_t n, const char *want)
{
    return strlen(want) == n && memcmp(text, want, n) == 0;
}

/* Bytes of letters of byte-level BPE; spaces as U+2581. */
static plm_status read_model(reader *r, bool *add_bos, bool *add_eos)
{
    const char *model, *pre = "default";
    size_t n, n_pre = strlen(pre);
    bool prefix = false;
    plm_tokenizer *t = r->t;
    *add_bos = *add_eos = false;
    if (!plm_gguf_text(r->g, KEY("model"), &model, &n))
        return damaged(r, "there is no " KEY("model"));
    if (text_is(model, n, "gpt2") || text_is(model, n, "gemma4")) {
        t->model = PLM_TOK_BPE;
        if (text_is(model, n, "gemma4")) {
            pre = "gemma4";
            n_pre = strlen(pre);
        } else {
            plm_gguf_text(r->g, KEY("pre"), &pre, &n_pre);
        }
        PLM_TRY(plm_tok_by_name(t, pre, n_pre, add_bos, r->where, r->err));
        plm_gguf_bool(r->g, KEY("add_space_prefix"), &prefix);
    } else if (text_is(model, n, "llama")) {
        t->model = PLM_TOK_SCORES;
        t->byte_fallback = t->raw_bytes = true;
        *add_bos = prefix = true;
        plm_gguf_bool(r->g, KEY("add_space_prefix"), &prefix);
        PLM_TRY(plm_tok_add_norm(t, PLM_STEP_REPLACE, " ", "\xe2\x96\x81", r->where, r->err));
        t->strip_first = prefix;
    } else if (text_is(model, n, "t5")) {
        const unsigned char *map;
        size_t bytes;
        t->model = PLM_TOK_UNIGRAM;
        *add_eos = prefix = true;
        plm_gguf_bool(r->g, KEY("add_space_prefix"), &prefix);
        t->strip_first = prefix;
        if (plm_gguf_bytes(r->g, KEY("precompiled_charsmap"), &map, &bytes) && bytes > 0)
            PLM_TRY(plm_tok_add_charsmap(t, r->where, r->err));
        bool squeeze = false;
        plm_gguf_bool(r->g, KEY("remove_extra_whitespaces"), &squeeze);
        if (squeeze)
            PLM_TRY(plm_tok_add_squeeze(t, r->where, r->err));
        PLM_TRY(plm_tok_add_norm(t, PLM_STEP_REPLACE, " ", "\xe2\x96\x81", r->where, r->err));
    } else {
        return plm_fail(
            r->err, PLM_E_UNSUPPORTED,
            "unknown tokenizer \"%.*s\", %s: want gpt2, llama, t5 or gemma4; use another "
            "file",
            (int)(n < 40 ? n : 40), model, r->where);
    }
    if (prefix) /* after the spaces are replaced, so that it counts as one of them */
        PLM_TRY(plm_tok_add_norm(t, PLM_STEP_PREPEND, "", t->byte_level ? " " : "\xe2\x96\x81",
                                 r->where, r->err));
    return PLM_OK;
}

/* Names by which files that do not say so end a turn or a message (llama.cpp's list). */
static bool names_end(const char *name, size_t n)
{
    static const char *const names[] = {
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|eom_id|>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "<turn|>",
        "<end_of_utterance>",
        "<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (text_is(name, n, names[i]))
            return true;
    return false;
}

static plm_status read_token(reader *r, uint32_t id, const char *name, size_t n, bool typed,
                             bool scored)
{
    plm_tokenizer *t = r->t;
    int64_t kind = PLM_TOKEN_NORMAL;
    double score = 0;
    if (typed && !plm_gguf_int_at(r->g, KEY("token_type"), id, &kind))
        return damaged(r, KEY("token_type") " is shorter than the vocabulary");
    if (scored && !plm_gguf_real_at(r->g, KEY("scores"), id, &score))
        return damaged(r, KEY("scores") " is shorter than the vocabulary");
    if (!(score >= -(double)FLT_MAX && score <= (double)FLT_MAX))
        return damaged(r, "a score is not finite");
    if (kind < PLM_TOKEN_NORMAL || kind > PLM_TOKEN_BYTE)
        kind = PLM_TOKEN_NORMAL;
    if (names_end(name, n)) {
        if (t->n_ends < PLM_TOK_ENDS_MAX)
            t->ends[t->n_ends++] = id;
        kind = PLM_TOKEN_CONTROL;
    }
    PLM_TRY(plm_tok_set(t, id, name, n, score, (plm_token_kind)kind, r->where, r->err));
    if (n > 0 && (kind == PLM_TOKEN_CONTROL || kind == PLM_TOKEN_USER || kind == PLM_TOKEN_UNKNOWN))
        return plm_tok_added_push(&t->raw, id, r->err);
    return PLM_OK;
}

static plm_status read_tokens(reader *r)
{
    plm_gguf_list list;
    const char *name;
    size_t n;
    double least = 0;
    if (!plm_gguf_texts(r->g, KEY("tokens"), &list))
        return damaged(r, "there is no list " KEY("tokens"));
    PLM_TRY(plm_tok_reserve(r->t, list.left, r->where, r->err));
    bool typed = plm_gguf_array_len(r->g, KEY("token_type")) > 0;
    bool scored = plm_gguf_array_len(r->g, KEY("scores")) > 0;
    for (uint32_t id = 0; plm_gguf_text_next(&list, &name, &n); id++) {
        PLM_TRY(read_token(r, id, name, n, typed, scored));
        const plm_token *k = &r->t->token[id];
        if (k->kind == PLM_TOKEN_NORMAL && k->score < least)
            least = k->score;
    }
    r->t->unknown_score = least - UNKNOWN_PENALTY;
    return PLM_OK;
}

/* "left right", split at the first space that is not the first byte. */
static plm_status read_merges(reader *r)
{
    plm_gguf_list list;
    const char *text;
    size_t n;
    if (!plm_gguf_texts(r->g, KEY("merges"), &list))
        return damaged(r, "there is no list " KEY("merges"));
    PLM_TRY(plm_tok_reserve_merges(r->t, list.left, r->where, r->err));
    for (uint32_t rank = 0; plm_gguf_text_next(&list, &text, &n); rank++) {
        const char *space = n > 1 ? memchr(text + 1, ' ', n - 1) : NULL;
        if (space == NULL)
            return damaged(r, "a merge is not two names");
        size_t left = (size_t)(space - text);
        PLM_TRY(plm_tok_merge_add(r->t, text, left, space + 1, n - left - 1, rank, false, r->where,
                                  r->err));
    }
    return PLM_OK;
}

/* An id of the vocabulary, `otherwise` where the file has none or a wrong one. */
static uint32_t special(const reader *r, const char *key, uint32_t otherwise)
{
    int64_t id;
    if (plm_gguf_int(r->g, key, &id) && id >= 0 && id < (int64_t)r->t->n_tokens)
        return (uint32_t)id;
    return otherwise < r->t->n_tokens ? otherwise : PLM_TOK_NONE;
}

static plm_status read_specials(reader *r, bool add_bos, bool add_eos)
{
    static const char *const stops[] = {KEY("eot_token_id"), KEY("eom_token_id")};
    plm_tokenizer *t = r->t;
    bool llama = t->model == PLM_TOK_SCORES, t5 = t->model == PLM_TOK_UNIGRAM;
    t->bos = special(r, KEY("bos_token_id"), llama ? 1 : PLM_TOK_NONE);
    t->eos = special(r, KEY("eos_token_id"), llama ? 2 : t5 ? 1 : PLM_TOK_NONE);
    t->unknown = special(r, KEY("unknown_token_id"), llama ? 0 : t5 ? 2 : PLM_TOK_NONE);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        uint32_t id = special(r, stops[i], PLM_TOK_NONE);
        if (id != PLM_TOK_NONE && t->n_ends < PLM_TOK_ENDS_MAX)
            t->ends[t->n_ends++] = id;
    }
    plm_gguf_bool(r->g, KEY("add_bos_token"), &add_bos);
    plm_gguf_bool(r->g, KEY("add_eos_token"), &add_eos);
    if (t->newline_words) /* llama.cpp: Gemma 4 wants it, whatever the file says */
        add_bos = true;
    if (add_bos && t->bos != PLM_TOK_NONE)
        t->before[t->n_before++] = t->bos;
    if (add_eos && t->eos != PLM_TOK_NONE)
        t->after[t->n_after++] = t->eos;
    return PLM_OK;
}

static plm_status read_template(reader *r)
{
    const char *text;
    size_t n;
    if (!plm_gguf_text(r->g, "tokenizer.chat_template", &text, &n) || n > TEMPLATE_MAX)
        return PLM_OK;
    r->t->chat_template = plm_calloc(n + 1, 1);
    if (r->t->chat_template == NULL)
        return plm_fail_memory(r->err, "chat template");
    memcpy(r->t->chat_template, text, n);
    return PLM_OK;
}

plm_status plm_tokenizer_from_gguf(const plm_gguf *g, const char *where, plm_tokenizer **out,
                                   plm_error *err)
{
    reader r = {.g = g, .where = where, .err = err};
    bool add_bos, add_eos;
    *out = NULL;
    PLM_TRY(plm_tok_create(&r.t, err));
    plm_status status;
    PLM_GOTO(read_model(&r, &add_bos, &add_eos));
    PLM_GOTO(read_tokens(&r));
    if (r.t->model == PLM_TOK_BPE)
        PLM_GOTO(read_merges(&r));
    PLM_GOTO(read_specials(&r, add_bos, add_eos));
    PLM_GOTO(read_template(&r));
    status = plm_tok_finish(r.t, err);
done:
    if (status == PLM_OK)
        *out = r.t;
    else
        plm_tokenizer_destroy(r.t);
    return status;
}
