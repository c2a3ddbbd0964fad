/* record.c - catalog/models/ID.json -> arch record. docs/adding-a-model.md has the form. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/model/fields.h"
#include "core/model/load.h"

#define REPEAT_MAX PLM_LAYERS_MAX
#define NESTING_MAX 4

typedef struct reader {
    const char *where;
    plm_arch *arch;
    const char *kind_name[PLM_KINDS_MAX]; /* borrowed from the JSON */
    plm_error *err;
} reader;

/* Keys of a record that say where it comes from and are not part of the arch. */
static const char *const told_keys[] = {"id",
                                        "family",
                                        "date",
                                        "sources",
                                        "confidence",
                                        "notes",
                                        "kinds",
                                        "layers",
                                        "params_basis",
                                        "advertised_b",
                                        "mtp_kind",
                                        "layer_count",
                                        "params_published",
                                        "active_published",
                                        "params_extra",
                                        "file_dtype",
                                        "file_quant"};

static plm_status bad_value(const reader *r, const char *key, const char *want)
{
    return plm_fail(r->err, PLM_E_INVALID, "bad value of \"%.80s\", %s: want %s; correct it", key,
                    r->where, want);
}

/* A real given as text: "sqrt(hidden)" or "1/sqrt(N)", kept so that records stay readable. */
static plm_status read_formula(const reader *r, const char *key, const char *text, double *out)
{
    if (strcmp(text, "sqrt(hidden)") == 0) {
        *out = sqrt((double)r->arch->hidden);
        return PLM_OK;
    }
    char *end;
    if (strncmp(text, "1/sqrt(", 7) == 0) {
        double n = strtod(text + 7, &end);
        if (strcmp(end, ")") == 0 && n >= 1 && n < 1e9) {
            *out = 1 / sqrt(n);
            return PLM_OK;
        }
    }
    return bad_value(r, key, "a number, \"sqrt(hidden)\" or \"1/sqrt(N)\"");
}

static plm_status read_real(const reader *r, const json_t *obj, const plm_field *f, double *out)
{
    const json_t *v = json_object_get(obj, f->name);
    if (json_is_string(v))
        return read_formula(r, f->name, json_string_value(v), out);
    return plm_json_double(obj, f->name, true, f->lo, f->hi, r->where, out, r->err);
}

/* The value of one key into its member of base. */
static plm_status read_field(const reader *r, const json_t *obj, const plm_field *f, void *base)
{
    char *at = (char *)base + f->offset;
    int64_t whole = 0;
    const char *text = NULL;
    switch (f->type) {
    case PLM_FIELD_INT:
        PLM_TRY(plm_json_int(obj, f->name, true, (int64_t)f->lo, (int64_t)f->hi, r->where, &whole,
                             r->err));
        *(int32_t *)(void *)at = (int32_t)whole;
        return PLM_OK;
    case PLM_FIELD_LONG:
        return plm_json_int(obj, f->name, true, (int64_t)f->lo, (int64_t)f->hi, r->where,
                            (int64_t *)(void *)at, r->err);
    case PLM_FIELD_BOOL:
        return plm_json_bool(obj, f->name, true, r->where, (bool *)(void *)at, r->err);
    case PLM_FIELD_REAL:
        return read_real(r, obj, f, (double *)(void *)at);
    default:
        PLM_TRY(plm_json_text(obj, f->name, true, r->where, &text, r->err));
        if (plm_field_set_name(f, base, text))
            return PLM_OK;
        return plm_fail(r->err, PLM_E_UNSUPPORTED,
                        "unknown %s \"%.60s\", %s: no such value; see docs/adding-a-model.md",
                        f->name, text, r->where);
    }
}

static bool is_told(const char *key)
{
    for (size_t i = 0; i < sizeof told_keys / sizeof *told_keys; i++)
        if (strcmp(told_keys[i], key) == 0)
            return true;
    return false;
}

/* Every key of obj that the table knows; `skip` says which others are read elsewhere. */
static plm_status read_table(const reader *r, json_t *obj, plm_field_table t, void *base,
                             bool (*skip)(const char *key))
{
    const char *key;
    json_t *v;
    json_object_foreach(obj, key, v)
    {
        const plm_field *f = plm_field_find(t, key);
        if (f != NULL)
            PLM_TRY(read_field(r, obj, f, base));
        else if (!skip(key))
            return plm_fail(r->err, PLM_E_UNSUPPORTED,
                            "unknown key \"%.80s\", %s: not part of a record; remove it", key,
                            r->where);
    }
    return PLM_OK;
}

static bool skip_none(const char *key)
{
    (void)key;
    return false;
}

static bool skip_kind(const char *key)
{
    return strcmp(key, "rope") == 0 || strcmp(key, "like") == 0;
}

/* ---- kinds ---- */

static int32_t find_kind(const reader *r, const char *name, size_t bytes)
{
    for (int32_t i = 0; i < r->arch->n_kinds; i++)
        if (strlen(r->kind_name[i]) == bytes && memcmp(r->kind_name[i], name, bytes) == 0)
            return i;
    return -1;
}

static plm_status read_kind(reader *r, const char *name, json_t *obj)
{
    plm_arch *a = r->arch;
    if (!json_is_object(obj))
        return bad_value(r, name, "an object");
    if (a->n_kinds >= PLM_KINDS_MAX)
        return plm_fail(r->err, PLM_E_LIMIT, "too many kinds of layer, %s: at most %d; merge equal "
                        "ones", r->where,
                        PLM_KINDS_MAX);
    plm_layer *k = &a->kind[a->n_kinds];
    const char *like = NULL;
    PLM_TRY(plm_json_text(obj, "like", false, r->where, &like, r->err));
    if (like != NULL) {
        int32_t base = find_kind(r, like, strlen(like));
        if (base < 0)
            return bad_value(r, "like", "the name of an earlier kind");
        *k = a->kind[base];
    }
    PLM_TRY(read_table(r, obj, plm_fields_layer(), k, skip_kind));
    json_t *rope = json_object_get(obj, "rope");
    if (rope != NULL) {
        memset(&k->rope, 0, sizeof k->rope);
        if (json_is_object(rope))
            PLM_TRY(read_table(r, rope, plm_fields_rope(), &k->rope, skip_none));
        else if (!json_is_null(rope))
            return bad_value(r, "rope", "an object or null");
    }
    r->kind_name[a->n_kinds++] = name;
    return PLM_OK;
}

/* ---- the sequence ---- */

static plm_status add_layers(const reader *r, int32_t kind, int64_t count)
{
    plm_arch *a = r->arch;
    if (count < 1 || count > PLM_LAYERS_MAX - a->layers)
        return plm_fail(r->err, PLM_E_LIMIT, "too many layers, %s: at most %d; correct \"layers\"",
                        r->where,
                        PLM_LAYERS_MAX);
    for (int64_t i = 0; i < count; i++)
        a->layer_kind[a->layers++] = (uint8_t)kind;
    return PLM_OK;
}

/* "name" or "name*count" */
static plm_status read_run(const reader *r, const char *text)
{
    const char *star = strchr(text, '*');
    size_t bytes = star != NULL ? (size_t)(star - text) : strlen(text);
    int64_t count = 1;
    if (star != NULL) {
        char *end;
        count = strtol(star + 1, &end, 10);
        if (*end != '\0' || end == star + 1)
            return bad_value(r, text, "NAME or NAME*COUNT");
    }
    int32_t kind = find_kind(r, text, bytes);
    if (kind < 0)
        return plm_fail(r->err, PLM_E_INVALID,
                        "unknown kind \"%.60s\", %s: not in \"kinds\"; "
                        "define it",
                        text, r->where);
    return add_layers(r, kind, count);
}

static plm_status read_layers(const reader *r, const json_t *list, int depth)
{
    if (!json_is_array(list) || depth > NESTING_MAX)
        return bad_value(r, "layers", "a list, nested at most four deep");
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
    {
        if (json_is_string(v)) {
            PLM_TRY(read_run(r, json_string_value(v)));
            continue;
        }
        int64_t times = 0;
        if (!json_is_object(v))
            return bad_value(r, "layers", "strings and {\"repeat\", \"layers\"}");
        PLM_TRY(plm_json_int(v, "repeat", true, 1, REPEAT_MAX, r->where, &times, r->err));
        int32_t before = r->arch->layers;
        for (int64_t n = 0; n < times; n++)
            PLM_TRY(read_layers(r, json_object_get(v, "layers"), depth + 1));
        if (r->arch->layers == before)
            return bad_value(r, "repeat", "at least one layer");
    }
    return PLM_OK;
}

/* ---- the record ---- */

static plm_status copy_text(const reader *r, const json_t *obj, const char *key, char *out,
                            size_t room)
{
    const char *text = NULL;
    PLM_TRY(plm_json_text(obj, key, false, r->where, &text, r->err));
    if (text == NULL)
        return PLM_OK;
    if (strlen(text) >= room)
        return bad_value(r, key, "a shorter text");
    memcpy(out, text, strlen(text) + 1);
    return PLM_OK;
}

static plm_status read_counts(const reader *r, const json_t *obj)
{
    static const struct {
        const char *key;
        size_t offset;
    } count[] = {{"params_published", offsetof(plm_arch, params_published)},
                 {"active_published", offsetof(plm_arch, active_published)},
                 {"params_extra", offsetof(plm_arch, params_extra)}};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        PLM_TRY(plm_json_int(obj, count[i].key, false, 0, INT64_C(1) << 56, r->where,
                             (int64_t *)(void *)((char *)r->arch + count[i].offset), r->err));
    return PLM_OK;
}

static plm_status read_storage(const reader *r, const json_t *obj)
{
    plm_arch *a = r->arch;
    PLM_TRY(copy_text(r, obj, "file_quant", a->file_quant, sizeof a->file_quant));
    const char *dtype = NULL;
    PLM_TRY(plm_json_text(obj, "file_dtype", false, r->where, &dtype, r->err));
    if (dtype == NULL)
        return PLM_OK;
    a->file_dtype = plm_dtype_by_name(dtype);
    return a->file_dtype < PLM_DT_COUNT ? PLM_OK : bad_value(r, "file_dtype", "a known type");
}

static plm_status read_record(reader *r, json_t *root)
{
    plm_arch *a = r->arch;
    if (!json_is_object(root))
        return plm_fail(r->err, PLM_E_INVALID, "bad record, %s: not a JSON object; correct it",
                        r->where);
    PLM_TRY(copy_text(r, root, "id", a->id, sizeof a->id));
    PLM_TRY(copy_text(r, root, "family", a->family, sizeof a->family));
    PLM_TRY(read_table(r, root, plm_fields_arch(), a, is_told));
    PLM_TRY(read_counts(r, root));
    PLM_TRY(read_storage(r, root));
    json_t *kinds = json_object_get(root, "kinds");
    if (!json_is_object(kinds))
        return bad_value(r, "kinds", "an object of layer kinds");
    const char *name;
    json_t *kind;
    json_object_foreach(kinds, name, kind) PLM_TRY(read_kind(r, name, kind));
    PLM_TRY(read_layers(r, json_object_get(root, "layers"), 0));
    int64_t count = a->layers;
    PLM_TRY(plm_json_int(root, "layer_count", false, 0, PLM_LAYERS_MAX, r->where, &count, r->err));
    if (count != a->layers)
        return plm_fail(r->err, PLM_E_INVALID,
                        "bad \"layer_count\", %s: %lld, but the sequence has "
                        "%d layers; correct one",
                        r->where, (long long)count, a->layers);
    const char *mtp = NULL;
    PLM_TRY(plm_json_text(root, "mtp_kind", a->mtp_layers > 0, r->where, &mtp, r->err));
    if (mtp != NULL)
        a->mtp_kind = find_kind(r, mtp, strlen(mtp));
    return plm_arch_check(a, r->err);
}

plm_status plm_model_from_record(const char *json, size_t bytes, const char *where, plm_arch *out,
                                 plm_error *err)
{
    plm_arch_init(out);
    json_t *root;
    PLM_TRY(plm_json_parse(json, bytes, where, &root, err));
    reader r = {.where = where, .arch = out, .err = err};
    plm_status status = read_record(&r, root);
    json_decref(root);
    return status;
}
