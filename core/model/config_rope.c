/* config_rope.c - rope_theta, rope_scaling and rope_parameters of a config.json. */
#include <math.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/model/config.h"

static const struct {
    const char *name;
    plm_rope_scaling scaling;
} rope_types[] = {
    {"default", PLM_ROPE_NONE},       {"none", PLM_ROPE_NONE},         {"mrope", PLM_ROPE_NONE},
    {"proportional", PLM_ROPE_NONE}, /* Gemma 4: partial rotation, frequencies unchanged in number
                                      */
    {"linear", PLM_ROPE_LINEAR},      {"dynamic", PLM_ROPE_DYNAMIC},   {"yarn", PLM_ROPE_YARN},
    {"deepseek_yarn", PLM_ROPE_YARN}, {"longrope", PLM_ROPE_LONGROPE}, {"su", PLM_ROPE_LONGROPE},
    {"llama3", PLM_ROPE_LLAMA3},
};

/* The object that holds the scaling of this layer's rotation, NULL if there is none. */
static const json_t *scaling_object(const plm_config *c, bool sliding)
{
    const json_t *p = plm_config_get(c, "rope_parameters");
    if (json_is_object(p)) {
        const json_t *part = json_object_get(p, sliding ? "sliding_attention" : "full_attention");
        if (part == NULL)
            part = json_object_get(p, sliding ? "main" : "compress");
        return json_is_object(part) ? part : p;
    }
    p = plm_config_get(c, "rope_scaling");
    /* A model with a rotary base of its own for windowed layers scales the other layers only. */
    return json_is_object(p) && !(sliding && plm_config_has(c, "rope_local_base_freq")) ? p : NULL;
}

static plm_status set_type(const plm_config *c, const json_t *s, plm_rope *r)
{
    const char *type = json_string_value(json_object_get(s, "rope_type"));
    if (type == NULL)
        type = json_string_value(json_object_get(s, "type"));
    if (type == NULL)
        return PLM_OK;
    for (size_t i = 0; i < sizeof rope_types / sizeof *rope_types; i++)
        if (strcmp(rope_types[i].name, type) == 0) {
            r->scaling = rope_types[i].scaling;
            return PLM_OK;
        }
    return plm_config_refuse(c, "rope_type", type);
}

static plm_status number(const plm_config *c, const json_t *s, const char *key, double *out)
{
    return plm_json_double(s, key, false, 0, 1e15, c->where, out, c->err);
}

static plm_status read_factors(const plm_config *c, const json_t *list, int32_t n, float **out)
{
    if (*out != NULL)
        return PLM_OK; /* layers share one pair of arrays */
    if (json_array_size(list) != (size_t)n)
        return plm_fail(c->err, PLM_E_INVALID,
                        "bad rope factors, %s: %zu of them, half of the rotated dimensions is %d; "
                        "correct the file",
                        c->where, json_array_size(list), n);
    float *f = plm_calloc((size_t)n, sizeof *f);
    if (f == NULL)
        return plm_fail_memory(c->err, "rope factors");
    *out = f; /* plm_arch_fini frees it, also after a failure below */
    for (int32_t i = 0; i < n; i++) {
        double v = json_number_value(json_array_get(list, (size_t)i));
        if (!(v > 0 && v < 1e6))
            return plm_fail(c->err, PLM_E_INVALID,
                            "bad rope factor, %s: want a positive number; "
                            "correct the file",
                            c->where);
        f[i] = (float)v;
    }
    return PLM_OK;
}

static plm_status read_longrope(const plm_config *c, const json_t *s, plm_rope *r)
{
    const json_t *is = json_object_get(s, "short_factor"), *il = json_object_get(s, "long_factor");
    r->n_factors = r->dims / 2;
    PLM_TRY(read_factors(c, is, r->n_factors, &c->arch->rope_short));
    PLM_TRY(read_factors(c, il, r->n_factors, &c->arch->rope_long));
    if (r->orig_ctx <= 0)
        PLM_TRY(plm_config_real(c, "original_max_position_embeddings", 0, &r->orig_ctx));
    if (r->factor <= 0 && r->orig_ctx > 0)
        r->factor = (double)c->arch->max_context / r->orig_ctx;
    return PLM_OK;
}

static plm_status read_scaling(const plm_config *c, const json_t *s, plm_rope *r)
{
    PLM_TRY(set_type(c, s, r));
    if (r->scaling == PLM_ROPE_NONE)
        return PLM_OK;
    PLM_TRY(number(c, s, "factor", &r->factor));
    if (r->scaling == PLM_ROPE_DYNAMIC) /* Hunyuan: alpha stands for the factor on the base */
        PLM_TRY(number(c, s, "alpha", &r->factor));
    PLM_TRY(number(c, s, "original_max_position_embeddings", &r->orig_ctx));
    PLM_TRY(number(c, s, "attention_factor", &r->attn_factor));
    if (r->scaling == PLM_ROPE_LLAMA3) {
        PLM_TRY(number(c, s, "low_freq_factor", &r->low_freq));
        PLM_TRY(number(c, s, "high_freq_factor", &r->high_freq));
    }
    if (r->scaling == PLM_ROPE_YARN) {
        r->beta_fast = 32; /* YaRN, arXiv 2309.00071, section 3.2: alpha 1, beta 32 */
        r->beta_slow = 1;
        bool whole = true;
        PLM_TRY(plm_json_bool(s, "truncate", false, c->where, &whole, c->err));
        r->ramp_exact = !whole;
        PLM_TRY(number(c, s, "beta_fast", &r->beta_fast));
        PLM_TRY(number(c, s, "beta_slow", &r->beta_slow));
        PLM_TRY(number(c, s, "mscale", &r->mscale));
        PLM_TRY(number(c, s, "mscale_all_dim", &r->mscale_all));
    }
    if (r->orig_ctx <= 0 && r->scaling == PLM_ROPE_YARN)
        r->orig_ctx = (double)c->arch->max_context;
    return r->scaling == PLM_ROPE_LONGROPE ? read_longrope(c, s, r) : PLM_OK;
}

plm_status plm_config_rope(const plm_config *c, int32_t dims, bool sliding, plm_rope *out)
{
    memset(out, 0, sizeof *out);
    if (plm_config_trait(c, "plm_no_rope"))
        return PLM_OK;
    const json_t *s = scaling_object(c, sliding);
    double theta = 0, partial = 0;
    int32_t rotated = 0;
    PLM_TRY(plm_config_real(c, "rope_theta|rotary_emb_base", 10000, &theta));
    if (sliding)
        PLM_TRY(plm_config_real(c, "rope_local_base_freq|swa_rope_theta|local_rope_theta", theta,
                                &theta));
    if (s != NULL)
        PLM_TRY(number(c, s, "rope_theta", &theta));
    PLM_TRY(plm_config_real(c, "partial_rotary_factor|rotary_pct|rope_pct", 1, &partial));
    if (s != NULL)
        PLM_TRY(number(c, s, "partial_rotary_factor", &partial));
    if (sliding && plm_config_has(c, "rope_local_base_freq"))
        partial = 1;
    PLM_TRY(plm_config_int(c, "rotary_dim", 0, 1 << 16, &rotated));
    if (!(partial > 0 && partial <= 1))
        return plm_fail(c->err, PLM_E_INVALID,
                        "bad partial_rotary_factor %g, %s: want 0 to 1; "
                        "correct the file",
                        partial, c->where);
    out->theta = theta;
    out->dims = rotated > 0 ? rotated : (int32_t)((double)dims * partial) / 2 * 2;
    PLM_TRY(plm_config_flag(c, "rope_interleave|rope_interleaved|plm_interleaved", false,
                            &out->interleaved));
    return s != NULL ? read_scaling(c, s, out) : PLM_OK;
}
