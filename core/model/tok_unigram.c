/* tok_unigram.c - the likeliest way to spell a word (Kudo, arXiv 1804.10959): the path of
** greatest sum of scores through all tokens that fit, by dynamic programming over the ends of
** characters. A character no token covers costs the least score less 10, as in SentencePiece.
** O(n * longest token). */
#include "core/base/mem.h"
#include "core/base/vec.h"
#include "core/model/tok_parts.h"

static size_t char_end(const char *word, size_t n, size_t at)
{
    at++;
    while (at < n && ((unsigned char)word[at] & 0xc0) == 0x80)
        at++;
    return at;
}

static void offer(plm_tok_best *to, double score, size_t from, uint32_t id)
{
    if (to->from == PLM_TOK_NONE || score > to->score)
        *to = (plm_tok_best){.score = score, .from = (uint32_t)from, .id = id};
}

/* Tokens that begin at `at`, whose best score is known. */
static void extend(const plm_tokenizer *t, const char *word, size_t n, size_t at,
                   plm_tok_best *best)
{
    size_t one = char_end(word, n, at);
    bool single = false;
    for (size_t end = one; end - at <= t->longest; end = char_end(word, n, end)) {
        uint32_t id = plm_tok_find(t, word + at, end - at);
        if (id != PLM_TOK_NONE && t->token[id].kind != PLM_TOKEN_CONTROL &&
            t->token[id].kind != PLM_TOKEN_UNKNOWN && t->token[id].kind != PLM_TOKEN_BYTE) {
            double s = t->token[id].kind == PLM_TOKEN_USER ? 0.0 : t->token[id].score;
            offer(&best[end], best[at].score + s, at, id);
            single = single || end == one;
        }
        if (end >= n)
            break;
    }
    if (!single)
        offer(&best[one], best[at].score + t->unknown_score, at, PLM_TOK_NONE);
}

static plm_status push_piece(const plm_tokenizer *t, const char *word, size_t at, size_t n,
                             uint32_t id, bool *unknown, plm_tokens *out, plm_error *err)
{
    bool bytes = id == PLM_TOK_NONE && t->byte_fallback;
    for (size_t i = 0; bytes && i < n; i++)
        bytes = t->byte_id[(unsigned char)word[at + i]] != PLM_TOK_NONE;
    if (bytes) {
        for (size_t i = 0; i < n; i++)
            PLM_TRY(plm_tok_push(out, t->byte_id[(unsigned char)word[at + i]], err));
        *unknown = false;
        return PLM_OK;
    }
    if (id == PLM_TOK_NONE) { /* a run of unknown characters is one unknown token */
        bool again = *unknown;
        *unknown = true;
        return again || t->unknown == PLM_TOK_NONE ? PLM_OK : plm_tok_push(out, t->unknown, err);
    }
    *unknown = false;
    return plm_tok_push(out, id, err);
}

plm_status plm_tok_unigram(const plm_tokenizer *t, const char *word, size_t n, plm_tok_work *w,
                           plm_tokens *out, plm_error *err)
{
    static const plm_tok_best none = {0, PLM_TOK_NONE, PLM_TOK_NONE};
    w->best.count = 0;
    for (size_t i = 0; i <= n; i++)
        if (!plm_vec_push(&w->best, none, (size_t)PLM_TEXT_MAX * 4))
            return plm_fail_memory(err, "paths through a word");
    plm_tok_best *best = w->best.items;
    best[0].from = 0;
    for (size_t at = 0; at < n; at = char_end(word, n, at))
        extend(t, word, n, at, best);
    /* Backwards along the path; best[].from is turned to point to the next end. */
    size_t end = n, next = n;
    while (end > 0) {
        size_t from = best[end].from;
        best[end].from = (uint32_t)next;
        next = end;
        end = from;
    }
    bool unknown = false;
    for (size_t at = 0; at < n;) {
        size_t stop = next;
        PLM_TRY(push_piece(t, word, at, stop - at, best[stop].id, &unknown, out, err));
        next = best[stop].from;
        at = stop;
    }
    return PLM_OK;
}
