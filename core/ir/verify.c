#include <stdio.h>
#include <string.h>

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/ir/op.h"
#include "core/ir/rules.h"

static plm_status check_inputs(const plm_graph *g, const plm_node *n, plm_error *err)
{
    const plm_op_info *op = plm_op_get(n->op);
    if (n->n_in < op->min_in || n->n_in > op->max_in)
        return plm_fail(err, PLM_E_INVALID, "inputs, %u: must be %u to %u", n->n_in, op->min_in,
                        op->max_in);
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (n->in[i] == PLM_NONE ? i < op->min_in : n->in[i] >= g->n_values)
            return plm_fail(err, PLM_E_INVALID, "input %u: %s", i,
                            n->in[i] == PLM_NONE ? "missing" : "no value of this graph");
    }
    return PLM_OK;
}

plm_status plm_node_check(const plm_graph *g, const plm_node *n, plm_error *err)
{
    PLM_TRY(check_inputs(g, n, err));
    return plm_attrs_check(g, n, err);
}

/* ---- the whole graph ---- */

/* In place of a writer, once the value was met in the list of outputs. */
#define LISTED (PLM_NONE - 1)

typedef struct verifier {
    const plm_graph *g;
    plm_graph scratch;   /* g with a pool of dims of its own, which shape rules may add to */
    plm_node_id *writer; /* by value: the node that overwrote this version of a state */
    plm_map names;
    plm_error *err;
} verifier;

static plm_status check_dims(const plm_dims *p, plm_error *err)
{
    for (size_t i = 0; i < PLM_SYM_COUNT; i++)
        if (p->lo[i] < 0 || p->lo[i] > p->hi[i])
            return plm_fail(err, PLM_E_INVALID, "symbol %zu: bounds must be 0 <= lo <= hi", i);
    for (size_t i = 0; i < p->count; i++) {
        const plm_dim_node *n = &p->items[i];
        bool ok;
        if (n->op == PLM_DIM_CONST)
            ok = n->k >= 0;
        else if (n->op == PLM_DIM_SYM)
            ok = n->k >= 0 && n->k < PLM_SYM_COUNT;
        else
            ok = (unsigned)n->op <= PLM_DIM_MAX && n->a < i && n->b < i;
        if (!ok)
            return plm_fail(err, PLM_E_INVALID, "dim %zu: not an expression of earlier ones", i);
    }
    return PLM_OK;
}

static plm_status add_name(verifier *v, const char *name, const char *what)
{
    uint32_t old = 0;
    plm_map_put put = plm_map_add(&v->names, name, strlen(name), &old);
    if (put == PLM_PUT_FULL)
        return plm_fail_memory(v->err, "names of a graph");
    if (put == PLM_PUT_OLD)
        return plm_fail(v->err, PLM_E_INVALID, "%s %s: two have this name", what, name);
    return PLM_OK;
}

static plm_status check_weight(verifier *v, plm_value_id id)
{
    const plm_value *x = &v->g->values[id];
    int64_t bytes;
    for (uint32_t i = 0; i < x->rank; i++)
        if (plm_dim_value(&v->g->dims, x->dim[i]) < 0)
            return plm_fail(v->err, PLM_E_INVALID, "weight %s, dim %u: must be a constant", x->name,
                            i);
    plm_status status = plm_value_bytes(v->g, id, NULL, &bytes, v->err);
    if (status != PLM_OK) {
        char where[PLM_NAME_MAX + 16];
        snprintf(where, sizeof where, "weight %s", x->name);
        return plm_fail_in(v->err, status, where);
    }
    return PLM_OK;
}

static bool made_by(const plm_graph *g, plm_node_id node, plm_value_id value)
{
    if (node >= g->n_nodes)
        return false;
    for (uint32_t i = 0; i < g->nodes[node].n_out && i < PLM_OUT_MAX; i++)
        if (g->nodes[node].out[i] == value)
            return true;
    return false;
}

static plm_status check_value(verifier *v, plm_value_id id)
{
    const plm_graph *g = v->g;
    const plm_value *x = &g->values[id];
    if ((unsigned)x->kind > PLM_VALUE_NODE || (unsigned)x->role >= PLM_ROLE_COUNT ||
        (unsigned)x->dtype >= PLM_DT_COUNT || x->rank > PLM_RANK_MAX || x->layer < -1)
        return plm_fail(v->err, PLM_E_INVALID, "value %u: kind, role, dtype, rank or layer is none",
                        id);
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->dim[i] >= g->dims.count)
            return plm_fail(v->err, PLM_E_INVALID, "value %u, dim %u: not in the pool", id, i);
    if (x->kind == PLM_VALUE_NODE) {
        if (!made_by(g, x->producer, id))
            return plm_fail(v->err, PLM_E_INVALID, "value %u: its producer does not make it", id);
        return PLM_OK;
    }
    if (x->producer != PLM_NONE || x->alias != PLM_NONE)
        return plm_fail(v->err, PLM_E_INVALID, "value %u: only values of nodes have a producer or "
                        "an alias", id);
    if (!plm_name_valid(x->name))
        return plm_fail(v->err, PLM_E_INVALID, "value %u: needs a name of letters, digits or "
                        "\"._-/\"", id);
    PLM_TRY(add_name(v, x->name, "value"));
    return x->kind == PLM_VALUE_WEIGHT ? check_weight(v, id) : PLM_OK;
}

/* ---- nodes ---- */

/* Topological order, and no read of a state that an earlier node has overwritten. */
static plm_status check_reads(verifier *v, plm_node_id id, plm_error *err)
{
    const plm_node *n = &v->g->nodes[id];
    for (uint32_t i = 0; i < n->n_in; i++) {
        plm_value_id in = n->in[i];
        if (in == PLM_NONE)
            continue;
        const plm_value *x = &v->g->values[in];
        if (x->kind == PLM_VALUE_NODE && x->producer >= id)
            return plm_fail(err, PLM_E_INVALID, "input %u, order: made by node %u, must be an "
                            "earlier one", i, x->producer);
        if (v->writer[in] != PLM_NONE)
            return plm_fail(err, PLM_E_INVALID, "input %u, state: node %u has overwritten this "
                            "version; read the next one", i, v->writer[in]);
    }
    return PLM_OK;
}

static bool is_state(const plm_value *x)
{
    return x->kind == PLM_VALUE_STATE || (x->kind == PLM_VALUE_NODE && x->alias != PLM_NONE);
}

static plm_status check_write(verifier *v, plm_node_id id, plm_value_id state, plm_error *err)
{
    if (!is_state(&v->g->values[state]))
        return plm_fail(err, PLM_E_INVALID, "state: value %u is written but is no state", state);
    if (v->writer[state] != PLM_NONE)
        return plm_fail(err, PLM_E_INVALID, "state: value %u is written twice", state);
    v->writer[state] = id;
    return PLM_OK;
}

/* What the shape rule says of output i against what the graph holds. */
static plm_status check_out(verifier *v, plm_node_id id, uint32_t i, const plm_value *want,
                            plm_error *err)
{
    const plm_node *n = &v->g->nodes[id];
    const plm_value *x = &v->g->values[n->out[i]];
    const char *rule = x->rank != want->rank    ? "rank"
                       : x->dtype != want->dtype ? "dtype"
                       : x->alias != want->alias ? "alias"
                       : x->role != want->role   ? "role"
                       : x->layer != n->layer    ? "layer"
                                                 : NULL;
    for (uint32_t d = 0; rule == NULL && d < x->rank; d++)
        if (x->dim[d] != want->dim[d])
            rule = "shape";
    if (rule != NULL)
        return plm_fail(err, PLM_E_INVALID, "output %u, %s: not what the op's rule makes it", i,
                        rule);
    return want->alias == PLM_NONE ? PLM_OK : check_write(v, id, want->alias, err);
}

static plm_status check_outs(verifier *v, plm_node_id id, plm_error *err)
{
    const plm_graph *g = v->g;
    plm_node n = g->nodes[id];
    if (n.n_out < 1 || n.n_out > PLM_OUT_MAX)
        return plm_fail(err, PLM_E_INVALID, "outputs, %u: must be 1 to %d", n.n_out, PLM_OUT_MAX);
    for (uint32_t i = 0; i < n.n_out; i++) {
        if (n.out[i] >= g->n_values || g->values[n.out[i]].kind != PLM_VALUE_NODE ||
            g->values[n.out[i]].producer != id)
            return plm_fail(err, PLM_E_INVALID, "output %u: no value that this node makes", i);
        for (uint32_t j = 0; j < i; j++)
            if (n.out[i] == n.out[j])
                return plm_fail(err, PLM_E_INVALID, "output %u: the same value as output %u", i, j);
    }
    plm_value want[PLM_OUT_MAX];
    uint8_t n_out = n.n_out;
    PLM_TRY(plm_node_infer(&v->scratch, &n, g->values[n.out[0]].dtype, want, err));
    if (n.n_out != n_out)
        return plm_fail(err, PLM_E_INVALID, "outputs, %u: must be %u", n_out, n.n_out);
    for (uint32_t i = 0; i < n_out; i++)
        PLM_TRY(check_out(v, id, i, &want[i], err));
    return PLM_OK;
}

static plm_status check_node(verifier *v, plm_node_id id)
{
    const plm_node *n = &v->g->nodes[id];
    if ((unsigned)n->op >= PLM_OP_COUNT || n->layer < -1)
        return plm_fail(v->err, PLM_E_INVALID, "node %u: op or layer is none", id);
    plm_status status = check_inputs(v->g, n, v->err);
    if (status == PLM_OK)
        status = check_reads(v, id, v->err);
    if (status == PLM_OK)
        status = check_outs(v, id, v->err);
    if (status == PLM_OK)
        return PLM_OK;
    char where[64];
    snprintf(where, sizeof where, "node %u, %s", id, plm_op_get(n->op)->name);
    return plm_fail_in(v->err, status, where);
}

/* Each output once, none of it overwritten; the names that nodes' values carry differ. */
static plm_status check_outputs(verifier *v)
{
    const plm_graph *g = v->g;
    for (size_t i = 0; i < g->n_outputs; i++) {
        plm_value_id id = g->outputs[i];
        if (id >= g->n_values)
            return plm_fail(v->err, PLM_E_INVALID, "output %zu: no value of this graph", i);
        if (v->writer[id] == LISTED)
            return plm_fail(v->err, PLM_E_INVALID, "output %zu: listed before", i);
        if (v->writer[id] != PLM_NONE)
            return plm_fail(v->err, PLM_E_INVALID, "output %zu: node %u has overwritten this "
                            "version of the state", i, v->writer[id]);
        v->writer[id] = LISTED;
    }
    plm_map_fini(&v->names);
    plm_map_init(&v->names, PLM_GRAPH_VALUES_MAX);
    for (size_t i = 0; i < g->n_values; i++) {
        const plm_value *x = &g->values[i];
        if (x->kind != PLM_VALUE_NODE || x->name == NULL)
            continue;
        if (!plm_name_valid(x->name))
            return plm_fail(v->err, PLM_E_INVALID, "value %zu: its name is none", i);
        PLM_TRY(add_name(v, x->name, "output"));
    }
    return PLM_OK;
}

/* ---- entry ---- */

static plm_status open_verifier(verifier *v, const plm_graph *g, plm_error *err)
{
    const plm_dims *from = &g->dims;
    plm_dims *to = &v->scratch.dims;
    memset(v, 0, sizeof *v);
    v->g = g;
    v->err = err;
    v->scratch = *g;
    plm_map_init(&v->names, PLM_GRAPH_VALUES_MAX);
    to->room = from->count;
    to->no_memory = false;
    to->items = plm_calloc(from->count, sizeof *to->items);
    to->table = plm_calloc(from->table_room, sizeof *to->table);
    v->writer = plm_calloc(g->n_values, sizeof *v->writer);
    if (to->items == NULL || to->table == NULL || v->writer == NULL)
        return plm_fail_memory(err, "the verifier of a graph");
    if (from->count > 0)
        memcpy(to->items, from->items, from->count * sizeof *to->items);
    if (from->table_room > 0)
        memcpy(to->table, from->table, from->table_room * sizeof *to->table);
    for (size_t i = 0; i < g->n_values; i++)
        v->writer[i] = PLM_NONE;
    return PLM_OK;
}

plm_status plm_graph_verify(const plm_graph *g, plm_error *err)
{
    verifier v;
    plm_error own;
    err = err != NULL ? err : &own; /* plm_fail_in needs the text that it prefixes */
    PLM_TRY(check_dims(&g->dims, err));
    plm_status status = open_verifier(&v, g, err);
    for (size_t i = 0; status == PLM_OK && i < g->n_values; i++)
        status = check_value(&v, (plm_value_id)i);
    for (size_t i = 0; status == PLM_OK && i < g->n_nodes; i++)
        status = check_node(&v, (plm_node_id)i);
    if (status == PLM_OK)
        status = check_outputs(&v);
    plm_map_fini(&v.names);
    plm_free(v.scratch.dims.items);
    plm_free(v.scratch.dims.table);
    plm_free(v.writer);
    return status;
}
