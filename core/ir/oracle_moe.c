/* oracle_moe.c - oracles of routing: gate, sort by expert, combine. */
#include <math.h>

#include "core/base/mem.h"
#include "core/ir/oracle.h"

typedef struct gate {
    int64_t fn, X, k, n_group, topk_group;
    bool renorm;
    double scale;
    const plm_array *bias, *ids;
} gate;

/* Scores of the experts for one token: score is what the weight is made of, choice what the choice
** goes by (score and bias). SOFTMAX_TOPK chooses by logit and makes its weights later. */
static bool score_experts(const gate *g, const double *logits, double *score, double *choice)
{
    if (g->fn == PLM_FN_SOFTMAX)
        plm_oracle_softmax_row(logits, g->X, score);
    for (int64_t x = 0; x < g->X; x++) {
        if (g->fn == PLM_FN_SOFTMAX_TOPK)
            score[x] = logits[x];
        else if (g->fn != PLM_FN_SOFTMAX && !plm_oracle_fn1(g->fn, logits[x], &score[x]))
            return false;
        choice[x] = score[x] + (g->bias != NULL ? g->bias->data[x] : 0);
    }
    return true;
}

/* Index of the greatest of n that are not barred, the lowest of equals; -1 when all are. */
static int64_t greatest(const double *v, const unsigned char *barred, int64_t n)
{
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++)
        if (!barred[i] && (best < 0 || v[i] > v[best]))
            best = i;
    return best;
}

/* What a group of n experts is worth: the sum of its two greatest choices when there is a bias
** (DeepSeek-V3, noaux_tc), else its greatest (DeepSeek-V2, group_limited_greedy). */
static double group_worth(const double *choice, int64_t n, bool two)
{
    double first = -INFINITY, second = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (choice[i] > first) {
            second = first;
            first = choice[i];
        } else if (choice[i] > second) {
            second = choice[i];
        }
    }
    return two && n > 1 ? first + second : first;
}

/* Bars the experts outside the topk_group best groups. worth and used, [n_group] each, are scratch:
** the worth of each group, and whether it is chosen. */
static void limit_groups(const gate *g, const double *choice, unsigned char *barred, double *worth,
                         unsigned char *used)
{
    int64_t size = g->X / g->n_group;
    for (int64_t i = 0; i < g->n_group; i++) {
        worth[i] = group_worth(&choice[i * size], size, g->bias != NULL);
        used[i] = 0;
    }
    for (int64_t x = 0; x < g->X; x++)
        barred[x] = 1;
    for (int64_t j = 0; j < g->topk_group; j++) {
        int64_t best = greatest(worth, used, g->n_group);
        used[best] = 1;
        for (int64_t x = best * size; x < (best + 1) * size; x++)
            barred[x] = 0;
    }
}

/* Weights of the chosen from their scores. */
static void weigh(const gate *g, double *w)
{
    double sum = 0;
    if (g->fn == PLM_FN_SOFTMAX_TOPK)
        plm_oracle_softmax_row(w, g->k, w);
    for (int64_t j = 0; j < g->k; j++)
        sum += w[j];
    for (int64_t j = 0; j < g->k; j++) {
        if (g->renorm && sum > 0)
            w[j] /= sum;
        w[j] *= g->scale;
    }
}

static plm_status read_gate(const plm_oracle_ctx *c, const plm_array *in, gate *g, plm_error *err)
{
    PLM_TRY(plm_oracle_shape(c, &in[0], "logits", PLM_SHAPE(PLM_ANY, PLM_ANY), err));
    *g = (gate){.fn = plm_attr_int(c->g, c->n, PLM_ATTR_FN, PLM_FN_SOFTMAX),
                .X = in[0].dim[1],
                .k = plm_attr_int(c->g, c->n, PLM_ATTR_TOP_K, 1),
                .n_group = plm_attr_int(c->g, c->n, PLM_ATTR_N_GROUP, 0),
                .topk_group = plm_attr_int(c->g, c->n, PLM_ATTR_TOPK_GROUP, 0),
                .renorm = plm_attr_int(c->g, c->n, PLM_ATTR_RENORM, 0) != 0,
                .scale = plm_attr_real(c->g, c->n, PLM_ATTR_SCALE, 1),
                .bias = plm_oracle_optional(c, in, 1),
                .ids = plm_oracle_optional(c, in, 2)};
    if (g->bias != NULL)
        PLM_TRY(plm_oracle_shape(c, g->bias, "bias", PLM_SHAPE(g->X), err));
    int64_t reach = g->X;
    if (g->n_group > 1) {
        if (g->X % g->n_group != 0 || g->topk_group < 1 || g->topk_group > g->n_group)
            return plm_oracle_refuse(c, err, "n_group, topk_group", "do not divide the experts");
        reach = g->X / g->n_group * g->topk_group;
    }
    if (g->k < 0 || g->k > reach)
        return plm_oracle_refuse(c, err, "top_k", "is more than the experts a token may use");
    if (g->ids != NULL)
        PLM_TRY(plm_oracle_shape(c, g->ids, "ids", PLM_SHAPE(in[0].dim[0], g->k), err));
    return PLM_OK;
}

/* The k experts of token t in `to`: those given, or the greatest choices that are not barred. */
static plm_status choose_experts(const plm_oracle_ctx *c, const gate *g, int64_t t,
                                 const double *choice, unsigned char *barred, double *to,
                                 plm_error *err)
{
    for (int64_t j = 0; j < g->k; j++) {
        int64_t x;
        if (g->ids != NULL) {
            PLM_TRY(plm_oracle_integer(c, g->ids->data[t * g->k + j], "ids", 0, g->X, &x, err));
        } else {
            x = greatest(choice, barred, g->X);
            barred[x] = 1;
        }
        to[j] = (double)x;
    }
    return PLM_OK;
}

/* logits[T,X], bias?[X], ids?[T,k] -> weights[T,k], ids[T,k], in falling order of choice, lowest
** expert of equals first, or in the order given. With renorm weights that sum to 0 stay 0. */
plm_status plm_oracle_gate(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                           plm_error *err)
{
    gate g = {0};
    PLM_TRY(read_gate(c, in, &g, err));
    int64_t T = in[0].dim[0], X = g.X;
    PLM_TRY(plm_oracle_shape(c, &out[0], "weights", PLM_SHAPE(T, g.k), err));
    PLM_TRY(plm_oracle_shape(c, &out[1], "ids", PLM_SHAPE(T, g.k), err));
    double *score = plm_calloc((size_t)X + 1, 3 * sizeof *score);
    unsigned char *barred = plm_calloc((size_t)X + 1, 2);
    plm_status status = score == NULL || barred == NULL ? plm_fail_memory(err, "scores") : PLM_OK;
    for (int64_t t = 0; status == PLM_OK && t < T; t++) {
        double *choice = score + X, *w = &out[0].data[t * g.k], *ids = &out[1].data[t * g.k];
        if (!score_experts(&g, &in[0].data[t * X], score, choice)) {
            status = plm_oracle_refuse(c, err, "fn", "is no function of a gate");
            break;
        }
        for (int64_t x = 0; x < X; x++)
            barred[x] = 0;
        if (g.n_group > 1)
            limit_groups(&g, choice, barred, score + 2 * X, barred + X);
        status = choose_experts(c, &g, t, choice, barred, ids, err);
        if (status != PLM_OK)
            break;
        for (int64_t j = 0; j < g.k; j++)
            w[j] = score[(int64_t)ids[j]];
        weigh(&g, w);
    }
    plm_free(score);
    plm_free(barred);
    return status;
}

/* x[T,h], ids[T,k] -> xs[E,h], offsets[X+1], perm[E]. Rows go by expert and, within one, by pair
** t k + j, which perm names. Pairs of experts this rank does not hold (id outside 0 ..
** local_experts - 1) are left out; rows that no pair fills are 0 with perm -1. */
plm_status plm_oracle_moe_sort(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                               plm_error *err)
{
    PLM_TRY(plm_oracle_shape(c, &in[0], "x", PLM_SHAPE(PLM_ANY, PLM_ANY), err));
    int64_t T = in[0].dim[0], h = in[0].dim[1];
    PLM_TRY(plm_oracle_shape(c, &in[1], "ids", PLM_SHAPE(T, PLM_ANY), err));
    int64_t k = in[1].dim[1];
    PLM_TRY(plm_oracle_shape(c, &out[0], "xs", PLM_SHAPE(PLM_ANY, h), err));
    int64_t E = out[0].dim[0], row = 0;
    PLM_TRY(plm_oracle_shape(c, &out[1], "offsets", PLM_SHAPE(PLM_ANY), err));
    PLM_TRY(plm_oracle_shape(c, &out[2], "perm", PLM_SHAPE(E), err));
    int64_t X = out[1].dim[0] - 1;
    if (X < 0)
        return plm_oracle_refuse(c, err, "offsets", "has no room for the end");
    for (int64_t i = 0; i < T * k; i++) {
        int64_t id;
        PLM_TRY(plm_oracle_integer(c, in[1].data[i], "ids", -1, INT32_MAX, &id, err));
    }
    for (int64_t i = 0; i < E * h; i++)
        out[0].data[i] = 0;
    for (int64_t e = 0; e < E; e++)
        out[2].data[e] = -1;
    for (int64_t x = 0; x < X; x++) {
        out[1].data[x] = (double)row;
        for (int64_t i = 0; i < T * k; i++) {
            if (in[1].data[i] != (double)x)
                continue;
            if (row == E)
                return plm_oracle_refuse(c, err, "xs", "has fewer rows than pairs to compute");
            for (int64_t j = 0; j < h; j++)
                out[0].data[row * h + j] = in[0].data[i / k * h + j];
            out[2].data[row++] = (double)i;
        }
    }
    out[1].data[X] = (double)row;
    return PLM_OK;
}

/* ys[E,h], perm[E], weights[T,k] -> y[T,h] */
plm_status plm_oracle_moe_combine(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                                  plm_error *err)
{
    PLM_TRY(plm_oracle_shape(c, &in[0], "ys", PLM_SHAPE(PLM_ANY, PLM_ANY), err));
    int64_t E = in[0].dim[0], h = in[0].dim[1];
    PLM_TRY(plm_oracle_shape(c, &in[1], "perm", PLM_SHAPE(E), err));
    PLM_TRY(plm_oracle_shape(c, &in[2], "weights", PLM_SHAPE(PLM_ANY, PLM_ANY), err));
    int64_t T = in[2].dim[0], k = in[2].dim[1];
    PLM_TRY(plm_oracle_shape(c, &out[0], "output", PLM_SHAPE(T, h), err));
    for (int64_t i = 0; i < T * h; i++)
        out[0].data[i] = 0;
    for (int64_t e = 0; e < E; e++) {
        int64_t pair;
        PLM_TRY(plm_oracle_integer(c, in[1].data[e], "perm", -1, T * k, &pair, err));
        for (int64_t j = 0; pair >= 0 && j < h; j++)
            out[0].data[pair / k * h + j] += in[2].data[pair] * in[0].data[e * h + j];
    }
    return PLM_OK;
}
