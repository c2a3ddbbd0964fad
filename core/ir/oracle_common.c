/* oracle_common.c - checks and functions that the oracles share. */
#include "core/ir/oracle.h"

#include <math.h>
#include <string.h>

static const char *const op_names[] = {
#define PLM_OP(id, name, ...) name,
#include "core/ir/ops.def"
#undef PLM_OP
};

static const char *op_name(const plm_oracle_ctx *c)
{
    size_t i = (size_t)c->n->op;
    return i < sizeof op_names / sizeof *op_names ? op_names[i] : "unknown op";
}

plm_status plm_oracle_refuse(const plm_oracle_ctx *c, plm_error *err, const char *what,
                             const char *why)
{
    return plm_fail(err, PLM_E_INVALID, "%s, %s: %s; correct the operand or the attribute",
                    op_name(c), what, why);
}

const plm_array *plm_oracle_optional(const plm_oracle_ctx *c, const plm_array *in, uint32_t i)
{
    return i < c->n->n_in && in[i].data != NULL ? &in[i] : NULL;
}

plm_status plm_oracle_present(const plm_oracle_ctx *c, const plm_array *a, const char *what,
                              plm_error *err)
{
    if (a == NULL || a->data == NULL)
        return plm_oracle_refuse(c, err, what, "missing");
    if (a->rank == 0 || a->rank > PLM_RANK_MAX)
        return plm_oracle_refuse(c, err, what, "needs 1 to 4 dims");
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dim[i] < 0)
            return plm_oracle_refuse(c, err, what, "has a negative dim");
    return PLM_OK;
}

plm_status plm_oracle_shape(const plm_oracle_ctx *c, const plm_array *a, const char *what,
                            uint32_t rank, const int64_t *dim, plm_error *err)
{
    PLM_TRY(plm_oracle_present(c, a, what, err));
    if (a->rank != rank)
        return plm_fail(err, PLM_E_INVALID, "%s, %s: has %u dims, want %u; correct the operand",
                        op_name(c), what, (unsigned)a->rank, (unsigned)rank);
    for (uint32_t i = 0; i < rank; i++)
        if (dim[i] != PLM_ANY && a->dim[i] != dim[i])
            return plm_fail(err, PLM_E_INVALID,
                            "%s, %s: dim %u is %lld, want %lld; correct the operand", op_name(c),
                            what, (unsigned)i, (long long)a->dim[i], (long long)dim[i]);
    return PLM_OK;
}

plm_status plm_oracle_like(const plm_oracle_ctx *c, const plm_array *a, const plm_array *b,
                           const char *what, plm_error *err)
{
    PLM_TRY(plm_oracle_present(c, a, "input 0", err));
    return plm_oracle_shape(c, b, what, a->rank, a->dim, err);
}

plm_status plm_oracle_integer(const plm_oracle_ctx *c, double v, const char *what, int64_t lo,
                              int64_t hi, int64_t *out, plm_error *err)
{
    /* The comparison form also refuses NaN; 2^53 bounds what a double holds exactly. */
    if (!(v > -9007199254740992.0 && v < 9007199254740992.0) || v != floor(v))
        return plm_oracle_refuse(c, err, what, "holds a number that is not an integer");
    int64_t i = (int64_t)v;
    if (i < lo || i >= hi)
        return plm_fail(err, PLM_E_INVALID, "%s, %s: %lld is outside %lld .. %lld; correct it",
                        op_name(c), what, (long long)i, (long long)lo, (long long)hi - 1);
    *out = i;
    return PLM_OK;
}

plm_status plm_oracle_sequence(const plm_oracle_ctx *c, int64_t t, int64_t n_seq, int64_t *out,
                               plm_error *err)
{
    if (c->token_seq == NULL)
        return plm_oracle_refuse(c, err, "batch", "does not say the sequence of each token");
    if (c->token_seq[t] < 0 || c->token_seq[t] >= n_seq)
        return plm_oracle_refuse(c, err, "batch", "names a sequence that has no state");
    *out = c->token_seq[t];
    return PLM_OK;
}

int64_t plm_array_count(const plm_array *a)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < a->rank; i++)
        n *= a->dim[i];
    return n;
}

int64_t plm_array_cols(const plm_array *a)
{
    return a->rank == 0 ? 1 : a->dim[a->rank - 1];
}

int64_t plm_array_rows(const plm_array *a)
{
    int64_t n = 1;
    for (uint32_t i = 0; i + 1 < a->rank; i++)
        n *= a->dim[i];
    return n;
}

void plm_oracle_carry(const plm_array *state, plm_array *next)
{
    if (next->data != state->data)
        memcpy(next->data, state->data, (size_t)plm_array_count(state) * sizeof *state->data);
}

/* 1 / (1 + e^-x) without overflow. */
static double sigmoid(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

/* ln(1 + e^x) without overflow. */
static double softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

bool plm_oracle_fn1(int64_t fn, double x, double *y)
{
    static const double sqrt_half = 0.70710678118654752440, sqrt_2_over_pi = 0.79788456080286535588;
    /* The limit of x * something that falls faster than 1/x. */
    bool down = isinf(x) && x < 0;
    switch (fn) {
    case PLM_FN_NONE:
        *y = x;
        return true;
    case PLM_FN_SILU:
        *y = down ? 0 : x * sigmoid(x);
        return true;
    case PLM_FN_GELU_TANH:
        *y = down ? 0 : 0.5 * x * (1 + tanh(sqrt_2_over_pi * (x + 0.044715 * x * x * x)));
        return true;
    case PLM_FN_GELU_ERF:
        *y = down ? 0 : 0.5 * x * erfc(-x * sqrt_half);
        return true;
    case PLM_FN_SIGMOID:
        *y = sigmoid(x);
        return true;
    case PLM_FN_SOFTPLUS:
        *y = softplus(x);
        return true;
    case PLM_FN_TANH:
        *y = tanh(x);
        return true;
    case PLM_FN_EXP:
        *y = exp(x);
        return true;
    case PLM_FN_RELU:
        *y = x <= 0 ? 0 : x;
        return true;
    case PLM_FN_RELU2:
        *y = x <= 0 ? 0 : x * x;
        return true;
    case PLM_FN_SQRT_SOFTPLUS:
        *y = sqrt(softplus(x));
        return true;
    default:
        return false;
    }
}

void plm_oracle_softmax_row(const double *x, int64_t n, double *y)
{
    double max = -INFINITY, sum = 0;
    bool masked = true; /* a NaN is not a mask: it must come out as NaN */
    for (int64_t i = 0; i < n; i++) {
        if (x[i] > max)
            max = x[i];
        if (!(isinf(x[i]) && x[i] < 0))
            masked = false;
    }
    for (int64_t i = 0; i < n; i++) {
        y[i] = masked ? 0 : exp(x[i] - max);
        sum += y[i];
    }
    for (int64_t i = 0; i < n && !masked; i++)
        y[i] /= sum;
}
