/* predict.c - one configuration answered: speed, memory, closed loop, cost. */
#include "sim/plan/predict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "sim/plan/disagg.h"
#include "sim/plan/phase.h"

#define TOKENS_MAX INT64_C(1000000000)

void plm_query_init(plm_query *q)
{
    memset(q, 0, sizeof *q);
    q->prompt = 512;
    q->gen = 128;
    q->batch = 1;
    q->price_usd = -1;
    q->flash_attn = -1;
}

static plm_status check_query(const plm_query *q, plm_error *err)
{
    const struct {
        const char *name;
        int64_t value, lo, hi;
    } bounds[] = {{"prompt", q->prompt, 0, TOKENS_MAX},
                  {"gen", q->gen, 0, TOKENS_MAX},
                  {"depth", q->depth, 0, TOKENS_MAX},
                  {"context", q->context, 0, TOKENS_MAX},
                  {"batch", q->batch, 1, 100000000},
                  {"concurrency", q->concurrency, 0, 100000000},
                  {"device count", q->device_count, 0, 65536},
                  {"ubatch", q->ubatch, 0, TOKENS_MAX},
                  {"max_seqs", q->max_seqs, 0, 100000000},
                  {"max_batched_tokens", q->max_batched_tokens, 0, TOKENS_MAX},
                  {"weights_bytes", q->weights_bytes, 0, INT64_C(1) << 50},
                  {"prefill_workers", q->prefill_workers, 0, 65536},
                  {"decode_workers", q->decode_workers, 0, 65536}};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (bounds[i].value < bounds[i].lo || bounds[i].value > bounds[i].hi)
            return plm_fail(err, PLM_E_INVALID,
                            "out of range, %s: %lld is not within %lld to %lld; "
                            "correct it",
                            bounds[i].name, (long long)bounds[i].value, (long long)bounds[i].lo,
                            (long long)bounds[i].hi);
    if (q->utilisation < 0 || q->utilisation > 1 || q->memory_fraction < 0 ||
        q->memory_fraction > 1)
        return plm_fail(err, PLM_E_INVALID,
                        "out of range, utilisation or memory fraction: a share is "
                        "above 0 and at most 1; correct it");
    if (q->concurrency > 0 && q->gen < 1)
        return plm_fail(err, PLM_E_INVALID,
                        "closed loop, gen: a client takes at least one token; "
                        "give gen");
    return PLM_OK;
}

/* ---- notes ---- */

static void add_note(plm_answer *a, const char *text)
{
    size_t n = strlen(a->note);
    if (text[0] != '\0' && n + strlen(text) + 3 < sizeof a->note)
        snprintf(a->note + n, sizeof a->note - n, "%s%s", n > 0 ? "; " : "", text);
}

static void describe(const plm_config *c, const plm_query *q, plm_answer *a)
{
    snprintf(a->model, sizeof a->model, "%s", c->arch->id);
    snprintf(a->device, sizeof a->device, "%s", c->machine.dev.id);
    snprintf(a->engine, sizeof a->engine, "%s", c->machine.prof.id);
    snprintf(a->quant, sizeof a->quant, "%s", plm_recipe_name(c->recipe));
    snprintf(a->kv_type, sizeof a->kv_type, "%s", c->kv_name);
    a->devices = c->devices;
    a->par = c->par;
    a->params = *c->params;
    a->model_weights_bytes = c->model_weights_bytes;
    if (q->weights_bytes == 0)
        add_note(a, plm_recipe_note(c->recipe));
    if (!(c->machine.dev.memory_bytes > 0))
        add_note(a, "the device's memory is not known, so whether it fits is not checked");
    a->extrapolated =
        c->arch->max_context > 0 && q->depth + q->prompt + q->gen > c->arch->max_context;
    if (a->extrapolated)
        add_note(a, "the context is longer than the model was made for");
}

/* ---- closed loop ---- */

static plm_status serve(const plm_config *c, const plm_query *q, plm_serving *out, plm_error *err)
{
    plm_steady_query sq = {.stage = c->program,
                           .n_stage = c->par.pp,
                           .machine = &c->machine,
                           .prompt = (double)q->prompt,
                           .gen = (double)q->gen,
                           .concurrency = (double)q->concurrency,
                           .replicas = c->par.dp,
                           .static_batch = q->static_batch,
                           .fixed_lengths = q->fixed_lengths,
                           .experts = c->experts,
                           .top_k = c->top_k,
                           .ep = c->par.ep};
    PLM_TRY(plm_config_kv_tokens(c, sq.prompt + sq.gen / 2, &sq.kv_tokens_capacity, err));
    return plm_steady(&sq, out, err);
}

/* ---- cost ---- */

/* Without a closed loop: the time of this prefill and of these decode steps. With one: the time a
** request takes of the deployment, split as the two phases would take it alone. */
static plm_status put_cost(const plm_catalog *cat, const plm_config *c, const plm_query *q,
                           double devices, plm_answer *a, plm_error *err)
{
    double usd;
    PLM_TRY(plm_config_price(cat, c->machine.dev.id, q->price_usd, &usd, a->price_source,
                             sizeof a->price_source, err));
    a->has_cost = usd >= 0;
    if (!a->has_cost) {
        add_note(a, "no price is known for this device, give one with --price");
        return PLM_OK;
    }
    a->usd_per_hour = usd * devices;
    double paid = a->usd_per_hour / (q->utilisation > 0 ? q->utilisation : 1);
    double prefill = q->prompt > 0 ? a->prefill.time_s.value / (double)q->batch : 0;
    double decode = q->gen > 0 ? a->decode.time_s.value * (double)q->gen / (double)q->batch : 0;
    if (a->has_serving && a->serving.requests_s.value > 0) {
        /* Decode steps serve all that run, so a request pays its share of them. */
        decode = a->serving.itl_s.value * (double)q->gen / fmax(1, a->serving.running);
        double whole = 1 / a->serving.requests_s.value, sum = prefill + decode;
        prefill = sum > 0 ? prefill / sum * whole : 0;
        decode = sum > 0 ? decode / sum * whole : whole;
    }
    plm_attribute(paid, prefill, (double)q->prompt, decode, (double)q->gen, &a->usd_per_mtok_input,
                  &a->usd_per_mtok_output);
    if (q->prompt == 0 || !(a->usd_per_mtok_input > 0))
        a->usd_per_mtok_input = 0;
    if (q->gen == 0 || !(a->usd_per_mtok_output > 0))
        a->usd_per_mtok_output = 0;
    return PLM_OK;
}

plm_status plm_predict(plm_session *s, const plm_query *q, plm_answer *out, plm_error *err)
{
    plm_config c;
    memset(out, 0, sizeof *out);
    PLM_TRY(check_query(q, err));
    plm_session_trim(s);
    PLM_TRY(plm_config_init(s, q, &c, err));
    bool two_pools = q->mode != NULL && strcmp(q->mode, "disagg") == 0;
    if (q->mode != NULL && !two_pools && strcmp(q->mode, "agg") != 0)
        return plm_fail(err, PLM_E_INVALID, "unknown mode, \"%.40s\": give agg or disagg", q->mode);
    int64_t asked = c.devices;
    PLM_TRY(plm_config_plan(&c, &q->par, two_pools ? 0 : asked, err));
    PLM_TRY(plm_config_build(s, &c, true, err));
    describe(&c, q, out);
    int64_t context = q->context > 0 ? q->context : q->depth + q->prompt + q->gen;
    PLM_TRY(plm_config_ledger(&c, plm_max_i64(1, context), q->batch, &out->memory, err));
    double devices = (double)c.devices;
    if (!out->memory.fits)
        return PLM_OK;
    if (q->prompt > 0)
        plm_phase_prefill(&c, q->prompt, q->depth, q->batch, &out->prefill);
    if (q->gen > 0)
        plm_phase_decode(&c, q->depth, q->gen, q->batch, &out->decode);
    out->has_serving = q->concurrency > 0;
    if (two_pools) {
        int64_t all;
        PLM_TRY(plm_disagg_predict(s, q, &c, &out->serving, &all, err));
        out->has_serving = true;
        if (asked > 1 && asked != all)
            return plm_fail(err, PLM_E_INVALID,
                            "two pools, %lld devices: the workers take %lld; give "
                            "that number or none",
                            (long long)asked, (long long)all);
        out->devices = all;
        devices = (double)all;
    } else if (out->has_serving) {
        PLM_TRY(serve(&c, q, &out->serving, err));
    }
    return put_cost(plm_session_catalog(s), &c, q, devices, out, err);
}
