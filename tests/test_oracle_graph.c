/* test_oracle_graph.c - a small hybrid model run by the oracles alone, over shapes of the shape
** rules.
**
** One layer of attention with experts, one of convolution and delta rule: two sequences fed whole,
** or in random chunks mixed in one step, must give the same logits (serving facts, section 31:
** chunked = unchunked, batch of one = any mix).
*/
#include "core/ir/fn.h"
#include "tests/oracle_support.h"

enum { H = 4, G = 2, D = 6, HID = 8, VOCAB = 11, X = 5, TOPK = 2, FFN = 3, TAPS = 3, SLOTS = 40 };
enum { SEQS = 2, LEN = 9, VALUES = 128 };

static plm_value_id weight(plm_graph *g, const char *name, int64_t a, int64_t b, int64_t c)
{
    plm_dim d[3] = {plm_dim_const(&g->dims, a), plm_dim_const(&g->dims, b > 0 ? b : 1),
                    plm_dim_const(&g->dims, c > 0 ? c : 1)};
    uint32_t rank = c > 0 ? 3 : b > 0 ? 2 : 1;
    return plm_graph_value(g, PLM_VALUE_WEIGHT, PLM_ROLE_NONE, PLM_DT_F32, name, rank, d);
}

static plm_value_id symbol_value(plm_graph *g, plm_value_kind kind, plm_dtype t, const char *name,
                                 plm_sym sym, int64_t a, int64_t b, int64_t c)
{
    int64_t k[3] = {a, b, c};
    plm_dim d[4] = {plm_dim_sym(&g->dims, sym)};
    uint32_t rank = 1;
    for (; rank < 4 && k[rank - 1] > 0; rank++)
        d[rank] = plm_dim_const(&g->dims, k[rank - 1]);
    return plm_graph_value(g, kind, PLM_ROLE_NONE, t, name, rank, d);
}

/* Begins a node with up to three inputs. */
static void begin(plm_graph *g, plm_op op, plm_value_id a, plm_value_id b, plm_value_id c)
{
    plm_value_id in[3] = {a, b, c};
    uint32_t n = c != PLM_NONE ? 3 : b != PLM_NONE ? 2 : 1;
    plm_node_begin(g, op);
    for (uint32_t i = 0; i < n; i++)
        plm_node_in(g, in[i]);
}

static plm_value_id end(plm_graph *g)
{
    return plm_node_end(g, PLM_DT_F32);
}

static plm_value_id linear(plm_graph *g, plm_value_id x, const char *name, int64_t n, int64_t k)
{
    begin(g, PLM_OP_LINEAR, x, weight(g, name, n, k, 0), PLM_NONE);
    return end(g);
}

static plm_value_id heads(plm_graph *g, plm_value_id x, int64_t h, int64_t d)
{
    begin(g, PLM_OP_RESHAPE, x, PLM_NONE, PLM_NONE);
    plm_node_int(g, PLM_ATTR_RANK, d > 0 ? 3 : 2);
    plm_node_int(g, PLM_ATTR_D0, -1);
    plm_node_int(g, PLM_ATTR_D1, h);
    if (d > 0)
        plm_node_int(g, PLM_ATTR_D2, d);
    return end(g);
}

static plm_value_id norm(plm_graph *g, plm_value_id x, const char *name, int64_t n)
{
    begin(g, PLM_OP_RMS_NORM, x, weight(g, name, n, 0, 0), PLM_NONE);
    plm_node_real(g, PLM_ATTR_EPS, 1e-6);
    return end(g);
}

static plm_value_id add(plm_graph *g, plm_value_id a, plm_value_id b)
{
    begin(g, PLM_OP_ADD, a, b, PLM_NONE);
    return end(g);
}

static plm_value_id unary(plm_graph *g, plm_value_id x, plm_fn fn)
{
    begin(g, PLM_OP_UNARY, x, PLM_NONE, PLM_NONE);
    plm_node_int(g, PLM_ATTR_FN, fn);
    return end(g);
}

static plm_value_id rope(plm_graph *g, plm_value_id x, plm_value_id pos)
{
    begin(g, PLM_OP_ROPE, x, pos, PLM_NONE);
    plm_node_real(g, PLM_ATTR_THETA, 100);
    plm_node_int(g, PLM_ATTR_ROPE_DIMS, 4);
    return end(g);
}

static plm_value_id attention_half(plm_graph *g, plm_value_id x, plm_value_id pos)
{
    plm_value_id kc = symbol_value(g, PLM_VALUE_STATE, PLM_DT_F32, "k", PLM_SYM_C, G, D, 0);
    plm_value_id vc = symbol_value(g, PLM_VALUE_STATE, PLM_DT_F32, "v", PLM_SYM_C, G, D, 0);
    plm_value_id n = norm(g, x, "n1", HID);
    plm_value_id q = rope(g, heads(g, linear(g, n, "q", H * D, HID), H, D), pos);
    plm_value_id k = rope(g, heads(g, linear(g, n, "wk", G * D, HID), G, D), pos);
    plm_value_id v = heads(g, linear(g, n, "wv", G * D, HID), G, D);
    begin(g, PLM_OP_KV_WRITE, k, kc, v);
    plm_node_in(g, vc);
    kc = end(g);
    vc = plm_node_out(g, 1);
    begin(g, PLM_OP_ATTENTION, q, kc, vc);
    plm_node_in(g, weight(g, "sinks", H, 0, 0));
    plm_node_int(g, PLM_ATTR_CAUSAL, 1);
    plm_node_int(g, PLM_ATTR_WINDOW, 5);
    plm_value_id y = heads(g, end(g), H * D, 0);
    return add(g, x, linear(g, y, "o", HID, H * D));
}

static plm_value_id expert_half(plm_graph *g, plm_value_id x)
{
    plm_value_id n = norm(g, x, "n2", HID);
    begin(g, PLM_OP_GATE, linear(g, n, "router", X, HID), weight(g, "bias", X, 0, 0), PLM_NONE);
    plm_node_int(g, PLM_ATTR_FN, PLM_FN_SIGMOID);
    plm_node_int(g, PLM_ATTR_EXPERTS, X);
    plm_node_int(g, PLM_ATTR_TOP_K, TOPK);
    plm_node_int(g, PLM_ATTR_RENORM, 1);
    plm_value_id w = end(g), ids = plm_node_out(g, 1);
    begin(g, PLM_OP_MOE_SORT, n, ids, PLM_NONE);
    plm_node_int(g, PLM_ATTR_EXPERTS, X);
    plm_node_int(g, PLM_ATTR_LOCAL_EXPERTS, X);
    plm_node_int(g, PLM_ATTR_TOP_K, TOPK);
    plm_value_id xs = end(g), offsets = plm_node_out(g, 1), perm = plm_node_out(g, 2);
    begin(g, PLM_OP_LINEAR_GROUPED, xs, weight(g, "gu", X, 2 * FFN, HID), offsets);
    begin(g, PLM_OP_GLU, end(g), PLM_NONE, PLM_NONE);
    plm_node_int(g, PLM_ATTR_FN, PLM_FN_SILU);
    begin(g, PLM_OP_LINEAR_GROUPED, end(g), weight(g, "down", X, HID, FFN), offsets);
    begin(g, PLM_OP_MOE_COMBINE, end(g), perm, w);
    return add(g, x, end(g));
}

static plm_value_id delta_half(plm_graph *g, plm_value_id x)
{
    plm_value_id n = norm(g, x, "n3", HID), part[3];
    plm_value_id tail =
        symbol_value(g, PLM_VALUE_STATE, PLM_DT_F32, "tail", PLM_SYM_S, 3 * G * D, TAPS - 1, 0);
    plm_value_id S = symbol_value(g, PLM_VALUE_STATE, PLM_DT_F32, "S", PLM_SYM_S, G, D, D);
    begin(g, PLM_OP_CONV_CAUSAL, linear(g, n, "qkv", 3 * G * D, HID),
          weight(g, "conv", 3 * G * D, TAPS, 0), tail);
    plm_node_int(g, PLM_ATTR_FN, PLM_FN_SILU);
    plm_value_id qkv = end(g);
    for (int i = 0; i < 3; i++) {
        begin(g, PLM_OP_SLICE, qkv, PLM_NONE, PLM_NONE);
        plm_node_int(g, PLM_ATTR_AXIS, 1);
        plm_node_int(g, PLM_ATTR_START, i * G * D);
        plm_node_int(g, PLM_ATTR_COUNT, G * D);
        part[i] = heads(g, end(g), G, D);
        if (i == 2)
            continue;
        begin(g, PLM_OP_L2_NORM, part[i], PLM_NONE, PLM_NONE);
        plm_node_real(g, PLM_ATTR_EPS, 1e-6);
        part[i] = end(g);
    }
    plm_value_id beta = unary(g, linear(g, n, "wb", G, HID), PLM_FN_SIGMOID);
    begin(g, PLM_OP_SCALE, unary(g, linear(g, n, "wg", G, HID), PLM_FN_SOFTPLUS), PLM_NONE,
          PLM_NONE);
    plm_node_real(g, PLM_ATTR_SCALE, -1);
    plm_value_id decay = end(g);
    begin(g, PLM_OP_GATED_DELTA, part[0], part[1], part[2]);
    plm_node_in(g, decay);
    plm_node_in(g, beta);
    plm_node_in(g, S);
    return add(g, x, linear(g, heads(g, end(g), G * D, 0), "o2", HID, G * D));
}

/* The logits of every token are output 0. */
static void build(plm_graph *g)
{
    plm_error err;
    plm_graph_init(g);
    plm_value_id ids = symbol_value(g, PLM_VALUE_INPUT, PLM_DT_I32, "ids", PLM_SYM_T, 0, 0, 0);
    plm_value_id pos = symbol_value(g, PLM_VALUE_INPUT, PLM_DT_I32, "pos", PLM_SYM_T, 0, 0, 0);
    begin(g, PLM_OP_EMBED, ids, weight(g, "table", VOCAB, HID, 0), PLM_NONE);
    plm_value_id x = attention_half(g, end(g), pos);
    x = delta_half(g, expert_half(g, x));
    plm_graph_output(g, linear(g, norm(g, x, "n4", HID), "head", VOCAB, HID), "logits");
    assert_ok(plm_graph_finish(g, &err), err);
    assert_true(g->n_values <= VALUES);
}

typedef struct machine {
    plm_graph g;
    plm_array v[VALUES];
    int64_t token_seq[SEQS * LEN], token_pos[SEQS * LEN], token_slot[SEQS * LEN];
    int64_t slot_seq[SLOTS], slot_pos[SLOTS], n_tokens, free_slot;
} machine;

/* Shape of a value for the symbols; storage of the states and weights stays, the rest is renewed.
 */
static void place(machine *m, plm_value_id id, const int64_t *dims)
{
    const plm_value *v = &m->g.values[id];
    plm_array *a = &m->v[id];
    bool keep = a->data != NULL && v->kind != PLM_VALUE_NODE && v->kind != PLM_VALUE_INPUT;
    a->rank = v->rank;
    for (uint32_t i = 0; i < v->rank; i++)
        a->dim[i] = dims[v->dim[i]];
    if (keep)
        return;
    if (v->alias != PLM_NONE) {
        a->data = m->v[v->alias].data;
        return;
    }
    free(a->data);
    size_t n = (size_t)plm_array_count(a);
    a->data = calloc(n + 1, sizeof *a->data);
    assert_true(a->data != NULL);
    uint64_t seed = test_seed(v->name != NULL ? v->name : "");
    if (v->kind == PLM_VALUE_WEIGHT)
        fill_random(&seed, a->data, n);
}

static void run_graph(machine *m)
{
    int64_t *dims = calloc(m->g.dims.count, sizeof *dims);
    int64_t sym[PLM_SYM_COUNT] = {0};
    assert_true(dims != NULL);
    sym[PLM_SYM_T] = m->n_tokens;
    sym[PLM_SYM_S] = SEQS;
    sym[PLM_SYM_C] = SLOTS;
    sym[PLM_SYM_E] = m->n_tokens * TOPK;
    plm_dims_eval(&m->g.dims, sym, dims);
    for (uint32_t i = 0; i < m->g.n_values; i++)
        place(m, i, dims);
    for (int64_t t = 0; t < m->n_tokens; t++) { /* the inputs are values 0 and 1 */
        m->v[0].data[t] = (double)((m->token_seq[t] * 5 + m->token_pos[t] * 3) % VOCAB);
        m->v[1].data[t] = (double)m->token_pos[t];
    }
    for (uint32_t i = 0; i < m->g.n_nodes; i++) {
        const plm_node *n = &m->g.nodes[i];
        plm_array in[PLM_IN_MAX] = {{0}}, out[PLM_OUT_MAX] = {{0}};
        for (uint32_t j = 0; j < n->n_in; j++)
            if (n->in[j] != PLM_NONE)
                in[j] = m->v[n->in[j]];
        for (uint32_t j = 0; j < n->n_out; j++)
            if (n->out[j] != PLM_NONE)
                out[j] = m->v[n->out[j]];
        plm_oracle_ctx c = {.g = &m->g,
                            .n = n,
                            .token_seq = m->token_seq,
                            .token_pos = m->token_pos,
                            .slot_seq = m->slot_seq,
                            .slot_pos = m->slot_pos,
                            .token_slot = m->token_slot,
                            .n_seq = SEQS};
        plm_error err;
        assert_ok(plm_op_get(n->op)->oracle(&c, in, out, &err), err);
    }
    free(dims);
}

static void take_token(machine *m, int64_t seq, int64_t pos)
{
    int64_t slot = (m->free_slot++ * 7 + 5) % SLOTS;
    m->slot_seq[slot] = seq;
    m->slot_pos[slot] = pos;
    m->token_seq[m->n_tokens] = seq;
    m->token_pos[m->n_tokens] = pos;
    m->token_slot[m->n_tokens++] = slot;
}

/* Feeds both sequences in steps of random parts of each; logits[seq][pos][VOCAB]. */
static void feed(uint64_t *seed, int64_t most, double *logits)
{
    static machine m;
    int64_t done[SEQS] = {0};
    memset(&m, 0, sizeof m);
    for (int i = 0; i < SLOTS; i++)
        m.slot_seq[i] = -1;
    build(&m.g);
    while (done[0] + done[1] < SEQS * LEN) {
        m.n_tokens = 0;
        for (int64_t s = 0; s < SEQS; s++) {
            int64_t n = most >= LEN ? LEN : random_below(seed, most + 1);
            for (; n > 0 && done[s] < LEN; n--)
                take_token(&m, s, done[s]++);
        }
        run_graph(&m);
        const double *y = m.v[m.g.outputs[0]].data;
        for (int64_t t = 0; t < m.n_tokens; t++)
            memcpy(&logits[(m.token_seq[t] * LEN + m.token_pos[t]) * VOCAB], &y[t * VOCAB],
                   VOCAB * sizeof *y);
    }
    for (uint32_t i = 0; i < m.g.n_values; i++)
        if (m.g.values[i].alias == PLM_NONE)
            free(m.v[i].data);
    plm_graph_fini(&m.g);
}

static void chunks_and_mixes_change_nothing(void **state)
{
    (void)state;
    static double whole[SEQS * LEN * VOCAB], parts[SEQS * LEN * VOCAB];
    uint64_t seed = test_seed("hybrid");
    feed(&seed, LEN, whole);
    double spread = 0;
    for (size_t i = 1; i < COUNT(whole); i++)
        spread += fabs(whole[i] - whole[0]);
    assert_true(spread > 1 && isfinite(spread));
    for (int64_t most = 1; most <= 4; most++) {
        memset(parts, 0, sizeof parts);
        feed(&seed, most, parts);
        assert_all_close(parts, whole, COUNT(whole), 1e-12, 1e-13);
    }
}

static void every_op_but_the_links_has_an_oracle(void **state)
{
    (void)state;
    for (int op = 0; op < PLM_OP_COUNT; op++) {
        const plm_op_info *info = plm_op_get((plm_op)op);
        assert_int_equal(info->oracle == NULL, (info->flags & PLM_OPF_LINK) != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_and_mixes_change_nothing),
        cmocka_unit_test(every_op_but_the_links_has_an_oracle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
