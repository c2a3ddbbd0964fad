/* build_emit.c - weights, states, inputs and the small ops that the parts of a model are made of.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/build_parts.h"

/* ---- names ---- */

void plm_emit_at(plm_builder *x, int32_t index, const plm_layer *l)
{
    x->layer = x->g->layer = index;
    x->l = l;
    x->prefix = index < 0 ? 0 : (size_t)snprintf(x->name, sizeof x->name, "blk.%d.", index);
}

/* Prefix, name and ending, each short of what x->name holds. */
static const char *full_name(plm_builder *x, const char *name, const char *ending)
{
    size_t n = strlen(name), e = strlen(ending);
    if (n + e + x->prefix >= sizeof x->name) {
        plm_fail(&x->g->error, PLM_E_INTERNAL, "graph builder, name %s: too long", name);
        return "";
    }
    memcpy(x->name + x->prefix, name, n);
    memcpy(x->name + x->prefix + n, ending, e + 1);
    return x->name;
}

plm_dim plm_emit_const(plm_builder *x, int64_t n)
{
    return plm_dim_const(&x->g->dims, n);
}

/* ---- weights ---- */

/* Ranks over which the columns of a row-parallel matrix are split. */
static int64_t column_split(const plm_builder *x, plm_role role)
{
    const plm_parallel *p = &x->b->par;
    switch (role) {
    case PLM_ROLE_O:
    case PLM_ROLE_DOWN:
    case PLM_ROLE_SHARED_DOWN:
    case PLM_ROLE_SSM_OUT:
        return p->tp;
    case PLM_ROLE_EXPERT_DOWN:
        return plm_max_i64(1, (int64_t)p->tp * p->dp / p->ep);
    default:
        return 1;
    }
}

static bool fits_block(plm_dtype t, int64_t cols)
{
    const plm_dtype_info *info = plm_dtype_get(t);
    return info->family != PLM_FAMILY_INTERLEAVED || cols % info->block == 0;
}

/* The recipe's type for the whole matrix; for this rank's columns where its blocks do not divide
** them, and half precision where no block does, as GGUF files have it. */
static plm_dtype weight_type(const plm_builder *x, plm_role role, int64_t rows, int64_t cols)
{
    int64_t whole = cols * column_split(x, role);
    plm_dtype t = plm_recipe_weight(x->recipe, x->a, role, x->layer, rows, whole);
    if (!fits_block(t, cols))
        t = plm_recipe_weight(x->recipe, x->a, role, x->layer, rows, cols);
    return fits_block(t, cols) ? t : PLM_DT_F16;
}

static plm_value_id weight(plm_builder *x, plm_role role, const char *name, const char *ending,
                           uint32_t rank, const int64_t d[3])
{
    plm_dim dim[3];
    for (uint32_t i = 0; i < rank; i++)
        dim[i] = plm_emit_const(x, d[i]);
    plm_dtype t = weight_type(x, role, rank > 1 ? d[rank - 2] : 1, d[rank - 1]);
    return plm_graph_value(x->g, PLM_VALUE_WEIGHT, role, t, full_name(x, name, ending), rank, dim);
}

plm_value_id plm_emit_vector(plm_builder *x, plm_role role, const char *name, int64_t n)
{
    return weight(x, role, name, "", 1, (const int64_t[3]){n});
}

plm_value_id plm_emit_matrix(plm_builder *x, plm_role role, const char *name, int64_t rows,
                             int64_t cols)
{
    return weight(x, role, name, "", 2, (const int64_t[3]){rows, cols});
}

plm_value_id plm_emit_stack(plm_builder *x, plm_role role, const char *name, int64_t count,
                            int64_t rows, int64_t cols)
{
    return weight(x, role, name, "", 3, (const int64_t[3]){count, rows, cols});
}

plm_value_id plm_emit_bias(plm_builder *x, const char *name, int64_t experts, int64_t n)
{
    if (experts > 0)
        return weight(x, PLM_ROLE_BIAS, name, ".bias", 2, (const int64_t[3]){experts, n});
    return weight(x, PLM_ROLE_BIAS, name, ".bias", 1, (const int64_t[3]){n});
}

/* ---- states and inputs ---- */

plm_value_id plm_emit_cache(plm_builder *x, const char *name, plm_dtype t, int64_t ratio,
                            int64_t heads, int64_t d)
{
    const plm_dim dim[3] = {
        plm_dim_make(&x->g->dims, PLM_DIM_CEILDIV, x->c, plm_emit_const(x, ratio)),
        plm_emit_const(x, heads), plm_emit_const(x, d)};
    return plm_graph_value(x->g, PLM_VALUE_STATE, PLM_ROLE_KV, t, full_name(x, name, ""), 3, dim);
}

plm_value_id plm_emit_state(plm_builder *x, const char *name, plm_dtype t, int64_t d1, int64_t d2,
                            int64_t d3)
{
    const plm_dim dim[4] = {x->s, plm_emit_const(x, d1), plm_emit_const(x, d2),
                            d3 > 0 ? plm_emit_const(x, d3) : PLM_DIM_NONE};
    return plm_graph_value(x->g, PLM_VALUE_STATE, PLM_ROLE_STATE, t, full_name(x, name, ""),
                           d3 > 0 ? 4 : 3, dim);
}

/* An input belongs to no layer, whichever asks for it first. */
static plm_value_id input(plm_builder *x, plm_value_id *have, const char *name, plm_dim n)
{
    if (*have == PLM_NONE) {
        x->g->layer = -1;
        *have = plm_graph_value(x->g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_I32, name, 1, &n);
        x->g->layer = x->layer;
    }
    return *have;
}

plm_value_id plm_emit_ids(plm_builder *x)
{
    return input(x, &x->ids, "ids", x->t);
}

plm_value_id plm_emit_positions(plm_builder *x)
{
    return input(x, &x->pos, "positions", x->t);
}

plm_value_id plm_emit_rows(plm_builder *x)
{
    return input(x, &x->rows, "rows", x->r);
}

/* ---- matrices ---- */

/* Elements of a row that share a scale: the weight's group, or the whole row. */
static plm_value_id quantise(plm_builder *x, plm_value_id in, plm_dtype to, int64_t block)
{
    for (uint32_t i = 0; i < 4; i++)
        if (x->quantised[i].from == in && x->quantised[i].block == block)
            return x->quantised[i].to;
    plm_node_begin(x->g, PLM_OP_QUANT);
    plm_node_in(x->g, in);
    if (block > 0)
        plm_node_int(x->g, PLM_ATTR_BLOCK, block);
    plm_value_id y = plm_node_end(x->g, to);
    x->quantised[x->n_quantised++ % 4] = (plm_quantised){in, y, block};
    return y;
}

plm_value_id plm_emit_for_type(plm_builder *x, plm_value_id in, plm_dtype weight)
{
    plm_dtype act = plm_recipe_act(x->recipe);
    if (act >= PLM_DT_COUNT || in == PLM_NONE)
        return in;
    const plm_dtype_info *info = plm_dtype_get(weight);
    if (info->family != PLM_FAMILY_PLANAR || info->math != plm_dtype_get(act)->math ||
        x->g->values[in].dtype == act)
        return in;
    return quantise(x, in, act, info->group_cols);
}

plm_value_id plm_emit_for_weight(plm_builder *x, plm_value_id in, plm_value_id w)
{
    return w == PLM_NONE ? in : plm_emit_for_type(x, in, x->g->values[w].dtype);
}

plm_value_id plm_emit_linear(plm_builder *x, plm_value_id in, plm_role role, const char *name,
                             int64_t n, int64_t k, bool bias)
{
    plm_value_id w = plm_emit_matrix(x, role, name, n, k);
    plm_value_id b = bias ? plm_emit_bias(x, name, 0, n) : PLM_NONE;
    in = plm_emit_for_weight(x, in, w);
    plm_node_begin(x->g, PLM_OP_LINEAR);
    plm_node_in(x->g, in);
    plm_node_in(x->g, w);
    if (bias)
        plm_node_in(x->g, b);
    return plm_node_end(x->g, x->b->act);
}

plm_value_id plm_emit_per_head(plm_builder *x, plm_value_id in, plm_role role, const char *name,
                               int64_t heads, int64_t n, int64_t k)
{
    plm_value_id w = plm_emit_stack(x, role, name, heads, n, k);
    return plm_emit_binary(x, PLM_OP_BMM, in, w);
}

/* ---- norms ---- */

plm_value_id plm_emit_rms(plm_builder *x, plm_value_id in, const char *name, int64_t n)
{
    plm_value_id w = name != NULL ? plm_emit_vector(x, PLM_ROLE_NORM, name, n) : PLM_NONE;
    plm_node_begin(x->g, PLM_OP_RMS_NORM);
    plm_node_in(x->g, in);
    if (name != NULL)
        plm_node_in(x->g, w);
    plm_node_real(x->g, PLM_ATTR_EPS, x->a->norm_eps);
    if (name != NULL && x->a->norm_offset != 0)
        plm_node_real(x->g, PLM_ATTR_WEIGHT_OFFSET, x->a->norm_offset);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

plm_value_id plm_emit_layer_norm(plm_builder *x, plm_value_id in, const char *name, int64_t n,
                                 bool bias)
{
    plm_value_id w = name != NULL ? plm_emit_vector(x, PLM_ROLE_NORM, name, n) : PLM_NONE;
    plm_value_id b =
        bias ? weight(x, PLM_ROLE_NORM, name, ".bias", 1, (const int64_t[3]){n}) : PLM_NONE;
    plm_node_begin(x->g, PLM_OP_LAYER_NORM);
    plm_node_in(x->g, in);
    if (name != NULL)
        plm_node_in(x->g, w);
    if (bias)
        plm_node_in(x->g, b);
    plm_node_real(x->g, PLM_ATTR_EPS, x->a->norm_eps);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

plm_value_id plm_emit_norm(plm_builder *x, plm_value_id in, const char *name, int64_t n)
{
    bool plain = x->a->norm_plain;
    name = plain ? NULL : name;
    return x->a->norm == PLM_NORM_LAYER
               ? plm_emit_layer_norm(x, in, name, n, x->a->norm_bias && !plain)
               : plm_emit_rms(x, in, name, n);
}

/* ---- pointwise, and rows moved ---- */

plm_value_id plm_emit_binary(plm_builder *x, plm_op op, plm_value_id a, plm_value_id b)
{
    plm_node_begin(x->g, op);
    plm_node_in(x->g, a);
    plm_node_in(x->g, b);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

plm_value_id plm_emit_unary(plm_builder *x, plm_value_id in, plm_fn fn)
{
    plm_node_begin(x->g, PLM_OP_UNARY);
    plm_node_in(x->g, in);
    plm_node_int(x->g, PLM_ATTR_FN, fn);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

plm_value_id plm_emit_scaled(plm_builder *x, plm_value_id in, double by)
{
    if (by == 0 || by == 1)
        return in;
    plm_node_begin(x->g, PLM_OP_SCALE);
    plm_node_in(x->g, in);
    plm_node_real(x->g, PLM_ATTR_SCALE, by);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

plm_value_id plm_emit_slice(plm_builder *x, plm_value_id in, int64_t axis, int64_t start,
                            int64_t count)
{
    if (in != PLM_NONE && start == 0 &&
        plm_dim_value(&x->g->dims, x->g->values[in].dim[axis]) == count)
        return in;
    plm_node_begin(x->g, PLM_OP_SLICE);
    plm_node_in(x->g, in);
    plm_node_int(x->g, PLM_ATTR_AXIS, axis);
    plm_node_int(x->g, PLM_ATTR_START, start);
    plm_node_int(x->g, PLM_ATTR_COUNT, count);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

plm_value_id plm_emit_concat(plm_builder *x, plm_value_id a, plm_value_id b, int64_t axis)
{
    plm_node_begin(x->g, PLM_OP_CONCAT);
    plm_node_in(x->g, a);
    plm_node_in(x->g, b);
    plm_node_int(x->g, PLM_ATTR_AXIS, axis);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

plm_value_id plm_emit_repeat(plm_builder *x, plm_value_id in, int64_t axis, int64_t count)
{
    if (count == 1)
        return in;
    plm_node_begin(x->g, PLM_OP_REPEAT);
    plm_node_in(x->g, in);
    plm_node_int(x->g, PLM_ATTR_AXIS, axis);
    plm_node_int(x->g, PLM_ATTR_COUNT, count);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

plm_value_id plm_emit_heads(plm_builder *x, plm_value_id in, int64_t d1, int64_t d2)
{
    plm_node_begin(x->g, PLM_OP_RESHAPE);
    plm_node_in(x->g, in);
    plm_node_int(x->g, PLM_ATTR_RANK, d2 > 0 ? 3 : 2);
    plm_node_int(x->g, PLM_ATTR_D0, -1);
    plm_node_int(x->g, PLM_ATTR_D1, d1);
    if (d2 > 0)
        plm_node_int(x->g, PLM_ATTR_D2, d2);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

/* Divisors of the frequencies: which of the two lists (short, long context) is the step's matter.
 */
static plm_value_id rope_factors(plm_builder *x, const plm_rope *r)
{
    if (r->n_factors > 0 && x->factors == PLM_NONE) {
        plm_dim n = plm_emit_const(x, r->n_factors);
        x->g->layer = -1;
        x->factors = plm_graph_value(x->g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_F32,
                                     "rope_factors", 1, &n);
        x->g->layer = x->layer;
    }
    return r->n_factors > 0 ? x->factors : PLM_NONE;
}

plm_value_id plm_emit_rope(plm_builder *x, plm_value_id in, const plm_rope *r, int64_t dims)
{
    if (!(r->theta > 0) || dims < 2)
        return in;
    double cos_sin = 1, softmax = 1;
    plm_value_id pos = plm_emit_positions(x), factors = rope_factors(x, r);
    plm_rope_scales(r, &cos_sin, &softmax);
    plm_node_begin(x->g, PLM_OP_ROPE);
    plm_node_in(x->g, in);
    plm_node_in(x->g, pos);
    if (factors != PLM_NONE)
        plm_node_in(x->g, factors);
    plm_node_int(x->g, PLM_ATTR_ROPE_DIMS, dims);
    plm_node_int(x->g, PLM_ATTR_ROPE_STYLE, r->interleaved);
    plm_node_real(x->g, PLM_ATTR_THETA, r->theta);
    if (r->scaling != PLM_ROPE_NONE) {
        const struct {
            plm_attr_key key;
            double value;
        } parts[] = {{PLM_ATTR_FACTOR, r->factor},       {PLM_ATTR_LOW_FREQ, r->low_freq},
                     {PLM_ATTR_HIGH_FREQ, r->high_freq}, {PLM_ATTR_ORIG_CTX, r->orig_ctx},
                     {PLM_ATTR_BETA_FAST, r->beta_fast}, {PLM_ATTR_BETA_SLOW, r->beta_slow}};
        plm_node_int(x->g, PLM_ATTR_ROPE_SCALING, r->scaling);
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (parts[i].value != 0)
                plm_node_real(x->g, parts[i].key, parts[i].value);
        if (r->ramp_exact)
            plm_node_int(x->g, PLM_ATTR_RAMP_EXACT, 1);
    }
    if (cos_sin != 1)
        plm_node_real(x->g, PLM_ATTR_MSCALE, cos_sin);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

plm_value_id plm_emit_glu(plm_builder *x, plm_value_id gate, plm_value_id up)
{
    plm_node_begin(x->g, PLM_OP_GLU);
    plm_node_in(x->g, gate);
    if (up != PLM_NONE)
        plm_node_in(x->g, up);
    plm_node_int(x->g, PLM_ATTR_FN, x->l->act);
    if (x->l->act_limit > 0)
        plm_node_real(x->g, PLM_ATTR_LIMIT, x->l->act_limit);
    if (x->l->act_alpha > 0)
        plm_node_real(x->g, PLM_ATTR_ALPHA, x->l->act_alpha);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

/* ---- links ---- */

/* Nodes that a group of ranks `stride` devices apart spans: never more than there are ranks. */
static int64_t nodes_of(const plm_builder *x, int64_t ranks, int64_t stride)
{
    int64_t per_node = x->b->par.per_node;
    return per_node > 0 ? plm_min_i64(ranks, plm_ceil_div(ranks * stride, per_node)) : 1;
}

plm_value_id plm_emit_link(plm_builder *x, plm_op op, plm_value_id in, int64_t ranks,
                           int64_t stride, int64_t axis)
{
    if (ranks <= 1)
        return in;
    plm_node_begin(x->g, op);
    plm_node_in(x->g, in);
    plm_node_int(x->g, PLM_ATTR_RANKS, ranks);
    plm_node_int(x->g, PLM_ATTR_NODES, nodes_of(x, ranks, stride));
    if (op == PLM_OP_ALL_GATHER || op == PLM_OP_REDUCE_SCATTER)
        plm_node_int(x->g, PLM_ATTR_AXIS, axis);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

plm_value_id plm_emit_reduce(plm_builder *x, plm_value_id in)
{
    return plm_emit_link(x, PLM_OP_ALL_REDUCE, in, x->b->par.tp, 1, 0);
}
