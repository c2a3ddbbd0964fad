/* tok_bpe.c - a word to tokens by joining neighbours, the best pair first.
**
** By merges (Sennrich et al., arXiv 1508.07909): the pair of least rank. By scores
** (SentencePiece's BPE): the pair whose joint token scores highest. Of equals the leftmost. A
** heap holds the pairs; one that a join has made stale is known by its length. n symbols give at
** most 3n pairs: O(n log n). */
#include <string.h>

#include "core/base/mem.h"
#include "core/base/vec.h"
#include "core/model/tok_parts.h"

void plm_tok_work_fini(plm_tok_work *w)
{
    plm_vec_fini(&w->symbols);
    plm_vec_fini(&w->heap);
    plm_vec_fini(&w->best);
    plm_tok_text_fini(&w->letters);
}

plm_status plm_tok_push(plm_tokens *out, uint32_t id, plm_error *err)
{
    return plm_vec_push(out, (int32_t)id, (size_t)1 << 31) ? PLM_OK
                                                           : plm_fail_memory(err, "tokens");
}

/* ---- heap of pairs ---- */

static bool before(const plm_tok_pair *a, const plm_tok_pair *b)
{
    return a->order < b->order || (a->order <= b->order && a->left < b->left);
}

static plm_status heap_push(plm_tok_work *w, plm_tok_pair pair, plm_error *err)
{
    if (!plm_vec_push(&w->heap, pair, (size_t)PLM_TEXT_MAX * 4))
        return plm_fail_memory(err, "pairs of symbols");
    plm_tok_pair *v = w->heap.items;
    size_t i = w->heap.count - 1;
    for (; i > 0 && before(&pair, &v[(i - 1) / 2]); i = (i - 1) / 2)
        v[i] = v[(i - 1) / 2];
    v[i] = pair;
    return PLM_OK;
}

static plm_tok_pair heap_pop(plm_tok_work *w)
{
    plm_tok_pair *v = w->heap.items, top = v[0], last = v[--w->heap.count];
    size_t n = w->heap.count, i = 0;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(&v[child + 1], &v[child]))
            child++;
        if (!before(&v[child], &last))
            break;
        v[i] = v[child];
    }
    if (n > 0)
        v[i] = last;
    return top;
}

/* ---- symbols ---- */

static plm_status add_symbol(plm_tok_work *w, size_t at, size_t n, uint32_t id, plm_error *err)
{
    size_t i = w->symbols.count;
    plm_tok_symbol s = {.at = (uint32_t)at,
                        .n = (uint32_t)n,
                        .prev = i > 0 ? (uint32_t)(i - 1) : PLM_TOK_NONE,
                        .next = PLM_TOK_NONE,
                        .id = id};
    if (!plm_vec_push(&w->symbols, s, PLM_TEXT_MAX * (size_t)4))
        return plm_fail_memory(err, "symbols of a word");
    if (i > 0)
        w->symbols.items[i - 1].next = (uint32_t)i;
    return PLM_OK;
}

/* Bytes that the first one of a character announces. */
static size_t char_bytes(const char *text, size_t n)
{
    static const unsigned char by_high[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    size_t k = by_high[(unsigned char)text[0] >> 4];
    return k < n ? k : n;
}

/* Pair of two neighbours, if there is a token of both together. */
static plm_status try_pair(const plm_tokenizer *t, const char *word, plm_tok_work *w, uint32_t left,
                           uint32_t right, plm_error *err)
{
    if (left == PLM_TOK_NONE || right == PLM_TOK_NONE)
        return PLM_OK;
    const plm_tok_symbol *a = &w->symbols.items[left], *b = &w->symbols.items[right];
    plm_tok_pair p = {.left = left, .right = right, .n = a->n + b->n};
    if (t->model == PLM_TOK_BPE) {
        const plm_tok_merge *m = plm_tok_merge_find(t, a->id, b->id);
        if (m == NULL)
            return PLM_OK;
        p.order = m->rank;
        p.id = m->id;
    } else {
        p.id = plm_tok_find(t, word + a->at, p.n);
        if (p.id == PLM_TOK_NONE)
            return PLM_OK;
        p.order = -t->token[p.id].score;
    }
    return heap_push(w, p, err);
}

static plm_status join_pairs(const plm_tokenizer *t, const char *word, plm_tok_work *w,
                             plm_error *err)
{
    plm_tok_symbol *s = w->symbols.items;
    w->heap.count = 0;
    for (uint32_t i = 1; i < w->symbols.count; i++)
        PLM_TRY(try_pair(t, word, w, i - 1, i, err));
    while (w->heap.count > 0) {
        plm_tok_pair p = heap_pop(w);
        plm_tok_symbol *a = &s[p.left], *b = &s[p.right];
        if (a->n == 0 || b->n == 0 || a->n + b->n != p.n)
            continue;
        a->n = p.n;
        a->id = p.id;
        b->n = 0;
        a->next = b->next;
        if (b->next != PLM_TOK_NONE)
            s[b->next].prev = p.left;
        PLM_TRY(try_pair(t, word, w, a->prev, p.left, err));
        PLM_TRY(try_pair(t, word, w, p.left, a->next, err));
    }
    return PLM_OK;
}

/* ---- output ---- */

/* The unknown token for what has none; a run of them is one where they fuse; nothing where there
** is no such token. */
static plm_status push_unknown(const plm_tokenizer *t, bool *fused, plm_tokens *out, plm_error *err)
{
    if (t->unknown == PLM_TOK_NONE || (*fused && t->fuse_unknown))
        return PLM_OK;
    *fused = true;
    return plm_tok_push(out, t->unknown, err);
}

static plm_status push_bytes(const plm_tokenizer *t, const char *text, size_t n, bool *fused,
                             plm_tokens *out, plm_error *err)
{
    bool all = true;
    for (size_t i = 0; i < n; i++)
        all = all && t->byte_id[(unsigned char)text[i]] != PLM_TOK_NONE;
    if (!all)
        return push_unknown(t, fused, out, err);
    for (size_t i = 0; i < n; i++)
        PLM_TRY(plm_tok_push(out, t->byte_id[(unsigned char)text[i]], err));
    *fused = false;
    return PLM_OK;
}

static plm_status push_symbols(const plm_tokenizer *t, const char *word, const plm_tok_work *w,
                               plm_tokens *out, plm_error *err)
{
    bool fused = false;
    for (uint32_t i = 0; i < w->symbols.count; i++) {
        const plm_tok_symbol *s = &w->symbols.items[i];
        if (s->n == 0)
            continue;
        if (s->id == PLM_TOK_NONE) {
            PLM_TRY(push_bytes(t, word + s->at, s->n, &fused, out, err));
            continue;
        }
        fused = false;
        PLM_TRY(plm_tok_push(out, s->id, err));
    }
    return PLM_OK;
}

/* ---- the two kinds ---- */

/* The whole word as a token, where that goes before merges. */
static plm_status whole_word(const plm_tokenizer *t, const char *word, size_t n, plm_tok_work *w,
                             uint32_t *id, plm_error *err)
{
    *id = PLM_TOK_NONE;
    if (t->newline_words && strspn(word, "\n") >= n)
        *id = plm_tok_find(t, word, n);
    if (!t->ignore_merges || n > t->longest)
        return PLM_OK;
    if (!t->byte_level) {
        *id = plm_tok_find(t, word, n);
        return PLM_OK;
    }
    w->letters.count = 0;
    for (size_t i = 0; i < n; i++) {
        char letter[2];
        size_t k = plm_tok_letter((unsigned char)word[i], letter);
        PLM_TRY(plm_tok_append(&w->letters, letter, k, err));
    }
    *id = plm_tok_find(t, w->letters.items, w->letters.count);
    return PLM_OK;
}

plm_status plm_tok_bpe(const plm_tokenizer *t, const char *word, size_t n, plm_tok_work *w,
                       plm_tokens *out, plm_error *err)
{
    uint32_t id;
    PLM_TRY(whole_word(t, word, n, w, &id, err));
    if (id != PLM_TOK_NONE)
        return plm_tok_push(out, id, err);
    w->symbols.count = 0;
    for (size_t i = 0, k; i < n; i += k) {
        k = t->byte_level ? 1 : char_bytes(word + i, n - i);
        id = t->byte_level ? t->byte_id[(unsigned char)word[i]] : plm_tok_find(t, word + i, k);
        if (t->byte_level || id != PLM_TOK_NONE || !t->byte_fallback) {
            PLM_TRY(add_symbol(w, i, k, id, err));
            continue;
        }
        bool all =
            true; /* bytes of an unknown character are symbols, if the vocabulary has them all */
        for (size_t b = 0; b < k; b++)
            all = all && t->byte_id[(unsigned char)word[i + b]] != PLM_TOK_NONE;
        for (size_t b = 0; b < (all ? k : 1); b++)
            PLM_TRY(add_symbol(w, i + b, all ? 1 : k,
                               all ? t->byte_id[(unsigned char)word[i + b]] : PLM_TOK_NONE, err));
    }
    PLM_TRY(join_pairs(t, word, w, err));
    return push_symbols(t, word, w, out, err);
}

plm_status plm_tok_scores(const plm_tokenizer *t, const char *word, size_t n, plm_tok_work *w,
                          plm_tokens *out, plm_error *err)
{
    w->symbols.count = 0;
    for (size_t i = 0, k; i < n; i += k) {
        k = char_bytes(word + i, n - i);
        PLM_TRY(add_symbol(w, i, k, plm_tok_find(t, word + i, k), err));
    }
    PLM_TRY(join_pairs(t, word, w, err));
    return push_symbols(t, word, w, out, err);
}
