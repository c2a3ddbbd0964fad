/* weights_source.c - one tensor of the files and its companions: scales, absmax, code books.
**
** Names of the companions: bitsandbytes (NF4: "<name>.absmax", ".quant_map", ".nested_absmax",
** ".nested_quant_map", ".quant_state.bitsandbytes__nf4", a JSON text as bytes), DeepSeek and
** transformers ("<name>_scale_inv", float32 for 128 x 128), compressed-tensors ("<name>_scale"),
** gpt-oss ("..._blocks", "..._scales"). */
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/model/weights_parts.h"

static plm_status misfit(const plm_weights_entry *e, const char *what, plm_error *err)
{
    return plm_fail(err, PLM_E_INVALID, "planes, tensor %.100s: %s; the file is damaged",
                    e->t->name, what);
}

/* Product of dims first .. end - 1. Directories hold only tensors of fewer than 2^63 numbers,
** but leave the dims of empty ones alone. */
static int64_t product(const plm_tensor *t, uint32_t first, uint32_t end)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] == 0)
            return 0;
    for (uint32_t i = first; i < end; i++)
        n *= t->dim[i];
    return n;
}

static int64_t elements(const plm_tensor *t)
{
    return product(t, 0, t->rank);
}

static void set_plane(const plm_weights *w, const plm_weights_entry *e, plm_plane_id id,
                      plm_source *out)
{
    out->plane[id] =
        (plm_plane){.data = plm_weights_data(w, e), .bytes = e->t->bytes, .dtype = e->t->dtype};
}

/* The companion whose name is the tensor's, `cut` bytes shorter, with a tail. */
static const plm_weights_entry *companion(const plm_weights *w, const plm_weights_entry *e,
                                          size_t cut, const char *tail)
{
    char name[512];
    size_t n = strlen(e->t->name);
    if (n < cut || n - cut >= sizeof name - 64)
        return NULL;
    snprintf(name, sizeof name, "%.*s%s", (int)(n - cut), e->t->name, tail);
    return plm_weights_find(w, name);
}

static bool ends_with(const char *text, const char *tail)
{
    size_t n = strlen(text), t = strlen(tail);
    return n >= t && strcmp(text + n - t, tail) == 0;
}

/* ---- formats ---- */

/* A plane of exactly n numbers of a type. */
static plm_status need(const plm_weights *w, const plm_source *s, const char *tail, plm_dtype t,
                       int64_t n, plm_plane_id id, plm_source *out, plm_error *err)
{
    const plm_weights_entry *e = companion(w, s->e, 0, tail);
    if (e == NULL || e->t->dtype != t || elements(e->t) != n)
        return misfit(s->e, tail, err);
    set_plane(w, e, id, out);
    return PLM_OK;
}

/* The shape, block sizes and offset that the quantisation state says. */
static plm_status read_nf4_state(const plm_weights *w, const plm_weights_entry *e, plm_source *out,
                                 plm_error *err)
{
    json_t *state = NULL;
    const plm_tensor *t = e->t;
    int64_t block = 0, nested = 256;
    double offset = 0;
    plm_status status;
    if (t->bytes > 1 << 16 || t->dtype != PLM_DT_U8)
        return misfit(e, "no quantisation state", err);
    PLM_TRY(plm_json_parse((const char *)plm_weights_data(w, e), (size_t)t->bytes, t->name, &state,
                           err));
    const json_t *shape = json_object_get(state, "shape");
    PLM_GOTO(plm_json_int(state, "blocksize", true, 1, 1 << 20, t->name, &block, err));
    PLM_GOTO(plm_json_int(state, "nested_blocksize", false, 1, 1 << 20, t->name, &nested, err));
    PLM_GOTO(plm_json_double(state, "nested_offset", false, -1e9, 1e9, t->name, &offset, err));
    const json_t *r = json_array_get(shape, 0), *c = json_array_get(shape, 1);
    if (json_array_size(shape) != 2 || !json_is_integer(r) || !json_is_integer(c) ||
        json_integer_value(r) < 1 || json_integer_value(c) < 1 || block != 64 || nested != 256) {
        status = misfit(e, "want two dims, blocks of 64 and of 256", err);
        goto done;
    }
    out->rows = json_integer_value(r);
    out->cols = json_integer_value(c);
    out->offset = (float)offset;
done:
    json_decref(state);
    return status;
}

static plm_status open_nf4(const plm_weights *w, const plm_weights_entry *state, plm_source *out,
                           plm_error *err)
{
    int64_t n;
    PLM_TRY(read_nf4_state(w, state, out, err));
    if (!plm_mul_i64(out->rows, out->cols, &n) || n % 2 != 0 || (uint64_t)n / 2 != out->e->t->bytes)
        return misfit(out->e, "the shape of its quantisation state is another", err);
    int64_t blocks = plm_ceil_div(n, 64);
    bool nested = companion(w, out->e, 0, ".nested_absmax") != NULL;
    out->dtype = nested ? PLM_DT_NF4_DQ : PLM_DT_NF4;
    PLM_TRY(need(w, out, ".quant_map", PLM_DT_F32, 16, PLM_PLANE_MAP, out, err));
    PLM_TRY(need(w, out, ".absmax", nested ? PLM_DT_U8 : PLM_DT_F32, blocks, PLM_PLANE_SCALES, out,
                 err));
    if (!nested)
        return PLM_OK;
    PLM_TRY(need(w, out, ".nested_quant_map", PLM_DT_F32, 256, PLM_PLANE_SUPER_MAP, out, err));
    PLM_TRY(need(w, out, ".nested_absmax", PLM_DT_F32, plm_ceil_div(blocks, 256), PLM_PLANE_SUPER,
                 out, err));
    out->plane[PLM_PLANE_OFFSET] = (plm_plane){.bytes = sizeof out->offset, .dtype = PLM_DT_F32};
    return PLM_OK;
}

/* Codes of one byte and a scale for the tensor, a row, or 128 x 128 numbers. */
static plm_status open_scaled(const plm_weights *w, plm_source *out, plm_error *err)
{
    const plm_weights_entry *inv = companion(w, out->e, 0, "_scale_inv");
    const plm_weights_entry *s = inv != NULL ? inv : companion(w, out->e, 0, "_scale");
    bool whole = out->dtype == PLM_DT_I8;
    if (s == NULL)
        return PLM_OK; /* plain numbers */
    if (s->t->dtype != PLM_DT_F32)
        return plm_fail(err, PLM_E_UNSUPPORTED,
                        "planes, tensor %.100s: scales of type %s; want f32", out->e->t->name,
                        plm_dtype_get(s->t->dtype)->name);
    set_plane(w, s, PLM_PLANE_SCALES, out);
    int64_t n = elements(s->t);
    if (n == 1 && !whole && !(out->rows <= 128 && out->cols <= 128 && inv != NULL))
        out->dtype = PLM_DT_FP8;
    else if (s->t->rank == 2 && s->t->dim[0] == plm_ceil_div(out->rows, 128) &&
             s->t->dim[1] == plm_ceil_div(out->cols, 128) && inv != NULL && !whole)
        out->dtype = PLM_DT_FP8_BLOCK;
    else if (n == out->rows)
        out->dtype = whole ? PLM_DT_INT8_ROW : PLM_DT_FP8_ROW;
    else
        return misfit(out->e, "its scales are neither one, nor one a row, nor one for 128 x 128",
                      err);
    return PLM_OK;
}

/* gpt-oss: [.., rows, cols / 32, 16] bytes of codes and [.., rows, cols / 32] exponents. */
static plm_status open_mxfp4(const plm_weights *w, plm_source *out, plm_error *err)
{
    const plm_tensor *t = out->e->t;
    const plm_weights_entry *s = companion(w, out->e, strlen("_blocks"), "_scales");
    if (s == NULL || t->rank < 3 || t->dim[t->rank - 1] != 16 ||
        (s->t->dtype != PLM_DT_U8 && s->t->dtype != PLM_DT_E8M0) || s->t->rank != t->rank - 1)
        return misfit(out->e, "want blocks of 16 bytes and a scale for each", err);
    for (uint32_t i = 0; i < s->t->rank; i++)
        if (s->t->dim[i] != t->dim[i])
            return misfit(out->e, "want a scale for each block", err);
    out->dtype = PLM_DT_MXFP4_PLANAR;
    out->rows = product(t, 0, t->rank - 2);
    if (!plm_mul_i64(t->dim[t->rank - 2], 32, &out->cols))
        return misfit(out->e, "too many columns", err);
    set_plane(w, s, PLM_PLANE_SCALES, out);
    out->plane[PLM_PLANE_SCALES].dtype = PLM_DT_E8M0;
    return PLM_OK;
}

plm_status plm_source_open(const plm_weights *w, const plm_weights_entry *e, bool as_column,
                           plm_source *out, plm_error *err)
{
    const plm_tensor *t = e->t;
    memset(out, 0, sizeof *out);
    out->e = e;
    out->dtype = t->dtype;
    out->cols = t->rank > 0 && !as_column ? t->dim[t->rank - 1] : 1;
    out->rows = as_column ? elements(t) : t->rank > 0 ? product(t, 0, t->rank - 1) : 1;
    set_plane(w, e, PLM_PLANE_CODES, out);
    if (w->gguf || as_column)
        return PLM_OK;
    if (t->dtype == PLM_DT_F8E4M3 || t->dtype == PLM_DT_I8)
        return open_scaled(w, out, err);
    if (t->dtype != PLM_DT_U8)
        return PLM_OK;
    const plm_weights_entry *state = companion(w, e, 0, ".quant_state.bitsandbytes__nf4");
    if (state != NULL)
        return open_nf4(w, state, out, err);
    return ends_with(t->name, "_blocks") ? open_mxfp4(w, out, err) : PLM_OK;
}

uint64_t plm_source_row_bytes(const plm_source *s)
{
    const plm_dtype_info *info = plm_dtype_get(s->dtype);
    if (s->dtype == PLM_DT_NF4 || s->dtype == PLM_DT_NF4_DQ || s->cols % info->block != 0)
        return 0;
    return (uint64_t)s->cols / info->block * info->block_bytes;
}

plm_status plm_plane_sizes(plm_dtype t, int64_t rows, int64_t cols, plm_plane plane[PLM_PLANES],
                           plm_error *err)
{
    const plm_dtype_info *info = plm_dtype_get(t);
    int64_t whole, n = rows * cols, blocks = plm_ceil_div(n, 64), scales = 0;
    plm_dtype scale_type = PLM_DT_F32;
    memset(plane, 0, PLM_PLANES * sizeof *plane);
    PLM_TRY(plm_dtype_bytes(t, rows, cols, &whole, err));
    if (info->family != PLM_FAMILY_PLANAR) {
        plane[PLM_PLANE_CODES] = (plm_plane){.bytes = (uint64_t)whole, .dtype = t};
        return PLM_OK;
    }
    plm_dtype codes = PLM_DT_F8E4M3;
    switch (t) {
    case PLM_DT_FP8:
        scales = 1;
        break;
    case PLM_DT_FP8_ROW:
    case PLM_DT_INT8_ROW:
        scales = rows;
        codes = t == PLM_DT_INT8_ROW ? PLM_DT_I8 : codes;
        break;
    case PLM_DT_FP8_BLOCK:
        scales = plm_ceil_div(rows, 128) * plm_ceil_div(cols, 128);
        break;
    case PLM_DT_MXFP4_PLANAR:
        scales = rows * plm_ceil_div(cols, 32);
        scale_type = PLM_DT_E8M0;
        codes = PLM_DT_F4E2M1;
        break;
    default: /* nf4, nf4_dq */
        scales = blocks;
        codes = PLM_DT_U8;
        plane[PLM_PLANE_MAP] = (plm_plane){.bytes = 64, .dtype = PLM_DT_F32};
        if (t == PLM_DT_NF4_DQ) {
            scale_type = PLM_DT_U8;
            plane[PLM_PLANE_SUPER] =
                (plm_plane){.bytes = 4 * (uint64_t)plm_ceil_div(blocks, 256), .dtype = PLM_DT_F32};
            plane[PLM_PLANE_SUPER_MAP] = (plm_plane){.bytes = 1024, .dtype = PLM_DT_F32};
            plane[PLM_PLANE_OFFSET] = (plm_plane){.bytes = 4, .dtype = PLM_DT_F32};
        }
    }
    uint64_t each = plm_dtype_get(scale_type)->block_bytes;
    plane[PLM_PLANE_SCALES] = (plm_plane){.bytes = (uint64_t)scales * each, .dtype = scale_type};
    plane[PLM_PLANE_CODES] = (plm_plane){
        .bytes = (uint64_t)plm_ceil_div(n, info->block) * info->block_bytes, .dtype = codes};
    return PLM_OK;
}
