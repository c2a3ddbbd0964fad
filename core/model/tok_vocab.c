/* tok_vocab.c - tokens, their names, and merges. */
#include <string.h>

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/vec.h"
#include "core/model/tok_parts.h"

#define POOL_MAX ((size_t)1 << 28)
#define TEXT_ROOM ((size_t)1 << 30)
#define MERGES_MAX (1u << 23)
#define LONGEST_NAME 65535u
/* Steps and memory of one match of a pattern. */
#define MATCH_LIMIT 10000000u
#define HEAP_LIMIT_KIB 65536u

/* ---- bytes ---- */

plm_status plm_tok_append(plm_tok_text *t, const char *bytes, size_t n, plm_error *err)
{
    if (n > TEXT_ROOM - t->count)
        return plm_fail(err, PLM_E_LIMIT, "text, %zu bytes: more than 1 GiB; give less at once",
                        t->count);
    if (t->count + n > t->room) {
        size_t room = t->room < 64 ? 64 : t->room;
        while (room < t->count + n)
            room *= 2;
        char *more = plm_realloc(t->items, room);
        if (more == NULL)
            return plm_fail_memory(err, "text");
        t->items = more;
        t->room = room;
    }
    if (n > 0)
        memcpy(t->items + t->count, bytes, n);
    t->count += n;
    return PLM_OK;
}

void plm_tok_text_fini(plm_tok_text *t)
{
    plm_free(t->items);
    memset(t, 0, sizeof *t);
}

/* GPT-2's bytes_to_unicode: printable bytes stand for themselves, the other 68 for the letters from
** U+0100 on, in order. */
static uint32_t letter_code(unsigned byte)
{
    uint32_t extra = 0x100;
    for (unsigned b = 0; b <= byte; b++) {
        bool plain = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        if (b == byte)
            return plain ? b : extra;
        extra += !plain;
    }
    return 0;
}

size_t plm_tok_letter(unsigned char byte, char out[2])
{
    uint32_t c = letter_code(byte);
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    out[0] = (char)(0xc0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3f));
    return 2;
}

/* ---- tokens ---- */

/* PCRE2's door to our allocator. */
static void *pcre_alloc(size_t bytes, void *user)
{
    (void)user;
    return plm_malloc(bytes);
}

static void pcre_free(void *ptr, void *user)
{
    (void)user;
    plm_free(ptr);
}

plm_status plm_tok_create(plm_tokenizer **out, plm_error *err)
{
    plm_tokenizer *t = plm_calloc(1, sizeof *t);
    *out = NULL;
    if (t == NULL)
        return plm_fail_memory(err, "tokenizer");
    t->unknown = t->bos = t->eos = PLM_TOK_NONE;
    memset(t->byte_id, 0xff, sizeof t->byte_id);
    t->pcre = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    t->match = pcre2_match_context_create(t->pcre);
    if (t->pcre == NULL || t->match == NULL) {
        plm_tokenizer_destroy(t);
        return plm_fail_memory(err, "tokenizer");
    }
    pcre2_set_match_limit(t->match, MATCH_LIMIT);
    pcre2_set_heap_limit(t->match, HEAP_LIMIT_KIB);
    *out = t;
    return PLM_OK;
}

plm_status plm_tok_reserve(plm_tokenizer *t, uint64_t n, const char *where, plm_error *err)
{
    if (n == 0 || n > PLM_TOKENS_MAX)
        return plm_fail(err, PLM_E_INVALID, "vocabulary, %s: %llu tokens; want 1 to %u", where,
                        (unsigned long long)n, PLM_TOKENS_MAX);
    t->n_tokens = (uint32_t)n;
    t->n_slots = 16;
    while (t->n_slots < 2 * t->n_tokens)
        t->n_slots *= 2;
    t->token = plm_calloc(t->n_tokens, sizeof *t->token);
    t->slot = plm_malloc(t->n_slots * sizeof *t->slot);
    if (t->token == NULL || t->slot == NULL)
        return plm_fail_memory(err, "vocabulary");
    memset(t->slot, 0xff, t->n_slots * sizeof *t->slot);
    for (uint32_t i = 0; i < t->n_tokens; i++)
        t->token[i].kind = PLM_TOKEN_UNUSED;
    return PLM_OK;
}

static uint32_t slot_of(const plm_tokenizer *t, const char *name, size_t n)
{
    uint64_t h = plm_hash(name, n, 0);
    uint32_t i = (uint32_t)(h ^ h >> 32) & (t->n_slots - 1);
    for (;; i = (i + 1) & (t->n_slots - 1)) {
        if (t->slot[i] == PLM_TOK_NONE)
            return i;
        const plm_token *k = &t->token[t->slot[i]];
        if (k->n == n && memcmp(t->pool.items + k->at, name, n) == 0)
            return i;
    }
}

uint32_t plm_tok_find(const plm_tokenizer *t, const char *name, size_t n)
{
    return n == 0 || n > t->longest ? PLM_TOK_NONE : t->slot[slot_of(t, name, n)];
}

plm_status plm_tok_set(plm_tokenizer *t, uint32_t id, const char *name, size_t n, double score,
                       plm_token_kind kind, const char *where, plm_error *err)
{
    if (id >= t->n_tokens || t->token[id].n > 0)
        return plm_fail(err, PLM_E_INVALID,
                        "vocabulary, %s: token %u is there twice or out of range; "
                        "the file is damaged",
                        where, id);
    if (n > LONGEST_NAME || t->pool.count + n > POOL_MAX)
        return plm_fail(err, PLM_E_LIMIT,
                        "vocabulary, %s: token %u is too long; the file is damaged", where, id);
    plm_token *k = &t->token[id];
    k->score = score;
    k->kind = (uint8_t)kind;
    if (n == 0) /* a hole */
        return PLM_OK;
    uint32_t slot = slot_of(t, name, n);
    if (t->slot[slot] != PLM_TOK_NONE)
        return plm_fail(err, PLM_E_INVALID,
                        "vocabulary, %s: tokens %u and %u have one name; the file "
                        "is damaged",
                        where, t->slot[slot], id);
    k->at = (uint32_t)t->pool.count;
    k->n = (uint32_t)n;
    PLM_TRY(plm_tok_append(&t->pool, name, n, err));
    t->slot[slot] = id;
    t->longest = k->n > t->longest ? k->n : t->longest;
    return PLM_OK;
}

/* ---- merges ---- */

plm_status plm_tok_reserve_merges(plm_tokenizer *t, uint64_t n, const char *where, plm_error *err)
{
    if (n > MERGES_MAX)
        return plm_fail(err, PLM_E_LIMIT, "merges, %s: %llu of them; at most %u are understood",
                        where, (unsigned long long)n, MERGES_MAX);
    t->n_merge_slots = 16;
    while (t->n_merge_slots < 2 * n)
        t->n_merge_slots *= 2;
    t->merge = plm_malloc(t->n_merge_slots * sizeof *t->merge);
    if (t->merge == NULL)
        return plm_fail_memory(err, "merges");
    memset(t->merge, 0xff, t->n_merge_slots * sizeof *t->merge);
    return PLM_OK;
}

static plm_tok_merge *merge_slot(const plm_tokenizer *t, uint64_t pair)
{
    uint64_t h = pair * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t i = (uint32_t)(h >> 32) & (t->n_merge_slots - 1);
    while (t->merge[i].pair != UINT64_MAX && t->merge[i].pair != pair)
        i = (i + 1) & (t->n_merge_slots - 1);
    return &t->merge[i];
}

const plm_tok_merge *plm_tok_merge_find(const plm_tokenizer *t, uint32_t left, uint32_t right)
{
    if (left == PLM_TOK_NONE || right == PLM_TOK_NONE || t->n_merge_slots == 0)
        return NULL;
    const plm_tok_merge *m = merge_slot(t, (uint64_t)left << 32 | right);
    return m->pair != UINT64_MAX ? m : NULL;
}

plm_status plm_tok_merge_add(plm_tokenizer *t, const char *left, size_t n_left, const char *right,
                             size_t n_right, uint32_t rank, bool strict, const char *where,
                             plm_error *err)
{
    plm_tok_text whole = {0};
    plm_status status = plm_tok_append(&whole, left, n_left, err);
    if (status == PLM_OK)
        status = plm_tok_append(&whole, right, n_right, err);
    if (status != PLM_OK) {
        plm_tok_text_fini(&whole);
        return status;
    }
    uint32_t a = plm_tok_find(t, left, n_left), b = plm_tok_find(t, right, n_right);
    uint32_t id = plm_tok_find(t, whole.items, whole.count);
    plm_tok_text_fini(&whole);
    if (n_left == 0 || n_right == 0 ||
        (strict && (a == PLM_TOK_NONE || b == PLM_TOK_NONE || id == PLM_TOK_NONE)))
        return plm_fail(err, PLM_E_INVALID,
                        "merges, %s: merge %u joins no two tokens to a third; the file is damaged",
                        where, rank);
    if (a == PLM_TOK_NONE || b == PLM_TOK_NONE || id == PLM_TOK_NONE)
        return PLM_OK;
    plm_tok_merge *m = merge_slot(t, (uint64_t)a << 32 | b);
    if (m->pair == UINT64_MAX) /* of two, the first holds */
        *m = (plm_tok_merge){.pair = (uint64_t)a << 32 | b, .rank = rank, .id = id};
    return PLM_OK;
}

/* ---- pieces ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of a name "<0xE2>", -1 if it is none. */
static int byte_of_name(const char *name, size_t n)
{
    if (n != 6 || memcmp(name, "<0x", 3) != 0 || name[5] != '>')
        return -1;
    int hi = hex_digit(name[3]), lo = hex_digit(name[4]);
    return hi < 0 || lo < 0 ? -1 : hi * 16 + lo;
}

/* Bytes of a byte-level name; a letter that stands for no byte stays as it is. */
static plm_status spell_letters(const int16_t byte_of[0x200], const char *name, size_t n,
                                plm_tok_text *out, plm_error *err)
{
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)name[i];
        size_t k = c < 0x80 ? 1 : 2;
        uint32_t code =
            c < 0x80 || i + 1 >= n ? c : (c & 0x1fu) << 6 | ((unsigned char)name[i + 1] & 0x3fu);
        if (c >= 0xe0 || code >= 0x200 || byte_of[code] < 0) {
            k = 1;
            PLM_TRY(plm_tok_append(out, name + i, 1, err));
        } else {
            char b = (char)byte_of[code];
            PLM_TRY(plm_tok_append(out, &b, 1, err));
        }
        i += k;
    }
    return PLM_OK;
}

/* U+2581 is a space. */
static plm_status spell_spaces(const char *name, size_t n, plm_tok_text *out, plm_error *err)
{
    for (size_t i = 0; i < n;) {
        bool space = i + 3 <= n && memcmp(name + i, "\xe2\x96\x81", 3) == 0;
        PLM_TRY(plm_tok_append(out, space ? " " : name + i, 1, err));
        i += space ? 3 : 1;
    }
    return PLM_OK;
}

static plm_status spell(plm_tokenizer *t, plm_token *k, const int16_t byte_of[0x200],
                        plm_tok_text *scratch, plm_error *err)
{
    const char *name = t->pool.items + k->at;
    int byte = t->byte_level ? -1 : byte_of_name(name, k->n);
    scratch->count = 0;
    k->piece_at = k->at;
    k->piece_n = k->n;
    if (byte >= 0 && (k->kind == PLM_TOKEN_BYTE || t->byte_fallback)) {
        char b = (char)byte;
        PLM_TRY(plm_tok_append(scratch, &b, 1, err));
        t->byte_id[byte] = (uint32_t)(k - t->token);
    } else if (k->kind == PLM_TOKEN_CONTROL || k->kind == PLM_TOKEN_UNKNOWN) {
        return PLM_OK;
    } else if (!t->byte_level) {
        PLM_TRY(spell_spaces(name, k->n, scratch, err));
    } else if (k->kind == PLM_TOKEN_USER) {
        return PLM_OK;
    } else {
        PLM_TRY(spell_letters(byte_of, name, k->n, scratch, err));
    }
    if (scratch->count == k->n && memcmp(scratch->items, name, k->n) == 0)
        return PLM_OK;
    if (t->pool.count + scratch->count > POOL_MAX)
        return plm_fail(err, PLM_E_LIMIT,
                        "vocabulary: more than 256 MB of text; the file is damaged");
    k->piece_at = (uint32_t)t->pool.count;
    k->piece_n = (uint32_t)scratch->count;
    return plm_tok_append(&t->pool, scratch->items, scratch->count, err);
}

plm_status plm_tok_finish(plm_tokenizer *t, plm_error *err)
{
    int16_t byte_of[0x200];
    plm_tok_text scratch = {0};
    plm_status status = PLM_OK;
    memset(byte_of, 0xff, sizeof byte_of);
    for (unsigned b = 0; b < 256; b++)
        byte_of[letter_code(b)] = (int16_t)b;
    for (uint32_t i = 0; i < t->n_tokens && status == PLM_OK; i++)
        if (t->token[i].n > 0)
            status = spell(t, &t->token[i], byte_of, &scratch, err);
    plm_tok_text_fini(&scratch);
    for (unsigned b = 0; b < 256 && t->byte_level; b++) {
        char letter[2];
        size_t n = plm_tok_letter((unsigned char)b, letter);
        t->byte_id[b] = plm_tok_find(t, letter, n);
    }
    for (unsigned b = 0; b < 256 && t->model == PLM_TOK_SCORES; b++) { /* as llama.cpp does */
        char name = (char)b;
        if (t->byte_id[b] == PLM_TOK_NONE)
            t->byte_id[b] = plm_tok_find(t, &name, 1);
    }
    plm_tok_added_sort(t, &t->raw);
    plm_tok_added_sort(t, &t->normalized);
    return status;
}
