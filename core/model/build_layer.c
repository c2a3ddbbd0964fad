/* build_layer.c - a layer: norms and residual stream around its two halves.
**
** The halves return this rank's part of a sum over the tensor-parallel group; it is summed here,
** once for all that is added before the next norm.
*/
#include "core/base/mem.h"
#include "core/model/build_parts.h"

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
    case PLM_ATTN_SHORT_CONV:
        return plm_emit_recurrence(x, in);
    case PLM_ATTN_MLA:
        return plm_emit_latent(x, in);
    case PLM_ATTN_COMPRESSED:
        return plm_emit_compressed(x, in);
    default:
        return plm_emit_attention(x, in);
    }
}

/* Dense and routed experts side by side (Gemma-4): with norms 7 the routed half reads the stream
** through a norm of its own, and each has one behind it, before which it must be whole. */
static plm_value_id dense_and_routed(plm_builder *x, plm_value_id in, plm_value_id normed)
{
    int64_t h = x->a->hidden;
    if (x->l->norms < 7)
        return plm_emit_binary(x, PLM_OP_ADD, plm_emit_dense(x, normed), plm_emit_moe(x, normed));
    plm_value_id dense = plm_emit_reduce(x, plm_emit_dense(x, normed));
    dense = plm_emit_norm(x, dense, "post_ffn_norm_dense", h);
    plm_value_id routed = plm_emit_moe(x, plm_emit_norm(x, in, "ffn_norm_moe", h));
    routed = plm_emit_norm(x, plm_emit_reduce(x, routed), "post_ffn_norm_moe", h);
    return plm_emit_binary(x, PLM_OP_ADD, dense, routed);
}

/* Feed-forward half, summed over tp. in: the stream; normed: the same after the half's norm. */
static plm_value_id feed_forward(plm_builder *x, plm_value_id in, plm_value_id normed)
{
    const plm_layer *l = x->l;
    if (l->ffn > 0 && l->experts > 0 && l->norms >= 7)
        return dense_and_routed(x, in, normed);
    plm_value_id y = l->ffn > 0 && l->experts > 0 ? dense_and_routed(x, in, normed)
                     : l->experts > 0             ? plm_emit_moe(x, normed)
                                                  : plm_emit_dense(x, normed);
    return plm_emit_reduce(x, y);
}

/* ---- hyper-connections ---- */

/* DeepSeek-V4 carries `hyper` streams in place of one residual (hyper-connections, arXiv
** 2409.19606). Before each half a projection of all streams gives the weights by which they are
** summed into its input, mixed with each other, and given its output. The model makes the rows and
** columns of its mixing matrix sum to 1 by a few divisions of its n n numbers; these are left
** out. */
typedef struct streams {
    plm_value_id all;     /* [T, n h] */
    plm_value_id weights; /* [T, 2 n + n n]: in, mixing, out */
} streams;

/* Sum over the streams of weight [T, n] times stream: [T, h]. */
static plm_value_id sum_streams(plm_builder *x, plm_value_id all, plm_value_id weights)
{
    all = plm_emit_heads(x, all, x->a->hyper, x->a->hidden);
    return plm_emit_binary(x, PLM_OP_STREAM_SUM, all, weights);
}

/* Projection of all streams to `count` weights between 0 and 1. */
static plm_value_id mixing_weights(plm_builder *x, plm_value_id all, const char *name,
                                   int64_t count)
{
    int64_t width = (int64_t)x->a->hyper * x->a->hidden;
    plm_value_id y = plm_emit_rms(x, all, NULL, width);
    y = plm_emit_linear(x, y, PLM_ROLE_SSM_SMALL, name, count, width, true);
    return plm_emit_unary(x, y, PLM_FN_SIGMOID);
}

/* What a half reads of the stream; *s is kept for close_half. */
static plm_value_id open_half(plm_builder *x, plm_value_id in, const char *name, streams *s)
{
    int64_t n = x->a->hyper;
    *s = (streams){.all = in, .weights = PLM_NONE};
    if (n <= 1)
        return in;
    s->weights = mixing_weights(x, in, name, 2 * n + n * n);
    return sum_streams(x, in, plm_emit_slice(x, s->weights, 1, 0, n));
}

/* The stream with the half's output y [T, h] added. */
static plm_value_id close_half(plm_builder *x, const streams *s, plm_value_id y)
{
    int64_t n = x->a->hyper, h = x->a->hidden;
    y = plm_emit_scaled(x, y, x->a->residual_scale);
    if (n <= 1)
        return plm_emit_binary(x, PLM_OP_ADD, s->all, y);
    const plm_value_id in[] = {
        plm_emit_heads(x, s->all, n, h),
        plm_emit_heads(x, plm_emit_slice(x, s->weights, 1, n, n * n), n, n), y,
        plm_emit_slice(x, s->weights, 1, n + n * n, n)};
    plm_node_begin(x->g, PLM_OP_STREAM_MIX);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        plm_node_in(x->g, in[i]);
    return plm_emit_heads(x, plm_node_end(x->g, PLM_DT_COUNT), n * h, 0);
}

plm_value_id plm_emit_spread(plm_builder *x, plm_value_id in)
{
    int64_t n = x->a->hyper, h = x->a->hidden;
    if (n <= 1)
        return in;
    return plm_emit_heads(x, plm_emit_repeat(x, plm_emit_heads(x, in, 1, h), 1, n), n * h, 0);
}

plm_value_id plm_emit_gather_streams(plm_builder *x, plm_value_id in)
{
    int64_t n = x->a->hyper;
    if (n <= 1)
        return in;
    return sum_streams(x, in, mixing_weights(x, in, "output_hc", n));
}

/* ---- layers ---- */

/* Attention and feed-forward of one input, through one norm or one each; one sum over tp for both.
 */
static plm_value_id parallel_layer(plm_builder *x, plm_value_id in)
{
    int64_t h = x->a->hidden;
    streams s;
    plm_value_id at = open_half(x, in, "hc_attn", &s);
    plm_value_id normed = plm_emit_norm(x, at, "attn_norm", h);
    plm_value_id second = x->l->norms >= 2 ? plm_emit_norm(x, at, "ffn_norm", h) : normed;
    plm_value_id a = mixer(x, normed);
    plm_value_id f = x->l->experts > 0 ? plm_emit_moe(x, second) : plm_emit_dense(x, second);
    return close_half(x, &s, plm_emit_reduce(x, plm_emit_binary(x, PLM_OP_ADD, a, f)));
}

/* Norm, half, (norm,) add, for whichever halves the layer has. A layer of both halves with a single
** norm has it before the first; post_norm layers have theirs behind the halves. */
static plm_value_id plain_layer(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    int64_t h = x->a->hidden;
    streams s;
    if (has_mixer(l)) {
        plm_value_id y = open_half(x, in, "hc_attn", &s);
        if (!l->post_norm)
            y = plm_emit_norm(x, y, "attn_norm", h);
        y = plm_emit_reduce(x, mixer(x, y));
        if (l->norms >= 4 || l->post_norm)
            y = plm_emit_norm(x, y, "post_attn_norm", h);
        in = close_half(x, &s, y);
    }
    if (has_ffn(l)) {
        plm_value_id at = open_half(x, in, "hc_ffn", &s), y = at;
        if ((l->norms >= 2 || !has_mixer(l)) && !l->post_norm)
            y = plm_emit_norm(x, at, "ffn_norm", h);
        y = feed_forward(x, at, y);
        if (l->norms >= 3 || l->post_norm)
            y = plm_emit_norm(x, y, "post_ffn_norm", h);
        in = close_half(x, &s, y);
    }
    return in;
}

plm_value_id plm_emit_layer(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    return l->parallel && has_mixer(l) && has_ffn(l) ? parallel_layer(x, in) : plain_layer(x, in);
}
