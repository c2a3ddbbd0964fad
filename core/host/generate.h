/* generate.h - a prompt through the executor, then token by token. */
#ifndef PLM_HOST_GENERATE_H
#define PLM_HOST_GENERATE_H
#include "core/host/runner.h"
#include "core/host/sample.h"

typedef struct plm_generate_options {
    const int32_t *prompt;
    int64_t n_prompt; /* >= 1 */
    int64_t most;     /* tokens to generate at most */
    int64_t piece;    /* prompt tokens of a step, 0 = as many as the executor takes */
    plm_sampling sampling;
    void *ctx;
    /* A token that was generated; false ends the run (it counts as generated). May be NULL. */
    bool (*token)(void *ctx, int32_t id);
    /* Logits of the next `rows` prompt positions; NULL = not wanted (else the graph must make them all).
    ** A status that is not PLM_OK ends the run. */
    plm_status (*logits)(void *ctx, const float *x, int64_t rows, int64_t vocab, plm_error *err);
} plm_generate_options;

typedef struct plm_generated {
    int64_t prompt_tokens, tokens, steps; /* steps: decode steps that were timed */
    double prefill_s, decode_s;
} plm_generated;

/* Runs one sequence to its end. The times are those of the clock around the steps, sampling included. */
plm_status plm_generate(plm_runner *r, const plm_generate_options *o, plm_generated *out,
                        plm_error *err) PLM_MUST_USE;

#endif
