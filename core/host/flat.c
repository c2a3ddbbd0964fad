/* flat.c - planned graph -> the view of the contract. */
#include "core/host/flat.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/host/flat_numbers.h"
#include "core/ir/rules.h"

plm_dtype plm_flat_dtype(uint32_t number)
{
    return number < PLM_BACKEND_DTYPES ? dtype_of_number[number] : PLM_DT_COUNT;
}

uint32_t plm_flat_dtype_number(plm_dtype t)
{
    return dtype_number[t] - 1;
}

uint32_t plm_flat_op_number(plm_op op)
{
    return op_number[op] - 1;
}

uint32_t plm_flat_attr_number(plm_attr_key key)
{
    return attr_number[key] - 1;
}

/* ---- strides ---- */

static plm_status fail_layout(const plm_graph *g, plm_value_id v, const char *why, plm_error *err)
{
    plm_node_id n = g->values[v].producer;
    return plm_fail(err, PLM_E_UNSUPPORTED, "layout, value %u (%s): %s; change the graph", v,
                    n == PLM_NONE ? "made by no node" : plm_op_get(g->nodes[n].op)->name, why);
}

/* Strides of a value without gaps. Only the outermost dim may depend on the step. */
static plm_status dense_strides(const plm_graph *g, plm_value_id v, int64_t *stride, plm_error *err)
{
    const plm_value *x = &g->values[v];
    int64_t at = 1;
    for (uint32_t i = x->rank; i-- > 0;) {
        stride[i] = at;
        int64_t n = i > 0 ? plm_dim_value(&g->dims, x->dim[i]) : 1;
        if (n < 0)
            return fail_layout(g, v, "a dim inside a row depends on the step", err);
        if (!plm_mul_i64(at, plm_max_i64(n, 1), &at))
            return fail_layout(g, v, "has more than 2^63 elements", err);
    }
    return PLM_OK;
}

static bool is_dense(const plm_graph *g, plm_value_id v, const plm_backend_value *f)
{
    int64_t want[PLM_RANK_MAX];
    if (dense_strides(g, v, want, NULL) != PLM_OK)
        return false;
    for (uint32_t i = 0; i < f->rank; i++)
        if (want[i] != f->stride[i] && plm_dim_value(&g->dims, g->values[v].dim[i]) != 1)
            return false;
    return true;
}

/* Strides of `out` over the elements of a view `from` whose rows have gaps: each run of new dims must
** cover a run of old ones that lie without gaps. Dims are constants from index `first` on. */
static bool split_strides(const plm_graph *g, const plm_value *in, const int64_t *from,
                          const plm_value *out, int64_t *to, uint32_t first)
{
    uint32_t i = first, j = first;
    while (i < in->rank && j < out->rank) {
        uint32_t i_end = i, j_end = j;
        int64_t a = plm_dim_value(&g->dims, in->dim[i_end++]);
        int64_t b = plm_dim_value(&g->dims, out->dim[j_end++]);
        if (a < 1 || b < 1)
            return false;
        while (a != b) {
            bool more_in = a < b;
            if (more_in ? i_end >= in->rank : j_end >= out->rank)
                return false;
            int64_t n = plm_dim_value(&g->dims, more_in ? in->dim[i_end++] : out->dim[j_end++]);
            if (n < 1 || !plm_mul_i64(more_in ? a : b, n, more_in ? &a : &b))
                return false;
        }
        for (uint32_t k = i; k + 1 < i_end; k++)
            if (from[k] != from[k + 1] * plm_dim_value(&g->dims, in->dim[k + 1]))
                return false;
        to[j_end - 1] = from[i_end - 1];
        for (uint32_t k = j_end - 1; k > j; k--)
            to[k - 1] = to[k] * plm_dim_value(&g->dims, out->dim[k]);
        i = i_end;
        j = j_end;
    }
    for (; i < in->rank; i++)
        if (plm_dim_value(&g->dims, in->dim[i]) != 1)
            return false;
    for (; j < out->rank; j++) {
        if (plm_dim_value(&g->dims, out->dim[j]) != 1)
            return false;
        to[j] = 1;
    }
    return true;
}

static plm_status reshape_strides(const plm_graph *g, plm_value_id from, plm_value_id v,
                                  const plm_backend_value *in, plm_backend_value *out,
                                  plm_error *err)
{
    const plm_value *a = &g->values[from], *b = &g->values[v];
    out->start = in->start;
    if (is_dense(g, from, in))
        return dense_strides(g, v, out->stride, err);
    bool same_rows = a->dim[0] == b->dim[0];
    out->stride[0] = in->stride[0];
    if (!split_strides(g, a, in->stride, b, out->stride, same_rows ? 1 : 0))
        return fail_layout(g, v, "a reshape of a view whose elements do not lie together", err);
    return PLM_OK;
}

/* Storage, strides and offset of what node n makes. */
static plm_status lay_output(const plm_graph *g, const plm_node *n, plm_value_id v,
                             const plm_memory_plan *plan, plm_backend_value *values, plm_error *err)
{
    const plm_value *x = &g->values[v];
    plm_backend_value *f = &values[v];
    bool view = (plm_op_get(n->op)->flags & PLM_OPF_VIEW) != 0;
    plm_value_id from = x->alias != PLM_NONE ? x->alias : view ? n->in[0] : PLM_NONE;
    f->storage = v;
    f->slot = 0;
    if (from == PLM_NONE) {
        if (plan->offset[v] < 0)
            return fail_layout(g, v, "the memory plan has no place for it", err);
        f->offset = (uint64_t)plan->offset[v];
        return dense_strides(g, v, f->stride, err);
    }
    const plm_backend_value *s = &values[from];
    f->storage = s->storage;
    f->slot = s->slot;
    f->planes = s->planes;
    f->pieces = s->pieces;
    f->offset = s->offset;
    f->start = s->start;
    if (!view) {
        memcpy(f->stride, s->stride, sizeof f->stride);
        return PLM_OK;
    }
    if (n->op == PLM_OP_RESHAPE)
        return reshape_strides(g, from, v, s, f, err);
    int64_t axis = plm_attr_int(g, n, PLM_ATTR_AXIS, 0), start;
    memcpy(f->stride, s->stride, sizeof f->stride);
    axis += axis < 0 ? (int64_t)x->rank : 0;
    if (axis < 0 || axis >= (int64_t)x->rank ||
        !plm_mul_i64(plm_attr_int(g, n, PLM_ATTR_START, 0), s->stride[axis], &start) ||
        !plm_add_i64(s->start, start, &f->start))
        return fail_layout(g, v, "a slice outside its source", err);
    return PLM_OK;
}

/* ---- arrays ---- */

static plm_status lay_values(const plm_graph *g, const plm_memory_plan *plan,
                             const plm_flat_binding *binding, plm_flat *f, plm_error *err)
{
    uint64_t slots = 1;
    for (plm_value_id v = 0; v < g->n_values; v++) {
        const plm_value *x = &g->values[v];
        plm_backend_value *y = &f->values[v];
        *y = (plm_backend_value){.dtype = plm_flat_dtype_number(x->dtype),
                                 .kind = (uint32_t)x->kind,
                                 .rank = x->rank,
                                 .producer = x->producer,
                                 .storage = v,
                                 .planes = 1,
                                 .pieces = 1,
                                 .layer = x->layer,
                                 .name = x->name};
        for (uint32_t i = 0; i < x->rank; i++)
            y->dim[i] = x->dim[i];
        if (x->kind == PLM_VALUE_NODE)
            continue;
        if (binding != NULL && x->kind == PLM_VALUE_WEIGHT && binding[v].planes > 0) {
            y->planes = binding[v].planes;
            y->pieces = binding[v].pieces;
        }
        y->slot = (uint32_t)slots;
        slots += (uint64_t)y->planes * y->pieces;
        if (slots >= PLM_BACKEND_NONE)
            return plm_fail(err, PLM_E_LIMIT, "layout: more than 2^32 pieces of weights");
        PLM_TRY(dense_strides(g, v, y->stride, err));
    }
    f->view.n_slots = (uint32_t)slots;
    for (plm_node_id i = 0; i < g->n_nodes; i++)
        for (uint32_t j = 0; j < g->nodes[i].n_out; j++)
            PLM_TRY(lay_output(g, &g->nodes[i], g->nodes[i].out[j], plan, f->values, err));
    for (size_t i = 0; i < g->n_outputs; i++)
        f->values[g->outputs[i]].flags |= PLM_BACKEND_VALUE_OUTPUT;
    return PLM_OK;
}

static void lay_nodes(const plm_graph *g, plm_flat *f)
{
    uint32_t edge = 0;
    for (plm_node_id i = 0; i < g->n_nodes; i++) {
        const plm_node *n = &g->nodes[i];
        f->nodes[i] = (plm_backend_node){.op = plm_flat_op_number(n->op),
                                         .in = edge,
                                         .n_in = n->n_in,
                                         .out = edge + n->n_in,
                                         .n_out = n->n_out,
                                         .attr = n->attr,
                                         .n_attr = n->n_attr,
                                         .group = n->group == 0 ? PLM_BACKEND_NONE : n->group - 1,
                                         .numerics = PLM_BACKEND_NONE,
                                         .layer = n->layer};
        for (uint32_t j = 0; j < n->n_in; j++)
            f->edges[edge++] = n->in[j];
        for (uint32_t j = 0; j < n->n_out; j++)
            f->edges[edge++] = n->out[j];
    }
    for (size_t i = 0; i < g->n_attrs; i++) {
        uint32_t key = plm_flat_attr_number(g->attrs[i].key);
        f->attrs[i] = (plm_backend_attr){.key = key};
        if (plm_attr_type(g->attrs[i].key) == 'F')
            f->attrs[i].f = g->attrs[i].v.f;
        else
            f->attrs[i].i = g->attrs[i].v.i;
    }
    for (size_t i = 0; i < g->dims.count; i++) {
        const plm_dim_node *d = &g->dims.items[i];
        f->dims[i] =
            (plm_backend_dim){.op = (uint32_t)d->op, .a = d->a, .b = d->b, .k = d->k};
    }
}

/* What core/ir has gained since the contract was last extended. */
static plm_status check_numbers(const plm_graph *g, plm_error *err)
{
    const char *what = NULL;
    for (size_t i = 0; i < g->n_nodes; i++)
        if (plm_flat_op_number(g->nodes[i].op) == PLM_BACKEND_NONE)
            what = plm_op_get(g->nodes[i].op)->name;
    for (size_t i = 0; i < g->n_values; i++)
        if (plm_flat_dtype_number(g->values[i].dtype) == PLM_BACKEND_NONE)
            what = plm_dtype_get(g->values[i].dtype)->name;
    for (size_t i = 0; i < g->n_attrs; i++)
        if (plm_flat_attr_number(g->attrs[i].key) == PLM_BACKEND_NONE)
            what = plm_attr_name(g->attrs[i].key);
    if (what != NULL)
        return plm_fail(err, PLM_E_UNSUPPORTED, "graph, %s: has no number in plimsoll/backend.h; append "
                        "one", what);
    return PLM_OK;
}

static size_t count_edges(const plm_graph *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++)
        n += (size_t)g->nodes[i].n_in + g->nodes[i].n_out;
    return n;
}

plm_status plm_flat_make(const plm_graph *g, const plm_memory_plan *plan,
                         const plm_flat_binding *binding, uint32_t block_tokens, plm_flat *out,
                         plm_error *err)
{
    size_t edges = count_edges(g);
    *out = (plm_flat){.values = plm_calloc(g->n_values + 1, sizeof *out->values),
                      .nodes = plm_calloc(g->n_nodes + 1, sizeof *out->nodes),
                      .dims = plm_calloc(g->dims.count + 1, sizeof *out->dims),
                      .attrs = plm_calloc(g->n_attrs + 1, sizeof *out->attrs),
                      .edges = plm_calloc(edges + 1, sizeof *out->edges),
                      .sym_max = plm_calloc(PLM_SYM_COUNT, sizeof *out->sym_max)};
    if (out->values == NULL || out->nodes == NULL || out->dims == NULL || out->attrs == NULL ||
        out->edges == NULL || out->sym_max == NULL)
        return plm_fail_memory(err, "the flat graph");
    PLM_TRY(check_numbers(g, err));
    PLM_TRY(lay_values(g, plan, binding, out, err));
    lay_nodes(g, out);
    memcpy(out->sym_max, g->dims.hi, PLM_SYM_COUNT * sizeof *out->sym_max);
    uint32_t slots = out->view.n_slots;
    out->view = (plm_backend_graph){.struct_size = sizeof out->view,
                                    .n_values = (uint32_t)g->n_values,
                                    .n_nodes = (uint32_t)g->n_nodes,
                                    .n_dims = (uint32_t)g->dims.count,
                                    .n_edges = (uint32_t)edges,
                                    .n_attrs = (uint32_t)g->n_attrs,
                                    .value_stride = sizeof *out->values,
                                    .node_stride = sizeof *out->nodes,
                                    .dim_stride = sizeof *out->dims,
                                    .attr_stride = sizeof *out->attrs,
                                    .values = out->values,
                                    .nodes = out->nodes,
                                    .dims = out->dims,
                                    .edges = out->edges,
                                    .attrs = out->attrs,
                                    .n_slots = slots,
                                    .n_syms = PLM_SYM_COUNT,
                                    .sym_max = out->sym_max,
                                    .arena_bytes = (uint64_t)plan->peak_bytes,
                                    .block_tokens = block_tokens};
    return PLM_OK;
}

void plm_flat_fini(plm_flat *f)
{
    plm_free(f->values);
    plm_free(f->nodes);
    plm_free(f->dims);
    plm_free(f->attrs);
    plm_free(f->edges);
    plm_free(f->sym_max);
    *f = (plm_flat){0};
}

/* ---- back ---- */

static plm_status fail_view(const char *what, uint32_t i, plm_status code, plm_error *err)
{
    return plm_fail(err, code, "graph view, %s %u: %s; %s", what, i,
                    code == PLM_E_UNSUPPORTED ? "has a number that this build does not know"
                                              : "points outside the view",
                    code == PLM_E_UNSUPPORTED ? "use a newer one" : "correct the host");
}

static plm_status take_values(const plm_backend_graph *v, plm_graph *g, plm_error *err)
{
    for (uint32_t i = 0; i < v->n_values; i++) {
        const plm_backend_value *x = PLM_AT(plm_backend_value, v->values, v->value_stride, i);
        plm_value *y = &g->values[i];
        *y = (plm_value){.kind = (plm_value_kind)x->kind,
                         .dtype = plm_flat_dtype(x->dtype),
                         .layer = x->layer,
                         .rank = x->rank,
                         .producer = x->producer,
                         .alias = x->storage == i ? PLM_NONE : x->storage};
        if (y->dtype == PLM_DT_COUNT || x->kind > PLM_BACKEND_MADE)
            return fail_view("value", i, PLM_E_UNSUPPORTED, err);
        if (x->rank > PLM_RANK_MAX || x->storage >= v->n_values ||
            (x->producer != PLM_BACKEND_NONE && x->producer >= v->n_nodes))
            return fail_view("value", i, PLM_E_INVALID, err);
        for (uint32_t j = 0; j < x->rank; j++) {
            y->dim[j] = x->dim[j];
            if (x->dim[j] >= v->n_dims)
                return fail_view("value", i, PLM_E_INVALID, err);
        }
        g->n_values++;
    }
    return PLM_OK;
}

static plm_status take_nodes(const plm_backend_graph *v, plm_graph *g, plm_error *err)
{
    for (uint32_t i = 0; i < v->n_nodes; i++) {
        const plm_backend_node *x = PLM_AT(plm_backend_node, v->nodes, v->node_stride, i);
        plm_node *y = &g->nodes[i];
        if (x->op >= PLM_BACKEND_OPS)
            return fail_view("node", i, PLM_E_UNSUPPORTED, err);
        if (x->n_in > PLM_IN_MAX || x->n_out > PLM_OUT_MAX || x->n_in > v->n_edges ||
            x->in > v->n_edges - x->n_in || x->n_out > v->n_edges ||
            x->out > v->n_edges - x->n_out || x->n_attr > v->n_attrs ||
            x->attr > v->n_attrs - x->n_attr)
            return fail_view("node", i, PLM_E_INVALID, err);
        *y = (plm_node){.op = op_of_number[x->op],
                        .layer = x->layer,
                        .group = x->group == PLM_BACKEND_NONE ? 0 : x->group + 1,
                        .n_in = (uint8_t)x->n_in,
                        .n_out = (uint8_t)x->n_out,
                        .n_attr = (uint16_t)x->n_attr,
                        .attr = x->attr};
        for (uint32_t j = 0; j < x->n_in; j++) {
            y->in[j] = v->edges[x->in + j];
            if (y->in[j] != PLM_NONE && y->in[j] >= v->n_values)
                return fail_view("node", i, PLM_E_INVALID, err);
        }
        for (uint32_t j = 0; j < x->n_out; j++) {
            y->out[j] = v->edges[x->out + j];
            if (y->out[j] >= v->n_values)
                return fail_view("node", i, PLM_E_INVALID, err);
        }
        g->n_nodes++;
    }
    return PLM_OK;
}

static plm_status take_attrs(const plm_backend_graph *v, plm_graph *g, plm_error *err)
{
    for (uint32_t i = 0; i < v->n_attrs; i++) {
        const plm_backend_attr *x = PLM_AT(plm_backend_attr, v->attrs, v->attr_stride, i);
        if (x->key >= PLM_BACKEND_ATTRS)
            return fail_view("attribute", i, PLM_E_UNSUPPORTED, err);
        g->attrs[i].key = attr_of_number[x->key];
        if (attr_kind[x->key] == 'F')
            g->attrs[i].v.f = x->f;
        else
            g->attrs[i].v.i = x->i;
        g->n_attrs++;
    }
    return PLM_OK;
}

plm_status plm_flat_graph(const plm_backend_graph *v, plm_graph *out, plm_error *err)
{
    plm_status status = PLM_OK;
    plm_graph_init(out);
    out->values = plm_calloc((size_t)v->n_values + 1, sizeof *out->values);
    out->nodes = plm_calloc((size_t)v->n_nodes + 1, sizeof *out->nodes);
    out->attrs = plm_calloc((size_t)v->n_attrs + 1, sizeof *out->attrs);
    out->dims.items = plm_calloc((size_t)v->n_dims + 1, sizeof *out->dims.items);
    if (out->values == NULL || out->nodes == NULL || out->attrs == NULL ||
        out->dims.items == NULL) {
        status = plm_fail_memory(err, "the graph of a view");
        goto done;
    }
    for (uint32_t i = 0; i < v->n_dims; i++) {
        const plm_backend_dim *d = PLM_AT(plm_backend_dim, v->dims, v->dim_stride, i);
        bool leaf = d->op == PLM_BACKEND_DIM_CONST || d->op == PLM_BACKEND_DIM_SYM;
        if (d->op > PLM_BACKEND_DIM_MAX || (!leaf && (d->a >= i || d->b >= i)) ||
            (d->op == PLM_BACKEND_DIM_SYM && (d->k < 0 || d->k >= PLM_SYM_COUNT))) {
            status = fail_view("dim", i, PLM_E_INVALID, err);
            goto done;
        }
        out->dims.items[i] = (plm_dim_node){(plm_dim_op)d->op, d->a, d->b, d->k};
        out->dims.count++;
    }
    for (uint32_t i = 0; i < PLM_SYM_COUNT && i < v->n_syms; i++)
        out->dims.hi[i] = v->sym_max[i];
    PLM_GOTO(take_values(v, out, err));
    PLM_GOTO(take_nodes(v, out, err));
    PLM_GOTO(take_attrs(v, out, err));
done:
    if (status != PLM_OK)
        plm_graph_fini(out);
    return status;
}
