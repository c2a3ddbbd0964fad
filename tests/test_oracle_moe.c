/* test_oracle_moe.c - routing: the gate in its kinds, the sort and the combination. */
#include "tests/oracle_support.h"

static void set_gate(node_case *k, plm_fn fn, int64_t top_k, const double *logits, int64_t T,
                     int64_t X, double *w, double *ids)
{
    case_init(k, PLM_OP_GATE);
    case_int(k, PLM_ATTR_FN, fn);
    case_int(k, PLM_ATTR_TOP_K, top_k);
    case_int(k, PLM_ATTR_EXPERTS, X);
    case_in(k, 0, logits, DIMS(T, X));
    case_out(k, 0, w, DIMS(T, top_k));
    case_out(k, 1, ids, DIMS(T, top_k));
}

static void gate_softmax_by_hand(void **state)
{
    (void)state;
    /* e^x = 1 2 4 3 -> shares .1 .2 .4 .3 */
    const double logits[] = {0, log(2), log(4), log(3)};
    double w[2], ids[2];
    node_case k;
    set_gate(&k, PLM_FN_SOFTMAX, 2, logits, 1, 4, w, ids);
    case_ok(&k, plm_oracle_gate);
    assert_all_equal(ids, (const double[]){2, 3}, 2);
    assert_all_close(w, (const double[]){0.4, 0.3}, 2, 1e-14, 0);
    case_int(&k, PLM_ATTR_RENORM, 1);
    case_real(&k, PLM_ATTR_SCALE, 2.5);
    case_ok(&k, plm_oracle_gate);
    assert_all_close(w, (const double[]){2.5 * 4 / 7, 2.5 * 3 / 7}, 2, 1e-14, 0);
    /* Chosen by logit, softmax over the chosen: the same shares as renormalised ones. */
    set_gate(&k, PLM_FN_SOFTMAX_TOPK, 2, logits, 1, 4, w, ids);
    case_ok(&k, plm_oracle_gate);
    assert_all_equal(ids, (const double[]){2, 3}, 2);
    assert_all_close(w, (const double[]){4.0 / 7, 3.0 / 7}, 2, 1e-14, 0);
}

/* The bias moves the choice; the weight is the score without it. */
static void gate_bias_steers_the_choice_only(void **state)
{
    (void)state;
    const double logits[] = {log(1), log(3), log(9), log(0.25)}; /* sigmoids 1/2 3/4 9/10 1/5 */
    static const double bias[] = {0, 0, -0.5, 0.6};
    double w[2], ids[2];
    node_case k;
    set_gate(&k, PLM_FN_SIGMOID, 2, logits, 1, 4, w, ids);
    case_in(&k, 1, bias, DIMS(4));
    case_ok(&k, plm_oracle_gate); /* choices .5 .75 .4 .8 */
    assert_all_equal(ids, (const double[]){3, 1}, 2);
    assert_all_close(w, (const double[]){0.2, 0.75}, 2, 1e-14, 0);
    case_int(&k, PLM_ATTR_RENORM, 1);
    case_real(&k, PLM_ATTR_SCALE, 2);
    case_ok(&k, plm_oracle_gate);
    assert_all_close(w, (const double[]){0.4 / 0.95, 1.5 / 0.95}, 2, 1e-14, 0);
    set_gate(&k, PLM_FN_SOFTMAX_TOPK, 2, logits, 1, 4, w, ids);
    case_in(&k, 1, (const double[]){10, 0, 0, 0}, DIMS(4));
    case_ok(&k, plm_oracle_gate); /* logits 0 and ln 9 make the weights, not 10 */
    assert_all_equal(ids, (const double[]){0, 2}, 2);
    assert_all_close(w, (const double[]){0.1, 0.9}, 2, 1e-14, 0);
}

/* Ids given are the choice, in their order; scores 1/2 3/4 9/10 1/5 weigh them. */
static void gate_of_given_experts(void **state)
{
    (void)state;
    const double logits[] = {log(1), log(3), log(9), log(0.25)};
    static const double given[] = {3, 1}, outside[] = {3, 4};
    double w[2], ids[2];
    node_case k;
    set_gate(&k, PLM_FN_SIGMOID, 2, logits, 1, 4, w, ids);
    case_in(&k, 2, given, DIMS(1, 2));
    case_ok(&k, plm_oracle_gate);
    assert_all_equal(ids, given, 2);
    assert_all_close(w, (const double[]){0.2, 0.75}, 2, 1e-14, 0);
    case_int(&k, PLM_ATTR_RENORM, 1);
    case_real(&k, PLM_ATTR_SCALE, 1.5);
    case_ok(&k, plm_oracle_gate);
    assert_all_close(w, (const double[]){0.3 / 0.95, 1.125 / 0.95}, 2, 1e-14, 0);
    case_in(&k, 2, outside, DIMS(1, 2));
    case_refused(&k, plm_oracle_gate, "ids");
    case_in(&k, 2, given, DIMS(2, 1));
    case_refused(&k, plm_oracle_gate, "ids");
}

static void gate_sqrt_softplus(void **state)
{
    (void)state;
    static const double logits[] = {-2, -0.5, 1, 3};
    double w[4], ids[4];
    node_case k;
    set_gate(&k, PLM_FN_SQRT_SOFTPLUS, 4, logits, 1, 4, w, ids);
    case_ok(&k, plm_oracle_gate);
    assert_all_equal(ids, (const double[]){3, 2, 1, 0}, 4);
    assert_all_close(w,
                     (const double[]){1.7460204327480655, 1.145976303209723, 0.6885324859293908,
                                      0.3562695763645453},
                     4, 1e-14, 0);
}

static void gate_ties_take_the_lowest(void **state)
{
    (void)state;
    static const double logits[] = {1, 2, 2, 1, 2, 0};
    double w[4], ids[4];
    node_case k;
    set_gate(&k, PLM_FN_SOFTMAX, 4, logits, 1, 6, w, ids);
    case_ok(&k, plm_oracle_gate);
    assert_all_equal(ids, (const double[]){1, 2, 4, 0}, 4);
}

/* 8 experts in 4 groups of 2, two groups allowed. */
static void gate_limits_groups(void **state)
{
    (void)state;
    double s[8] = {0.9, 0.1, 0.6, 0.5, 0.7, 0.2, 0.3, 0.3}, logits[8], w[3], ids[3];
    for (int i = 0; i < 8; i++)
        logits[i] = log(s[i] / (1 - s[i]));
    node_case k;
    /* Without bias a group is worth its best: .9 .6 .7 .3, so groups 0 and 2. */
    set_gate(&k, PLM_FN_SIGMOID, 3, logits, 1, 8, w, ids);
    case_int(&k, PLM_ATTR_N_GROUP, 4);
    case_int(&k, PLM_ATTR_TOPK_GROUP, 2);
    case_ok(&k, plm_oracle_gate);
    assert_all_equal(ids, (const double[]){0, 4, 5}, 3);
    assert_all_close(w, (const double[]){0.9, 0.7, 0.2}, 3, 1e-13, 0);
    /* With one it is worth its best two: 1.0 1.1 .9 .6, so groups 1 and 0. */
    double bias[8] = {0};
    case_in(&k, 1, bias, DIMS(8));
    case_ok(&k, plm_oracle_gate);
    assert_all_equal(ids, (const double[]){0, 2, 3}, 3);
    assert_all_close(w, (const double[]){0.9, 0.6, 0.5}, 3, 1e-13, 0);
    /* The bias counts there: it lifts group 3 over group 0. */
    bias[6] = bias[7] = 0.25;
    case_ok(&k, plm_oracle_gate); /* group 3: .55 + .55 */
    assert_all_equal(ids, (const double[]){2, 6, 7}, 3);
    assert_all_close(w, (const double[]){0.6, 0.3, 0.3}, 3, 1e-13, 0);
    /* Experts out of the allowed groups are never chosen, even where all others are negative. */
    for (int i = 0; i < 8; i++)
        bias[i] = -5;
    bias[0] = -4;
    set_gate(&k, PLM_FN_SIGMOID, 3, logits, 1, 8, w, ids);
    case_int(&k, PLM_ATTR_N_GROUP, 4);
    case_int(&k, PLM_ATTR_TOPK_GROUP, 2);
    case_in(&k, 1, bias, DIMS(8));
    case_ok(&k, plm_oracle_gate);
    assert_all_equal(ids, (const double[]){0, 2, 3}, 3);
}

static void gate_refuses(void **state)
{
    (void)state;
    double logits[8] = {0}, w[8], ids[8];
    node_case k;
    set_gate(&k, PLM_FN_SIGMOID, 5, logits, 1, 8, w, ids);
    case_int(&k, PLM_ATTR_N_GROUP, 4);
    case_int(&k, PLM_ATTR_TOPK_GROUP, 2);
    case_refused(&k, plm_oracle_gate, "top_k"); /* two groups hold 4 */
    set_gate(&k, PLM_FN_SIGMOID, 2, logits, 1, 8, w, ids);
    case_int(&k, PLM_ATTR_N_GROUP, 3);
    case_int(&k, PLM_ATTR_TOPK_GROUP, 1);
    case_refused(&k, plm_oracle_gate, "n_group");
    set_gate(&k, PLM_FN_SWIGLU_OAI, 2, logits, 1, 8, w, ids);
    case_refused(&k, plm_oracle_gate, "fn");
    set_gate(&k, PLM_FN_SIGMOID, 2, logits, 1, 8, w, ids);
    case_in(&k, 1, logits, DIMS(7));
    case_refused(&k, plm_oracle_gate, "bias");
    for (uint64_t n = 1; n <= 2; n++) {
        set_gate(&k, PLM_FN_SIGMOID, 2, logits, 1, 8, w, ids);
        int64_t live = plm_mem_live();
        plm_mem_fail_at(n, false);
        assert_int_equal(plm_oracle_gate(&k.c, k.in, k.out, &k.err), PLM_E_NO_MEMORY);
        plm_mem_fail_at(0, false);
        assert_int_equal(plm_mem_live(), live);
    }
}

static void gate_of_a_masked_row(void **state)
{
    (void)state;
    const double inf = (double)INFINITY, logits[] = {-inf, -inf, -inf};
    double w[2], ids[2];
    node_case k;
    set_gate(&k, PLM_FN_SOFTMAX, 2, logits, 1, 3, w, ids);
    case_int(&k, PLM_ATTR_RENORM, 1);
    case_ok(&k, plm_oracle_gate);
    assert_all_equal(w, (const double[]){0, 0}, 2);
    assert_all_equal(ids, (const double[]){0, 1}, 2);
    set_gate(&k, PLM_FN_SOFTMAX, 2, logits, 0, 3, w, ids);
    case_ok(&k, plm_oracle_gate);
}

static void moe_sort_by_hand(void **state)
{
    (void)state;
    /* Pairs 0..5 go to experts 2 0 0 2 1 2; the sort keeps their order within an expert. */
    static const double x[] = {10, 11, 20, 21, 30, 31}, ids[] = {2, 0, 0, 2, 1, 2};
    double xs[12], offsets[5], perm[6];
    node_case k;
    case_init(&k, PLM_OP_MOE_SORT);
    case_in(&k, 0, x, DIMS(3, 2));
    case_in(&k, 1, ids, DIMS(3, 2));
    case_out(&k, 0, xs, DIMS(6, 2));
    case_out(&k, 1, offsets, DIMS(5));
    case_out(&k, 2, perm, DIMS(6));
    case_ok(&k, plm_oracle_moe_sort);
    assert_all_equal(offsets, (const double[]){0, 2, 3, 6, 6}, 5); /* expert 3 has none */
    assert_all_equal(perm, (const double[]){1, 2, 4, 0, 3, 5}, 6);
    assert_all_equal(xs, (const double[]){10, 11, 20, 21, 30, 31, 10, 11, 20, 21, 30, 31}, 12);
    /* This rank holds experts 0 and 1 of them; a row stays free. */
    case_out(&k, 0, xs, DIMS(4, 2));
    case_out(&k, 1, offsets, DIMS(3));
    case_out(&k, 2, perm, DIMS(4));
    case_ok(&k, plm_oracle_moe_sort);
    assert_all_equal(offsets, (const double[]){0, 2, 3}, 3);
    assert_all_equal(perm, (const double[]){1, 2, 4, -1}, 4);
    assert_all_equal(xs, (const double[]){10, 11, 20, 21, 30, 31, 0, 0}, 8);
    case_out(&k, 0, xs, DIMS(2, 2));
    case_out(&k, 2, perm, DIMS(2));
    case_refused(&k, plm_oracle_moe_sort, "xs");
    case_in(&k, 0, x, DIMS(0, 2));
    case_in(&k, 1, ids, DIMS(0, 2));
    case_out(&k, 0, xs, DIMS(0, 2));
    case_out(&k, 1, offsets, DIMS(3));
    case_out(&k, 2, perm, DIMS(0));
    case_ok(&k, plm_oracle_moe_sort);
    assert_all_equal(offsets, (const double[]){0, 0, 0}, 3);
}

/* gate, sort, grouped product and combination against the sum over all experts of a dense layer,
** each weighted by the token's weight for it (0 for those not chosen). */
static void routed_layer_equals_dense_sum(void **state)
{
    (void)state;
    enum { T = 7, X = 5, K = 2, W = 3, N = 4, E = T * K };
    uint64_t seed = test_seed("routed");
    double x[T * W], logits[T * X], mat[X * N * W], w[E], ids[E], xs[E * W], offsets[X + 1],
        perm[E];
    double ys[E * N], y[T * N], want[T * N] = {0};
    fill_random(&seed, x, COUNT(x));
    fill_random(&seed, logits, COUNT(logits));
    fill_random(&seed, mat, COUNT(mat));
    node_case k;
    set_gate(&k, PLM_FN_SIGMOID, K, logits, T, X, w, ids);
    case_int(&k, PLM_ATTR_RENORM, 1);
    case_ok(&k, plm_oracle_gate);
    case_init(&k, PLM_OP_MOE_SORT);
    case_in(&k, 0, x, DIMS(T, W));
    case_in(&k, 1, ids, DIMS(T, K));
    case_out(&k, 0, xs, DIMS(E, W));
    case_out(&k, 1, offsets, DIMS(X + 1));
    case_out(&k, 2, perm, DIMS(E));
    case_ok(&k, plm_oracle_moe_sort);
    case_init(&k, PLM_OP_LINEAR_GROUPED);
    case_in(&k, 0, xs, DIMS(E, W));
    case_in(&k, 1, mat, DIMS(X, N, W));
    case_in(&k, 2, offsets, DIMS(X + 1));
    case_out(&k, 0, ys, DIMS(E, N));
    case_ok(&k, plm_oracle_linear_grouped);
    case_init(&k, PLM_OP_MOE_COMBINE);
    case_in(&k, 0, ys, DIMS(E, N));
    case_in(&k, 1, perm, DIMS(E));
    case_in(&k, 2, w, DIMS(T, K));
    case_out(&k, 0, y, DIMS(T, N));
    case_ok(&k, plm_oracle_moe_combine);
    for (int t = 0; t < T; t++) {
        /* The two greatest sigmoids, found by rank. */
        double dense[X], sum = 0;
        for (int e = 0; e < X; e++) {
            int above = 0;
            for (int o = 0; o < X; o++)
                above += logits[t * X + o] > logits[t * X + e];
            dense[e] = above < K ? 1 / (1 + exp(-logits[t * X + e])) : 0;
            sum += dense[e];
        }
        for (int e = 0; e < X; e++)
            for (int n = 0; n < N; n++)
                for (int i = 0; i < W; i++)
                    want[t * N + n] += dense[e] / sum * mat[(e * N + n) * W + i] * x[t * W + i];
    }
    assert_all_close(y, want, COUNT(y), 1e-13, 1e-14);
    perm[0] = E;
    case_refused(&k, plm_oracle_moe_combine, "perm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gate_softmax_by_hand),
        cmocka_unit_test(gate_bias_steers_the_choice_only),
        cmocka_unit_test(gate_of_given_experts),
        cmocka_unit_test(gate_sqrt_softplus),
        cmocka_unit_test(gate_ties_take_the_lowest),
        cmocka_unit_test(gate_limits_groups),
        cmocka_unit_test(gate_refuses),
        cmocka_unit_test(gate_of_a_masked_row),
        cmocka_unit_test(moe_sort_by_hand),
        cmocka_unit_test(routed_layer_equals_dense_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
