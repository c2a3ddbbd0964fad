/* fuse.c - fusion groups: a table of patterns, matched backwards from their last node.
**
** A group is a note on the nodes, not a rewrite: a backend may take or refuse it, and the cost model
** drops the traffic between its members. Views (slice, reshape) between members are looked through.
** The patterns are those that engines ship as one kernel: engine_facts A.5 (ggml), hw_facts g.1
** (vLLM, TensorRT-LLM). */
#include <string.h>

#include "core/base/mem.h"
#include "core/ir/fuse.h"
#include "core/ir/op.h"

#define STEPS_MAX 4

/* What a step of a pattern matches: an op, or a set of ops. */
enum { ANY_NORM = PLM_OP_COUNT, ANY_ELEMENTWISE, ANY_SCALE };

typedef struct step {
    int op;
    int8_t prev[2]; /* steps whose output this one reads; -1 = none */
    bool shared;    /* its output may be read outside the group too (a residual sum) */
} step;

typedef struct pattern {
    uint8_t name;
    uint8_t n_steps;
    uint8_t repeat; /* 1: the last step may occur again, each on the one before */
    step steps[STEPS_MAX];
} pattern;

enum {
    ALLREDUCE_NORM, NORM_QUANT, GLU_QUANT, ADD_NORM, NORM_ADD, QK_NORM_ROPE, ROPE_KV, GLU,
    GATE_UP_GLU, GATE_CHAIN, MUL_SCALE, ELEMENTWISE_CHAIN, NAMES
};
static const char *const names[NAMES] = {
    [ALLREDUCE_NORM] = "allreduce_norm", [NORM_QUANT] = "norm_quant",
    [GLU_QUANT] = "glu_quant",           [ADD_NORM] = "add_norm",
    [NORM_ADD] = "norm_add",             [QK_NORM_ROPE] = "qk_norm_rope",
    [ROPE_KV] = "rope_kv",               [GLU] = "glu",
    [GATE_UP_GLU] = "gate_up_glu",       [GATE_CHAIN] = "gate_chain",
    [MUL_SCALE] = "mul_scale",           [ELEMENTWISE_CHAIN] = "elementwise_chain",
};

#define NO {-1, -1}
/* In order of preference: a node belongs to the first group that takes it. */
static const pattern patterns[] = {
    {ALLREDUCE_NORM, 4, 0,
     {{PLM_OP_ALL_REDUCE, NO, false}, {PLM_OP_ADD, {0, -1}, true}, {ANY_NORM, {1, -1}, true},
      {PLM_OP_QUANT, {2, -1}, false}}},
    {ALLREDUCE_NORM, 3, 0,
     {{PLM_OP_ALL_REDUCE, NO, false}, {PLM_OP_ADD, {0, -1}, true}, {ANY_NORM, {1, -1}, false}}},
    {ALLREDUCE_NORM, 2, 0, {{PLM_OP_ALL_REDUCE, NO, false}, {ANY_NORM, {0, -1}, false}}},
    {NORM_QUANT, 3, 0,
     {{PLM_OP_ADD, NO, true}, {ANY_NORM, {0, -1}, true}, {PLM_OP_QUANT, {1, -1}, false}}},
    {NORM_QUANT, 2, 0, {{ANY_NORM, NO, true}, {PLM_OP_QUANT, {0, -1}, false}}},
    {GLU_QUANT, 2, 0, {{PLM_OP_GLU, NO, false}, {PLM_OP_QUANT, {0, -1}, false}}},
    {NORM_ADD, 3, 0,
     {{ANY_NORM, NO, false}, {PLM_OP_ADD, {0, -1}, true}, {ANY_NORM, {1, -1}, false}}},
    {ADD_NORM, 2, 0, {{PLM_OP_ADD, NO, true}, {ANY_NORM, {0, -1}, false}}},
    {NORM_ADD, 2, 0, {{ANY_NORM, NO, false}, {PLM_OP_ADD, {0, -1}, false}}},
    {QK_NORM_ROPE, 2, 0, {{ANY_NORM, NO, false}, {PLM_OP_ROPE, {0, -1}, false}}},
    {ROPE_KV, 2, 0, {{PLM_OP_ROPE, NO, false}, {PLM_OP_KV_WRITE, {0, -1}, false}}},
    {GLU, 3, 0,
     {{PLM_OP_LINEAR, NO, false}, {PLM_OP_LINEAR, NO, false}, {PLM_OP_GLU, {0, 1}, false}}},
    {GLU, 3, 0,
     {{PLM_OP_LINEAR_GROUPED, NO, false}, {PLM_OP_LINEAR_GROUPED, NO, false},
      {PLM_OP_GLU, {0, 1}, false}}},
    {GATE_UP_GLU, 2, 0, {{PLM_OP_LINEAR, NO, false}, {PLM_OP_GLU, {0, -1}, false}}},
    {GATE_UP_GLU, 2, 0, {{PLM_OP_LINEAR_GROUPED, NO, false}, {PLM_OP_GLU, {0, -1}, false}}},
    {GATE_CHAIN, 1, 0, {{PLM_OP_GATE, NO, true}}},
    {MUL_SCALE, 2, 0, {{ANY_SCALE, NO, false}, {ANY_SCALE, {0, -1}, false}}},
    {ELEMENTWISE_CHAIN, 2, 1,
     {{ANY_ELEMENTWISE, NO, false}, {ANY_ELEMENTWISE, {0, -1}, false}}},
};
#define N_PATTERNS (sizeof patterns / sizeof patterns[0])
#define CHAIN_MAX 16

size_t plm_fusion_count(void)
{
    return NAMES;
}

const char *plm_fusion_name(size_t i)
{
    return i < NAMES ? names[i] : NULL;
}

static bool matches(int want, plm_op op)
{
    const uint32_t elementwise = PLM_OPF_ELEMENTWISE;
    switch (want) {
    case ANY_NORM:
        return op == PLM_OP_RMS_NORM || op == PLM_OP_LAYER_NORM || op == PLM_OP_L2_NORM ||
               op == PLM_OP_RMS_NORM_GATED;
    case ANY_ELEMENTWISE:
        return (plm_op_get(op)->flags & elementwise) != 0;
    case ANY_SCALE:
        return op == PLM_OP_MUL || op == PLM_OP_SCALE || op == PLM_OP_UNARY;
    default:
        return (int)op == want;
    }
}

/* ---- uses of values ---- */

plm_value_id plm_fuse_source(const plm_graph *g, plm_value_id v)
{
    for (size_t i = 0; i < g->n_nodes && v != PLM_NONE; i++) {
        plm_node_id p = g->values[v].producer;
        if (p == PLM_NONE || (plm_op_get(g->nodes[p].op)->flags & PLM_OPF_VIEW) == 0)
            return v;
        v = g->nodes[p].in[0];
    }
    return v;
}

plm_status plm_fuse_uses_make(const plm_graph *g, plm_fuse_uses *u, plm_error *err)
{
    u->count = plm_calloc(g->n_values, sizeof *u->count);
    u->last = plm_calloc(g->n_values, sizeof *u->last);
    u->first = plm_calloc(g->n_values, sizeof *u->first);
    if (u->count == NULL || u->last == NULL || u->first == NULL) {
        plm_fuse_uses_fini(u);
        return plm_fail_memory(err, "uses of values");
    }
    for (plm_node_id i = 0; i < g->n_nodes; i++) {
        const plm_node *n = &g->nodes[i];
        if (plm_op_get(n->op)->flags & PLM_OPF_VIEW)
            continue;
        for (uint32_t j = 0; j < n->n_in; j++) {
            plm_value_id v = plm_fuse_source(g, n->in[j]);
            if (v == PLM_NONE)
                continue;
            if (u->count[v]++ == 0)
                u->first[v] = i;
            u->last[v] = i;
        }
    }
    for (size_t i = 0; i < g->n_outputs; i++) {
        plm_value_id v = plm_fuse_source(g, g->outputs[i]);
        if (v == PLM_NONE)
            continue;
        u->count[v]++;
        u->last[v] = PLM_NONE; /* read after the last node */
    }
    return PLM_OK;
}

void plm_fuse_uses_fini(plm_fuse_uses *u)
{
    plm_free(u->count);
    plm_free(u->last);
    plm_free(u->first);
    *u = (plm_fuse_uses){0};
}

/* ---- matching ---- */

typedef struct match {
    plm_node_id node[CHAIN_MAX];
    uint32_t n;
} match;

/* Node whose output 0 is an input of n and that fits the step: in no group, not yet in the match, and
** with n as its one reader unless the step is shared. The first such, PLM_NONE if there is none. */
static plm_node_id find_producer(const plm_graph *g, const plm_node *n, const step *want,
                                 const plm_fuse_uses *u, const match *m)
{
    for (uint32_t j = 0; j < n->n_in; j++) {
        plm_value_id v = plm_fuse_source(g, n->in[j]);
        if (v == PLM_NONE || g->values[v].producer == PLM_NONE)
            continue;
        plm_node_id p = g->values[v].producer;
        bool taken = g->nodes[p].group != 0 || !matches(want->op, g->nodes[p].op) ||
                     (!want->shared && u->count[v] != 1);
        for (uint32_t i = 0; i < m->n && !taken; i++)
            taken = m->node[i] == p;
        if (!taken && g->nodes[p].out[0] == v)
            return p;
    }
    return PLM_NONE;
}

static bool in_match(const match *m, plm_node_id p)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->node[i] == p)
            return true;
    return false;
}

/* A group runs as one kernel, so it must be possible to run it at one place: at its first node, when
** no member reads what is made between, or at its last, when nobody between reads what it makes. */
static bool placeable(const plm_graph *g, const match *m, const plm_fuse_uses *u)
{
    plm_node_id first = m->node[0], last = m->node[0];
    bool at_first = true, at_last = true;
    for (uint32_t i = 1; i < m->n; i++) {
        first = m->node[i] < first ? m->node[i] : first;
        last = m->node[i] > last ? m->node[i] : last;
    }
    for (uint32_t i = 0; i < m->n; i++) {
        const plm_node *n = &g->nodes[m->node[i]];
        for (uint32_t j = 0; j < n->n_in; j++) {
            plm_value_id v = plm_fuse_source(g, n->in[j]);
            plm_node_id p = v == PLM_NONE ? PLM_NONE : g->values[v].producer;
            if (p != PLM_NONE && p > first && !in_match(m, p))
                at_first = false;
        }
        for (uint32_t j = 0; j < n->n_out; j++) {
            plm_value_id v = n->out[j];
            if (u->count[v] > 0 && u->first[v] < last && !in_match(m, u->first[v]))
                at_last = false;
        }
    }
    return at_first || at_last;
}

/* Matches p with its last step at node `at`; m gets the nodes in the order of the steps. */
static bool match_at(const plm_graph *g, const pattern *p, plm_node_id at, const plm_fuse_uses *u,
                     match *m)
{
    plm_node_id found[STEPS_MAX];
    uint32_t last = p->n_steps - 1u;
    if (g->nodes[at].group != 0 || !matches(p->steps[last].op, g->nodes[at].op))
        return false;
    m->n = 0;
    m->node[m->n++] = at;
    found[last] = at;
    for (uint32_t i = last + 1; i-- > 0;)
        for (int j = 0; j < 2; j++) {
            int8_t prev = p->steps[i].prev[j];
            if (prev < 0)
                continue;
            plm_node_id q = find_producer(g, &g->nodes[found[i]], &p->steps[prev], u, m);
            if (q == PLM_NONE)
                return false;
            found[prev] = q;
            m->node[m->n++] = q;
        }
    for (uint32_t i = 0; i <= last; i++)
        m->node[i] = found[i];
    return placeable(g, m, u);
}

/* Puts further producers of the first step's kind before a chain while they have one reader. */
static void extend_chain(const plm_graph *g, const pattern *p, const plm_fuse_uses *u, match *m)
{
    plm_node_id head = m->node[0];
    while (m->n < CHAIN_MAX) {
        plm_node_id q = find_producer(g, &g->nodes[head], &p->steps[0], u, m);
        if (q == PLM_NONE)
            return;
        m->node[m->n++] = q;
        if (!placeable(g, m, u)) {
            m->n--;
            return;
        }
        head = q;
    }
}

/* Two matrices share a kernel only if they read the same rows. */
static bool same_input(const plm_graph *g, const pattern *p, const match *m)
{
    if (p->name != GLU)
        return true;
    return g->nodes[m->node[0]].in[0] == g->nodes[m->node[1]].in[0];
}

plm_status plm_graph_fuse(plm_graph *g, uint64_t mask, plm_error *err)
{
    plm_fuse_uses u;
    uint32_t groups = 0;
    for (size_t i = 0; i < g->n_nodes; i++)
        g->nodes[i].group = 0;
    if (mask == 0 || g->n_nodes == 0)
        return PLM_OK;
    PLM_TRY(plm_fuse_uses_make(g, &u, err));
    for (size_t k = 0; k < N_PATTERNS; k++) {
        const pattern *p = &patterns[k];
        if ((mask >> p->name & 1u) == 0)
            continue;
        /* From the end, so that a chain is met at its last node first. */
        for (plm_node_id at = (plm_node_id)g->n_nodes; at-- > 0;) {
            match m;
            if (!match_at(g, p, at, &u, &m) || !same_input(g, p, &m))
                continue;
            if (p->repeat)
                extend_chain(g, p, &u, &m);
            groups++;
            for (uint32_t i = 0; i < m.n; i++)
                g->nodes[m.node[i]].group = groups;
        }
    }
    plm_fuse_uses_fini(&u);
    return PLM_OK;
}
