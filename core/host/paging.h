/* paging.h - the KV cache in blocks: which slots hold which positions of which sequence.
**
** A block is block_tokens slots. Sequences that were forked share blocks; who writes to a shared one gets
** a copy of it first (copy-on-write). Pure bookkeeping: the caller copies the bytes. One thread. */
#ifndef PLM_HOST_PAGING_H
#define PLM_HOST_PAGING_H
#include <stdbool.h>

#include "core/base/status.h"

#define PLM_PAGING_SEQS_MAX 65536
#define PLM_PAGING_BLOCKS_MAX (1 << 26)

typedef struct plm_paged_seq {
    bool open;
    int64_t tokens;   /* positions 0 .. tokens - 1 are in the cache */
    int32_t *block;   /* [blocks_max] of the cache, by position / block_tokens */
    int64_t n_blocks;
} plm_paged_seq;

typedef struct plm_paging {
    int64_t block_tokens, n_blocks, max_seqs;
    int32_t *refs;  /* by block: sequences that hold it */
    int32_t *free_list; /* the next to be given out is the last */
    int64_t n_free;
    plm_paged_seq *seq; /* by id */
} plm_paging;

/* order: the blocks in the order in which they are given out at first, a permutation; NULL = 0, 1, 2 ..
** Heap; fini also after a failure. */
plm_status plm_paging_init(plm_paging *p, int64_t n_blocks, int64_t block_tokens, int64_t max_seqs,
                           const int32_t *order, plm_error *err) PLM_MUST_USE;
void plm_paging_fini(plm_paging *p);

/* A new sequence, empty. PLM_E_LIMIT when max_seqs are open. */
plm_status plm_paging_open(plm_paging *p, int32_t *id, plm_error *err) PLM_MUST_USE;
/* A new sequence with the first `tokens` positions of another, in the same blocks. */
plm_status plm_paging_fork(plm_paging *p, int32_t from, int64_t tokens, int32_t *id,
                           plm_error *err) PLM_MUST_USE;
void plm_paging_close(plm_paging *p, int32_t id);
/* Forgets the positions from `tokens` on. */
void plm_paging_truncate(plm_paging *p, int32_t id, int64_t tokens);

/* Blocks for n more positions, none of them shared. When the first must be copied, *from and *to name
** the blocks, else both are -1. Nothing is changed after a failure: PLM_E_LIMIT when blocks are short. */
plm_status plm_paging_reserve(plm_paging *p, int32_t id, int64_t n, int32_t *from, int32_t *to,
                              plm_error *err) PLM_MUST_USE;
/* The n positions are in the cache now. */
void plm_paging_advance(plm_paging *p, int32_t id, int64_t n);
/* Slot of a position that has a block. */
int64_t plm_paging_slot(const plm_paging *p, int32_t id, int64_t position);
bool plm_paging_is_open(const plm_paging *p, int32_t id);

#endif
