/* oracle_move.c - oracles of the ops that move rows and change shapes. */
#include "core/ir/oracle.h"

#include <string.h>

/* An array seen around one dim: outer x dim x inner elements. */
typedef struct view {
    int64_t outer, dim, inner;
} view;

static view view_around(const plm_array *a, uint32_t axis)
{
    view v = {1, a->dim[axis], 1};
    for (uint32_t i = 0; i < axis; i++)
        v.outer *= a->dim[i];
    for (uint32_t i = axis + 1; i < a->rank; i++)
        v.inner *= a->dim[i];
    return v;
}

/* The axis attribute; a negative one counts from the last dim. */
static plm_status read_axis(const plm_oracle_ctx *c, const plm_array *a, uint32_t *axis,
                            plm_error *err)
{
    int64_t i = plm_attr_int(c->g, c->n, PLM_ATTR_AXIS, 0);
    if (i < 0)
        i += a->rank;
    if (i < 0 || i >= a->rank)
        return plm_oracle_refuse(c, err, "axis", "names no dim of the input");
    *axis = (uint32_t)i;
    return PLM_OK;
}

/* a must be `in` with the length of `axis` changed to n. */
static plm_status check_resized(const plm_oracle_ctx *c, const plm_array *in, uint32_t axis,
                                int64_t n, const plm_array *a, const char *what, plm_error *err)
{
    plm_array want = *in;
    want.dim[axis] = n;
    return plm_oracle_shape(c, a, what, want.rank, want.dim, err);
}

static void copy(double *to, const double *from, int64_t n)
{
    if (n > 0)
        memmove(to, from, (size_t)n * sizeof *to);
}

plm_status plm_oracle_slice(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                            plm_error *err)
{
    uint32_t axis = 0;
    PLM_TRY(plm_oracle_present(c, &in[0], "x", err));
    PLM_TRY(read_axis(c, &in[0], &axis, err));
    view v = view_around(&in[0], axis);
    int64_t start = plm_attr_int(c->g, c->n, PLM_ATTR_START, 0);
    int64_t count = plm_attr_int(c->g, c->n, PLM_ATTR_COUNT, v.dim - start);
    if (start < 0 || count < 0 || start > v.dim || count > v.dim - start)
        return plm_oracle_refuse(c, err, "start, count", "reach outside the dim");
    PLM_TRY(check_resized(c, &in[0], axis, count, &out[0], "output", err));
    for (int64_t o = 0; o < v.outer; o++)
        for (int64_t i = 0; i < count; i++)
            copy(&out[0].data[(o * count + i) * v.inner],
                 &in[0].data[(o * v.dim + start + i) * v.inner], v.inner);
    return PLM_OK;
}

plm_status plm_oracle_concat(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                             plm_error *err)
{
    uint32_t axis = 0;
    PLM_TRY(plm_oracle_present(c, &in[0], "a", err));
    PLM_TRY(read_axis(c, &in[0], &axis, err));
    int64_t total = 0, at = 0;
    for (uint32_t i = 0; i < c->n->n_in; i++) {
        PLM_TRY(plm_oracle_present(c, &in[i], "input", err));
        int64_t n = axis < in[i].rank ? in[i].dim[axis] : 0;
        PLM_TRY(check_resized(c, &in[0], axis, n, &in[i], "input", err));
        total += n;
    }
    PLM_TRY(check_resized(c, &in[0], axis, total, &out[0], "output", err));
    for (uint32_t i = 0; i < c->n->n_in; i++) {
        view v = view_around(&in[i], axis);
        for (int64_t o = 0; o < v.outer; o++)
            copy(&out[0].data[(o * total + at) * v.inner], &in[i].data[o * v.dim * v.inner],
                 v.dim * v.inner);
        at += v.dim;
    }
    return PLM_OK;
}

plm_status plm_oracle_reshape(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                              plm_error *err)
{
    PLM_TRY(plm_oracle_present(c, &in[0], "x", err));
    PLM_TRY(plm_oracle_present(c, &out[0], "output", err));
    if (plm_array_count(&in[0]) != plm_array_count(&out[0]))
        return plm_oracle_refuse(c, err, "output", "has another number of elements");
    copy(out[0].data, in[0].data, plm_array_count(&in[0]));
    return PLM_OK;
}

plm_status plm_oracle_repeat(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                             plm_error *err)
{
    uint32_t axis = 0;
    PLM_TRY(plm_oracle_present(c, &in[0], "x", err));
    PLM_TRY(read_axis(c, &in[0], &axis, err));
    view v = view_around(&in[0], axis);
    int64_t times = plm_attr_int(c->g, c->n, PLM_ATTR_COUNT, 1);
    if (times < 1 || times > INT32_MAX)
        return plm_oracle_refuse(c, err, "count", "is not a positive number of copies");
    PLM_TRY(check_resized(c, &in[0], axis, v.dim * times, &out[0], "output", err));
    for (int64_t o = 0; o < v.outer; o++)
        for (int64_t i = 0; i < v.dim * times; i++)
            copy(&out[0].data[(o * v.dim * times + i) * v.inner],
                 &in[0].data[(o * v.dim + i / times) * v.inner], v.inner);
    return PLM_OK;
}

/* x[T,..], rows[R] -> y[R,..] */
plm_status plm_oracle_gather(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                             plm_error *err)
{
    PLM_TRY(plm_oracle_present(c, &in[0], "x", err));
    PLM_TRY(plm_oracle_shape(c, &in[1], "rows", PLM_SHAPE(PLM_ANY), err));
    PLM_TRY(check_resized(c, &in[0], 0, in[1].dim[0], &out[0], "output", err));
    view v = view_around(&in[0], 0);
    for (int64_t r = 0; r < in[1].dim[0]; r++) {
        int64_t t;
        PLM_TRY(plm_oracle_integer(c, in[1].data[r], "rows", 0, v.dim, &t, err));
        copy(&out[0].data[r * v.inner], &in[0].data[t * v.inner], v.inner);
    }
    return PLM_OK;
}

/* x[..,n] -> index[..]; -1 for a row without elements. A NaN is never the greatest. */
plm_status plm_oracle_argmax(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                             plm_error *err)
{
    PLM_TRY(plm_oracle_present(c, &in[0], "x", err));
    int64_t R = plm_array_rows(&in[0]), n = plm_array_cols(&in[0]);
    if (out[0].data == NULL || plm_array_count(&out[0]) != R)
        return plm_oracle_refuse(c, err, "output", "does not hold one index a row");
    for (int64_t r = 0; r < R; r++) {
        const double *x = &in[0].data[r * n];
        int64_t best = n > 0 ? 0 : -1;
        for (int64_t i = 1; i < n; i++)
            if (x[i] > x[best] || (x[best] != x[best] && x[i] == x[i]))
                best = i;
        out[0].data[r] = (double)best;
    }
    return PLM_OK;
}

/* True when index a comes before b: greater value first, the lower index of equals, NaN last. */
static bool comes_before(const double *x, int64_t a, int64_t b)
{
    bool a_nan = x[a] != x[a], b_nan = x[b] != x[b];
    if (a_nan != b_nan)
        return b_nan;
    if (!a_nan && x[a] != x[b])
        return x[a] > x[b];
    return a < b;
}

/* x[..,n] -> values[..,k], indices[..,k] */
plm_status plm_oracle_top_k(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                            plm_error *err)
{
    PLM_TRY(plm_oracle_present(c, &in[0], "x", err));
    int64_t R = plm_array_rows(&in[0]), n = plm_array_cols(&in[0]);
    int64_t k = plm_attr_int(c->g, c->n, PLM_ATTR_TOP_K, 1);
    if (k < 0 || k > n)
        return plm_oracle_refuse(c, err, "top_k", "is not between 0 and the row's length");
    PLM_TRY(check_resized(c, &in[0], in[0].rank - 1, k, &out[0], "values", err));
    PLM_TRY(check_resized(c, &in[0], in[0].rank - 1, k, &out[1], "indices", err));
    for (int64_t r = 0; r < R; r++) {
        const double *x = &in[0].data[r * n];
        int64_t last = -1;
        for (int64_t j = 0; j < k; j++) {
            /* The first of those that come after the one chosen last. */
            int64_t best = -1;
            for (int64_t i = 0; i < n; i++)
                if ((last < 0 || comes_before(x, last, i)) &&
                    (best < 0 || comes_before(x, i, best)))
                    best = i;
            out[0].data[r * k + j] = x[best];
            out[1].data[r * k + j] = (double)best;
            last = best;
        }
    }
    return PLM_OK;
}
