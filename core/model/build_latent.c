/* build_latent.c - attention over latents: MLA, whole or absorbed, with or without an indexer
** (DSA), and the compressed attention of DeepSeek-V4.
**
** Tensor parallel: query heads are split; the latent, its cache and the indexer are copied on every
** rank. Source of the forms: DeepSeek-V2 (arXiv 2405.04434, section 2.1), DeepSeek-V3.2 report.
*/
#include <stdio.h>

#include "core/base/mem.h"
#include "core/model/build_parts.h"

/* ---- indexer ---- */

/* Names of the parts of a pool: projections of values and of their weights, weights by place in the
** group, and state. */
typedef struct pool_parts {
    plm_role role;
    const char *kv, *gate, *place, *tail;
} pool_parts;

/* Vector [T, d] of each token; where entries stand for several, weighted sums of each `ratio`
** tokens, and 0 in the rows between the ends of groups. DeepSeek-V4's layers of ratio 4 pool two
** vectors, of the entry's own tokens and of those before, into one; here each is pooled on its own
** and their sum stands for both. Source: transformers, modeling_deepseek_v4.py. */
static plm_value_id pool(plm_builder *x, plm_value_id in, const pool_parts *p, int64_t d)
{
    int64_t ratio = x->l->ratio, h = x->a->hidden;
    bool overlap = ratio == 4 && x->l->index_heads > 0;
    int64_t width = overlap ? 2 * d : d;
    plm_value_id k = plm_emit_linear(x, in, p->role, p->kv, width, h, false);
    if (ratio <= 1)
        return k;
    plm_value_id gate = plm_emit_linear(x, in, p->role, p->gate, width, h, false);
    plm_value_id place = plm_emit_matrix(x, PLM_ROLE_SSM_SMALL, p->place, ratio, width);
    plm_value_id tail = plm_emit_state(x, p->tail, PLM_DT_F32, ratio, width, 0);
    plm_node_begin(x->g, PLM_OP_KV_POOL);
    plm_node_in(x->g, k);
    plm_node_in(x->g, gate);
    plm_node_in(x->g, tail);
    plm_node_in(x->g, place);
    plm_node_int(x->g, PLM_ATTR_RATIO, ratio);
    plm_value_id y = plm_node_end(x->g, PLM_DT_COUNT);
    return overlap ? plm_emit_binary(x, PLM_OP_ADD, plm_emit_slice(x, y, 1, 0, d),
                                     plm_emit_slice(x, y, 1, d, d))
                   : y;
}

/* Cache of the indexer's keys, kept at one byte an element as served, in the cache's type where
** entries are compressed. */
static plm_value_id index_cache(plm_builder *x)
{
    const plm_layer *l = x->l;
    plm_dtype t = l->attn == PLM_ATTN_COMPRESSED ? x->b->kv_k : PLM_DT_F8E4M3;
    return plm_emit_cache(x, "cache_index", t, plm_max_i64(1, l->ratio) * x->b->par.cp, 1,
                          l->index_dim);
}

/* Keys of the indexer: one of index_dim columns a token (or entry). */
static plm_value_id index_keys(plm_builder *x, plm_value_id in, int64_t rotated)
{
    static const pool_parts parts = {PLM_ROLE_INDEX, "index_k", "index_pool", "index_place",
                                     "index_tail"};
    const plm_layer *l = x->l;
    int64_t d = l->index_dim;
    plm_value_id k = pool(x, in, &parts, d), keys = index_cache(x);
    k = l->attn == PLM_ATTN_COMPRESSED ? plm_emit_rms(x, k, "index_k_norm", d)
                                       : plm_emit_layer_norm(x, k, "index_k_norm", d, true);
    k = plm_emit_rope(x, plm_emit_heads(x, k, 1, d), &l->rope, rotated);
    plm_emit_write(x, k, &keys, PLM_NONE, NULL, l->ratio);
    return keys;
}

/* Positions that each token attends: queries from q_in (the query latent, or the layer's input), a
** weight a head, and the keys of this layer or, in kv, of the one whose cache it shares. */
static plm_value_id choose_keys(plm_builder *x, plm_value_id in, plm_value_id q_in, int64_t q_width,
                                plm_layer_kv *kv)
{
    const plm_layer *l = x->l;
    int64_t heads = l->index_heads, d = l->index_dim;
    int64_t rotated = plm_min_i64(l->rope_dim > 0 ? l->rope_dim : l->rope.dims, d) / 2 * 2;
    plm_value_id q = plm_emit_linear(x, q_in, PLM_ROLE_INDEX, "index_q", heads * d, q_width, false);
    q = plm_emit_rope(x, plm_emit_heads(x, q, heads, d), &l->rope, rotated);
    if (kv->keys == PLM_NONE)
        kv->keys = index_keys(x, in, rotated);
    plm_value_id w = plm_emit_linear(x, in, PLM_ROLE_INDEX, "index_w", heads, x->a->hidden, false);
    return plm_emit_select(x, q, kv->keys, w, heads, d);
}

/* ---- MLA ---- */

typedef struct latent {
    plm_value_id q_in; /* what heads' queries are made of: the query latent, or the input */
    int64_t q_width;
    plm_value_id kv; /* [T, kv_lora + rope_dim] */
} latent;

/* Down projections of query and key/value, in one matrix where the engine stores them so. */
static latent down(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    int64_t h = x->a->hidden, width = (int64_t)l->kv_lora + l->rope_dim;
    latent z = {.q_in = in, .q_width = h};
    if (l->q_lora > 0 && x->b->fuse_qkv && l->bias_q == l->bias_k) {
        plm_value_id y =
            plm_emit_linear(x, in, PLM_ROLE_Q_A, "attn_qkv_a", l->q_lora + width, h, l->bias_q);
        z.q_in = plm_emit_slice(x, y, 1, 0, l->q_lora);
        z.kv = plm_emit_slice(x, y, 1, l->q_lora, width);
    } else {
        if (l->q_lora > 0)
            z.q_in = plm_emit_linear(x, in, PLM_ROLE_Q_A, "attn_q_a", l->q_lora, h, l->bias_q);
        z.kv = plm_emit_linear(x, in, PLM_ROLE_KV_A, "attn_kv_a", width, h, l->bias_k);
    }
    if (l->q_lora > 0) {
        z.q_in = plm_emit_rms(x, z.q_in, "attn_q_a_norm", l->q_lora);
        z.q_width = l->q_lora;
    }
    return z;
}

/* Queries and keys in two parts: those that carry no position, and those that are rotated. */
typedef struct mla {
    plm_value_id q_nope, q_rope; /* [T, H, nope], [T, H, rope_dim] */
    plm_value_id c, k_rope;      /* [T, kv_lora], [T, 1, rope_dim] */
    plm_value_id index;
    int64_t heads;
} mla;

/* Keys and values of full heads from the latent; the caches hold full heads. */
static plm_value_id expanded(plm_builder *x, const mla *m)
{
    const plm_layer *l = x->l;
    int64_t heads = m->heads, dk = l->nope + l->rope_dim, cp = x->b->par.cp;
    plm_layer_kv *kv = &x->kv[x->layer];
    plm_value_id kn =
        plm_emit_linear(x, m->c, PLM_ROLE_K_B, "attn_k_b", heads * l->nope, l->kv_lora, false);
    plm_value_id v =
        plm_emit_linear(x, m->c, PLM_ROLE_V_B, "attn_v_b", heads * l->dv, l->kv_lora, false);
    plm_value_id k = plm_emit_concat(x, plm_emit_heads(x, kn, heads, l->nope),
                                     plm_emit_repeat(x, m->k_rope, 1, heads), 2);
    kv->k = plm_emit_cache(x, "cache_k", x->b->kv_k, cp, heads, dk);
    kv->v = plm_emit_cache(x, "cache_v", x->b->kv_v, cp, heads, l->dv);
    plm_emit_write(x, k, &kv->k, plm_emit_heads(x, v, heads, l->dv), &kv->v, 1);
    plm_attention a = {.q = plm_emit_concat(x, m->q_nope, m->q_rope, 2),
                       .k = kv->k,
                       .v = kv->v,
                       .sinks = PLM_NONE,
                       .index = m->index,
                       .heads = heads,
                       .kv_heads = heads,
                       .dk = dk,
                       .dv = l->dv,
                       .sparse_top_k = l->index_top_k,
                       .scale = plm_softmax_scale(l, dk)};
    return plm_emit_attend(x, &a);
}

/* Queries taken into the latent space, attention over the latent itself, values taken out. */
static plm_value_id absorbed(plm_builder *x, const mla *m)
{
    const plm_layer *l = x->l;
    int64_t width = (int64_t)l->kv_lora + l->rope_dim;
    plm_layer_kv *kv = &x->kv[x->layer];
    plm_value_id q =
        plm_emit_per_head(x, m->q_nope, PLM_ROLE_K_B, "attn_k_b", m->heads, l->kv_lora, l->nope);
    plm_value_id k = plm_emit_concat(x, plm_emit_heads(x, m->c, 1, l->kv_lora), m->k_rope, 2);
    kv->k = plm_emit_cache(x, "cache_k", x->b->kv_k, x->b->par.cp, 1, width);
    plm_emit_write(x, k, &kv->k, PLM_NONE, NULL, 1);
    plm_attention a = {.q = plm_emit_concat(x, q, m->q_rope, 2),
                       .k = kv->k,
                       .v = PLM_NONE,
                       .sinks = PLM_NONE,
                       .index = m->index,
                       .heads = m->heads,
                       .kv_heads = 1,
                       .dk = width,
                       .dv = l->kv_lora,
                       .v_in_k = true,
                       .sparse_top_k = l->index_top_k,
                       .scale = plm_softmax_scale(l, l->nope + l->rope_dim)};
    return plm_emit_per_head(x, plm_emit_attend(x, &a), PLM_ROLE_V_B, "attn_v_b", m->heads, l->dv,
                             l->kv_lora);
}

plm_value_id plm_emit_latent(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    int64_t heads = plm_ceil_div(l->heads, x->b->par.tp), dk = l->nope + l->rope_dim;
    plm_layer_kv *kv = &x->kv[x->layer];
    latent z = down(x, in);
    plm_value_id gate = PLM_NONE;
    plm_value_id q = plm_emit_linear(x, z.q_in, l->q_lora > 0 ? PLM_ROLE_Q_B : PLM_ROLE_Q,
                                     l->q_lora > 0 ? "attn_q_b" : "attn_q", heads * dk, z.q_width,
                                     l->q_lora == 0 && l->bias_q);
    if (l->out_gate)
        gate = plm_emit_linear(x, in, PLM_ROLE_Q, "attn_gate", heads * l->dv, x->a->hidden, false);
    q = plm_emit_heads(x, q, heads, dk);
    mla m = {.heads = heads, .index = PLM_NONE};
    m.c = plm_emit_rms(x, plm_emit_slice(x, z.kv, 1, 0, l->kv_lora), "attn_kv_a_norm", l->kv_lora);
    m.k_rope =
        plm_emit_heads(x, plm_emit_slice(x, z.kv, 1, l->kv_lora, l->rope_dim), 1, l->rope_dim);
    m.k_rope = plm_emit_rope(x, m.k_rope, &l->rope, l->rope_dim);
    m.q_nope = plm_emit_slice(x, q, 2, 0, l->nope);
    m.q_rope =
        plm_emit_rope(x, plm_emit_slice(x, q, 2, l->nope, l->rope_dim), &l->rope, l->rope_dim);
    if (l->index_top_k > 0)
        kv->index = m.index = choose_keys(x, in, z.q_in, z.q_width, kv);
    plm_value_id y = x->b->mla_expanded ? expanded(x, &m) : absorbed(x, &m);
    return plm_emit_out(x, y, gate, heads * l->dv);
}

/* ---- compressed attention ---- */

/* Output through groups of heads: [T, groups, width / groups] to o_lora each, then to hidden. More
** ranks than groups share a group, whose parts the sum over tp joins. */
static plm_value_id grouped_out(plm_builder *x, plm_value_id y, int64_t heads)
{
    const plm_layer *l = x->l;
    int64_t width = heads * l->dv;
    if (l->o_lora == 0)
        return plm_emit_out(x, y, PLM_NONE, width);
    int64_t groups = plm_max_i64(1, l->o_groups / x->b->par.tp);
    groups = heads % groups == 0 ? groups : 1;
    y = plm_emit_heads(x, y, groups, width / groups);
    y = plm_emit_per_head(x, y, PLM_ROLE_O, "attn_o_a", groups, l->o_lora, width / groups);
    y = plm_emit_heads(x, y, groups * l->o_lora, 0);
    return plm_emit_linear(x, y, PLM_ROLE_O, "attn_o_b", x->a->hidden, groups * l->o_lora,
                           l->bias_o);
}

/* What a layer shares of layer `source`. When that one is on an earlier stage, which then sends its
** new entries and choices along, this stage holds copies. */
static plm_layer_kv *source_entries(plm_builder *x, int32_t source)
{
    const plm_layer *own = x->l, *from = plm_arch_layer(x->a, source);
    plm_layer_kv *kv = &x->kv[source];
    int32_t layer = x->layer;
    char name[48];
    if (kv->k != PLM_NONE)
        return kv;
    plm_emit_at(x, source, from);
    kv->k = plm_emit_cache(x, "cache_k", x->b->kv_k, plm_max_i64(1, from->ratio) * x->b->par.cp, 1,
                           from->dk);
    if (from->index_top_k > 0) {
        const plm_dim shape[2] = {x->t, plm_emit_const(x, from->index_top_k)};
        kv->keys = index_cache(x);
        snprintf(name, sizeof name, "blk.%d.index", source);
        kv->index =
            plm_graph_value(x->g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_I32, name, 2, shape);
    }
    plm_emit_at(x, layer, own);
    return kv;
}

/* One key, which is the value too, for each `ratio` tokens; of this layer, or of the one it shares.
** Returns what the layer's attention over entries reads, index and all. */
static const plm_layer_kv *entries(plm_builder *x, plm_value_id in, plm_value_id q_in,
                                   int64_t q_width)
{
    const plm_layer *l = x->l;
    int64_t ratio = plm_max_i64(1, l->ratio);
    bool own = l->kv_shared_layer < 0;
    plm_layer_kv *kv = own ? &x->kv[x->layer] : source_entries(x, l->kv_shared_layer);
    if (own) {
        static const pool_parts parts = {PLM_ROLE_KV_A, "attn_pool_kv", "attn_pool_gate",
                                         "attn_pool_place", "pool_tail"};
        plm_value_id k = pool(x, in, &parts, l->dk);
        k = plm_emit_rms(x, k, "attn_pool_norm", l->dk);
        k = plm_emit_rope(x, plm_emit_heads(x, k, 1, l->dk), &l->rope, l->rope.dims);
        kv->k = plm_emit_cache(x, "cache_k", x->b->kv_k, ratio * x->b->par.cp, 1, l->dk);
        plm_emit_write(x, k, &kv->k, PLM_NONE, NULL, ratio);
    }
    if (l->index_top_k > 0)
        kv->index = choose_keys(x, in, q_in, q_width, kv);
    return kv;
}

static plm_value_id attend_keys(plm_builder *x, plm_value_id q, plm_value_id k, plm_value_id index,
                                int64_t heads, int64_t window, int64_t ratio)
{
    const plm_layer *l = x->l;
    int64_t top_k = 0;
    if (index != PLM_NONE)
        top_k = plm_dim_value(&x->g->dims, x->g->values[index].dim[1]);
    plm_attention a = {.q = q,
                       .k = k,
                       .v = PLM_NONE,
                       .sinks = l->sinks && window > 0
                                    ? plm_emit_vector(x, PLM_ROLE_SINK, "attn_sinks", heads)
                                    : PLM_NONE,
                       .index = index,
                       .heads = heads,
                       .kv_heads = 1,
                       .dk = l->dk,
                       .dv = plm_min_i64(l->dv, l->dk),
                       .v_in_k = true,
                       .window = window,
                       .ratio = ratio,
                       .sparse_top_k = top_k,
                       .scale = plm_softmax_scale(l, l->dk)};
    return plm_emit_attend(x, &a);
}

/* Attention over a window of plain tokens and over entries that stand for `ratio` tokens each, all
** of them or those that the indexer chose. Engines run both in one softmax; here each has its node,
** and the sum stands for the joining, weighted by the denominators. */
plm_value_id plm_emit_compressed(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    int64_t heads = plm_ceil_div(l->heads, x->b->par.tp), h = x->a->hidden, q_width = h;
    plm_value_id q_in = in;
    if (l->q_lora > 0) {
        q_in = plm_emit_linear(x, in, PLM_ROLE_Q_A, "attn_q_a", l->q_lora, h, false);
        q_in = plm_emit_rms(x, q_in, "attn_q_a_norm", l->q_lora);
        q_width = l->q_lora;
    }
    plm_value_id q =
        plm_emit_linear(x, q_in, l->q_lora > 0 ? PLM_ROLE_Q_B : PLM_ROLE_Q,
                        l->q_lora > 0 ? "attn_q_b" : "attn_q", heads * l->dk, q_width, false);
    q = plm_emit_rope(x, plm_emit_heads(x, q, heads, l->dk), &l->rope, l->rope.dims);
    plm_value_id k = plm_emit_linear(x, in, PLM_ROLE_KV_A, "attn_kv", l->dk, h, false);
    k = plm_emit_rms(x, k, "attn_kv_norm", l->dk);
    k = plm_emit_rope(x, plm_emit_heads(x, k, 1, l->dk), &l->rope, l->rope.dims);
    plm_value_id cache = plm_emit_cache(x, "cache_window", x->b->kv_k, x->b->par.cp, 1, l->dk);
    plm_emit_write(x, k, &cache, PLM_NONE, NULL, 1);
    plm_value_id y = attend_keys(x, q, cache, PLM_NONE, heads, l->window, 1);
    if (l->ratio > 0) {
        const plm_layer_kv *kv = entries(x, in, q_in, q_width);
        y = plm_emit_binary(x, PLM_OP_ADD, y,
                            attend_keys(x, q, kv->k, kv->index, heads, 0, l->ratio));
    }
    return grouped_out(x, y, heads);
}
