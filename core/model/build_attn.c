/* build_attn.c - the attention half: grouped-query, sliding, chunked, latent (MLA, with or without an
** index), block-sparse and compressed.
**
** Tensor parallel: heads are split, key/value heads too until there is one a rank and copied beyond;
** the latent of MLA is copied; the output projection sums by all-reduce. Context parallel: a rank holds
** every cp-th token, so an entry of its cache stands for cp tokens (attribute ratio), and the partial
** outputs are summed over the group.
*/
#include <math.h>
#include <stdio.h>

#include "core/base/mem.h"
#include "core/model/build_parts.h"

/* Caches of this layer: their newest versions, made when first asked for. dv 0 = keys alone. */
static void caches(plm_builder *x, int64_t heads, int64_t dk, int64_t dv)
{
    plm_value_id *kv = x->kv[x->layer];
    plm_dim shape[3] = {x->c, plm_emit_const(x, heads), plm_emit_const(x, dk)};
    kv[0] = plm_emit_state(x, "cache_k", x->b->kv_k, 3, shape);
    shape[2] = plm_emit_const(x, dv);
    kv[1] = dv > 0 ? plm_emit_state(x, "cache_v", x->b->kv_v, 3, shape) : PLM_NONE;
}

/* Writes k (and v) [T, G, d] to the layer's caches. */
static void write_kv(plm_builder *x, plm_value_id k, plm_value_id v, int64_t ratio)
{
    plm_value_id *kv = x->kv[x->layer];
    plm_node_begin(x->g, PLM_OP_KV_WRITE);
    plm_node_in(x->g, k);
    plm_node_in(x->g, kv[0]);
    if (v != PLM_NONE) {
        plm_node_in(x->g, v);
        plm_node_in(x->g, kv[1]);
    }
    if (ratio > 1)
        plm_node_int(x->g, PLM_ATTR_RATIO, ratio);
    kv[0] = plm_node_end(x->g, PLM_DT_COUNT);
    if (v != PLM_NONE)
        kv[1] = plm_node_out(x->g, 1);
}

typedef struct attention {
    plm_value_id q, k_cache, v_cache, sinks, index;
    int64_t heads, kv_heads, dk, dv, window, chunk, sparse_top_k, ratio;
    bool v_in_k;
    double scale;
} attention;

static plm_value_id attend(plm_builder *x, const attention *a)
{
    const plm_layer *l = x->l;
    int64_t cp = x->b->par.cp, ratio = (a->ratio > 1 ? a->ratio : 1) * cp;
    plm_node_begin(x->g, PLM_OP_ATTENTION);
    plm_node_in(x->g, a->q);
    plm_node_in(x->g, a->k_cache);
    plm_node_in(x->g, a->v_cache);
    plm_node_in(x->g, a->sinks);
    plm_node_in(x->g, a->index);
    const struct {
        plm_attr_key key;
        int64_t value;
    } parts[] = {{PLM_ATTR_WINDOW, a->window},
                 {PLM_ATTR_CHUNK, a->chunk},
                 {PLM_ATTR_ALIBI, l->alibi},
                 {PLM_ATTR_V_IN_K, a->v_in_k},
                 {PLM_ATTR_SPARSE_TOP_K, a->sparse_top_k},
                 {PLM_ATTR_RATIO, ratio > 1 ? ratio : 0}};
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
    return plm_emit_link(x, PLM_OP_ALL_REDUCE, y, cp, 0);
}

/* Softmax scale of heads of dk columns: the layer's own, or 1/sqrt(dk), times YaRN's factor where the
** family puts it there (MLA). */
static double softmax_scale(const plm_layer *l, int64_t dk)
{
    double cos_sin = 1, mult = 1;
    plm_rope_scales(&l->rope, &cos_sin, &mult);
    return (l->attn_scale > 0 ? l->attn_scale : 1.0 / sqrt((double)dk)) * mult;
}

/* Output projection of [T, H, dv] (times the gate [T, H dv]), summed over tp. */
static plm_value_id project_out(plm_builder *x, plm_value_id y, plm_value_id gate, int64_t width)
{
    y = plm_emit_heads(x, y, width, 0);
    if (gate != PLM_NONE)
        y = plm_emit_binary(x, PLM_OP_MUL, y, plm_emit_unary(x, gate, PLM_FN_SIGMOID));
    y = plm_emit_linear(x, y, PLM_ROLE_O, "attn_output", x->a->hidden, width, x->l->bias_o);
    return plm_emit_link(x, PLM_OP_ALL_REDUCE, y, x->b->par.tp, 0);
}

/* ---- index-selected keys ---- */

/* The indexer: its own queries from q_in (the query latent, or the layer's input), one key a token,
** weights of its heads; yields the positions (or blocks) to attend. Copied on every rank: it is small
** and every rank needs all positions. */
static plm_value_id indexer(plm_builder *x, plm_value_id in, plm_value_id q_in, int64_t q_width)
{
    const plm_layer *l = x->l;
    int64_t heads = l->index_heads, d = l->index_dim;
    char name[48];
    snprintf(name, sizeof name, "cache_index");
    plm_dim shape[3] = {x->c, plm_emit_const(x, 1), plm_emit_const(x, d)};
    plm_value_id cache = plm_emit_state(x, name, x->b->kv_k, 3, shape);
    plm_value_id q = plm_emit_linear(x, q_in, PLM_ROLE_INDEX, "index_q", heads * d, q_width, false);
    plm_value_id k = plm_emit_linear(x, in, PLM_ROLE_INDEX, "index_k", d, x->a->hidden, false);
    plm_value_id kn = plm_emit_vector(x, PLM_ROLE_NORM, "index_k_norm", d);
    plm_value_id kb = plm_emit_vector(x, PLM_ROLE_NORM, "index_k_norm.bias", d);
    plm_node_begin(x->g, PLM_OP_LAYER_NORM);
    plm_node_in(x->g, k);
    plm_node_in(x->g, kn);
    plm_node_in(x->g, kb);
    k = plm_node_end(x->g, PLM_DT_COUNT);
    plm_value_id w = plm_emit_linear(x, in, PLM_ROLE_INDEX, "index_w", heads, x->a->hidden, false);
    int64_t rope = plm_min_i64(l->rope_dim > 0 ? l->rope_dim : l->rope.dims, d);
    q = plm_emit_rope(x, plm_emit_heads(x, q, heads, d), &l->rope, rope);
    k = plm_emit_rope(x, plm_emit_heads(x, k, 1, d), &l->rope, rope);
    plm_node_begin(x->g, PLM_OP_KV_WRITE);
    plm_node_in(x->g, k);
    plm_node_in(x->g, cache);
    if (l->ratio > 1)
        plm_node_int(x->g, PLM_ATTR_RATIO, l->ratio);
    cache = plm_node_end(x->g, PLM_DT_COUNT);
    plm_node_begin(x->g, PLM_OP_INDEX);
    plm_node_in(x->g, q);
    plm_node_in(x->g, cache);
    plm_node_in(x->g, w);
    plm_node_int(x->g, PLM_ATTR_HEADS, heads);
    plm_node_int(x->g, PLM_ATTR_DK, d);
    plm_node_int(x->g, PLM_ATTR_TOP_K, l->index_top_k);
    if (l->index_block > 1)
        plm_node_int(x->g, PLM_ATTR_BLOCK, l->index_block);
    return plm_node_end(x->g, PLM_DT_I32);
}

/* Selection of whole blocks (MiniMax-M3): no weights of its own are known, and its heads and width are
** those of the keys; scored as the leading query heads against one key a token, weights all one. */
static plm_value_id block_indexer(plm_builder *x, plm_value_id q, plm_value_id k)
{
    const plm_layer *l = x->l;
    int64_t heads = plm_min_i64(l->index_heads, l->heads / x->b->par.tp), d = l->index_dim;
    char name[48];
    plm_dim shape[3] = {x->c, plm_emit_const(x, 1), plm_emit_const(x, d)};
    plm_value_id cache = plm_emit_state(x, "cache_index", x->b->kv_k, 3, shape);
    snprintf(name, sizeof name, "blk.%d.index_ones", x->layer);
    shape[0] = x->t;
    shape[1] = plm_emit_const(x, heads);
    plm_value_id ones = plm_graph_value(x->g, PLM_VALUE_INPUT, PLM_ROLE_NONE, x->b->act, name, 2,
                                        shape);
    k = plm_emit_slice(x, plm_emit_slice(x, k, 1, 0, 1), 2, 0, d);
    q = plm_emit_slice(x, plm_emit_slice(x, q, 1, 0, heads), 2, 0, d);
    plm_node_begin(x->g, PLM_OP_KV_WRITE);
    plm_node_in(x->g, k);
    plm_node_in(x->g, cache);
    cache = plm_node_end(x->g, PLM_DT_COUNT);
    plm_node_begin(x->g, PLM_OP_INDEX);
    plm_node_in(x->g, q);
    plm_node_in(x->g, cache);
    plm_node_in(x->g, ones);
    plm_node_int(x->g, PLM_ATTR_HEADS, heads);
    plm_node_int(x->g, PLM_ATTR_DK, d);
    plm_node_int(x->g, PLM_ATTR_TOP_K, l->index_top_k);
    plm_node_int(x->g, PLM_ATTR_BLOCK, l->index_block);
    return plm_node_end(x->g, PLM_DT_I32);
}

/* ---- grouped-query attention ---- */

static plm_value_id qk_norm(plm_builder *x, plm_value_id in, const char *name, int64_t heads,
                            int64_t d)
{
    switch (x->l->qk_norm) {
    case PLM_QK_HEAD:
        return plm_emit_rms(x, in, name, d);
    case PLM_QK_L2:
        plm_node_begin(x->g, PLM_OP_RMS_NORM);
        plm_node_in(x->g, in);
        plm_node_real(x->g, PLM_ATTR_EPS, x->a->norm_eps);
        return plm_node_end(x->g, PLM_DT_COUNT);
    case PLM_QK_FULL: /* over all heads together */
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

/* q of every head, then its output gate, if any. */
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
    if (own && x->b->fuse_qkv && l->bias_q == l->bias_k && l->bias_k == l->bias_v) {
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

static plm_value_id grouped_query(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    int64_t tp = x->b->par.tp, heads = l->heads / tp;
    int64_t kv_heads = plm_max_i64(1, l->kv_heads / tp);
    int32_t source = l->kv_shared_layer >= 0 ? l->kv_shared_layer : x->layer;
    qkv p = project_in(x, in, heads, kv_heads);
    plm_value_id q = finish_qk(x, p.q, "attn_q_norm", heads, l->dk), k = PLM_NONE;
    if (l->kv_shared_layer < 0) {
        k = finish_qk(x, p.k, "attn_k_norm", kv_heads, l->dk);
        caches(x, kv_heads, l->dk, l->dv);
        write_kv(x, k, plm_emit_heads(x, p.v, kv_heads, l->dv), 0);
    } else if (x->kv[source][0] == PLM_NONE) {
        /* The source is on an earlier stage, which sends its cache's new entries along. */
        int32_t own = x->layer;
        x->layer = source;
        caches(x, kv_heads, l->dk, l->dv);
        x->layer = own;
    }
    attention a = {.q = q,
                   .k_cache = x->kv[source][0],
                   .v_cache = x->kv[source][1],
                   .sinks = l->sinks ? plm_emit_vector(x, PLM_ROLE_SINK, "attn_sinks", heads)
                                     : PLM_NONE,
                   .index = PLM_NONE,
                   .heads = heads,
                   .kv_heads = kv_heads,
                   .dk = l->dk,
                   .dv = l->dv,
                   .window = l->attn == PLM_ATTN_SLIDING ? l->window : 0,
                   .chunk = l->attn == PLM_ATTN_CHUNKED ? l->window : 0,
                   .scale = softmax_scale(l, l->dk)};
    if (l->index_top_k > 0) {
        a.index = l->index_block > 1 && k != PLM_NONE && l->dk >= l->index_dim
                      ? block_indexer(x, q, k)
                      : indexer(x, in, in, x->a->hidden);
        a.sparse_top_k = l->index_top_k * plm_max_i64(1, l->index_block);
    }
    return project_out(x, attend(x, &a), p.gate, heads * l->dv);
}

/* ---- latent attention ---- */

/* Queries [T, H, nope + rope], rotated; *latent: what the indexer reads. */
static plm_value_id latent_query(plm_builder *x, plm_value_id in, int64_t heads,
                                 plm_value_id *latent, int64_t *latent_width)
{
    const plm_layer *l = x->l;
    int64_t width = heads * (l->nope + l->rope_dim);
    *latent = in;
    *latent_width = x->a->hidden;
    if (l->q_lora == 0)
        return plm_emit_heads(x, plm_emit_linear(x, in, PLM_ROLE_Q, "attn_q", width, x->a->hidden,
                                                 l->bias_q),
                              heads, l->nope + l->rope_dim);
    plm_value_id a = plm_emit_linear(x, in, PLM_ROLE_Q_A, "attn_q_a", l->q_lora, x->a->hidden,
                                     l->bias_q);
    *latent = plm_emit_rms(x, a, "attn_q_a_norm", l->q_lora);
    *latent_width = l->q_lora;
    return plm_emit_heads(x, plm_emit_linear(x, *latent, PLM_ROLE_Q_B, "attn_q_b", width, l->q_lora,
                                             false),
                          heads, l->nope + l->rope_dim);
}

static plm_value_id join_columns(plm_builder *x, plm_value_id a, plm_value_id b)
{
    plm_node_begin(x->g, PLM_OP_CONCAT);
    plm_node_in(x->g, a);
    plm_node_in(x->g, b);
    plm_node_int(x->g, PLM_ATTR_AXIS, 2);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

static plm_value_id per_head(plm_builder *x, plm_value_id in, plm_role role, const char *name,
                             int64_t heads, int64_t n, int64_t k)
{
    plm_value_id w = plm_emit_stack(x, role, name, heads, n, k);
    return plm_emit_binary(x, PLM_OP_BMM, in, w);
}

/* Keys and values of full heads from the latent; the caches hold full heads. */
static plm_value_id expanded(plm_builder *x, plm_value_id q_nope, plm_value_id q_rope,
                             plm_value_id latent, plm_value_id k_rope, int64_t heads,
                             plm_value_id index)
{
    const plm_layer *l = x->l;
    int64_t dk = l->nope + l->rope_dim;
    plm_value_id kn = plm_emit_linear(x, latent, PLM_ROLE_K_B, "attn_k_b", heads * l->nope,
                                      l->kv_lora, false);
    plm_value_id v = plm_emit_linear(x, latent, PLM_ROLE_V_B, "attn_v_b", heads * l->dv, l->kv_lora,
                                     false);
    plm_node_begin(x->g, PLM_OP_REPEAT);
    plm_node_in(x->g, k_rope);
    plm_node_int(x->g, PLM_ATTR_AXIS, 1);
    plm_node_int(x->g, PLM_ATTR_COUNT, heads);
    k_rope = plm_node_end(x->g, PLM_DT_COUNT);
    plm_value_id k = join_columns(x, plm_emit_heads(x, kn, heads, l->nope), k_rope);
    caches(x, heads, dk, l->dv);
    write_kv(x, k, plm_emit_heads(x, v, heads, l->dv), 0);
    attention a = {.q = join_columns(x, q_nope, q_rope),
                   .k_cache = x->kv[x->layer][0],
                   .v_cache = x->kv[x->layer][1],
                   .sinks = PLM_NONE,
                   .index = index,
                   .heads = heads,
                   .kv_heads = heads,
                   .dk = dk,
                   .dv = l->dv,
                   .sparse_top_k = l->index_top_k,
                   .scale = softmax_scale(l, dk)};
    return attend(x, &a);
}

/* Queries taken into the latent space, attention over the latent itself, values taken out. */
static plm_value_id absorbed(plm_builder *x, plm_value_id q_nope, plm_value_id q_rope,
                             plm_value_id latent, plm_value_id k_rope, int64_t heads,
                             plm_value_id index)
{
    const plm_layer *l = x->l;
    int64_t width = l->kv_lora + l->rope_dim;
    plm_value_id q = per_head(x, q_nope, PLM_ROLE_K_B, "attn_k_b", heads, l->kv_lora, l->nope);
    plm_value_id k = join_columns(x, plm_emit_heads(x, latent, 1, l->kv_lora), k_rope);
    caches(x, 1, width, 0);
    write_kv(x, k, PLM_NONE, 0);
    attention a = {.q = join_columns(x, q, q_rope),
                   .k_cache = x->kv[x->layer][0],
                   .v_cache = PLM_NONE,
                   .sinks = PLM_NONE,
                   .index = index,
                   .heads = heads,
                   .kv_heads = 1,
                   .dk = width,
                   .dv = l->kv_lora,
                   .v_in_k = true,
                   .sparse_top_k = l->index_top_k,
                   .scale = softmax_scale(l, l->nope + l->rope_dim)};
    return per_head(x, attend(x, &a), PLM_ROLE_V_B, "attn_v_b", heads, l->dv, l->kv_lora);
}

static plm_value_id latent_attention(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    int64_t heads = l->heads / x->b->par.tp, q_width;
    plm_value_id q_latent, index = PLM_NONE, gate = PLM_NONE;
    plm_value_id q = latent_query(x, in, heads, &q_latent, &q_width);
    if (l->out_gate)
        gate = plm_emit_linear(x, in, PLM_ROLE_Q, "attn_gate", heads * l->dv, x->a->hidden, false);
    plm_value_id kv = plm_emit_linear(x, in, PLM_ROLE_KV_A, "attn_kv_a", l->kv_lora + l->rope_dim,
                                      x->a->hidden, l->bias_k);
    plm_value_id latent = plm_emit_rms(x, plm_emit_slice(x, kv, 1, 0, l->kv_lora),
                                       "attn_kv_a_norm", l->kv_lora);
    plm_value_id k_rope = plm_emit_heads(x, plm_emit_slice(x, kv, 1, l->kv_lora, l->rope_dim), 1,
                                         l->rope_dim);
    k_rope = plm_emit_rope(x, k_rope, &l->rope, l->rope_dim);
    plm_value_id q_nope = plm_emit_slice(x, q, 2, 0, l->nope);
    plm_value_id q_rope = plm_emit_rope(x, plm_emit_slice(x, q, 2, l->nope, l->rope_dim), &l->rope,
                                        l->rope_dim);
    if (l->index_top_k > 0)
        index = indexer(x, in, q_latent, q_width);
    plm_value_id y = x->b->mla_expanded
                         ? expanded(x, q_nope, q_rope, latent, k_rope, heads, index)
                         : absorbed(x, q_nope, q_rope, latent, k_rope, heads, index);
    return project_out(x, y, gate, heads * l->dv);
}

/* ---- compressed attention (DeepSeek-V4) ---- */

/* Output through groups of heads: [T, groups, width / groups] to o_lora each, then to hidden. */
static plm_value_id grouped_out(plm_builder *x, plm_value_id y, int64_t heads)
{
    const plm_layer *l = x->l;
    int64_t groups = plm_max_i64(1, l->o_groups / x->b->par.tp);
    int64_t width = heads * l->dv;
    if (l->o_lora == 0)
        return project_out(x, y, PLM_NONE, width);
    y = plm_emit_heads(x, y, groups, width / groups);
    y = per_head(x, y, PLM_ROLE_O, "attn_o_a", groups, l->o_lora, width / groups);
    y = plm_emit_heads(x, y, groups * l->o_lora, 0);
    y = plm_emit_linear(x, y, PLM_ROLE_O, "attn_o_b", x->a->hidden, groups * l->o_lora, l->bias_o);
    return plm_emit_link(x, PLM_OP_ALL_REDUCE, y, x->b->par.tp, 0);
}

/* One latent key (which is the value too) a token in a sliding window, and one weighted sum a `ratio`
** tokens for the rest, both in one cache; a gate projection weighs the sum. */
static plm_value_id compressed(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    int64_t heads = l->heads / x->b->par.tp, h = x->a->hidden, q_width;
    plm_value_id q_latent = in, index = PLM_NONE;
    q_width = h;
    if (l->q_lora > 0) {
        q_latent = plm_emit_rms(x, plm_emit_linear(x, in, PLM_ROLE_Q_A, "attn_q_a", l->q_lora, h,
                                                   false),
                                "attn_q_a_norm", l->q_lora);
        q_width = l->q_lora;
    }
    plm_value_id q = plm_emit_linear(x, q_latent, PLM_ROLE_Q_B, "attn_q_b", heads * l->dk, q_width,
                                     false);
    q = plm_emit_rope(x, plm_emit_heads(x, q, heads, l->dk), &l->rope, l->rope.dims);
    plm_value_id k = plm_emit_rms(x, plm_emit_linear(x, in, PLM_ROLE_KV_A, "attn_kv", l->dk, h,
                                                     false),
                                  "attn_kv_norm", l->dk);
    if (l->ratio > 1) {
        plm_dim shape[3] = {x->s, plm_emit_const(x, l->ratio), plm_emit_const(x, l->dk)};
        plm_value_id tail = plm_emit_state(x, "pool_tail", PLM_DT_F32, 3, shape);
        plm_value_id gate = plm_emit_linear(x, in, PLM_ROLE_KV_A, "attn_pool_gate", l->dk, h, false);
        plm_node_begin(x->g, PLM_OP_KV_POOL);
        plm_node_in(x->g, k);
        plm_node_in(x->g, gate);
        plm_node_in(x->g, tail);
        plm_node_int(x->g, PLM_ATTR_RATIO, l->ratio);
        k = plm_node_end(x->g, PLM_DT_COUNT);
    }
    k = plm_emit_rope(x, plm_emit_heads(x, k, 1, l->dk), &l->rope, l->rope.dims);
    if (l->index_top_k > 0)
        index = indexer(x, in, q_latent, q_width);
    caches(x, 1, l->dk, 0);
    write_kv(x, k, PLM_NONE, l->ratio);
    attention a = {.q = q,
                   .k_cache = x->kv[x->layer][0],
                   .v_cache = PLM_NONE,
                   .sinks = PLM_NONE,
                   .index = index,
                   .heads = heads,
                   .kv_heads = 1,
                   .dk = l->dk,
                   .dv = l->dv,
                   .v_in_k = true,
                   .window = l->ratio > 1 ? 0 : l->window,
                   .ratio = l->ratio,
                   .sparse_top_k = l->index_top_k,
                   .scale = softmax_scale(l, l->dk)};
    return grouped_out(x, attend(x, &a), heads);
}

plm_value_id plm_emit_attention(plm_builder *x, plm_value_id in)
{
    switch (x->l->attn) {
    case PLM_ATTN_MLA:
        return latent_attention(x, in);
    case PLM_ATTN_COMPRESSED:
        return compressed(x, in);
    default:
        return grouped_query(x, in);
    }
}
