/* work.c - work rules of ops.def that go by shapes: matrices, pointwise ops, rows moved, links.
**
** Each rule counts compulsory traffic (every operand once, at its storage type) and the arithmetic of
** the op's definition. Rules of ops that depend on segments or experts are in work_seq.c. */
#include <math.h>

#include "core/ir/fn.h"
#include "core/ir/rules.h"
#include "core/ir/work_common.h"

/* ---- operands ---- */

double plm_work_elements(const plm_graph *g, plm_value_id v, const int64_t *dim_values)
{
    const plm_value *x = &g->values[v];
    double n = 1.0;
    for (uint32_t i = 0; i < x->rank; i++)
        n *= (double)dim_values[x->dim[i]];
    return n;
}

double plm_work_dim(const plm_graph *g, plm_value_id v, uint32_t i, const int64_t *dim_values)
{
    const plm_value *x = &g->values[v];
    return i < x->rank ? (double)dim_values[x->dim[i]] : 1.0;
}

double plm_work_bytes(const plm_graph *g, plm_value_id v, const int64_t *dim_values)
{
    const plm_value *x = &g->values[v];
    const plm_dtype_info *info = plm_dtype_get(x->dtype);
    double n = plm_work_elements(g, v, dim_values);
    if (info->family == PLM_FAMILY_PLAIN)
        return n * info->block_bytes / info->block;
    int64_t cols = x->rank > 0 ? dim_values[x->dim[x->rank - 1]] : 1, rows = 1, bytes = 0;
    for (uint32_t i = 0; i + 1 < x->rank; i++)
        if (!plm_mul_i64(rows, dim_values[x->dim[i]], &rows))
            return n * plm_dtype_bits(x->dtype) / 8.0;
    if (plm_dtype_bytes(x->dtype, rows, cols, &bytes, NULL) != PLM_OK)
        return n * plm_dtype_bits(x->dtype) / 8.0;
    return (double)bytes;
}

bool plm_work_is_state(const plm_graph *g, plm_value_id v)
{
    for (size_t i = 0; i <= g->n_values && v != PLM_NONE; i++) {
        if (g->values[v].kind == PLM_VALUE_STATE)
            return true;
        v = g->values[v].alias;
    }
    return false;
}

plm_value_id plm_work_in(const plm_node *n, uint32_t i)
{
    return i < n->n_in ? n->in[i] : PLM_NONE;
}

void plm_work_read(const plm_graph *g, const plm_node *n, uint32_t i, const int64_t *dim_values,
                   plm_work *w)
{
    plm_value_id v = plm_work_in(n, i);
    if (v == PLM_NONE || plm_work_is_state(g, v))
        return;
    double bytes = plm_work_bytes(g, v, dim_values);
    if (g->values[v].kind == PLM_VALUE_WEIGHT)
        w->weight_bytes += bytes;
    else
        w->act_read_bytes += bytes;
}

void plm_work_write(const plm_graph *g, const plm_node *n, const int64_t *dim_values, plm_work *w)
{
    for (uint32_t i = 0; i < n->n_out; i++)
        if (!plm_work_is_state(g, n->out[i]))
            w->act_write_bytes += plm_work_bytes(g, n->out[i], dim_values);
}

/* Reads every input that is no state, writes every output that is none; one kernel. */
static void stream(const plm_graph *g, const plm_node *n, const int64_t *dim_values, plm_work *w)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        plm_work_read(g, n, i, dim_values, w);
    plm_work_write(g, n, dim_values, w);
    w->launches = 1;
    w->groups = 1;
    w->weight_dtype = PLM_DT_COUNT;
    w->act_dtype = g->values[n->in[0]].dtype;
}

/* ---- functions of one number ---- */

/* Transcendental evaluations and other operations of fn(x); a sigmoid is one exp and a reciprocal. */
static const struct {
    double exp, flop;
} fn_cost[PLM_FN_COUNT] = {
    [PLM_FN_NONE] = {0, 0},      [PLM_FN_SILU] = {1, 3},          [PLM_FN_GELU_TANH] = {1, 8},
    [PLM_FN_GELU_ERF] = {1, 5},  [PLM_FN_SIGMOID] = {1, 2},       [PLM_FN_SOFTPLUS] = {2, 1},
    [PLM_FN_TANH] = {1, 3},      [PLM_FN_EXP] = {1, 0},           [PLM_FN_RELU] = {0, 1},
    [PLM_FN_RELU2] = {0, 2},     [PLM_FN_SOFTMAX] = {1, 4},       [PLM_FN_SQRT_SOFTPLUS] = {3, 1},
    [PLM_FN_SWIGLU_OAI] = {1, 6}, [PLM_FN_SITU] = {1, 4},         [PLM_FN_SOFTMAX_TOPK] = {1, 4},
    [PLM_FN_XIELU] = {1, 6},
};

void plm_work_fn_add(int64_t fn, double elements, plm_work *w)
{
    if (fn < 0 || fn >= PLM_FN_COUNT)
        return;
    w->exp += fn_cost[fn].exp * elements;
    w->vector_flop += fn_cost[fn].flop * elements;
}

/* ---- matrices ---- */

/* x[T] of table[V,h]: T rows are read, however often one repeats. */
void plm_work_embed(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                    const plm_batch *b, plm_work *w)
{
    (void)b;
    plm_value_id table = n->in[1];
    double rows = plm_work_dim(g, table, 0, dim_values);
    double ids = plm_work_elements(g, n->in[0], dim_values);
    if (rows > 0)
        w->weight_bytes = plm_work_bytes(g, table, dim_values) / rows * ids;
    plm_work_read(g, n, 0, dim_values, w);
    plm_work_write(g, n, dim_values, w);
    if (plm_attr_real(g, n, PLM_ATTR_SCALE, 1.0) != 1.0)
        w->vector_flop = plm_work_elements(g, n->out[0], dim_values);
    w->groups = 1;
    w->launches = 1;
    w->weight_dtype = g->values[table].dtype;
    w->act_dtype = g->values[n->out[0]].dtype;
}

/* y[m,n] = x[m,k] w[n,k]^T: 2 m n k FLOP (hw_facts d.2). */
void plm_work_linear(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                     const plm_batch *b, plm_work *w)
{
    (void)b;
    plm_value_id x = n->in[0], weight = n->in[1];
    stream(g, n, dim_values, w);
    w->n = plm_work_dim(g, weight, 0, dim_values);
    w->k = plm_work_dim(g, weight, 1, dim_values);
    w->m = w->k > 0 ? plm_work_elements(g, x, dim_values) / w->k : 0.0;
    w->tensor_flop = 2.0 * w->m * w->n * w->k;
    if (plm_work_in(n, 2) != PLM_NONE)
        w->vector_flop = w->m * w->n;
    w->weight_dtype = g->values[weight].dtype;
}

/* y[T,H,n] = w[H,n,k] x[T,H,k]. */
void plm_work_bmm(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                  const plm_batch *b, plm_work *w)
{
    (void)b;
    plm_value_id weight = n->in[1];
    stream(g, n, dim_values, w);
    w->groups = plm_work_dim(g, weight, 0, dim_values);
    w->n = plm_work_dim(g, weight, 1, dim_values);
    w->k = plm_work_dim(g, weight, 2, dim_values);
    w->m = plm_work_dim(g, n->in[0], 0, dim_values);
    w->tensor_flop = 2.0 * w->groups * w->m * w->n * w->k;
    w->weight_dtype = g->values[weight].dtype;
}

/* Adapters read: at most one a token, at most all. */
static void lora(const plm_graph *g, const plm_node *n, const int64_t *dim_values, uint32_t matrix,
                 plm_work *w)
{
    plm_value_id a = n->in[matrix];
    double tokens = plm_work_dim(g, n->in[0], 0, dim_values);
    double adapters = plm_work_dim(g, a, 0, dim_values);
    double all = plm_work_bytes(g, a, dim_values);
    stream(g, n, dim_values, w);
    if (adapters > tokens)
        w->weight_bytes -= all * (1.0 - tokens / adapters);
    w->n = plm_work_dim(g, a, 1, dim_values);
    w->k = plm_work_dim(g, a, 2, dim_values);
    w->m = tokens;
    w->tensor_flop = 2.0 * tokens * w->n * w->k;
    w->weight_dtype = g->values[a].dtype;
}

void plm_work_lora_shrink(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                          const plm_batch *b, plm_work *w)
{
    (void)b;
    lora(g, n, dim_values, 1, w);
}

void plm_work_lora_expand(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                          const plm_batch *b, plm_work *w)
{
    (void)b;
    lora(g, n, dim_values, 2, w);
    w->vector_flop = plm_work_elements(g, n->out[0], dim_values);
}

/* ---- norms and pointwise ---- */

void plm_work_norm(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                   const plm_batch *b, plm_work *w)
{
    (void)b;
    double elements = plm_work_elements(g, n->in[0], dim_values);
    stream(g, n, dim_values, w);
    /* Square and add, scale, weight: 4; mean and bias as well: 8; without weight: 3. */
    w->vector_flop = elements * (n->op == PLM_OP_LAYER_NORM ? 8.0
                                 : n->op == PLM_OP_L2_NORM  ? 3.0
                                                            : 4.0);
    if (n->op == PLM_OP_RMS_NORM_GATED) {
        plm_work_fn_add(plm_attr_int(g, n, PLM_ATTR_FN, PLM_FN_SILU), elements, w);
        w->vector_flop += elements;
    }
}

/* Operations per element of output 0 of the ops that map elements, besides fn. */
static const struct {
    double flop, exp;
    bool fn; /* has a function attribute */
} point_cost[PLM_OP_COUNT] = {
    [PLM_OP_ADD] = {1, 0, false},     [PLM_OP_MUL] = {1, 0, false},
    [PLM_OP_SCALE] = {1, 0, false},   [PLM_OP_CAST] = {1, 0, false},
    [PLM_OP_UNARY] = {0, 0, true},    [PLM_OP_GLU] = {1, 0, true},
    [PLM_OP_SOFTCAP] = {2, 1, false}, [PLM_OP_SOFTMAX] = {4, 1, false},
    [PLM_OP_QUANT] = {3, 0, false},   [PLM_OP_DEQUANT] = {1, 0, false},
};

/* Shared by ops that map or move elements. STREAM_SUM, STREAM_MIX: multiply and add by each weight. ROPE: a rotation is 6 FLOP a pair of columns; cos and sin
** come from a table. ARGMAX, TOP_K: one comparison an input element. GATHER reads what it keeps. */
void plm_work_pointwise(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                        const plm_batch *b, plm_work *w)
{
    (void)b;
    double out = plm_work_elements(g, n->out[0], dim_values);
    stream(g, n, dim_values, w);
    w->vector_flop += point_cost[n->op].flop * out;
    w->exp += point_cost[n->op].exp * out;
    if (point_cost[n->op].fn)
        plm_work_fn_add(plm_attr_int(g, n, PLM_ATTR_FN, PLM_FN_NONE), out, w);
    if (n->op == PLM_OP_ROPE) {
        double d = plm_work_dim(g, n->in[0], 2, dim_values);
        double dims = (double)plm_attr_int(g, n, PLM_ATTR_ROPE_DIMS, (int64_t)d);
        w->vector_flop += d > 0 ? 3.0 * out * dims / d : 0.0;
    } else if (n->op == PLM_OP_STREAM_SUM) {
        w->vector_flop += 2.0 * plm_work_elements(g, n->in[0], dim_values);
    } else if (n->op == PLM_OP_STREAM_MIX) {
        w->vector_flop += 2.0 * out * (plm_work_dim(g, n->in[0], 1, dim_values) + 1.0);
    } else if (n->op == PLM_OP_ARGMAX || n->op == PLM_OP_TOP_K) {
        w->vector_flop += plm_work_elements(g, n->in[0], dim_values);
    } else if (n->op == PLM_OP_GATHER) {
        /* Rows of x may be a weight (position table) or an activation. */
        double all = plm_work_bytes(g, n->in[0], dim_values);
        double kept = plm_work_bytes(g, n->out[0], dim_values);
        double *bytes = g->values[n->in[0]].kind == PLM_VALUE_WEIGHT ? &w->weight_bytes
                                                                     : &w->act_read_bytes;
        *bytes += kept - all;
    }
}

/* ---- links ---- */

/* Message: the array that is reduced, exchanged or sent (input), or gathered (output). A RECV is the
** other end of a SEND and counts nothing of its own. */
void plm_work_link(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                   const plm_batch *b, plm_work *w)
{
    static const plm_link_kind kinds[PLM_OP_COUNT] = {
        [PLM_OP_ALL_REDUCE] = PLM_LINK_ALL_REDUCE,
        [PLM_OP_ALL_GATHER] = PLM_LINK_ALL_GATHER,
        [PLM_OP_REDUCE_SCATTER] = PLM_LINK_REDUCE_SCATTER,
        [PLM_OP_ALL_TO_ALL] = PLM_LINK_ALL_TO_ALL,
        [PLM_OP_SEND] = PLM_LINK_SEND,
    };
    w->groups = 1;
    w->weight_dtype = PLM_DT_COUNT;
    w->act_dtype = g->values[n->in[0]].dtype;
    if (n->op == PLM_OP_RECV)
        return;
    stream(g, n, dim_values, w);
    w->link = kinds[n->op];
    w->link_bytes = plm_work_bytes(g, n->op == PLM_OP_ALL_GATHER ? n->out[0] : n->in[0],
                                   dim_values);
    /* The busiest expert rank exchanges more than the mean. */
    if (n->op == PLM_OP_ALL_TO_ALL && b->imbalance > 1.0)
        w->link_bytes *= b->imbalance;
    w->ranks = (int32_t)plm_attr_int(g, n, PLM_ATTR_RANKS, n->op == PLM_OP_SEND ? 2 : 1);
    w->nodes = (int32_t)plm_attr_int(g, n, PLM_ATTR_NODES, 1);
}
