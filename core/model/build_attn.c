/* build_attn.c - grouped-query attention: full, sliding, chunked and block-sparse; and what it
** shares with the latent kinds.
**
** Tensor parallel: heads are split, key/value heads too until there is one a rank and copied
** beyond; the output projection yields a rank's part of the sum. Its bias belongs to the first
** rank, whose graph this is.
**
** Context parallel: a rank holds every cp-th token of the cache, so its entries stand for cp times
** as many tokens (attribute ratio). Each rank attends its own entries and the parts are summed over
** the group, weighted by their softmax denominators, a number a head that the graph does not carry.
*/
#include <math.h>
#include <stdio.h>

#include "core/base/mem.h"
#include "core/model/build_parts.h"

void plm_emit_write(plm_builder *x, plm_value_id k, plm_value_id *kc, plm_value_id v,
                    plm_value_id *vc, int64_t ratio)
{
    ratio = plm_max_i64(1, ratio) * x->b->par.cp;
    plm_node_begin(x->g, PLM_OP_KV_WRITE);
    plm_node_in(x->g, k);
    plm_node_in(x->g, *kc);
    if (v != PLM_NONE) {
        plm_node_in(x->g, v);
        plm_node_in(x->g, *vc);
    }
    if (ratio > 1)
        plm_node_int(x->g, PLM_ATTR_RATIO, ratio);
    *kc = plm_node_end(x->g, PLM_DT_COUNT);
    if (v != PLM_NONE)
        *vc = plm_node_out(x->g, 1);
}

plm_value_id plm_emit_attend(plm_builder *x, const plm_attention *a)
{
    const plm_layer *l = x->l;
    int64_t cp = x->b->par.cp, ratio = plm_max_i64(1, a->ratio) * cp;
    const plm_value_id in[] = {a->q, a->k, a->v, a->sinks, a->index};
    const struct {
        plm_attr_key key;
        int64_t value;
    } parts[] = {{PLM_ATTR_WINDOW, a->window},
                 {PLM_ATTR_CHUNK, a->chunk},
                 {PLM_ATTR_ALIBI, l->alibi},
                 {PLM_ATTR_V_IN_K, a->v_in_k},
                 {PLM_ATTR_SPARSE_TOP_K, plm_ceil_div(a->sparse_top_k, cp)},
                 {PLM_ATTR_RATIO, ratio > 1 ? ratio : 0}};
    size_t n_in = a->index != PLM_NONE ? 5 : a->sinks != PLM_NONE ? 4 : a->v != PLM_NONE ? 3 : 2;
    plm_node_begin(x->g, PLM_OP_ATTENTION);
    for (size_t i = 0; i < n_in; i++)
        plm_node_in(x->g, in[i]);
    plm_node_int(x->g, PLM_ATTR_HEADS, a->heads);
    plm_node_int(x->g, PLM_ATTR_KV_HEADS, a->kv_heads);
    plm_node_int(x->g, PLM_ATTR_DK, a->dk);
    plm_node_int(x->g, PLM_ATTR_DV, a->dv);
    plm_node_int(x->g, PLM_ATTR_CAUSAL, 1);
    plm_node_real(x->g, PLM_ATTR_SCALE, a->scale);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].value != 0)
            plm_node_int(x->g, parts[i].key, parts[i].value);
    if (l->softcap > 0)
        plm_node_real(x->g, PLM_ATTR_SOFTCAP, l->softcap);
    plm_value_id y = plm_node_end(x->g, x->b->act);
    return plm_emit_link(x, PLM_OP_ALL_REDUCE, y, cp, x->b->par.tp, 0);
}

/* The layer's own scale, or 1/sqrt(dk), times YaRN's factor where the family puts it there (MLA).
 */
double plm_softmax_scale(const plm_layer *l, int64_t dk)
{
    double cos_sin = 1, mult = 1;
    plm_rope_scales(&l->rope, &cos_sin, &mult);
    return (l->attn_scale > 0 ? l->attn_scale : 1.0 / sqrt((double)dk)) * mult;
}

plm_value_id plm_emit_out(plm_builder *x, plm_value_id y, plm_value_id gate, int64_t width)
{
    y = plm_emit_heads(x, y, width, 0);
    if (gate != PLM_NONE)
        y = plm_emit_binary(x, PLM_OP_MUL, y, plm_emit_unary(x, gate, PLM_FN_SIGMOID));
    return plm_emit_linear(x, y, PLM_ROLE_O, "attn_output", x->a->hidden, width, x->l->bias_o);
}

plm_value_id plm_emit_select(plm_builder *x, plm_value_id q, plm_value_id keys, plm_value_id w,
                             int64_t heads, int64_t d)
{
    const plm_layer *l = x->l;
    plm_node_begin(x->g, PLM_OP_INDEX);
    plm_node_in(x->g, q);
    plm_node_in(x->g, keys);
    plm_node_in(x->g, w);
    plm_node_int(x->g, PLM_ATTR_HEADS, heads);
    plm_node_int(x->g, PLM_ATTR_DK, d);
    plm_node_int(x->g, PLM_ATTR_TOP_K, l->index_top_k);
    if (l->index_block > 1)
        plm_node_int(x->g, PLM_ATTR_BLOCK, l->index_block);
    return plm_node_end(x->g, PLM_DT_I32);
}

/* ---- block-sparse ---- */

/* Weight 1 for each of the heads that choose blocks. */
static plm_value_id ones(plm_builder *x, int64_t heads)
{
    if (x->ones == PLM_NONE) {
        const plm_dim shape[2] = {x->t, plm_emit_const(x, heads)};
        x->g->layer = -1;
        x->ones = plm_graph_value(x->g, PLM_VALUE_INPUT, PLM_ROLE_NONE, x->b->act, "index_ones", 2,
                                  shape);
        x->g->layer = x->layer;
    }
    return x->ones;
}

/* Blocks to attend (MiniMax-M3), scored by the leading query heads against one key a token. The
** record gives heads and width of the indexer and no weights of its own, so those of the attention
** serve. */
static plm_value_id choose_blocks(plm_builder *x, plm_value_id q, plm_value_id k, int64_t q_heads)
{
    const plm_layer *l = x->l;
    int64_t heads = plm_min_i64(l->index_heads, q_heads), d = plm_min_i64(l->index_dim, l->dk);
    plm_value_id *keys = &x->kv[x->layer].keys;
    *keys = plm_emit_cache(x, "cache_index", PLM_DT_F8E4M3, x->b->par.cp, 1, d);
    plm_value_id key = plm_emit_slice(x, plm_emit_slice(x, k, 1, 0, 1), 2, 0, d);
    plm_emit_write(x, key, keys, PLM_NONE, NULL, 1);
    q = plm_emit_slice(x, plm_emit_slice(x, q, 1, 0, heads), 2, 0, d);
    return plm_emit_select(x, q, *keys, ones(x, heads), heads, d);
}

/* ---- queries, keys, values ---- */

/* [T, n, d]. L2 (Llama-4) divides by the root mean square: an RMS norm without weight. */
static plm_value_id qk_norm(plm_builder *x, plm_value_id in, const char *name, int64_t heads,
                            int64_t d)
{
    switch (x->l->qk_norm) {
    case PLM_QK_HEAD:
        return plm_emit_rms(x, in, name, d);
    case PLM_QK_L2:
        return plm_emit_rms(x, in, NULL, d);
    case PLM_QK_FULL: /* over the heads of this rank together */
        in = plm_emit_rms(x, plm_emit_heads(x, in, heads * d, 0), name, heads * d);
        return plm_emit_heads(x, in, heads, d);
    case PLM_QK_NONE:
        break;
    }
    return in;
}

/* Norm and rotation of [T, n d] in the layer's order; yields [T, n, d]. */
static plm_value_id finish_qk(plm_builder *x, plm_value_id in, const char *name, int64_t heads,
                              int64_t d)
{
    const plm_layer *l = x->l;
    in = plm_emit_heads(x, in, heads, d);
    if (!l->qk_norm_after_rope)
        in = qk_norm(x, in, name, heads, d);
    in = plm_emit_rope(x, in, &l->rope, plm_min_i64(l->rope.dims, d));
    return l->qk_norm_after_rope ? qk_norm(x, in, name, heads, d) : in;
}

typedef struct qkv {
    plm_value_id q, gate, k, v; /* k, v PLM_NONE when the layer reuses another's */
} qkv;

/* q of every head, then its output gate, if any (Qwen3-Next: the projection is twice as wide). */
static void take_q(plm_builder *x, plm_value_id q, int64_t width, qkv *out)
{
    out->q = q;
    if (!x->l->out_gate)
        return;
    out->q = plm_emit_slice(x, q, 1, 0, width);
    out->gate = plm_emit_slice(x, q, 1, width, width);
}

static qkv project_in(plm_builder *x, plm_value_id in, int64_t heads, int64_t kv_heads)
{
    const plm_layer *l = x->l;
    int64_t h = x->a->hidden, q_width = heads * l->dk, gated = l->out_gate ? 2 * q_width : q_width;
    int64_t k_width = kv_heads * l->dk, v_width = l->k_eq_v ? 0 : kv_heads * l->dv;
    bool own = l->kv_shared_layer < 0;
    qkv out = {PLM_NONE, PLM_NONE, PLM_NONE, PLM_NONE};
    if (own && x->b->fuse_qkv && l->bias_q == l->bias_k && (l->k_eq_v || l->bias_k == l->bias_v)) {
        plm_value_id y = plm_emit_linear(x, in, PLM_ROLE_QKV, "attn_qkv", gated + k_width + v_width,
                                         h, l->bias_q);
        take_q(x, plm_emit_slice(x, y, 1, 0, gated), q_width, &out);
        out.k = plm_emit_slice(x, y, 1, gated, k_width);
        out.v = v_width > 0 ? plm_emit_slice(x, y, 1, gated + k_width, v_width) : out.k;
        return out;
    }
    take_q(x, plm_emit_linear(x, in, PLM_ROLE_Q, "attn_q", gated, h, l->bias_q), q_width, &out);
    if (own) {
        out.k = plm_emit_linear(x, in, PLM_ROLE_K, "attn_k", k_width, h, l->bias_k);
        out.v = v_width > 0 ? plm_emit_linear(x, in, PLM_ROLE_V, "attn_v", v_width, h, l->bias_v)
                            : out.k;
    }
    return out;
}

/* Caches of a layer that reads those of layer `source`. When that one is on an earlier stage, which
** then sends the new entries along, this stage holds a copy. */
static plm_layer_kv *source_kv(plm_builder *x, int32_t source, int64_t kv_heads)
{
    const plm_layer *l = x->l;
    plm_layer_kv *kv = &x->kv[source];
    if (kv->k == PLM_NONE) {
        int32_t own = x->layer;
        int64_t cp = x->b->par.cp;
        plm_emit_at(x, source, l);
        kv->k = plm_emit_cache(x, "cache_k", x->b->kv_k, cp, kv_heads, l->dk);
        kv->v = plm_emit_cache(x, "cache_v", x->b->kv_v, cp, kv_heads, l->dv);
        plm_emit_at(x, own, l);
    }
    return kv;
}

/* y [T, heads, dv] times the sigmoid of one column a head of the layer's input. */
static plm_value_id gate_heads(plm_builder *x, plm_value_id in, plm_value_id y, int64_t heads)
{
    plm_value_id g =
        plm_emit_linear(x, in, PLM_ROLE_Q, "attn_gate", heads, x->a->hidden, false);
    g = plm_emit_heads(x, plm_emit_unary(x, g, PLM_FN_SIGMOID), heads, 1);
    return plm_emit_binary(x, PLM_OP_MUL, plm_emit_heads(x, y, heads, x->l->dv), g);
}

plm_value_id plm_emit_attention(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    int64_t tp = x->b->par.tp, cp = x->b->par.cp, heads = plm_ceil_div(l->heads, tp);
    int64_t kv_heads = plm_ceil_div(l->kv_heads, tp);
    bool own = l->kv_shared_layer < 0;
    qkv p = project_in(x, in, heads, kv_heads);
    plm_value_id q = finish_qk(x, p.q, "attn_q_norm", heads, l->dk), index = PLM_NONE;
    plm_layer_kv *kv = own ? &x->kv[x->layer] : source_kv(x, l->kv_shared_layer, kv_heads);
    if (own) {
        plm_value_id k = finish_qk(x, p.k, "attn_k_norm", kv_heads, l->dk);
        kv->k = plm_emit_cache(x, "cache_k", x->b->kv_k, cp, kv_heads, l->dk);
        kv->v = plm_emit_cache(x, "cache_v", x->b->kv_v, cp, kv_heads, l->dv);
        plm_emit_write(x, k, &kv->k, plm_emit_heads(x, p.v, kv_heads, l->dv), &kv->v, 1);
        if (l->index_top_k > 0)
            kv->index = choose_blocks(x, q, k, heads);
        index = kv->index;
    }
    plm_attention a = {.q = q,
                       .k = kv->k,
                       .v = kv->v,
                       .sinks = l->sinks ? plm_emit_vector(x, PLM_ROLE_SINK, "attn_sinks", heads)
                                         : PLM_NONE,
                       .index = index,
                       .heads = heads,
                       .kv_heads = kv_heads,
                       .dk = l->dk,
                       .dv = l->dv,
                       .window = l->attn == PLM_ATTN_SLIDING ? l->window : 0,
                       .chunk = l->attn == PLM_ATTN_CHUNKED ? l->window : 0,
                       .scale = plm_softmax_scale(l, l->dk)};
    if (index != PLM_NONE)
        a.sparse_top_k = (int64_t)l->index_top_k * plm_max_i64(1, l->index_block);
    plm_value_id y = plm_emit_attend(x, &a);
    if (l->gate_per_head)
        y = gate_heads(x, in, y, heads);
    return plm_emit_out(x, y, p.gate, heads * l->dv);
}
