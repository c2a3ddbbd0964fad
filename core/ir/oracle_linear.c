/* oracle_linear.c - oracles of the ops that multiply by weights. */
#include "core/ir/oracle.h"

/* sum over k of a[i] b[i] */
static double dot(const double *a, const double *b, int64_t k)
{
    double sum = 0;
    for (int64_t i = 0; i < k; i++)
        sum += a[i] * b[i];
    return sum;
}

/* ids[T], table[V,h] -> y[T,h] */
plm_status plm_oracle_embed(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                            plm_error *err)
{
    PLM_TRY(plm_oracle_shape(c, &in[0], "ids", PLM_SHAPE(PLM_ANY), err));
    PLM_TRY(plm_oracle_shape(c, &in[1], "table", PLM_SHAPE(PLM_ANY, PLM_ANY), err));
    int64_t T = in[0].dim[0], V = in[1].dim[0], h = in[1].dim[1];
    PLM_TRY(plm_oracle_shape(c, &out[0], "output", PLM_SHAPE(T, h), err));
    double scale = plm_attr_real(c->g, c->n, PLM_ATTR_SCALE, 1);
    for (int64_t t = 0; t < T; t++) {
        int64_t id;
        PLM_TRY(plm_oracle_integer(c, in[0].data[t], "ids", 0, V, &id, err));
        for (int64_t i = 0; i < h; i++)
            out[0].data[t * h + i] = scale * in[1].data[id * h + i];
    }
    return PLM_OK;
}

/* x[..,k], w[n,k], bias?[n] -> y[..,n] */
plm_status plm_oracle_linear(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                             plm_error *err)
{
    const plm_array *bias = plm_oracle_optional(c, in, 2);
    PLM_TRY(plm_oracle_present(c, &in[0], "x", err));
    int64_t k = plm_array_cols(&in[0]), rows = plm_array_rows(&in[0]);
    PLM_TRY(plm_oracle_shape(c, &in[1], "w", PLM_SHAPE(PLM_ANY, k), err));
    int64_t n = in[1].dim[0];
    if (bias != NULL)
        PLM_TRY(plm_oracle_shape(c, bias, "bias", PLM_SHAPE(n), err));
    plm_array want = in[0];
    want.dim[want.rank - 1] = n;
    PLM_TRY(plm_oracle_shape(c, &out[0], "output", want.rank, want.dim, err));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < n; j++)
            out[0].data[r * n + j] =
                dot(&in[0].data[r * k], &in[1].data[j * k], k) + (bias != NULL ? bias->data[j] : 0);
    return PLM_OK;
}

/* x[T,H,k], w[H,n,k] -> y[T,H,n] */
plm_status plm_oracle_bmm(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                          plm_error *err)
{
    PLM_TRY(plm_oracle_shape(c, &in[0], "x", PLM_SHAPE(PLM_ANY, PLM_ANY, PLM_ANY), err));
    int64_t T = in[0].dim[0], H = in[0].dim[1], k = in[0].dim[2];
    PLM_TRY(plm_oracle_shape(c, &in[1], "w", PLM_SHAPE(H, PLM_ANY, k), err));
    int64_t n = in[1].dim[1];
    PLM_TRY(plm_oracle_shape(c, &out[0], "output", PLM_SHAPE(T, H, n), err));
    for (int64_t t = 0; t < T; t++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t j = 0; j < n; j++)
                out[0].data[(t * H + h) * n + j] =
                    dot(&in[0].data[(t * H + h) * k], &in[1].data[(h * n + j) * k], k);
    return PLM_OK;
}

/* x[E,k], w[X,n,k], offsets[X+1], bias?[X,n] -> y[E,n]. Rows of no expert (room that the step did
** not fill) are 0. */
plm_status plm_oracle_linear_grouped(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                                     plm_error *err)
{
    const plm_array *bias = plm_oracle_optional(c, in, 3);
    PLM_TRY(plm_oracle_shape(c, &in[0], "x", PLM_SHAPE(PLM_ANY, PLM_ANY), err));
    int64_t E = in[0].dim[0], k = in[0].dim[1];
    PLM_TRY(plm_oracle_shape(c, &in[1], "w", PLM_SHAPE(PLM_ANY, PLM_ANY, k), err));
    int64_t X = in[1].dim[0], n = in[1].dim[1], first = 0;
    PLM_TRY(plm_oracle_shape(c, &in[2], "offsets", PLM_SHAPE(X + 1), err));
    if (bias != NULL)
        PLM_TRY(plm_oracle_shape(c, bias, "bias", PLM_SHAPE(X, n), err));
    PLM_TRY(plm_oracle_shape(c, &out[0], "output", PLM_SHAPE(E, n), err));
    for (int64_t i = 0; i < E * n; i++)
        out[0].data[i] = 0;
    PLM_TRY(plm_oracle_integer(c, in[2].data[0], "offsets", 0, E + 1, &first, err));
    for (int64_t e = 0; e < X; e++) {
        int64_t end;
        PLM_TRY(plm_oracle_integer(c, in[2].data[e + 1], "offsets", first, E + 1, &end, err));
        for (int64_t r = first; r < end; r++)
            for (int64_t j = 0; j < n; j++)
                out[0].data[r * n + j] = dot(&in[0].data[r * k], &in[1].data[(e * n + j) * k], k) +
                                         (bias != NULL ? bias->data[e * n + j] : 0);
        first = end;
    }
    return PLM_OK;
}

/* x[T,k], a[A,r,k], adapter[T] -> y[T,r] */
plm_status plm_oracle_lora_shrink(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                                  plm_error *err)
{
    PLM_TRY(plm_oracle_shape(c, &in[0], "x", PLM_SHAPE(PLM_ANY, PLM_ANY), err));
    int64_t T = in[0].dim[0], k = in[0].dim[1];
    PLM_TRY(plm_oracle_shape(c, &in[1], "a", PLM_SHAPE(PLM_ANY, PLM_ANY, k), err));
    PLM_TRY(plm_oracle_shape(c, &in[2], "adapter", PLM_SHAPE(T), err));
    int64_t A = in[1].dim[0], r = in[1].dim[1];
    PLM_TRY(plm_oracle_shape(c, &out[0], "output", PLM_SHAPE(T, r), err));
    for (int64_t t = 0; t < T; t++) {
        int64_t a;
        PLM_TRY(plm_oracle_integer(c, in[2].data[t], "adapter", -1, A, &a, err));
        for (int64_t j = 0; j < r; j++)
            out[0].data[t * r + j] =
                a < 0 ? 0 : dot(&in[0].data[t * k], &in[1].data[(a * r + j) * k], k);
    }
    return PLM_OK;
}

/* y[T,n], z[T,r], b[A,n,r], adapter[T] -> y[T,n]; alpha 1 when not given. */
plm_status plm_oracle_lora_expand(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                                  plm_error *err)
{
    PLM_TRY(plm_oracle_shape(c, &in[0], "y", PLM_SHAPE(PLM_ANY, PLM_ANY), err));
    int64_t T = in[0].dim[0], n = in[0].dim[1];
    PLM_TRY(plm_oracle_shape(c, &in[1], "z", PLM_SHAPE(T, PLM_ANY), err));
    int64_t r = in[1].dim[1];
    PLM_TRY(plm_oracle_shape(c, &in[2], "b", PLM_SHAPE(PLM_ANY, n, r), err));
    PLM_TRY(plm_oracle_shape(c, &in[3], "adapter", PLM_SHAPE(T), err));
    PLM_TRY(plm_oracle_shape(c, &out[0], "output", PLM_SHAPE(T, n), err));
    double alpha = plm_attr_real(c->g, c->n, PLM_ATTR_ALPHA, 1);
    for (int64_t t = 0; t < T; t++) {
        int64_t a;
        PLM_TRY(plm_oracle_integer(c, in[3].data[t], "adapter", -1, in[2].dim[0], &a, err));
        for (int64_t j = 0; j < n; j++)
            out[0].data[t * n + j] =
                in[0].data[t * n + j] +
                (a < 0 ? 0 : alpha * dot(&in[1].data[t * r], &in[2].data[(a * n + j) * r], r));
    }
    return PLM_OK;
}
