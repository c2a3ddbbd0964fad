/* ref_load.c - operands of the reference backend: stored values as doubles, and back. */
#include <string.h>

#include "core/base/mem.h"
#include "core/host/ref_parts.h"
#include "core/ir/codec.h"
#include "core/model/weights.h"

/* ---- one number ---- */

#define AS(type)                                                                                   \
    type v;                                                                                        \
    memcpy(&v, p, sizeof v);                                                                       \
    return (double)v

static double get_number(plm_dtype t, const unsigned char *p)
{
    switch (t) {
    case PLM_DT_F32: { AS(float); }
    case PLM_DT_F64: { AS(double); }
    case PLM_DT_I8: { AS(int8_t); }
    case PLM_DT_I16: { AS(int16_t); }
    case PLM_DT_I32: { AS(int32_t); }
    case PLM_DT_I64: { AS(int64_t); }
    case PLM_DT_U8:
    case PLM_DT_BOOL: { AS(uint8_t); }
    case PLM_DT_U16: { AS(uint16_t); }
    case PLM_DT_U32: { AS(uint32_t); }
    case PLM_DT_U64: { AS(uint64_t); }
    case PLM_DT_F8E4M3: return plm_small_decode(&plm_float_f8e4m3, *p);
    case PLM_DT_F8E5M2: return plm_small_decode(&plm_float_f8e5m2, *p);
    default: break;
    }
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return t == PLM_DT_F16 ? plm_half_decode(h) : plm_bf16_decode(h);
}

#undef AS
#define PUT(type)                                                                                  \
    type v = (type)x;                                                                              \
    memcpy(p, &v, sizeof v);                                                                       \
    return

static void put_number(plm_dtype t, double x, unsigned char *p)
{
    switch (t) {
    case PLM_DT_F32: { PUT(float); }
    case PLM_DT_F64: { PUT(double); }
    case PLM_DT_I8: { PUT(int8_t); }
    case PLM_DT_I16: { PUT(int16_t); }
    case PLM_DT_I32: { PUT(int32_t); }
    case PLM_DT_I64: { PUT(int64_t); }
    case PLM_DT_F8E4M3:
        *p = (unsigned char)plm_small_encode(&plm_float_f8e4m3, x, true);
        return;
    case PLM_DT_F8E5M2:
        *p = (unsigned char)plm_small_encode(&plm_float_f8e5m2, x, true);
        return;
    default: break;
    }
    uint16_t h = t == PLM_DT_F16 ? plm_half_encode(x) : plm_bf16_encode(x);
    memcpy(p, &h, sizeof h);
}

#undef PUT

bool ref_can_store(plm_dtype t)
{
    static const plm_dtype types[] = {PLM_DT_F32, PLM_DT_F16,    PLM_DT_BF16,  PLM_DT_F64,
                                      PLM_DT_I8,  PLM_DT_I16,    PLM_DT_I32,   PLM_DT_I64,
                                      PLM_DT_F8E4M3, PLM_DT_F8E5M2};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i] == t)
            return true;
    return false;
}

static bool can_read(plm_dtype t)
{
    return ref_can_store(t) || t == PLM_DT_U8 || t == PLM_DT_BOOL || t == PLM_DT_U16 ||
           t == PLM_DT_U32 || t == PLM_DT_U64;
}

/* ---- arrays ---- */

plm_array ref_shape(const ref_step *s, plm_value_id v)
{
    const plm_backend_value *f = &s->x->values[v];
    plm_array a = {.rank = f->rank};
    for (uint32_t i = 0; i < f->rank; i++)
        a.dim[i] = s->run->dim[f->dim[i]];
    return a;
}

plm_status ref_room(plm_array *a, plm_error *err)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dim[i] < 0 || !plm_mul_i64(n, a->dim[i], &n))
            return plm_fail(err, PLM_E_INVALID, "reference, operand: a dim below 0 or more than "
                                                "2^63 elements; correct the step");
    a->data = plm_calloc((size_t)n + 1, sizeof *a->data);
    return a->data != NULL ? PLM_OK : plm_fail_memory(err, "an operand of the reference backend");
}

void ref_drop(plm_array *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        plm_free(a[i].data);
        a[i].data = NULL;
    }
}

bool ref_is_weight(const ref_step *s, plm_value_id v)
{
    return v != PLM_NONE && s->x->values[s->x->values[v].storage].kind == PLM_BACKEND_WEIGHT;
}

static plm_status fail_range(const ref_step *s, plm_value_id v, plm_error *err)
{
    const char *name = s->x->values[v].name;
    return plm_fail(err, PLM_E_INVALID, "reference, value %u (%s): not bound, or its buffer is too "
                    "small; bind it", v, name != NULL ? name : "no name");
}

/* Bytes of binding `slot`, at least `need` of them. */
static unsigned char *bound(const ref_step *s, uint32_t slot, uint64_t need)
{
    const plm_backend_run *r = s->run;
    if (slot >= r->n_bind)
        return NULL;
    const plm_backend_binding *b = PLM_AT(plm_backend_binding, r->bind, r->bind_stride, slot);
    if (b->buffer == NULL || b->offset > b->buffer->bytes ||
        b->bytes > b->buffer->bytes - b->offset || need > b->bytes)
        return NULL;
    return b->buffer->data + b->offset;
}

/* Base of a value's elements, checked so that every element of `shape` lies in its binding. */
static plm_status find_base(const ref_step *s, plm_value_id v, const plm_array *shape,
                            unsigned char **base, plm_error *err)
{
    const plm_backend_value *f = &s->x->values[v];
    int64_t last = f->start, size = plm_dtype_get(plm_flat_dtype(f->dtype))->block_bytes, span;
    *base = NULL;
    for (uint32_t i = 0; i < f->rank; i++) {
        if (shape->dim[i] == 0)
            return PLM_OK;
        if (f->stride[i] < 0 || !plm_mul_i64(shape->dim[i] - 1, f->stride[i], &span) ||
            !plm_add_i64(last, span, &last))
            return fail_range(s, v, err);
    }
    if (f->start < 0 || !plm_add_i64(last, 1, &last) || !plm_mul_i64(last, size, &last))
        return fail_range(s, v, err);
    uint64_t need;
    if (!plm_add_u64((uint64_t)last, f->offset, &need))
        return fail_range(s, v, err);
    *base = bound(s, f->slot, need);
    if (*base == NULL)
        return fail_range(s, v, err);
    *base += f->offset + (uint64_t)(f->start * size);
    return PLM_OK;
}

/* Walks one row (all dims but the first) of a strided value in order. */
static void walk_row(const plm_backend_value *f, const plm_array *shape, unsigned char *base,
                     plm_dtype t, int64_t size, double *x, bool store)
{
    int64_t d[3] = {1, 1, 1}, st[3] = {0, 0, 0};
    for (uint32_t i = 1; i < shape->rank; i++) {
        d[3 - shape->rank + i] = shape->dim[i];
        st[3 - shape->rank + i] = f->stride[i];
    }
    for (int64_t i = 0; i < d[0]; i++)
        for (int64_t j = 0; j < d[1]; j++)
            for (int64_t k = 0; k < d[2]; k++, x++) {
                unsigned char *p = base + (i * st[0] + j * st[1] + k * st[2]) * size;
                if (store)
                    put_number(t, *x, p);
                else
                    *x = get_number(t, p);
            }
}

/* Rows to or from memory; the array's first dim is n. */
static plm_status move_rows(const ref_step *s, plm_value_id v, const int64_t *row, int64_t n,
                            const plm_array *a, bool store, plm_error *err)
{
    const plm_backend_value *f = &s->x->values[v];
    plm_dtype t = plm_flat_dtype(f->dtype);
    plm_array whole = ref_shape(s, v);
    unsigned char *base;
    if (a->rank == 0)
        return fail_range(s, v, err);
    if (!(store ? ref_can_store(t) : can_read(t)))
        return plm_fail(err, PLM_E_UNSUPPORTED, "reference, value %u: cannot %s %s; choose f32, "
                        "f16 or bf16", v, store ? "write" : "read", plm_dtype_get(t)->name);
    PLM_TRY(find_base(s, v, &whole, &base, err));
    int64_t size = plm_dtype_get(t)->block_bytes, cols = 1;
    for (uint32_t i = 1; i < a->rank; i++)
        cols *= a->dim[i];
    for (int64_t r = 0; r < n && base != NULL; r++) {
        int64_t at = row != NULL ? row[r] : r;
        if (at >= whole.dim[0])
            return fail_range(s, v, err);
        if (at >= 0)
            walk_row(f, a, base + at * f->stride[0] * size, t, size, &a->data[r * cols], store);
    }
    return PLM_OK;
}

static plm_array *side_of(const ref_step *s, plm_value_id v)
{
    return s->x->side != NULL && s->x->side[v].rank > 0 ? &s->x->side[v] : NULL;
}

plm_status ref_load_rows(const ref_step *s, plm_value_id v, const int64_t *row, int64_t n,
                         plm_array *out, plm_error *err)
{
    *out = ref_shape(s, v);
    out->dim[0] = n;
    PLM_TRY(ref_room(out, err));
    const plm_array *side = side_of(s, v);
    if (side == NULL)
        return move_rows(s, v, row, n, out, false, err);
    int64_t cols = n > 0 ? plm_array_count(out) / n : 0;
    for (int64_t r = 0; r < n; r++) {
        int64_t at = row != NULL ? row[r] : r;
        if (at >= side->dim[0] || side->data == NULL)
            return fail_range(s, v, err);
        if (at >= 0)
            memcpy(&out->data[r * cols], &side->data[at * cols], (size_t)cols * sizeof(double));
    }
    return PLM_OK;
}

static plm_status load_weight(const ref_step *s, plm_value_id v, plm_array *out, plm_error *err)
{
    /* A reshaped weight has other rows than the one it is a view of, and the same elements. */
    plm_array whole = ref_shape(s, s->x->values[v].storage);
    int64_t rows = whole.rank >= 2 ? whole.dim[whole.rank - 2] : 1, cols = plm_array_cols(&whole);
    int64_t count = plm_array_count(&whole), matrices = count > 0 ? count / (rows * cols) : 0;
    if (count != plm_array_count(out))
        return plm_fail(err, PLM_E_UNSUPPORTED, "reference, value %u: a slice of a weight; slice the "
                        "product instead", v);
    for (int64_t m = 0; m < matrices; m++)
        PLM_TRY(ref_weight_rows(s, v, m, 0, rows, &out->data[m * rows * cols], err));
    return PLM_OK;
}

plm_status ref_load(const ref_step *s, plm_value_id v, plm_array *out, plm_error *err)
{
    *out = (plm_array){0};
    if (v == PLM_NONE)
        return PLM_OK;
    plm_array shape = ref_shape(s, v);
    if (!ref_is_weight(s, v))
        return ref_load_rows(s, v, NULL, shape.rank > 0 ? shape.dim[0] : 1, out, err);
    *out = shape;
    PLM_TRY(ref_room(out, err));
    return load_weight(s, v, out, err);
}

plm_status ref_store_rows(const ref_step *s, plm_value_id v, const int64_t *row, int64_t n,
                          const plm_array *a, plm_error *err)
{
    plm_array *side = side_of(s, v);
    if (side == NULL)
        return move_rows(s, v, row, n, a, true, err);
    plm_free(side->data);
    *side = *a;
    PLM_TRY(ref_room(side, err));
    memcpy(side->data, a->data, (size_t)plm_array_count(a) * sizeof *a->data);
    return PLM_OK;
}

plm_status ref_store(const ref_step *s, plm_value_id v, const plm_array *a, plm_error *err)
{
    return ref_store_rows(s, v, NULL, a->rank > 0 ? a->dim[0] : 0, a, err);
}

/* ---- weights ---- */

plm_status ref_weight_rows(const ref_step *s, plm_value_id v, int64_t m, int64_t row, int64_t n,
                           double *out, plm_error *err)
{
    const plm_backend_value *f = &s->x->values[s->x->values[v].storage];
    plm_array shape = ref_shape(s, s->x->values[v].storage);
    plm_weight w = {.dtype = plm_flat_dtype(f->dtype), .rank = shape.rank};
    w.cols = plm_array_cols(&shape);
    w.rows = shape.rank >= 2 ? shape.dim[shape.rank - 2] : 1;
    w.matrices = shape.rank >= 3 ? plm_array_count(&shape) / plm_max_i64(1, w.rows * w.cols) : 1;
    /* One matrix of the stack, so that pieces and whole stacks are read alike. */
    bool pieces = f->pieces > 1;
    int64_t need = 0;
    for (uint32_t p = 0; p < f->planes && p < PLM_PLANES; p++) {
        uint32_t slot = f->slot + (pieces ? (uint32_t)m * f->planes : 0) + p;
        if (slot >= s->run->n_bind)
            return fail_range(s, v, err);
        const plm_backend_binding *b =
            PLM_AT(plm_backend_binding, s->run->bind, s->run->bind_stride, slot);
        if (b->buffer == NULL)
            continue;
        uint64_t each = pieces ? b->bytes : b->bytes / (uint64_t)plm_max_i64(1, w.matrices);
        unsigned char *data = bound(s, slot, b->bytes);
        if (data == NULL)
            return fail_range(s, v, err);
        w.plane[p] = (plm_plane){.data = data + (pieces ? 0 : (uint64_t)m * each), .bytes = each};
    }
    if (plm_dtype_get(w.dtype)->family != PLM_FAMILY_PLANAR) {
        PLM_TRY(plm_dtype_bytes(w.dtype, w.rows, w.cols, &need, err));
        if (w.plane[0].data == NULL || w.plane[0].bytes < (uint64_t)need)
            return fail_range(s, v, err);
    }
    w.matrices = 1;
    float *line = plm_calloc((size_t)w.cols + 1, sizeof *line);
    if (line == NULL)
        return plm_fail_memory(err, "a row of a weight");
    plm_status status = PLM_OK;
    for (int64_t r = 0; r < n && status == PLM_OK; r++) {
        status = plm_weight_decode(&w, 0, row + r, 1, line, err);
        for (int64_t c = 0; c < w.cols && status == PLM_OK; c++)
            out[r * w.cols + c] = (double)line[c];
    }
    plm_free(line);
    return status;
}
