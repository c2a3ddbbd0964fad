#include "core/ir/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/vec.h"
#include "core/ir/op.h"
#include "core/ir/rules.h"

/* Names of the largest graphs take some 10 MB. */
#define NAMES_MAX_BYTES ((size_t)128 << 20)
/* pending.op while no node is open. */
#define NO_OP PLM_OP_COUNT

void plm_graph_init(plm_graph *g)
{
    memset(g, 0, sizeof *g);
    plm_arena_init(&g->arena, NAMES_MAX_BYTES);
    plm_dims_init(&g->dims);
    g->layer = -1;
    g->pending.op = NO_OP;
}

void plm_graph_fini(plm_graph *g)
{
    plm_arena_fini(&g->arena);
    plm_dims_fini(&g->dims);
    plm_free(g->values);
    plm_free(g->nodes);
    plm_free(g->attrs);
    plm_free(g->outputs);
    plm_graph_init(g);
}

/* ---- growing ---- */

/* Room for one more; the failure is that of memory or of the maximum. */
static bool grow(plm_graph *g, void **items, size_t *room, size_t count, size_t each, size_t max,
                 const char *what)
{
    if (plm_vec_grow(items, room, count, each, max))
        return true;
    if (count >= max)
        plm_fail(&g->error, PLM_E_LIMIT, "graph, %s: more than %zu", what, max);
    else
        plm_fail_memory(&g->error, "a graph");
    return false;
}

static plm_value_id add_value(plm_graph *g, const plm_value *v)
{
    if (!grow(g, (void **)&g->values, &g->room_values, g->n_values, sizeof *v,
              PLM_GRAPH_VALUES_MAX, "values"))
        return PLM_NONE;
    g->values[g->n_values] = *v;
    return (plm_value_id)g->n_values++;
}

/* A letter of ASCII, a digit, or one of "._-/" (- . / and the digits are neighbours). */
static bool name_char(unsigned char c)
{
    return (unsigned)(c | 32) - 'a' < 26 || (unsigned)c - '-' < 13 || c == '_';
}

bool plm_name_valid(const char *name)
{
    size_t n = 0;
    while (name != NULL && n <= PLM_NAME_MAX && name_char((unsigned char)name[n]))
        n++;
    return n > 0 && n <= PLM_NAME_MAX && name[n] == '\0';
}

/* Copies a name into the arena; NULL and a sticky error when it is no name or memory is short. */
static const char *keep_name(plm_graph *g, const char *name)
{
    if (!plm_name_valid(name)) {
        plm_fail(&g->error, PLM_E_INVALID,
                 "graph, name '%.40s': must be 1 to %d letters, digits or \"._-/\"",
                 name ? name : "(none)", PLM_NAME_MAX);
        return NULL;
    }
    const char *kept = plm_arena_text(&g->arena, name, strlen(name));
    if (kept == NULL)
        plm_fail_memory(&g->error, "names of a graph");
    return kept;
}

plm_value_id plm_graph_value(plm_graph *g, plm_value_kind kind, plm_role role, plm_dtype dtype,
                             const char *name, uint32_t rank, const plm_dim *dim)
{
    if (g->error.code != PLM_OK)
        return PLM_NONE;
    plm_value v = {.kind = kind, .dtype = dtype, .role = role, .layer = g->layer, .rank = rank,
                   .producer = PLM_NONE, .alias = PLM_NONE};
    if ((unsigned)kind >= PLM_VALUE_NODE || (unsigned)role >= PLM_ROLE_COUNT ||
        (unsigned)dtype >= PLM_DT_COUNT || rank > PLM_RANK_MAX) {
        plm_fail(&g->error, PLM_E_INVALID, "graph, value %.80s: kind %d, role %d, dtype %d or "
                 "rank %u is none", name ? name : "?", (int)kind, (int)role, (int)dtype, rank);
        return PLM_NONE;
    }
    for (uint32_t i = 0; i < rank; i++) {
        v.dim[i] = dim[i];
        if (dim[i] < g->dims.count)
            continue;
        if (g->dims.no_memory)
            plm_fail_memory(&g->error, "dims of a graph");
        else
            plm_fail(&g->error, PLM_E_INVALID,
                     "graph, value %.80s: dim %u is no expression of the pool", name ? name : "?",
                     i);
        return PLM_NONE;
    }
    if ((v.name = keep_name(g, name)) == NULL)
        return PLM_NONE;
    return add_value(g, &v);
}

/* ---- nodes ---- */

/* False when the graph has failed; a call without plm_node_begin is a failure. */
static bool open_node(plm_graph *g, const char *call)
{
    if (g->error.code != PLM_OK)
        return false;
    if (g->pending.op != NO_OP)
        return true;
    plm_fail(&g->error, PLM_E_INTERNAL, "graph, %s: no node was begun", call);
    return false;
}

void plm_node_begin(plm_graph *g, plm_op op)
{
    if (g->error.code != PLM_OK)
        return;
    if (g->pending.op != NO_OP || (unsigned)op >= PLM_OP_COUNT) {
        plm_fail(&g->error, PLM_E_INTERNAL, "graph, node %zu: %s", g->n_nodes,
                 g->pending.op != NO_OP ? "begun before the last one was ended" : "no such op");
        return;
    }
    g->pending = (plm_node){.op = op, .layer = g->layer, .attr = (uint32_t)g->n_attrs};
}

void plm_node_in(plm_graph *g, plm_value_id v)
{
    if (!open_node(g, "plm_node_in"))
        return;
    plm_node *n = &g->pending;
    if (n->n_in == PLM_IN_MAX || (v != PLM_NONE && v >= g->n_values)) {
        plm_fail(&g->error, PLM_E_INVALID, "node %zu, %s: %s", g->n_nodes, plm_op_get(n->op)->name,
                 n->n_in == PLM_IN_MAX ? "too many inputs" : "input is no value of this graph");
        return;
    }
    n->in[n->n_in++] = v;
}

static void add_attr(plm_graph *g, plm_attr a)
{
    if (g->pending.n_attr > PLM_ATTR_KEYS) {
        plm_fail(&g->error, PLM_E_LIMIT, "node %zu, %s: more attributes than there are", g->n_nodes,
                 plm_op_get(g->pending.op)->name);
        return;
    }
    if (!grow(g, (void **)&g->attrs, &g->room_attrs, g->n_attrs, sizeof a,
              (size_t)PLM_GRAPH_NODES_MAX * 16, "attributes"))
        return;
    g->attrs[g->n_attrs++] = a;
    g->pending.n_attr++;
}

void plm_node_int(plm_graph *g, plm_attr_key key, int64_t v)
{
    if (open_node(g, "plm_node_int"))
        add_attr(g, (plm_attr){.key = key, .v.i = v});
}

void plm_node_real(plm_graph *g, plm_attr_key key, double v)
{
    if (open_node(g, "plm_node_real"))
        add_attr(g, (plm_attr){.key = key, .v.f = v});
}

/* Outputs as they are before the shape rule looks at them. */
static void preset_outputs(const plm_graph *g, const plm_node *n, plm_dtype first,
                           plm_value out[PLM_OUT_MAX])
{
    plm_value_id in = n->n_in > 0 ? n->in[0] : PLM_NONE;
    plm_dtype dtype = in == PLM_NONE ? PLM_DT_F32 : g->values[in].dtype;
    for (uint32_t i = 0; i < PLM_OUT_MAX; i++)
        out[i] = (plm_value){.kind = PLM_VALUE_NODE, .dtype = dtype, .layer = n->layer,
                             .producer = PLM_NONE, .alias = PLM_NONE};
    if (first != PLM_DT_COUNT)
        out[0].dtype = first;
}

/* Ops that carry elements unchanged: views, links, and copies of rows. */
static bool keeps_dtype(plm_op op)
{
    return (plm_op_get(op)->flags & (PLM_OPF_VIEW | PLM_OPF_LINK)) != 0 || op == PLM_OP_CONCAT ||
           op == PLM_OP_REPEAT || op == PLM_OP_GATHER;
}

plm_status plm_node_infer(plm_graph *g, plm_node *n, plm_dtype out_dtype,
                          plm_value out[PLM_OUT_MAX], plm_error *err)
{
    const plm_op_info *op = plm_op_get(n->op);
    PLM_TRY(plm_node_check(g, n, err));
    preset_outputs(g, n, out_dtype, out);
    if (keeps_dtype(n->op) && out[0].dtype != g->values[n->in[0]].dtype)
        return plm_fail(err, PLM_E_INVALID, "output 0, dtype: must be that of input 0");
    PLM_TRY(op->shape(g, n, out, err));
    n->n_out = op->n_out;
    while (n->n_out > 0 && out[n->n_out - 1].dtype == PLM_DT_COUNT)
        n->n_out--;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (out[i].alias != PLM_NONE) {
            out[i].role = g->values[out[i].alias].role;
            out[i].dtype = g->values[out[i].alias].dtype;
        }
    return PLM_OK;
}

/* Puts "node 12, rms_norm: " before the text of the graph's error. */
static void name_node(plm_graph *g, plm_op op)
{
    char where[64];
    snprintf(where, sizeof where, "node %zu, %s", g->n_nodes, plm_op_get(op)->name);
    plm_fail_in(&g->error, g->error.code, where);
}

plm_value_id plm_node_end(plm_graph *g, plm_dtype out_dtype)
{
    if (!open_node(g, "plm_node_end"))
        return PLM_NONE;
    plm_node n = g->pending;
    plm_value out[PLM_OUT_MAX];
    g->pending.op = NO_OP;
    if (out_dtype < 0 || out_dtype > PLM_DT_COUNT)
        plm_fail(&g->error, PLM_E_INVALID, "no such output dtype");
    if (g->error.code != PLM_OK || plm_node_infer(g, &n, out_dtype, out, &g->error) != PLM_OK) {
        name_node(g, n.op);
        return PLM_NONE;
    }
    if (!grow(g, (void **)&g->nodes, &g->room_nodes, g->n_nodes, sizeof n, PLM_GRAPH_NODES_MAX,
              "nodes"))
        return PLM_NONE;
    for (uint32_t i = 0; i < n.n_out; i++) {
        out[i].producer = (plm_node_id)g->n_nodes;
        if ((n.out[i] = add_value(g, &out[i])) == PLM_NONE)
            return PLM_NONE;
    }
    for (uint32_t i = n.n_out; i < PLM_OUT_MAX; i++)
        n.out[i] = PLM_NONE;
    for (uint32_t i = n.n_in; i < PLM_IN_MAX; i++)
        n.in[i] = PLM_NONE;
    g->nodes[g->n_nodes++] = n;
    return n.out[0];
}

plm_value_id plm_node_out(const plm_graph *g, uint32_t index)
{
    if (g->error.code != PLM_OK || g->n_nodes == 0 || index >= g->nodes[g->n_nodes - 1].n_out)
        return PLM_NONE;
    return g->nodes[g->n_nodes - 1].out[index];
}

void plm_graph_output(plm_graph *g, plm_value_id v, const char *name)
{
    if (g->error.code != PLM_OK)
        return;
    if (v >= g->n_values) {
        plm_fail(&g->error, PLM_E_INVALID, "graph, output %.80s: no such value",
                 name ? name : "?");
        return;
    }
    if (name != NULL && g->values[v].kind == PLM_VALUE_NODE && g->values[v].name == NULL) {
        const char *kept = keep_name(g, name);
        if (kept == NULL)
            return;
        g->values[v].name = kept;
    }
    if (grow(g, (void **)&g->outputs, &g->room_outputs, g->n_outputs, sizeof v,
             PLM_GRAPH_VALUES_MAX, "outputs"))
        g->outputs[g->n_outputs++] = v;
}

plm_status plm_graph_finish(plm_graph *g, plm_error *err)
{
    if (g->error.code == PLM_OK && g->pending.op != NO_OP)
        plm_fail(&g->error, PLM_E_INTERNAL, "graph, node %zu: begun and never ended", g->n_nodes);
    if (g->error.code != PLM_OK)
        return plm_fail(err, g->error.code, "%s", g->error.text);
    return plm_graph_verify(g, err);
}

/* ---- reading ---- */

static const plm_attr *find_attr(const plm_graph *g, const plm_node *n, plm_attr_key key)
{
    for (uint32_t i = 0; i < n->n_attr; i++)
        if (g->attrs[n->attr + i].key == key)
            return &g->attrs[n->attr + i];
    return NULL;
}

int64_t plm_attr_int(const plm_graph *g, const plm_node *n, plm_attr_key key, int64_t otherwise)
{
    const plm_attr *a = find_attr(g, n, key);
    return a != NULL ? a->v.i : otherwise;
}

double plm_attr_real(const plm_graph *g, const plm_node *n, plm_attr_key key, double otherwise)
{
    const plm_attr *a = find_attr(g, n, key);
    return a != NULL ? a->v.f : otherwise;
}

plm_status plm_value_bytes(const plm_graph *g, plm_value_id v, const int64_t *dim_values,
                           int64_t *bytes, plm_error *err)
{
    *bytes = 0;
    if (v >= g->n_values)
        return plm_fail(err, PLM_E_INTERNAL, "value %u: not in the graph", v);
    const plm_value *x = &g->values[v];
    bool planar = plm_dtype_get(x->dtype)->family == PLM_FAMILY_PLANAR;
    int64_t cols = 1, rows = 1, matrices = 1;
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t d = dim_values ? dim_values[x->dim[i]] : plm_dim_upper(&g->dims, x->dim[i]);
        int64_t *into = i + 1 == x->rank            ? &cols
                        : planar && i + 2 < x->rank ? &matrices
                                                    : &rows;
        if (!plm_mul_i64(*into, d, into))
            return plm_fail(err, PLM_E_INVALID, "value %u, %s: the size passes 2^63", v,
                            x->name ? x->name : "activation");
    }
    PLM_TRY(plm_dtype_bytes(x->dtype, rows, cols, bytes, err));
    if (!plm_mul_i64(*bytes, matrices, bytes)) {
        *bytes = 0;
        return plm_fail(err, PLM_E_INVALID, "value %u, %s: the size passes 2^63 bytes", v,
                        x->name ? x->name : "activation");
    }
    return PLM_OK;
}
