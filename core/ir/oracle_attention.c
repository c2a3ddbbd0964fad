/* oracle_attention.c - oracles of attention, of the index that selects keys, and of the cache.
**
** Slot s of the cache holds the token at position slot_pos[s] of sequence slot_seq[s]. With ratio r
** it holds an entry for r tokens, and slot_pos[s] is the position of the last of them; a cache that
** mixes entries with plain tokens says which is which in slot_tokens. The context describes the
** cache as it stands for the op: for attention, after the step's keys are written. Slots that hold
** nothing of the op's own cache are free (slot_seq -1).
*/
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/ir/oracle.h"

/* The context must say where tokens and slots stand. */
static plm_status check_places(const plm_oracle_ctx *c, plm_error *err)
{
    if (c->token_seq == NULL || c->token_pos == NULL || c->slot_seq == NULL || c->slot_pos == NULL)
        return plm_oracle_refuse(c, err, "batch", "does not say where tokens and slots stand");
    return PLM_OK;
}

/* ---- attention ---- */

typedef struct attn {
    const plm_array *q, *k, *v, *sinks, *index;
    int64_t T, H, G, C, dk, dv, window, chunk, block, ratio;
    double scale, softcap;
    bool causal, alibi;
} attn;

/* True when the step's index lists the position of slot s for token t. An entry of the index names
** `block` consecutive positions. */
static bool index_lists(const attn *a, int64_t t, int64_t pos)
{
    int64_t k = a->index->dim[1];
    for (int64_t i = 0; i < k; i++) {
        double e = a->index->data[t * k + i];
        if (e >= 0 && e == (double)(pos / a->block))
            return true;
    }
    return false;
}

/* Whether token t attends slot s. Where entries stand for several tokens (ratio > 1) the window is
** a matter of the plain tokens beside them and the index one of the entries: a query sees all
** entries, or those selected, and the last tokens as they are (DeepSeek-V4). */
static bool attends(const plm_oracle_ctx *c, const attn *a, int64_t t, int64_t s)
{
    int64_t q = c->token_pos[t], k = c->slot_pos[s];
    bool entry = a->ratio > 1 && (c->slot_tokens == NULL || c->slot_tokens[s] > 1);
    if (c->slot_seq[s] < 0 || c->slot_seq[s] != c->token_seq[t])
        return false;
    if (a->causal && k > q)
        return false;
    if (a->window > 0 && !entry && k <= q - a->window)
        return false;
    if (a->chunk > 0 && k / a->chunk != q / a->chunk)
        return false;
    return a->index == NULL || (a->ratio > 1 && !entry) || index_lists(a, t, k);
}

/* Slope of head h of H: 2^(-8 (h+1) / H) when H is a power of two; else those of the power of two
** below H, then every other one of twice that. Source: ALiBi, arXiv 2108.12409, reference code. */
static double alibi_slope(int64_t h, int64_t H)
{
    int64_t p = 1;
    while (p <= H / 2)
        p *= 2;
    if (h < p)
        return pow(2, -8.0 * (double)(h + 1) / (double)p);
    return pow(2, -8.0 * (double)(2 * (h - p) + 1) / (double)(2 * p));
}

/* Score of slot s for head h of token t. */
static double score(const plm_oracle_ctx *c, const attn *a, int64_t t, int64_t h, int64_t s)
{
    int64_t g = h / (a->H / a->G);
    double sum = 0;
    for (int64_t i = 0; i < a->dk; i++)
        sum += a->q->data[(t * a->H + h) * a->dk + i] * a->k->data[(s * a->G + g) * a->dk + i];
    sum *= a->scale;
    if (a->softcap > 0)
        sum = a->softcap * tanh(sum / a->softcap);
    if (a->alibi)
        sum += alibi_slope(h, a->H) * (double)(c->slot_pos[s] - c->token_pos[t]);
    return sum;
}

/* One row: p[0..C) are scratch for the scores, the sink stands at p[C]. A slot that is not attended
** has the score -inf, and so a weight of exactly 0. */
static void attend_row(const plm_oracle_ctx *c, const attn *a, int64_t t, int64_t h, double *p,
                       double *y)
{
    int64_t g = h / (a->H / a->G);
    for (int64_t s = 0; s < a->C; s++)
        p[s] = attends(c, a, t, s) ? score(c, a, t, h, s) : -INFINITY;
    p[a->C] = a->sinks != NULL ? a->sinks->data[h] : -INFINITY;
    plm_oracle_softmax_row(p, a->C + 1, p);
    for (int64_t i = 0; i < a->dv; i++)
        y[i] = 0;
    for (int64_t s = 0; s < a->C; s++) {
        /* A weight of 0 must not meet what an unattended slot holds (0 * inf is NaN). */
        if (p[s] == 0)
            continue;
        const double *v = a->v != NULL ? &a->v->data[(s * a->G + g) * a->dv]
                                       : &a->k->data[(s * a->G + g) * a->dk];
        for (int64_t i = 0; i < a->dv; i++)
            y[i] += p[s] * v[i];
    }
}

/* Positions that an entry of the index stands for: sparse_top_k counts keys, the index may count
** blocks of them. */
static int64_t index_block(const plm_oracle_ctx *c, const plm_array *index)
{
    int64_t keys = plm_attr_int(c->g, c->n, PLM_ATTR_SPARSE_TOP_K, 0);
    int64_t entries = index != NULL ? index->dim[1] : 0;
    return entries > 0 && keys > entries ? keys / entries : 1;
}

static plm_status read_attn(const plm_oracle_ctx *c, const plm_array *in, attn *a, plm_error *err)
{
    PLM_TRY(check_places(c, err));
    *a = (attn){.q = &in[0],
                .k = &in[1],
                .sinks = plm_oracle_optional(c, in, 3),
                .index = plm_oracle_optional(c, in, 4)};
    PLM_TRY(plm_oracle_shape(c, a->q, "q", PLM_SHAPE(PLM_ANY, PLM_ANY, PLM_ANY), err));
    a->T = a->q->dim[0], a->H = a->q->dim[1], a->dk = a->q->dim[2];
    PLM_TRY(plm_oracle_shape(c, a->k, "kcache", PLM_SHAPE(PLM_ANY, PLM_ANY, a->dk), err));
    a->C = a->k->dim[0], a->G = a->k->dim[1];
    if (a->H > 0 && (a->G <= 0 || a->H % a->G != 0))
        return plm_oracle_refuse(c, err, "kcache", "has heads that do not divide the query's");
    if (plm_attr_int(c->g, c->n, PLM_ATTR_V_IN_K, 0) == 0) {
        a->v = &in[2];
        PLM_TRY(plm_oracle_shape(c, plm_oracle_optional(c, in, 2), "vcache",
                                 PLM_SHAPE(a->C, a->G, PLM_ANY), err));
        a->dv = a->v->dim[2];
    } else {
        a->dv = plm_attr_int(c->g, c->n, PLM_ATTR_DV, a->dk);
        if (a->dv < 0 || a->dv > a->dk)
            return plm_oracle_refuse(c, err, "dv", "is wider than the keys that hold the values");
    }
    if (a->sinks != NULL)
        PLM_TRY(plm_oracle_shape(c, a->sinks, "sinks", PLM_SHAPE(a->H), err));
    if (a->index != NULL)
        PLM_TRY(plm_oracle_shape(c, a->index, "index", PLM_SHAPE(a->T, PLM_ANY), err));
    a->window = plm_attr_int(c->g, c->n, PLM_ATTR_WINDOW, 0);
    a->chunk = plm_attr_int(c->g, c->n, PLM_ATTR_CHUNK, 0);
    a->ratio = plm_attr_int(c->g, c->n, PLM_ATTR_RATIO, 1);
    a->softcap = plm_attr_real(c->g, c->n, PLM_ATTR_SOFTCAP, 0);
    a->causal = plm_attr_int(c->g, c->n, PLM_ATTR_CAUSAL, 1) != 0;
    a->alibi = plm_attr_int(c->g, c->n, PLM_ATTR_ALIBI, 0) != 0;
    a->scale = plm_attr_real(c->g, c->n, PLM_ATTR_SCALE, 0);
    a->block = index_block(c, a->index);
    if (a->scale == 0)
        a->scale = 1 / sqrt((double)(a->dk > 0 ? a->dk : 1));
    return PLM_OK;
}

/* q[T,H,dk], kcache[C,G,dk], vcache?[C,G,dv], sinks?[H], index?[T,top_k] -> y[T,H,dv].
** Order of the terms of a score: scale, softcap, position bias. causal 1 and scale 1/sqrt(dk) when
** not given. */
plm_status plm_oracle_attention(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                                plm_error *err)
{
    attn a = {0};
    PLM_TRY(read_attn(c, in, &a, err));
    PLM_TRY(plm_oracle_shape(c, &out[0], "output", PLM_SHAPE(a.T, a.H, a.dv), err));
    double *p = plm_calloc((size_t)a.C + 1, sizeof *p);
    if (p == NULL)
        return plm_fail_memory(err, "attention scores");
    for (int64_t t = 0; t < a.T; t++)
        for (int64_t h = 0; h < a.H; h++)
            attend_row(c, &a, t, h, p, &out[0].data[(t * a.H + h) * a.dv]);
    plm_free(p);
    return PLM_OK;
}

/* ---- index ---- */

/* Score of the key in slot s for token t: sum over heads of w relu(q k). A positive factor on all
** scores (the published 1/sqrt(d), 1/sqrt(heads)) does not change the choice. */
static double index_score(const plm_array *in, int64_t t, int64_t s)
{
    int64_t H = in[0].dim[1], d = in[0].dim[2];
    double sum = 0;
    for (int64_t h = 0; h < H; h++) {
        double dot = 0;
        for (int64_t i = 0; i < d; i++)
            dot += in[0].data[(t * H + h) * d + i] * in[1].data[s * d + i];
        sum += in[2].data[t * H + h] * (dot > 0 ? dot : 0);
    }
    return sum;
}

/* Fills score[s] and taken[s] (1 = not to be chosen) for token t. */
static void score_slots(const plm_oracle_ctx *c, const plm_array *in, int64_t t, double *scores,
                        unsigned char *taken)
{
    for (int64_t s = 0; s < in[1].dim[0]; s++) {
        taken[s] = c->slot_seq[s] < 0 || c->slot_seq[s] != c->token_seq[t] ||
                   c->slot_pos[s] > c->token_pos[t];
        scores[s] = taken[s] ? 0 : index_score(in, t, s);
    }
}

/* q[T,Hi,di], kcache[C,1,di], w[T,Hi] -> index[T,k]: positions of the k keys with the greatest
** scores among those at or before the token, greatest first, the lowest position of equals; -1
** where there are fewer. With block > 1, numbers of blocks (position / block), a block scoring as
** its best key. Source: DeepSeek-V3.2-Exp report, equation 1. */
plm_status plm_oracle_index(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                            plm_error *err)
{
    PLM_TRY(check_places(c, err));
    PLM_TRY(plm_oracle_shape(c, &in[0], "q", PLM_SHAPE(PLM_ANY, PLM_ANY, PLM_ANY), err));
    int64_t T = in[0].dim[0], H = in[0].dim[1], d = in[0].dim[2];
    PLM_TRY(plm_oracle_shape(c, &in[1], "kcache", PLM_SHAPE(PLM_ANY, 1, d), err));
    PLM_TRY(plm_oracle_shape(c, &in[2], "w", PLM_SHAPE(T, H), err));
    PLM_TRY(plm_oracle_shape(c, &out[0], "output", PLM_SHAPE(T, PLM_ANY), err));
    int64_t C = in[1].dim[0], k = out[0].dim[1];
    int64_t block = plm_attr_int(c->g, c->n, PLM_ATTR_BLOCK, 1);
    if (block < 1)
        block = 1;
    double *scores = plm_calloc((size_t)C + 1, sizeof *scores);
    unsigned char *taken = plm_calloc((size_t)C + 1, 1);
    plm_status status =
        scores == NULL || taken == NULL ? plm_fail_memory(err, "index scores") : PLM_OK;
    for (int64_t t = 0; status == PLM_OK && t < T; t++) {
        score_slots(c, in, t, scores, taken);
        for (int64_t j = 0; j < k; j++) {
            int64_t best = -1;
            for (int64_t s = 0; s < C; s++)
                if (!taken[s] &&
                    (best < 0 || scores[s] > scores[best] ||
                     (scores[s] == scores[best] && c->slot_pos[s] < c->slot_pos[best])))
                    best = s;
            int64_t name = best < 0 ? -1 : c->slot_pos[best] / block;
            out[0].data[t * k + j] = (double)name;
            for (int64_t s = 0; s < C; s++)
                if (best >= 0 && c->slot_pos[s] / block == name)
                    taken[s] = 1;
        }
    }
    plm_free(scores);
    plm_free(taken);
    return status;
}

/* ---- cache ---- */

/* Writes rows of x[T,G,d] to their slots of cache[C,G,d]; with ratio r only the last token of each
** group of r writes, which holds the group's entry. A slot of -1 keeps the token out of the cache.
*/
static plm_status write_rows(const plm_oracle_ctx *c, const plm_array *x, const plm_array *cache,
                             plm_array *next, plm_error *err)
{
    int64_t row = x->dim[1] * x->dim[2], ratio = plm_attr_int(c->g, c->n, PLM_ATTR_RATIO, 1);
    if (c->token_slot == NULL || (ratio > 1 && c->token_pos == NULL))
        return plm_oracle_refuse(c, err, "batch", "does not say the slot of each token");
    plm_oracle_carry(cache, next);
    for (int64_t t = 0; t < x->dim[0]; t++) {
        int64_t s = c->token_slot[t];
        if (ratio > 1 && c->token_pos[t] % ratio != ratio - 1)
            continue;
        if (s < -1 || s >= cache->dim[0])
            return plm_oracle_refuse(c, err, "batch", "names a slot outside the cache");
        if (s >= 0 && row > 0)
            memcpy(&next->data[s * row], &x->data[t * row], (size_t)row * sizeof *x->data);
    }
    return PLM_OK;
}

/* k[T,G,dk], kcache[C,G,dk], v?[T,G,dv], vcache?[C,G,dv] -> the caches' next versions. Without v
** the second output is left alone. */
plm_status plm_oracle_kv_write(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                               plm_error *err)
{
    const plm_array *v = plm_oracle_optional(c, in, 2), *vcache = plm_oracle_optional(c, in, 3);
    PLM_TRY(plm_oracle_shape(c, &in[0], "k", PLM_SHAPE(PLM_ANY, PLM_ANY, PLM_ANY), err));
    int64_t T = in[0].dim[0], G = in[0].dim[1], dk = in[0].dim[2];
    PLM_TRY(plm_oracle_shape(c, &in[1], "kcache", PLM_SHAPE(PLM_ANY, G, dk), err));
    PLM_TRY(plm_oracle_like(c, &in[1], &out[0], "output", err));
    if ((v == NULL) != (vcache == NULL))
        return plm_oracle_refuse(c, err, "v, vcache", "one is missing");
    PLM_TRY(write_rows(c, &in[0], &in[1], &out[0], err));
    if (v == NULL)
        return PLM_OK;
    PLM_TRY(plm_oracle_shape(c, v, "v", PLM_SHAPE(T, PLM_ANY, PLM_ANY), err));
    PLM_TRY(
        plm_oracle_shape(c, vcache, "vcache", PLM_SHAPE(in[1].dim[0], v->dim[1], v->dim[2]), err));
    PLM_TRY(plm_oracle_like(c, vcache, &out[1], "output 1", err));
    return write_rows(c, v, vcache, &out[1], err);
}

/* cache[C,G,d], pairs[P,2] -> cache. Sources are read from the version that came in, so the pairs
** do not chain; of two with one destination the last stands. */
plm_status plm_oracle_kv_copy(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                              plm_error *err)
{
    plm_status status = PLM_OK;
    PLM_TRY(plm_oracle_shape(c, &in[0], "cache", PLM_SHAPE(PLM_ANY, PLM_ANY, PLM_ANY), err));
    PLM_TRY(plm_oracle_shape(c, &in[1], "pairs", PLM_SHAPE(PLM_ANY, 2), err));
    PLM_TRY(plm_oracle_like(c, &in[0], &out[0], "output", err));
    int64_t C = in[0].dim[0], row = in[0].dim[1] * in[0].dim[2], P = in[1].dim[0];
    double *rows = plm_calloc((size_t)P + 1, ((size_t)row + 1) * sizeof *rows);
    if (rows == NULL)
        return plm_fail_memory(err, "copied cache rows");
    for (int64_t i = 0; i < P; i++) {
        int64_t from;
        PLM_GOTO(plm_oracle_integer(c, in[1].data[2 * i], "pairs", 0, C, &from, err));
        memcpy(&rows[i * row], &in[0].data[from * row], (size_t)row * sizeof *rows);
    }
    plm_oracle_carry(&in[0], &out[0]);
    for (int64_t i = 0; i < P; i++) {
        int64_t to;
        PLM_GOTO(plm_oracle_integer(c, in[1].data[2 * i + 1], "pairs", 0, C, &to, err));
        memcpy(&out[0].data[to * row], &rows[i * row], (size_t)row * sizeof *rows);
    }
done:
    plm_free(rows);
    return status;
}
