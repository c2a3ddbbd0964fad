/* build.c - arch record + storage + parallel plan -> the graph of one rank: the frame of the model and
** the parts that its layers are made of. The halves of a layer are in build_attn.c, build_linear.c and
** build_ffn.c.
*/
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/build_parts.h"

#define NAME_BYTES 64

/* ---- weights and states ---- */

plm_dim plm_emit_const(plm_builder *x, int64_t n)
{
    return plm_dim_const(&x->g->dims, n);
}

static const char *full_name(const plm_builder *x, const char *name, char buf[NAME_BYTES])
{
    if (x->layer < 0)
        return name;
    snprintf(buf, NAME_BYTES, "blk.%d.%.48s", x->layer, name);
    return buf;
}

static plm_value_id weight(plm_builder *x, plm_role role, const char *name, uint32_t rank,
                           int64_t count, int64_t rows, int64_t cols)
{
    char buf[NAME_BYTES];
    plm_dim dim[3];
    uint32_t n = 0;
    if (rank > 2)
        dim[n++] = plm_emit_const(x, count);
    if (rank > 1)
        dim[n++] = plm_emit_const(x, rows);
    dim[n++] = plm_emit_const(x, cols);
    plm_dtype t = plm_recipe_weight(x->recipe, x->a, role, x->layer, rank > 1 ? rows : 1, cols);
    return plm_graph_value(x->g, PLM_VALUE_WEIGHT, role, t, full_name(x, name, buf), rank, dim);
}

plm_value_id plm_emit_vector(plm_builder *x, plm_role role, const char *name, int64_t n)
{
    return weight(x, role, name, 1, 1, 1, n);
}

plm_value_id plm_emit_matrix(plm_builder *x, plm_role role, const char *name, int64_t rows,
                             int64_t cols)
{
    return weight(x, role, name, 2, 1, rows, cols);
}

plm_value_id plm_emit_stack(plm_builder *x, plm_role role, const char *name, int64_t count,
                            int64_t rows, int64_t cols)
{
    return weight(x, role, name, 3, count, rows, cols);
}

plm_value_id plm_emit_state(plm_builder *x, const char *name, plm_dtype t, uint32_t rank,
                            const plm_dim *dim)
{
    char buf[NAME_BYTES];
    plm_role role = strncmp(name, "cache", 5) == 0 ? PLM_ROLE_KV : PLM_ROLE_STATE;
    return plm_graph_value(x->g, PLM_VALUE_STATE, role, t, full_name(x, name, buf), rank, dim);
}

/* ---- parts ---- */

plm_value_id plm_emit_linear(plm_builder *x, plm_value_id in, plm_role role, const char *name,
                             int64_t n, int64_t k, bool bias)
{
    char bias_name[NAME_BYTES];
    plm_value_id w = plm_emit_matrix(x, role, name, n, k), b = PLM_NONE;
    if (bias) {
        snprintf(bias_name, sizeof bias_name, "%s.bias", name);
        b = plm_emit_vector(x, PLM_ROLE_BIAS, bias_name, n);
    }
    plm_node_begin(x->g, PLM_OP_LINEAR);
    plm_node_in(x->g, in);
    plm_node_in(x->g, w);
    if (bias)
        plm_node_in(x->g, b);
    return plm_node_end(x->g, x->b->act);
}

plm_value_id plm_emit_rms(plm_builder *x, plm_value_id in, const char *name, int64_t n)
{
    plm_value_id w = plm_emit_vector(x, PLM_ROLE_NORM, name, n);
    plm_node_begin(x->g, PLM_OP_RMS_NORM);
    plm_node_in(x->g, in);
    plm_node_in(x->g, w);
    plm_node_real(x->g, PLM_ATTR_EPS, x->a->norm_eps);
    if (x->a->norm_offset != 0)
        plm_node_real(x->g, PLM_ATTR_WEIGHT_OFFSET, x->a->norm_offset);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

static plm_value_id layer_norm(plm_builder *x, plm_value_id in, const char *name, int64_t n,
                               bool bias)
{
    char bias_name[NAME_BYTES];
    snprintf(bias_name, sizeof bias_name, "%s.bias", name);
    plm_value_id w = plm_emit_vector(x, PLM_ROLE_NORM, name, n);
    plm_value_id b = bias ? plm_emit_vector(x, PLM_ROLE_NORM, bias_name, n) : PLM_NONE;
    plm_node_begin(x->g, PLM_OP_LAYER_NORM);
    plm_node_in(x->g, in);
    plm_node_in(x->g, w);
    if (bias)
        plm_node_in(x->g, b);
    plm_node_real(x->g, PLM_ATTR_EPS, x->a->norm_eps);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

plm_value_id plm_emit_norm(plm_builder *x, plm_value_id in, const char *name, int64_t n)
{
    return x->a->norm == PLM_NORM_LAYER ? layer_norm(x, in, name, n, x->a->norm_bias)
                                        : plm_emit_rms(x, in, name, n);
}

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

static plm_value_id scaled(plm_builder *x, plm_value_id in, double by)
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
    plm_node_begin(x->g, PLM_OP_SLICE);
    plm_node_in(x->g, in);
    plm_node_int(x->g, PLM_ATTR_AXIS, axis);
    plm_node_int(x->g, PLM_ATTR_START, start);
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

plm_value_id plm_emit_rope(plm_builder *x, plm_value_id in, const plm_rope *r, int64_t dims)
{
    if (r->theta <= 0 || dims < 2)
        return in;
    double cos_sin = 1, softmax = 1;
    plm_rope_scales(r, &cos_sin, &softmax);
    plm_node_begin(x->g, PLM_OP_ROPE);
    plm_node_in(x->g, in);
    plm_node_in(x->g, x->pos);
    plm_node_int(x->g, PLM_ATTR_ROPE_DIMS, dims);
    plm_node_int(x->g, PLM_ATTR_ROPE_STYLE, r->interleaved);
    plm_node_int(x->g, PLM_ATTR_ROPE_SCALING, r->scaling);
    plm_node_real(x->g, PLM_ATTR_THETA, r->theta);
    const struct {
        plm_attr_key key;
        double value;
    } parts[] = {{PLM_ATTR_FACTOR, r->factor},       {PLM_ATTR_LOW_FREQ, r->low_freq},
                 {PLM_ATTR_HIGH_FREQ, r->high_freq}, {PLM_ATTR_ORIG_CTX, r->orig_ctx},
                 {PLM_ATTR_BETA_FAST, r->beta_fast}, {PLM_ATTR_BETA_SLOW, r->beta_slow}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].value != 0)
            plm_node_real(x->g, parts[i].key, parts[i].value);
    if (cos_sin != 1)
        plm_node_real(x->g, PLM_ATTR_MSCALE, cos_sin);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

/* A group larger than a node spans several. */
static int64_t nodes_of(const plm_builder *x, int64_t ranks)
{
    int64_t per_node = x->b->par.per_node;
    return per_node > 0 ? plm_ceil_div(ranks, per_node) : 1;
}

plm_value_id plm_emit_link(plm_builder *x, plm_op op, plm_value_id in, int64_t ranks, int64_t axis)
{
    if (ranks <= 1)
        return in;
    plm_node_begin(x->g, op);
    plm_node_in(x->g, in);
    plm_node_int(x->g, PLM_ATTR_RANKS, ranks);
    plm_node_int(x->g, PLM_ATTR_NODES, nodes_of(x, ranks));
    if (op == PLM_OP_ALL_GATHER || op == PLM_OP_REDUCE_SCATTER)
        plm_node_int(x->g, PLM_ATTR_AXIS, axis);
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

/* ---- layers ---- */

static bool has_mixer(const plm_layer *l)
{
    return l->attn != PLM_ATTN_NONE;
}

static bool has_ffn(const plm_layer *l)
{
    return l->ffn > 0 || l->experts > 0;
}

static plm_value_id mixer(plm_builder *x, plm_value_id in)
{
    switch (x->l->attn) {
    case PLM_ATTN_GATED_DELTA:
    case PLM_ATTN_KDA:
    case PLM_ATTN_MAMBA2:
        return plm_emit_recurrence(x, in);
    default:
        return plm_emit_attention(x, in);
    }
}

/* Feed-forward half between its norms. in: residual stream; normed: the same after the norm that
** stands before the half (shared by both halves of a parallel layer). */
static plm_value_id feed_forward(plm_builder *x, plm_value_id in, plm_value_id normed)
{
    const plm_layer *l = x->l;
    int64_t h = x->a->hidden;
    if (l->ffn > 0 && l->experts > 0) { /* Gemma-4: dense and routed side by side */
        plm_value_id dense = plm_emit_dense(x, normed);
        bool more = l->norms >= 7;
        if (more)
            dense = plm_emit_norm(x, dense, "post_ffn_norm_dense", h);
        plm_value_id routed =
            plm_emit_moe(x, more ? plm_emit_norm(x, in, "ffn_norm_moe", h) : normed);
        if (more)
            routed = plm_emit_norm(x, routed, "post_ffn_norm_moe", h);
        return plm_emit_binary(x, PLM_OP_ADD, dense, routed);
    }
    return l->experts > 0 ? plm_emit_moe(x, normed) : plm_emit_dense(x, normed);
}

static plm_value_id join(plm_builder *x, plm_value_id stream, plm_value_id half)
{
    return plm_emit_binary(x, PLM_OP_ADD, stream, scaled(x, half, x->a->residual_scale));
}

/* Attention and feed-forward of one input, one norm or one for each. */
static plm_value_id parallel_layer(plm_builder *x, plm_value_id in)
{
    int64_t h = x->a->hidden;
    plm_value_id normed = plm_emit_norm(x, in, "attn_norm", h);
    plm_value_id second = x->l->norms >= 2 ? plm_emit_norm(x, in, "ffn_norm", h) : normed;
    plm_value_id a = mixer(x, normed), f = feed_forward(x, in, second);
    return join(x, in, plm_emit_binary(x, PLM_OP_ADD, a, f));
}

/* Norm, half, (norm,) add, for whichever halves the layer has. */
static plm_value_id plain_layer(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    int64_t h = x->a->hidden;
    bool post = l->norms >= 4;
    if (has_mixer(l)) {
        plm_value_id y = mixer(x, plm_emit_norm(x, in, "attn_norm", h));
        if (post)
            y = plm_emit_norm(x, y, "post_attn_norm", h);
        in = join(x, in, y);
    }
    if (has_ffn(l)) {
        plm_value_id y = feed_forward(x, in, plm_emit_norm(x, in, "ffn_norm", h));
        if (post)
            y = plm_emit_norm(x, y, "post_ffn_norm", h);
        in = join(x, in, y);
    }
    return in;
}

/* Hyper-connections (DeepSeek-V4): the residual is `hyper` streams. Costed as what they are beside
** the layer: a small projection of the streams to the mixing weights before each half, and the
** weighted sum into and out of the streams. */
static plm_value_id hyper_mix(plm_builder *x, plm_value_id in, const char *name)
{
    int64_t n = x->a->hyper, h = x->a->hidden;
    if (n <= 1)
        return in;
    plm_value_id mix = plm_emit_linear(x, in, PLM_ROLE_NONE, name, n * n + 2 * n, h, true);
    (void)mix;
    return in;
}

static plm_value_id one_layer(plm_builder *x, int32_t index, plm_value_id in)
{
    x->layer = x->g->layer = index;
    x->l = plm_arch_layer(x->a, index);
    in = hyper_mix(x, in, "hyper_attn");
    in = x->l->parallel ? parallel_layer(x, in) : plain_layer(x, in);
    in = hyper_mix(x, in, "hyper_ffn");
    x->layer = x->g->layer = -1;
    return in;
}

/* ---- frame ---- */

/* Rows of the embedding and of the head on a rank: the vocabulary padded, then split over tp. */
static int64_t vocab_rows(const plm_builder *x)
{
    int64_t pad = x->b->vocab_pad > 0 ? x->b->vocab_pad : 1, tp = x->b->par.tp;
    return plm_ceil_div(plm_ceil_div(x->a->vocab, pad) * pad, tp);
}

static plm_value_id embed(plm_builder *x, plm_value_id ids, plm_value_id *table)
{
    int64_t h = x->a->hidden;
    *table = plm_emit_matrix(x, PLM_ROLE_EMBED, "token_embd", vocab_rows(x), h);
    plm_node_begin(x->g, PLM_OP_EMBED);
    plm_node_in(x->g, ids);
    plm_node_in(x->g, *table);
    if (x->a->embed_scale != 0 && x->a->embed_scale != 1)
        plm_node_real(x->g, PLM_ATTR_SCALE, x->a->embed_scale);
    plm_value_id y = plm_node_end(x->g, x->b->act);
    y = plm_emit_link(x, PLM_OP_ALL_REDUCE, y, x->b->par.tp, 0);
    if (x->a->pos_embed > 0) {
        plm_value_id rows = plm_emit_matrix(x, PLM_ROLE_POS_EMBED, "position_embd",
                                            x->a->pos_embed, h);
        plm_node_begin(x->g, PLM_OP_EMBED);
        plm_node_in(x->g, x->pos);
        plm_node_in(x->g, rows);
        plm_value_id p = plm_node_end(x->g, x->b->act);
        y = plm_emit_binary(x, PLM_OP_ADD, y, p);
    }
    return x->a->embed_norm ? plm_emit_norm(x, y, "token_embd_norm", h) : y;
}

/* Rows wanted, final norm, head, logits of all ranks. table: the embedding when this stage has it. */
static void head(plm_builder *x, plm_value_id in, plm_value_id table)
{
    int64_t h = x->a->hidden;
    if (!x->b->all_logits) {
        plm_value_id rows = plm_graph_value(x->g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_I32,
                                            "rows", 1, &x->r);
        plm_node_begin(x->g, PLM_OP_GATHER);
        plm_node_in(x->g, in);
        plm_node_in(x->g, rows);
        in = plm_node_end(x->g, PLM_DT_COUNT);
    }
    in = plm_emit_norm(x, in, "output_norm", h);
    plm_value_id w = x->a->tied_head && table != PLM_NONE
                         ? table
                         : plm_emit_matrix(x, PLM_ROLE_HEAD, "output", vocab_rows(x), h);
    plm_value_id bias = x->a->head_bias
                            ? plm_emit_vector(x, PLM_ROLE_BIAS, "output.bias", vocab_rows(x))
                            : PLM_NONE;
    plm_node_begin(x->g, PLM_OP_LINEAR);
    plm_node_in(x->g, in);
    plm_node_in(x->g, w);
    if (x->a->head_bias)
        plm_node_in(x->g, bias);
    plm_value_id y = plm_node_end(x->g, x->b->act);
    y = plm_emit_link(x, PLM_OP_ALL_GATHER, y, x->b->par.tp, 1);
    y = scaled(x, y, x->a->logit_scale);
    if (x->a->logit_softcap > 0) {
        plm_node_begin(x->g, PLM_OP_SOFTCAP);
        plm_node_in(x->g, y);
        plm_node_real(x->g, PLM_ATTR_LIMIT, x->a->logit_softcap);
        y = plm_node_end(x->g, PLM_DT_COUNT);
    }
    plm_graph_output(x->g, y, "logits");
}

/* One multi-token prediction module: two norms, the joining projection, a layer, its norm. The head
** and the embedding are the model's own. */
static void mtp_module(plm_builder *x, int32_t index, plm_value_id in)
{
    int64_t h = x->a->hidden;
    char name[NAME_BYTES];
    x->layer = x->g->layer = x->a->layers + index;
    x->l = &x->a->kind[x->a->mtp_kind];
    plm_value_id a = plm_emit_norm(x, in, "mtp_enorm", h), b = plm_emit_norm(x, in, "mtp_hnorm", h);
    plm_node_begin(x->g, PLM_OP_CONCAT);
    plm_node_in(x->g, a);
    plm_node_in(x->g, b);
    plm_node_int(x->g, PLM_ATTR_AXIS, 1);
    plm_value_id y = plm_node_end(x->g, PLM_DT_COUNT);
    y = plm_emit_linear(x, y, PLM_ROLE_MTP, "mtp_proj", h, 2 * h, false);
    y = x->l->parallel ? parallel_layer(x, y) : plain_layer(x, y);
    y = plm_emit_norm(x, y, "mtp_norm", h);
    snprintf(name, sizeof name, "mtp.%d", index);
    plm_graph_output(x->g, y, name);
    x->layer = x->g->layer = -1;
}

static plm_value_id first_value(plm_builder *x, plm_value_id *table)
{
    const plm_dim shape[] = {x->t, plm_emit_const(x, x->a->hidden)};
    *table = PLM_NONE;
    if (x->b->stage == 0) {
        plm_value_id ids = plm_graph_value(x->g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_I32, "ids",
                                           1, &x->t);
        return embed(x, ids, table);
    }
    plm_value_id in = plm_graph_value(x->g, PLM_VALUE_INPUT, PLM_ROLE_NONE, x->b->act, "hidden", 2,
                                      shape);
    plm_node_begin(x->g, PLM_OP_RECV);
    plm_node_in(x->g, in);
    plm_node_int(x->g, PLM_ATTR_RANKS, 2);
    plm_node_int(x->g, PLM_ATTR_NODES, 1);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

/* Stages meet across nodes once a stage fills one. */
static void send(plm_builder *x, plm_value_id y)
{
    const plm_parallel *p = &x->b->par;
    bool far = p->per_node > 0 && (int64_t)p->tp * p->dp * p->cp >= p->per_node;
    plm_node_begin(x->g, PLM_OP_SEND);
    plm_node_in(x->g, y);
    plm_node_int(x->g, PLM_ATTR_RANKS, 2);
    plm_node_int(x->g, PLM_ATTR_NODES, far ? 2 : 1);
    plm_graph_output(x->g, plm_node_end(x->g, PLM_DT_COUNT), "hidden_out");
}

static void emit(plm_builder *x)
{
    int32_t first, count;
    plm_value_id table;
    plm_parallel_stage(x->a, &x->b->par, x->b->stage, &first, &count);
    x->pos = plm_graph_value(x->g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_I32, "positions", 1,
                             &x->t);
    plm_value_id y = first_value(x, &table);
    for (int32_t i = first; i < first + count && x->g->error.code == PLM_OK; i++)
        y = one_layer(x, i, y);
    if (x->b->stage + 1 < x->b->par.pp) {
        send(x, y);
        return;
    }
    if (x->b->mtp)
        for (int32_t i = 0; i < x->a->mtp_layers; i++)
            mtp_module(x, i, y);
    head(x, y, table);
}

void plm_build_init(plm_build *b)
{
    memset(b, 0, sizeof *b);
    b->par = plm_parallel_one();
    b->act = b->kv_k = b->kv_v = PLM_DT_BF16;
}

plm_status plm_build_graph(const plm_arch *a, const plm_build *b, plm_graph *out, plm_error *err)
{
    plm_graph_init(out);
    PLM_TRY(plm_parallel_check(a, &b->par, err));
    if (b->stage < 0 || b->stage >= b->par.pp)
        return plm_fail(err, PLM_E_INVALID, "stage, %d: the plan has %d; give 0 to %d", b->stage,
                        b->par.pp, b->par.pp - 1);
    plm_builder *x = plm_calloc(1, sizeof *x);
    if (x == NULL)
        return plm_fail_memory(err, "graph builder");
    x->g = out;
    x->a = a;
    x->b = b;
    x->recipe = b->recipe != NULL ? b->recipe : plm_recipe_default(a);
    x->layer = out->layer = -1;
    for (int32_t i = 0; i < PLM_LAYERS_MAX; i++)
        x->kv[i][0] = x->kv[i][1] = PLM_NONE;
    out->dims.hi[PLM_SYM_T] = b->max_tokens > 0 ? b->max_tokens : 8192;
    out->dims.hi[PLM_SYM_S] = b->max_seqs > 0 ? b->max_seqs : 256;
    out->dims.hi[PLM_SYM_R] = out->dims.hi[PLM_SYM_S];
    out->dims.hi[PLM_SYM_C] = b->max_slots > 0 ? b->max_slots : 1 << 20;
    x->t = plm_dim_sym(&out->dims, PLM_SYM_T);
    x->s = plm_dim_sym(&out->dims, PLM_SYM_S);
    x->r = plm_dim_sym(&out->dims, PLM_SYM_R);
    x->c = plm_dim_sym(&out->dims, PLM_SYM_C);
    emit(x);
    plm_free(x);
    return plm_graph_finish(out, err);
}
