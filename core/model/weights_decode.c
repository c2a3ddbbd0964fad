/* weights_decode.c - numbers of a weight, whatever holds them. */
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/ir/codec.h"
#include "core/model/weights_parts.h"

/* A float32 that may lie anywhere. */
static double f32_at(const plm_source *s, plm_plane_id p, int64_t i)
{
    float v;
    memcpy(&v, s->plane[p].data + (size_t)i * sizeof v, sizeof v);
    return (double)v;
}

static double code_at(const plm_source *s, int64_t i)
{
    const unsigned char *codes = s->plane[PLM_PLANE_CODES].data;
    if (s->dtype == PLM_DT_INT8_ROW)
        return (double)(signed char)codes[i];
    if (s->dtype == PLM_DT_MXFP4_PLANAR)
        return plm_small_decode(&plm_float_e2m1, ((unsigned)codes[i / 2] >> (i % 2 * 4)) & 15u);
    return plm_small_decode(&plm_float_f8e4m3, codes[i]);
}

static double scale_at(const plm_source *s, int64_t row, int64_t col)
{
    switch (s->dtype) {
    case PLM_DT_FP8:
        return f32_at(s, PLM_PLANE_SCALES, 0);
    case PLM_DT_FP8_BLOCK:
        return f32_at(s, PLM_PLANE_SCALES, row / 128 * plm_ceil_div(s->cols, 128) + col / 128);
    case PLM_DT_MXFP4_PLANAR:
        return ldexp(1.0, s->plane[PLM_PLANE_SCALES].data[row * (s->cols / 32) + col / 32] - 127);
    default:
        return f32_at(s, PLM_PLANE_SCALES, row);
    }
}

/* Scale of the i-th block of 64 numbers. */
static double nf4_scale(const plm_source *s, int64_t i)
{
    if (s->dtype == PLM_DT_NF4)
        return f32_at(s, PLM_PLANE_SCALES, i);
    return f32_at(s, PLM_PLANE_SUPER_MAP, s->plane[PLM_PLANE_SCALES].data[i]) *
               f32_at(s, PLM_PLANE_SUPER, i / 256) +
           (double)s->offset;
}

static void decode_nf4(const plm_source *s, int64_t first, int64_t n, double *out)
{
    for (int64_t i = first; i < first + n; i++) {
        unsigned byte = s->plane[PLM_PLANE_CODES].data[i / 2];
        unsigned code = i % 2 == 0 ? byte >> 4 : byte & 15u;
        out[i - first] = f32_at(s, PLM_PLANE_MAP, code) * nf4_scale(s, i / 64);
    }
}

plm_status plm_source_decode(const plm_source *s, int64_t row, int64_t count, double *out,
                             plm_error *err)
{
    if (plm_dtype_get(s->dtype)->family != PLM_FAMILY_PLANAR)
        return plm_decode(s->dtype,
                          s->plane[PLM_PLANE_CODES].data + (uint64_t)row * plm_source_row_bytes(s),
                          count * s->cols, out, err);
    if (s->dtype == PLM_DT_NF4 || s->dtype == PLM_DT_NF4_DQ) {
        decode_nf4(s, row * s->cols, count * s->cols, out);
        return PLM_OK;
    }
    for (int64_t r = row; r < row + count; r++)
        for (int64_t c = 0; c < s->cols; c++)
            out[(r - row) * s->cols + c] = code_at(s, r * s->cols + c) * scale_at(s, r, c);
    return PLM_OK;
}

plm_status plm_weight_decode(const plm_weight *v, int64_t matrix, int64_t row, int64_t count,
                             float *out, plm_error *err)
{
    if (matrix < 0 || matrix >= v->matrices || row < 0 || count < 0 || row > v->rows - count)
        return plm_fail(err, PLM_E_INTERNAL, "weight, rows %lld to %lld: it has %lld",
                        (long long)row, (long long)(row + count), (long long)v->rows);
    plm_source s = {.dtype = v->dtype, .rows = v->rows, .cols = v->cols};
    for (int p = 0; p < PLM_PLANES; p++) {
        s.plane[p] = v->plane[p];
        s.plane[p].data = plm_weight_plane(v, matrix, (plm_plane_id)p);
    }
    if (s.plane[PLM_PLANE_OFFSET].data != NULL)
        memcpy(&s.offset, s.plane[PLM_PLANE_OFFSET].data, sizeof s.offset);
    double *line = plm_calloc((size_t)v->cols, sizeof *line);
    if (line == NULL)
        return plm_fail_memory(err, "a row of a weight");
    plm_status status = PLM_OK;
    for (int64_t r = 0; r < count && status == PLM_OK; r++) {
        status = plm_source_decode(&s, row + r, 1, line, err);
        for (int64_t c = 0; c < v->cols && status == PLM_OK; c++)
            out[r * v->cols + c] = (float)line[c];
    }
    plm_free(line);
    return status;
}
