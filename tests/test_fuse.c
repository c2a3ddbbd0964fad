/* Fusion groups: which nodes a pattern takes, and which it must leave. */
#include "core/ir/fn.h"
#include "core/ir/fuse.h"
#include "core/ir/op.h"
#include "tests/support.h"

static plm_dim t, h;

static void open_graph(plm_graph *g)
{
    plm_graph_init(g);
    t = plm_dim_sym(&g->dims, PLM_SYM_T);
    h = plm_dim_const(&g->dims, 512);
}

static plm_value_id input(plm_graph *g, const char *name)
{
    return plm_graph_value(g, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_BF16, name, 2,
                           (plm_dim[]){t, h});
}

static plm_value_id weight(plm_graph *g, const char *name)
{
    return plm_graph_value(g, PLM_VALUE_WEIGHT, PLM_ROLE_UP, PLM_DT_BF16, name, 2,
                           (plm_dim[]){h, h});
}

static plm_value_id op1(plm_graph *g, plm_op op, plm_value_id a)
{
    plm_node_begin(g, op);
    plm_node_in(g, a);
    if (op == PLM_OP_UNARY)
        plm_node_int(g, PLM_ATTR_FN, PLM_FN_SILU);
    if (op == PLM_OP_SCALE)
        plm_node_real(g, PLM_ATTR_SCALE, 2.0);
    if (op == PLM_OP_RMS_NORM)
        plm_node_real(g, PLM_ATTR_EPS, 1e-6);
    if (op == PLM_OP_ALL_REDUCE)
        plm_node_int(g, PLM_ATTR_RANKS, 8);
    return plm_node_end(g, PLM_DT_COUNT);
}

static plm_value_id op2(plm_graph *g, plm_op op, plm_value_id a, plm_value_id b)
{
    plm_node_begin(g, op);
    plm_node_in(g, a);
    plm_node_in(g, b);
    if (op == PLM_OP_GLU)
        plm_node_int(g, PLM_ATTR_FN, PLM_FN_SILU);
    return plm_node_end(g, PLM_DT_COUNT);
}

static uint64_t bit(const char *name)
{
    for (size_t i = 0; i < plm_fusion_count(); i++)
        if (strcmp(plm_fusion_name(i), name) == 0)
            return UINT64_C(1) << i;
    fail_msg("no fusion pattern \"%s\"", name);
    return 0;
}

/* Groups of the nodes as letters: '.' none, 'a' the first group met, and so on. */
static void groups_are(plm_graph *g, uint64_t mask, const char *want)
{
    plm_error err = {0};
    char got[64] = {0};
    uint32_t seen[26];
    size_t n = 0;
    assert_int_equal(g->error.code, PLM_OK);
    assert_ok(plm_graph_fuse(g, mask, &err), err);
    assert_true(g->n_nodes < sizeof got);
    for (size_t i = 0; i < g->n_nodes; i++) {
        size_t k = 0;
        while (k < n && seen[k] != g->nodes[i].group)
            k++;
        if (g->nodes[i].group != 0 && k == n)
            seen[n++] = g->nodes[i].group;
        got[i] = g->nodes[i].group == 0 ? '.' : (char)('a' + k);
    }
    assert_string_equal(got, want);
}

static void names_are_unique_and_fit_a_mask(void **state)
{
    (void)state;
    assert_true(plm_fusion_count() <= 64);
    for (size_t i = 0; i < plm_fusion_count(); i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(plm_fusion_name(i), plm_fusion_name(k));
    assert_null(plm_fusion_name(plm_fusion_count()));
    static const char *const wanted[] = {"norm_add", "add_norm", "qk_norm_rope", "rope_kv", "glu",
                                         "gate_chain", "norm_quant", "allreduce_norm", "mul_scale",
                                         "elementwise_chain"};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        bit(wanted[i]);
}

/* Residual sum and the norm after it; the sum is read again later. */
static void add_norm_keeps_a_shared_sum(void **state)
{
    plm_graph g;
    (void)state;
    open_graph(&g);
    plm_value_id x = input(&g, "x"), y = input(&g, "y");
    plm_value_id sum = op2(&g, PLM_OP_ADD, x, y);
    plm_value_id n = op1(&g, PLM_OP_RMS_NORM, sum);
    plm_value_id m = op2(&g, PLM_OP_LINEAR, n, weight(&g, "w"));
    plm_graph_output(&g, op2(&g, PLM_OP_ADD, m, sum), "out");
    groups_are(&g, bit("add_norm"), "aa..");
    groups_are(&g, 0, "....");
    groups_are(&g, bit("glu"), "....");
    plm_graph_fini(&g);
}

static void norm_add_needs_a_single_reader(void **state)
{
    plm_graph g;
    (void)state;
    open_graph(&g);
    plm_value_id x = input(&g, "x");
    plm_value_id n = op1(&g, PLM_OP_RMS_NORM, x);
    plm_value_id s = op2(&g, PLM_OP_ADD, n, x);
    plm_graph_output(&g, s, "out");
    groups_are(&g, bit("norm_add"), "aa");
    plm_graph_output(&g, n, "norm"); /* now the norm is read outside too */
    groups_are(&g, bit("norm_add"), "..");
    plm_graph_fini(&g);
}

static void glu_takes_both_matrices_of_one_input(void **state)
{
    plm_graph g;
    (void)state;
    open_graph(&g);
    plm_value_id x = input(&g, "x"), y = input(&g, "y");
    plm_value_id a = op2(&g, PLM_OP_LINEAR, x, weight(&g, "w1"));
    plm_value_id b = op2(&g, PLM_OP_LINEAR, x, weight(&g, "w2"));
    plm_value_id c = op2(&g, PLM_OP_GLU, a, b);
    plm_value_id d = op2(&g, PLM_OP_LINEAR, c, weight(&g, "w3"));
    plm_value_id e = op2(&g, PLM_OP_LINEAR, y, weight(&g, "w4"));
    plm_graph_output(&g, op2(&g, PLM_OP_GLU, d, e), "out"); /* inputs differ */
    groups_are(&g, bit("glu"), "aaa...");
    plm_graph_fini(&g);
}

static void allreduce_norm_reaches_over_the_sum(void **state)
{
    plm_graph g;
    (void)state;
    open_graph(&g);
    plm_value_id x = input(&g, "x"), r = input(&g, "r");
    plm_value_id m = op2(&g, PLM_OP_LINEAR, x, weight(&g, "w"));
    plm_value_id sum = op2(&g, PLM_OP_ADD, op1(&g, PLM_OP_ALL_REDUCE, m), r);
    plm_value_id n = op1(&g, PLM_OP_RMS_NORM, sum);
    plm_graph_output(&g, n, "n");
    plm_graph_output(&g, sum, "sum");
    groups_are(&g, bit("allreduce_norm") | bit("add_norm"), ".aaa");
    groups_are(&g, bit("add_norm"), "..aa");
    plm_graph_fini(&g);
}

/* A view between two members is looked through; the view itself is in no group. */
static void views_are_looked_through(void **state)
{
    plm_graph g;
    (void)state;
    open_graph(&g);
    plm_value_id x = input(&g, "x");
    plm_value_id a = op1(&g, PLM_OP_SCALE, x);
    plm_node_begin(&g, PLM_OP_RESHAPE);
    plm_node_in(&g, a);
    plm_node_int(&g, PLM_ATTR_RANK, 3);
    plm_node_int(&g, PLM_ATTR_D0, -1);
    plm_node_int(&g, PLM_ATTR_D1, 4);
    plm_node_int(&g, PLM_ATTR_D2, 128);
    plm_value_id v = plm_node_end(&g, PLM_DT_COUNT);
    plm_graph_output(&g, op1(&g, PLM_OP_UNARY, v), "out");
    groups_are(&g, bit("mul_scale"), "a.a");
    plm_graph_fini(&g);
}

static void chains_run_as_long_as_they_are_private(void **state)
{
    plm_graph g;
    (void)state;
    open_graph(&g);
    plm_value_id x = input(&g, "x");
    plm_value_id a = op1(&g, PLM_OP_SCALE, x);
    plm_value_id b = op1(&g, PLM_OP_UNARY, a);
    plm_value_id c = op2(&g, PLM_OP_MUL, b, x);
    plm_value_id d = op1(&g, PLM_OP_SCALE, c);
    plm_value_id e = op1(&g, PLM_OP_UNARY, d);
    plm_value_id f = op2(&g, PLM_OP_ADD, d, e); /* d is read twice: no chain across it */
    plm_graph_output(&g, f, "out");
    groups_are(&g, bit("elementwise_chain"), "aaaabb");
    plm_graph_fini(&g);
}

/* A kernel of {scale, add} would have to run before the matrix (whose result it adds) and after it
** (which reads what it scales). */
static void a_group_must_have_a_place(void **state)
{
    plm_graph g;
    (void)state;
    open_graph(&g);
    plm_value_id x = input(&g, "x");
    plm_value_id s = op2(&g, PLM_OP_ADD, x, x);
    plm_value_id m = op2(&g, PLM_OP_LINEAR, s, weight(&g, "w"));
    plm_node_begin(&g, PLM_OP_RMS_NORM_GATED);
    plm_node_in(&g, s);
    plm_node_in(&g, m);
    plm_node_in(&g, plm_graph_value(&g, PLM_VALUE_WEIGHT, PLM_ROLE_NORM, PLM_DT_BF16, "nw", 1, &h));
    plm_node_real(&g, PLM_ATTR_EPS, 1e-6);
    plm_graph_output(&g, plm_node_end(&g, PLM_DT_COUNT), "out");
    groups_are(&g, bit("add_norm"), "...");
    plm_graph_fini(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_unique_and_fit_a_mask),
        cmocka_unit_test(add_norm_keeps_a_shared_sum),
        cmocka_unit_test(norm_add_needs_a_single_reader),
        cmocka_unit_test(glu_takes_both_matrices_of_one_input),
        cmocka_unit_test(allreduce_norm_reaches_over_the_sum),
        cmocka_unit_test(views_are_looked_through),
        cmocka_unit_test(chains_run_as_long_as_they_are_private),
        cmocka_unit_test(a_group_must_have_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
