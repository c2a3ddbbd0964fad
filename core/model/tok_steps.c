/* tok_steps.c - building the steps of a tokenizer; pre-tokenisers by name. */
#include <string.h>

#include "core/base/mem.h"
#include "core/model/tok_parts.h"

const char plm_tok_gpt2_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

enum { IGNORE_MERGES = 1, ADD_BOS = 2, NFC = 4, SPACES = 8, NEWLINES = 16 };

static const struct {
    const char *names;
    unsigned habits;
    const char *pattern[6];
} by_name[] = {
#define PLM_PRE(names, habits, ...) {names, habits, {__VA_ARGS__}},
#include "core/model/tok_patterns.def"
#undef PLM_PRE
};

static plm_status full(const char *where, plm_error *err)
{
    return plm_fail(err, PLM_E_LIMIT, "tokenizer, %s: more than %d steps; it is not understood",
                    where, PLM_TOK_STEPS_MAX);
}

plm_status plm_tok_add_split(plm_tokenizer *t, const char *pattern, plm_tok_split split,
                             bool invert, const char *what, plm_error *err)
{
    if (t->n_pre >= PLM_TOK_STEPS_MAX)
        return full(what, err);
    plm_tok_step *s = &t->pre[t->n_pre];
    *s = (plm_tok_step){.kind = PLM_STEP_SPLIT, .split = split, .invert = invert};
    PLM_TRY(plm_tok_regex(t, pattern, strlen(pattern), what, &s->regex, err));
    t->n_pre++;
    return PLM_OK;
}

plm_status plm_tok_add_norm(plm_tokenizer *t, plm_tok_step_kind kind, const char *from,
                            const char *text, const char *where, plm_error *err)
{
    if (t->n_norm >= PLM_TOK_STEPS_MAX)
        return full(where, err);
    plm_tok_step *s = &t->norm[t->n_norm++];
    *s = (plm_tok_step){.kind = kind};
    s->from = plm_strdup(from);
    s->text = plm_strdup(text);
    return s->from != NULL && s->text != NULL ? PLM_OK : plm_fail_memory(err, "tokenizer");
}

plm_status plm_tok_add_replace(plm_tokenizer *t, const char *pattern, const char *text,
                               const char *where, plm_error *err)
{
    PLM_TRY(plm_tok_add_norm(t, PLM_STEP_REPLACE, pattern, text, where, err));
    return plm_tok_regex(t, pattern, strlen(pattern), where, &t->norm[t->n_norm - 1].regex, err);
}

/* Source: SentencePiece doc/normalization.md: NFKC, control characters dropped, all white space
** a space. */
plm_status plm_tok_add_charsmap(plm_tokenizer *t, const char *where, plm_error *err)
{
    PLM_TRY(plm_tok_add_norm(t, PLM_STEP_NFKC, "", "", where, err));
    PLM_TRY(plm_tok_add_replace(t,
                                "[\\x{01}-\\x{08}\\x{0b}\\x{0e}-\\x{1f}\\x{7f}\\x{8f}\\x{9f}"
                                "\\x{200b}-\\x{200f}\\x{feff}]",
                                "", where, err));
    return plm_tok_add_replace(t, "\\s", " ", where, err);
}

plm_status plm_tok_add_squeeze(plm_tokenizer *t, const char *where, plm_error *err)
{
    PLM_TRY(plm_tok_add_norm(t, PLM_STEP_STRIP, "", "", where, err));
    t->norm[t->n_norm - 1].flag = 3;
    return plm_tok_add_replace(t, " {2,}", " ", where, err);
}

static bool names_hold(const char *names, const char *name, size_t n)
{
    for (const char *p = names; p != NULL; p = strchr(p, '|')) {
        p += *p == '|';
        size_t len = strcspn(p, "|");
        if (len == n && memcmp(p, name, n) == 0)
            return true;
    }
    return false;
}

plm_status plm_tok_by_name(plm_tokenizer *t, const char *name, size_t n, bool *add_bos,
                           const char *where, plm_error *err)
{
    size_t i = 0, count = sizeof by_name / sizeof *by_name;
    while (i < count && !names_hold(by_name[i].names, name, n))
        i++;
    if (i == count)
        return plm_fail(
            err, PLM_E_UNSUPPORTED,
            "unknown pre-tokenizer \"%.*s\", %s: its pattern is not known; use the model's "
            "tokenizer.json",
            (int)(n < 60 ? n : 60), name, where);
    unsigned habits = by_name[i].habits;
    t->ignore_merges = (habits & IGNORE_MERGES) != 0;
    t->newline_words = (habits & NEWLINES) != 0;
    t->byte_level = (habits & SPACES) == 0;
    t->byte_fallback = !t->byte_level;
    *add_bos = (habits & ADD_BOS) != 0;
    if ((habits & NFC) != 0)
        PLM_TRY(plm_tok_add_norm(t, PLM_STEP_NFC, "", "", where, err));
    if ((habits & SPACES) != 0)
        PLM_TRY(plm_tok_add_norm(t, PLM_STEP_REPLACE, " ", "\xe2\x96\x81", where, err));
    for (size_t k = 0; k < 6 && by_name[i].pattern[k] != NULL; k++)
        PLM_TRY(plm_tok_add_split(t, by_name[i].pattern[k], PLM_SPLIT_ISOLATED, false, where, err));
    return PLM_OK;
}
