/* tok_added.c - tokens that are found in a text before it is cut into words: control tokens and
** those a user has added. The leftmost wins, of those the longest. */
#include <string.h>
#include <utf8proc.h>

#include "core/base/vec.h"
#include "core/model/tok_parts.h"

plm_status plm_tok_added_push(plm_tok_added *a, uint32_t id, plm_error *err)
{
    if (!plm_vec_grow((void **)&a->id, &a->room, a->count, sizeof *a->id, PLM_TOKENS_MAX))
        return plm_fail_memory(err, "added tokens");
    a->id[a->count++] = id;
    return PLM_OK;
}

static int compare(const plm_tokenizer *t, uint32_t a, uint32_t b)
{
    const plm_token *x = &t->token[a], *y = &t->token[b];
    int order = memcmp(t->pool.items + x->at, t->pool.items + y->at, x->n < y->n ? x->n : y->n);
    return order != 0 ? order : x->n < y->n ? -1 : x->n > y->n;
}

static void sift_down(const plm_tokenizer *t, uint32_t *v, size_t at, size_t n)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && compare(t, v[child], v[child + 1]) < 0)
            child++;
        if (compare(t, v[at], v[child]) >= 0)
            return;
        uint32_t x = v[at];
        v[at] = v[child];
        v[child] = x;
    }
}

void plm_tok_added_sort(const plm_tokenizer *t, plm_tok_added *a)
{
    uint32_t *v = a->id;
    for (size_t i = a->count / 2; i-- > 0;)
        sift_down(t, v, i, a->count);
    for (size_t end = a->count; end-- > 1;) {
        uint32_t x = v[0];
        v[0] = v[end];
        v[end] = x;
        sift_down(t, v, 0, end);
    }
    for (size_t i = 0; i < a->count; i++)
        a->first[(unsigned char)t->pool.items[t->token[v[i]].at]] = true;
}

/* First name of list[lo, hi), all equal in their first `depth` bytes, whose next byte is at
** least c (or above c); names that end there come first. */
static size_t bound(const plm_tokenizer *t, const plm_tok_added *a, size_t lo, size_t hi,
                    size_t depth, int c, bool above)
{
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const plm_token *k = &t->token[a->id[mid]];
        int mine = k->n > depth ? (unsigned char)t->pool.items[k->at + depth] : -1;
        if (mine < c || (above && mine == c))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The longest name that begins the text; PLM_TOK_NONE if none does. */
static uint32_t longest(const plm_tokenizer *t, const plm_tok_added *a, const char *text, size_t n,
                        bool special)
{
    uint32_t best = PLM_TOK_NONE;
    size_t lo = 0, hi = a->count;
    for (size_t depth = 0; depth < n && lo < hi; depth++) {
        int c = (unsigned char)text[depth];
        lo = bound(t, a, lo, hi, depth, c, false);
        hi = bound(t, a, lo, hi, depth, c, true);
        if (lo < hi && t->token[a->id[lo]].n == depth + 1) {
            const plm_token *k = &t->token[a->id[lo]];
            if (special || (k->kind != PLM_TOKEN_CONTROL && k->kind != PLM_TOKEN_UNKNOWN))
                best = a->id[lo];
        }
    }
    return best;
}

/* ---- whitespace around a token ---- */

static bool is_space(utf8proc_int32_t c)
{
    return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 ||
           (c >= 0x80 &&
            (utf8proc_category(c) == UTF8PROC_CATEGORY_ZS || c == 0x2028 || c == 0x2029));
}

static bool is_word(utf8proc_int32_t c)
{
    utf8proc_category_t k = utf8proc_category(c);
    return c == '_' || (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NO);
}

/* Character that ends before `at`, and its bytes; 0 at the beginning. */
static size_t char_before(const char *text, size_t from, size_t at, utf8proc_int32_t *c)
{
    size_t n = 1;
    if (at <= from)
        return 0;
    while (n < 4 && at - n > from && ((unsigned char)text[at - n] & 0xc0) == 0x80)
        n++;
    *c = -1;
    utf8proc_iterate((const utf8proc_uint8_t *)text + at - n, (utf8proc_ssize_t)n, c);
    return n;
}

static size_t char_after(const char *text, size_t at, size_t n, utf8proc_int32_t *c)
{
    if (at >= n)
        return 0;
    utf8proc_ssize_t k =
        utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(n - at), c);
    return k > 0 ? (size_t)k : 1;
}

/* Grows the place of a token over the whitespace it takes along; false where it is part of a
** word and must not be. */
static bool fit(const plm_token *k, const char *text, size_t from, size_t n, plm_tok_span *where)
{
    size_t start = where->at, end = start + where->n, step;
    utf8proc_int32_t c = 0;
    if (k->single_word && ((char_before(text, from, start, &c) > 0 && is_word(c)) ||
                           (char_after(text, end, n, &c) > 0 && is_word(c))))
        return false;
    while (k->lstrip && (step = char_before(text, from, start, &c)) > 0 && is_space(c))
        start -= step;
    while (k->rstrip && (step = char_after(text, end, n, &c)) > 0 && is_space(c))
        end += step;
    *where = (plm_tok_span){(uint32_t)start, (uint32_t)(end - start)};
    return true;
}

bool plm_tok_added_next(const plm_tokenizer *t, const plm_tok_added *a, const char *text,
                        size_t from, size_t n, bool special, plm_tok_span *where, uint32_t *id)
{
    for (size_t i = from; i < n && a->count > 0; i++) {
        if (!a->first[(unsigned char)text[i]])
            continue;
        *id = longest(t, a, text + i, n - i, special);
        if (*id == PLM_TOK_NONE)
            continue;
        *where = (plm_tok_span){(uint32_t)i, t->token[*id].n};
        if (fit(&t->token[*id], text, from, n, where))
            return true;
    }
    return false;
}
