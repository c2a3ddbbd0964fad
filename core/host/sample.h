/* sample.h - from logits to a token. */
#ifndef PLM_HOST_SAMPLE_H
#define PLM_HOST_SAMPLE_H
#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"

typedef struct plm_sampling {
    double temperature; /* 0 = greedy: the greatest logit, the lowest id of equals */
    int64_t top_k;      /* the k greatest stay, 0 = all */
    double top_p;       /* the fewest whose probabilities sum to top_p or more stay; 1 (or 0) = all */
    uint64_t seed;
} plm_sampling;

typedef struct plm_sampler {
    plm_sampling how;
    uint64_t state;  /* splitmix64 */
    int32_t *order;  /* [n] scratch */
    double *weight;
    int64_t room;
} plm_sampler;

/* PLM_E_INVALID for a negative or non-finite temperature, top_p outside 0 .. 1, top_k below 0. */
plm_status plm_sampler_init(plm_sampler *s, const plm_sampling *how, plm_error *err) PLM_MUST_USE;
void plm_sampler_fini(plm_sampler *s);
/* Token for n logits. Order of the filters: temperature, top_k, top_p, as llama.cpp and transformers
** agree on for these three. The same seed, logits and calls give the same tokens on every machine whose
** exp rounds alike. PLM_E_INVALID when no logit is a number. */
plm_status plm_sampler_pick(plm_sampler *s, const float *logits, int64_t n, int32_t *token,
                            plm_error *err) PLM_MUST_USE;

#endif
