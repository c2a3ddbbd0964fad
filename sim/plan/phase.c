/* phase.c - prefill and decode of one query.
**
** Prompt and depth are llama-bench's: prefill starts from `depth` cached tokens, decode from
*`depth`
** too, not after the prompt; the two are tests of their own.
*/
#include "sim/plan/phase.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"

#define CHUNKS_EXACT 64 /* up to so many steps each is evaluated */
#define SAMPLES 33      /* odd; beyond, Simpson's rule over the offsets */

int64_t plm_phase_sequences(const plm_config *c, int64_t batch)
{
    return plm_max_i64(1, plm_ceil_div(batch, c->par.dp));
}

typedef struct sum {
    plm_step step;
    double time, slowest, steps;
    double last_time, last_slowest;
} sum;

static void add_weighted(sum *s, const plm_step *one, double time, double slowest, double weight)
{
    s->step.time_s += weight * one->time_s;
    s->step.flop += weight * one->flop;
    s->step.bytes += weight * one->bytes;
    s->step.exp += weight * one->exp;
    s->step.link_bytes += weight * one->link_bytes;
    for (int i = 0; i < PLM_BOUND_COUNT; i++)
        s->step.part_s[i] += weight * one->part_s[i];
    s->time += weight * time;
    s->slowest += weight * slowest;
    s->steps += weight;
    s->last_time = time;
    s->last_slowest = slowest;
}

static void finish_mean(const sum *s, plm_phase *out)
{
    out->step = s->step;
    double n = s->steps > 0 ? s->steps : 1;
    out->step.time_s /= n;
    out->step.flop /= n;
    out->step.bytes /= n;
    out->step.exp /= n;
    out->step.link_bytes /= n;
    out->step.bound = PLM_BOUND_TENSOR;
    for (int i = 0; i < PLM_BOUND_COUNT; i++) {
        out->step.part_s[i] /= n;
        if (out->step.part_s[i] > out->step.part_s[out->step.bound])
            out->step.bound = (plm_bound)i;
    }
    snprintf(out->bound, sizeof out->bound, "%s", plm_bound_name(out->step.bound));
}

static void add_chunk(const plm_config *c, sum *s, int64_t tokens, int64_t offset, int64_t count,
                      int64_t logits, double weight)
{
    plm_step one;
    double slowest, time = plm_config_step(c, tokens, offset, count, logits, &one, &slowest);
    add_weighted(s, &one, time, slowest, weight);
}

/* One sequence longer than a step. */
static void add_long_prompt(const plm_config *c, sum *s, int64_t prompt, int64_t depth,
                            int64_t ubatch, double weight)
{
    int64_t full = prompt / ubatch, rest = prompt % ubatch;
    int64_t inner = rest > 0 ? full : full - 1; /* steps without logits */
    if (inner <= CHUNKS_EXACT) {
        for (int64_t i = 0; i < inner; i++)
            add_chunk(c, s, ubatch, depth + i * ubatch, 1, 0, weight);
    } else {
        double span = (double)(inner - 1) * (double)ubatch;
        for (int i = 0; i < SAMPLES; i++) {
            double simpson = i == 0 || i == SAMPLES - 1 ? 1 : i % 2 == 1 ? 4 : 2;
            double at = span * i / (SAMPLES - 1);
            add_chunk(c, s, ubatch, depth + (int64_t)at, 1, 0,
                      weight * (double)inner * simpson / (3 * (SAMPLES - 1)));
        }
    }
    add_chunk(c, s, rest > 0 ? rest : ubatch, depth + inner * ubatch, 1, 1, weight);
}

void plm_phase_prefill(const plm_config *c, int64_t prompt, int64_t depth, int64_t batch,
                       plm_phase *out)
{
    sum s;
    memset(&s, 0, sizeof s);
    memset(out, 0, sizeof *out);
    int64_t ubatch = plm_max_i64(1, c->machine.prof.ubatch), n = plm_phase_sequences(c, batch);
    if (prompt > ubatch) {
        add_long_prompt(c, &s, prompt, depth, ubatch, (double)n);
    } else {
        int64_t together = plm_min_i64(n, ubatch / prompt), full = n / together;
        add_chunk(c, &s, prompt, depth, together, together, (double)full);
        if (n % together > 0)
            add_chunk(c, &s, prompt, depth, n % together, n % together, 1);
    }
    double time = s.time;
    /* Steps follow each other through the stages; llama.cpp keeps so many in flight. */
    if (c->par.pp > 1 && (!c->layer_split || c->machine.prof.pipeline > 1))
        time = s.slowest + s.last_time - s.last_slowest;
    if (c->layer_split && c->machine.prof.pipeline > 1)
        time = fmax(time, s.time / (double)c->machine.prof.pipeline);
    const double *band = c->machine.prof.band[PLM_REGIME_PREFILL]; /* of rates */
    out->tokens = (double)prompt * (double)batch;
    out->batch = (double)batch;
    out->context_tokens = (double)depth;
    out->tok_s = plm_figure_band(out->tokens / time, band);
    out->time_s = (plm_figure){time, time / band[1], time / band[0]};
    out->tok_s_per_user = (double)prompt / time;
    finish_mean(&s, out);
}

/* Time of one decode step: micro-batches fill the stages of a pipeline where the engine overlaps.
 */
static double decode_step(const plm_config *c, int64_t context, int64_t n, plm_step *one)
{
    int64_t micro = c->layer_split ? 1 : plm_min_i64(n, c->par.pp);
    double slowest;
    double through = plm_config_step(c, 1, context, plm_ceil_div(n, micro), -1, one, &slowest);
    return fmax(through, (double)micro * slowest);
}

void plm_phase_decode(const plm_config *c, int64_t depth, int64_t gen, int64_t batch,
                      plm_phase *out)
{
    sum s;
    memset(&s, 0, sizeof s);
    memset(out, 0, sizeof *out);
    int64_t n = plm_phase_sequences(c, batch);
    const int64_t at[] = {depth, depth + (gen - 1) / 2, depth + gen - 1};
    const double weight[] = {1.0 / 6, 4.0 / 6, 1.0 / 6};
    for (int i = 0; i < (gen > 2 ? 3 : 1); i++) {
        plm_step one;
        double time = decode_step(c, at[i], n, &one);
        add_weighted(&s, &one, time, 0, gen > 2 ? weight[i] : 1);
    }
    const double *band = c->machine.prof.band[PLM_REGIME_DECODE]; /* of rates */
    out->tokens = (double)gen * (double)batch;
    out->batch = (double)batch;
    out->context_tokens = (double)depth + (double)(gen - 1) / 2;
    out->time_s = (plm_figure){s.time, s.time / band[1], s.time / band[0]};
    out->tok_s = plm_figure_band((double)batch / s.time, band);
    out->tok_s_per_user = 1 / s.time;
    finish_mean(&s, out);
}
