/* tok_pre.c - patterns, and cutting a text into words.
**
** Published patterns are written for Rust's regex, for Oniguruma or for tiktoken. What differs
** in PCRE2 is rewritten: \s (and \S) is Unicode's White_Space there, while PCRE2 adds U+180E; \w
** (and \W) counts marks there. '$' ends any line in Oniguruma. Limits keep a hostile pattern
** from running on. */
#include <string.h>

#include "core/base/mem.h"
#include "core/base/vec.h"
#include "core/model/tok_parts.h"

#define PATTERN_MAX 65536u
/* White_Space without brackets: the controls, NEL, and the separators. */
#define WHITE "\\t-\\r\\x{85}\\p{Z}"
/* A word's characters in Unicode Technical Standard 18, annex C. */
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}"

plm_status plm_tok_add_span(plm_tok_spans *s, size_t at, size_t n, plm_error *err)
{
    if (n == 0)
        return PLM_OK;
    plm_tok_span span = {(uint32_t)at, (uint32_t)n};
    return plm_vec_push(s, span, PLM_TEXT_MAX) ? PLM_OK : plm_fail_memory(err, "words");
}

void plm_tok_step_fini(plm_tok_step *s)
{
    pcre2_code_free(s->regex);
    plm_free(s->from);
    plm_free(s->text);
    memset(s, 0, sizeof *s);
}

/* ---- patterns ---- */

/* What stands for an escape, in a class and outside; NULL where PCRE2 means the same. */
static const char *spelled(char c, bool in_class)
{
    static const struct {
        char escape;
        const char *in_class, *outside;
    } table[] = {{'s', WHITE, "[" WHITE "]"},
                 {'S', NULL, "[^" WHITE "]"},
                 {'w', WORD, "[" WORD "]"},
                 {'W', NULL, "[^" WORD "]"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].escape == c)
            return in_class ? table[i].in_class : table[i].outside;
    return NULL;
}

/* The pattern with those escapes spelled out. */
static plm_status rewrite(const char *p, size_t n, plm_tok_text *out, plm_error *err)
{
    bool in_class = false;
    for (size_t i = 0, len; i < n; i += len) {
        const char *text = NULL;
        len = 1;
        if (p[i] == '\\' && i + 1 < n) {
            len = 2;
            text = spelled(p[i + 1], in_class);
        } else if (p[i] == '[' && !in_class) {
            in_class = true;
            len += i + 1 < n && p[i + 1] == '^';
            len += i + len < n && p[i + len] == ']'; /* a bracket that stands for itself */
        } else if (p[i] == ']') {
            in_class = false;
        }
        PLM_TRY(plm_tok_append(out, text != NULL ? text : p + i, text != NULL ? strlen(text) : len,
                               err));
    }
    return PLM_OK;
}

plm_status plm_tok_regex(const plm_tokenizer *t, const char *pattern, size_t n, const char *what,
                         pcre2_code **out, plm_error *err)
{
    plm_tok_text text = {0};
    int code = 0;
    PCRE2_SIZE at = 0;
    *out = NULL;
    if (n > PATTERN_MAX)
        return plm_fail(err, PLM_E_LIMIT, "pattern, %s: longer than %u bytes; check the file", what,
                        PATTERN_MAX);
    pcre2_compile_context *c = pcre2_compile_context_create(t->pcre);
    plm_status status = c == NULL ? plm_fail_memory(err, "a pattern") : PLM_OK;
    if (status == PLM_OK)
        status = rewrite(pattern, n, &text, err);
    if (status == PLM_OK) {
        pcre2_set_parens_nest_limit(c, 100);
        *out = pcre2_compile((PCRE2_SPTR)text.items, text.count,
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &code, &at, c);
        if (*out == NULL) {
            PCRE2_UCHAR why[128] = "";
            pcre2_get_error_message(code, why, sizeof why);
            status =
                code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED
                    ? plm_fail_memory(err, "a pattern")
                    : plm_fail(err, PLM_E_INVALID, "pattern, %s: %s at byte %zu; check the file",
                               what, (const char *)why, (size_t)at);
        } else {
            (void)pcre2_jit_compile(*out,
                                    PCRE2_JIT_COMPLETE); /* without it patterns are interpreted */
        }
    }
    pcre2_compile_context_free(c);
    plm_tok_text_fini(&text);
    return status;
}

plm_status plm_tok_match(const plm_tokenizer *t, const pcre2_code *regex, pcre2_match_data *data,
                         const char *text, size_t n, size_t from, bool *found, size_t *start,
                         size_t *end, plm_error *err)
{
    PCRE2_SPTR s = (PCRE2_SPTR)(text != NULL ? text : "");
    int rc = pcre2_match(regex, s, n, from, PCRE2_NO_UTF_CHECK, data, t->match);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(regex, s, n, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, t->match);
    *found = rc >= 0;
    if (rc == PCRE2_ERROR_NOMEMORY)
        return plm_fail_memory(err, "matching a pattern");
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH)
        return plm_fail(err, PLM_E_LIMIT,
                        "text, pre-tokeniser: a pattern takes too long on it; give it in parts");
    if (rc >= 0) {
        const PCRE2_SIZE *o = pcre2_get_ovector_pointer(data);
        *start = o[0];
        *end = o[1];
        if (*start > *end || *end > n) /* \K in a lookaround */
            *end = *start = from;
    }
    return PLM_OK;
}

/* ---- cutting ---- */

typedef struct cutter {
    const plm_tok_step *s;
    plm_tok_spans *out;
    bool last_matched; /* whether the word added last was a match */
    bool open;         /* NEXT: a match waits for the word it begins */
    size_t base, n;    /* the text being cut, and where it starts */
    size_t mark;       /* words before this text */
} cutter;

/* A stretch that matches, or does not, by the rules of HF tokenizers' SplitDelimiterBehavior. */
static plm_status add_part(cutter *c, size_t at, size_t n, bool matched, plm_error *err)
{
    plm_tok_spans *out = c->out;
    bool again = out->count > c->mark;
    if (n == 0)
        return PLM_OK;
    matched = matched != c->s->invert;
    switch (c->s->split) {
    case PLM_SPLIT_REMOVED:
        if (matched)
            return PLM_OK;
        break;
    case PLM_SPLIT_PREVIOUS:
        if (matched && again && !c->last_matched) {
            out->items[out->count - 1].n += (uint32_t)n;
            c->last_matched = true;
            return PLM_OK;
        }
        break;
    case PLM_SPLIT_NEXT:
        if (!matched && again && c->last_matched) {
            out->items[out->count - 1].n += (uint32_t)n;
            c->last_matched = false;
            return PLM_OK;
        }
        break;
    case PLM_SPLIT_CONTIGUOUS:
        if (again && matched == c->last_matched) {
            out->items[out->count - 1].n += (uint32_t)n;
            return PLM_OK;
        }
        break;
    case PLM_SPLIT_ISOLATED:
        break;
    }
    c->last_matched = matched;
    return plm_tok_add_span(out, c->base + at, n, err);
}

static plm_status cut(const plm_tokenizer *t, const plm_tok_step *s, pcre2_match_data *data,
                      const char *text, plm_tok_span span, plm_tok_spans *out, plm_error *err)
{
    cutter c = {.s = s, .out = out, .base = span.at, .n = span.n, .mark = out->count};
    const char *from = text + span.at;
    size_t at = 0, done = 0, start = 0, end = 0;
    bool found = true;
    while (at < span.n) {
        PLM_TRY(plm_tok_match(t, s->regex, data, from, span.n, at, &found, &start, &end, err));
        if (!found)
            break;
        PLM_TRY(add_part(&c, done, start - done, false, err));
        PLM_TRY(add_part(&c, start, end - start, true, err));
        done = end;
        at = end > start ? end : end + 1; /* an empty match is a cut and no more */
        while (at < span.n && ((unsigned char)from[at] & 0xc0) == 0x80)
            at++;
    }
    return add_part(&c, done, span.n - done, false, err);
}

static plm_status split_words(const plm_tokenizer *t, const plm_tok_step *s,
                              const plm_tok_text *text, const plm_tok_spans *in, plm_tok_spans *out,
                              plm_error *err)
{
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(s->regex, t->pcre);
    if (data == NULL)
        return plm_fail_memory(err, "a pattern");
    plm_status status = PLM_OK;
    for (size_t i = 0; i < in->count && status == PLM_OK; i++)
        status = cut(t, s, data, text->items, in->items[i], out, err);
    pcre2_match_data_free(data);
    return status;
}

/* ---- steps that write ---- */

/* A word with its spaces replaced, one before it if `before`; cut before each of them if `each`. */
static plm_status meta_word(const plm_tok_step *s, const char *word, size_t n, bool before,
                            plm_tok_text *to, plm_tok_spans *out, plm_error *err)
{
    size_t start = to->count, mark = strlen(s->text);
    if (before && !(n >= 1 && word[0] == ' ') && !(n >= mark && memcmp(word, s->text, mark) == 0))
        PLM_TRY(plm_tok_append(to, s->text, mark, err));
    for (size_t i = 0; i < n; i++) {
        bool space = word[i] == ' ';
        bool own = !space && n - i >= mark && memcmp(word + i, s->text, mark) == 0;
        if ((space || own) && s->flag && to->count > start) {
            PLM_TRY(plm_tok_add_span(out, start, to->count - start, err));
            start = to->count;
        }
        PLM_TRY(plm_tok_append(to, space ? s->text : word + i, space || own ? mark : 1, err));
        i += own ? mark - 1 : 0;
    }
    return plm_tok_add_span(out, start, to->count - start, err);
}

static plm_status write_words(const plm_tok_step *s, bool first, const plm_tok_text *text,
                              const plm_tok_spans *in, plm_tok_text *to, plm_tok_spans *out,
                              plm_error *err)
{
    for (size_t i = 0; i < in->count; i++) {
        const char *word = text->items + in->items[i].at;
        size_t n = in->items[i].n, start = to->count;
        if (s->kind == PLM_STEP_METASPACE) {
            bool before = s->prepend == PLM_PREPEND_ALWAYS ||
                          (s->prepend == PLM_PREPEND_FIRST && first && in->items[i].at == 0);
            PLM_TRY(meta_word(s, word, n, before, to, out, err));
            continue;
        }
        if (word[0] != ' ')
            PLM_TRY(plm_tok_append(to, " ", 1, err));
        PLM_TRY(plm_tok_append(to, word, n, err));
        PLM_TRY(plm_tok_add_span(out, start, to->count - start, err));
    }
    return PLM_OK;
}

plm_status plm_tok_words(const plm_tokenizer *t, plm_tok_text *text, bool first, plm_tok_spans *out,
                         plm_error *err)
{
    out->count = 0;
    PLM_TRY(plm_tok_add_span(out, 0, text->count, err));
    for (size_t i = 0; i < t->n_pre; i++) {
        const plm_tok_step *s = &t->pre[i];
        plm_tok_spans next = {0};
        plm_tok_text to = {0};
        plm_status status;
        if (s->kind == PLM_STEP_SPLIT) {
            status = split_words(t, s, text, out, &next, err);
        } else {
            status = write_words(s, first, text, out, &to, &next, err);
            plm_tok_text_fini(text);
            *text = to;
        }
        plm_vec_fini(out);
        *out = next;
        PLM_TRY(status);
    }
    return PLM_OK;
}
