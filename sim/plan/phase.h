/* phase.h - times of a whole prefill and of a run of decode steps. Internal to sim/plan. */
#ifndef PLM_SIM_PHASE_H
#define PLM_SIM_PHASE_H
#include "sim/plan/config.h"

/* Prefill of `prompt` tokens of each of `batch` sequences after `depth` cached ones, in steps of
*the
** engine's ubatch tokens; logits only where a prompt ends. step: the mean one. */
void plm_phase_prefill(const plm_config *c, int64_t prompt, int64_t depth, int64_t batch,
                       plm_phase *out);
/* `gen` single-token steps of `batch` sequences that start at `depth` tokens: the mean of them, by
** Simpson's rule over first, middle and last (exact where a step is linear in its context). */
void plm_phase_decode(const plm_config *c, int64_t depth, int64_t gen, int64_t batch,
                      plm_phase *out);
/* Sequences of one rank: attention data parallel ranks share them out. */
int64_t plm_phase_sequences(const plm_config *c, int64_t batch);

#endif
