/* steady.h - the closed loop apart from what a step costs: N clients, each asking for `gen` tokens
** after a prompt, over an engine that mixes prefill chunks into decode steps. The cost of a step is
*a
** function, so the loop can be tested against closed forms. Internal to sim/plan. */
#ifndef PLM_SIM_STEADY_H
#define PLM_SIM_STEADY_H
#include "sim/plan/predict.h"

/* One step of an engine: `decodes` sequences at `context` tokens each make one token; beside them
** `chunks` prompts add chunk_tokens tokens each after chunk_offset cached ones. Any part may be 0.
 */
typedef struct plm_mix {
    int64_t decodes, context;
    int64_t chunks, chunk_tokens, chunk_offset;
} plm_mix;
/* Seconds of the step; *bound (may be NULL) what bound it. Pure. */
typedef double (*plm_mix_fn)(const void *ctx, const plm_mix *m, plm_bound *bound);

typedef struct plm_loop_query {
    plm_mix_fn step;
    const void *ctx;
    double prompt, gen; /* tokens, prompt >= 0, gen >= 1 */
    double clients;     /* >= 1 */
    double seqs_max;    /* sequences that run at once, >= 1 (KV capacity, engine limit) */
    double budget;      /* tokens of a step, prefill and decode together */
    double host_s;      /* of a request before its prefill: client side */
    double burst_share; /* of requests that come all at once, in step (0 = none) */
    double bunch;       /* requests that always come together, one after the other; 0 = none */
    bool whole_prompts; /* the engine does not chunk: a prompt is one chunk */
    bool static_batch;  /* all start together and prefill before they decode */
} plm_loop_query;

typedef struct plm_loop {
    double ttft_s, itl_s, rate;         /* client side means; requests/s */
    double prefill_s, wait_s;           /* own chunks through mixed steps; queue before them */
    double running, waiting;            /* mean sequences that hold KV, and that wait for it */
    double decode_step_s, mixed_step_s; /* steps without and with chunks, for what binds */
    double chunk_share;                 /* of steps that hold a chunk */
    plm_bound bound;                    /* of the time-weighted greater kind of step */
    int rounds;
} plm_loop;

/* Fixed point; deterministic, at most 60 rounds of at most three step evaluations. */
void plm_loop_solve(const plm_loop_query *q, plm_loop *out);

/* Step times of an instance of n_stage pipeline stages as a plm_mix_fn. overlap > 1: that many
** micro-batches fill the pipeline, and a micro-batch's next step begins when the slowest stage has
** served all: max(sum over stages, overlap * slowest stage). */
typedef struct plm_stages {
    const plm_program *const *program;
    const plm_machine *first, *rest; /* rest: no step overhead, which the pipeline pays once */
    int32_t n_stage;
    double overlap;
    double experts, top_k, ep; /* for the load of the busiest expert rank; ep <= 1 = none */
    double dp;                 /* ranks whose tokens the expert ranks share */
} plm_stages;
double plm_stages_step(const void *stages, const plm_mix *m, plm_bound *bound);
/* The same for any batch; sums into *out, time of the slowest stage into *slowest_s (both may be
** NULL). */
double plm_stages_time(const plm_stages *s, const plm_batch *b, plm_step *out, double *slowest_s);
/* An engine whose usual split over devices is by layers, one stream at a time. */
bool plm_layer_split(const plm_profile *p);
/* Copy of m whose steps cost no step and sequence overhead. */
plm_machine plm_machine_rest(const plm_machine *m);

/* Mean offset and size of the chunks that `prompt` tokens are cut into by a budget. */
typedef struct plm_chunks {
    double count, tokens, offset;
} plm_chunks;
plm_chunks plm_chunks_of(double prompt, double budget, bool whole);

#endif
