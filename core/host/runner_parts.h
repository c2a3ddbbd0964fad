/* runner_parts.h - what the files of the executor share. Private to core/host.
**
** runner.c: sequences and steps. runner_bind.c: memory, weights, compilation. */
#ifndef PLM_HOST_RUNNER_PARTS_H
#define PLM_HOST_RUNNER_PARTS_H
#include "core/host/flat.h"
#include "core/host/runner.h"

/* An input of the graph: what the host fills it from, its buffer and its place in the staging area. */
typedef enum runner_input_kind {
    RUNNER_IDS, RUNNER_POSITIONS, RUNNER_ROWS, RUNNER_ONES, RUNNER_FACTORS, RUNNER_INPUT_KINDS
} runner_input_kind;

struct plm_runner {
    const plm_arch *arch;
    const plm_graph *g;
    plm_opened *dev;
    plm_memory_plan plan;
    plm_flat flat;
    plm_flat_binding *layout; /* by value */
    plm_backend_binding *bind; /* by slot */
    plm_backend_buffer **buffer;
    size_t n_buffers, room_buffers;
    plm_weight *held; /* weights whose memory the device reads */
    size_t n_held;
    plm_backend_exec *exec;
    plm_paging paging;
    bool *fresh;      /* by sequence: its rows of the states hold an earlier one's */
    bool has_state;
    plm_runner_memory memory;
    int64_t top_k, max_t, max_s, max_r, vocab;
    plm_value_id input[RUNNER_INPUT_KINDS], logits;
    bool all_logits;
    /* of the step, at the bounds */
    int32_t *token; /* ids, positions, rows, token_seq, token_slot: [5][T] */
    int32_t *seq;   /* seq_token [S+1], seq_past, seq_row [S] */
    int32_t *block; /* [S][blocks] */
    int64_t block_stride;
    int64_t *dim;
    float *out;     /* [R][vocab] */
    unsigned char *raw; /* one row of logits as stored */
    float *extra;   /* index_ones, rope_factors */
    int64_t extra_n;
    int64_t rows;
    uint64_t *node_ns;
};

/* Plans, binds, compiles, prepares. */
plm_status runner_bind(plm_runner *r, const plm_weight_source *weights, plm_error *err) PLM_MUST_USE;
void runner_unbind(plm_runner *r);

#endif
