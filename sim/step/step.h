/* step.h - the cost program: a graph folded to its distinct nodes, evaluated for a batch. */
#ifndef PLM_SIM_STEP_H
#define PLM_SIM_STEP_H
#include "core/model/build.h"
#include "sim/device/cost.h"

typedef struct plm_program plm_program;
/* Fuses (profile->fuse) and folds equal nodes with a multiplicity. Keeps g's arrays: the program
** takes the graph over (g is left empty) and frees it. */
plm_status plm_program_create(plm_graph *g, uint64_t fuse, int32_t top_k, plm_program **out,
                              plm_error *err) PLM_MUST_USE;
void plm_program_destroy(plm_program *p);

typedef struct plm_step {
    double time_s;                  /* kernels + launches + step overhead */
    double part_s[PLM_BOUND_COUNT]; /* time of ops bound by each */
    double flop, bytes, exp, link_bytes;
    plm_bound bound;                /* the greatest part */
} plm_step;
/* Thread-safe: scratch on the stack. Under 2 us warm for Llama-70B. The machine's profile must be
** the one whose fuse mask made the program. */
void plm_step_time(const plm_program *p, const plm_machine *m, const plm_batch *b, plm_step *out);

/* Per-op rows of a step, for explain: same arithmetic, rows grouped by op and role. */
typedef struct plm_step_row {
    char name[64];
    double count, flop, bytes, exp, time_s;
    plm_bound bound;
} plm_step_row;
size_t plm_step_rows(const plm_program *p, const plm_machine *m, const plm_batch *b,
                     plm_step_row *rows, size_t max);
/* Facts of the graph the program was made from. */
int64_t plm_program_weight_bytes(const plm_program *p);
int64_t plm_program_embed_bytes(const plm_program *p);
int64_t plm_program_activation_bytes(const plm_program *p); /* memory plan at the bounds */
size_t plm_program_rows(const plm_program *p);              /* distinct nodes */
#endif
