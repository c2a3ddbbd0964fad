/* runner.h - the executor: a graph bound to weights on a device, and steps of several sequences.
**
** Memory is planned once at the bounds of the graph's symbols (build.h: max_tokens, max_seqs, max_slots)
** and nothing grows afterwards: activations (plm_memory_plan), KV cache, recurrent states, inputs. What
** plm_runner_memory says is what was asked of the device, and equals what the graph predicts.
**
** A step takes any mix of prompts, pieces of prompts and single tokens, one part a sequence. Sequences are
** numbers from plm_runner_open; a fork shares the cache of another until either writes to a shared block.
** One thread a runner. */
#ifndef PLM_HOST_RUNNER_H
#define PLM_HOST_RUNNER_H
#include "core/host/open.h"
#include "core/host/paging.h"
#include "core/model/weights.h"

/* Where weights come from. get: the weight of that name and shape, which must have the storage type the
** graph says; what it points to must last as long as the runner. The runner releases it. */
typedef struct plm_weight_source {
    void *ctx;
    plm_status (*get)(void *ctx, const char *name, uint32_t rank, const int64_t *dim, plm_dtype dtype,
                      plm_weight *out, plm_error *err);
} plm_weight_source;
/* The weights of files (core/model/weights.h). */
plm_weight_source plm_weight_source_files(plm_weights *w);

typedef struct plm_runner_options {
    int64_t block_tokens;       /* slots of a block, 0 = 16 */
    const int32_t *block_order; /* order in which blocks are given out, NULL = as they lie */
    bool node_times;            /* measure each node */
} plm_runner_options;

/* In bytes, as asked of the device. */
typedef struct plm_runner_memory {
    int64_t weights_bytes, kv_bytes, state_bytes, activation_bytes, input_bytes;
    int64_t packed_bytes, scratch_bytes; /* of the backend itself */
    int64_t params;                      /* elements of the weights */
} plm_runner_memory;

typedef enum plm_wanted { PLM_WANT_NONE, PLM_WANT_LAST, PLM_WANT_ALL } plm_wanted;
/* Tokens of one sequence in a step. */
typedef struct plm_part {
    int32_t seq;
    const int32_t *ids;
    int64_t n;         /* >= 1 */
    plm_wanted logits; /* of no token, its last one here, or all (a graph built with all_logits) */
} plm_part;

typedef struct plm_runner plm_runner;

/* g: built for one device, stamped with the types of the weights, bounds set; it must outlive the runner,
** as must dev. arch: of the same model. PLM_E_UNSUPPORTED names what the runner or the backend cannot do,
** PLM_E_NO_MEMORY what did not fit. */
plm_status plm_runner_create(const plm_arch *arch, const plm_graph *g, plm_opened *dev,
                             const plm_weight_source *weights, const plm_runner_options *o,
                             plm_runner **out, plm_error *err) PLM_MUST_USE;
void plm_runner_destroy(plm_runner *r);
const plm_runner_memory *plm_runner_memory_of(const plm_runner *r);

plm_status plm_runner_open(plm_runner *r, int32_t *seq, plm_error *err) PLM_MUST_USE;
/* A sequence that begins with the first `tokens` tokens of another, without computing them again. A model
** with recurrent state can only be forked where it stands: at all of its tokens. */
plm_status plm_runner_fork(plm_runner *r, int32_t from, int64_t tokens, int32_t *seq,
                           plm_error *err) PLM_MUST_USE;
void plm_runner_close(plm_runner *r, int32_t seq);
/* Most tokens of a step. */
int64_t plm_runner_step_tokens(const plm_runner *r);
int64_t plm_runner_tokens(const plm_runner *r, int32_t seq);

/* Runs the parts, of different sequences, in one step; their sum may not exceed max_tokens. After a
** failure the sequences stand where they stood, but recurrent state may have moved: close those. */
plm_status plm_runner_step(plm_runner *r, const plm_part *parts, size_t n, plm_error *err)
    PLM_MUST_USE;
/* Logits of the last step, [rows][vocab], rows in order of the parts and, in one, of its tokens. Valid
** until the next step. */
const float *plm_runner_logits(const plm_runner *r, int64_t *rows, int64_t *vocab);
/* Nanoseconds of each node in the last step, [n_nodes of the graph]; NULL unless asked for. */
const uint64_t *plm_runner_node_ns(const plm_runner *r);

#endif
