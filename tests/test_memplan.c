/* Memory plan: no two live values overlap, the peak is what lives at once at least, and storage is
** shared where it may be. Liveness is worked out anew here, from the rules in op.h alone. */
#include <stdlib.h>
#include <time.h>

#include "core/ir/fn.h"
#include "core/ir/op.h"
#include "tests/support.h"

static plm_value_id input(plm_graph *g, const char *name, int64_t cols)
{
    plm_dim d[2] = {plm_dim_sym(&g->dims, PLM_SYM_T), plm_dim_const(&g->dims, cols)};
    return plm_graph_value(g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_BF16, name, 2, d);
}

static plm_value_id linear(plm_graph *g, plm_value_id x, int64_t n)
{
    static int serial;
    char name[16];
    snprintf(name, sizeof name, "w%d", serial++);
    plm_dim d[2] = {plm_dim_const(&g->dims, n), g->values[x].dim[1]};
    plm_value_id w = plm_graph_value(g, PLM_VALUE_WEIGHT, PLM_ROLE_UP, PLM_DT_BF16, name, 2, d);
    plm_node_begin(g, PLM_OP_LINEAR);
    plm_node_in(g, x);
    plm_node_in(g, w);
    return plm_node_end(g, PLM_DT_COUNT);
}

static plm_value_id silu(plm_graph *g, plm_value_id x)
{
    plm_node_begin(g, PLM_OP_UNARY);
    plm_node_in(g, x);
    plm_node_int(g, PLM_ATTR_FN, PLM_FN_SILU);
    return plm_node_end(g, PLM_DT_COUNT);
}

static plm_value_id add(plm_graph *g, plm_value_id a, plm_value_id b)
{
    plm_node_begin(g, PLM_OP_ADD);
    plm_node_in(g, a);
    plm_node_in(g, b);
    return plm_node_end(g, PLM_DT_COUNT);
}

static plm_value_id slice(plm_graph *g, plm_value_id x, int64_t start, int64_t count)
{
    plm_node_begin(g, PLM_OP_SLICE);
    plm_node_in(g, x);
    plm_node_int(g, PLM_ATTR_AXIS, 1);
    plm_node_int(g, PLM_ATTR_START, start);
    plm_node_int(g, PLM_ATTR_COUNT, count);
    return plm_node_end(g, PLM_DT_COUNT);
}

static plm_memory_plan plan_of(plm_graph *g)
{
    plm_memory_plan p;
    plm_error err = {0};
    assert_string_equal(g->error.text, "");
    assert_ok(plm_memory_plan_make(g, &p, &err), err);
    return p;
}

/* T at most 128, so [T,256] of bf16 is 64 KiB. */
static void open_graph(plm_graph *g)
{
    plm_graph_init(g);
    g->dims.hi[PLM_SYM_T] = 128;
}

static void a_chain_runs_in_two_buffers(void **state)
{
    plm_graph g;
    (void)state;
    open_graph(&g);
    plm_value_id x = input(&g, "x", 256);
    for (int i = 0; i < 10; i++)
        x = linear(&g, x, 256);
    plm_graph_output(&g, x, "y");
    plm_memory_plan p = plan_of(&g);
    assert_int_equal(p.peak_bytes, 2 * 65536);
    plm_memory_plan_fini(&p);
    plm_graph_fini(&g);
}

static void elementwise_runs_in_place(void **state)
{
    plm_graph g;
    (void)state;
    open_graph(&g);
    plm_value_id x = linear(&g, input(&g, "x", 256), 256), y = x;
    for (int i = 0; i < 10; i++)
        y = silu(&g, y);
    plm_graph_output(&g, y, "y");
    plm_memory_plan p = plan_of(&g);
    assert_int_equal(p.peak_bytes, 65536);
    assert_int_equal(p.offset[y], p.offset[x]);
    plm_memory_plan_fini(&p);
    plm_graph_fini(&g);
}

/* What is read again later must not be overwritten. */
static void in_place_spares_what_is_read_later(void **state)
{
    plm_graph g;
    (void)state;
    open_graph(&g);
    plm_value_id x = linear(&g, input(&g, "x", 256), 256);
    plm_value_id s = silu(&g, x);
    plm_value_id y = add(&g, s, x);
    plm_graph_output(&g, y, "y");
    plm_memory_plan p = plan_of(&g);
    assert_int_not_equal(p.offset[s], p.offset[x]);
    assert_int_equal(p.offset[y], p.offset[s]);
    assert_int_equal(p.peak_bytes, 2 * 65536);
    plm_memory_plan_fini(&p);
    plm_graph_fini(&g);
}

static void views_share_and_hold_storage(void **state)
{
    plm_graph g;
    (void)state;
    open_graph(&g);
    plm_value_id x = linear(&g, input(&g, "x", 256), 256);
    plm_value_id a = slice(&g, x, 0, 128), b = slice(&g, x, 128, 128);
    plm_value_id c = linear(&g, a, 256);
    plm_value_id d = linear(&g, c, 256); /* x still lives, through b */
    plm_value_id e = linear(&g, b, 256);
    plm_graph_output(&g, add(&g, d, e), "y");
    plm_memory_plan p = plan_of(&g);
    assert_int_equal(p.offset[a], p.offset[x]);
    assert_int_equal(p.offset[b], p.offset[x]);
    assert_int_not_equal(p.offset[c], p.offset[x]);
    assert_int_not_equal(p.offset[d], p.offset[x]);
    assert_int_equal(p.peak_bytes, 3 * 65536);
    plm_memory_plan_fini(&p);
    plm_graph_fini(&g);
}

static void what_no_node_makes_is_outside(void **state)
{
    plm_graph g;
    (void)state;
    open_graph(&g);
    plm_value_id x = input(&g, "x", 256);
    plm_value_id v = slice(&g, x, 0, 128);
    plm_graph_output(&g, linear(&g, v, 256), "y");
    plm_memory_plan p = plan_of(&g);
    assert_int_equal(p.offset[x], -1);
    assert_int_equal(p.offset[v], -1);
    assert_int_equal(p.peak_bytes, 65536);
    plm_memory_plan_fini(&p);
    plm_graph_fini(&g);
}

/* ---- random graphs ---- */

static plm_value_id pick(uint64_t *seed, const plm_value_id *from, size_t n)
{
    /* Mostly recent values, as in a network. */
    size_t back = 1 + (size_t)(test_random(seed) % (n < 6 ? n : 6));
    if (test_random(seed) % 8 == 0)
        back = 1 + (size_t)(test_random(seed) % n);
    return from[n - back];
}

static void build_random(plm_graph *g, uint64_t *seed, size_t n_ops)
{
    static const int64_t widths[] = {64, 128, 320, 512};
    plm_value_id *all = malloc((n_ops * 2 + 8) * sizeof *all);
    size_t n = 0;
    assert_non_null(all);
    all[n++] = input(g, "x", 128);
    all[n++] = linear(g, all[0], 512);
    for (size_t i = 0; i < n_ops; i++) {
        plm_value_id a = pick(seed, all, n);
        int64_t cols = plm_dim_value(&g->dims, g->values[a].dim[1]);
        switch (test_random(seed) % 5) {
        case 0:
            all[n++] = slice(g, a, 0, cols / 2);
            break;
        case 1:
            all[n++] = silu(g, a);
            break;
        case 2:
            all[n] = add(g, a, silu(g, a));
            n++;
            break;
        default:
            all[n++] = linear(g, a, widths[test_random(seed) % 4]);
        }
        cols = plm_dim_value(&g->dims, g->values[all[n - 1]].dim[1]);
        if (cols < 64)
            all[n - 1] = linear(g, all[n - 1], 128);
    }
    plm_graph_output(g, all[n - 1], "y");
    plm_graph_output(g, all[n / 2], "z");
    free(all);
}

/* Storage of v: the value its views lead back to; PLM_NONE outside the arena. */
static plm_value_id storage(const plm_graph *g, plm_value_id v)
{
    while (g->values[v].kind == PLM_VALUE_NODE &&
           (plm_op_get(g->nodes[g->values[v].producer].op)->flags & PLM_OPF_VIEW))
        v = g->nodes[g->values[v].producer].in[0];
    return g->values[v].kind == PLM_VALUE_NODE ? v : PLM_NONE;
}

static void check_plan(const plm_graph *g, const plm_memory_plan *p)
{
    size_t n = g->n_values;
    uint32_t *birth = calloc(n, sizeof *birth), *last = calloc(n, sizeof *last);
    int64_t *bytes = calloc(n, sizeof *bytes), dims[512];
    plm_error err = {0};
    assert_true(birth != NULL && last != NULL && bytes != NULL && g->dims.count < 512);
    plm_dims_eval(&g->dims, g->dims.hi, dims);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const plm_node *x = &g->nodes[i];
        for (int j = 0; j < x->n_out; j++)
            if (storage(g, x->out[j]) == x->out[j]) {
                birth[x->out[j]] = last[x->out[j]] = i;
                assert_ok(plm_value_bytes(g, x->out[j], dims, &bytes[x->out[j]], &err), err);
                assert_true(p->offset[x->out[j]] >= 0 && p->offset[x->out[j]] % 256 == 0);
                assert_true(p->offset[x->out[j]] + bytes[x->out[j]] <= p->peak_bytes);
            } else if (storage(g, x->out[j]) != PLM_NONE) {
                assert_int_equal(p->offset[x->out[j]], p->offset[storage(g, x->out[j])]);
            }
        for (int j = 0; j < x->n_in; j++)
            if (x->in[j] != PLM_NONE && storage(g, x->in[j]) != PLM_NONE)
                last[storage(g, x->in[j])] = i;
    }
    for (size_t i = 0; i < g->n_outputs; i++)
        if (storage(g, g->outputs[i]) != PLM_NONE)
            last[storage(g, g->outputs[i])] = (uint32_t)g->n_nodes;
    for (size_t a = 0; a < n; a++)
        for (size_t b = a + 1; b < n; b++) {
            if (bytes[a] == 0 || bytes[b] == 0 || last[a] < birth[b] || last[b] < birth[a])
                continue;
            bool apart = p->offset[a] + bytes[a] <= p->offset[b] ||
                         p->offset[b] + bytes[b] <= p->offset[a];
            /* In place: b is made where a dies, at one offset, of an op that may. */
            const plm_node *x = &g->nodes[g->values[b].producer];
            bool place = last[a] == birth[b] && p->offset[a] == p->offset[b] &&
                         (plm_op_get(x->op)->flags & PLM_OPF_INPLACE) &&
                         storage(g, x->in[0]) == a && bytes[b] <= bytes[a];
            for (int j = 1; j < x->n_in && place; j++)
                place = storage(g, x->in[j]) != (plm_value_id)a;
            if (!apart && !place)
                fail_msg("values %zu [%u,%u] and %zu [%u,%u] overlap", a, birth[a], last[a], b,
                         birth[b], last[b]);
        }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        int64_t live = 0;
        for (size_t v = 0; v < n; v++)
            if (bytes[v] > 0 && birth[v] <= i && last[v] > i) /* after node i */
                live += bytes[v];
        assert_true(live <= p->peak_bytes);
    }
    free(birth);
    free(last);
    free(bytes);
}

static void random_graphs_never_overlap(void **state)
{
    uint64_t seed = test_seed("random_graphs_never_overlap");
    (void)state;
    for (int trial = 0; trial < 150; trial++) {
        plm_graph g;
        plm_error err = {0};
        open_graph(&g);
        build_random(&g, &seed, 10 + (size_t)(test_random(&seed) % 60));
        plm_memory_plan p = plan_of(&g);
        check_plan(&g, &p);
        plm_memory_plan_fini(&p);
        /* With every fusion group: what a group touches lives longer, never shorter. */
        assert_ok(plm_graph_fuse(&g, UINT64_MAX, &err), err);
        p = plan_of(&g);
        check_plan(&g, &p);
        plm_memory_plan_fini(&p);
        plm_graph_fini(&g);
    }
}

/* Of the size of Llama-405B: 126 layers of some 24 nodes. */
static void three_thousand_nodes_are_quick(void **state)
{
    uint64_t seed = test_seed("three_thousand_nodes_are_quick");
    plm_graph g;
    struct timespec a, b;
    (void)state;
    open_graph(&g);
    build_random(&g, &seed, 2600);
    assert_true(g.n_nodes >= 3000);
    clock_gettime(CLOCK_MONOTONIC, &a);
    plm_memory_plan p = plan_of(&g);
    clock_gettime(CLOCK_MONOTONIC, &b);
    double s = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
    printf("memory plan of %zu nodes: %.3f ms\n", g.n_nodes, s * 1e3);
    assert_true(s < 0.1); /* well under 1 ms when optimised; room for sanitizers and a busy machine */
    plm_memory_plan_fini(&p);
    plm_graph_fini(&g);
}

static void too_large_is_an_error(void **state)
{
    plm_graph g;
    plm_memory_plan p;
    plm_error err = {0};
    (void)state;
    plm_graph_init(&g);
    g.dims.hi[PLM_SYM_T] = INT64_MAX / 4;
    plm_graph_output(&g, linear(&g, input(&g, "x", 256), 256), "y");
    assert_int_equal(plm_memory_plan_make(&g, &p, &err), PLM_E_INVALID);
    assert_true(err.text[0] != '\0');
    plm_graph_fini(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_runs_in_two_buffers),
        cmocka_unit_test(elementwise_runs_in_place),
        cmocka_unit_test(in_place_spares_what_is_read_later),
        cmocka_unit_test(views_share_and_hold_storage),
        cmocka_unit_test(what_no_node_makes_is_outside),
        cmocka_unit_test(random_graphs_never_overlap),
        cmocka_unit_test(three_thousand_nodes_are_quick),
        cmocka_unit_test(too_large_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
