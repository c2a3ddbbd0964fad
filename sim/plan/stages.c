/* stages.c - the time of a step over the stages of a pipeline, and the closed loop upon it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "sim/plan/queue.h"
#include "sim/plan/config.h"

/* Engines whose usual way over several devices is a split by layers, through which one stream
 *passes
 ** with no overlap. Source: llama.cpp --split-mode layer (default); truth rows "layer". */
static const char *const layer_engines[] = {"llama.cpp", "ik_llama.cpp", "ollama",
                                            "mlx",       "ds4",          "exllama"};

bool plm_layer_split(const plm_profile *p)
{
    for (size_t i = 0; i < sizeof layer_engines / sizeof *layer_engines; i++)
        if (strcmp(p->engine, layer_engines[i]) == 0)
            return true;
    return false;
}

plm_machine plm_machine_rest(const plm_machine *m)
{
    plm_machine rest = *m;
    rest.prof.step_s = 0;
    rest.prof.seq_s = 0;
    return rest;
}

static void add_step(plm_step *sum, const plm_step *s)
{
    sum->time_s += s->time_s;
    sum->flop += s->flop;
    sum->bytes += s->bytes;
    sum->exp += s->exp;
    sum->link_bytes += s->link_bytes;
    for (int i = 0; i < PLM_BOUND_COUNT; i++)
        sum->part_s[i] += s->part_s[i];
    sum->bound = PLM_BOUND_TENSOR;
    for (int i = 1; i < PLM_BOUND_COUNT; i++)
        if (sum->part_s[i] > sum->part_s[sum->bound])
            sum->bound = (plm_bound)i;
}

double plm_stages_time(const plm_stages *s, const plm_batch *b, plm_step *out, double *slowest_s)
{
    plm_step sum, one;
    double slowest = 0;
    if (s->n_stage == 1) {
        plm_step *to = out != NULL ? out : &sum;
        plm_step_time(s->program[0], s->first, b, to);
        if (slowest_s != NULL)
            *slowest_s = to->time_s;
        return to->time_s;
    }
    memset(&sum, 0, sizeof sum);
    for (int32_t i = 0; i < s->n_stage; i++) {
        if (i < 2 || s->program[i] != s->program[i - 1]) /* else as the stage before */
            plm_step_time(s->program[i], i == 0 ? s->first : s->rest, b, &one);
        add_step(&sum, &one);
        slowest = fmax(slowest, one.time_s);
    }
    if (out != NULL)
        *out = sum;
    if (slowest_s != NULL)
        *slowest_s = slowest;
    return fmax(sum.time_s, s->overlap * slowest);
}

double plm_stages_step(const void *stages, const plm_mix *m, plm_bound *bound)
{
    const plm_stages *s = stages;
    plm_segment seg[2];
    plm_batch b = {.seg = seg, .n_seg = 0, .logit_rows = -1};
    double tokens = 0;
    if (m->decodes > 0) {
        seg[b.n_seg++] = (plm_segment){1, plm_max_i64(0, m->context), m->decodes};
        tokens += (double)m->decodes;
    }
    if (m->chunks > 0 && m->chunk_tokens > 0) {
        seg[b.n_seg++] = (plm_segment){m->chunk_tokens, m->chunk_offset, m->chunks};
        tokens += (double)m->chunk_tokens * (double)m->chunks;
    }
    if (b.n_seg == 0)
        seg[b.n_seg++] = (plm_segment){1, 0, 1};
    b.imbalance = plm_expert_imbalance(s->experts, s->top_k, tokens * s->dp, s->ep);
    plm_step step;
    double time = plm_stages_time(s, &b, bound != NULL ? &step : NULL, NULL);
    if (bound != NULL)
        *bound = step.bound;
    return time;
}

/* A rate is as uncertain as the time it is the inverse of, unless its own regime has a band. */
static plm_figure rate_figure(double value, const plm_profile *p)
{
    return plm_figure_band(value, p->band[PLM_REGIME_THROUGHPUT]);
}

plm_status plm_steady(const plm_steady_query *q, plm_serving *out, plm_error *err)
{
    memset(out, 0, sizeof *out);
    const plm_profile *p = &q->machine->prof;
    if (q->n_stage < 1 || !(q->concurrency >= 1) || !(q->gen >= 1) || !(q->prompt >= 0) ||
        q->concurrency > 1e9 || q->prompt + q->gen > 1e9)
        return plm_fail(err, PLM_E_INVALID,
                        "closed loop, workload: %g clients of %g + %g tokens is "
                        "out of range; give at least one client and one token out",
                        q->concurrency, q->prompt, q->gen);
    double dp = fmax(1, q->replicas);
    double each = q->prompt + (p->reserve_output ? q->gen : q->gen / 2);
    double seqs = floor(q->kv_tokens_capacity / dp / each);
    if (seqs < 1)
        return plm_fail(err, PLM_E_INFEASIBLE,
                        "closed loop, KV cache: room for %.0f tokens is less "
                        "than a request of %.0f; shorten it or use more memory",
                        q->kv_tokens_capacity / dp, each);
    bool kv_bound = p->max_seqs <= 0 || seqs < (double)p->max_seqs;
    if (!kv_bound)
        seqs = (double)p->max_seqs;
    plm_machine rest = plm_machine_rest(q->machine);
    double clients = fmax(1, q->concurrency / dp), groups = fmin(q->concurrency, dp);
    double overlap = 1;
    if (q->n_stage > 1 && !plm_layer_split(p)) /* micro-batches share the running sequences */
        overlap = fmax(1, fmin(q->n_stage, floor(fmin(clients, seqs))));
    plm_stages stages = {.program = q->stage,
                         .first = q->machine,
                         .rest = &rest,
                         .n_stage = q->n_stage,
                         .overlap = overlap,
                         .experts = q->experts,
                         .top_k = q->top_k,
                         .ep = q->ep,
                         .dp = dp};
    plm_loop_query lq = {.step = plm_stages_step,
                         .ctx = &stages,
                         .prompt = q->prompt,
                         .gen = q->gen,
                         .clients = fmax(1, clients / overlap),
                         .seqs_max = fmax(1, seqs / overlap),
                         .budget = p->ubatch > 0 ? (double)p->ubatch : 1e9,
                         .host_s =
                             q->static_batch ? 0 : p->ttft_host_s, /* a batch run has no clients */
                         .whole_prompts = !p->chunked_prefill,
                         .static_batch = q->static_batch,
                         .burst_share = p->burst_share,
                         .bunch = q->fixed_lengths ? p->fixed_bunch : 0};
    plm_loop l;
    plm_loop_solve(&lq, &l);
    double rate = l.rate * overlap * groups;
    double e2e = l.ttft_s + (q->gen - 1) * l.itl_s;
    out->ttft_s = plm_figure_band(l.ttft_s, p->band[PLM_REGIME_TTFT]);
    out->itl_s = plm_figure_band(l.itl_s, p->band[PLM_REGIME_TPOT]);
    /* Each part's own band: the sum of the ends, as if they moved together. */
    out->e2e_s = (plm_figure){e2e, out->ttft_s.lo + (q->gen - 1) * out->itl_s.lo,
                              out->ttft_s.hi + (q->gen - 1) * out->itl_s.hi};
    out->requests_s = rate_figure(rate, p);
    out->output_tok_s = rate_figure(rate * q->gen, p);
    out->total_tok_s = rate_figure(rate * (q->gen + q->prompt), p);
    out->running = l.running * overlap * groups;
    out->waiting = l.waiting * overlap * groups;
    const char *bound = l.waiting > 0 ? (kv_bound ? "kv" : "max_seqs") : plm_bound_name(l.bound);
    snprintf(out->bound, sizeof out->bound, "%s", bound);
    return PLM_OK;
}
