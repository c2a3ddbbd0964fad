/* tokenizer.c - encoding, decoding, and questions about the vocabulary. */
#include "core/model/tokenizer.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/base/vec.h"
#include "core/model/tok_parts.h"

void plm_tokens_fini(plm_tokens *t)
{
    plm_vec_fini(t);
}

void plm_tokenizer_destroy(plm_tokenizer *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->n_norm; i++)
        plm_tok_step_fini(&t->norm[i]);
    for (size_t i = 0; i < t->n_pre; i++)
        plm_tok_step_fini(&t->pre[i]);
    pcre2_match_context_free(t->match);
    pcre2_general_context_free(t->pcre);
    plm_free(t->token);
    plm_free(t->slot);
    plm_free(t->merge);
    plm_free(t->raw.id);
    plm_free(t->normalized.id);
    plm_free(t->chat_template);
    plm_tok_text_fini(&t->pool);
    plm_free(t);
}

/* ---- encoding ---- */

typedef struct encoder {
    const plm_tokenizer *t;
    unsigned flags;
    plm_tok_work work;
    plm_tok_text text;
    plm_tok_spans words;
    plm_tokens *out;
    plm_error *err;
} encoder;

static plm_status encode_word(encoder *e, const char *word, size_t n)
{
    switch (e->t->model) {
    case PLM_TOK_BPE:
        return plm_tok_bpe(e->t, word, n, &e->work, e->out, e->err);
    case PLM_TOK_SCORES:
        return plm_tok_scores(e->t, word, n, &e->work, e->out, e->err);
    default:
        return plm_tok_unigram(e->t, word, n, &e->work, e->out, e->err);
    }
}

/* A stretch of normalised text without added tokens. */
static plm_status encode_stretch(encoder *e, const char *text, size_t n, bool first)
{
    plm_tok_text own = {0};
    plm_status status = plm_tok_append(&own, text, n, e->err);
    if (status == PLM_OK)
        status = plm_tok_words(e->t, &own, first, &e->words, e->err);
    for (size_t i = 0; i < e->words.count && status == PLM_OK; i++)
        status = encode_word(e, own.items + e->words.items[i].at, e->words.items[i].n);
    plm_tok_text_fini(&own);
    return status;
}

typedef plm_status (*stretch_fn)(encoder *e, const char *text, size_t n, bool first);

/* Tokens of the list as they stand, and fn for what lies between them. */
static plm_status around_added(encoder *e, const plm_tok_added *a, const char *text, size_t n,
                               bool first, stretch_fn fn)
{
    plm_tok_span where;
    uint32_t id;
    size_t at = 0;
    bool special = (e->flags & PLM_ENCODE_SPECIAL) != 0;
    while (plm_tok_added_next(e->t, a, text, at, n, special, &where, &id)) {
        if (where.at > at)
            PLM_TRY(fn(e, text + at, where.at - at, first && at == 0));
        PLM_TRY(plm_tok_push(e->out, id, e->err));
        at = (size_t)where.at + where.n;
    }
    return at < n ? fn(e, text + at, n - at, first && at == 0) : PLM_OK;
}

/* A stretch of the text as given: normalised, then searched for tokens that are normalised too. */
static plm_status encode_raw(encoder *e, const char *text, size_t n, bool first)
{
    e->text.count = 0;
    PLM_TRY(plm_tok_normalize(e->t, text, n, &e->text, e->err));
    if (e->text.count == 0)
        return PLM_OK;
    return around_added(e, &e->t->normalized, e->text.items, e->text.count, first, encode_stretch);
}

static plm_status push_ends(encoder *e, const uint32_t *ids, size_t n)
{
    for (size_t i = 0; i < n && (e->flags & PLM_ENCODE_ENDS) != 0; i++)
        PLM_TRY(plm_tok_push(e->out, ids[i], e->err));
    return PLM_OK;
}

plm_status plm_tokenizer_encode(const plm_tokenizer *t, const char *text, size_t n, unsigned flags,
                                plm_tokens *out, plm_error *err)
{
    if (n > PLM_TEXT_MAX)
        return plm_fail(err, PLM_E_LIMIT, "text, %zu bytes: more than %u; give it in parts", n,
                        PLM_TEXT_MAX);
    encoder e = {.t = t, .flags = flags, .out = out, .err = err};
    plm_tok_text clean = {0};
    plm_status status;
    PLM_GOTO(push_ends(&e, t->before, t->n_before));
    if (!t->raw_bytes) {
        PLM_GOTO(plm_tok_clean(text, n, &clean, err));
        text = clean.items;
        n = clean.count;
    }
    if (n > 0)
        PLM_GOTO(around_added(&e, &t->raw, text, n, true, encode_raw));
    status = push_ends(&e, t->after, t->n_after);
done:
    plm_tok_text_fini(&clean);
    plm_tok_text_fini(&e.text);
    plm_vec_fini(&e.words);
    plm_tok_work_fini(&e.work);
    return status;
}

/* ---- decoding ---- */

bool plm_tokenizer_piece(const plm_tokenizer *t, int32_t id, bool special, const char **bytes,
                         size_t *n)
{
    *bytes = "";
    *n = 0;
    if (id < 0 || (uint32_t)id >= t->n_tokens)
        return false;
    const plm_token *k = &t->token[id];
    if (k->n == 0 || (!special && (k->kind == PLM_TOKEN_CONTROL || k->kind == PLM_TOKEN_UNKNOWN)))
        return true;
    *bytes = t->pool.items + k->piece_at;
    *n = k->piece_n;
    return true;
}

plm_status plm_tokenizer_decode(const plm_tokenizer *t, const int32_t *ids, size_t count,
                                bool special, char **text, size_t *n, plm_error *err)
{
    plm_tok_text out = {0};
    plm_status status = PLM_OK;
    bool first = t->strip_first;
    *text = NULL;
    for (size_t i = 0; i < count; i++) {
        const char *piece;
        size_t bytes;
        if (!plm_tokenizer_piece(t, ids[i], special, &piece, &bytes)) {
            status =
                plm_fail(err, PLM_E_INVALID, "token %d: the vocabulary ends at %u; check the ids",
                         ids[i], t->n_tokens - 1);
            goto done;
        }
        bool drop = first && bytes > 0 && piece[0] == ' ';
        first = first && (bytes == 0 || plm_tokenizer_is_control(t, ids[i]));
        PLM_GOTO(plm_tok_append(&out, piece + drop, bytes - drop, err));
    }
    PLM_GOTO(plm_tok_append(&out, "", 1, err));
    *n = out.count - 1;
    *text = out.items;
    return PLM_OK;
done:
    plm_tok_text_fini(&out);
    return status;
}

/* ---- questions ---- */

int32_t plm_tokenizer_size(const plm_tokenizer *t)
{
    return (int32_t)t->n_tokens;
}

int32_t plm_tokenizer_find(const plm_tokenizer *t, const char *name, size_t n)
{
    return (int32_t)plm_tok_find(t, name, n); /* PLM_TOK_NONE is -1 */
}

const char *plm_tokenizer_name(const plm_tokenizer *t, int32_t id, size_t *n)
{
    *n = 0;
    if (id < 0 || (uint32_t)id >= t->n_tokens)
        return NULL;
    *n = t->token[id].n;
    return t->pool.items + t->token[id].at;
}

bool plm_tokenizer_is_control(const plm_tokenizer *t, int32_t id)
{
    return id >= 0 && (uint32_t)id < t->n_tokens && t->token[id].kind == PLM_TOKEN_CONTROL;
}

bool plm_tokenizer_is_end(const plm_tokenizer *t, int32_t id)
{
    for (size_t i = 0; i < t->n_ends; i++)
        if (t->ends[i] == (uint32_t)id)
            return true;
    return id >= 0 && (uint32_t)id == t->eos;
}

int32_t plm_tokenizer_bos(const plm_tokenizer *t)
{
    return (int32_t)t->bos;
}

int32_t plm_tokenizer_eos(const plm_tokenizer *t)
{
    return (int32_t)t->eos;
}

const char *plm_tokenizer_chat_template(const plm_tokenizer *t)
{
    return t->chat_template;
}
