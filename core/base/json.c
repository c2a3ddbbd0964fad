#include "core/base/json.h"

#include <math.h>
#include <string.h>

#include "core/base/json_alloc.h"

/* The value of a key, NULL for absent or null. */
static const json_t *field(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);
    return v == NULL || json_is_null(v) ? NULL : v;
}

static plm_status missing(const char *key, bool need, const char *where, plm_error *err)
{
    if (!need)
        return PLM_OK;
    return plm_fail(err, PLM_E_INVALID, "missing key \"%.80s\", %s: it is required; add it", key,
                    where);
}

static plm_status wrong(const char *key, const char *want, const char *where, plm_error *err)
{
    return plm_fail(err, PLM_E_INVALID, "bad value of \"%.80s\", %s: want %s; correct it", key,
                    where, want);
}

plm_status plm_json_parse(const char *text, size_t n, const char *where, json_t **out,
                          plm_error *err)
{
    json_error_t e;
    *out = NULL;
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* byte order mark of some editors */
        text += 3;
        n -= 3;
    }
    if (!plm_json_reserve(n))
        return plm_fail_memory(err, where);
    *out = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
    bool failed = plm_json_reserve_failed();
    if (failed) { /* whatever came back; see json_alloc.h */
        json_decref(*out);
        *out = NULL;
    }
    plm_json_reserve_drop();
    if (*out != NULL)
        return PLM_OK;
    if (failed || json_error_code(&e) == json_error_out_of_memory)
        return plm_fail_memory(err, where);
    return plm_fail(err, PLM_E_INVALID, "bad JSON, %s line %d column %d: %s; correct the file",
                    where, e.line, e.column, e.text);
}

plm_status plm_json_int(const json_t *obj, const char *key, bool need, int64_t lo, int64_t hi,
                        const char *where, int64_t *out, plm_error *err)
{
    const json_t *v = field(obj, key);
    if (v == NULL)
        return missing(key, need, where, err);
    double real = json_is_real(v) ? json_real_value(v) : 0.5;
    int64_t x;
    if (json_is_integer(v))
        x = json_integer_value(v);
    else if (real == floor(real) && fabs(real) < 9007199254740992.0)
        x = (int64_t)real; /* 4096.0 in a hand-written file */
    else
        return wrong(key, "an integer", where, err);
    if (x < lo || x > hi)
        return plm_fail(err, PLM_E_INVALID,
                        "bad value of \"%.80s\", %s: %lld is not within %lld to %lld; correct it",
                        key, where, (long long)x, (long long)lo, (long long)hi);
    *out = x;
    return PLM_OK;
}

plm_status plm_json_double(const json_t *obj, const char *key, bool need, double lo, double hi,
                           const char *where, double *out, plm_error *err)
{
    const json_t *v = field(obj, key);
    if (v == NULL)
        return missing(key, need, where, err);
    if (!json_is_number(v))
        return wrong(key, "a number", where, err);
    double x = json_number_value(v);
    if (!isfinite(x) || x < lo || x > hi)
        return plm_fail(err, PLM_E_INVALID,
                        "bad value of \"%.80s\", %s: %g is not within %g to %g; correct it", key,
                        where, x, lo, hi);
    *out = x;
    return PLM_OK;
}

plm_status plm_json_bool(const json_t *obj, const char *key, bool need, const char *where,
                         bool *out, plm_error *err)
{
    const json_t *v = field(obj, key);
    if (v == NULL)
        return missing(key, need, where, err);
    if (!json_is_boolean(v))
        return wrong(key, "true or false", where, err);
    *out = json_is_true(v);
    return PLM_OK;
}

plm_status plm_json_text(const json_t *obj, const char *key, bool need, const char *where,
                         const char **out, plm_error *err)
{
    const json_t *v = field(obj, key);
    if (v == NULL)
        return missing(key, need, where, err);
    if (!json_is_string(v))
        return wrong(key, "a string", where, err);
    *out = json_string_value(v);
    return PLM_OK;
}
