/* build_ffn.c - the feed-forward half: dense, and mixture of experts. What it returns is this
** rank's part of a sum over tp.
**
** Tensor parallel: gate and up by columns, down by rows. Experts, by plan:
**   ep 1           every rank of tp x dp holds its slice of the width of every expert and computes
**                  all pairs of all groups' tokens (data parallel is of the attention alone).
**   ep > 1, dp 1   a rank holds experts / ep whole experts (width over tp / ep ranks). Tokens are
**                  on every rank, so each computes the pairs of its experts and the sum over tp,
**                  needed anyway, joins them. No exchange.
**   dp > 1         tokens differ between dp groups. With tp 1, whole experts and more ranks than
**                  choices, pairs travel to their experts and back (all-to-all); else the tokens of
**                  all groups are gathered and the parts reduced and scattered, which moves less
**                  then. Both forms are those of vLLM's and SGLang's expert parallelism.
*/
#include <stdio.h>

#include "core/base/mem.h"
#include "core/model/build_parts.h"

/* ---- dense ---- */

typedef struct mlp_parts {
    plm_role gate, up, both, down;
    const char *gate_name, *up_name, *both_name, *down_name;
    bool bias;
} mlp_parts;

/* xIELU with its two learned numbers (Apertus). */
static plm_value_id xielu(plm_builder *x, plm_value_id in)
{
    plm_value_id learned = plm_emit_vector(x, PLM_ROLE_SSM_SMALL, "ffn_xielu", 2);
    plm_node_begin(x->g, PLM_OP_UNARY);
    plm_node_in(x->g, in);
    plm_node_in(x->g, learned);
    plm_node_int(x->g, PLM_ATTR_FN, PLM_FN_XIELU);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

/* gate and up, function, down of `width` columns on this rank. */
static plm_value_id mlp(plm_builder *x, plm_value_id in, const mlp_parts *p, int64_t width)
{
    const plm_layer *l = x->l;
    int64_t h = x->a->hidden;
    plm_value_id y;
    if (!l->glu) {
        y = plm_emit_linear(x, in, p->up, p->up_name, width, h, p->bias);
        y = l->act == PLM_FN_XIELU ? xielu(x, y) : plm_emit_unary(x, y, l->act);
    } else if (x->b->fuse_gate_up) {
        y = plm_emit_linear(x, in, p->both, p->both_name, 2 * width, h, p->bias);
        y = plm_emit_glu(x, y, PLM_NONE);
    } else {
        y = plm_emit_linear(x, in, p->gate, p->gate_name, width, h, p->bias);
        y = plm_emit_glu(x, y, plm_emit_linear(x, in, p->up, p->up_name, width, h, p->bias));
    }
    return plm_emit_linear(x, y, p->down, p->down_name, h, width, p->bias);
}

plm_value_id plm_emit_dense(plm_builder *x, plm_value_id in)
{
    const mlp_parts p = {PLM_ROLE_GATE, PLM_ROLE_UP,   PLM_ROLE_GATE_UP, PLM_ROLE_DOWN, "ffn_gate",
                         "ffn_up",      "ffn_gate_up", "ffn_down",       x->l->bias_mlp};
    return mlp(x, in, &p, plm_ceil_div(x->l->ffn, x->b->par.tp));
}

/* Experts that every token visits, behind a sigmoid of one column where the family has it (Qwen).
 */
static plm_value_id shared(plm_builder *x, plm_value_id in)
{
    const mlp_parts p = {PLM_ROLE_SHARED_GATE, PLM_ROLE_SHARED_UP, PLM_ROLE_SHARED_UP,
                         PLM_ROLE_SHARED_DOWN, "ffn_gate_shexp",   "ffn_up_shexp",
                         "ffn_gate_up_shexp",  "ffn_down_shexp",   false};
    plm_value_id y = mlp(x, in, &p, plm_ceil_div(x->l->shared_ffn, x->b->par.tp));
    if (!x->l->shared_gate)
        return y;
    plm_value_id g =
        plm_emit_linear(x, in, PLM_ROLE_ROUTER, "ffn_gate_inp_shexp", 1, x->a->hidden, false);
    return plm_emit_binary(x, PLM_OP_MUL, y, plm_emit_unary(x, g, PLM_FN_SIGMOID));
}

/* ---- routing ---- */

typedef struct routing {
    plm_value_id weights, ids; /* [T, top_k] */
} routing;

/* Experts of each token by its id (first layers of DeepSeek-V4), from a table: [T, top_k]. Those of
** `dp` groups are joined. */
static plm_value_id hash_ids(plm_builder *x, int64_t dp)
{
    const plm_parallel *p = &x->b->par;
    char name[48];
    const plm_dim shape[2] = {plm_emit_const(x, x->a->vocab), plm_emit_const(x, x->l->top_k)};
    snprintf(name, sizeof name, "blk.%d.ffn_hash_ids", x->layer);
    plm_value_id table =
        plm_graph_value(x->g, PLM_VALUE_WEIGHT, PLM_ROLE_ROUTER, PLM_DT_I32, name, 2, shape);
    plm_value_id ids = plm_emit_binary(x, PLM_OP_GATHER, table, plm_emit_ids(x));
    return plm_emit_link(x, PLM_OP_ALL_GATHER, ids, dp, (int64_t)p->tp * p->cp, 0);
}

/* in: rows of `dp` groups. Hash-routed layers weigh with the router's scores as the others do;
** source: the gate of DeepSeek-V4's published inference code, as its ports have it. */
static routing route(plm_builder *x, plm_value_id in, int64_t dp)
{
    const plm_layer *l = x->l;
    plm_value_id bias = PLM_NONE, ids = l->hash_routed ? hash_ids(x, dp) : PLM_NONE;
    plm_value_id logits = plm_emit_linear(x, in, PLM_ROLE_ROUTER, "ffn_gate_inp", l->experts,
                                          x->a->hidden, l->router_linear_bias);
    if (l->router_bias)
        bias = plm_emit_vector(x, PLM_ROLE_ROUTER, "exp_probs_b", l->experts);
    plm_node_begin(x->g, PLM_OP_GATE);
    plm_node_in(x->g, logits);
    if (l->router_bias || l->hash_routed)
        plm_node_in(x->g, bias);
    if (l->hash_routed)
        plm_node_in(x->g, ids);
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
    plm_value_id weights = plm_node_end(x->g, PLM_DT_F32);
    return (routing){weights, plm_node_out(x->g, 1)};
}

/* ---- experts ---- */

typedef struct sorted {
    plm_value_id rows, offsets, perm;
    int64_t local, width, hidden; /* experts here; width of one on this rank; columns of a row */
} sorted;

static void sort_rows(plm_builder *x, plm_value_id in, plm_value_id ids, int64_t experts,
                      int64_t local, int64_t top_k, sorted *s)
{
    plm_node_begin(x->g, PLM_OP_MOE_SORT);
    plm_node_in(x->g, in);
    plm_node_in(x->g, ids);
    plm_node_int(x->g, PLM_ATTR_EXPERTS, experts);
    plm_node_int(x->g, PLM_ATTR_LOCAL_EXPERTS, local);
    plm_node_int(x->g, PLM_ATTR_TOP_K, top_k);
    s->rows = plm_node_end(x->g, PLM_DT_COUNT);
    s->offsets = plm_node_out(x->g, 1);
    s->perm = plm_node_out(x->g, 2);
}

static plm_value_id grouped(plm_builder *x, plm_value_id in, const sorted *s, plm_role role,
                            const char *name, int64_t n, int64_t k)
{
    const plm_layer *l = x->l;
    plm_value_id w = plm_emit_stack(x, role, name, s->local, n, k);
    plm_value_id b = l->expert_bias ? plm_emit_bias(x, name, s->local, n) : PLM_NONE;
    in = plm_emit_for_weight(x, in, w);
    plm_node_begin(x->g, PLM_OP_LINEAR_GROUPED);
    plm_node_in(x->g, in);
    plm_node_in(x->g, w);
    plm_node_in(x->g, s->offsets);
    if (l->expert_bias)
        plm_node_in(x->g, b);
    plm_node_int(x->g, PLM_ATTR_EXPERTS, l->experts);
    plm_node_int(x->g, PLM_ATTR_LOCAL_EXPERTS, s->local);
    plm_node_int(x->g, PLM_ATTR_TOP_K, l->top_k);
    return plm_node_end(x->g, x->b->act);
}

/* Rows sorted by expert through the experts of this rank. */
static plm_value_id experts(plm_builder *x, const sorted *s)
{
    plm_value_id y;
    if (!x->l->glu) {
        y = grouped(x, s->rows, s, PLM_ROLE_EXPERT_UP, "ffn_up_exps", s->width, s->hidden);
        y = plm_emit_unary(x, y, x->l->act);
    } else if (x->b->fuse_gate_up) {
        y = grouped(x, s->rows, s, PLM_ROLE_EXPERT_GATE_UP, "ffn_gate_up_exps", 2 * s->width,
                    s->hidden);
        y = plm_emit_glu(x, y, PLM_NONE);
    } else {
        y = grouped(x, s->rows, s, PLM_ROLE_EXPERT_GATE, "ffn_gate_exps", s->width, s->hidden);
        y = plm_emit_glu(
            x, y, grouped(x, s->rows, s, PLM_ROLE_EXPERT_UP, "ffn_up_exps", s->width, s->hidden));
    }
    return grouped(x, y, s, PLM_ROLE_EXPERT_DOWN, "ffn_down_exps", s->hidden, s->width);
}

static plm_value_id combine(plm_builder *x, plm_value_id y, plm_value_id perm, plm_value_id weights)
{
    plm_node_begin(x->g, PLM_OP_MOE_COMBINE);
    plm_node_in(x->g, y);
    plm_node_in(x->g, perm);
    plm_node_in(x->g, weights);
    return plm_node_end(x->g, x->b->act);
}

/* Pairs of this rank's tokens to the ranks of their experts and back: [T top_k, h] either way when
** load is even. Expert ids travel first (they tell the receiver how many rows each expert gets; the
** exchange delivers them counted from the rank's first expert), rows after them, sorted again where
** they arrive. The exchange back takes the rows to where they came from, in the order they were
** sent. */
static plm_value_id exchanged(plm_builder *x, plm_value_id in, const routing *r, sorted *s)
{
    const plm_layer *l = x->l;
    int64_t ep = x->b->par.ep, stride = x->b->par.cp;
    sorted out;
    sort_rows(x, in, r->ids, l->experts, l->experts, l->top_k, &out);
    plm_value_id ids = plm_emit_heads(x, r->ids, 1, 0);
    ids = plm_emit_binary(x, PLM_OP_GATHER, ids, out.perm);
    ids = plm_emit_link(x, PLM_OP_ALL_TO_ALL, ids, ep, stride, 0);
    plm_value_id rows = plm_emit_link(x, PLM_OP_ALL_TO_ALL, out.rows, ep, stride, 0);
    sort_rows(x, rows, ids, s->local, s->local, 1, s);
    plm_value_id y = plm_emit_link(x, PLM_OP_ALL_TO_ALL, experts(x, s), ep, stride, 0);
    return combine(x, y, out.perm, r->weights);
}

/* Type in which rows go to the experts: quantised before they are copied or sent. */
static plm_value_id narrow_rows(plm_builder *x, plm_value_id in, const sorted *s)
{
    plm_dtype t =
        plm_recipe_weight(x->recipe, x->a, PLM_ROLE_EXPERT_UP, x->layer, s->width, s->hidden);
    return plm_emit_for_type(x, in, t);
}

static plm_value_id routed(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    const plm_parallel *p = &x->b->par;
    int64_t h = x->a->hidden, group = (int64_t)p->tp * p->dp, stride = (int64_t)p->tp * p->cp;
    bool spread = p->dp > 1;
    bool exchange = spread && p->tp == 1 && p->ep == p->dp && l->top_k < p->dp;
    int64_t share = plm_max_i64(1, group / p->ep);
    sorted s = {.local = l->experts / p->ep,
                .width = plm_ceil_div(l->expert_ffn, share),
                .hidden = l->expert_hidden > 0 ? l->expert_hidden : h};
    bool gather = spread && !exchange;
    if (gather)
        in = plm_emit_link(x, PLM_OP_ALL_GATHER, in, p->dp, stride, 0);
    routing r = route(x, in, gather ? p->dp : 1);
    if (l->expert_hidden > 0)
        in = plm_emit_linear(x, in, PLM_ROLE_SHARED_UP, "ffn_latent_down", s.hidden, h, false);
    in = narrow_rows(x, in, &s);
    plm_value_id y;
    if (exchange) {
        y = exchanged(x, in, &r, &s);
    } else {
        sort_rows(x, in, r.ids, l->experts, s.local, l->top_k, &s);
        y = combine(x, experts(x, &s), s.perm, r.weights);
    }
    if (gather)
        y = plm_emit_link(x, PLM_OP_REDUCE_SCATTER, y, p->dp, stride, 0);
    if (l->expert_hidden > 0)
        y = plm_emit_linear(x, y, PLM_ROLE_SHARED_DOWN, "ffn_latent_up", h, s.hidden, false);
    return y;
}

plm_value_id plm_emit_moe(plm_builder *x, plm_value_id in)
{
    plm_value_id y = routed(x, in);
    return x->l->shared_ffn > 0 ? plm_emit_binary(x, PLM_OP_ADD, y, shared(x, in)) : y;
}
