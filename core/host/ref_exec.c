/* ref_exec.c - compile and execute of the reference backend. */
#include <string.h>
#include <time.h>

#include "core/base/mem.h"
#include "core/host/ref_parts.h"
#include "core/host/ref_table.h"

typedef plm_status (*node_fn)(const ref_step *s, plm_error *err);

/* How a node gets its operands; ops that are not named load them whole. */
static node_fn node_function(plm_op op)
{
    static const struct {
        plm_op op;
        node_fn fn;
    } special[] = {{PLM_OP_EMBED, ref_embed},
                   {PLM_OP_LINEAR, ref_linear},
                   {PLM_OP_LINEAR_GROUPED, ref_linear_grouped},
                   {PLM_OP_KV_WRITE, ref_kv_write},
                   {PLM_OP_ATTENTION, ref_attend},
                   {PLM_OP_INDEX, ref_attend},
                   {PLM_OP_CONV_CAUSAL, ref_recur},
                   {PLM_OP_GATED_DELTA, ref_recur},
                   {PLM_OP_SSM_SCAN, ref_recur},
                   {PLM_OP_KV_POOL, ref_recur}};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (special[i].op == op)
            return special[i].fn;
    return ref_plain;
}

/* ---- support ---- */

/* NULL, or why the node cannot be run. */
static const char *refuse_node(const plm_graph *g, const plm_node *n, uint32_t block_tokens)
{
    const plm_op_info *info = plm_op_get(n->op);
    int64_t ratio = plm_attr_int(g, n, PLM_ATTR_RATIO, 1);
    if (info->oracle == NULL)
        return "a link between ranks: one device has none";
    if (ratio > 1 && block_tokens % (uint64_t)ratio != 0)
        return "blocks of the cache are no multiple of its ratio";
    for (uint32_t j = 0; j < n->n_out; j++) {
        const plm_value *v = &g->values[n->out[j]];
        bool side = n->op == PLM_OP_QUANT;
        if (!side && !ref_can_store(v->dtype))
            return "an output's type cannot be written; f32, f16, bf16, fp8 and integers can";
    }
    return NULL;
}

plm_status ref_supports(plm_backend_device *dev, const plm_backend_graph *view, uint32_t node,
                        plm_backend_support *out, plm_error *err)
{
    (void)dev;
    plm_graph g;
    uint32_t size = out->struct_size;
    plm_backend_support answer = {.struct_size = size, .numerics = PLM_BACKEND_NUM_F32};
    const char *why = NULL;
    plm_status status = plm_flat_graph(view, &g, err);
    if (status == PLM_E_UNSUPPORTED)
        why = "the graph has a number that this build does not know";
    else if (status != PLM_OK)
        return status;
    else if (node >= g.n_nodes)
        why = "no such node";
    else
        why = refuse_node(&g, &g.nodes[node], view->block_tokens);
    plm_graph_fini(&g);
    answer.ok = why == NULL;
    if (why != NULL)
        memcpy(answer.why, why, strlen(why) < sizeof answer.why ? strlen(why) : sizeof answer.why - 1);
    memcpy(out, &answer, size < sizeof answer ? size : sizeof answer);
    return PLM_OK;
}

/* ---- compile ---- */

/* Quantised activations, and views of them, are kept as numbers beside the arena. */
static plm_status make_sides(plm_backend_exec *x, plm_error *err)
{
    for (size_t i = 0; i < x->g.n_nodes; i++) {
        const plm_node *n = &x->g.nodes[i];
        bool view = (plm_op_get(n->op)->flags & PLM_OPF_VIEW) != 0;
        bool side = n->op == PLM_OP_QUANT ||
                    (view && x->side != NULL && x->side[n->in[0]].rank > 0);
        if (!side)
            continue;
        if (x->side == NULL)
            x->side = plm_calloc((size_t)x->n_values + 1, sizeof *x->side);
        if (x->side == NULL)
            return plm_fail_memory(err, "quantised activations");
        x->side[n->out[0]].rank = x->values[n->out[0]].rank;
    }
    return PLM_OK;
}

plm_status ref_compile(plm_backend_device *dev, const plm_backend_graph *view,
                       plm_backend_exec **out, plm_error *err)
{
    (void)dev;
    plm_status status = PLM_OK;
    plm_backend_exec *x = plm_calloc(1, sizeof *x);
    *out = NULL;
    if (x == NULL)
        return plm_fail_memory(err, "a compiled graph");
    plm_graph_init(&x->g);
    x->n_values = view->n_values;
    x->n_slots = view->n_slots;
    x->block_tokens = view->block_tokens > 0 ? view->block_tokens : 1;
    x->values = plm_calloc((size_t)view->n_values + 1, sizeof *x->values);
    if (x->values == NULL) {
        status = plm_fail_memory(err, "a compiled graph");
        goto done;
    }
    PLM_GOTO(plm_flat_graph(view, &x->g, err));
    for (uint32_t v = 0; v < view->n_values; v++) {
        x->values[v] = *PLM_AT(plm_backend_value, view->values, view->value_stride, v);
        x->values[v].name = NULL; /* borrowed for the call alone */
    }
    for (size_t i = 0; i < x->g.n_nodes; i++) {
        const char *why = refuse_node(&x->g, &x->g.nodes[i], x->block_tokens);
        if (why != NULL) {
            status = plm_fail(err, PLM_E_UNSUPPORTED, "reference backend, node %zu (%s): %s; build "
                              "another graph", i, plm_op_get(x->g.nodes[i].op)->name, why);
            goto done;
        }
    }
    PLM_GOTO(make_sides(x, err));
    *out = x;
    x = NULL;
done:
    ref_exec_free(x);
    return status;
}

void ref_exec_free(plm_backend_exec *x)
{
    if (x == NULL)
        return;
    if (x->side != NULL)
        ref_drop(x->side, x->n_values);
    plm_free(x->side);
    plm_graph_fini(&x->g);
    plm_free(x->values);
    plm_free(x);
}

plm_status ref_exec_info(plm_backend_exec *x, plm_backend_exec_info *out, plm_error *err)
{
    (void)err;
    uint32_t size = out->struct_size;
    plm_backend_exec_info info = {.struct_size = size};
    for (size_t i = 0; i < x->g.n_nodes; i++)
        info.n_kernels += (plm_op_get(x->g.nodes[i].op)->flags & PLM_OPF_VIEW) == 0;
    memcpy(out, &info, size < sizeof info ? size : sizeof info);
    return PLM_OK;
}

/* ---- execute ---- */

uint64_t ref_now_ns(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_MONOTONIC, &t) == 0
               ? (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec
               : 0;
}

/* The step's arrays agree with each other, so that nothing below has to ask again. */
static plm_status check_step(const plm_backend_exec *x, const plm_backend_run *run, plm_error *err)
{
    const plm_backend_step *p = run->step;
    static const char where[] = "reference, step";
    if (p == NULL || run->dim == NULL || run->n_bind < x->n_slots)
        return plm_fail(err, PLM_E_INVALID, "%s: no step, no dims or too few bindings; give them",
                        where);
    if (p->n_tokens == 0)
        return PLM_OK;
    if (p->n_seqs == 0 || p->seq_token == NULL || p->seq_past == NULL || p->token_seq == NULL ||
        p->token_pos == NULL || p->token_slot == NULL || p->seq_row == NULL)
        return plm_fail(err, PLM_E_INVALID, "%s: an array is missing; give all", where);
    if (p->seq_token[0] != 0 || p->seq_token[p->n_seqs] != (int64_t)p->n_tokens)
        return plm_fail(err, PLM_E_INVALID, "%s: sequences do not cover its tokens", where);
    for (uint32_t q = 0; q < p->n_seqs; q++) {
        int64_t n = (int64_t)p->seq_token[q + 1] - p->seq_token[q];
        int64_t room = (int64_t)p->block_stride * x->block_tokens;
        if (n < 0 || p->seq_past[q] < 0 || (p->block != NULL && p->seq_past[q] + n > room) ||
            p->seq_row[q] < 0)
            return plm_fail(err, PLM_E_INVALID, "%s, sequence %u: longer than its blocks", where, q);
    }
    return PLM_OK;
}

static plm_status widen(ref_step *s, plm_error *err)
{
    size_t T = s->step->n_tokens;
    s->token_seq = plm_calloc(T + 1, 3 * sizeof *s->token_seq);
    if (s->token_seq == NULL)
        return plm_fail_memory(err, "tokens of a step");
    s->token_pos = s->token_seq + T + 1;
    s->token_slot = s->token_pos + T + 1;
    for (size_t t = 0; t < T; t++) {
        s->token_seq[t] = s->step->token_seq[t];
        s->token_pos[t] = s->step->token_pos[t];
        s->token_slot[t] = s->step->token_slot[t];
    }
    return PLM_OK;
}

plm_status ref_execute(plm_backend_exec *x, plm_backend_stream *stream, const plm_backend_run *run,
                       plm_error *err)
{
    (void)stream;
    PLM_TRY(check_step(x, run, err));
    ref_step s = {.x = x, .run = run, .step = run->step};
    plm_status status = PLM_OK;
    if (run->step->n_tokens == 0)
        return PLM_OK;
    PLM_TRY(widen(&s, err));
    for (uint32_t i = 0; i < x->g.n_nodes; i++) {
        const plm_node *n = &x->g.nodes[i];
        uint64_t from = run->node_ns != NULL ? ref_now_ns() : 0;
        bool view = (plm_op_get(n->op)->flags & PLM_OPF_VIEW) != 0;
        s.n = n;
        if (!view || (x->side != NULL && x->side[n->out[0]].rank > 0))
            PLM_GOTO(node_function(n->op)(&s, err));
        if (run->node_ns != NULL && i < run->n_node_ns)
            run->node_ns[i] = view ? 0 : ref_now_ns() - from;
    }
done:
    plm_free(s.token_seq);
    return status;
}
