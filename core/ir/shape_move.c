/* Shape rules of the ops that move rows, and of the links between ranks. */
#include "core/base/mem.h"
#include "core/ir/shape.h"

static void copy_shape(const plm_value *x, plm_value *out)
{
    out->rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++)
        out->dim[i] = x->dim[i];
}

/* The dim that the attribute axis names (0 when the node does not say). */
static plm_status find_axis(const plm_graph *g, const plm_node *n, uint32_t *axis, plm_error *err)
{
    const plm_value *x = plm_shape_input(g, n, 0);
    int64_t a = plm_attr_int(g, n, PLM_ATTR_AXIS, 0);
    if (a < 0 || a >= (int64_t)x->rank)
        return plm_fail(err, PLM_E_INVALID, "axis, %lld: input 0 has %u dims", (long long)a,
                        x->rank);
    *axis = (uint32_t)a;
    return PLM_OK;
}

/* out[0] has the shape of input 0 but for one dim, which is op(that dim, k). */
static plm_status change_axis(plm_graph *g, const plm_node *n, plm_dim_op op, int64_t k,
                              plm_value *out, plm_error *err)
{
    uint32_t axis;
    PLM_TRY(find_axis(g, n, &axis, err));
    copy_shape(plm_shape_input(g, n, 0), &out[0]);
    plm_dim by = plm_dim_const(&g->dims, k);
    out[0].dim[axis] = plm_dim_make(&g->dims, op, out[0].dim[axis], by);
    return plm_shape_dim(g, out[0].dim[axis], err);
}

plm_status plm_shape_slice(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    uint32_t axis;
    int64_t count;
    PLM_TRY(find_axis(g, n, &axis, err));
    const plm_value *x = plm_shape_input(g, n, 0);
    int64_t have = plm_dim_value(&g->dims, x->dim[axis]);
    int64_t start = plm_attr_int(g, n, PLM_ATTR_START, 0);
    if (have < 0)
        return plm_fail(err, PLM_E_INVALID, "axis, %u: only a constant dim can be sliced", axis);
    PLM_TRY(plm_shape_need(g, n, PLM_ATTR_COUNT, 1, have, &count, err));
    if (start < 0 || start > have - count)
        return plm_fail(err, PLM_E_INVALID, "start, %lld: start + count passes the dim of %lld",
                        (long long)start, (long long)have);
    copy_shape(x, &out[0]);
    out[0].dim[axis] = plm_dim_const(&g->dims, count);
    return plm_shape_dim(g, out[0].dim[axis], err);
}

plm_status plm_shape_concat(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    uint32_t axis;
    PLM_TRY(find_axis(g, n, &axis, err));
    copy_shape(plm_shape_input(g, n, 0), &out[0]);
    for (uint32_t i = 1; i < n->n_in; i++) {
        const plm_value *x = plm_shape_input(g, n, i);
        if (x == NULL || x->rank != out[0].rank || x->dtype != out[0].dtype)
            return plm_fail(err, PLM_E_INVALID, "input %u: missing, or of another rank or type",
                            i);
        for (uint32_t d = 0; d < x->rank; d++)
            if (d != axis && x->dim[d] != out[0].dim[d])
                return plm_fail(err, PLM_E_INVALID, "input %u, dim %u: must be as in input 0", i, d);
        out[0].dim[axis] = plm_dim_make(&g->dims, PLM_DIM_ADD, out[0].dim[axis], x->dim[axis]);
        PLM_TRY(plm_shape_dim(g, out[0].dim[axis], err));
    }
    return PLM_OK;
}

/* ---- reshape ---- */

/* Number of elements as k * sym, sym PLM_DIM_NONE when no dim is symbolic. A dim T*8 gives its 8 to
** k, so that [T*8, 16] is [T, 128]. */
static plm_status count_elements(plm_graph *g, const plm_value *x, int64_t *k, plm_dim *sym,
                                 plm_error *err)
{
    *k = 1;
    *sym = PLM_DIM_NONE;
    for (uint32_t i = 0; i < x->rank; i++) {
        plm_dim d = x->dim[i];
        int64_t c = plm_dim_value(&g->dims, d);
        if (c < 0) {
            const plm_dim_node *m = &g->dims.items[d];
            c = m->op == PLM_DIM_MUL ? plm_dim_value(&g->dims, m->b) : -1;
            if (c >= 0)
                d = m->a;
            else
                c = 1;
            *sym = *sym == PLM_DIM_NONE ? d : plm_dim_make(&g->dims, PLM_DIM_MUL, *sym, d);
            PLM_TRY(plm_shape_dim(g, *sym, err));
        }
        if (!plm_mul_i64(*k, c, k))
            return plm_fail(err, PLM_E_INVALID, "input 0: more than 2^63 elements");
    }
    return PLM_OK;
}

/* The dim marked -1: what the others leave of k * sym. */
static plm_status open_dim(plm_graph *g, int64_t k, plm_dim sym, int64_t others, plm_dim *out,
                           plm_error *err)
{
    if (others == 0 || k % others != 0)
        return plm_fail(err, PLM_E_INVALID, "new dims: %lld elements are no multiple of %lld",
                        (long long)k, (long long)others);
    *out = plm_dim_const(&g->dims, k / others);
    if (sym != PLM_DIM_NONE)
        *out = plm_dim_make(&g->dims, PLM_DIM_MUL, sym, *out);
    return plm_shape_dim(g, *out, err);
}

plm_status plm_shape_reshape(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    static const plm_attr_key key[] = {PLM_ATTR_D0, PLM_ATTR_D1, PLM_ATTR_D2};
    int64_t rank, k, others = 1;
    plm_dim sym;
    int open = -1;
    PLM_TRY(plm_shape_need(g, n, PLM_ATTR_RANK, 1, 3, &rank, err));
    PLM_TRY(count_elements(g, plm_shape_input(g, n, 0), &k, &sym, err));
    out[0].rank = (uint32_t)rank;
    for (int i = 0; i < (int)rank; i++) {
        int64_t d;
        PLM_TRY(plm_shape_need(g, n, key[i], -1, INT64_MAX, &d, err));
        if (d < 0 && open >= 0)
            return plm_fail(err, PLM_E_INVALID, "new dims: two of them are -1");
        if (d < 0) {
            open = i;
            continue;
        }
        if (!plm_mul_i64(others, d, &others))
            return plm_fail(err, PLM_E_INVALID, "new dims: more than 2^63 elements");
        out[0].dim[i] = plm_dim_const(&g->dims, d);
        PLM_TRY(plm_shape_dim(g, out[0].dim[i], err));
    }
    if (open >= 0)
        return open_dim(g, k, sym, others, &out[0].dim[open], err);
    if (sym != PLM_DIM_NONE || others != k)
        return plm_fail(err, PLM_E_INVALID, "new dims: %lld elements, the input has %s%lld",
                        (long long)others, sym != PLM_DIM_NONE ? "a symbolic dim times " : "",
                        (long long)k);
    return PLM_OK;
}

/* ---- rows ---- */

plm_status plm_shape_repeat(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    int64_t count;
    PLM_TRY(plm_shape_need(g, n, PLM_ATTR_COUNT, 1, INT32_MAX, &count, err));
    return change_axis(g, n, PLM_DIM_MUL, count, out, err);
}

/* x of any rank: the rows are its first dim. */
plm_status plm_shape_gather(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    const plm_value *x = plm_shape_input(g, n, 0), *rows = plm_shape_input(g, n, 1);
    if (x->rank == 0 || rows->rank != 1 || !plm_shape_is_index(rows->dtype))
        return plm_fail(err, PLM_E_INVALID, "input 1: must be a list of integers, and input 0 have "
                        "rows");
    copy_shape(x, &out[0]);
    out[0].dim[0] = rows->dim[0];
    return PLM_OK;
}

plm_status plm_shape_top_k(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    plm_bind b;
    int64_t k;
    plm_bind_init(&b);
    PLM_TRY(plm_bind_match(&b, g, n, ".n", err));
    int64_t width = plm_dim_value(&g->dims, b.dim['n']);
    PLM_TRY(plm_shape_need(g, n, PLM_ATTR_TOP_K, 1, width < 0 ? INT32_MAX : width, &k, err));
    PLM_TRY(plm_bind_const(&b, g, 'K', k, err));
    return plm_bind_result(&b, g, n, ".K #.K", out, err);
}

/* ---- links ---- */

plm_status plm_shape_all_gather(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    int64_t ranks;
    PLM_TRY(plm_shape_need(g, n, PLM_ATTR_RANKS, 1, INT32_MAX, &ranks, err));
    return change_axis(g, n, PLM_DIM_MUL, ranks, out, err);
}

/* A constant dim must divide evenly; of a symbolic one each rank holds the rounded-up share. */
plm_status plm_shape_reduce_scatter(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    uint32_t axis;
    int64_t ranks;
    PLM_TRY(plm_shape_need(g, n, PLM_ATTR_RANKS, 1, INT32_MAX, &ranks, err));
    PLM_TRY(find_axis(g, n, &axis, err));
    int64_t have = plm_dim_value(&g->dims, plm_shape_input(g, n, 0)->dim[axis]);
    if (have >= 0 && have % ranks != 0)
        return plm_fail(err, PLM_E_INVALID, "ranks, %lld: must divide the dim of %lld",
                        (long long)ranks, (long long)have);
    return change_axis(g, n, PLM_DIM_CEILDIV, ranks, out, err);
}

/* Balanced: a rank receives as many rows as it sends; imbalance is the batch's matter. */
plm_status plm_shape_all_to_all(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    const plm_value *x = plm_shape_input(g, n, 0);
    if (x->rank < 2)
        return plm_fail(err, PLM_E_INVALID, "input 0: rank %u, must be rows", x->rank);
    copy_shape(x, &out[0]);
    return PLM_OK;
}
