/* paging.c - blocks of the KV cache. */
#include "core/host/paging.h"

#include <string.h>

#include "core/base/mem.h"

plm_status plm_paging_init(plm_paging *p, int64_t n_blocks, int64_t block_tokens, int64_t max_seqs,
                           const int32_t *order, plm_error *err)
{
    *p = (plm_paging){0};
    if (n_blocks < 0 || n_blocks > PLM_PAGING_BLOCKS_MAX || block_tokens < 1 ||
        block_tokens > PLM_PAGING_BLOCKS_MAX || max_seqs < 1 || max_seqs > PLM_PAGING_SEQS_MAX)
        return plm_fail(err, PLM_E_LIMIT, "KV cache: %lld blocks of %lld tokens for %lld sequences is "
                        "out of range; ask for less", (long long)n_blocks, (long long)block_tokens,
                        (long long)max_seqs);
    p->block_tokens = block_tokens;
    p->max_seqs = max_seqs;
    p->refs = plm_calloc((size_t)n_blocks + 1, sizeof *p->refs);
    p->free_list = plm_calloc((size_t)n_blocks + 1, sizeof *p->free_list);
    p->seq = plm_calloc((size_t)max_seqs, sizeof *p->seq);
    if (p->refs == NULL || p->free_list == NULL || p->seq == NULL)
        return plm_fail_memory(err, "blocks of the KV cache");
    p->n_blocks = p->n_free = n_blocks;
    for (int64_t i = 0; i < n_blocks; i++)
        p->free_list[n_blocks - 1 - i] = order != NULL ? order[i] : (int32_t)i;
    return PLM_OK;
}

void plm_paging_fini(plm_paging *p)
{
    for (int64_t i = 0; p->seq != NULL && i < p->max_seqs; i++)
        plm_free(p->seq[i].block);
    plm_free(p->seq);
    plm_free(p->refs);
    plm_free(p->free_list);
    *p = (plm_paging){0};
}

bool plm_paging_is_open(const plm_paging *p, int32_t id)
{
    return id >= 0 && id < p->max_seqs && p->seq[id].open;
}

plm_status plm_paging_open(plm_paging *p, int32_t *id, plm_error *err)
{
    int32_t i = 0;
    while (i < p->max_seqs && p->seq[i].open)
        i++;
    if (i == p->max_seqs)
        return plm_fail(err, PLM_E_LIMIT, "sequences: all %lld are in use; close one or allow more",
                        (long long)p->max_seqs);
    if (p->seq[i].block == NULL)
        p->seq[i].block = plm_calloc((size_t)p->n_blocks + 1, sizeof *p->seq[i].block);
    if (p->seq[i].block == NULL)
        return plm_fail_memory(err, "blocks of a sequence");
    p->seq[i].open = true;
    p->seq[i].tokens = p->seq[i].n_blocks = 0;
    *id = i;
    return PLM_OK;
}

static void release(plm_paging *p, int32_t block)
{
    if (--p->refs[block] == 0)
        p->free_list[p->n_free++] = block;
}

static int32_t take(plm_paging *p)
{
    int32_t block = p->free_list[--p->n_free];
    p->refs[block] = 1;
    return block;
}

plm_status plm_paging_fork(plm_paging *p, int32_t from, int64_t tokens, int32_t *id, plm_error *err)
{
    if (!plm_paging_is_open(p, from) || tokens < 0 || tokens > p->seq[from].tokens)
        return plm_fail(err, PLM_E_INVALID, "sequence %d: has no %lld positions to share; check the "
                        "prefix", from, (long long)tokens);
    PLM_TRY(plm_paging_open(p, id, err));
    plm_paged_seq *a = &p->seq[from], *b = &p->seq[*id];
    b->tokens = tokens;
    b->n_blocks = plm_ceil_div(tokens, p->block_tokens);
    for (int64_t i = 0; i < b->n_blocks; i++) {
        b->block[i] = a->block[i];
        p->refs[b->block[i]]++;
    }
    return PLM_OK;
}

void plm_paging_truncate(plm_paging *p, int32_t id, int64_t tokens)
{
    if (!plm_paging_is_open(p, id) || tokens < 0 || tokens > p->seq[id].tokens)
        return;
    plm_paged_seq *s = &p->seq[id];
    int64_t keep = plm_ceil_div(tokens, p->block_tokens);
    while (s->n_blocks > keep)
        release(p, s->block[--s->n_blocks]);
    s->tokens = tokens;
}

void plm_paging_close(plm_paging *p, int32_t id)
{
    plm_paging_truncate(p, id, 0);
    if (!plm_paging_is_open(p, id))
        return;
    while (p->seq[id].n_blocks > 0) /* reserved and never filled */
        release(p, p->seq[id].block[--p->seq[id].n_blocks]);
    p->seq[id].open = false;
}

plm_status plm_paging_reserve(plm_paging *p, int32_t id, int64_t n, int32_t *from, int32_t *to,
                              plm_error *err)
{
    *from = *to = -1;
    if (!plm_paging_is_open(p, id) || n < 0)
        return plm_fail(err, PLM_E_INVALID, "sequence %d: not open; open it first", id);
    plm_paged_seq *s = &p->seq[id];
    int64_t end, first = s->tokens / p->block_tokens;
    if (!plm_add_i64(s->tokens, n, &end))
        end = INT64_MAX;
    int64_t need = plm_ceil_div(end, p->block_tokens);
    bool shared = n > 0 && first < s->n_blocks && p->refs[s->block[first]] > 1;
    int64_t fresh = plm_max_i64(0, need - s->n_blocks) + (shared ? 1 : 0);
    if (fresh > p->n_free || need > p->n_blocks)
        return plm_fail(err, PLM_E_LIMIT, "KV cache, sequence %d of %lld tokens: %lld blocks of %lld "
                        "are free; allow a longer context or close a sequence", id, (long long)end,
                        (long long)p->n_free, (long long)p->n_blocks);
    if (shared) {
        *from = s->block[first];
        *to = take(p);
        release(p, *from);
        s->block[first] = *to;
    }
    while (s->n_blocks < need)
        s->block[s->n_blocks++] = take(p);
    return PLM_OK;
}

void plm_paging_advance(plm_paging *p, int32_t id, int64_t n)
{
    p->seq[id].tokens += n;
}

int64_t plm_paging_slot(const plm_paging *p, int32_t id, int64_t position)
{
    int32_t block = p->seq[id].block[position / p->block_tokens];
    return (int64_t)block * p->block_tokens + position % p->block_tokens;
}
