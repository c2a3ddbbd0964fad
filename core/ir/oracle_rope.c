/* oracle_rope.c - oracle of the rotary position embedding in all its scalings.
**
** Sources: RoPE, arXiv 2104.09864; linear interpolation, arXiv 2306.15595; YaRN, arXiv 2309.00071
** (section 3.2, ramp bounds rounded outwards as in its reference code); LongRoPE, arXiv 2402.13753;
** llama3: the Llama-3.1 release; dynamic NTK: as in YaRN's appendix B.2. */
#include <math.h>

#include "core/base/mem.h"
#include "core/ir/oracle.h"

#define TWO_PI 6.283185307179586476925

typedef struct rope_attrs {
    int64_t scaling;
    bool ramp_exact;
    double theta, factor, low_freq, high_freq, orig_ctx, beta_fast, beta_slow;
} rope_attrs;

static double read_real(const plm_oracle_ctx *c, plm_attr_key key, double otherwise)
{
    return plm_attr_real(c->g, c->n, key, otherwise);
}

static rope_attrs read_rope(const plm_oracle_ctx *c)
{
    return (rope_attrs){
        .scaling = plm_attr_int(c->g, c->n, PLM_ATTR_ROPE_SCALING, PLM_ROPE_NONE),
        .theta = read_real(c, PLM_ATTR_THETA, 10000),
        .factor = read_real(c, PLM_ATTR_FACTOR, 1),
        .low_freq = read_real(c, PLM_ATTR_LOW_FREQ, 1),
        .high_freq = read_real(c, PLM_ATTR_HIGH_FREQ, 4),
        .orig_ctx = read_real(c, PLM_ATTR_ORIG_CTX, 0),
        .beta_fast = read_real(c, PLM_ATTR_BETA_FAST, 32),
        .beta_slow = read_real(c, PLM_ATTR_BETA_SLOW, 1),
        .ramp_exact = plm_attr_int(c->g, c->n, PLM_ATTR_RAMP_EXACT, 0) != 0,
    };
}

static double clamp01(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

/* Long waves are stretched by the factor, short ones kept, those between blended by the number of
** turns they make in the original context. */
static double scale_llama3(const rope_attrs *r, double freq)
{
    double turns = r->orig_ctx * freq / TWO_PI;
    double keep = clamp01((turns - r->low_freq) / (r->high_freq - r->low_freq));
    return keep * freq + (1 - keep) * freq / r->factor;
}

/* Index of the frequency that makes `turns` turns in the original context. */
static double yarn_index(const rope_attrs *r, int64_t dims, double turns)
{
    return (double)dims * log(r->orig_ctx / (turns * TWO_PI)) / (2 * log(r->theta));
}

/* As llama3's, the ramp being linear in the index of the frequency. Its ends are whole indices, but for
** models that say "truncate": false. */
static double scale_yarn(const rope_attrs *r, int64_t dims, int64_t i, double freq)
{
    double low = yarn_index(r, dims, r->beta_fast), high = yarn_index(r, dims, r->beta_slow);
    low = r->ramp_exact ? low : floor(low);
    high = r->ramp_exact ? high : ceil(high);
    low = low < 0 ? 0 : low;
    high = high > (double)(dims - 1) ? (double)(dims - 1) : high;
    if (high <= low)
        high = low + 0.001; /* as the reference code does, so that the ramp has a slope */
    double stretch = clamp01(((double)i - low) / (high - low));
    return (1 - stretch) * freq + stretch * freq / r->factor;
}

/* Dynamic NTK: the base grows with the sequence once it is longer than the original context. */
static double dynamic_theta(const rope_attrs *r, int64_t dims, int64_t seq_len)
{
    if ((double)seq_len <= r->orig_ctx || dims <= 2)
        return r->theta;
    double stretch = r->factor * (double)seq_len / r->orig_ctx - (r->factor - 1);
    return r->theta * pow(stretch, (double)dims / (double)(dims - 2));
}

plm_status plm_oracle_rope_freq(const plm_oracle_ctx *c, int64_t dims, int64_t seq_len,
                                const double *factors, double *inv_freq, plm_error *err)
{
    rope_attrs r = read_rope(c);
    bool by_context =
        r.scaling == PLM_ROPE_LLAMA3 || r.scaling == PLM_ROPE_YARN || r.scaling == PLM_ROPE_DYNAMIC;
    if (r.scaling < 0 || r.scaling >= PLM_ROPE_SCALING_COUNT)
        return plm_oracle_refuse(c, err, "rope_scaling", "is unknown");
    if (!(r.theta > 1) || !(r.factor > 0))
        return plm_oracle_refuse(c, err, "theta, factor", "are out of range");
    if (by_context && !(r.orig_ctx > 0))
        return plm_oracle_refuse(c, err, "orig_ctx", "is missing");
    if (r.scaling == PLM_ROPE_LLAMA3 && !(r.high_freq > r.low_freq))
        return plm_oracle_refuse(c, err, "high_freq", "is not above low_freq");
    if (r.scaling == PLM_ROPE_LONGROPE && factors == NULL)
        return plm_oracle_refuse(c, err, "factors", "missing, which longrope needs");
    double theta = r.scaling == PLM_ROPE_DYNAMIC ? dynamic_theta(&r, dims, seq_len) : r.theta;
    for (int64_t i = 0; i < dims / 2; i++) {
        double freq = pow(theta, -2.0 * (double)i / (double)dims);
        if (factors != NULL)
            freq /= factors[i];
        if (r.scaling == PLM_ROPE_LINEAR)
            freq /= r.factor;
        else if (r.scaling == PLM_ROPE_LLAMA3)
            freq = scale_llama3(&r, freq);
        else if (r.scaling == PLM_ROPE_YARN)
            freq = scale_yarn(&r, dims, i, freq);
        inv_freq[i] = freq;
    }
    return PLM_OK;
}

/* Rotates the first `dims` columns of one head and multiplies them by mscale. */
static void rotate(double *x, int64_t dims, bool interleaved, double pos, double mscale,
                   const double *inv_freq)
{
    for (int64_t i = 0; i < dims / 2; i++) {
        double *a = interleaved ? &x[2 * i] : &x[i];
        double *b = interleaved ? &x[2 * i + 1] : &x[i + dims / 2];
        double cos_a = mscale * cos(pos * inv_freq[i]), sin_a = mscale * sin(pos * inv_freq[i]);
        double a0 = *a, b0 = *b;
        *a = a0 * cos_a - b0 * sin_a;
        *b = a0 * sin_a + b0 * cos_a;
    }
}

/* Tokens of t's sequence up to the greatest position of this step. */
static plm_status sequence_length(const plm_oracle_ctx *c, const plm_array *pos, int64_t t,
                                  int64_t *out, plm_error *err)
{
    if (c->token_seq == NULL)
        return plm_oracle_refuse(c, err, "batch", "does not say the sequence of each token");
    double greatest = 0;
    for (int64_t u = 0; u < pos->dim[0]; u++)
        if (c->token_seq[u] == c->token_seq[t] && pos->data[u] > greatest)
            greatest = pos->data[u];
    PLM_TRY(plm_oracle_integer(c, greatest, "pos", 0, INT64_C(1) << 40, out, err));
    *out += 1;
    return PLM_OK;
}

/* x[T,H,d], pos[T], factors?[rope_dims/2] -> y[T,H,d]; mscale 1 when not given (or 0). dynamic
** takes the length of a sequence from its tokens in this step. */
plm_status plm_oracle_rope(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                           plm_error *err)
{
    plm_status status = PLM_OK;
    const plm_array *factors = plm_oracle_optional(c, in, 2);
    PLM_TRY(plm_oracle_shape(c, &in[0], "x", PLM_SHAPE(PLM_ANY, PLM_ANY, PLM_ANY), err));
    int64_t T = in[0].dim[0], H = in[0].dim[1], d = in[0].dim[2], seq_len = 0;
    PLM_TRY(plm_oracle_shape(c, &in[1], "pos", PLM_SHAPE(T), err));
    PLM_TRY(plm_oracle_like(c, &in[0], &out[0], "output", err));
    int64_t dims = plm_attr_int(c->g, c->n, PLM_ATTR_ROPE_DIMS, d);
    bool interleaved = plm_attr_int(c->g, c->n, PLM_ATTR_ROPE_STYLE, 0) == 1;
    bool dynamic = plm_attr_int(c->g, c->n, PLM_ATTR_ROPE_SCALING, 0) == PLM_ROPE_DYNAMIC;
    double mscale = read_real(c, PLM_ATTR_MSCALE, 1);
    if (dims < 0 || dims > d || dims % 2 != 0)
        return plm_oracle_refuse(c, err, "rope_dims", "is odd or wider than a head");
    if (factors != NULL)
        PLM_TRY(plm_oracle_shape(c, factors, "factors", PLM_SHAPE(dims / 2), err));
    plm_oracle_carry(&in[0], &out[0]);
    double *inv_freq = plm_calloc((size_t)dims / 2 + 1, sizeof *inv_freq);
    if (inv_freq == NULL)
        return plm_fail_memory(err, "rotary frequencies");
    for (int64_t t = 0; t < T; t++) {
        if (dynamic)
            PLM_GOTO(sequence_length(c, &in[1], t, &seq_len, err));
        if (t == 0 || dynamic)
            PLM_GOTO(plm_oracle_rope_freq(c, dims, seq_len, factors != NULL ? factors->data : NULL,
                                          inv_freq, err));
        for (int64_t h = 0; h < H; h++)
            rotate(&out[0].data[(t * H + h) * d], dims, interleaved, in[1].data[t],
                   mscale > 0 ? mscale : 1, inv_freq);
    }
done:
    plm_free(inv_freq);
    return status;
}
