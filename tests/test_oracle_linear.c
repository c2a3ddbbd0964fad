/* test_oracle_linear.c - oracles of the ops that multiply by weights, against values by hand and
** against other formulations. BE-*, FL-*: names of the acceptance cases that a test holds. */
#include "tests/oracle_support.h"

static void embed_takes_scaled_rows(void **state)
{
    (void)state;
    static const double ids[] = {2, 0, 2}, table[] = {1, 2, 3, 4, 5, 6};
    double y[6];
    node_case k;
    case_init(&k, PLM_OP_EMBED);
    case_real(&k, PLM_ATTR_SCALE, 10);
    case_in(&k, 0, ids, DIMS(3));
    case_in(&k, 1, table, DIMS(3, 2));
    case_out(&k, 0, y, DIMS(3, 2));
    case_ok(&k, plm_oracle_embed);
    assert_all_equal(y, (const double[]){50, 60, 10, 20, 50, 60}, 6);
    case_in(&k, 0, (const double[]){2, 3, 0}, DIMS(3));
    case_refused(&k, plm_oracle_embed, "ids");
    case_in(&k, 0, (const double[]){2, 0.5, 0}, DIMS(3));
    case_refused(&k, plm_oracle_embed, "ids");
    case_in(&k, 0, (const double[]){2, NAN, 0}, DIMS(3));
    case_refused(&k, plm_oracle_embed, "ids");
}

static void linear_by_hand(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4}, w[] = {1, 0, 0, 1, 1, -1}, bias[] = {0.5, 0, -1};
    double y[6];
    node_case k;
    case_init(&k, PLM_OP_LINEAR);
    case_in(&k, 0, x, DIMS(2, 2));
    case_in(&k, 1, w, DIMS(3, 2));
    case_out(&k, 0, y, DIMS(2, 3));
    case_ok(&k, plm_oracle_linear);
    assert_all_equal(y, (const double[]){1, 2, -1, 3, 4, -1}, 6);
    case_in(&k, 2, bias, DIMS(3));
    case_ok(&k, plm_oracle_linear);
    assert_all_equal(y, (const double[]){1.5, 2, -2, 3.5, 4, -2}, 6);
    /* Leading dims of x are rows, however many. */
    case_in(&k, 0, x, DIMS(1, 2, 2));
    case_out(&k, 0, y, DIMS(1, 2, 3));
    case_ok(&k, plm_oracle_linear);
    assert_all_equal(y, (const double[]){1.5, 2, -2, 3.5, 4, -2}, 6);
}

static void linear_refuses_shapes_that_differ(void **state)
{
    (void)state;
    double x[6] = {0}, w[6] = {0}, y[4], bias[3] = {0};
    node_case k;
    case_init(&k, PLM_OP_LINEAR);
    case_in(&k, 0, x, DIMS(2, 3));
    case_in(&k, 1, w, DIMS(3, 2));
    case_out(&k, 0, y, DIMS(2, 2));
    case_refused(&k, plm_oracle_linear, "w");
    case_in(&k, 1, w, DIMS(2, 3));
    case_ok(&k, plm_oracle_linear);
    case_in(&k, 2, bias, DIMS(3));
    case_refused(&k, plm_oracle_linear, "bias");
    case_in(&k, 2, bias, DIMS(2));
    case_out(&k, 0, y, DIMS(1, 2));
    case_refused(&k, plm_oracle_linear, "output");
    case_in(&k, 0, NULL, DIMS(2, 3));
    case_refused(&k, plm_oracle_linear, "x");
    case_in(&k, 0, x, DIMS(2, -3));
    case_refused(&k, plm_oracle_linear, "x");
}

/* BE-05: every column is written, also where the number of columns is no multiple of 64. */
static void linear_writes_every_column(void **state)
{
    (void)state;
    static const struct {
        int64_t n, groups, last;
    } cases[] = {{32, 1, 32}, {64, 1, 64}, {65, 2, 1}, {96, 2, 32}};
    double x[2] = {1, 1}, w[2 * 96], y[96];
    for (size_t i = 0; i < COUNT(w); i++)
        w[i] = (double)(i / 2);
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t n = cases[i].n, groups = plm_ceil_div(n, 64);
        assert_int_equal(groups, cases[i].groups);
        assert_int_equal(n - (groups - 1) * 64, cases[i].last);
        node_case k;
        case_init(&k, PLM_OP_LINEAR);
        case_in(&k, 0, x, DIMS(1, 2));
        case_in(&k, 1, w, DIMS(n, 2));
        case_out(&k, 0, y, DIMS(1, n));
        case_ok(&k, plm_oracle_linear);
        for (int64_t j = 0; j < n; j++)
            assert_true(y[j] == (double)(2 * j));
    }
}

/* BE-10: no rows, no columns, and a sum over nothing, which is 0. */
static void linear_of_zero_size(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k;
    } cases[] = {{0, 64, 64}, {4, 0, 64}, {4, 64, 0}};
    static double x[4 * 64], w[64 * 64], y[4 * 64];
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t m = cases[i].m, n = cases[i].n, d = cases[i].k;
        node_case k;
        case_init(&k, PLM_OP_LINEAR);
        case_in(&k, 0, x, DIMS(m, d));
        case_in(&k, 1, w, DIMS(n, d));
        case_out(&k, 0, y, DIMS(m, n));
        case_ok(&k, plm_oracle_linear);
        for (int64_t j = 0; j < m * n; j++)
            assert_true(y[j] == 0);
    }
}

/* BE-11: sums of as many integers as lanes of odd widths are exact. */
static void linear_sums_lanes_exactly(void **state)
{
    (void)state;
    static const int64_t lanes[] = {1, 31, 32, 33, 63, 64, 65};
    double x[65], ones[65], y[1];
    for (size_t i = 0; i < COUNT(ones); i++) {
        x[i] = (double)(i + 1) * 4099;
        ones[i] = 1;
    }
    for (size_t i = 0; i < COUNT(lanes); i++) {
        int64_t n = lanes[i];
        node_case k;
        case_init(&k, PLM_OP_LINEAR);
        case_in(&k, 0, x, DIMS(1, n));
        case_in(&k, 1, ones, DIMS(1, n));
        case_out(&k, 0, y, DIMS(1, 1));
        case_ok(&k, plm_oracle_linear);
        assert_true(y[0] == (double)(n * (n + 1) / 2 * 4099));
    }
}

static void bmm_equals_linear_of_each_head(void **state)
{
    (void)state;
    enum { T = 3, H = 2, N = 4, K = 5 };
    uint64_t seed = test_seed("bmm");
    double x[T * H * K], w[H * N * K], y[T * H * N], want[T * H * N];
    fill_random(&seed, x, COUNT(x));
    fill_random(&seed, w, COUNT(w));
    for (int h = 0; h < H; h++) {
        double xh[T * K], yh[T * N];
        for (int t = 0; t < T; t++)
            memcpy(&xh[t * K], &x[(t * H + h) * K], K * sizeof *x);
        node_case one;
        case_init(&one, PLM_OP_LINEAR);
        case_in(&one, 0, xh, DIMS(T, K));
        case_in(&one, 1, &w[h * N * K], DIMS(N, K));
        case_out(&one, 0, yh, DIMS(T, N));
        case_ok(&one, plm_oracle_linear);
        for (int t = 0; t < T; t++)
            memcpy(&want[(t * H + h) * N], &yh[t * N], N * sizeof *yh);
    }
    node_case k;
    case_init(&k, PLM_OP_BMM);
    case_in(&k, 0, x, DIMS(T, H, K));
    case_in(&k, 1, w, DIMS(H, N, K));
    case_out(&k, 0, y, DIMS(T, H, N));
    case_ok(&k, plm_oracle_bmm);
    assert_all_equal(y, want, COUNT(y));
    case_in(&k, 1, w, DIMS(H * N, 1, K));
    case_refused(&k, plm_oracle_bmm, "w");
}

/* Each row times the matrix of its expert, found from the offsets backwards; an expert without rows
** and rows past the last offset. */
static void linear_grouped_by_row(void **state)
{
    (void)state;
    enum { E = 6, X = 3, N = 2, K = 3 };
    static const double offsets[] = {0, 2, 2, 5};
    static const int expert[E] = {0, 0, 2, 2, 2, -1};
    uint64_t seed = test_seed("linear_grouped");
    double x[E * K], w[X * N * K], bias[X * N], y[E * N], want[E * N] = {0};
    fill_random(&seed, x, COUNT(x));
    fill_random(&seed, w, COUNT(w));
    fill_random(&seed, bias, COUNT(bias));
    for (int r = 0; r < E; r++)
        for (int j = 0; j < N && expert[r] >= 0; j++) {
            want[r * N + j] = bias[expert[r] * N + j];
            for (int i = 0; i < K; i++)
                want[r * N + j] += x[r * K + i] * w[(expert[r] * N + j) * K + i];
        }
    node_case k;
    case_init(&k, PLM_OP_LINEAR_GROUPED);
    case_in(&k, 0, x, DIMS(E, K));
    case_in(&k, 1, w, DIMS(X, N, K));
    case_in(&k, 2, offsets, DIMS(X + 1));
    case_in(&k, 3, bias, DIMS(X, N));
    case_out(&k, 0, y, DIMS(E, N));
    case_ok(&k, plm_oracle_linear_grouped);
    assert_all_close(y, want, COUNT(y), 1e-14, 1e-15);
    case_in(&k, 2, (const double[]){0, 3, 2, 5}, DIMS(X + 1)); /* falling */
    case_refused(&k, plm_oracle_linear_grouped, "offsets");
    case_in(&k, 2, (const double[]){0, 2, 2, 7}, DIMS(X + 1)); /* past the rows */
    case_refused(&k, plm_oracle_linear_grouped, "offsets");
    case_in(&k, 2, (const double[]){0, 2, 2}, DIMS(X));
    case_refused(&k, plm_oracle_linear_grouped, "offsets");
}

static void linear_grouped_of_no_rows(void **state)
{
    (void)state;
    double none[1] = {0}, w[4] = {1, 2, 3, 4}, y[1];
    node_case k;
    case_init(&k, PLM_OP_LINEAR_GROUPED);
    case_in(&k, 0, none, DIMS(0, 2));
    case_in(&k, 1, w, DIMS(2, 1, 2));
    case_in(&k, 2, (const double[]){0, 0, 0}, DIMS(3));
    case_out(&k, 0, y, DIMS(0, 1));
    case_ok(&k, plm_oracle_linear_grouped);
}

/* y + alpha B A x, the product of the two small matrices made first. */
static void lora_adds_the_low_rank_product(void **state)
{
    (void)state;
    enum { T = 4, A = 2, R = 2, K = 3, N = 5 };
    static const double adapter[T] = {1, -1, 0, 1};
    const double alpha = 0.25;
    uint64_t seed = test_seed("lora");
    double x[T * K], a[A * R * K], b[A * N * R], y0[T * N], z[T * R], y[T * N], want[T * N];
    fill_random(&seed, x, COUNT(x));
    fill_random(&seed, a, COUNT(a));
    fill_random(&seed, b, COUNT(b));
    fill_random(&seed, y0, COUNT(y0));
    for (int t = 0; t < T; t++)
        for (int j = 0; j < N; j++) {
            int id = (int)adapter[t];
            want[t * N + j] = y0[t * N + j];
            for (int i = 0; i < K && id >= 0; i++) {
                double ba = 0;
                for (int r = 0; r < R; r++)
                    ba += b[(id * N + j) * R + r] * a[(id * R + r) * K + i];
                want[t * N + j] += alpha * ba * x[t * K + i];
            }
        }
    node_case shrink, expand;
    case_init(&shrink, PLM_OP_LORA_SHRINK);
    case_in(&shrink, 0, x, DIMS(T, K));
    case_in(&shrink, 1, a, DIMS(A, R, K));
    case_in(&shrink, 2, adapter, DIMS(T));
    case_out(&shrink, 0, z, DIMS(T, R));
    case_ok(&shrink, plm_oracle_lora_shrink);
    assert_true(z[R] == 0 && z[R + 1] == 0);
    case_init(&expand, PLM_OP_LORA_EXPAND);
    case_real(&expand, PLM_ATTR_ALPHA, alpha);
    case_in(&expand, 0, y0, DIMS(T, N));
    case_in(&expand, 1, z, DIMS(T, R));
    case_in(&expand, 2, b, DIMS(A, N, R));
    case_in(&expand, 3, adapter, DIMS(T));
    case_out(&expand, 0, y, DIMS(T, N));
    case_ok(&expand, plm_oracle_lora_expand);
    assert_all_close(y, want, COUNT(y), 1e-13, 1e-14);
    assert_all_equal(&y[N], &y0[N], N); /* no adapter: untouched */
    case_in(&expand, 3, (const double[]){1, -2, 0, 1}, DIMS(T));
    case_refused(&expand, plm_oracle_lora_expand, "adapter");
    case_in(&shrink, 2, (const double[]){2, 0, 0, 1}, DIMS(T));
    case_refused(&shrink, plm_oracle_lora_shrink, "adapter");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embed_takes_scaled_rows),
        cmocka_unit_test(linear_by_hand),
        cmocka_unit_test(linear_refuses_shapes_that_differ),
        cmocka_unit_test(linear_writes_every_column),
        cmocka_unit_test(linear_of_zero_size),
        cmocka_unit_test(linear_sums_lanes_exactly),
        cmocka_unit_test(bmm_equals_linear_of_each_head),
        cmocka_unit_test(linear_grouped_by_row),
        cmocka_unit_test(linear_grouped_of_no_rows),
        cmocka_unit_test(lora_adds_the_low_rank_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
