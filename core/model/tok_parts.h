/* tok_parts.h - what the files of the tokenizer share. Private to core/model.
**
** tokenizer.c: encoding, decoding, questions. tok_vocab.c: tokens, names, merges. tok_added.c:
** tokens that are found in the text before all else. tok_norm.c: normalisation. tok_pre.c:
** cutting into words. tok_bpe.c, tok_unigram.c: words to ids. tok_gguf.c, tok_json.c,
** tok_steps.c: from files. */
#ifndef PLM_MODEL_TOK_PARTS_H
#define PLM_MODEL_TOK_PARTS_H
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/model/tokenizer.h"

#define PLM_TOK_STEPS_MAX 16
#define PLM_TOK_ENDS_MAX 16
#define PLM_TOK_NONE UINT32_MAX

/* Numbers of tokenizer.ggml.token_type. */
typedef enum plm_token_kind {
    PLM_TOKEN_NORMAL = 1,
    PLM_TOKEN_UNKNOWN,
    PLM_TOKEN_CONTROL,
    PLM_TOKEN_USER,
    PLM_TOKEN_UNUSED,
    PLM_TOKEN_BYTE
} plm_token_kind;

typedef struct plm_token {
    uint32_t at, n;             /* name, in the pool */
    uint32_t piece_at, piece_n; /* bytes it stands for */
    double score;
    uint8_t kind;
    bool lstrip, rstrip, single_word; /* added tokens of a tokenizer.json */
} plm_token;

typedef struct plm_tok_merge {
    uint64_t pair; /* left << 32 | right; UINT64_MAX = free slot */
    uint32_t rank, id;
} plm_tok_merge;

/* Growing bytes with a maximum. */
typedef struct plm_tok_text {
    char *items;
    size_t count, room;
} plm_tok_text;
plm_status plm_tok_append(plm_tok_text *t, const char *bytes, size_t n,
                          plm_error *err) PLM_MUST_USE;
void plm_tok_text_fini(plm_tok_text *t);

typedef struct plm_tok_span {
    uint32_t at, n;
} plm_tok_span;
typedef struct plm_tok_spans {
    plm_tok_span *items;
    size_t count, room;
} plm_tok_spans;
plm_status plm_tok_add_span(plm_tok_spans *s, size_t at, size_t n, plm_error *err) PLM_MUST_USE;

/* ---- steps ---- */
typedef enum plm_tok_step_kind {
    /* normalisation: one text to another */
    PLM_STEP_NFC,
    PLM_STEP_NFD,
    PLM_STEP_NFKC,
    PLM_STEP_NFKD,
    PLM_STEP_LOWER,
    PLM_STEP_STRIP_ACCENTS,
    PLM_STEP_STRIP,   /* flag bit 0: left, bit 1: right */
    PLM_STEP_PREPEND, /* `text` before a text that is not empty */
    PLM_STEP_REPLACE, /* `regex` (or `from`) by `text` */
    /* cutting into words */
    PLM_STEP_SPLIT,       /* by `regex`, see plm_tok_split */
    PLM_STEP_METASPACE,   /* spaces become `text`; cut before each if `flag` */
    PLM_STEP_PREFIX_SPACE /* a space before each word that does not begin with one */
} plm_tok_step_kind;

typedef enum plm_tok_split {
    PLM_SPLIT_ISOLATED,  /* matches are words, and so are the gaps */
    PLM_SPLIT_REMOVED,   /* matches are dropped */
    PLM_SPLIT_PREVIOUS,  /* a match ends the word before it */
    PLM_SPLIT_NEXT,      /* a match begins the word after it */
    PLM_SPLIT_CONTIGUOUS /* neighbouring matches are one word */
} plm_tok_split;

typedef enum plm_tok_prepend {
    PLM_PREPEND_NEVER,
    PLM_PREPEND_FIRST,
    PLM_PREPEND_ALWAYS
} plm_tok_prepend;

typedef struct plm_tok_step {
    plm_tok_step_kind kind;
    plm_tok_split split;
    plm_tok_prepend prepend;
    unsigned flag;
    bool invert;       /* SPLIT: words and gaps change places */
    pcre2_code *regex; /* owned */
    char *from, *text; /* owned */
} plm_tok_step;

typedef enum plm_tok_model { PLM_TOK_BPE, PLM_TOK_SCORES, PLM_TOK_UNIGRAM } plm_tok_model;

/* Names in byte order, for the longest that begins a text. */
typedef struct plm_tok_added {
    uint32_t *id;
    size_t count, room;
    bool first[256]; /* bytes that a name begins with */
} plm_tok_added;

struct plm_tokenizer {
    plm_tok_model model;
    plm_token *token;
    uint32_t n_tokens;
    plm_tok_text pool;
    uint32_t *slot;   /* by hash of the name: id, PLM_TOK_NONE = free */
    uint32_t n_slots; /* power of two */
    plm_tok_merge *merge;
    uint32_t n_merge_slots;
    uint32_t byte_id[256]; /* token of a byte (byte level: of its letter), PLM_TOK_NONE */
    uint32_t longest;      /* bytes of the longest name */
    double unknown_score;  /* unigram */
    uint32_t unknown, bos, eos;
    bool byte_level;    /* words are written in the letters of GPT-2 */
    bool byte_fallback; /* what is no token is written as bytes */
    bool fuse_unknown, ignore_merges;
    bool newline_words; /* a word of newlines alone is looked up first (Gemma 4) */
    bool raw_bytes;     /* text that is no UTF-8 is kept as it is */
    bool strip_first;   /* decoding drops a leading space */
    plm_tok_step norm[PLM_TOK_STEPS_MAX], pre[PLM_TOK_STEPS_MAX];
    size_t n_norm, n_pre;
    plm_tok_added raw, normalized; /* found before and after normalisation */
    uint32_t before[PLM_TOK_ENDS_MAX], after[PLM_TOK_ENDS_MAX];
    size_t n_before, n_after;
    uint32_t ends[PLM_TOK_ENDS_MAX]; /* of generation, besides eos */
    size_t n_ends;
    char *chat_template;
    pcre2_general_context *pcre; /* allocates by plm_malloc */
    pcre2_match_context *match;  /* limits */
};

/* ---- tok_vocab.c ---- */
plm_status plm_tok_create(plm_tokenizer **out, plm_error *err) PLM_MUST_USE;
/* Room for n tokens, all UNUSED without a name. */
plm_status plm_tok_reserve(plm_tokenizer *t, uint64_t n, const char *where,
                           plm_error *err) PLM_MUST_USE;
/* Names a token. A name that another token has is PLM_E_INVALID. */
plm_status plm_tok_set(plm_tokenizer *t, uint32_t id, const char *name, size_t n, double score,
                       plm_token_kind kind, const char *where, plm_error *err) PLM_MUST_USE;
uint32_t plm_tok_find(const plm_tokenizer *t, const char *name, size_t n);
/* Slots for up to n merges, then each in order of rank; a merge whose parts or whole are no
** tokens is passed over, or PLM_E_INVALID if `strict`. */
plm_status plm_tok_reserve_merges(plm_tokenizer *t, uint64_t n, const char *where,
                                  plm_error *err) PLM_MUST_USE;
plm_status plm_tok_merge_add(plm_tokenizer *t, const char *left, size_t n_left, const char *right,
                             size_t n_right, uint32_t rank, bool strict, const char *where,
                             plm_error *err) PLM_MUST_USE;
const plm_tok_merge *plm_tok_merge_find(const plm_tokenizer *t, uint32_t left, uint32_t right);
/* Pieces, bytes, added tokens: once all tokens are named and the flags above are set. */
plm_status plm_tok_finish(plm_tokenizer *t, plm_error *err) PLM_MUST_USE;
/* UTF-8 of the letter that stands for a byte in byte-level names: 1 or 2 bytes. */
size_t plm_tok_letter(unsigned char byte, char out[2]);

/* ---- tok_added.c ---- */
plm_status plm_tok_added_push(plm_tok_added *a, uint32_t id, plm_error *err) PLM_MUST_USE;
void plm_tok_added_sort(const plm_tokenizer *t, plm_tok_added *a);
/* First token of the list in text[from, n): its place and length; false if there is none.
** Control tokens count only if `special`. */
bool plm_tok_added_next(const plm_tokenizer *t, const plm_tok_added *a, const char *text,
                        size_t from, size_t n, bool special, plm_tok_span *where, uint32_t *id);

/* ---- tok_norm.c, tok_pre.c ---- */
/* Valid UTF-8 of text: what is none becomes U+FFFD, a byte at a time. */
plm_status plm_tok_clean(const char *text, size_t n, plm_tok_text *out,
                         plm_error *err) PLM_MUST_USE;
/* All normalising steps; out is the result. text is UTF-8 unless raw_bytes. */
plm_status plm_tok_normalize(const plm_tokenizer *t, const char *text, size_t n, plm_tok_text *out,
                             plm_error *err) PLM_MUST_USE;
/* Words of a normalised text; text is changed where a step writes. first: it begins the whole
** text. */
plm_status plm_tok_words(const plm_tokenizer *t, plm_tok_text *text, bool first, plm_tok_spans *out,
                         plm_error *err) PLM_MUST_USE;
/* A pattern as written for Rust or Oniguruma; `what` names it in errors. */
plm_status plm_tok_regex(const plm_tokenizer *t, const char *pattern, size_t n, const char *what,
                         pcre2_code **out, plm_error *err) PLM_MUST_USE;
/* Next match at or after `from` of a text that is UTF-8: 1 found, 0 none, PLM_E_* through
** *status. */
plm_status plm_tok_match(const plm_tokenizer *t, const pcre2_code *regex, pcre2_match_data *data,
                         const char *text, size_t n, size_t from, bool *found, size_t *start,
                         size_t *end, plm_error *err) PLM_MUST_USE;
void plm_tok_step_fini(plm_tok_step *s);

/* ---- words to ids ---- */
typedef struct plm_tok_work plm_tok_work; /* scratch of one encoding */
plm_status plm_tok_push(plm_tokens *out, uint32_t id, plm_error *err) PLM_MUST_USE;
plm_status plm_tok_bpe(const plm_tokenizer *t, const char *word, size_t n, plm_tok_work *w,
                       plm_tokens *out, plm_error *err) PLM_MUST_USE;
plm_status plm_tok_scores(const plm_tokenizer *t, const char *word, size_t n, plm_tok_work *w,
                          plm_tokens *out, plm_error *err) PLM_MUST_USE;
plm_status plm_tok_unigram(const plm_tokenizer *t, const char *word, size_t n, plm_tok_work *w,
                           plm_tokens *out, plm_error *err) PLM_MUST_USE;

typedef struct plm_tok_symbol {
    uint32_t at, n;      /* of the word; n 0 = merged away */
    uint32_t prev, next; /* PLM_TOK_NONE */
    uint32_t id;
} plm_tok_symbol;
typedef struct plm_tok_pair {
    double order;                /* least first: rank, or minus the score */
    uint32_t left, right, n, id; /* n: bytes of both, id: what they make */
} plm_tok_pair;
typedef struct plm_tok_best {
    double score;
    uint32_t from, id;
} plm_tok_best;
struct plm_tok_work {
    struct {
        plm_tok_symbol *items;
        size_t count, room;
    } symbols;
    struct {
        plm_tok_pair *items;
        size_t count, room;
    } heap;
    struct {
        plm_tok_best *items;
        size_t count, room;
    } best;
    plm_tok_text letters; /* a word in byte-level letters */
};
void plm_tok_work_fini(plm_tok_work *w);

/* ---- from files (tok_steps.c) ---- */
plm_status plm_tok_add_split(plm_tokenizer *t, const char *pattern, plm_tok_split split,
                             bool invert, const char *what, plm_error *err) PLM_MUST_USE;
plm_status plm_tok_add_norm(plm_tokenizer *t, plm_tok_step_kind kind, const char *from,
                            const char *text, const char *where, plm_error *err) PLM_MUST_USE;
/* Matches of a pattern replaced by a text. */
plm_status plm_tok_add_replace(plm_tokenizer *t, const char *pattern, const char *text,
                               const char *where, plm_error *err) PLM_MUST_USE;
/* SentencePiece's nmt_nfkc table as NFKC, with its handling of controls and white space; other
** tables are not read. */
plm_status plm_tok_add_charsmap(plm_tokenizer *t, const char *where, plm_error *err) PLM_MUST_USE;
/* No white space at either end, single spaces between. */
plm_status plm_tok_add_squeeze(plm_tokenizer *t, const char *where, plm_error *err) PLM_MUST_USE;
/* Cutting steps and habits of a pre-tokeniser by the name GGUF files give it. */
plm_status plm_tok_by_name(plm_tokenizer *t, const char *name, size_t n, bool *add_bos,
                           const char *where, plm_error *err) PLM_MUST_USE;
/* GPT-2's pattern. */
extern const char plm_tok_gpt2_pattern[];

#endif
