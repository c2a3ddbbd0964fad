/* explain.c - where the time of one step goes, and what more of each resource would give. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "sim/plan/phase.h"

#define STEP 0.005 /* half the change of a resource, both ways */

/* Type of the weights that most multiplications use: the feed-forward's, by role. */
static plm_math weights_math(const plm_config *c)
{
    const plm_layer *l = plm_arch_layer(c->arch, c->arch->layers / 2);
    plm_role role = l->experts > 0 ? PLM_ROLE_EXPERT_DOWN : PLM_ROLE_DOWN;
    int64_t cols = l->experts > 0 ? l->expert_ffn : l->ffn;
    plm_dtype t = plm_recipe_weight(c->recipe, c->arch, role, c->arch->layers / 2, c->arch->hidden,
                                    plm_max_i64(256, cols));
    plm_dtype act = plm_recipe_act(c->recipe);
    return plm_cost_math(&c->machine.prof, t,
                         act == PLM_DT_COUNT ? c->machine.prof.act_default : act);
}

static double step_with(const plm_config *c, const plm_batch *b, plm_bound resource, double factor)
{
    plm_machine first = c->machine, rest = c->rest;
    first.scale[resource] *= factor;
    rest.scale[resource] *= factor;
    plm_stages s = c->stages;
    s.first = &first;
    s.rest = &rest;
    return plm_stages_time(&s, b, NULL, NULL);
}

/* d ln(speed) / d ln(resource), central difference. */
static void find_elasticities(const plm_config *c, const plm_batch *b, double *out)
{
    for (int i = 0; i < PLM_BOUND_COUNT; i++) {
        double more = step_with(c, b, (plm_bound)i, 1 + STEP);
        double less = step_with(c, b, (plm_bound)i, 1 - STEP);
        out[i] = less > 0 && more > 0 ? -log(more / less) / log((1 + STEP) / (1 - STEP)) : 0;
        if (fabs(out[i]) < 1e-9)
            out[i] = 0;
    }
}

static void add_rows(const plm_config *c, const plm_batch *b, plm_explanation *e)
{
    const size_t max = sizeof e->rows / sizeof *e->rows;
    for (int32_t s = 0; s < c->par.pp; s++) {
        plm_step_row rows[sizeof e->rows / sizeof *e->rows];
        size_t n = plm_step_rows(c->program[s], s == 0 ? &c->machine : &c->rest, b, rows, max);
        for (size_t i = 0; i < n; i++) {
            size_t k = 0;
            while (k < e->n_rows && strcmp(e->rows[k].name, rows[i].name) != 0)
                k++;
            if (k == max)
                k = max - 1;
            if (k == e->n_rows) {
                e->rows[e->n_rows++] = rows[i];
                continue;
            }
            plm_step_row *r = &e->rows[k];
            if (rows[i].time_s > r->time_s)
                r->bound = rows[i].bound;
            r->count += rows[i].count;
            r->flop += rows[i].flop;
            r->bytes += rows[i].bytes;
            r->exp += rows[i].exp;
            r->time_s += rows[i].time_s;
        }
    }
}

/* Longest first; by name among equals. */
static int by_time(const void *pa, const void *pb)
{
    const plm_step_row *a = pa, *b = pb;
    if (a->time_s != b->time_s)
        return a->time_s > b->time_s ? -1 : 1;
    return strcmp(a->name, b->name);
}

plm_status plm_explain(plm_session *s, const plm_query *q, bool decode, plm_explanation *out,
                       plm_error *err)
{
    plm_config c;
    plm_ledger l;
    memset(out, 0, sizeof *out);
    int64_t tokens = decode ? q->gen : q->prompt;
    if (tokens < 1 || q->depth < 0 || q->batch < 1 || tokens > 1000000000 ||
        q->depth > 1000000000 || q->batch > 100000000)
        return plm_fail(err, PLM_E_INVALID,
                        "nothing to explain, %s: %lld tokens of %lld sequences at "
                        "depth %lld; give at least one",
                        decode ? "--gen" : "--prompt", (long long)tokens, (long long)q->batch,
                        (long long)q->depth);
    plm_session_trim(s);
    PLM_TRY(plm_config_init(s, q, &c, err));
    PLM_TRY(plm_config_plan(&c, &q->par, c.devices, err));
    PLM_TRY(plm_config_build(s, &c, q->weights_bytes > 0, err));
    PLM_TRY(plm_config_ledger(&c, q->depth + tokens, q->batch, &l, err));
    if (!l.fits)
        return plm_fail(err, PLM_E_INFEASIBLE,
                        "does not fit, %s on %s: %s is short, %lld bytes of "
                        "%lld; use more devices or a smaller storage type",
                        c.arch->id, c.machine.dev.id, l.limit, (long long)l.total_bytes,
                        (long long)l.capacity_bytes);
    int64_t n = plm_phase_sequences(&c, q->batch), ubatch = c.machine.prof.ubatch;
    plm_segment seg = {1, q->depth + (q->gen - 1) / 2, n};
    if (!decode) { /* the mean step of the prefill */
        int64_t each = plm_min_i64(tokens, ubatch);
        seg = (plm_segment){each, q->depth + (tokens - each) / 2,
                            plm_max_i64(1, plm_min_i64(n, ubatch / each))};
    }
    plm_batch b = {.seg = &seg, .n_seg = 1, .logit_rows = -1};
    double time = plm_stages_time(&c.stages, &b, NULL, NULL);
    const double *band = c.machine.prof.band[decode ? PLM_REGIME_DECODE : PLM_REGIME_PREFILL];
    snprintf(out->model, sizeof out->model, "%s", c.arch->id);
    snprintf(out->device, sizeof out->device, "%s", c.machine.dev.id);
    snprintf(out->engine, sizeof out->engine, "%s", c.machine.prof.id);
    snprintf(out->quant, sizeof out->quant, "%s", plm_recipe_name(c.recipe));
    out->devices = c.devices;
    out->tokens = (double)seg.q_len * (double)seg.count;
    out->context_tokens = (double)seg.kv_len;
    out->batch = (double)seg.count;
    out->time_s = time;
    out->time_lo_s = time / band[1];
    out->time_hi_s = time / band[0];
    double peak = plm_device_peak(&c.machine.dev, weights_math(&c));
    out->ridge_flop_per_byte = peak / c.machine.dev.bandwidth_bytes_s;
    add_rows(&c, &b, out);
    qsort(out->rows, out->n_rows, sizeof *out->rows, by_time);
    find_elasticities(&c, &b, out->elasticity);
    return PLM_OK;
}
