/* steady.c - steady state of a closed loop of clients.
**
** The loop is a closed queueing network of M = min(clients, sequences that fit) requests, each in
** turn in prefill and in decode; clients beyond M wait (Little's law: their mean wait is their
*number
** over the rate). A request of the network sees the others in proportion to M - 1 of M (arrival
** theorem of closed networks), so a lone client never meets its own prefill.
**
** Let G = gen - 1 decode steps, W = cycle of a request without the wait, I = inter-token latency.
**   decodes a step, as one of them sees it   d = 1 + (M - 1) G I / W
**   chunks a step of the others              q = n (M - 1) I / W, n chunks a prompt
**   I = mean step over floor(q) and floor(q) + 1 chunks
**   W = host + wait + n * mixed step + I/2 + G I
** When q passes what the budget holds, prefill is the bottleneck: W follows from q = budget, and
*the
** difference is time in the prefill queue. Chunked prefill as in Sarathi-Serve, arXiv 2403.02310.
*/
#include "sim/plan/steady.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "sim/plan/queue.h"

#define ROUNDS_MAX 60
#define TOLERANCE 1e-5
#define COUNT_MAX 1e9 /* sequences and tokens of one step */

static int64_t whole(double x)
{
    return (int64_t)llround(fmin(fmax(x, 0), COUNT_MAX));
}

plm_chunks plm_chunks_of(double prompt, double budget, bool whole_prompt)
{
    if (prompt <= 0)
        return (plm_chunks){0, 0, 0};
    double n = whole_prompt ? 1 : ceil(prompt / fmax(budget, 1));
    return (plm_chunks){n, prompt / n, (prompt - prompt / n) / 2};
}

typedef struct loop {
    const plm_loop_query *q;
    plm_chunks chunk;
    double others;    /* M - 1 */
    double decodes_g; /* G */
    double chunks_max;
} loop;

static double step_s(const loop *l, double decodes, double chunks, plm_bound *bound)
{
    const plm_mix m = {
        .decodes = whole(decodes),
        .context = whole(l->q->prompt + l->q->gen / 2),
        .chunks = whole(chunks),
        .chunk_tokens = plm_max_i64(1, whole(l->chunk.tokens)),
        .chunk_offset = whole(l->chunk.offset),
    };
    return l->q->step(l->q->ctx, &m, bound);
}

/* What one round of the iteration finds. */
typedef struct state {
    double itl, prefill, queue; /* queue: before the first chunk, inside the network */
    double decode_step, mixed_step, share;
} state;

static double cycle_of(const loop *l, const state *s)
{
    return l->q->host_s + s->queue + s->prefill + l->decodes_g * s->itl;
}

static state next_state(const loop *l, const state *s)
{
    double cycle = cycle_of(l, s) - s->queue;
    double queue = 0, q = l->chunk.count * l->others * s->itl / cycle;
    if (q > l->chunks_max) { /* more chunks than the budget holds: they queue */
        double longer = l->chunk.count * l->others * s->itl / l->chunks_max;
        queue = longer - cycle;
        cycle = longer;
        q = l->chunks_max;
    } else if (q > 0) { /* chance meetings; never longer than everybody else first */
        double rho = q / l->chunks_max;
        double most = l->others / 2 * s->prefill / l->chunks_max;
        queue = fmin(plm_mdc_wait_s(s->prefill, fmin(rho, 0.999), l->chunks_max), most);
        cycle += queue;
        q = l->chunk.count * l->others * s->itl / cycle;
    }
    double decoding = l->others * l->decodes_g * s->itl / cycle;
    double few = floor(q), w = q - few;
    state n = {.queue = queue, .share = fmin(q, 1)};
    double with_few = step_s(l, 1 + decoding, few, NULL);
    double with_more = step_s(l, 1 + decoding, few + 1, NULL);
    /* While M requests make their G tokens the server works on their chunks and on G steps at least
    ** (asymptotic bound of closed networks). */
    double chunk_s = fmax(0, with_more - with_few), plain_s = fmax(0, with_few - few * chunk_s);
    double least = (l->others + 1) * l->chunk.count * chunk_s + l->decodes_g * plain_s;
    n.itl = (1 - w) * with_few + w * with_more;
    double usual = cycle + l->decodes_g * (n.itl - s->itl);
    double late = usual < least ? (least - usual) / l->decodes_g : 0; /* decodes wait for chunks */
    n.decode_step = few == 0 ? with_few : 0;
    n.mixed_step = few == 0 ? with_more : n.itl;
    n.itl += late;
    /* A request's own chunks ride with the others' decodes; near a full batch one more or less of
    ** those does not matter and saves an evaluation. */
    double own = l->others < 8 ? step_s(l, decoding, fmax(1, few), NULL) : n.mixed_step;
    n.prefill = l->chunk.count * own + (l->others > 0 ? n.itl / 2 : 0);
    return n;
}

/* The same loop without decode steps: gen == 1, or no prompt and nothing to wait for. */
static void solve_prefill_only(const loop *l, plm_loop *out)
{
    double m = l->others + 1;
    double together = fmin(fmax(1, floor(l->chunks_max)), fmax(1, m));
    double each = step_s(l, 0, together, &out->bound);
    double capacity = together / (l->chunk.count * each); /* requests/s */
    double alone = m / (l->q->host_s + l->chunk.count * step_s(l, 0, 1, NULL));
    out->rate = fmin(capacity, alone);
    out->prefill_s = l->chunk.count * each;
    out->mixed_step_s = each;
    out->chunk_share = 1;
    out->running = m;
    out->rounds = 1;
}

/* Clients that start together come back together: their prompts are served one after another before
** any decodes, and their decodes then share no step with a prompt. The share of requests that live
*so
** is a matter of the engine and of how long the load has run. */
static void meet_bursts(const loop *l, state *s)
{
    double share = l->q->burst_share, m = l->others + 1;
    if (!(share > 0) || m <= 1 || l->chunk.count <= 0)
        return;
    double together = fmin(m, fmax(1, floor(l->chunks_max))), steps = ceil(m / together);
    double each = l->chunk.count * step_s(l, 0, together, NULL);
    double prefill = each * (steps + 1) / 2; /* mean over the burst */
    /* What the burst still has to prefill after a request's own passes during its decodes. */
    double itl = step_s(l, m, 0, NULL) + each * (steps - 1) / 2 / l->decodes_g;
    s->queue += share * (prefill - s->prefill - s->queue);
    s->itl += share * (itl - s->itl);
}

/* Equal requests that were served one after another end, and come back, together: a bunch waits for
** half of its own prompts, beside what the others make it wait (independent, so squares add). When
** the bunch is everybody, decodes share no step with a prompt. */
static void meet_bunches(const loop *l, state *s)
{
    double m = l->others + 1, n = fmin(m, l->q->bunch);
    if (!(n > 1) || l->chunk.count <= 0)
        return;
    double together = fmin(n, fmax(1, floor(l->chunks_max)));
    double work = n / together * l->chunk.count * step_s(l, 0, together, NULL);
    double mean = work * (n + 1) / (2 * n), steady = s->queue + s->prefill;
    s->queue = (n < m ? hypot(steady, mean) : mean) - s->prefill;
    if (n >= m)
        s->itl = step_s(l, m, 0, NULL) + work * (n - 1) / (2 * n) / l->decodes_g;
}

static void name_bound(const loop *l, const plm_loop_query *q, plm_loop *out)
{
    double decodes = fmax(1, out->running - out->rate * out->prefill_s);
    bool mixed = out->chunk_share * out->mixed_step_s > (1 - out->chunk_share) * out->decode_step_s;
    (void)step_s(l, decodes, mixed && q->prompt > 0 ? 1 : 0, &out->bound);
}

/* All requests of a wave prefill together, then decode together. */
static void solve_static(const loop *l, plm_loop *out)
{
    const plm_loop_query *q = l->q;
    double wave = fmin(q->clients, q->seqs_max), waves = ceil(q->clients / wave);
    double together = fmin(wave, fmax(1, floor(l->chunks_max)));
    double prefill =
        q->prompt > 0 ? wave / together * l->chunk.count * step_s(l, 0, together, NULL) : 0;
    out->itl_s = l->decodes_g > 0 ? step_s(l, wave, 0, &out->bound) : 0;
    double service = prefill + l->decodes_g * out->itl_s;
    out->prefill_s = prefill;
    out->wait_s = (waves - 1) / 2 * service;
    out->ttft_s = q->host_s + out->wait_s + prefill;
    out->rate = q->clients / (q->host_s + waves * service);
    out->running = wave;
    out->waiting = q->clients - wave;
    out->decode_step_s = out->itl_s;
    out->rounds = 1;
}

void plm_loop_solve(const plm_loop_query *q, plm_loop *out)
{
    assert(q->clients >= 1 && q->seqs_max >= 1 && q->gen >= 1 && q->prompt >= 0);
    memset(out, 0, sizeof *out);
    double m = fmin(q->clients, q->seqs_max);
    double budget = fmax(q->budget - m, fmin(q->budget, 1));
    loop l = {.q = q, .others = m - 1, .decodes_g = q->gen - 1};
    if (q->static_batch) /* no decodes beside the prompts */
        budget = q->budget;
    l.chunk = plm_chunks_of(q->prompt, budget, q->whole_prompts);
    l.chunks_max = l.chunk.tokens > 0 ? fmax(1, budget / l.chunk.tokens) : 1;
    if (q->static_batch) {
        solve_static(&l, out);
        return;
    }
    if (l.decodes_g <= 0) {
        solve_prefill_only(&l, out);
        out->ttft_s = q->clients / out->rate;
        out->wait_s = fmax(0, out->ttft_s - out->prefill_s - q->host_s);
        out->waiting = q->clients - m;
        return;
    }
    state s = {.itl = step_s(&l, m, 0, NULL)};
    s.prefill = l.chunk.count > 0 ? l.chunk.count * step_s(&l, m - 1, 1, NULL) : 0;
    double damping = 1, last = INFINITY;
    for (out->rounds = 1; out->rounds < ROUNDS_MAX; out->rounds++) {
        state n = next_state(&l, &s);
        double before = cycle_of(&l, &s), after = cycle_of(&l, &n);
        double change = fabs(after - before) / before + fabs(n.itl - s.itl) / s.itl;
        if (change > 0.7 * last) /* not closing in fast enough: smaller steps */
            damping = fmax(0.2, 0.7 * damping);
        last = change;
        n.itl = s.itl + damping * (n.itl - s.itl);
        n.prefill = s.prefill + damping * (n.prefill - s.prefill);
        n.queue = s.queue + damping * (n.queue - s.queue);
        s = n;
        if (change < TOLERANCE)
            break;
    }
    if (q->bunch > 0)
        meet_bunches(&l, &s);
    else
        meet_bursts(&l, &s);
    double cycle = cycle_of(&l, &s);
    out->itl_s = s.itl;
    out->rate = m / cycle;
    out->waiting = q->clients - m;
    out->wait_s = s.queue + out->waiting / out->rate;
    out->prefill_s = s.prefill;
    out->ttft_s = q->host_s + out->wait_s + s.prefill;
    out->running = m;
    out->decode_step_s = s.decode_step;
    out->mixed_step_s = s.mixed_step;
    out->chunk_share = s.share;
    name_bound(&l, q, out);
}
