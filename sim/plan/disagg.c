/* disagg.c - two pools: a queue of prompts before the prefill workers, a batch in each decode
*worker,
** and the hand-off of the KV between. Serving facts section 8; DistServe, arXiv 2401.09670. */
#include "sim/plan/disagg.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "sim/plan/phase.h"
#include "sim/plan/plan.h"
#include "sim/plan/queue.h"

#define BISECTIONS 40

/* ---- the loop ---- */

void plm_pools_at(const plm_pools *p, double batch, double others, plm_pools_state *out)
{
    double steps = fmax(p->gen - 1, 0);
    out->batch = batch;
    out->itl_s = p->itl(p->ctx, batch);
    out->waiting = 0;
    double capacity = p->prefill_servers / p->prefill_s;
    out->rate = steps > 0 ? p->decode_workers * batch / (steps * out->itl_s) : capacity;
    out->prefill_util = out->rate / capacity;
    out->decode_util = batch / p->seqs_max;
    out->ttft_s = p->host_s + p->prefill_s + p->transfer_s +
                  plm_mdc_wait_s(p->prefill_s, out->prefill_util * others, p->prefill_servers);
}

/* Requests under way at that batch. */
static double under_way(const plm_pools *p, double batch, double others, plm_pools_state *out)
{
    plm_pools_at(p, batch, others, out);
    if (out->prefill_util >= 1)
        return INFINITY;
    return out->rate * (out->ttft_s + (p->gen - 1) * out->itl_s);
}

/* gen == 1: the prefill pool alone. */
static void close_prefill(const plm_pools *p, double clients, plm_pools_state *out)
{
    memset(out, 0, sizeof *out);
    double alone = p->host_s + p->prefill_s + p->transfer_s;
    out->rate = fmin(p->prefill_servers / p->prefill_s, clients / alone);
    out->ttft_s = clients / out->rate;
    out->prefill_util = out->rate * p->prefill_s / p->prefill_servers;
}

void plm_pools_closed(const plm_pools *p, double clients, plm_pools_state *out)
{
    assert(clients >= 1 && p->seqs_max > 0);
    if (p->gen <= 1) {
        close_prefill(p, clients, out);
        return;
    }
    double others = (clients - 1) / clients, lo = 0, hi = p->seqs_max;
    double most = under_way(p, hi, others, out);
    if (most <= clients) { /* every place is taken; the rest wait for one */
        out->waiting = clients - most;
        out->ttft_s += out->waiting / out->rate;
        return;
    }
    for (int i = 0; i < BISECTIONS; i++) {
        double mid = (lo + hi) / 2;
        if (under_way(p, mid, others, out) > clients)
            hi = mid;
        else
            lo = mid;
    }
    (void)under_way(p, lo > 0 ? lo : hi, others, out);
    /* What bisection leaves over (a step of the batch, or prefill at its limit) is queueing. */
    out->ttft_s = fmax(p->host_s + p->prefill_s + p->transfer_s,
                       clients / out->rate - (p->gen - 1) * out->itl_s);
}

/* ---- of a config ---- */

double plm_pool_itl(const void *ctx, double batch)
{
    const plm_pool_ctx *p = ctx;
    const plm_config *c = p->config;
    double each = fmax(1, batch / c->par.dp), overlap = 1;
    if (c->par.pp > 1 && !c->layer_split)
        overlap = fmax(1, fmin(c->par.pp, floor(each)));
    plm_stages s = c->stages;
    s.overlap = overlap;
    /* Between whole sequences the time is interpolated, so that the loop has a solution. */
    double n = each / overlap, few = fmax(1, floor(n)), w = n - few;
    plm_mix m = {.decodes = (int64_t)few, .context = (int64_t)p->context};
    double low = plm_stages_step(&s, &m, NULL);
    if (!(w > 1e-9))
        return low;
    m.decodes++;
    return (1 - w) * low + w * plm_stages_step(&s, &m, NULL);
}

plm_status plm_pool_kv_bytes(const plm_config *c, int64_t prompt, double *bytes, plm_error *err)
{
    const plm_profile *p = &c->machine.prof;
    plm_kv_options o = {.k = c->kv_k,
                        .v = c->kv_v,
                        .tp = 1,
                        .cp = 1,
                        .mla_expanded = !p->absorb_mla,
                        .window_slack = 0};
    int64_t kv, state;
    PLM_TRY(plm_kv_bytes(c->arch, &o, prompt, &kv, NULL, NULL, err));
    PLM_TRY(plm_state_bytes(c->arch, &o, &state, err));
    *bytes = (double)kv + (double)state;
    return PLM_OK;
}

double plm_pool_link_bytes_s(const plm_device *d, int64_t from, int64_t to, int64_t total)
{
    bool one_node = d->node_devices > 0 && total <= d->node_devices;
    double each = one_node && d->link_bytes_s > 0 ? d->link_bytes_s : d->net_bytes_s;
    if (!(each > 0))
        each = d->pcie_bytes_s;
    return each * (double)plm_min_i64(from, to);
}

plm_status plm_pool_prefill(const plm_config *c, int64_t prompt, double link_bytes_s,
                            double *prefill_s, double *transfer_s, plm_error *err)
{
    plm_phase phase;
    double bytes;
    plm_phase_prefill(c, plm_max_i64(1, prompt), 0, c->par.dp, &phase);
    PLM_TRY(plm_pool_kv_bytes(c, prompt, &bytes, err));
    double layers = c->arch->layers, time = phase.time_s.value;
    *prefill_s = time;
    *transfer_s = plm_layerwise_s(layers, time / layers, bytes / link_bytes_s / layers) - time;
    return PLM_OK;
}

static plm_status build_prefill(plm_session *s, const plm_query *q, const plm_config *decode,
                                plm_config *c, plm_error *err)
{
    plm_parallel par = q->prefill_par;
    if (par.tp <= 0 && par.pp <= 0 && par.ep <= 0 && par.dp <= 0 && par.cp <= 0)
        par = decode->par;
    PLM_TRY(plm_config_init(s, q, c, err));
    PLM_TRY(plm_config_plan(c, &par, 0, err));
    PLM_TRY(plm_config_build(s, c, q->weights_bytes > 0, err));
    plm_ledger l;
    PLM_TRY(plm_config_ledger(c, plm_max_i64(1, q->prompt), 1, &l, err));
    if (!l.fits)
        return plm_fail(err, PLM_E_INFEASIBLE,
                        "does not fit, prefill worker of %lld x %s: %s is "
                        "short; use more ranks for it",
                        (long long)c->devices, c->machine.dev.id, l.limit);
    return PLM_OK;
}

plm_status plm_disagg_predict(plm_session *s, const plm_query *q, const plm_config *decode,
                              plm_serving *out, int64_t *devices, plm_error *err)
{
    plm_config prefill;
    const plm_profile *p = &decode->machine.prof;
    int64_t np = plm_max_i64(1, q->prefill_workers), nd = plm_max_i64(1, q->decode_workers);
    memset(out, 0, sizeof *out);
    if (q->concurrency < 1)
        return plm_fail(err, PLM_E_INVALID,
                        "two pools, concurrency: they serve a closed loop; give "
                        "the number of clients");
    PLM_TRY(build_prefill(s, q, decode, &prefill, err));
    *devices = np * prefill.devices + nd * decode->devices;
    double link =
        plm_pool_link_bytes_s(&decode->machine.dev, prefill.devices, decode->devices, *devices);
    if (!(link > 0))
        return plm_fail(err, PLM_E_INVALID,
                        "two pools, link of %s: its record has no link to send "
                        "the cache over; add one",
                        decode->machine.dev.id);
    double each = (double)q->prompt + (double)q->gen / 2, tokens;
    PLM_TRY(plm_config_kv_tokens(decode, each, &tokens, err));
    plm_pool_ctx ctx = {decode, each};
    plm_pools pools = {.itl = plm_pool_itl,
                       .ctx = &ctx,
                       .prefill_servers = (double)np * prefill.par.dp,
                       .host_s = p->ttft_host_s,
                       .gen = (double)q->gen,
                       .decode_workers = (double)nd};
    pools.seqs_max = fmin(floor(tokens / each), (double)p->max_seqs * decode->par.dp);
    if (pools.seqs_max < 1)
        return plm_fail(err, PLM_E_INFEASIBLE,
                        "does not fit, decode worker of %lld x %s: no room for "
                        "one request of %.0f tokens; use more ranks for it",
                        (long long)decode->devices, decode->machine.dev.id, each);
    PLM_TRY(plm_pool_prefill(&prefill, q->prompt, link, &pools.prefill_s, &pools.transfer_s, err));
    plm_pools_state st;
    plm_pools_closed(&pools, (double)q->concurrency, &st);
    double e2e = st.ttft_s + ((double)q->gen - 1) * st.itl_s;
    const double *rate = p->band[PLM_REGIME_THROUGHPUT];
    out->ttft_s = plm_figure_band(st.ttft_s, p->band[PLM_REGIME_TTFT]);
    out->itl_s = plm_figure_band(st.itl_s, p->band[PLM_REGIME_TPOT]);
    out->e2e_s = (plm_figure){e2e, out->ttft_s.lo + ((double)q->gen - 1) * out->itl_s.lo,
                              out->ttft_s.hi + ((double)q->gen - 1) * out->itl_s.hi};
    out->requests_s = plm_figure_band(st.rate, rate);
    out->output_tok_s = plm_figure_band(st.rate * (double)q->gen, rate);
    out->total_tok_s = plm_figure_band(st.rate * (double)(q->gen + q->prompt), rate);
    out->running = st.batch * (double)nd;
    out->waiting = st.waiting;
    const char *bound = st.waiting > 0 ? "kv" : st.prefill_util > 0.95 ? "prefill" : "decode";
    snprintf(out->bound, sizeof out->bound, "%s", bound);
    return PLM_OK;
}
