/* tok_norm.c - normalisation of a text before it is cut into words. Forms by utf8proc. */
#include <string.h>
#include <utf8proc.h>

#include "core/base/mem.h"
#include "core/base/vec.h"
#include "core/model/tok_parts.h"

static const char replacement[] = "\xef\xbf\xbd";

static utf8proc_ssize_t next_char(const char *text, size_t n, utf8proc_int32_t *c)
{
    return utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, c);
}

plm_status plm_tok_clean(const char *text, size_t n, plm_tok_text *out, plm_error *err)
{
    size_t good = 0; /* bytes since the last one written */
    for (size_t i = 0; i < n;) {
        utf8proc_int32_t c;
        utf8proc_ssize_t k = (unsigned char)text[i] < 0x80 ? 1 : next_char(text + i, n - i, &c);
        if (k > 0) {
            good += (size_t)k;
            i += (size_t)k;
            continue;
        }
        PLM_TRY(plm_tok_append(out, text + i - good, good, err));
        PLM_TRY(plm_tok_append(out, replacement, sizeof replacement - 1, err));
        good = 0;
        i++;
    }
    return plm_tok_append(out, text + n - good, good, err);
}

static bool is_ascii(const plm_tok_text *t)
{
    for (size_t i = 0; i < t->count; i++)
        if ((unsigned char)t->items[i] >= 0x80)
            return false;
    return true;
}

/* Unicode normal form, through an array of code points. */
static plm_status to_form(plm_tok_text *t, int options, plm_error *err)
{
    if (is_ascii(t))
        return PLM_OK;
    const utf8proc_uint8_t *text = (const utf8proc_uint8_t *)t->items;
    utf8proc_option_t o = (utf8proc_option_t)(UTF8PROC_STABLE | options);
    utf8proc_ssize_t n = utf8proc_decompose(text, (utf8proc_ssize_t)t->count, NULL, 0, o);
    if (n < 0)
        return plm_fail(err, PLM_E_INVALID, "text: it cannot be normalised, %s",
                        utf8proc_errmsg(n));
    utf8proc_int32_t *code = plm_calloc((size_t)n + 1, sizeof *code);
    if (code == NULL)
        return plm_fail_memory(err, "normalised text");
    n = utf8proc_decompose(text, (utf8proc_ssize_t)t->count, code, n, o);
    if (n >= 0)
        n = utf8proc_reencode(code, n, o); /* in place: 4 bytes a code hold its UTF-8 */
    t->count = 0;
    plm_status status = n < 0 ? plm_fail(err, PLM_E_INVALID, "text: it cannot be normalised, %s",
                                         utf8proc_errmsg(n))
                              : plm_tok_append(t, (const char *)code, (size_t)n, err);
    plm_free(code);
    return status;
}

typedef plm_status (*char_fn)(utf8proc_int32_t c, const char *bytes, size_t n, plm_tok_text *out,
                              plm_error *err);

/* Rewrites the text character by character. */
static plm_status each_char(plm_tok_text *t, char_fn fn, plm_error *err)
{
    plm_tok_text out = {0};
    plm_status status = PLM_OK;
    for (size_t i = 0; i < t->count && status == PLM_OK;) {
        utf8proc_int32_t c = -1;
        utf8proc_ssize_t k = next_char(t->items + i, t->count - i, &c);
        size_t n = k > 0 ? (size_t)k : 1;
        status =
            k > 0 ? fn(c, t->items + i, n, &out, err) : plm_tok_append(&out, t->items + i, 1, err);
        i += n;
    }
    plm_tok_text_fini(t);
    *t = out;
    return status;
}

/* One letter for one, but for I with a dot, as Unicode's lower case has it. */
static plm_status lower_char(utf8proc_int32_t c, const char *bytes, size_t n, plm_tok_text *out,
                             plm_error *err)
{
    utf8proc_uint8_t buf[4];
    (void)bytes;
    (void)n;
    if (c == 0x130)
        return plm_tok_append(out, "i\xcc\x87", 3, err);
    utf8proc_ssize_t k = utf8proc_encode_char(utf8proc_tolower(c), buf);
    return plm_tok_append(out, (const char *)buf, (size_t)k, err);
}

static plm_status strip_accent(utf8proc_int32_t c, const char *bytes, size_t n, plm_tok_text *out,
                               plm_error *err)
{
    utf8proc_category_t k = utf8proc_category(c);
    bool mark = k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ME;
    return mark ? PLM_OK : plm_tok_append(out, bytes, n, err);
}

static plm_status prepend(plm_tok_text *t, const char *text, plm_error *err)
{
    size_t n = strlen(text), old = t->count;
    if (old == 0)
        return PLM_OK;
    PLM_TRY(plm_tok_append(t, text, n, err));
    memmove(t->items + n, t->items, old);
    memcpy(t->items, text, n);
    return PLM_OK;
}

/* A plain text replaced, left to right. */
static plm_status replace_text(plm_tok_text *t, const char *from, const char *to, plm_error *err)
{
    plm_tok_text out = {0};
    size_t n = strlen(from), m = strlen(to), i = 0, good = 0;
    plm_status status = PLM_OK;
    while (n > 0 && i + n <= t->count && status == PLM_OK) {
        if (t->items[i] != from[0] || memcmp(t->items + i, from, n) != 0) {
            i++;
            continue;
        }
        status = plm_tok_append(&out, t->items + good, i - good, err);
        if (status == PLM_OK)
            status = plm_tok_append(&out, to, m, err);
        i += n;
        good = i;
    }
    if (status == PLM_OK)
        status = plm_tok_append(&out, t->items + good, t->count - good, err);
    plm_tok_text_fini(t);
    *t = out;
    return status;
}

static plm_status replace_regex(const plm_tokenizer *tok, const plm_tok_step *s, plm_tok_text *t,
                                plm_error *err)
{
    plm_tok_text out = {0};
    size_t at = 0, good = 0, start, end;
    bool found = true;
    plm_status status;
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(s->regex, tok->pcre);
    if (data == NULL)
        return plm_fail_memory(err, "a pattern");
    while (at <= t->count) {
        PLM_GOTO(
            plm_tok_match(tok, s->regex, data, t->items, t->count, at, &found, &start, &end, err));
        if (!found)
            break;
        PLM_GOTO(plm_tok_append(&out, t->items + good, start - good, err));
        PLM_GOTO(plm_tok_append(&out, s->text, strlen(s->text), err));
        good = end;
        at = end > start ? end : end + 1;
        while (at < t->count && ((unsigned char)t->items[at] & 0xc0) == 0x80)
            at++;
    }
    status = plm_tok_append(&out, t->items + good, t->count - good, err);
done:
    pcre2_match_data_free(data);
    plm_tok_text_fini(t);
    *t = out;
    return status;
}

static bool space_at(const char *text, size_t n, size_t *bytes)
{
    utf8proc_int32_t c = -1;
    utf8proc_ssize_t k = next_char(text, n, &c);
    *bytes = k > 0 ? (size_t)k : 1;
    return k > 0 && (c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0x2028 || c == 0x2029 ||
                     utf8proc_category(c) == UTF8PROC_CATEGORY_ZS);
}

static void strip(plm_tok_text *t, bool left, bool right)
{
    size_t from = 0, end = t->count, k;
    while (left && from < end && space_at(t->items + from, end - from, &k))
        from += k;
    for (size_t at = end; right && at > from; end = at) {
        at = end - 1;
        while (at > from && ((unsigned char)t->items[at] & 0xc0) == 0x80)
            at--;
        if (!space_at(t->items + at, end - at, &k))
            break;
    }
    if (from > 0)
        memmove(t->items, t->items + from, end - from);
    t->count = end - from;
}

static plm_status apply(const plm_tokenizer *t, const plm_tok_step *s, plm_tok_text *text,
                        plm_error *err)
{
    switch (s->kind) {
    case PLM_STEP_NFC:
        return to_form(text, UTF8PROC_COMPOSE, err);
    case PLM_STEP_NFD:
        return to_form(text, UTF8PROC_DECOMPOSE, err);
    case PLM_STEP_NFKC:
        return to_form(text, UTF8PROC_COMPOSE | UTF8PROC_COMPAT, err);
    case PLM_STEP_NFKD:
        return to_form(text, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, err);
    case PLM_STEP_LOWER:
        return each_char(text, lower_char, err);
    case PLM_STEP_STRIP_ACCENTS:
        return each_char(text, strip_accent, err);
    case PLM_STEP_STRIP:
        strip(text, (s->flag & 1) != 0, (s->flag & 2) != 0);
        return PLM_OK;
    case PLM_STEP_PREPEND:
        return prepend(text, s->text, err);
    default:
        return s->regex != NULL ? replace_regex(t, s, text, err)
                                : replace_text(text, s->from, s->text, err);
    }
}

plm_status plm_tok_normalize(const plm_tokenizer *t, const char *text, size_t n, plm_tok_text *out,
                             plm_error *err)
{
    PLM_TRY(plm_tok_append(out, text, n, err));
    for (size_t i = 0; i < t->n_norm; i++)
        PLM_TRY(apply(t, &t->norm[i], out, err));
    return PLM_OK;
}
