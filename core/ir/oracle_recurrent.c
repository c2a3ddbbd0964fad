/* oracle_recurrent.c - oracles of the ops that carry a state from token to token.
**
** Tokens are taken in the order of the step, each on the state of its own sequence, so a sequence
** fed in one step or in several gives the same numbers. A sequence starts from a state of zeros.
*/
#include <math.h>

#include "core/ir/oracle.h"

/* x[T,c], w[c,taps], tail[S,c,taps-1], bias?[c] -> y[T,c], tail. tail holds the inputs before the
** step, oldest first; w's last tap meets the token itself. */
plm_status plm_oracle_conv_causal(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                                  plm_error *err)
{
    const plm_array *bias = plm_oracle_optional(c, in, 3);
    PLM_TRY(plm_oracle_shape(c, &in[0], "x", PLM_SHAPE(PLM_ANY, PLM_ANY), err));
    int64_t T = in[0].dim[0], ch = in[0].dim[1];
    PLM_TRY(plm_oracle_shape(c, &in[1], "w", PLM_SHAPE(ch, PLM_ANY), err));
    int64_t taps = in[1].dim[1], past = taps - 1;
    if (taps < 1)
        return plm_oracle_refuse(c, err, "w", "has no taps");
    PLM_TRY(plm_oracle_shape(c, &in[2], "tail", PLM_SHAPE(PLM_ANY, ch, past), err));
    if (bias != NULL)
        PLM_TRY(plm_oracle_shape(c, bias, "bias", PLM_SHAPE(ch), err));
    PLM_TRY(plm_oracle_like(c, &in[0], &out[0], "output", err));
    PLM_TRY(plm_oracle_like(c, &in[2], &out[1], "next tail", err));
    int64_t fn = plm_attr_int(c->g, c->n, PLM_ATTR_FN, PLM_FN_NONE);
    plm_oracle_carry(&in[2], &out[1]);
    for (int64_t t = 0; t < T; t++) {
        int64_t s;
        PLM_TRY(plm_oracle_sequence(c, t, in[2].dim[0], &s, err));
        for (int64_t i = 0; i < ch; i++) {
            double *tail = &out[1].data[(s * ch + i) * past], x = in[0].data[t * ch + i];
            const double *w = &in[1].data[i * taps];
            double sum = (bias != NULL ? bias->data[i] : 0) + w[past] * x;
            for (int64_t j = 0; j < past; j++)
                sum += w[j] * tail[j];
            if (!plm_oracle_fn1(fn, sum, &out[0].data[t * ch + i]))
                return plm_oracle_refuse(c, err, "fn", "is no function of one number");
            for (int64_t j = 0; j + 1 < past; j++)
                tail[j] = tail[j + 1];
            if (past > 0)
                tail[past - 1] = x;
        }
    }
    return PLM_OK;
}

/* One token of one head: S[dk,dv] <- diag(decay) S; S <- S + k (beta (v - S^T k))^T;
** y = scale S^T q. g holds one log decay, or dk of them with g_step 1. */
static void delta_step(double *S, int64_t dk, int64_t dv, const double *q, const double *k,
                       const double *v, const double *g, int64_t g_step, double beta, double scale,
                       double *y)
{
    for (int64_t i = 0; i < dk; i++)
        for (int64_t j = 0; j < dv; j++)
            S[i * dv + j] *= exp(g[i * g_step]);
    for (int64_t j = 0; j < dv; j++) {
        double known = 0, read = 0;
        for (int64_t i = 0; i < dk; i++)
            known += S[i * dv + j] * k[i];
        for (int64_t i = 0; i < dk; i++)
            S[i * dv + j] += k[i] * beta * (v[j] - known);
        for (int64_t i = 0; i < dk; i++)
            read += S[i * dv + j] * scale * q[i];
        y[j] = read;
    }
}

/* q[T,Hk,dk], k[T,Hk,dk], v[T,Hv,dv], g[T,Hv] or [T,Hv,dk], beta[T,Hv], state[S,Hv,dk,dv]
** -> y[T,Hv,dv], state. scale 1/sqrt(dk) when not given (or 0). The chunked form is an order of
** computation, not another result. Sources: Gated DeltaNet, arXiv 2412.06464; KDA (g by channel),
** arXiv 2510.26692. */
plm_status plm_oracle_gated_delta(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                                  plm_error *err)
{
    PLM_TRY(plm_oracle_shape(c, &in[0], "q", PLM_SHAPE(PLM_ANY, PLM_ANY, PLM_ANY), err));
    int64_t T = in[0].dim[0], Hk = in[0].dim[1], dk = in[0].dim[2];
    PLM_TRY(plm_oracle_like(c, &in[0], &in[1], "k", err));
    PLM_TRY(plm_oracle_shape(c, &in[2], "v", PLM_SHAPE(T, PLM_ANY, PLM_ANY), err));
    int64_t Hv = in[2].dim[1], dv = in[2].dim[2];
    bool by_channel = in[3].rank == 3;
    if (by_channel)
        PLM_TRY(plm_oracle_shape(c, &in[3], "g", PLM_SHAPE(T, Hv, dk), err));
    else
        PLM_TRY(plm_oracle_shape(c, &in[3], "g", PLM_SHAPE(T, Hv), err));
    PLM_TRY(plm_oracle_shape(c, &in[4], "beta", PLM_SHAPE(T, Hv), err));
    PLM_TRY(plm_oracle_shape(c, &in[5], "state", PLM_SHAPE(PLM_ANY, Hv, dk, dv), err));
    PLM_TRY(plm_oracle_like(c, &in[2], &out[0], "output", err));
    PLM_TRY(plm_oracle_like(c, &in[5], &out[1], "next state", err));
    if (Hv > 0 && (Hk <= 0 || Hv % Hk != 0))
        return plm_oracle_refuse(c, err, "v", "has heads that are no multiple of the key heads");
    double scale = plm_attr_real(c->g, c->n, PLM_ATTR_SCALE, 0);
    if (scale == 0)
        scale = 1 / sqrt((double)(dk > 0 ? dk : 1));
    plm_oracle_carry(&in[5], &out[1]);
    for (int64_t t = 0; t < T; t++) {
        int64_t s;
        PLM_TRY(plm_oracle_sequence(c, t, in[5].dim[0], &s, err));
        for (int64_t h = 0; h < Hv; h++) {
            int64_t head = t * Hv + h, key = (t * Hk + h / (Hv / Hk)) * dk;
            delta_step(&out[1].data[(s * Hv + h) * dk * dv], dk, dv, &in[0].data[key],
                       &in[1].data[key], &in[2].data[head * dv],
                       &in[3].data[by_channel ? head * dk : head], by_channel ? 1 : 0,
                       in[4].data[head], scale, &out[0].data[head * dv]);
        }
    }
    return PLM_OK;
}

/* x[T,H,d], dt[T,H], b[T,Gr,n], c[T,Gr,n], a_log[H], d[H], state[S,H,d,n] -> y[T,H,d], state. Head
** h uses group h / (H/Gr); dt is the step after its softplus. Source: Mamba-2, arXiv 2405.21060. */
plm_status plm_oracle_ssm_scan(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                               plm_error *err)
{
    PLM_TRY(plm_oracle_shape(c, &in[0], "x", PLM_SHAPE(PLM_ANY, PLM_ANY, PLM_ANY), err));
    int64_t T = in[0].dim[0], H = in[0].dim[1], d = in[0].dim[2];
    PLM_TRY(plm_oracle_shape(c, &in[1], "dt", PLM_SHAPE(T, H), err));
    PLM_TRY(plm_oracle_shape(c, &in[2], "b", PLM_SHAPE(T, PLM_ANY, PLM_ANY), err));
    int64_t Gr = in[2].dim[1], n = in[2].dim[2];
    PLM_TRY(plm_oracle_like(c, &in[2], &in[3], "c", err));
    PLM_TRY(plm_oracle_shape(c, &in[4], "a_log", PLM_SHAPE(H), err));
    PLM_TRY(plm_oracle_shape(c, &in[5], "d", PLM_SHAPE(H), err));
    PLM_TRY(plm_oracle_shape(c, &in[6], "state", PLM_SHAPE(PLM_ANY, H, d, n), err));
    PLM_TRY(plm_oracle_like(c, &in[0], &out[0], "output", err));
    PLM_TRY(plm_oracle_like(c, &in[6], &out[1], "next state", err));
    if (H > 0 && (Gr <= 0 || H % Gr != 0))
        return plm_oracle_refuse(c, err, "b", "has groups that do not divide the heads");
    plm_oracle_carry(&in[6], &out[1]);
    for (int64_t t = 0; t < T; t++) {
        int64_t s;
        PLM_TRY(plm_oracle_sequence(c, t, in[6].dim[0], &s, err));
        for (int64_t h = 0; h < H; h++) {
            double dt = in[1].data[t * H + h], decay = exp(-exp(in[4].data[h]) * dt);
            const double *b = &in[2].data[(t * Gr + h / (H / Gr)) * n];
            const double *cc = &in[3].data[(t * Gr + h / (H / Gr)) * n];
            for (int64_t i = 0; i < d; i++) {
                double x = in[0].data[(t * H + h) * d + i], y = in[5].data[h] * x;
                double *S = &out[1].data[((s * H + h) * d + i) * n];
                for (int64_t j = 0; j < n; j++) {
                    S[j] = decay * S[j] + dt * x * b[j];
                    y += S[j] * cc[j];
                }
                out[0].data[(t * H + h) * d + i] = y;
            }
        }
    }
    return PLM_OK;
}

/* Adds a token of gate g and value x to a group whose gates have log-sum-exp *lse and whose
** weighted mean is *mean. A gate of -inf weighs nothing. */
static void pool_add(double g, double x, double *lse, double *mean)
{
    if (isinf(g) && g < 0)
        return;
    if (isinf(*lse) && *lse < 0) {
        *lse = g;
        *mean = x;
        return;
    }
    double most = g > *lse ? g : *lse, sum = most + log(exp(g - most) + exp(*lse - most));
    *mean = exp(*lse - sum) * *mean + exp(g - sum) * x;
    *lse = sum;
}

/* x[T,d], gate[T,d], tail[S,ratio,d], bias?[ratio,d] -> y[T,d], tail. Groups are positions [i ratio, (i+1) ratio).
** The open group is carried in two rows of the tail: row 0 its weighted mean, row 1 the log-sum-exp
** of its gates; the other rows pass through. A group starts afresh at its first position, so the
** tail needs no initial value. With ratio 1 every token is a group of its own. */
plm_status plm_oracle_kv_pool(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                              plm_error *err)
{
    int64_t ratio = plm_attr_int(c->g, c->n, PLM_ATTR_RATIO, 1);
    PLM_TRY(plm_oracle_shape(c, &in[0], "x", PLM_SHAPE(PLM_ANY, PLM_ANY), err));
    int64_t T = in[0].dim[0], d = in[0].dim[1];
    PLM_TRY(plm_oracle_like(c, &in[0], &in[1], "gate", err));
    if (ratio < 1)
        return plm_oracle_refuse(c, err, "ratio", "is not positive");
    PLM_TRY(plm_oracle_shape(c, &in[2], "tail", PLM_SHAPE(PLM_ANY, ratio, d), err));
    PLM_TRY(plm_oracle_like(c, &in[0], &out[0], "output", err));
    PLM_TRY(plm_oracle_like(c, &in[2], &out[1], "next tail", err));
    if (c->token_pos == NULL)
        return plm_oracle_refuse(c, err, "batch", "does not say the position of each token");
    bool biased = c->n->n_in > 3;
    if (biased)
        PLM_TRY(plm_oracle_shape(c, &in[3], "bias", PLM_SHAPE(ratio, d), err));
    plm_oracle_carry(&in[2], &out[1]);
    for (int64_t t = 0; t < T; t++) {
        int64_t s, at = c->token_pos[t] % ratio;
        PLM_TRY(plm_oracle_sequence(c, t, in[2].dim[0], &s, err));
        for (int64_t i = 0; i < d; i++) {
            double *tail = &out[1].data[s * ratio * d + i];
            double mean = at == 0 ? 0 : tail[0], lse = at == 0 ? -INFINITY : tail[d];
            double gate = in[1].data[t * d + i] + (biased ? in[3].data[at * d + i] : 0);
            pool_add(gate, in[0].data[t * d + i], &lse, &mean);
            out[0].data[t * d + i] = at == ratio - 1 ? mean : 0;
            if (ratio > 1) {
                tail[0] = mean;
                tail[d] = lse;
            }
        }
    }
    return PLM_OK;
}
