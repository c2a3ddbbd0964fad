/* config_get.c - values of a config.json under several names, with errors that name the first. */
#include <math.h>
#include <string.h>

#include "core/model/config.h"
#include "core/model/config_keys.h"

static const json_t *member(const json_t *obj, const char *name, size_t n)
{
    const json_t *v = json_is_object(obj) ? json_object_getn(obj, name, n) : NULL;
    return json_is_null(v) ? NULL : v;
}

static const json_t *find_in(const json_t *obj, const char *names)
{
    for (const char *p = names; p != NULL;) {
        const char *bar = strchr(p, '|');
        size_t n = bar != NULL ? (size_t)(bar - p) : strlen(p);
        const json_t *v = member(obj, p, n);
        if (v != NULL)
            return v;
        p = bar != NULL ? bar + 1 : NULL;
    }
    return NULL;
}

const json_t *plm_config_member(const json_t *obj, const char *name)
{
    return member(obj, name, strlen(name));
}

/* Halves of a layer that DBRX and MPT describe in objects of their own. */
static const char *const nested[] = {"attn_config", "ffn_config"};

const json_t *plm_config_get(const plm_config *c, const char *names)
{
    const json_t *v = c->layer != NULL ? find_in(c->layer, names) : NULL;
    if (v == NULL)
        v = find_in(c->text, names);
    for (size_t i = 0; v == NULL && i < sizeof nested / sizeof *nested; i++)
        if (plm_config_trait(c, "plm_nested"))
            v = find_in(plm_config_member(c->text, nested[i]), names);
    if (v == NULL && c->root != c->text)
        v = find_in(c->root, names);
    return v != NULL ? v : find_in(c->defaults, names);
}

bool plm_config_has(const plm_config *c, const char *names)
{
    return plm_config_get(c, names) != NULL;
}

static int first_name(const char *names)
{
    const char *bar = strchr(names, '|');
    return bar != NULL ? (int)(bar - names) : (int)strlen(names);
}

plm_status plm_config_bad(const plm_config *c, const char *names, const char *want)
{
    return plm_fail(c->err, PLM_E_INVALID, "bad value of \"%.*s\", %s: want %s; correct the file",
                    first_name(names), names, c->where, want);
}

/* A whole number in a JSON integer or real. */
static bool whole_number(const json_t *v, int64_t *out)
{
    if (json_is_integer(v)) {
        *out = json_integer_value(v);
        return true;
    }
    double real = json_is_real(v) ? json_real_value(v) : 0.5;
    if (real != floor(real) || fabs(real) > 9e15)
        return false;
    *out = (int64_t)real;
    return true;
}

plm_status plm_config_long(const plm_config *c, const char *names, int64_t fallback, int64_t hi,
                           int64_t *out)
{
    const json_t *v = plm_config_get(c, names);
    if (v == NULL && fallback == PLM_CONFIG_NEEDED)
        return plm_fail(c->err, PLM_E_INVALID, "missing key \"%.*s\", %s: it is required; add it",
                        first_name(names), names, c->where);
    if (v == NULL) {
        *out = fallback;
        return PLM_OK;
    }
    if (!whole_number(v, out))
        return plm_config_bad(c, names, "a whole number");
    if (*out < 0 || *out > hi)
        return plm_fail(c->err, PLM_E_INVALID,
                        "bad value of \"%.*s\", %s: %lld is not within 0 to %lld; correct the file",
                        first_name(names), names, c->where, (long long)*out, (long long)hi);
    return PLM_OK;
}

plm_status plm_config_int(const plm_config *c, const char *names, int64_t fallback, int64_t hi,
                          int32_t *out)
{
    int64_t v = 0;
    PLM_TRY(plm_config_long(c, names, fallback, hi, &v));
    *out = (int32_t)v;
    return PLM_OK;
}

plm_status plm_config_real(const plm_config *c, const char *names, double fallback, double *out)
{
    const json_t *v = plm_config_get(c, names);
    double x = v != NULL ? json_number_value(v) : fallback;
    if (v != NULL && !json_is_number(v))
        return plm_config_bad(c, names, "a number");
    if (!(x >= 0 && x < 1e16))
        return plm_config_bad(c, names, "a number from 0 to 1e16");
    *out = x;
    return PLM_OK;
}

plm_status plm_config_flag(const plm_config *c, const char *names, bool fallback, bool *out)
{
    const json_t *v = plm_config_get(c, names);
    int64_t n = 0;
    if (v == NULL)
        *out = fallback;
    else if (json_is_boolean(v))
        *out = json_is_true(v);
    else if (whole_number(v, &n) && (n == 0 || n == 1))
        *out = n == 1;
    else
        return plm_config_bad(c, names, "true or false");
    return PLM_OK;
}

plm_status plm_config_text(const plm_config *c, const char *names, const char *fallback,
                           const char **out)
{
    const json_t *v = plm_config_get(c, names);
    *out = fallback;
    if (v == NULL)
        return PLM_OK;
    if (!json_is_string(v))
        return plm_config_bad(c, names, "a text");
    *out = json_string_value(v);
    return PLM_OK;
}

bool plm_config_trait(const plm_config *c, const char *name)
{
    const json_t *v = member(c->defaults, name, strlen(name));
    return v != NULL && !plm_config_value_empty(v);
}

const char *plm_config_trait_text(const plm_config *c, const char *name, const char *fallback)
{
    const char *text = json_string_value(member(c->defaults, name, strlen(name)));
    return text != NULL ? text : fallback;
}

plm_status plm_config_refuse(const plm_config *c, const char *what, const char *value)
{
    return plm_fail(c->err, PLM_E_UNSUPPORTED,
                    "unsupported %s \"%.80s\", %s: this construct is not known; describe the model "
                    "in a record (docs/adding-a-model.md)",
                    what, value, c->where);
}

plm_status plm_config_refuse_own(const plm_config *c, const char *what)
{
    return plm_fail(c->err, PLM_E_UNSUPPORTED,
                    "unsupported model_type \"%.60s\", %s: its %s cannot be modelled; describe the "
                    "model in a record (docs/adding-a-model.md)",
                    c->type, c->where, what);
}

plm_status plm_config_layer_type(const plm_config *c, const char *names, int32_t layer,
                                 const char **out)
{
    const json_t *list = plm_config_get(c, names);
    *out = NULL;
    if (list == NULL)
        return PLM_OK;
    if (json_array_size(list) < (size_t)c->arch->layers)
        return plm_config_bad(c, names, "a list as long as the layers are many");
    *out = json_string_value(json_array_get(list, (size_t)layer));
    return *out != NULL ? PLM_OK : plm_config_bad(c, names, "a list of texts");
}

plm_status plm_config_int_at(const plm_config *c, const char *names, int32_t i, int64_t *out)
{
    const json_t *v = plm_config_get(c, names);
    if (v == NULL) {
        *out = -1;
        return PLM_OK;
    }
    if (json_is_array(v)) {
        if (json_array_size(v) == 0) {
            *out = -1;
            return PLM_OK;
        }
        v = json_array_get(v, (size_t)i);
    }
    if (!whole_number(v, out) || *out < 0)
        return plm_config_bad(c, names, "a whole number for each layer");
    return PLM_OK;
}
