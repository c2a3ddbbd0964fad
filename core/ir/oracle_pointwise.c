/* oracle_pointwise.c - oracles of norms and of the ops that go element by element. */
#include <math.h>

#include "core/ir/codec.h"
#include "core/ir/oracle.h"

/* ---- norms: rows of the last dim ---- */

/* A weight or bias of a norm: absent, or one number a column. */
static plm_status norm_operand(const plm_oracle_ctx *c, const plm_array *in, uint32_t i,
                               const char *what, const plm_array **out, plm_error *err)
{
    *out = plm_oracle_optional(c, in, i);
    if (*out != NULL)
        PLM_TRY(plm_oracle_shape(c, *out, what, PLM_SHAPE(plm_array_cols(&in[0])), err));
    return PLM_OK;
}

static double mean_square(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum / (double)n;
}

plm_status plm_oracle_rms_norm(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                               plm_error *err)
{
    const plm_array *w;
    PLM_TRY(plm_oracle_like(c, &in[0], &out[0], "output", err));
    PLM_TRY(norm_operand(c, in, 1, "w", &w, err));
    double eps = plm_attr_real(c->g, c->n, PLM_ATTR_EPS, 0);
    double offset = plm_attr_real(c->g, c->n, PLM_ATTR_WEIGHT_OFFSET, 0);
    int64_t n = plm_array_cols(&in[0]);
    for (int64_t r = 0; n > 0 && r < plm_array_rows(&in[0]); r++) {
        const double *x = &in[0].data[r * n];
        double size = sqrt(mean_square(x, n) + eps);
        for (int64_t i = 0; i < n; i++)
            out[0].data[r * n + i] = x[i] / size * (w != NULL ? w->data[i] + offset : 1);
    }
    return PLM_OK;
}

/* The variance is that of the row itself (divided by n). */
plm_status plm_oracle_layer_norm(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                                 plm_error *err)
{
    const plm_array *w, *bias;
    PLM_TRY(plm_oracle_like(c, &in[0], &out[0], "output", err));
    PLM_TRY(norm_operand(c, in, 1, "w", &w, err));
    PLM_TRY(norm_operand(c, in, 2, "bias", &bias, err));
    double eps = plm_attr_real(c->g, c->n, PLM_ATTR_EPS, 0);
    int64_t n = plm_array_cols(&in[0]);
    for (int64_t r = 0; n > 0 && r < plm_array_rows(&in[0]); r++) {
        const double *x = &in[0].data[r * n];
        double mean = 0, var = 0;
        for (int64_t i = 0; i < n; i++)
            mean += x[i] / (double)n;
        for (int64_t i = 0; i < n; i++)
            var += (x[i] - mean) * (x[i] - mean) / (double)n;
        for (int64_t i = 0; i < n; i++)
            out[0].data[r * n + i] =
                (x[i] - mean) / sqrt(var + eps) * (w != NULL ? w->data[i] : 1) +
                (bias != NULL ? bias->data[i] : 0);
    }
    return PLM_OK;
}

plm_status plm_oracle_rms_norm_gated(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                                     plm_error *err)
{
    PLM_TRY(plm_oracle_like(c, &in[0], &out[0], "output", err));
    PLM_TRY(plm_oracle_like(c, &in[0], &in[1], "z", err));
    int64_t n = plm_array_cols(&in[0]), fn = plm_attr_int(c->g, c->n, PLM_ATTR_FN, PLM_FN_SILU);
    PLM_TRY(plm_oracle_shape(c, &in[2], "w", PLM_SHAPE(n), err));
    if (fn != PLM_FN_SILU && fn != PLM_FN_SIGMOID)
        return plm_oracle_refuse(c, err, "fn", "is neither silu nor sigmoid");
    double eps = plm_attr_real(c->g, c->n, PLM_ATTR_EPS, 0);
    for (int64_t r = 0; n > 0 && r < plm_array_rows(&in[0]); r++) {
        const double *x = &in[0].data[r * n];
        double size = sqrt(mean_square(x, n) + eps);
        for (int64_t i = 0; i < n; i++) {
            double gate = 0;
            (void)plm_oracle_fn1(fn, in[1].data[r * n + i], &gate);
            out[0].data[r * n + i] = x[i] / size * in[2].data[i] * gate;
        }
    }
    return PLM_OK;
}

plm_status plm_oracle_l2_norm(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                              plm_error *err)
{
    PLM_TRY(plm_oracle_like(c, &in[0], &out[0], "output", err));
    double eps = plm_attr_real(c->g, c->n, PLM_ATTR_EPS, 0);
    int64_t n = plm_array_cols(&in[0]);
    for (int64_t r = 0; n > 0 && r < plm_array_rows(&in[0]); r++) {
        const double *x = &in[0].data[r * n];
        double size = sqrt(mean_square(x, n) * (double)n + eps);
        for (int64_t i = 0; i < n; i++)
            out[0].data[r * n + i] = x[i] / size;
    }
    return PLM_OK;
}

/* ---- two operands ---- */

/* Index in b of element i of a: dims aligned at the last, b's missing or of length 1 broadcast. */
static int64_t broadcast_index(const plm_array *a, const plm_array *b, int64_t i)
{
    int64_t at = 0, stride = 1;
    for (uint32_t d = 0; d < a->rank; d++) {
        int64_t len = a->dim[a->rank - 1 - d], pos = i % len;
        i /= len;
        if (d >= b->rank)
            break;
        int64_t b_len = b->dim[b->rank - 1 - d];
        at += (b_len == 1 ? 0 : pos) * stride;
        stride *= b_len;
    }
    return at;
}

static plm_status check_broadcast(const plm_oracle_ctx *c, const plm_array *in,
                                  const plm_array *out, plm_error *err)
{
    PLM_TRY(plm_oracle_like(c, &in[0], out, "output", err));
    PLM_TRY(plm_oracle_present(c, &in[1], "b", err));
    bool fits = in[1].rank <= in[0].rank;
    for (uint32_t d = 0; fits && d < in[1].rank; d++) {
        int64_t b = in[1].dim[in[1].rank - 1 - d];
        fits = b == 1 || b == in[0].dim[in[0].rank - 1 - d];
    }
    return fits ? PLM_OK : plm_oracle_refuse(c, err, "b", "does not broadcast over a");
}

plm_status plm_oracle_add(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                          plm_error *err)
{
    PLM_TRY(check_broadcast(c, in, &out[0], err));
    for (int64_t i = 0; i < plm_array_count(&in[0]); i++)
        out[0].data[i] = in[0].data[i] + in[1].data[broadcast_index(&in[0], &in[1], i)];
    return PLM_OK;
}

plm_status plm_oracle_mul(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                          plm_error *err)
{
    PLM_TRY(check_broadcast(c, in, &out[0], err));
    for (int64_t i = 0; i < plm_array_count(&in[0]); i++)
        out[0].data[i] = in[0].data[i] * in[1].data[broadcast_index(&in[0], &in[1], i)];
    return PLM_OK;
}

/* ---- one operand ---- */

plm_status plm_oracle_scale(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                            plm_error *err)
{
    PLM_TRY(plm_oracle_like(c, &in[0], &out[0], "output", err));
    double scale = plm_attr_real(c->g, c->n, PLM_ATTR_SCALE, 1);
    for (int64_t i = 0; i < plm_array_count(&in[0]); i++)
        out[0].data[i] = scale * in[0].data[i];
    return PLM_OK;
}

static plm_dtype output_dtype(const plm_oracle_ctx *c)
{
    return c->g->values[c->n->out[0]].dtype;
}

/* The numbers stay doubles, rounded to what the output's dtype can hold (plm_round_to). */
static plm_status round_all(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                            plm_error *err)
{
    PLM_TRY(plm_oracle_like(c, &in[0], &out[0], "output", err));
    for (int64_t i = 0; i < plm_array_count(&in[0]); i++)
        PLM_TRY(plm_round_to(output_dtype(c), in[0].data[i], &out[0].data[i], err));
    return PLM_OK;
}

plm_status plm_oracle_cast(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                           plm_error *err)
{
    return round_all(c, in, out, err);
}

/* A quantised value is kept as the numbers its codes and scales decode to, so what is left to do is
** to round those to the output's dtype. */
plm_status plm_oracle_dequant(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                              plm_error *err)
{
    return round_all(c, in, out, err);
}

/* The round trip through the output's dtype, formats and scales as plm_quant_row says. Rows are
** those of the last dim; nvfp4's tensor scale is amax / (448 * 6) of the whole input. */
plm_status plm_oracle_quant(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                            plm_error *err)
{
    PLM_TRY(plm_oracle_like(c, &in[0], &out[0], "output", err));
    int64_t count = plm_array_count(&in[0]), n = plm_array_cols(&in[0]);
    double amax = 0;
    for (int64_t i = 0; i < count; i++)
        if (fabs(in[0].data[i]) > amax)
            amax = fabs(in[0].data[i]);
    plm_oracle_carry(&in[0], &out[0]);
    int64_t block = plm_attr_int(c->g, c->n, PLM_ATTR_BLOCK, 0);
    for (int64_t r = 0; r < plm_array_rows(&in[0]); r++)
        PLM_TRY(plm_quant_row(output_dtype(c), &out[0].data[r * n], n, block,
                              (double)(float)(amax / (448 * 6)), err));
    return PLM_OK;
}

/* fn.h has the formula. */
static void xielu(const plm_array *x, const double *learned, plm_array *y)
{
    double up = 0, down = 0;
    (void)plm_oracle_fn1(PLM_FN_SOFTPLUS, learned[0], &up);
    (void)plm_oracle_fn1(PLM_FN_SOFTPLUS, learned[1], &down);
    for (int64_t i = 0; i < plm_array_count(x); i++) {
        double v = x->data[i];
        y->data[i] = (v > 0 ? up * v * v : (down + 0.5) * (expm1(v) - v)) + 0.5 * v;
    }
}

plm_status plm_oracle_unary(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                            plm_error *err)
{
    PLM_TRY(plm_oracle_like(c, &in[0], &out[0], "output", err));
    int64_t fn = plm_attr_int(c->g, c->n, PLM_ATTR_FN, PLM_FN_NONE);
    if (fn == PLM_FN_XIELU) {
        if (c->n->n_in < 2)
            return plm_oracle_refuse(c, err, "learned", "is missing");
        PLM_TRY(plm_oracle_shape(c, &in[1], "learned", PLM_SHAPE(2), err));
        xielu(&in[0], in[1].data, &out[0]);
        return PLM_OK;
    }
    for (int64_t i = 0; i < plm_array_count(&in[0]); i++)
        if (!plm_oracle_fn1(fn, in[0].data[i], &out[0].data[i]))
            return plm_oracle_refuse(c, err, "fn", "is no function of one number");
    return PLM_OK;
}

/* fn(gate) * up of one pair.
** swiglu_oai: gate sigmoid(alpha gate) (up + 1), alpha 1.702 when not given (gpt-oss, modelling
** code of the reference release). situ: alpha tanh(gate / alpha) sigmoid(gate) times limit tanh(up
** / limit), alpha 4 when not given, up as it is when limit is 0 (Kimi K3 technical report, equation
** 12, with alpha = beta_1 and limit = beta_2); its caps are smooth, so nothing is clamped. All
** others clamp by limit: gate from above, up from both sides. */
static bool glu_pair(int64_t fn, double alpha, double limit, double gate, double up, double *y)
{
    double g = 0, s = 0;
    if (fn == PLM_FN_SITU) {
        double beta = alpha > 0 ? alpha : 4;
        (void)plm_oracle_fn1(PLM_FN_SIGMOID, gate, &s);
        *y = beta * tanh(gate / beta) * s * (limit > 0 ? limit * tanh(up / limit) : up);
        return true;
    }
    if (limit > 0) {
        gate = gate > limit ? limit : gate;
        up = up > limit ? limit : up < -limit ? -limit : up;
    }
    if (fn == PLM_FN_SWIGLU_OAI) {
        (void)plm_oracle_fn1(PLM_FN_SIGMOID, (alpha > 0 ? alpha : 1.702) * gate, &s);
        *y = gate * s * (up + 1);
        return true;
    }
    if (!plm_oracle_fn1(fn, gate, &g))
        return false;
    *y = g * up;
    return true;
}

plm_status plm_oracle_glu(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                          plm_error *err)
{
    const plm_array *up = plm_oracle_optional(c, in, 1);
    PLM_TRY(plm_oracle_present(c, &in[0], "gate", err));
    int64_t cols = plm_array_cols(&in[0]), n = up != NULL ? cols : cols / 2;
    if (up != NULL)
        PLM_TRY(plm_oracle_like(c, &in[0], up, "up", err));
    else if (cols % 2 != 0)
        return plm_oracle_refuse(c, err, "gate", "does not split into gate and up");
    plm_array want = in[0];
    want.dim[want.rank - 1] = n;
    PLM_TRY(plm_oracle_shape(c, &out[0], "output", want.rank, want.dim, err));
    int64_t fn = plm_attr_int(c->g, c->n, PLM_ATTR_FN, PLM_FN_SILU);
    double alpha = plm_attr_real(c->g, c->n, PLM_ATTR_ALPHA, 0);
    double limit = plm_attr_real(c->g, c->n, PLM_ATTR_LIMIT, 0);
    for (int64_t r = 0; r < plm_array_rows(&in[0]); r++)
        for (int64_t i = 0; i < n; i++) {
            double g = in[0].data[r * cols + i];
            double u = up != NULL ? up->data[r * n + i] : in[0].data[r * cols + n + i];
            if (!glu_pair(fn, alpha, limit, g, u, &out[0].data[r * n + i]))
                return plm_oracle_refuse(c, err, "fn", "is no gate function");
        }
    return PLM_OK;
}

plm_status plm_oracle_softcap(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                              plm_error *err)
{
    PLM_TRY(plm_oracle_like(c, &in[0], &out[0], "output", err));
    double limit = plm_attr_real(c->g, c->n, PLM_ATTR_LIMIT, 0);
    if (!(limit > 0))
        return plm_oracle_refuse(c, err, "limit", "is not positive");
    for (int64_t i = 0; i < plm_array_count(&in[0]); i++)
        out[0].data[i] = limit * tanh(in[0].data[i] / limit);
    return PLM_OK;
}

plm_status plm_oracle_softmax(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                              plm_error *err)
{
    PLM_TRY(plm_oracle_like(c, &in[0], &out[0], "output", err));
    int64_t n = plm_array_cols(&in[0]);
    for (int64_t r = 0; r < plm_array_rows(&in[0]); r++)
        plm_oracle_softmax_row(&in[0].data[r * n], n, &out[0].data[r * n]);
    return PLM_OK;
}

plm_status plm_oracle_stream_sum(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                                 plm_error *err)
{
    PLM_TRY(plm_oracle_shape(c, &in[0], "x", PLM_SHAPE(PLM_ANY, PLM_ANY, PLM_ANY), err));
    int64_t T = in[0].dim[0], n = in[0].dim[1], h = in[0].dim[2];
    PLM_TRY(plm_oracle_shape(c, &in[1], "w", PLM_SHAPE(T, n), err));
    PLM_TRY(plm_oracle_shape(c, &out[0], "output", PLM_SHAPE(T, h), err));
    for (int64_t t = 0; t < T; t++)
        for (int64_t d = 0; d < h; d++) {
            double sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += in[1].data[t * n + i] * in[0].data[(t * n + i) * h + d];
            out[0].data[t * h + d] = sum;
        }
    return PLM_OK;
}

plm_status plm_oracle_stream_mix(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                                 plm_error *err)
{
    PLM_TRY(plm_oracle_shape(c, &in[0], "x", PLM_SHAPE(PLM_ANY, PLM_ANY, PLM_ANY), err));
    int64_t T = in[0].dim[0], n = in[0].dim[1], h = in[0].dim[2];
    PLM_TRY(plm_oracle_shape(c, &in[1], "m", PLM_SHAPE(T, n, n), err));
    PLM_TRY(plm_oracle_shape(c, &in[2], "y", PLM_SHAPE(T, h), err));
    PLM_TRY(plm_oracle_shape(c, &in[3], "w", PLM_SHAPE(T, n), err));
    PLM_TRY(plm_oracle_shape(c, &out[0], "output", PLM_SHAPE(T, n, h), err));
    for (int64_t t = 0; t < T; t++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t d = 0; d < h; d++) {
                double sum = in[3].data[t * n + i] * in[2].data[t * h + d];
                for (int64_t j = 0; j < n; j++)
                    sum += in[1].data[(t * n + i) * n + j] * in[0].data[(t * n + j) * h + d];
                out[0].data[(t * n + i) * h + d] = sum;
            }
    return PLM_OK;
}
