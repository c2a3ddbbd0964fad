/* runner.c - the executor: sequences, and steps over them. */
#include <string.h>

#include "core/base/mem.h"
#include "core/host/runner_parts.h"
#include "core/ir/codec.h"

/* ---- creation ---- */

/* Rows of the logits, and whether the graph makes them for all tokens. */
static plm_status find_logits(plm_runner *r, plm_error *err)
{
    const plm_graph *g = r->g;
    for (size_t i = 0; i < g->n_outputs; i++) {
        const plm_value *v = &g->values[g->outputs[i]];
        if (v->name != NULL && strcmp(v->name, "logits") == 0 && v->rank == 2 &&
            (v->dtype == PLM_DT_F32 || v->dtype == PLM_DT_F16 || v->dtype == PLM_DT_BF16)) {
            r->logits = g->outputs[i];
            r->vocab = plm_dim_value(&g->dims, v->dim[1]);
            r->all_logits = g->dims.items[v->dim[0]].op == PLM_DIM_SYM &&
                            g->dims.items[v->dim[0]].k == PLM_SYM_T;
        }
    }
    if (r->logits == PLM_NONE || r->vocab < 1)
        return plm_fail(err, PLM_E_UNSUPPORTED, "graph, outputs: no logits of f32, f16 or bf16; build "
                                                "the whole model for one device");
    return PLM_OK;
}

static int64_t most_choices(const plm_graph *g)
{
    int64_t k = 0;
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].op == PLM_OP_GATE)
            k = plm_max_i64(k, plm_attr_int(g, &g->nodes[i], PLM_ATTR_TOP_K, 1));
    return k;
}

static plm_status make_arrays(plm_runner *r, bool node_times, plm_error *err)
{
    int64_t rows = r->all_logits ? r->max_t : r->max_r, ones = 0;
    for (int i = RUNNER_ONES; i <= RUNNER_FACTORS; i++) {
        int64_t bytes = 0;
        if (r->input[i] != PLM_NONE)
            PLM_TRY(plm_value_bytes(r->g, r->input[i], NULL, &bytes, err));
        ones = plm_max_i64(ones, bytes / (int64_t)sizeof(float));
    }
    r->extra_n = ones;
    r->block_stride = plm_max_i64(1, r->paging.n_blocks);
    if (rows > INT64_MAX / 8 / r->vocab || r->max_s > INT32_MAX / r->block_stride)
        return plm_fail(err, PLM_E_LIMIT, "executor: bounds too large; lower them");
    r->token = plm_calloc((size_t)r->max_t + 1, 5 * sizeof *r->token);
    r->seq = plm_calloc((size_t)r->max_s + 1, 3 * sizeof *r->seq);
    r->block = plm_calloc((size_t)(r->max_s * r->block_stride), sizeof *r->block);
    r->dim = plm_calloc(r->g->dims.count + 1, sizeof *r->dim);
    r->out = plm_calloc((size_t)(rows * r->vocab) + 1, sizeof *r->out);
    r->raw = plm_calloc((size_t)r->vocab + 1, sizeof(float));
    r->extra = plm_calloc((size_t)ones + 1, sizeof *r->extra);
    r->fresh = plm_calloc((size_t)r->max_s + 1, sizeof *r->fresh);
    r->node_ns = node_times ? plm_calloc(r->g->n_nodes + 1, sizeof *r->node_ns) : NULL;
    if (r->token == NULL || r->seq == NULL || r->block == NULL || r->dim == NULL ||
        r->out == NULL || r->raw == NULL || r->extra == NULL || r->fresh == NULL ||
        (node_times && r->node_ns == NULL))
        return plm_fail_memory(err, "arrays of a step");
    return PLM_OK;
}

static plm_status set_up(plm_runner *r, const plm_weight_source *weights,
                         const plm_runner_options *o, plm_error *err)
{
    const int64_t *hi = r->g->dims.hi;
    int64_t each = o != NULL && o->block_tokens > 0 ? o->block_tokens : 16;
    r->max_t = hi[PLM_SYM_T];
    r->max_s = hi[PLM_SYM_S];
    r->max_r = hi[PLM_SYM_R];
    if (r->max_t < 1 || r->max_t > (1 << 24) || r->max_s < 1 || r->max_s > PLM_PAGING_SEQS_MAX ||
        hi[PLM_SYM_C] > INT32_MAX)
        return plm_fail(err, PLM_E_LIMIT, "executor: bounds of %lld tokens, %lld sequences, %lld slots "
                        "are out of range; build the graph with others", (long long)r->max_t,
                        (long long)r->max_s, (long long)hi[PLM_SYM_C]);
    PLM_TRY(plm_paging_init(&r->paging, hi[PLM_SYM_C] / each, each, r->max_s,
                            o != NULL ? o->block_order : NULL, err));
    r->top_k = most_choices(r->g);
    PLM_TRY(find_logits(r, err));
    PLM_TRY(runner_bind(r, weights, err));
    return make_arrays(r, o != NULL && o->node_times, err);
}

plm_status plm_runner_create(const plm_arch *arch, const plm_graph *g, plm_opened *dev,
                             const plm_weight_source *weights, const plm_runner_options *o,
                             plm_runner **out, plm_error *err)
{
    plm_runner *r = plm_calloc(1, sizeof *r);
    *out = NULL;
    if (r == NULL)
        return plm_fail_memory(err, "executor");
    r->arch = arch;
    r->g = g;
    r->dev = dev;
    r->logits = PLM_NONE;
    for (int i = 0; i < RUNNER_INPUT_KINDS; i++)
        r->input[i] = PLM_NONE;
    plm_status status = set_up(r, weights, o, err);
    if (status != PLM_OK)
        plm_runner_destroy(r);
    else
        *out = r;
    return status;
}

void plm_runner_destroy(plm_runner *r)
{
    if (r == NULL)
        return;
    runner_unbind(r);
    plm_paging_fini(&r->paging);
    plm_free(r->token);
    plm_free(r->seq);
    plm_free(r->block);
    plm_free(r->dim);
    plm_free(r->out);
    plm_free(r->raw);
    plm_free(r->extra);
    plm_free(r->fresh);
    plm_free(r->node_ns);
    plm_free(r);
}

const plm_runner_memory *plm_runner_memory_of(const plm_runner *r)
{
    return &r->memory;
}

/* ---- sequences ---- */

plm_status plm_runner_open(plm_runner *r, int32_t *seq, plm_error *err)
{
    PLM_TRY(plm_paging_open(&r->paging, seq, err));
    r->fresh[*seq] = true;
    return PLM_OK;
}

/* Bytes of row i of a state (its first dim). */
static plm_status state_row(const plm_runner *r, plm_value_id v, int64_t *bytes, plm_error *err)
{
    const plm_value *x = &r->g->values[v];
    int64_t all, rows = plm_dim_upper(&r->g->dims, x->dim[0]);
    PLM_TRY(plm_value_bytes(r->g, v, NULL, &all, err));
    *bytes = rows > 0 ? all / rows : 0;
    return PLM_OK;
}

static bool is_recurrent(const plm_value *x)
{
    return x->kind == PLM_VALUE_STATE && x->role != PLM_ROLE_KV;
}

static plm_status copy_state(plm_runner *r, int32_t from, int32_t to, plm_error *err)
{
    const plm_backend *be = r->dev->be;
    for (plm_value_id v = 0; v < r->g->n_values; v++) {
        int64_t row;
        if (!is_recurrent(&r->g->values[v]))
            continue;
        plm_backend_buffer *b = r->bind[r->flat.values[v].slot].buffer;
        PLM_TRY(state_row(r, v, &row, err));
        PLM_TRY(be->copy(r->dev->stream, b, (uint64_t)(to * row), b, (uint64_t)(from * row),
                         (uint64_t)row, err));
    }
    return PLM_OK;
}

plm_status plm_runner_fork(plm_runner *r, int32_t from, int64_t tokens, int32_t *seq,
                           plm_error *err)
{
    if (r->has_state && plm_paging_is_open(&r->paging, from) &&
        tokens != plm_runner_tokens(r, from) && tokens != 0)
        return plm_fail(err, PLM_E_UNSUPPORTED, "sequence %d: its recurrent state stands at token %lld "
                        "and cannot go back to %lld; fork it there", from,
                        (long long)plm_runner_tokens(r, from), (long long)tokens);
    PLM_TRY(plm_paging_fork(&r->paging, from, tokens, seq, err));
    r->fresh[*seq] = tokens == 0;
    plm_status status = tokens > 0 ? copy_state(r, from, *seq, err) : PLM_OK;
    if (status != PLM_OK)
        plm_paging_close(&r->paging, *seq);
    return status;
}

void plm_runner_close(plm_runner *r, int32_t seq)
{
    plm_paging_close(&r->paging, seq);
}

int64_t plm_runner_tokens(const plm_runner *r, int32_t seq)
{
    return plm_paging_is_open(&r->paging, seq) ? r->paging.seq[seq].tokens : 0;
}

int64_t plm_runner_step_tokens(const plm_runner *r)
{
    return r->max_t;
}

/* ---- a step ---- */

/* The rows of the states of a sequence that begins. */
static plm_status clear_state(plm_runner *r, int32_t seq, plm_error *err)
{
    for (plm_value_id v = 0; v < r->g->n_values; v++) {
        int64_t row;
        if (!is_recurrent(&r->g->values[v]))
            continue;
        PLM_TRY(state_row(r, v, &row, err));
        PLM_TRY(r->dev->be->fill_zero(r->dev->stream, r->bind[r->flat.values[v].slot].buffer,
                                      (uint64_t)(seq * row), (uint64_t)row, err));
    }
    return PLM_OK;
}

/* Copies a block in every cache of the model. */
static plm_status copy_block(plm_runner *r, int32_t from, int32_t to, plm_error *err)
{
    for (plm_value_id v = 0; v < r->g->n_values; v++) {
        const plm_value *x = &r->g->values[v];
        int64_t row, rows = plm_dim_upper(&r->g->dims, x->dim[0]);
        if (x->kind != PLM_VALUE_STATE || x->role != PLM_ROLE_KV || rows <= 0)
            continue;
        /* A cache of one entry for several tokens has so many times fewer rows a block. */
        int64_t each = rows * r->paging.block_tokens / plm_max_i64(1, r->g->dims.hi[PLM_SYM_C]);
        plm_backend_buffer *b = r->bind[r->flat.values[v].slot].buffer;
        PLM_TRY(state_row(r, v, &row, err));
        PLM_TRY(r->dev->be->copy(r->dev->stream, b, (uint64_t)(to * each * row), b,
                                 (uint64_t)(from * each * row), (uint64_t)(each * row), err));
    }
    return PLM_OK;
}

static plm_status check_parts(const plm_runner *r, const plm_part *parts, size_t n, plm_error *err)
{
    int64_t tokens = 0;
    if (n > (size_t)r->max_s)
        return plm_fail(err, PLM_E_LIMIT, "step: %zu sequences, at most %lld were planned for", n,
                        (long long)r->max_s);
    for (size_t i = 0; i < n; i++) {
        if (!plm_paging_is_open(&r->paging, parts[i].seq) || parts[i].n < 1)
            return plm_fail(err, PLM_E_INVALID, "step, part %zu: sequence %d is not open, or no token; "
                            "open it and give one", i, parts[i].seq);
        for (size_t j = 0; j < i; j++)
            if (parts[j].seq == parts[i].seq)
                return plm_fail(err, PLM_E_INVALID, "step: sequence %d comes twice; join its parts",
                                parts[i].seq);
        if (parts[i].n > r->max_t - tokens)
            return plm_fail(err, PLM_E_LIMIT, "step: more than the %lld tokens planned for; take fewer "
                            "at once", (long long)r->max_t);
        if (parts[i].logits == PLM_WANT_ALL && !r->all_logits)
            return plm_fail(err, PLM_E_INVALID, "step: logits of all tokens need a graph built for "
                                                "them (all_logits)");
        for (int64_t t = 0; t < parts[i].n; t++)
            if (parts[i].ids[t] < 0 || parts[i].ids[t] >= r->arch->vocab)
                return plm_fail(err, PLM_E_INVALID, "token %d: outside the vocabulary of %d; give ids of "
                                "this model", parts[i].ids[t], r->arch->vocab);
        if (r->arch->pos_embed > 0 &&
            plm_runner_tokens(r, parts[i].seq) + parts[i].n > r->arch->pos_embed)
            return plm_fail(err, PLM_E_LIMIT, "step: longer than the %d positions the model has; stop "
                            "there", r->arch->pos_embed);
        tokens += parts[i].n;
    }
    return PLM_OK;
}

static plm_status reserve(plm_runner *r, const plm_part *parts, size_t n, plm_error *err)
{
    for (size_t i = 0; i < n; i++) {
        int32_t from, to;
        if (r->paging.n_blocks > 0)
            PLM_TRY(plm_paging_reserve(&r->paging, parts[i].seq, parts[i].n, &from, &to, err));
        else
            from = to = -1;
        if (to >= 0)
            PLM_TRY(copy_block(r, from, to, err));
        if (r->fresh[parts[i].seq])
            PLM_TRY(clear_state(r, parts[i].seq, err));
    }
    return PLM_OK;
}

/* Fills the step's arrays. Rows of the logits are counted in r->rows and, when the graph makes all of
** them, only listed. */
static void fill_step(plm_runner *r, const plm_part *parts, size_t n, plm_backend_step *s)
{
    int32_t *ids = r->token, *pos = ids + r->max_t, *rows = pos + r->max_t;
    int32_t *token_seq = rows + r->max_t, *slot = token_seq + r->max_t;
    int32_t *first = r->seq, *past = first + r->max_s + 1, *row = past + r->max_s;
    int32_t at = 0;
    r->rows = 0;
    for (size_t i = 0; i < n; i++) {
        const plm_paged_seq *q = &r->paging.seq[parts[i].seq];
        first[i] = at;
        past[i] = (int32_t)q->tokens;
        row[i] = parts[i].seq;
        memcpy(&r->block[(int64_t)i * r->block_stride], q->block,
               (size_t)q->n_blocks * sizeof *q->block);
        for (int64_t t = 0; t < parts[i].n; t++, at++) {
            ids[at] = parts[i].ids[t];
            pos[at] = (int32_t)(q->tokens + t);
            token_seq[at] = (int32_t)i;
            slot[at] = r->paging.n_blocks > 0
                           ? (int32_t)plm_paging_slot(&r->paging, parts[i].seq, q->tokens + t)
                           : -1;
            if (parts[i].logits == PLM_WANT_ALL ||
                (parts[i].logits == PLM_WANT_LAST && t + 1 == parts[i].n))
                rows[r->rows++] = at;
        }
    }
    first[n] = at;
    *s = (plm_backend_step){.struct_size = sizeof *s,
                            .n_tokens = (uint32_t)at,
                            .n_seqs = (uint32_t)n,
                            .block_stride = (uint32_t)r->block_stride,
                            .token_seq = token_seq,
                            .token_pos = pos,
                            .token_slot = slot,
                            .seq_token = first,
                            .seq_past = past,
                            .seq_row = row,
                            .block = r->block};
}

/* Longrope: the long list when any sequence of the step has outgrown the context the model was first
** trained for. Source: Phi-3's modelling code, which asks for the longest position of the batch. */
static const float *rope_factors(const plm_runner *r, const plm_part *parts, size_t n)
{
    int64_t longest = 0, from = INT64_MAX;
    for (int32_t k = 0; k < r->arch->n_kinds; k++) {
        int64_t s = plm_longrope_switch(&r->arch->kind[k].rope);
        if (s > 0)
            from = plm_min_i64(from, s);
    }
    for (size_t i = 0; i < n; i++)
        longest = plm_max_i64(longest, plm_runner_tokens(r, parts[i].seq) + parts[i].n);
    return longest >= from ? r->arch->rope_long : r->arch->rope_short;
}

static plm_status send(plm_runner *r, runner_input_kind kind, const void *from, int64_t bytes,
                       plm_error *err)
{
    if (r->input[kind] == PLM_NONE || from == NULL || bytes <= 0)
        return PLM_OK;
    plm_backend_buffer *b = r->bind[r->flat.values[r->input[kind]].slot].buffer;
    return r->dev->be->upload(r->dev->stream, b, 0, from, (uint64_t)bytes, err);
}

static plm_status send_inputs(plm_runner *r, const plm_part *parts, size_t n, int64_t tokens,
                              plm_error *err)
{
    const int64_t each = (int64_t)sizeof(int32_t);
    PLM_TRY(send(r, RUNNER_IDS, r->token, tokens * each, err));
    PLM_TRY(send(r, RUNNER_POSITIONS, r->token + r->max_t, tokens * each, err));
    PLM_TRY(send(r, RUNNER_ROWS, r->token + 2 * r->max_t, r->rows * each, err));
    for (int64_t i = 0; i < r->extra_n; i++)
        r->extra[i] = 1;
    PLM_TRY(send(r, RUNNER_ONES, r->extra, r->extra_n * (int64_t)sizeof(float), err));
    if (r->input[RUNNER_FACTORS] == PLM_NONE)
        return PLM_OK;
    int64_t bytes;
    PLM_TRY(plm_value_bytes(r->g, r->input[RUNNER_FACTORS], NULL, &bytes, err));
    return send(r, RUNNER_FACTORS, rope_factors(r, parts, n), bytes, err);
}

/* Row i of the logits as float32. */
static plm_status fetch_row(plm_runner *r, int64_t row, float *out, plm_error *err)
{
    const plm_backend_value *f = &r->flat.values[r->logits];
    plm_dtype t = r->g->values[r->logits].dtype;
    uint64_t each = plm_dtype_get(t)->block_bytes;
    uint64_t at = f->offset + (uint64_t)(f->start + row * f->stride[0]) * each;
    PLM_TRY(r->dev->be->download(r->dev->stream, t == PLM_DT_F32 ? (void *)out : (void *)r->raw,
                                 r->bind[f->slot].buffer, at, (uint64_t)r->vocab * each, err));
    if (t == PLM_DT_F32)
        return PLM_OK;
    PLM_TRY(r->dev->be->stream_sync(r->dev->stream, err));
    for (int64_t i = 0; i < r->vocab; i++) {
        uint16_t h;
        memcpy(&h, r->raw + 2 * i, sizeof h);
        out[i] = (float)(t == PLM_DT_F16 ? plm_half_decode(h) : plm_bf16_decode(h));
    }
    return PLM_OK;
}

static plm_status fetch_logits(plm_runner *r, plm_error *err)
{
    const int32_t *rows = r->token + 2 * r->max_t;
    for (int64_t i = 0; i < r->rows; i++)
        PLM_TRY(fetch_row(r, r->all_logits ? rows[i] : i, &r->out[i * r->vocab], err));
    return r->dev->be->stream_sync(r->dev->stream, err);
}

plm_status plm_runner_step(plm_runner *r, const plm_part *parts, size_t n, plm_error *err)
{
    const plm_backend *be = r->dev->be;
    plm_backend_step step;
    int64_t sym[PLM_SYM_COUNT] = {0};
    r->rows = 0;
    if (n == 0)
        return PLM_OK;
    PLM_TRY(check_parts(r, parts, n, err));
    PLM_TRY(reserve(r, parts, n, err));
    fill_step(r, parts, n, &step);
    sym[PLM_SYM_T] = step.n_tokens;
    sym[PLM_SYM_R] = r->rows;
    sym[PLM_SYM_E] = (int64_t)step.n_tokens * r->top_k;
    sym[PLM_SYM_S] = r->max_s;
    sym[PLM_SYM_C] = r->g->dims.hi[PLM_SYM_C];
    plm_dims_eval(&r->g->dims, sym, r->dim);
    plm_backend_run run = {.struct_size = sizeof run,
                           .n_bind = r->flat.view.n_slots,
                           .bind_stride = sizeof *r->bind,
                           .n_node_ns = r->node_ns != NULL ? r->flat.view.n_nodes : 0,
                           .bind = r->bind,
                           .step = &step,
                           .dim = r->dim,
                           .node_ns = r->node_ns};
    PLM_TRY(send_inputs(r, parts, n, step.n_tokens, err));
    PLM_TRY(be->execute(r->exec, r->dev->stream, &run, err));
    PLM_TRY(be->stream_sync(r->dev->stream, err));
    PLM_TRY(fetch_logits(r, err));
    for (size_t i = 0; i < n; i++) {
        plm_paging_advance(&r->paging, parts[i].seq, parts[i].n);
        r->fresh[parts[i].seq] = false;
    }
    return PLM_OK;
}

const float *plm_runner_logits(const plm_runner *r, int64_t *rows, int64_t *vocab)
{
    *rows = r->rows;
    *vocab = r->vocab;
    return r->out;
}

const uint64_t *plm_runner_node_ns(const plm_runner *r)
{
    return r->node_ns;
}
