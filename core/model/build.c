/* build.c - arch record + storage + parallel plan -> the graph of one rank: the frame of the model,
** embedding, pipeline stage, head and MTP modules. The rank is the first of each of its groups.
**
** Order of devices: tp innermost, then cp, then dp, then pp; a group of links spans the nodes that
** this order and devices per node give it.
*/
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/build_parts.h"

/* Rows of the embedding and of the head on a rank: the vocabulary padded, then split over tp. */
static int64_t vocab_rows(const plm_builder *x)
{
    int64_t pad = x->b->vocab_pad > 0 ? x->b->vocab_pad : 1, tp = x->b->par.tp;
    return plm_ceil_div(plm_ceil_div(x->a->vocab, pad) * pad, tp);
}

/* Devices between ranks of neighbouring stages. */
static int64_t stage_devices(const plm_builder *x)
{
    const plm_parallel *p = &x->b->par;
    return (int64_t)p->tp * p->cp * p->dp;
}

/* ---- embedding ---- */

/* Rows of the table for ids; another shard's tokens give 0, and the sum over tp all of them. */
static plm_value_id look_up(plm_builder *x, plm_value_id ids)
{
    if (x->table == PLM_NONE && x->a->tied_head)
        x->table = x->head; /* a last stage that has made its copy */
    if (x->table == PLM_NONE)
        x->table = plm_emit_matrix(x, PLM_ROLE_EMBED, "token_embd", vocab_rows(x), x->a->hidden);
    plm_node_begin(x->g, PLM_OP_EMBED);
    plm_node_in(x->g, ids);
    plm_node_in(x->g, x->table);
    if (x->a->embed_scale != 0 && x->a->embed_scale != 1)
        plm_node_real(x->g, PLM_ATTR_SCALE, x->a->embed_scale);
    return plm_emit_reduce(x, plm_node_end(x->g, x->b->act));
}

static plm_value_id embed(plm_builder *x)
{
    int64_t h = x->a->hidden;
    plm_value_id y = look_up(x, plm_emit_ids(x));
    if (x->a->pos_embed > 0) {
        plm_value_id table =
            plm_emit_matrix(x, PLM_ROLE_POS_EMBED, "position_embd", x->a->pos_embed, h);
        plm_node_begin(x->g, PLM_OP_EMBED);
        plm_node_in(x->g, plm_emit_positions(x));
        plm_node_in(x->g, table);
        y = plm_emit_binary(x, PLM_OP_ADD, y, plm_node_end(x->g, x->b->act));
    }
    if (x->a->embed_norm)
        y = plm_emit_norm(x, y, "token_embd_norm", h);
    return plm_emit_spread(x, y);
}

/* ---- stages ---- */

static plm_value_id hop(plm_builder *x, plm_op op, plm_value_id y, int32_t from)
{
    int64_t per_node = x->b->par.per_node, each = stage_devices(x);
    bool far = per_node > 0 && from * each / per_node != (from + 1) * each / per_node;
    plm_node_begin(x->g, op);
    plm_node_in(x->g, y);
    plm_node_int(x->g, PLM_ATTR_RANKS, 2);
    plm_node_int(x->g, PLM_ATTR_NODES, far ? 2 : 1);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

static plm_value_id receive(plm_builder *x)
{
    int64_t width = (int64_t)x->a->hidden * (x->a->hyper > 1 ? x->a->hyper : 1);
    const plm_dim shape[] = {x->t, plm_emit_const(x, width)};
    plm_value_id in =
        plm_graph_value(x->g, PLM_VALUE_INPUT, PLM_ROLE_NONE, x->b->act, "hidden", 2, shape);
    return hop(x, PLM_OP_RECV, in, x->b->stage - 1);
}

/* ---- head ---- */

/* The head's matrix: the embedding where it is tied and on this stage, else one of its own (of a
*tied
** model a copy of the table). */
static void make_head(plm_builder *x)
{
    if (x->head != PLM_NONE)
        return;
    x->head = x->a->tied_head && x->table != PLM_NONE
                  ? x->table
                  : plm_emit_matrix(x, PLM_ROLE_HEAD, "output", vocab_rows(x), x->a->hidden);
    if (x->a->head_bias)
        x->head_bias = plm_emit_bias(x, "output", 0, vocab_rows(x));
}

/* Logits of normed rows: the vocabulary's shards gathered from all ranks. */
static plm_value_id logits(plm_builder *x, plm_value_id in)
{
    make_head(x);
    in = plm_emit_for_weight(x, in, x->head);
    plm_node_begin(x->g, PLM_OP_LINEAR);
    plm_node_in(x->g, in);
    plm_node_in(x->g, x->head);
    if (x->head_bias != PLM_NONE)
        plm_node_in(x->g, x->head_bias);
    plm_value_id y = plm_node_end(x->g, x->b->act);
    y = plm_emit_link(x, PLM_OP_ALL_GATHER, y, x->b->par.tp, 1, 1);
    y = plm_emit_scaled(x, y, x->a->logit_scale);
    if (x->a->logit_softcap > 0) {
        plm_node_begin(x->g, PLM_OP_SOFTCAP);
        plm_node_in(x->g, y);
        plm_node_real(x->g, PLM_ATTR_LIMIT, x->a->logit_softcap);
        y = plm_node_end(x->g, PLM_DT_COUNT);
    }
    return y;
}

/* Rows that want logits: R of T, or all. */
static plm_value_id wanted(plm_builder *x, plm_value_id in)
{
    return x->b->all_logits ? in : plm_emit_binary(x, PLM_OP_GATHER, in, plm_emit_rows(x));
}

/* One multi-token prediction module (DeepSeek-V3, arXiv 2412.19437 section 2.2): the last hidden
*state
** and the embedding of the next token, each normed, joined by a projection, through a layer; head
*and
** embedding are the model's own. Returns the hidden state for the next module. */
static plm_value_id mtp_module(plm_builder *x, int32_t index, plm_value_id hidden)
{
    int64_t h = x->a->hidden;
    char name[48];
    snprintf(name, sizeof name, "mtp.%d.ids", index);
    plm_emit_at(x, -1, NULL);
    plm_value_id ids =
        plm_graph_value(x->g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_I32, name, 1, &x->t);
    plm_value_id next = look_up(x, ids);
    plm_emit_at(x, x->a->layers + index, &x->a->kind[x->a->mtp_kind]);
    next = plm_emit_norm(x, next, "nextn.enorm", h);
    plm_value_id y = plm_emit_concat(x, next, plm_emit_norm(x, hidden, "nextn.hnorm", h), 1);
    y = plm_emit_linear(x, y, PLM_ROLE_MTP, "nextn.eh_proj", h, 2 * h, false);
    y = plm_emit_gather_streams(x, plm_emit_layer(x, plm_emit_spread(x, y)));
    plm_value_id out = logits(x, plm_emit_norm(x, wanted(x, y), "nextn.head_norm", h));
    snprintf(name, sizeof name, "mtp.%d.logits", index);
    plm_graph_output(x->g, out, name);
    return y;
}

static void finish(plm_builder *x, plm_value_id y)
{
    plm_emit_at(x, -1, NULL);
    y = plm_emit_gather_streams(x, y);
    plm_value_id rows = plm_emit_norm(x, wanted(x, y), "output_norm", x->a->hidden);
    plm_graph_output(x->g, logits(x, rows), "logits");
    for (int32_t i = 0; x->b->mtp && i < x->a->mtp_layers; i++)
        y = mtp_module(x, i, y);
}

/* ---- entry ---- */

static void emit(plm_builder *x)
{
    int32_t first, count;
    plm_parallel_stage(x->a, &x->b->par, x->b->stage, &first, &count);
    plm_emit_at(x, -1, NULL);
    plm_value_id y = x->b->stage == 0 ? embed(x) : receive(x);
    for (int32_t i = first; i < first + count && x->g->error.code == PLM_OK; i++) {
        plm_emit_at(x, i, plm_arch_layer(x->a, i));
        y = plm_emit_layer(x, y);
    }
    plm_emit_at(x, -1, NULL);
    if (x->b->stage + 1 < x->b->par.pp)
        plm_graph_output(x->g, hop(x, PLM_OP_SEND, y, x->b->stage), "hidden_out");
    else
        finish(x, y);
}

void plm_build_init(plm_build *b)
{
    memset(b, 0, sizeof *b);
    b->par = plm_parallel_one();
    b->act = b->kv_k = b->kv_v = PLM_DT_BF16;
}

/* Formats of whole tensors are plain E4M3 in a cache, whose scales are kept apart. */
static plm_dtype cache_type(plm_dtype t)
{
    return t == PLM_DT_FP8 || t == PLM_DT_FP8_ROW || t == PLM_DT_FP8_BLOCK ? PLM_DT_F8E4M3 : t;
}

static plm_status check_build(const plm_arch *a, const plm_build *b, plm_error *err)
{
    const plm_dtype types[] = {b->act, b->kv_k, b->kv_v};
    PLM_TRY(plm_parallel_check(a, &b->par, err));
    if (b->stage < 0 || b->stage >= b->par.pp)
        return plm_fail(err, PLM_E_INVALID, "stage, %d: the plan has %d; give 0 to %d", b->stage,
                        b->par.pp, b->par.pp - 1);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if ((unsigned)types[i] >= PLM_DT_COUNT)
            return plm_fail(err, PLM_E_INVALID,
                            "graph, type %d: no storage type; give bf16, f16 or f32",
                            (int)types[i]);
    if (b->max_tokens < 0 || b->max_seqs < 0 || b->max_slots < 0 || b->vocab_pad < 0)
        return plm_fail(err, PLM_E_INVALID, "graph, bounds: negative; give 0 for the usual ones");
    if (a->layers > PLM_LAYERS_MAX || a->mtp_layers > PLM_BUILD_MTP_MAX)
        return plm_fail(err, PLM_E_LIMIT,
                        "model, %s: more than %d layers or %d MTP modules; check "
                        "the model",
                        a->id, PLM_LAYERS_MAX, PLM_BUILD_MTP_MAX);
    return PLM_OK;
}

/* Most experts that a token is routed to in any kind of layer. */
static int64_t most_choices(const plm_arch *a)
{
    int64_t k = 1;
    for (int32_t i = 0; i < a->n_kinds; i++)
        k = plm_max_i64(k, a->kind[i].top_k);
    return k;
}

static void set_bounds(plm_dims *d, const plm_arch *a, const plm_build *b)
{
    d->hi[PLM_SYM_T] = b->max_tokens > 0 ? b->max_tokens : 8192;
    d->hi[PLM_SYM_S] = b->max_seqs > 0 ? b->max_seqs : 256;
    d->hi[PLM_SYM_R] = d->hi[PLM_SYM_S];
    d->hi[PLM_SYM_C] = b->max_slots > 0 ? b->max_slots : INT64_C(1) << 20;
    if (!plm_mul_i64(d->hi[PLM_SYM_T], most_choices(a), &d->hi[PLM_SYM_E]))
        d->hi[PLM_SYM_E] = INT64_MAX;
}

plm_status plm_build_graph(const plm_arch *a, const plm_build *b, plm_graph *out, plm_error *err)
{
    plm_graph_init(out);
    PLM_TRY(check_build(a, b, err));
    plm_build own = *b;
    own.kv_k = cache_type(b->kv_k);
    own.kv_v = cache_type(b->kv_v);
    plm_builder *x = plm_malloc(sizeof *x);
    if (x == NULL)
        return plm_fail_memory(err, "graph builder");
    memset(x, 0xff, sizeof *x); /* no value known: PLM_NONE everywhere */
    x->g = out;
    x->a = a;
    x->b = &own;
    x->recipe = b->recipe != NULL ? b->recipe : plm_recipe_default(a);
    x->n_quantised = 0;
    set_bounds(&out->dims, a, b);
    x->t = plm_dim_sym(&out->dims, PLM_SYM_T);
    x->s = plm_dim_sym(&out->dims, PLM_SYM_S);
    x->r = plm_dim_sym(&out->dims, PLM_SYM_R);
    x->c = plm_dim_sym(&out->dims, PLM_SYM_C);
    emit(x);
    plm_free(x);
    return plm_graph_finish(out, err);
}
