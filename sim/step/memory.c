/* memory.c - the memory ledger: what an engine puts on the fullest device, and what it leaves.
**
** Three rules cover the engines (plm_memory_rule): all parts must fit (llama.cpp, ollama, MLX); the
** KV pool is a fraction of the whole less the rest, captured graphs outside that fraction
** (vLLM; issues 11251 and 17549); the KV pool is a fraction of what the rest leaves free
** (TensorRT-LLM). Activation memory is given by the caller for its prefill chunk, so a longer
** context may fit where a shorter, unchunked one does not (vLLM issue 10517). Pure, thread-safe.
*/
#include "sim/step/memory.h"

#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"

/* Largest figure of a part, 2^60 bytes: sums of a few of them stay inside int64. */
#define PART_MAX (INT64_C(1) << 60)

int64_t plm_kv_blocks(int64_t budget_bytes, int64_t bytes_per_token, int64_t block)
{
    int64_t each;
    if (budget_bytes <= 0 || bytes_per_token <= 0 || block <= 0 ||
        !plm_mul_i64(bytes_per_token, block, &each))
        return 0;
    return budget_bytes / each;
}

static plm_status fail_part(const char *what, plm_error *err)
{
    return plm_fail(err, PLM_E_INVALID,
                    "memory ledger, %s: negative or past 2^60 bytes; check the query", what);
}

/* A figure of a record as bytes. */
static plm_status read_bytes(double value, const char *what, int64_t *out, plm_error *err)
{
    if (!(value >= 0.0) || value > (double)PART_MAX)
        return fail_part(what, err);
    *out = (int64_t)value;
    return PLM_OK;
}

static plm_status check_query(const plm_ledger_query *q, plm_error *err)
{
    const struct {
        const char *name;
        int64_t value;
    } part[] = {{"weights", q->weights_bytes},
                {"embedding", q->embed_bytes},
                {"activations", q->activation_bytes},
                {"context tokens", q->context_tokens},
                {"batch", q->batch}};
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        if (part[i].value < 0 || part[i].value > PART_MAX)
            return fail_part(part[i].name, err);
    if (q->embed_bytes > q->weights_bytes)
        return plm_fail(err, PLM_E_INVALID,
                        "memory ledger, embedding: larger than the weights; check the query");
    if (q->par.pp < 1 || q->par.pp > q->arch->layers || q->par.tp < 1 || q->par.dp < 1 ||
        q->par.cp < 1)
        return plm_fail(err, PLM_E_INVALID,
                        "memory ledger, plan: tp %d pp %d dp %d cp %d of %d layers is none; check "
                        "it first",
                        q->par.tp, q->par.pp, q->par.dp, q->par.cp, q->arch->layers);
    return PLM_OK;
}

/* The engine's ways with the cache. */
static plm_kv_options cache_options(const plm_ledger_query *q)
{
    const plm_profile *p = q->prof;
    return (plm_kv_options){
        .k = q->kv_k,
        .v = q->kv_v,
        .tp = q->par.tp,
        .cp = q->par.cp,
        .mla_expanded = !p->absorb_mla,
        .window_slack = p->window_slack < 0 ? p->ubatch : p->window_slack,
        .window_pad = p->kv_pad,
        .windows_full = p->windows_full,
        .tail_bytes = (int32_t)p->tail_bytes,
        .index_cache = true,
    };
}

/* Tokens by which the space of a sequence grows. */
static int64_t token_step(const plm_profile *p)
{
    return plm_max_i64(1, p->kv_block > 0 ? p->kv_block : p->kv_pad);
}

static bool round_up(int64_t n, int64_t step, int64_t *out)
{
    return plm_mul_i64(plm_ceil_div(n, step), step, out);
}

/* What one sequence of the asked context takes on the fullest stage. */
typedef struct sequence {
    plm_kv_options o; /* of that stage */
    int64_t kv_bytes, state_bytes;
} sequence;

static plm_status fullest_stage(const plm_ledger_query *q, int64_t tokens, sequence *out,
                                plm_error *err)
{
    *out = (sequence){.kv_bytes = -1};
    for (int32_t s = 0; s < q->par.pp; s++) {
        plm_kv_options o = cache_options(q);
        int64_t kv, state;
        plm_parallel_stage(q->arch, &q->par, s, &o.first_layer, &o.n_layers);
        PLM_TRY(plm_kv_bytes(q->arch, &o, tokens, &kv, NULL, NULL, err));
        PLM_TRY(plm_state_bytes(q->arch, &o, &state, err));
        if (kv > PART_MAX || state > PART_MAX)
            return fail_part("KV cache of a sequence", err);
        if (out->kv_bytes < 0 || kv + state > out->kv_bytes + out->state_bytes)
            *out = (sequence){o, kv, state};
    }
    return PLM_OK;
}

/* Parts that do not depend on the batch. A tied table stays on the device as the head. */
static plm_status fixed_parts(const plm_ledger_query *q, plm_ledger *l, plm_error *err)
{
    const plm_profile *p = q->prof;
    bool host = p->embed_on_host && strcmp(q->dev->cls, "cpu") != 0;
    PLM_TRY(read_bytes(q->dev->memory_bytes, "device memory", &l->capacity_bytes, err));
    PLM_TRY(read_bytes(p->graph_bytes, "captured graphs", &l->graph_bytes, err));
    PLM_TRY(read_bytes(p->context_bytes, "runtime context", &l->context_bytes, err));
    PLM_TRY(read_bytes(p->reserve_bytes, "reserve", &l->reserve_bytes, err));
    l->weights_bytes = q->weights_bytes;
    l->activation_bytes = q->activation_bytes;
    if (host) {
        l->embed_host_bytes = q->embed_bytes;
        if (!q->arch->tied_head)
            l->weights_bytes -= q->embed_bytes;
    }
    l->overhead_bytes = l->graph_bytes + l->context_bytes + l->reserve_bytes;
    return PLM_OK;
}

/* Usable memory, and what the rule leaves of it for KV and state (may be negative). */
static plm_status apply_rule(const plm_ledger_query *q, plm_ledger *l, int64_t *room,
                             plm_error *err)
{
    const plm_profile *p = q->prof;
    int64_t rest = l->weights_bytes + l->activation_bytes + l->context_bytes + l->reserve_bytes;
    int64_t base = l->capacity_bytes;
    if (q->dev->memory_limit_bytes > 0.0 && q->dev->memory_limit_bytes < (double)base)
        base = (int64_t)q->dev->memory_limit_bytes;
    if (p->memory_rule != PLM_MEMORY_ALL &&
        (!(p->memory_fraction > 0.0) || p->memory_fraction > 1.0))
        return plm_fail(err, PLM_E_INVALID,
                        "memory ledger, fraction %g: outside (0, 1]; give a share such as 0.9",
                        p->memory_fraction);
    switch (p->memory_rule) {
    case PLM_MEMORY_ALL:
        l->usable_bytes = base;
        *room = base - rest - l->graph_bytes;
        break;
    case PLM_MEMORY_FRACTION:
        l->usable_bytes = (int64_t)(p->memory_fraction * (double)base);
        *room = l->usable_bytes - rest;
        break;
    case PLM_MEMORY_FREE: {
        int64_t left = base - rest - l->graph_bytes;
        *room = left > 0 ? (int64_t)(p->memory_fraction * (double)left) : left;
        l->usable_bytes = left > 0 ? base - (left - *room) : base;
        break;
    }
    }
    return PLM_OK;
}

/* What is short, and fits when nothing is. */
static void name_limit(const plm_profile *p, int64_t room, plm_ledger *l)
{
    int64_t graphs = p->memory_rule == PLM_MEMORY_FRACTION ? 0 : l->graph_bytes;
    int64_t rest = l->context_bytes + l->reserve_bytes + graphs;
    const char *name = "";
    if (l->weights_bytes + rest > l->usable_bytes)
        name = "weights";
    else if (l->weights_bytes + rest + l->activation_bytes > l->usable_bytes)
        name = "activation";
    else if (room <= 0 || l->kv_bytes + l->state_bytes > room)
        name = "kv";
    else if (p->memory_rule == PLM_MEMORY_FRACTION &&
             l->usable_bytes + l->graph_bytes > l->capacity_bytes)
        name = "graphs"; /* captured after the pool was taken, from the share left over */
    snprintf(l->limit, sizeof l->limit, "%s", name);
    l->fits = name[0] == '\0';
}

/* Longest single sequence in `room` bytes, whole blocks, no longer than the model was made for. */
static plm_status longest_context(const plm_ledger_query *q, const sequence *one, int64_t room,
                                  int64_t *tokens, plm_error *err)
{
    int64_t step = token_step(q->prof);
    *tokens = 0;
    if (room < one->state_bytes)
        return PLM_OK;
    PLM_TRY(plm_kv_max_tokens(q->arch, &one->o, room - one->state_bytes, tokens, err));
    *tokens -= *tokens % step;
    if (q->arch->max_context > 0)
        *tokens = plm_min_i64(*tokens, q->arch->max_context);
    return PLM_OK;
}

/* Blocks of the pool; the pool itself becomes whole blocks. */
static void cut_pool(const plm_profile *p, int64_t room, plm_ledger *l)
{
    int64_t each = 0;
    if (p->memory_rule == PLM_MEMORY_ALL) {
        l->kv_pool_bytes = l->kv_bytes;
        return;
    }
    l->kv_pool_bytes = plm_max_i64(0, room);
    l->kv_blocks = plm_kv_blocks(room, l->kv_bytes_per_token, p->kv_block);
    if (l->kv_blocks > 0 && plm_mul_i64(l->kv_bytes_per_token, p->kv_block, &each))
        l->kv_pool_bytes = l->kv_blocks * each;
}

plm_status plm_ledger_make(const plm_ledger_query *q, plm_ledger *out, plm_error *err)
{
    plm_ledger l = {0};
    sequence one;
    int64_t room = 0, tokens, seqs, each;
    PLM_TRY(check_query(q, err));
    PLM_TRY(fixed_parts(q, &l, err));
    if (!round_up(q->context_tokens, token_step(q->prof), &tokens))
        return fail_part("context tokens", err);
    PLM_TRY(fullest_stage(q, tokens, &one, err));
    PLM_TRY(plm_kv_bytes_per_token(q->arch, &one.o, &l.kv_bytes_per_token, err));
    seqs = plm_ceil_div(q->batch, q->par.dp);
    if (!plm_mul_i64(one.kv_bytes, seqs, &l.kv_bytes) ||
        !plm_mul_i64(one.state_bytes, seqs, &l.state_bytes) || l.kv_bytes > PART_MAX ||
        l.state_bytes > PART_MAX)
        return fail_part("KV cache of the batch", err);
    PLM_TRY(apply_rule(q, &l, &room, err));
    l.total_bytes = l.weights_bytes + l.kv_bytes + l.state_bytes + l.activation_bytes +
                    l.overhead_bytes;
    cut_pool(q->prof, room, &l);
    name_limit(q->prof, room, &l);
    PLM_TRY(longest_context(q, &one, room, &l.max_context_tokens, err));
    each = one.kv_bytes + one.state_bytes;
    if (room > 0 && each > 0)
        l.max_batch = room / each * q->par.dp;
    *out = l;
    return PLM_OK;
}
