/* memplan.c - where activations live: liveness in node order, in place where an op allows it, best
** fit over blocks of 256 bytes, sizes at the upper bounds of the symbols.
**
** A view, or a value that must alias another, shares the storage of what it looks at. A fusion group
** runs as one kernel at some place between its first and last node, so all it reads and makes lives
** over that whole span. States, weights and inputs are not in the arena. */
#include <string.h>

#include "core/base/mem.h"
#include "core/base/vec.h"
#include "core/ir/op.h"

#define BLOCK 256

typedef struct hole {
    int64_t offset, bytes;
} hole;

typedef struct storage {
    plm_value_id root;   /* value whose storage this one is part of; PLM_NONE = not in the arena */
    plm_value_id taken;  /* roots: root whose storage it took in place, else itself */
    plm_value_id next;   /* roots: next in the list of those that die at the same node */
    plm_node_id birth;   /* roots: node at which it must exist */
    plm_node_id last;    /* roots: node after which it is free; n_nodes = never */
    plm_node_id reader;  /* roots: node whose read ends last; PLM_NONE = none */
    plm_node_id others;  /* roots: end of the last read of any other node; PLM_NONE = none */
    int64_t bytes;       /* roots: rounded up to blocks */
    int64_t raw;         /* bytes of the value itself */
} storage;

typedef struct planner {
    const plm_graph *g;
    storage *s;               /* by value */
    plm_node_id *next_member; /* by node: next of its group, PLM_NONE = last */
    plm_node_id *span_first, *span_last; /* by node */
    plm_value_id *dies;       /* by node: list of roots, PLM_NONE = end */
    PLM_VEC(hole) holes;      /* free parts below top, by offset, never touching */
    int64_t top, peak;
    plm_node_id peak_node;
    int64_t *offset;
} planner;

/* ---- liveness ---- */

static bool is_view(const plm_graph *g, plm_node_id i)
{
    return (plm_op_get(g->nodes[i].op)->flags & PLM_OPF_VIEW) != 0;
}

/* Spans of the groups; a node without one is its own span. */
static plm_status find_spans(planner *p, plm_error *err)
{
    const plm_graph *g = p->g;
    uint32_t groups = 0;
    for (size_t i = 0; i < g->n_nodes; i++)
        groups = g->nodes[i].group > groups ? g->nodes[i].group : groups;
    plm_node_id *newest = plm_malloc(((size_t)groups + 1) * sizeof *newest);
    if (newest == NULL)
        return plm_fail_memory(err, "spans of fusion groups");
    memset(newest, 0xff, ((size_t)groups + 1) * sizeof *newest);
    for (plm_node_id i = 0; i < g->n_nodes; i++) {
        uint32_t group = g->nodes[i].group;
        p->span_first[i] = p->span_last[i] = i;
        p->next_member[i] = PLM_NONE;
        if (group == 0)
            continue;
        if (newest[group] != PLM_NONE) {
            p->span_first[i] = p->span_first[newest[group]];
            p->next_member[newest[group]] = i;
        }
        newest[group] = i;
    }
    for (plm_node_id i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].group != 0)
            p->span_last[i] = newest[g->nodes[i].group];
    plm_free(newest);
    return PLM_OK;
}

static plm_value_id root_of(const planner *p, plm_value_id v)
{
    const plm_value *x = &p->g->values[v];
    if (x->kind != PLM_VALUE_NODE)
        return PLM_NONE;
    if (x->alias != PLM_NONE)
        return p->s[x->alias].root;
    if (is_view(p->g, x->producer))
        return p->s[p->g->nodes[x->producer].in[0]].root;
    return v;
}

/* Roots and sizes, in node order: what a value looks at is made before it. */
static plm_status find_roots(planner *p, plm_error *err)
{
    const plm_graph *g = p->g;
    int64_t *dims = plm_malloc((g->dims.count + 1) * sizeof *dims);
    plm_status status = PLM_OK;
    if (dims == NULL)
        return plm_fail_memory(err, "dims of the memory plan");
    plm_dims_eval(&g->dims, g->dims.hi, dims);
    for (size_t v = 0; v < g->n_values; v++)
        p->s[v] = (storage){.root = PLM_NONE, .taken = (plm_value_id)v, .next = PLM_NONE,
                            .reader = PLM_NONE, .others = PLM_NONE};
    for (plm_node_id i = 0; i < g->n_nodes; i++)
        for (uint32_t j = 0; j < g->nodes[i].n_out; j++) {
            plm_value_id v = g->nodes[i].out[j];
            storage *s = &p->s[v];
            s->root = root_of(p, v);
            if (s->root == PLM_NONE)
                continue;
            PLM_GOTO(plm_value_bytes(g, v, dims, &s->raw, err));
            if (!plm_add_i64(s->raw, BLOCK - 1, &s->bytes)) {
                status = plm_fail(err, PLM_E_INVALID,
                                  "memory plan, value %u: more bytes than 2^63; lower the bounds "
                                  "of the symbols",
                                  v);
                goto done;
            }
            s->bytes = s->bytes / BLOCK * BLOCK;
            s->birth = p->span_first[i];
            s->last = p->span_last[i];
        }
done:
    plm_free(dims);
    return status;
}

static void note_reader(const planner *p, storage *s, plm_node_id i)
{
    plm_node_id end = p->span_last[i];
    if (s->reader == i)
        return;
    if (s->reader == PLM_NONE || end >= p->span_last[s->reader]) {
        if (s->reader != PLM_NONE)
            s->others = p->span_last[s->reader]; /* ends no earlier than those before it */
        s->reader = i;
    } else if (s->others == PLM_NONE || end > s->others) {
        s->others = end;
    }
}

static void find_lives(planner *p)
{
    const plm_graph *g = p->g;
    for (plm_node_id i = 0; i < g->n_nodes; i++) {
        const plm_node *n = &g->nodes[i];
        for (uint32_t j = 0; j < n->n_in; j++) {
            plm_value_id r = n->in[j] == PLM_NONE ? PLM_NONE : p->s[n->in[j]].root;
            if (r == PLM_NONE)
                continue;
            if (p->span_last[i] > p->s[r].last)
                p->s[r].last = p->span_last[i];
            note_reader(p, &p->s[r], i);
        }
    }
    for (size_t i = 0; i < g->n_outputs; i++) {
        plm_value_id r = p->s[g->outputs[i]].root;
        if (r != PLM_NONE)
            p->s[r].last = (plm_node_id)g->n_nodes;
    }
    memset(p->dies, 0xff, (g->n_nodes + 1) * sizeof *p->dies);
    for (plm_value_id v = 0; v < g->n_values; v++)
        if (p->s[v].root == v) {
            p->s[v].next = p->dies[p->s[v].last];
            p->dies[p->s[v].last] = v;
        }
}

/* ---- the arena ---- */

static bool put_hole(planner *p, size_t at, hole h)
{
    if (!plm_vec_push(&p->holes, h, PLM_GRAPH_VALUES_MAX))
        return false;
    memmove(&p->holes.items[at + 1], &p->holes.items[at],
            (p->holes.count - 1 - at) * sizeof *p->holes.items);
    p->holes.items[at] = h;
    return true;
}

static void drop_hole(planner *p, size_t at)
{
    memmove(&p->holes.items[at], &p->holes.items[at + 1],
            (p->holes.count - 1 - at) * sizeof *p->holes.items);
    p->holes.count--;
}

/* Best fit: the smallest hole that holds it, else the top (a hole that ends there is part of it). */
static plm_status take(planner *p, int64_t bytes, plm_node_id node, int64_t *offset, plm_error *err)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < p->holes.count; i++)
        if (p->holes.items[i].bytes >= bytes &&
            (best == SIZE_MAX || p->holes.items[i].bytes < p->holes.items[best].bytes))
            best = i;
    if (best != SIZE_MAX) {
        hole *h = &p->holes.items[best];
        *offset = h->offset;
        h->offset += bytes;
        h->bytes -= bytes;
        if (h->bytes == 0)
            drop_hole(p, best);
        return PLM_OK;
    }
    *offset = p->top;
    if (!plm_add_i64(*offset, bytes, &p->top))
        return plm_fail(err, PLM_E_INVALID, "memory plan: more bytes than 2^63; lower the bounds "
                                            "of the symbols");
    if (p->top > p->peak) {
        p->peak = p->top;
        p->peak_node = node;
    }
    return PLM_OK;
}

static plm_status give(planner *p, int64_t offset, int64_t bytes, plm_error *err)
{
    size_t lo = 0, hi = p->holes.count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (p->holes.items[mid].offset < offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    hole h = {offset, bytes};
    if (lo < p->holes.count && p->holes.items[lo].offset == offset + bytes) {
        h.bytes += p->holes.items[lo].bytes;
        drop_hole(p, lo);
    }
    if (lo > 0 && p->holes.items[lo - 1].offset + p->holes.items[lo - 1].bytes == offset) {
        h.offset = p->holes.items[lo - 1].offset;
        h.bytes += p->holes.items[lo - 1].bytes;
        drop_hole(p, --lo);
    }
    if (h.offset + h.bytes == p->top) {
        p->top = h.offset;
        return PLM_OK;
    }
    return put_hole(p, lo, h) ? PLM_OK : plm_fail_memory(err, "holes of the memory plan");
}

/* ---- placing ---- */

/* May output 0 of node i take the storage of input 0? It must be all of that storage, dead after the
** node, read by no other input, and not smaller. */
static bool in_place(const planner *p, plm_node_id i)
{
    const plm_node *n = &p->g->nodes[i];
    if ((plm_op_get(n->op)->flags & PLM_OPF_INPLACE) == 0 || n->in[0] == PLM_NONE)
        return false;
    plm_value_id v = n->out[0], a = n->in[0], r = p->s[a].root;
    if (r == PLM_NONE || r == v || p->s[v].root != v)
        return false;
    if (p->s[a].raw != p->s[r].raw || p->s[v].raw > p->s[r].raw ||
        p->s[v].bytes > p->s[p->s[r].taken].bytes)
        return false;
    if (p->s[r].last != p->span_last[i] || p->s[p->s[r].taken].last != p->s[r].last)
        return false;
    /* A group writes at any time of its span: the storage must have no other reader from there on. */
    if (n->group != 0 && (p->s[r].birth >= p->span_first[i] || p->s[r].reader != i ||
                          (p->s[r].others != PLM_NONE && p->s[r].others >= p->span_first[i])))
        return false;
    for (uint32_t j = 1; j < n->n_in; j++)
        if (n->in[j] != PLM_NONE && p->s[n->in[j]].root != PLM_NONE &&
            p->s[p->s[n->in[j]].root].taken == p->s[r].taken)
            return false;
    return true;
}

static plm_status place_outputs(planner *p, plm_node_id i, plm_error *err)
{
    const plm_node *n = &p->g->nodes[i];
    for (uint32_t j = 0; j < n->n_out; j++) {
        plm_value_id v = n->out[j];
        storage *s = &p->s[v];
        if (s->root != v)
            continue;
        if (j == 0 && in_place(p, i)) {
            storage *owner = &p->s[p->s[p->s[n->in[0]].root].taken];
            s->taken = p->s[p->s[n->in[0]].root].taken;
            owner->last = s->last;
            p->offset[v] = p->offset[s->taken];
        } else {
            PLM_TRY(take(p, s->bytes, p->span_first[i], &p->offset[v], err));
        }
    }
    return PLM_OK;
}

static plm_status free_dead(planner *p, plm_node_id i, plm_error *err)
{
    for (plm_value_id v = p->dies[i]; v != PLM_NONE; v = p->s[v].next) {
        const storage *owner = &p->s[p->s[v].taken];
        /* Storage taken over in place dies with its newest user. */
        if (owner->last == i && p->s[v].last == i && owner->bytes > 0) {
            PLM_TRY(give(p, p->offset[v], owner->bytes, err));
            p->s[p->s[v].taken].last = PLM_NONE; /* freed */
        }
    }
    return PLM_OK;
}

static plm_status place_all(planner *p, plm_error *err)
{
    const plm_graph *g = p->g;
    for (plm_node_id i = 0; i < g->n_nodes; i++) {
        if (p->span_first[i] == i)
            for (plm_node_id m = i; m != PLM_NONE; m = p->next_member[m])
                PLM_TRY(place_outputs(p, m, err));
        PLM_TRY(free_dead(p, i, err));
    }
    for (plm_value_id v = 0; v < g->n_values; v++)
        if (p->s[v].root != PLM_NONE && p->s[v].root != v)
            p->offset[v] = p->offset[p->s[v].root];
    return PLM_OK;
}

plm_status plm_memory_plan_make(const plm_graph *g, plm_memory_plan *out, plm_error *err)
{
    planner p = {.g = g, .peak_node = PLM_NONE};
    plm_status status;
    *out = (plm_memory_plan){.peak_node = PLM_NONE, .n_values = g->n_values};
    p.s = plm_calloc(g->n_values, sizeof *p.s);
    p.next_member = plm_calloc(g->n_nodes, sizeof *p.next_member);
    p.span_first = plm_calloc(g->n_nodes, sizeof *p.span_first);
    p.span_last = plm_calloc(g->n_nodes, sizeof *p.span_last);
    p.dies = plm_calloc(g->n_nodes + 1, sizeof *p.dies);
    p.offset = plm_calloc(g->n_values, sizeof *p.offset);
    if (p.s == NULL || p.next_member == NULL || p.span_first == NULL || p.span_last == NULL ||
        p.dies == NULL || p.offset == NULL) {
        status = plm_fail_memory(err, "memory plan");
        goto done;
    }
    memset(p.offset, 0xff, g->n_values * sizeof *p.offset);
    PLM_GOTO(find_spans(&p, err));
    PLM_GOTO(find_roots(&p, err));
    find_lives(&p);
    PLM_GOTO(place_all(&p, err));
    out->peak_bytes = p.peak;
    out->peak_node = p.peak_node;
    out->offset = p.offset;
    p.offset = NULL;
done:
    plm_free(p.s);
    plm_free(p.next_member);
    plm_free(p.span_first);
    plm_free(p.span_last);
    plm_free(p.dies);
    plm_free(p.offset);
    plm_vec_fini(&p.holes);
    return status;
}

void plm_memory_plan_fini(plm_memory_plan *p)
{
    plm_free(p->offset);
    *p = (plm_memory_plan){0};
}
