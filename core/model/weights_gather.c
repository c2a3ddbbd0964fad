/* weights_gather.c - a weight from its origin: a view of the map, a list of pieces, or a copy.
**
** A copy keeps the storage type wherever rows (or whole groups of columns) can be moved as they
** are; where they cannot, because a matrix of blocks is to be turned, say, its numbers are
** decoded and kept as f32, which loses nothing. */
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/weights_parts.h"

#define COPY_ALIGN 64u

typedef enum method { VIEW, COPY, DECODE } method;

/* Where the planes of one matrix of a copy lie. */
typedef struct target {
    unsigned char *plane[PLM_PLANES];
    int64_t rows, cols;
} target;

/* ---- which way ---- */

static bool one_stretch(const plm_run *r)
{
    return r->n[0] == 1 && r->n[1] == 1 && (r->n[2] == 1 || r->step[2] == 1);
}

/* Rows of 128 share scales: runs begin and end where they do, or with the tensor. */
static bool whole_blocks(const plm_origin *o)
{
    for (uint32_t i = 0; i < o->n_runs; i++) {
        const plm_run *r = &o->run[i];
        int64_t end = r->start + r->n[2];
        if (!one_stretch(r) || r->start % 128 != 0 ||
            (r->n[2] % 128 != 0 && (i + 1 < o->n_runs || end != o->source[r->source].rows)))
            return false;
    }
    return true;
}

/* Rows can be moved as they are. */
static bool rows_move(const plm_origin *o, plm_dtype t)
{
    const plm_source *s = &o->source[0];
    bool all = o->n_runs == 1 && one_stretch(&o->run[0]) && o->run[0].n[2] == s->rows;
    switch (t) {
    case PLM_DT_NF4:
    case PLM_DT_NF4_DQ:
        return all;
    case PLM_DT_FP8:
        return o->n_sources == 1;
    case PLM_DT_FP8_BLOCK:
        return whole_blocks(o);
    default:
        return plm_source_row_bytes(s) > 0;
    }
}

static method choose(const plm_origin *o, plm_dtype *t)
{
    const plm_dtype_info *info = plm_dtype_get(o->source[0].dtype);
    bool plain = info->family == PLM_FAMILY_PLAIN && info->block == 1;
    bool same = true, fits;
    for (uint32_t i = 1; i < o->n_sources; i++)
        same = same && o->source[i].dtype == o->source[0].dtype;
    *t = o->source[0].dtype;
    switch (o->turn) {
    case PLM_TURN_ROWS:
        fits = plain;
        break;
    case PLM_TURN_COLUMNS:
        fits = info->family != PLM_FAMILY_PLANAR && o->group % info->block == 0;
        break;
    default:
        fits = rows_move(o, *t);
    }
    if (!same || !fits || o->neg_exp) {
        *t = PLM_DT_F32;
        return DECODE;
    }
    return o->turn == PLM_TURN_NONE && o->n_runs == 1 && one_stretch(&o->run[0]) ? VIEW : COPY;
}

static size_t alignment(plm_dtype t)
{
    const plm_dtype_info *info = plm_dtype_get(t);
    if (info->family == PLM_FAMILY_INTERLEAVED)
        return info->block_bytes % 2 == 0 ? 2 : 1;
    return info->block == 1 ? info->block_bytes : 1;
}

/* ---- views ---- */

/* Planes of the one stretch of rows. */
static void view_planes(const plm_origin *o, const unsigned char *place[PLM_PLANES])
{
    const plm_run *r = &o->run[0];
    const plm_source *s = &o->source[r->source];
    uint64_t start = (uint64_t)r->start, rows = (uint64_t)s->rows;
    for (int p = 0; p < PLM_PLANES; p++)
        place[p] = s->plane[p].data;
    place[PLM_PLANE_CODES] += start * plm_source_row_bytes(s);
    if (s->dtype == PLM_DT_FP8_BLOCK)
        place[PLM_PLANE_SCALES] += start / 128 * (uint64_t)plm_ceil_div(s->cols, 128) * 4;
    else if (place[PLM_PLANE_SCALES] != NULL && s->dtype != PLM_DT_FP8 && start > 0)
        place[PLM_PLANE_SCALES] += start * (s->plane[PLM_PLANE_SCALES].bytes / rows);
}

/* ---- copies ---- */

static void copy_run(const plm_source *s, const plm_run *r, uint64_t line,
                     const unsigned char *from, unsigned char **to)
{
    (void)s;
    for (int64_t a = 0; a < r->n[0]; a++)
        for (int64_t b = 0; b < r->n[1]; b++) {
            int64_t at = r->start + a * r->step[0] + b * r->step[1];
            int64_t piece = r->step[2] == 1 ? r->n[2] : 1;
            for (int64_t c = 0; c < r->n[2]; c += piece) {
                size_t bytes = (size_t)piece * line;
                memcpy(*to, from + (uint64_t)(at + c * r->step[2]) * line, bytes);
                *to += bytes;
            }
        }
}

static void copy_rows(const plm_origin *o, target t)
{
    for (uint32_t i = 0; i < o->n_runs; i++) {
        const plm_run *r = &o->run[i];
        const plm_source *s = &o->source[r->source];
        const plm_plane *scale = &s->plane[PLM_PLANE_SCALES];
        plm_run blocks = *r;
        uint64_t line = plm_source_row_bytes(s), rows = (uint64_t)s->rows;
        if (line == 0) /* nf4: the tensor as a whole */
            memcpy(t.plane[PLM_PLANE_CODES], s->plane[PLM_PLANE_CODES].data,
                   s->plane[PLM_PLANE_CODES].bytes);
        else
            copy_run(s, r, line, s->plane[PLM_PLANE_CODES].data, &t.plane[PLM_PLANE_CODES]);
        if (scale->data == NULL)
            continue;
        blocks.start /= 128;
        blocks.n[2] = plm_ceil_div(r->n[2], 128);
        if (s->dtype == PLM_DT_FP8 || line == 0)
            memcpy(t.plane[PLM_PLANE_SCALES], scale->data, scale->bytes);
        else if (s->dtype == PLM_DT_FP8_BLOCK)
            copy_run(s, &blocks, (uint64_t)plm_ceil_div(s->cols, 128) * 4, scale->data,
                     &t.plane[PLM_PLANE_SCALES]);
        else
            copy_run(s, r, scale->bytes / rows, scale->data, &t.plane[PLM_PLANE_SCALES]);
    }
    const plm_source *s = &o->source[0];
    for (int p = PLM_PLANE_SUPER; p < PLM_PLANES; p++)
        if (s->plane[p].data != NULL)
            memcpy(t.plane[p], s->plane[p].data, s->plane[p].bytes);
}

/* Column `index` of the target, in groups, is this one of the source. */
static int64_t column_group(const plm_origin *o, int64_t index)
{
    return index % o->fast * o->slow + index / o->fast;
}

static void copy_columns(const plm_origin *o, target t)
{
    const plm_source *s = &o->source[0];
    const plm_dtype_info *info = plm_dtype_get(s->dtype);
    uint64_t group = (uint64_t)o->group / info->block * info->block_bytes;
    uint64_t line = plm_source_row_bytes(s);
    const unsigned char *from = s->plane[PLM_PLANE_CODES].data;
    unsigned char *to = t.plane[PLM_PLANE_CODES];
    for (int64_t r = 0; r < t.rows; r++, from += line)
        for (int64_t g = 0; g < o->fast * o->slow; g++, to += group)
            memcpy(to, from + (uint64_t)column_group(o, g) * group, group);
}

/* Number of the source's column for the k-th row of a turned target. */
static int64_t run_at(const plm_run *r, int64_t k)
{
    int64_t inner = r->n[2] * r->n[1];
    return r->start + k / inner * r->step[0] + k % inner / r->n[2] * r->step[1] +
           k % r->n[2] * r->step[2];
}

/* A tile of rows at a time, so that neither side strides through memory alone. */
static void copy_turned(const plm_origin *o, target t)
{
    enum { TILE = 32 };
    const plm_source *s = &o->source[0];
    size_t each = plm_dtype_get(s->dtype)->block_bytes;
    uint64_t line = plm_source_row_bytes(s);
    const unsigned char *from = s->plane[PLM_PLANE_CODES].data + (uint64_t)o->first * line;
    unsigned char *to = t.plane[PLM_PLANE_CODES];
    for (int64_t r0 = 0; r0 < t.rows; r0 += TILE)
        for (int64_t c = 0; c < t.cols; c++)
            for (int64_t r = r0; r < t.rows && r < r0 + TILE; r++)
                memcpy(to + (size_t)(r * t.cols + c) * each,
                       from + (uint64_t)c * line + (size_t)run_at(&o->run[0], r) * each, each);
}

/* ---- decoded copies ---- */

static float finish_number(const plm_origin *o, double x)
{
    return (float)(o->neg_exp ? -exp(x) : x);
}

static plm_status decode_turned(const plm_origin *o, target t, float *to, double *line,
                                plm_error *err)
{
    for (int64_t c = 0; c < t.cols; c++) {
        PLM_TRY(plm_source_decode(&o->source[0], o->first + c, 1, line, err));
        for (int64_t r = 0; r < t.rows; r++)
            to[r * t.cols + c] = finish_number(o, line[run_at(&o->run[0], r)]);
    }
    return PLM_OK;
}

static plm_status decode_rows(const plm_origin *o, target t, float *to, double *line,
                              plm_error *err)
{
    for (uint32_t i = 0; i < o->n_runs; i++) {
        const plm_run *r = &o->run[i];
        int64_t n = r->n[0] * r->n[1] * r->n[2];
        for (int64_t k = 0; k < n; k++, to += t.cols) {
            PLM_TRY(plm_source_decode(&o->source[r->source], run_at(r, k), 1, line, err));
            for (int64_t c = 0; c < t.cols; c++) {
                int64_t from = c;
                if (o->turn == PLM_TURN_COLUMNS)
                    from = column_group(o, c / o->group) * o->group + c % o->group;
                to[c] = finish_number(o, line[from]);
            }
        }
    }
    return PLM_OK;
}

static plm_status decode_matrix(const plm_origin *o, target t, plm_error *err)
{
    float *to = (float *)(void *)t.plane[PLM_PLANE_CODES]; /* aligned to 64 bytes, or a row after */
    double *line = plm_calloc((size_t)o->source[0].cols, sizeof *line);
    if (line == NULL)
        return plm_fail_memory(err, "a row of a weight");
    plm_status status = o->turn == PLM_TURN_ROWS ? decode_turned(o, t, to, line, err)
                                                 : decode_rows(o, t, to, line, err);
    plm_free(line);
    return status;
}

/* ---- the whole ---- */

static uint64_t round_up(uint64_t n)
{
    return (n + COPY_ALIGN - 1) / COPY_ALIGN * COPY_ALIGN;
}

/* Memory for all planes, or those from `first` on, of a copy; sets plane[].data of them. */
static plm_status reserve(plm_weight *v, int first, plm_error *err)
{
    uint64_t total = COPY_ALIGN;
    for (int p = first; p < PLM_PLANES; p++)
        total += round_up(v->plane[p].bytes * (uint64_t)v->matrices);
    v->own = plm_malloc((size_t)total);
    if (v->own == NULL)
        return plm_fail_memory(err, "the copy of a weight");
    v->own_bytes = total;
    unsigned char *at = v->own + (COPY_ALIGN - (uintptr_t)v->own % COPY_ALIGN) % COPY_ALIGN;
    for (int p = first; p < PLM_PLANES; p++) {
        v->plane[p].data = v->plane[p].bytes > 0 ? at : NULL;
        at += round_up(v->plane[p].bytes * (uint64_t)v->matrices);
    }
    return PLM_OK;
}

static target target_of(const plm_weight *v, int64_t matrix)
{
    target t = {.rows = v->rows, .cols = v->cols};
    for (int p = 0; p < PLM_PLANES; p++)
        if (v->plane[p].data != NULL)
            t.plane[p] =
                v->own + (v->plane[p].data - v->own) + (uint64_t)matrix * v->plane[p].bytes;
    return t;
}

static plm_status mixed(const plm_wanted *q, plm_error *err)
{
    return plm_fail(err, PLM_E_UNSUPPORTED,
                    "weight %s: its parts are stored in different types; convert the model to one",
                    q->name);
}

static plm_status fill_copy(const plm_weights *w, const plm_wanted *q, size_t rule, plm_weight *v,
                            method how, plm_error *err)
{
    PLM_TRY(reserve(v, 0, err));
    for (int64_t m = 0; m < v->matrices; m++) {
        plm_origin o;
        plm_dtype t;
        PLM_TRY(plm_map_origin(w, q, rule, m, &o, err));
        method mine = choose(&o, &t);
        target to = target_of(v, m);
        if (t != v->dtype || (mine == DECODE) != (how == DECODE))
            return mixed(q, err);
        if (how == DECODE)
            PLM_TRY(decode_matrix(&o, to, err));
        else if (o.turn == PLM_TURN_ROWS)
            copy_turned(&o, to);
        else if (o.turn == PLM_TURN_COLUMNS)
            copy_columns(&o, to);
        else
            copy_rows(&o, to);
        if (to.plane[PLM_PLANE_OFFSET] != NULL && how != DECODE)
            memcpy(to.plane[PLM_PLANE_OFFSET], &o.source[0].offset, sizeof o.source[0].offset);
    }
    return PLM_OK;
}

/* The places of every plane of every matrix; *aligned false where one is not fit for its type. */
static plm_status fill_places(const plm_weights *w, const plm_wanted *q, size_t rule, plm_weight *v,
                              bool *aligned, plm_error *err)
{
    v->piece = plm_calloc((size_t)v->matrices * PLM_PLANES, sizeof *v->piece);
    if (v->piece == NULL)
        return plm_fail_memory(err, "the pieces of a weight");
    if (v->plane[PLM_PLANE_OFFSET].bytes > 0)
        PLM_TRY(reserve(v, PLM_PLANE_OFFSET, err));
    for (int64_t m = 0; m < v->matrices; m++) {
        plm_origin o;
        plm_dtype t;
        const unsigned char **place = &v->piece[m * PLM_PLANES];
        PLM_TRY(plm_map_origin(w, q, rule, m, &o, err));
        if (choose(&o, &t) != VIEW || t != v->dtype)
            return mixed(q, err);
        view_planes(&o, place);
        if (v->plane[PLM_PLANE_OFFSET].data != NULL) {
            target to = target_of(v, m);
            memcpy(to.plane[PLM_PLANE_OFFSET], &o.source[0].offset, sizeof o.source[0].offset);
            place[PLM_PLANE_OFFSET] = to.plane[PLM_PLANE_OFFSET];
        }
        for (int p = 0; p < PLM_PLANES; p++)
            *aligned = *aligned && (place[p] == NULL ||
                                    (uintptr_t)place[p] % alignment(v->plane[p].dtype) == 0);
    }
    return PLM_OK;
}

/* Pieces that follow one another are one stretch. */
static void join_places(plm_weight *v)
{
    for (int64_t m = 0; m < v->matrices; m++)
        for (int p = 0; p < PLM_PLANES; p++) {
            const unsigned char *first = v->piece[p], *here = v->piece[m * PLM_PLANES + p];
            if (first != NULL &&
                (uintptr_t)here != (uintptr_t)first + (uint64_t)m * v->plane[p].bytes) {
                for (int k = 0; k < PLM_PLANES; k++)
                    v->plane[k].data = NULL;
                return;
            }
        }
    for (int p = 0; p < PLM_PLANES; p++)
        v->plane[p].data = v->piece[p];
    plm_free((void *)v->piece);
    v->piece = NULL;
}

plm_status plm_gather(const plm_weights *w, const plm_wanted *q, bool fill, plm_weight *out,
                      plm_error *err)
{
    size_t rule;
    plm_origin o;
    memset(out, 0, sizeof *out);
    PLM_TRY(plm_map_rule(w, q, &rule, err));
    PLM_TRY(plm_map_origin(w, q, rule, 0, &o, err));
    method how = choose(&o, &out->dtype);
    out->matrices = q->matrices;
    out->rows = q->rows;
    out->cols = q->cols;
    PLM_TRY(plm_plane_sizes(out->dtype, q->rows, q->cols, out->plane, err));
    for (int p = 0; p < PLM_PLANES; p++)
        out->bytes += out->plane[p].bytes * (uint64_t)q->matrices;
    if (!fill)
        return PLM_OK;
    bool aligned = true;
    plm_status status;
    if (how == VIEW) {
        PLM_GOTO(fill_places(w, q, rule, out, &aligned, err));
        join_places(out);
        if (!aligned)
            how = COPY;
    }
    if (how != VIEW) {
        plm_free(out->own);
        plm_free((void *)out->piece);
        out->own = NULL;
        out->piece = NULL;
        status = fill_copy(w, q, rule, out, how, err);
    }
done:
    if (status != PLM_OK)
        plm_weight_release(out);
    return status;
}

/* ---- weights ---- */

const unsigned char *plm_weight_plane(const plm_weight *v, int64_t matrix, plm_plane_id p)
{
    if (matrix < 0 || matrix >= v->matrices)
        return NULL;
    if (v->piece != NULL)
        return v->piece[matrix * PLM_PLANES + (int)p];
    return v->plane[p].data != NULL ? v->plane[p].data + (uint64_t)matrix * v->plane[p].bytes
                                    : NULL;
}

void plm_weight_release(plm_weight *v)
{
    plm_free((void *)v->piece);
    plm_free(v->own);
    memset(v, 0, sizeof *v);
}

plm_status plm_weight_join(plm_weight *v, plm_error *err)
{
    if (v->piece == NULL)
        return PLM_OK;
    plm_weight whole = *v;
    whole.piece = NULL;
    whole.own = NULL;
    PLM_TRY(reserve(&whole, 0, err));
    for (int64_t m = 0; m < v->matrices; m++) {
        target t = target_of(&whole, m);
        for (int p = 0; p < PLM_PLANES; p++)
            if (t.plane[p] != NULL)
                memcpy(t.plane[p], plm_weight_plane(v, m, (plm_plane_id)p), v->plane[p].bytes);
    }
    plm_weight_release(v);
    *v = whole;
    return PLM_OK;
}
