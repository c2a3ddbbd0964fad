#include "core/model/fields.h"

#include <math.h>
#include <string.h>

#define PLM_ARCH_FIELD(member, type, lo, hi)                                                       \
    {#member, PLM_FIELD_##type, offsetof(plm_arch, member), lo, hi},
#define PLM_LAYER_FIELD(member, type, lo, hi)
#define PLM_ROPE_FIELD(member, type, lo, hi)
static const plm_field arch_fields[] = {
#include "core/model/fields.def"
};
#undef PLM_ARCH_FIELD
#undef PLM_LAYER_FIELD
#define PLM_ARCH_FIELD(member, type, lo, hi)
#define PLM_LAYER_FIELD(member, type, lo, hi)                                                      \
    {#member, PLM_FIELD_##type, offsetof(plm_layer, member), lo, hi},
static const plm_field layer_fields[] = {
#include "core/model/fields.def"
};
#undef PLM_LAYER_FIELD
#undef PLM_ROPE_FIELD
#define PLM_LAYER_FIELD(member, type, lo, hi)
#define PLM_ROPE_FIELD(member, type, lo, hi)                                                       \
    {#member, PLM_FIELD_##type, offsetof(plm_rope, member), lo, hi},
static const plm_field rope_fields[] = {
#include "core/model/fields.def"
};
#undef PLM_ARCH_FIELD
#undef PLM_LAYER_FIELD
#undef PLM_ROPE_FIELD

#define NAME_OF(id, name) name,
static const char *const attn_names[] = {PLM_ATTN_MAP(NAME_OF)};
static const char *const fn_names[] = {PLM_FN_MAP(NAME_OF)};
static const char *const qk_names[] = {"none", "head", "full", "l2"};
static const char *const norm_names[] = {"rms", "layer"};
static const char *const scaling_names[] = {"none", "linear",   "llama3",
                                            "yarn", "longrope", "dynamic"};

typedef struct names {
    const char *const *name;
    size_t count;
} names;
#define NAMES(table) ((names){(table), sizeof(table) / sizeof *(table)})
#define TABLE(table) ((plm_field_table){(table), sizeof(table) / sizeof *(table)})

plm_field_table plm_fields_arch(void)
{
    return TABLE(arch_fields);
}

plm_field_table plm_fields_layer(void)
{
    return TABLE(layer_fields);
}

plm_field_table plm_fields_rope(void)
{
    return TABLE(rope_fields);
}

static names names_of(plm_field_type type)
{
    switch (type) {
    case PLM_FIELD_ATTN:
        return NAMES(attn_names);
    case PLM_FIELD_FN:
        return NAMES(fn_names);
    case PLM_FIELD_QK:
        return NAMES(qk_names);
    case PLM_FIELD_NORM:
        return NAMES(norm_names);
    case PLM_FIELD_SCALING:
        return NAMES(scaling_names);
    default:
        return (names){NULL, 0};
    }
}

const plm_field *plm_field_find(plm_field_table t, const char *name)
{
    for (size_t i = 0; i < t.count; i++)
        if (strcmp(t.field[i].name, name) == 0)
            return &t.field[i];
    return NULL;
}

/* Number of an enumerated field; every enumeration is stored as an unsigned int. */
static unsigned enum_value(const plm_field *f, const void *base)
{
    unsigned v = 0;
    memcpy(&v, (const char *)base + f->offset, sizeof v);
    return v;
}

double plm_field_value(const plm_field *f, const void *base)
{
    const char *at = (const char *)base + f->offset;
    switch (f->type) {
    case PLM_FIELD_INT:
        return (double)*(const int32_t *)(const void *)at;
    case PLM_FIELD_LONG:
        return (double)*(const int64_t *)(const void *)at;
    case PLM_FIELD_BOOL:
        return *(const bool *)(const void *)at ? 1 : 0;
    case PLM_FIELD_REAL:
        return *(const double *)(const void *)at;
    default:
        return (double)enum_value(f, base);
    }
}

bool plm_field_set_name(const plm_field *f, void *base, const char *name)
{
    _Static_assert(sizeof(plm_attn) == sizeof(unsigned) && sizeof(plm_fn) == sizeof(unsigned) &&
                       sizeof(plm_qk_norm) == sizeof(unsigned) &&
                       sizeof(plm_norm) == sizeof(unsigned) &&
                       sizeof(plm_rope_scaling) == sizeof(unsigned),
                   "enumerations are read and written as unsigned int");
    names n = names_of(f->type);
    for (unsigned i = 0; i < n.count; i++)
        if (strcmp(n.name[i], name) == 0) {
            memcpy((char *)base + f->offset, &i, sizeof i);
            return true;
        }
    return false;
}

const char *plm_field_name(const plm_field *f, const void *base)
{
    names n = names_of(f->type);
    unsigned v = enum_value(f, base);
    return v < n.count ? n.name[v] : "?";
}

static bool same_real(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

/* First field of the table in which the objects differ, NULL if none. */
static const plm_field *first_difference(plm_field_table t, const void *a, const void *b)
{
    for (size_t i = 0; i < t.count; i++)
        if (!same_real(plm_field_value(&t.field[i], a), plm_field_value(&t.field[i], b)))
            return &t.field[i];
    return NULL;
}

static plm_status differ(const plm_arch *a, const plm_arch *b, const char *what, int32_t layer,
                         const plm_field *f, const void *x, const void *y, plm_error *err)
{
    return plm_fail(err, PLM_E_INVALID, "%s and %s differ, %s %d: %s is %.17g against %.17g", a->id,
                    b->id, what, layer, f->name, plm_field_value(f, x), plm_field_value(f, y));
}

static plm_status same_layer(const plm_arch *a, const plm_arch *b, const plm_layer *x,
                             const plm_layer *y, const char *what, int32_t layer, plm_error *err)
{
    const plm_field *f = first_difference(TABLE(layer_fields), x, y);
    if (f != NULL)
        return differ(a, b, what, layer, f, x, y, err);
    f = first_difference(TABLE(rope_fields), &x->rope, &y->rope);
    if (f != NULL)
        return differ(a, b, what, layer, f, &x->rope, &y->rope, err);
    return PLM_OK;
}

plm_status plm_arch_same(const plm_arch *a, const plm_arch *b, plm_error *err)
{
    const plm_field *f = first_difference(TABLE(arch_fields), a, b);
    if (f != NULL)
        return differ(a, b, "model", 0, f, a, b, err);
    if (a->layers != b->layers)
        return plm_fail(err, PLM_E_INVALID, "%s and %s differ, layers: %d against %d", a->id, b->id,
                        a->layers, b->layers);
    for (int32_t i = 0; i < a->layers; i++)
        PLM_TRY(same_layer(a, b, plm_arch_layer(a, i), plm_arch_layer(b, i), "layer", i, err));
    if (a->mtp_layers > 0)
        PLM_TRY(same_layer(a, b, &a->kind[a->mtp_kind], &b->kind[b->mtp_kind], "mtp", 0, err));
    return PLM_OK;
}
