/* build_linear.c - the recurrent halves: gated delta rule (Qwen3-Next), Kimi delta attention,
** Mamba-2. Tensor parallel splits their heads (and groups, copied where there are fewer than
** output projection yields a rank's part of the sum. State is f32, [S, heads, dk, dv]; the tail of
** the convolution [S, channels, taps - 1] has the type of activations.
*/
#include <math.h>

#include "core/base/mem.h"
#include "core/model/build_parts.h"

/* Tokens that the chunked kernels take at once. Sources: flash-linear-attention's gated delta rule,
** the chunk_size of Nemotron-H's config. */
enum { DELTA_CHUNK = 64, SSM_CHUNK = 128 };

/* fn of the causal convolution of [T, c], with a fresh filter and tail. */
static plm_value_id convolve_fn(plm_builder *x, plm_value_id in, const char *name,
                                const char *tail, int64_t channels, bool bias, plm_fn fn)
{
    int64_t taps = x->l->conv_taps;
    if (taps < 2)
        return in;
    plm_value_id w = plm_emit_matrix(x, PLM_ROLE_CONV, name, channels, taps);
    plm_value_id state = plm_emit_state(x, tail, x->b->act, channels, taps - 1, 0);
    plm_value_id b = bias ? plm_emit_bias(x, name, 0, channels) : PLM_NONE;
    plm_node_begin(x->g, PLM_OP_CONV_CAUSAL);
    plm_node_in(x->g, in);
    plm_node_in(x->g, w);
    plm_node_in(x->g, state);
    if (bias)
        plm_node_in(x->g, b);
    if (fn != PLM_FN_NONE)
        plm_node_int(x->g, PLM_ATTR_FN, fn);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

static plm_value_id convolve(plm_builder *x, plm_value_id in, const char *name, const char *tail,
                             int64_t channels, bool bias)
{
    return convolve_fn(x, in, name, tail, channels, bias, PLM_FN_SILU);
}

static plm_value_id l2(plm_builder *x, plm_value_id in)
{
    plm_node_begin(x->g, PLM_OP_L2_NORM);
    plm_node_in(x->g, in);
    plm_node_real(x->g, PLM_ATTR_EPS, 1e-6);
    return plm_node_end(x->g, PLM_DT_COUNT);
}

/* -exp(A_log) * softplus(a + dt_bias) of [T, n]: the log decay. ssm_a holds -exp(A_log), as GGUF
** files do. */
static plm_value_id log_decay(plm_builder *x, plm_value_id a, int64_t heads, int64_t n)
{
    plm_value_id dt = plm_emit_vector(x, PLM_ROLE_SSM_SMALL, "ssm_dt.bias", n);
    plm_value_id rate = plm_emit_vector(x, PLM_ROLE_SSM_SMALL, "ssm_a", heads);
    a = plm_emit_unary(x, plm_emit_binary(x, PLM_OP_ADD, a, dt), PLM_FN_SOFTPLUS);
    if (n == heads)
        return plm_emit_binary(x, PLM_OP_MUL, a, rate);
    /* One rate a head, one decay a channel: the rate is the same along the channels of a head. */
    plm_node_begin(x->g, PLM_OP_RESHAPE);
    plm_node_in(x->g, rate);
    plm_node_int(x->g, PLM_ATTR_RANK, 2);
    plm_node_int(x->g, PLM_ATTR_D0, heads);
    plm_node_int(x->g, PLM_ATTR_D1, 1);
    rate = plm_node_end(x->g, PLM_DT_COUNT);
    return plm_emit_binary(x, PLM_OP_MUL, plm_emit_heads(x, a, heads, n / heads), rate);
}

static plm_value_id delta_rule(plm_builder *x, plm_value_id q, plm_value_id k, plm_value_id v,
                               plm_value_id g, plm_value_id beta, int64_t v_heads)
{
    const plm_layer *l = x->l;
    plm_value_id state =
        plm_emit_state(x, "delta_state", PLM_DT_F32, v_heads, l->lin_dk, l->lin_dv);
    const plm_value_id in[] = {l2(x, q), l2(x, k), v, g, beta, state};
    plm_node_begin(x->g, PLM_OP_GATED_DELTA);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        plm_node_in(x->g, in[i]);
    plm_node_real(x->g, PLM_ATTR_SCALE, 1.0 / sqrt((double)l->lin_dk));
    plm_node_int(x->g, PLM_ATTR_CHUNK, DELTA_CHUNK);
    return plm_node_end(x->g, x->b->act);
}

/* norm(y) * fn(z) over each head of [T, H, d], then the output projection. */
static plm_value_id gated_out(plm_builder *x, plm_value_id y, plm_value_id z, plm_fn fn,
                              int64_t heads, int64_t d)
{
    plm_value_id w = plm_emit_vector(x, PLM_ROLE_NORM, "ssm_norm", d);
    plm_node_begin(x->g, PLM_OP_RMS_NORM_GATED);
    plm_node_in(x->g, y);
    plm_node_in(x->g, z);
    plm_node_in(x->g, w);
    plm_node_real(x->g, PLM_ATTR_EPS, x->a->norm_eps);
    plm_node_int(x->g, PLM_ATTR_FN, fn);
    y = plm_emit_heads(x, plm_node_end(x->g, PLM_DT_COUNT), heads * d, 0);
    return plm_emit_linear(x, y, PLM_ROLE_SSM_OUT, "ssm_out", x->a->hidden, heads * d, false);
}

static plm_value_id gated_delta(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    int64_t tp = x->b->par.tp;
    int64_t hk = plm_ceil_div(l->lin_k_heads, tp), hv = plm_ceil_div(l->lin_v_heads, tp);
    int64_t kw = hk * l->lin_dk, vw = hv * l->lin_dv, conv = 2 * kw + vw;
    plm_value_id y =
        plm_emit_linear(x, in, PLM_ROLE_SSM_IN, "ssm_in", conv + vw, x->a->hidden, false);
    plm_value_id ba =
        plm_emit_linear(x, in, PLM_ROLE_SSM_SMALL, "ssm_ba", 2 * hv, x->a->hidden, false);
    plm_value_id z = plm_emit_heads(x, plm_emit_slice(x, y, 1, conv, vw), hv, l->lin_dv);
    y = convolve(x, plm_emit_slice(x, y, 1, 0, conv), "ssm_conv", "conv_tail", conv, false);
    plm_value_id q = plm_emit_heads(x, plm_emit_slice(x, y, 1, 0, kw), hk, l->lin_dk);
    plm_value_id k = plm_emit_heads(x, plm_emit_slice(x, y, 1, kw, kw), hk, l->lin_dk);
    plm_value_id v = plm_emit_heads(x, plm_emit_slice(x, y, 1, 2 * kw, vw), hv, l->lin_dv);
    plm_value_id beta = plm_emit_unary(x, plm_emit_slice(x, ba, 1, 0, hv), PLM_FN_SIGMOID);
    plm_value_id g = log_decay(x, plm_emit_slice(x, ba, 1, hv, hv), hv, hv);
    return gated_out(x, delta_rule(x, q, k, v, g, beta, hv), z, PLM_FN_SILU, hv, l->lin_dv);
}

/* Low-rank projection through d columns. */
static plm_value_id low_rank(plm_builder *x, plm_value_id in, const char *a, const char *b,
                             int64_t rank, int64_t n)
{
    plm_value_id y = plm_emit_linear(x, in, PLM_ROLE_SSM_SMALL, a, rank, x->a->hidden, false);
    return plm_emit_linear(x, y, PLM_ROLE_SSM_SMALL, b, n, rank, false);
}

static plm_value_id kimi_delta(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    int64_t h = x->a->hidden, tp = x->b->par.tp;
    int64_t hk = plm_ceil_div(l->lin_k_heads, tp), hv = plm_ceil_div(l->lin_v_heads, tp);
    int64_t kw = hk * l->lin_dk, vw = hv * l->lin_dv;
    plm_value_id q = plm_emit_linear(x, in, PLM_ROLE_SSM_IN, "ssm_q", kw, h, false);
    plm_value_id k = plm_emit_linear(x, in, PLM_ROLE_SSM_IN, "ssm_k", kw, h, false);
    plm_value_id v = plm_emit_linear(x, in, PLM_ROLE_SSM_IN, "ssm_v", vw, h, false);
    q = convolve(x, q, "ssm_conv_q", "conv_tail_q", kw, false);
    k = convolve(x, k, "ssm_conv_k", "conv_tail_k", kw, false);
    v = convolve(x, v, "ssm_conv_v", "conv_tail_v", vw, false);
    plm_value_id f = low_rank(x, in, "ssm_f_a", "ssm_f_b", l->lin_dk, hv * l->lin_dk);
    plm_value_id z = low_rank(x, in, "ssm_g_a", "ssm_g_b", l->lin_dv, vw);
    plm_value_id beta = plm_emit_unary(
        x, plm_emit_linear(x, in, PLM_ROLE_SSM_SMALL, "ssm_beta", hv, h, false), PLM_FN_SIGMOID);
    plm_value_id g = log_decay(x, f, hv, hv * l->lin_dk);
    plm_value_id y =
        delta_rule(x, plm_emit_heads(x, q, hk, l->lin_dk), plm_emit_heads(x, k, hk, l->lin_dk),
                   plm_emit_heads(x, v, hv, l->lin_dv), g, beta, hv);
    return gated_out(x, y, plm_emit_heads(x, z, hv, l->lin_dv), PLM_FN_SIGMOID, hv, l->lin_dv);
}

static plm_value_id mamba2(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    int64_t tp = x->b->par.tp, heads = plm_ceil_div(l->lin_v_heads, tp), d = l->lin_dv;
    int64_t groups = plm_ceil_div(l->ssm_groups, tp), n = l->ssm_state;
    int64_t inner = heads * d, gn = groups * n, conv = inner + 2 * gn;
    plm_value_id y = plm_emit_linear(x, in, PLM_ROLE_SSM_IN, "ssm_in", inner + conv + heads,
                                     x->a->hidden, false);
    plm_value_id z = plm_emit_slice(x, y, 1, 0, inner);
    plm_value_id xbc = plm_emit_slice(x, y, 1, inner, conv);
    plm_value_id dt = plm_emit_slice(x, y, 1, inner + conv, heads);
    xbc = convolve(x, xbc, "ssm_conv", "conv_tail", conv, true);
    plm_value_id bias = plm_emit_vector(x, PLM_ROLE_SSM_SMALL, "ssm_dt.bias", heads);
    dt = plm_emit_unary(x, plm_emit_binary(x, PLM_OP_ADD, dt, bias), PLM_FN_SOFTPLUS);
    const plm_value_id args[] = {
        plm_emit_heads(x, plm_emit_slice(x, xbc, 1, 0, inner), heads, d),
        dt,
        plm_emit_heads(x, plm_emit_slice(x, xbc, 1, inner, gn), groups, n),
        plm_emit_heads(x, plm_emit_slice(x, xbc, 1, inner + gn, gn), groups, n),
        plm_emit_vector(x, PLM_ROLE_SSM_SMALL, "ssm_a", heads),
        plm_emit_vector(x, PLM_ROLE_SSM_SMALL, "ssm_d", heads),
        plm_emit_state(x, "ssm_state", PLM_DT_F32, heads, d, n)};
    plm_node_begin(x->g, PLM_OP_SSM_SCAN);
    for (size_t i = 0; i < sizeof args / sizeof *args; i++)
        plm_node_in(x->g, args[i]);
    plm_node_int(x->g, PLM_ATTR_CHUNK, SSM_CHUNK);
    y = plm_emit_heads(x, plm_node_end(x->g, x->b->act), inner, 0);
    return gated_out(x, y, z, PLM_FN_SILU, 1, inner);
}

/* LFM2: three projections b, c, v of the input; out(c * conv(b * v)). Source: transformers,
** modeling_lfm2.py. Tensor parallel splits the channels. */
static plm_value_id short_conv(plm_builder *x, plm_value_id in)
{
    const plm_layer *l = x->l;
    int64_t h = x->a->hidden, n = plm_ceil_div(l->lin_v_heads, x->b->par.tp) * l->lin_dv;
    plm_value_id y = plm_emit_linear(x, in, PLM_ROLE_SSM_IN, "shortconv_in", 3 * n, h, l->bias_q);
    plm_value_id b = plm_emit_slice(x, y, 1, 0, n), c = plm_emit_slice(x, y, 1, n, n);
    plm_value_id v = plm_emit_slice(x, y, 1, 2 * n, n);
    v = convolve_fn(x, plm_emit_binary(x, PLM_OP_MUL, b, v), "shortconv_conv", "conv_tail", n,
                    l->bias_k, PLM_FN_NONE);
    y = plm_emit_binary(x, PLM_OP_MUL, c, v);
    return plm_emit_linear(x, y, PLM_ROLE_SSM_OUT, "shortconv_out", h, n, l->bias_o);
}

plm_value_id plm_emit_recurrence(plm_builder *x, plm_value_id in)
{
    switch (x->l->attn) {
    case PLM_ATTN_SHORT_CONV:
        return short_conv(x, in);
    case PLM_ATTN_KDA:
        return kimi_delta(x, in);
    case PLM_ATTN_MAMBA2:
        return mamba2(x, in);
    default:
        return gated_delta(x, in);
    }
}
