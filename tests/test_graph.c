/* Building and verifying graphs: sticky failures, every rule of the verifier broken on purpose, sizes
** of values, and every allocation failing in turn. */
#include "tests/support.h"

#include "core/base/mem.h"
#include "core/ir/fn.h"
#include "core/ir/op.h"

/* One decoder layer of 64 columns, 4 heads of 16, 2 KV heads, and a head of 1000 rows. */
typedef struct layer {
    plm_graph g;
    plm_dim t, c, r;
    plm_value_id x, kc, vc, kw, attn, logits;
} layer;

static plm_dim num(layer *l, int64_t v)
{
    return plm_dim_const(&l->g.dims, v);
}

static plm_value_id weight(layer *l, const char *name, plm_role role, int64_t rows, int64_t cols)
{
    plm_dim dim[] = {num(l, rows), num(l, cols)};
    bool vector = rows == 0;
    return plm_graph_value(&l->g, PLM_VALUE_WEIGHT, role, vector ? PLM_DT_F32 : PLM_DT_Q8_0, name,
                           vector ? 1 : 2, vector ? dim + 1 : dim);
}

static plm_value_id linear(layer *l, plm_value_id x, plm_value_id w)
{
    plm_node_begin(&l->g, PLM_OP_LINEAR);
    plm_node_in(&l->g, x);
    plm_node_in(&l->g, w);
    return plm_node_end(&l->g, PLM_DT_COUNT);
}

static plm_value_id norm(layer *l, plm_value_id x, plm_value_id w)
{
    plm_node_begin(&l->g, PLM_OP_RMS_NORM);
    plm_node_in(&l->g, x);
    plm_node_in(&l->g, w);
    plm_node_real(&l->g, PLM_ATTR_EPS, 1e-6);
    return plm_node_end(&l->g, PLM_DT_COUNT);
}

static plm_value_id heads(layer *l, plm_value_id x, int64_t n)
{
    plm_node_begin(&l->g, PLM_OP_RESHAPE);
    plm_node_in(&l->g, x);
    plm_node_int(&l->g, PLM_ATTR_RANK, n > 0 ? 3 : 2);
    plm_node_int(&l->g, PLM_ATTR_D0, -1);
    plm_node_int(&l->g, PLM_ATTR_D1, n > 0 ? n : 64);
    if (n > 0)
        plm_node_int(&l->g, PLM_ATTR_D2, 16);
    return plm_node_end(&l->g, PLM_DT_COUNT);
}

static void build(layer *l)
{
    plm_graph *g = &l->g;
    plm_graph_init(g);
    l->t = plm_dim_sym(&g->dims, PLM_SYM_T);
    l->c = plm_dim_sym(&g->dims, PLM_SYM_C);
    l->r = plm_dim_sym(&g->dims, PLM_SYM_R);
    plm_dim kv[] = {l->c, num(l, 2), num(l, 16)};
    plm_value_id ids = plm_graph_value(g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_I32, "ids", 1,
                                       &l->t);
    plm_value_id rows = plm_graph_value(g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_I32, "rows", 1,
                                        &l->r);
    plm_value_id table = weight(l, "embed", PLM_ROLE_EMBED, 1000, 64);
    plm_node_begin(g, PLM_OP_EMBED);
    plm_node_in(g, ids);
    plm_node_in(g, table);
    l->x = plm_node_end(g, PLM_DT_BF16);
    g->layer = 0;
    l->kc = plm_graph_value(g, PLM_VALUE_STATE, PLM_ROLE_KV, PLM_DT_BF16, "kv.0.k", 3, kv);
    l->vc = plm_graph_value(g, PLM_VALUE_STATE, PLM_ROLE_KV, PLM_DT_BF16, "kv.0.v", 3, kv);
    plm_value_id h = norm(l, l->x, weight(l, "norm.0", PLM_ROLE_NORM, 0, 64));
    plm_value_id q = heads(l, linear(l, h, weight(l, "q.0", PLM_ROLE_Q, 64, 64)), 4);
    plm_value_id k = heads(l, linear(l, h, weight(l, "k.0", PLM_ROLE_K, 32, 64)), 2);
    plm_value_id v = heads(l, linear(l, h, weight(l, "v.0", PLM_ROLE_V, 32, 64)), 2);
    plm_node_begin(g, PLM_OP_KV_WRITE);
    plm_node_in(g, k);
    plm_node_in(g, l->kc);
    plm_node_in(g, v);
    plm_node_in(g, l->vc);
    l->kw = plm_node_end(g, PLM_DT_COUNT);
    plm_value_id vw = plm_node_out(g, 1);
    plm_node_begin(g, PLM_OP_ATTENTION);
    plm_node_in(g, q);
    plm_node_in(g, l->kw);
    plm_node_in(g, vw);
    plm_node_int(g, PLM_ATTR_HEADS, 4);
    plm_node_real(g, PLM_ATTR_SCALE, 0.25);
    plm_node_int(g, PLM_ATTR_CAUSAL, 1);
    l->attn = heads(l, plm_node_end(g, PLM_DT_COUNT), 0);
    plm_value_id o = linear(l, l->attn, weight(l, "o.0", PLM_ROLE_O, 64, 64));
    plm_node_begin(g, PLM_OP_ADD);
    plm_node_in(g, o);
    plm_node_in(g, l->x);
    plm_value_id y = plm_node_end(g, PLM_DT_COUNT);
    g->layer = -1;
    plm_node_begin(g, PLM_OP_GATHER);
    plm_node_in(g, y);
    plm_node_in(g, rows);
    y = plm_node_end(g, PLM_DT_COUNT);
    plm_node_begin(g, PLM_OP_LINEAR);
    plm_node_in(g, y);
    plm_node_in(g, weight(l, "head", PLM_ROLE_HEAD, 1000, 64));
    l->logits = plm_node_end(g, PLM_DT_F32);
    plm_graph_output(g, l->logits, "logits");
}

static void test_builds(void **state)
{
    (void)state;
    layer l;
    plm_error err = {0};
    build(&l);
    assert_ok(plm_graph_finish(&l.g, &err), err);
    const plm_value *logits = &l.g.values[l.logits];
    assert_int_equal(logits->dtype, PLM_DT_F32);
    assert_int_equal(logits->rank, 2);
    assert_int_equal(logits->dim[0], l.r);
    assert_int_equal(plm_dim_value(&l.g.dims, logits->dim[1]), 1000);
    assert_string_equal(logits->name, "logits");
    assert_int_equal(l.g.values[l.kw].alias, l.kc);
    assert_int_equal(l.g.values[l.kw].role, PLM_ROLE_KV);
    assert_int_equal(l.g.values[l.kw].layer, 0);
    /* nodes: embed, norm, 3 linear, 3 reshape, kv_write, attention, reshape, linear, add, gather,
       head */
    assert_int_equal(l.g.n_nodes, 15);
    const plm_node *attn = &l.g.nodes[l.g.values[l.attn].producer - 1];
    assert_int_equal(attn->op, PLM_OP_ATTENTION);
    assert_int_equal(plm_attr_int(&l.g, attn, PLM_ATTR_HEADS, -7), 4);
    assert_int_equal(plm_attr_int(&l.g, attn, PLM_ATTR_WINDOW, -7), -7);
    assert_true(plm_attr_real(&l.g, attn, PLM_ATTR_SCALE, 0) == 0.25);
    assert_true(plm_attr_real(&l.g, attn, PLM_ATTR_SOFTCAP, 3) == 3);
    plm_graph_fini(&l.g);
}

static void test_value_bytes(void **state)
{
    (void)state;
    layer l;
    plm_error err = {0};
    int64_t bytes, dims[256], sym[PLM_SYM_COUNT] = {[PLM_SYM_T] = 5, [PLM_SYM_C] = 100};
    build(&l);
    l.g.dims.hi[PLM_SYM_T] = 512;
    l.g.dims.hi[PLM_SYM_C] = 4096;
    assert_ok(plm_value_bytes(&l.g, l.x, NULL, &bytes, &err), err);
    assert_int_equal(bytes, 512 * 64 * 2);
    assert_ok(plm_value_bytes(&l.g, l.kc, NULL, &bytes, &err), err);
    assert_int_equal(bytes, 4096 * 2 * 16 * 2);
    assert_true(l.g.dims.count <= 256);
    plm_dims_eval(&l.g.dims, sym, dims);
    assert_ok(plm_value_bytes(&l.g, l.kc, dims, &bytes, &err), err);
    assert_int_equal(bytes, 100 * 2 * 16 * 2);
    /* 3 experts of 130 x 256 in fp8 blocks: each has 2 x 2 scales of its own */
    plm_dim dim[] = {num(&l, 3), num(&l, 130), num(&l, 256)};
    plm_value_id w = plm_graph_value(&l.g, PLM_VALUE_WEIGHT, PLM_ROLE_EXPERT_UP, PLM_DT_FP8_BLOCK,
                                     "experts", 3, dim);
    assert_ok(plm_value_bytes(&l.g, w, NULL, &bytes, &err), err);
    assert_int_equal(bytes, 3 * (130 * 256 + 2 * 2 * 4));
    l.g.dims.hi[PLM_SYM_C] = INT64_MAX;
    assert_int_equal(plm_value_bytes(&l.g, l.kc, NULL, &bytes, &err), PLM_E_INVALID);
    assert_int_equal(plm_value_bytes(&l.g, PLM_NONE, NULL, &bytes, &err), PLM_E_INTERNAL);
    plm_graph_fini(&l.g);
}

/* ---- failures while building ---- */

static void test_sticky(void **state)
{
    (void)state;
    layer l;
    plm_error err = {0};
    build(&l);
    size_t nodes = l.g.n_nodes, values = l.g.n_values;
    plm_node_begin(&l.g, PLM_OP_LINEAR); /* x[T,64] by kc[C,2,16] */
    plm_node_in(&l.g, l.x);
    plm_node_in(&l.g, l.kc);
    assert_int_equal(plm_node_end(&l.g, PLM_DT_COUNT), PLM_NONE);
    assert_int_equal(plm_node_out(&l.g, 0), PLM_NONE);
    /* the first failure stays, later calls do nothing */
    assert_int_equal(norm(&l, l.x, PLM_NONE), PLM_NONE);
    assert_int_equal(weight(&l, "more", PLM_ROLE_Q, 4, 64), PLM_NONE);
    plm_graph_output(&l.g, l.x, "x");
    assert_int_equal(l.g.n_nodes, nodes);
    assert_int_equal(l.g.n_values, values);
    assert_int_equal(plm_graph_finish(&l.g, &err), PLM_E_INVALID);
    assert_non_null(strstr(err.text, "node 15, linear: input 1: rank 3"));
    plm_graph_fini(&l.g);
}

/* Each step alone, on a good graph, must make finish fail with the text. */
static void misuse(layer *l, int which)
{
    plm_graph *g = &l->g;
    plm_dim none = PLM_DIM_NONE;
    switch (which) {
    case 0: plm_node_in(g, l->x); break;
    case 1: plm_node_begin(g, PLM_OP_ADD); break;
    case 2: plm_node_begin(g, PLM_OP_ADD); plm_node_begin(g, PLM_OP_ADD); break;
    case 3: plm_node_begin(g, PLM_OP_COUNT); break;
    case 4: plm_node_begin(g, PLM_OP_ADD); plm_node_in(g, 9999); break;
    case 5: plm_graph_output(g, 9999, "y"); break;
    case 6: plm_graph_output(g, l->x, "no good"); break;
    case 7: weight(l, "", PLM_ROLE_Q, 4, 64); break;
    case 8: weight(l, NULL, PLM_ROLE_Q, 4, 64); break;
    case 9: weight(l, "a:b", PLM_ROLE_Q, 4, 64); break;
    case 10: weight(l, "q.0", PLM_ROLE_Q, 4, 64); break;
    case 11: plm_graph_value(g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_F32, "i", 1, &none); break;
    case 12: plm_graph_value(g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_COUNT, "i", 0, NULL); break;
    case 13: plm_graph_value(g, PLM_VALUE_NODE, PLM_ROLE_NONE, PLM_DT_F32, "i", 0, NULL); break;
    case 14: plm_graph_value(g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_F32, "i", 5, &none); break;
    case 15: plm_graph_value(g, PLM_VALUE_WEIGHT, PLM_ROLE_Q, PLM_DT_F32, "i", 1, &l->t); break;
    case 16: weight(l, "w", PLM_ROLE_Q, 4, 65); break; /* q8_0 rows are multiples of 32 */
    case 17: plm_graph_output(g, l->logits, "again"); break;
    case 18: plm_graph_output(g, l->kc, NULL); break; /* overwritten by kv_write */
    case 19: plm_graph_output(g, l->x, "logits"); break;
    default:
        plm_node_begin(g, PLM_OP_ADD);
        for (int i = 0; i < 20; i++)
            plm_node_in(g, l->x);
    }
}

static void test_misuse(void **state)
{
    (void)state;
    static const char *const text[] = {
        "no node was begun", "never ended", "before the last one was ended", "no such op",
        "no value of this graph", "no such value", "'no good'", "name ''", "(none)", "'a:b'",
        "q.0: two", "dim 0", "dtype", "kind", "rank", "constant", "block of 32", "listed before",
        "overwritten", "logits: two", "too many inputs",
    };
    for (int i = 0; i < (int)(sizeof text / sizeof text[0]); i++) {
        layer l;
        plm_error err = {0};
        build(&l);
        misuse(&l, i);
        assert_int_not_equal(plm_graph_finish(&l.g, &err), PLM_OK);
        if (strstr(err.text, text[i]) == NULL)
            fail_msg("misuse %d: '%s' has no '%s'", i, err.text, text[i]);
        plm_graph_fini(&l.g);
    }
}

/* ---- the verifier ---- */

/* Damages a verified graph in one place. Node numbers: see test_builds. */
static void damage(layer *l, int which)
{
    plm_graph *g = &l->g;
    plm_node *last = &g->nodes[g->n_nodes - 1], *add = last - 2, *attn = &g->nodes[9];
    plm_value *x = &g->values[l->x];
    switch (which) {
    case 0: add->in[0] = l->logits; break;
    case 1: add->in[0] = PLM_NONE; break;
    case 2: add->in[0] = (plm_value_id)g->n_values; break;
    case 3: add->n_in = 1; break;
    case 4: add->n_in = 200; break;
    case 5: last->op = PLM_OP_COUNT; break;
    case 6: last->n_out = 0; break;
    case 7: last->n_out = 2; last->out[1] = last->out[0]; break;
    case 8: last->out[0] = l->x; break;
    case 9: x->dim[1] = l->t; break;
    case 10: x->rank = 1; break;
    case 11: x->rank = 5; break;
    case 12: x->dtype = PLM_DT_COUNT; break;
    case 13: g->values[l->attn].dtype = PLM_DT_F32; break;
    case 14: x->layer = 3; break;
    case 15: x->role = PLM_ROLE_Q; break;
    case 16: x->producer = 3; break;
    case 17: x->producer = PLM_NONE; break;
    case 18: x->alias = l->kc; break;
    case 19: g->values[l->kw].alias = PLM_NONE; break;
    case 20: g->values[l->kc].kind = PLM_VALUE_INPUT; break;
    case 21: attn->in[1] = l->kc; break;             /* read after it was overwritten */
    case 22: g->nodes[8].in[3] = l->kc; break;       /* both caches one value */
    case 23: g->attrs[attn->attr].key = PLM_ATTR_EPS; break;
    case 24: g->attrs[attn->attr].key = PLM_ATTR_KEYS; break;
    case 25: g->attrs[attn->attr].v.i = 0; break;
    case 26: g->attrs[attn->attr + 1].v.f = (double)NAN; break;
    case 27: g->attrs[attn->attr + 2].key = PLM_ATTR_HEADS; break;
    case 28: attn->attr = UINT32_MAX; break;
    case 29: attn->n_attr = UINT16_MAX; break;
    case 30: g->outputs[0] = PLM_NONE; break;
    case 31: g->values[l->kc].name = NULL; break;
    case 32: g->values[l->kc].name = g->values[l->vc].name; break;
    case 33: g->values[l->kc].producer = 1; break;
    case 34: g->dims.lo[PLM_SYM_T] = 5; g->dims.hi[PLM_SYM_T] = 4; break;
    case 35: g->dims.lo[PLM_SYM_T] = -1; break;
    case 36: g->dims.items[l->t].k = PLM_SYM_COUNT; break;
    case 37: g->dims.items[l->t].op = PLM_DIM_ADD; break;
    case 38: x->dim[0] = (plm_dim)g->dims.count; break;
    case 39: x->kind = PLM_VALUE_INPUT; break;
    default: attn->layer = -2;
    }
}

static void test_verifier(void **state)
{
    (void)state;
    static const char *const text[] = {
        "add: input 0, order", "add: input 0: missing", "add: input 0: no value", "add: inputs, 1",
        "add: inputs, 200", "op or layer", "its producer does not make it", "output 1: the same value",
        "its producer does not make it", "embed: output 0, shape", "embed: output 0, rank",
        "rank or layer", "dtype", "reshape: output 0, dtype", "embed: output 0, layer",
        "embed: output 0, role", "producer", "producer", "embed: output 0, alias",
        "kv_write: output 0, alias", "kv_write: state", "attention: input 1, state",
        "kv_write: output 1", "attribute eps", "no such key", "attribute heads, 0",
        "attribute scale", "attribute heads: given twice", "attributes: not in the graph",
        "attributes: not in the graph", "output 0: no value", "needs a name", "two have this name",
        "only values of nodes", "lo <= hi", "lo <= hi", "dim 0: not an expression",
        "dim 0: not an expression", "not in the pool", "only values of nodes", "op or layer",
    };
    for (int i = 0; i < (int)(sizeof text / sizeof text[0]); i++) {
        layer l;
        plm_error err = {0};
        build(&l);
        assert_ok(plm_graph_finish(&l.g, &err), err);
        damage(&l, i);
        if (plm_graph_verify(&l.g, &err) == PLM_OK || strstr(err.text, text[i]) == NULL)
            fail_msg("damage %d: '%s' has no '%s'", i, err.text, text[i]);
        assert_int_not_equal(plm_graph_verify(&l.g, NULL), PLM_OK);
        plm_graph_fini(&l.g);
    }
}

/* Verifying adds nothing to the graph it is given. */
static void test_verify_leaves_graph(void **state)
{
    (void)state;
    layer l;
    plm_error err = {0};
    build(&l);
    size_t dims = l.g.dims.count;
    const plm_dim_node *items = l.g.dims.items;
    for (int i = 0; i < 3; i++)
        assert_ok(plm_graph_verify(&l.g, &err), err);
    assert_int_equal(l.g.dims.count, dims);
    assert_ptr_equal(l.g.dims.items, items);
    plm_graph_fini(&l.g);
    plm_graph_init(&l.g); /* an empty graph is a graph */
    assert_ok(plm_graph_finish(&l.g, &err), err);
    plm_graph_fini(&l.g);
}

/* ---- memory ---- */

/* Build, verify, print and parse with the n-th allocation failing, for every n. */
static void torture(bool all_after)
{
    int64_t live = plm_mem_live();
    bool done = false;
    uint64_t n = 0;
    while (!done && n < 1000) {
        layer l;
        plm_graph copy;
        plm_error err = {0};
        char *text = NULL;
        plm_mem_fail_at(++n, all_after);
        build(&l);
        plm_status status = plm_graph_finish(&l.g, &err);
        if (status == PLM_OK)
            status = plm_graph_print(&l.g, &text, &err);
        if (status == PLM_OK) {
            status = plm_graph_parse(text, strlen(text), &copy, &err);
            plm_graph_fini(&copy);
        }
        plm_mem_fail_at(0, false);
        done = status == PLM_OK;
        if (!done && (status != PLM_E_NO_MEMORY || err.code != PLM_E_NO_MEMORY))
            fail_msg("allocation %llu: %s", (unsigned long long)n, err.text);
        plm_free(text);
        plm_graph_fini(&l.g);
        assert_int_equal(plm_mem_live(), live);
    }
    assert_true(done && n > 20);
}

static void test_torture(void **state)
{
    (void)state;
    torture(false);
    torture(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builds),   cmocka_unit_test(test_value_bytes),
        cmocka_unit_test(test_sticky),   cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_verifier), cmocka_unit_test(test_verify_leaves_graph),
        cmocka_unit_test(test_torture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
