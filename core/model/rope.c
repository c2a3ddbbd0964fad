/* rope.c - rotary tables: inverse frequencies under every scaling, and the factors of YaRN.
**
** Sources: RoPE arXiv 2104.09864; YaRN arXiv 2309.00071 (sections 3.1 to 3.4); Llama 3.1 model card
** (frequency bands); LongRoPE arXiv 2402.13753. Pure functions, thread-safe.
*/
#include <math.h>

#include "core/model/build.h"

static const double two_pi = 6.283185307179586476925286766559;

double plm_yarn_mscale(double factor, double m)
{
    return factor > 1.0 ? 0.1 * m * log(factor) + 1.0 : 1.0;
}

void plm_rope_scales(const plm_rope *r, double *cos_sin, double *softmax_mult)
{
    *cos_sin = 1.0;
    *softmax_mult = 1.0;
    if (r->scaling == PLM_ROPE_YARN) {
        /* Both mscales given (DeepSeek): their ratio on cos and sin, the square of the second on
        ** the softmax scale; else the paper's 0.1 ln s + 1 on cos and sin. */
        *cos_sin = plm_yarn_mscale(r->factor, 1.0);
        if (r->mscale > 0.0 && r->mscale_all > 0.0)
            *cos_sin = plm_yarn_mscale(r->factor, r->mscale) /
                       plm_yarn_mscale(r->factor, r->mscale_all);
        if (r->mscale_all > 0.0) {
            double g = plm_yarn_mscale(r->factor, r->mscale_all);
            *softmax_mult = g * g;
        }
    } else if (r->scaling == PLM_ROPE_LONGROPE && r->factor > 1.0 && r->orig_ctx > 1.0) {
        *cos_sin = sqrt(1.0 + log(r->factor) / log(r->orig_ctx));
    }
    if (r->attn_factor > 0.0)
        *cos_sin = r->attn_factor;
}

int64_t plm_longrope_switch(const plm_rope *r)
{
    if (r->scaling != PLM_ROPE_LONGROPE || !(r->orig_ctx >= 1.0) || r->orig_ctx > 9e15)
        return 0;
    return (int64_t)r->orig_ctx + 1;
}

/* Llama 3.1: long wavelengths are interpolated, short ones kept, those between blended. */
static double llama3_freq(const plm_rope *r, double f)
{
    double wave = two_pi / f, turns = r->orig_ctx / wave;
    if (turns > r->high_freq)
        return f;
    if (turns < r->low_freq || r->high_freq <= r->low_freq)
        return f / r->factor;
    double smooth = (turns - r->low_freq) / (r->high_freq - r->low_freq);
    return (1.0 - smooth) * f / r->factor + smooth * f;
}

/* Index of the pair that makes `turns` rotations over the original context. */
static double yarn_index(const plm_rope *r, double turns)
{
    return r->dims * log(r->orig_ctx / (turns * two_pi)) / (2.0 * log(r->theta));
}

static double yarn_freq(const plm_rope *r, double f, int32_t pair)
{
    double lo = yarn_index(r, r->beta_fast), hi = yarn_index(r, r->beta_slow);
    lo = r->ramp_exact ? lo : floor(lo);
    hi = r->ramp_exact ? hi : ceil(hi);
    lo = fmax(lo, 0.0);
    hi = fmin(hi, r->dims - 1.0);
    if (hi <= lo)
        hi = lo + 0.001; /* as the paper's code does, so that the ramp has a slope */
    double ramp = fmin(fmax((pair - lo) / (hi - lo), 0.0), 1.0);
    return f / r->factor * ramp + f * (1.0 - ramp);
}

/* Base of dynamic NTK scaling for a sequence longer than the original context. */
static double dynamic_theta(const plm_rope *r, int64_t seq_len)
{
    double len = (double)seq_len;
    if (!(r->orig_ctx > 0.0) || len <= r->orig_ctx || r->dims <= 2)
        return r->theta;
    double stretch = r->factor * len / r->orig_ctx - (r->factor - 1.0);
    return r->theta * pow(stretch, r->dims / (r->dims - 2.0));
}

void plm_rope_inv_freq(const plm_arch *a, const plm_rope *r, int64_t seq_len, double *out)
{
    double theta = r->scaling == PLM_ROPE_DYNAMIC ? dynamic_theta(r, seq_len) : r->theta;
    int64_t change = plm_longrope_switch(r);
    const float *factors = change > 0 && seq_len >= change ? a->rope_long : a->rope_short;
    for (int32_t i = 0; i < r->dims / 2; i++) {
        double f = pow(theta, -2.0 * i / r->dims);
        switch (r->scaling) {
        case PLM_ROPE_LINEAR:
            f /= r->factor;
            break;
        case PLM_ROPE_LLAMA3:
            f = llama3_freq(r, f);
            break;
        case PLM_ROPE_YARN:
            f = yarn_freq(r, f, i);
            break;
        case PLM_ROPE_LONGROPE:
            if (factors != NULL && i < r->n_factors)
                f /= (double)factors[i];
            break;
        default:
            break;
        }
        out[i] = f;
    }
}
