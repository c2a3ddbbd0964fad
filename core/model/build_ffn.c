/* build_ffn.c - the feed-forward half: dense, and mixture of experts.
**
** Tensor parallel: gate and up by columns, down by rows, then one all-reduce. Experts: with ep = 1
** every rank of tp x dp holds a slice of the width of every expert; with ep > 1 it holds
** experts / ep whole experts (their width still split over tp * dp / ep). Tokens reach the experts in
** one of two ways: where attention is replicated (dp = 1) every rank has all tokens, computes the pairs
** of its own experts, and the all-reduce that tp needs anyway sums them; with data-parallel attention
** tokens of the dp groups are gathered before and scattered (summed) after, or, when the group is too
** wide for that (over 8 groups), exchanged pair by pair (all-to-all).
*/
#include <stdio.h>

#include "core/base/mem.h"
#include "core/model/build_parts.h"

#define GATHER_GROUPS_MAX 8

/* gate/up, function, down of one width; roles and names by prefix ("ffn", "shared"). */
static plm_value_id mlp(plm_builder *x, plm_value_id in, plm_role gate, plm_role up, plm_role down,
                        const char *prefix, int64_t width, int64_t hidden, bool down_bias)
{
    const plm_layer *l = x->l;
    char name[3][48];
    plm_value_id y;
    snprintf(name[0], sizeof name[0], "%s_gate", prefix);
    snprintf(name[1], sizeof name[1], "%s_up", prefix);
    snprintf(name[2], sizeof name[2], "%s_down", prefix);
    if (!l->glu) {
        y = plm_emit_linear(x, in, up, name[1], width, hidden, l->bias_mlp);
        y = plm_emit_unary(x, y, l->act);
    } else if (x->b->fuse_gate_up) {
        snprintf(name[0], sizeof name[0], "%s_gate_up", prefix);
        y = plm_emit_linear(x, in, gate == PLM_ROLE_GATE ? PLM_ROLE_GATE_UP : gate, name[0],
                            2 * width, hidden, l->bias_mlp);
        y = plm_emit_glu(x, y, PLM_NONE);
    } else {
        plm_value_id g = plm_emit_linear(x, in, gate, name[0], width, hidden, l->bias_mlp);
        plm_value_id u = plm_emit_linear(x, in, up, name[1], width, hidden, l->bias_mlp);
        y = plm_emit_glu(x, g, u);
    }
    return plm_emit_linear(x, y, down, name[2], hidden, width, down_bias);
}

plm_value_id plm_emit_dense(plm_builder *x, plm_value_id in)
{
    int64_t tp = x->b->par.tp;
    plm_value_id y = mlp(x, in, PLM_ROLE_GATE, PLM_ROLE_UP, PLM_ROLE_DOWN, "ffn", x->l->ffn / tp,
                         x->a->hidden, x->l->bias_mlp);
    return plm_emit_link(x, PLM_OP_ALL_REDUCE, y, tp, 0);
}

/* ---- experts ---- */

/* weights[T,k] and ids[T,k] of the tokens in. */
static void route(plm_builder *x, plm_value_id in, plm_value_id *weights, plm_value_id *ids)
{
    const plm_layer *l = x->l;
    plm_value_id logits, bias = PLM_NONE;
    if (l->hash_routed) {
        /* Experts by token id: a table of ids, no matrix; the weights are equal. Both are inputs. */
        char name[48];
        plm_dim shape[2] = {x->g->values[in].dim[0], plm_emit_const(x, l->top_k)};
        snprintf(name, sizeof name, "blk.%d.hash_ids", x->layer);
        *ids = plm_graph_value(x->g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_I32, name, 2, shape);
        snprintf(name, sizeof name, "blk.%d.hash_weights", x->layer);
        *weights = plm_graph_value(x->g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_F32, name, 2,
                                   shape);
        return;
    }
    logits = plm_emit_linear(x, in, PLM_ROLE_ROUTER, "ffn_gate_inp", l->experts, x->a->hidden,
                             l->router_linear_bias);
    if (l->router_bias)
        bias = plm_emit_vector(x, PLM_ROLE_ROUTER, "exp_probs_b", l->experts);
    plm_node_begin(x->g, PLM_OP_GATE);
    plm_node_in(x->g, logits);
    if (l->router_bias)
        plm_node_in(x->g, bias);
    plm_node_int(x->g, PLM_ATTR_FN, l->router_fn);
    plm_node_int(x->g, PLM_ATTR_EXPERTS, l->experts);
    plm_node_int(x->g, PLM_ATTR_TOP_K, l->top_k);
    if (l->n_group > 1) {
        plm_node_int(x->g, PLM_ATTR_N_GROUP, l->n_group);
        plm_node_int(x->g, PLM_ATTR_TOPK_GROUP, l->topk_group);
    }
    plm_node_int(x->g, PLM_ATTR_RENORM, l->renorm);
    if (l->router_scale != 0)
        plm_node_real(x->g, PLM_ATTR_SCALE, l->router_scale);
    *weights = plm_node_end(x->g, PLM_DT_F32);
    *ids = plm_node_out(x->g, 1);
}

static plm_value_id grouped(plm_builder *x, plm_value_id in, plm_value_id offsets, plm_role role,
                            const char *name, int64_t local, int64_t n, int64_t k)
{
    const plm_layer *l = x->l;
    char bias_name[48];
    snprintf(bias_name, sizeof bias_name, "%s.bias", name);
    plm_value_id w = plm_emit_stack(x, role, name, local, n, k);
    plm_value_id b =
        l->expert_bias ? plm_emit_matrix(x, PLM_ROLE_BIAS, bias_name, local, n) : PLM_NONE;
    plm_node_begin(x->g, PLM_OP_LINEAR_GROUPED);
    plm_node_in(x->g, in);
    plm_node_in(x->g, w);
    plm_node_in(x->g, offsets);
    if (l->expert_bias)
        plm_node_in(x->g, b);
    plm_node_int(x->g, PLM_ATTR_EXPERTS, l->experts);
    plm_node_int(x->g, PLM_ATTR_LOCAL_EXPERTS, local);
    plm_node_int(x->g, PLM_ATTR_TOP_K, l->top_k);
    return plm_node_end(x->g, x->b->act);
}

/* Rows sorted by expert through the experts of this rank. width, hidden: of one expert here. */
static plm_value_id experts(plm_builder *x, plm_value_id rows, plm_value_id offsets, int64_t local,
                            int64_t width, int64_t hidden)
{
    plm_value_id y;
    if (!x->l->glu) {
        y = grouped(x, rows, offsets, PLM_ROLE_EXPERT_UP, "ffn_up_exps", local, width, hidden);
        y = plm_emit_unary(x, y, x->l->act);
    } else if (x->b->fuse_gate_up) {
        y = grouped(x, rows, offsets, PLM_ROLE_EXPERT_GATE_UP, "ffn_gate_up_exps", local, 2 * width,
                    hidden);
        y = plm_emit_glu(x, y, PLM_NONE);
    } else {
        plm_value_id g = grouped(x, rows, offsets, PLM_ROLE_EXPERT_GATE, "ffn_gate_exps", local,
                                 width, hidden);
        plm_value_id u = grouped(x, rows, offsets, PLM_ROLE_EXPERT_UP, "ffn_up_exps", local, width,
                                 hidden);
        y = plm_emit_glu(x, g, u);
    }
    return grouped(x, y, offsets, PLM_ROLE_EXPERT_DOWN, "ffn_down_exps", local, hidden, width);
}

/* Shared experts beside the routed ones: tensor parallel like a dense layer, summed by the caller's
** all-reduce. */
static plm_value_id shared(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    plm_value_id y = mlp(x, in, PLM_ROLE_SHARED_GATE, PLM_ROLE_SHARED_UP, PLM_ROLE_SHARED_DOWN,
                         "ffn_shexp", l->shared_ffn / x->b->par.tp, x->a->hidden, false);
    if (!l->shared_gate)
        return y;
    plm_value_id g = plm_emit_linear(x, in, PLM_ROLE_ROUTER, "ffn_gate_inp_shexp", 1, x->a->hidden,
                                     false);
    return plm_emit_binary(x, PLM_OP_MUL, y, plm_emit_unary(x, g, PLM_FN_SIGMOID));
}

static plm_value_id routed(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    const plm_parallel *p = &x->b->par;
    int64_t split = plm_max_i64(1, (int64_t)p->tp * p->dp / p->ep);
    int64_t local = l->experts / p->ep, width = l->expert_ffn / split;
    int64_t hidden = l->expert_hidden > 0 ? l->expert_hidden : x->a->hidden;
    bool exchange = p->dp > GATHER_GROUPS_MAX && p->ep > 1;
    plm_value_id weights, ids, offsets, perm;
    if (p->dp > 1 && !exchange)
        in = plm_emit_link(x, PLM_OP_ALL_GATHER, in, p->dp, 0);
    route(x, in, &weights, &ids);
    if (l->expert_hidden > 0)
        in = plm_emit_linear(x, in, PLM_ROLE_SHARED_UP, "ffn_latent_down", hidden, x->a->hidden,
                             false);
    plm_node_begin(x->g, PLM_OP_MOE_SORT);
    plm_node_in(x->g, in);
    plm_node_in(x->g, ids);
    plm_node_int(x->g, PLM_ATTR_EXPERTS, l->experts);
    plm_node_int(x->g, PLM_ATTR_LOCAL_EXPERTS, exchange ? l->experts : local);
    plm_node_int(x->g, PLM_ATTR_TOP_K, l->top_k);
    plm_value_id rows = plm_node_end(x->g, PLM_DT_COUNT);
    offsets = plm_node_out(x->g, 1);
    perm = plm_node_out(x->g, 2);
    if (exchange) {
        plm_dim n = plm_emit_const(x, local + 1);
        char name[48];
        rows = plm_emit_link(x, PLM_OP_ALL_TO_ALL, rows, p->ep, 0);
        snprintf(name, sizeof name, "blk.%d.received", x->layer); /* counts come with the rows */
        offsets = plm_graph_value(x->g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_I32, name, 1, &n);
    }
    plm_value_id y = experts(x, rows, offsets, local, width, hidden);
    if (exchange)
        y = plm_emit_link(x, PLM_OP_ALL_TO_ALL, y, p->ep, 0);
    plm_node_begin(x->g, PLM_OP_MOE_COMBINE);
    plm_node_in(x->g, y);
    plm_node_in(x->g, perm);
    plm_node_in(x->g, weights);
    y = plm_node_end(x->g, x->b->act);
    if (l->expert_hidden > 0)
        y = plm_emit_linear(x, y, PLM_ROLE_SHARED_DOWN, "ffn_latent_up", x->a->hidden, hidden,
                            false);
    return p->dp > 1 && !exchange ? plm_emit_link(x, PLM_OP_REDUCE_SCATTER, y, p->dp, 0) : y;
}

plm_value_id plm_emit_moe(plm_builder *x, plm_value_id in)
{
    plm_value_id y = routed(x, in);
    if (x->l->shared_ffn > 0)
        y = plm_emit_binary(x, PLM_OP_ADD, y, shared(x, in));
    return plm_emit_link(x, PLM_OP_ALL_REDUCE, y, x->b->par.tp, 0);
}
