/* test_oracle_move.c - ops that move rows, and choices from rows. */
#include "tests/oracle_support.h"

static void slice_of_each_axis(void **state)
{
    (void)state;
    double x[24], y[24];
    for (int i = 0; i < 24; i++)
        x[i] = i; /* element [a][b][c] of [2][3][4] is 12 a + 4 b + c */
    for (int axis = -3; axis < 3; axis++) {
        int64_t dim[3] = {2, 3, 4};
        int real = axis < 0 ? axis + 3 : axis;
        int64_t start = 1, count = dim[real] - 1;
        dim[real] = count;
        node_case k;
        case_init(&k, PLM_OP_SLICE);
        case_int(&k, PLM_ATTR_AXIS, axis);
        case_int(&k, PLM_ATTR_START, start);
        case_int(&k, PLM_ATTR_COUNT, count);
        case_in(&k, 0, x, DIMS(2, 3, 4));
        case_out(&k, 0, y, 3, dim);
        case_ok(&k, plm_oracle_slice);
        int i = 0;
        for (int a = real == 0; a < 2; a++)
            for (int b = real == 1; b < 3; b++)
                for (int c = real == 2; c < 4; c++)
                    assert_true(y[i++] == 12 * a + 4 * b + c);
    }
    node_case k;
    case_init(&k, PLM_OP_SLICE);
    case_int(&k, PLM_ATTR_AXIS, 1);
    case_int(&k, PLM_ATTR_START, 2);
    case_int(&k, PLM_ATTR_COUNT, 2);
    case_in(&k, 0, x, DIMS(2, 3, 4));
    case_out(&k, 0, y, DIMS(2, 2, 4));
    case_refused(&k, plm_oracle_slice, "start");
    k.attrs[0].v.i = 3;
    case_refused(&k, plm_oracle_slice, "axis");
}

/* Cutting an array anywhere along an axis and joining the pieces gives it back. */
static void concat_undoes_slice(void **state)
{
    (void)state;
    double x[60], a[60], b[60], y[60];
    uint64_t seed = test_seed("concat");
    fill_random(&seed, x, 60);
    static const int64_t whole[3] = {3, 4, 5};
    for (uint32_t axis = 0; axis < 3; axis++)
        for (int64_t cut = 0; cut <= whole[axis]; cut++) {
            node_case j;
            case_init(&j, PLM_OP_CONCAT);
            case_int(&j, PLM_ATTR_AXIS, axis);
            for (int part = 0; part < 2; part++) {
                int64_t dim[3] = {3, 4, 5};
                dim[axis] = part == 0 ? cut : whole[axis] - cut;
                node_case k;
                case_init(&k, PLM_OP_SLICE);
                case_int(&k, PLM_ATTR_AXIS, axis);
                case_int(&k, PLM_ATTR_START, part == 0 ? 0 : cut);
                case_int(&k, PLM_ATTR_COUNT, dim[axis]);
                case_in(&k, 0, x, DIMS(3, 4, 5));
                case_out(&k, 0, part == 0 ? a : b, 3, dim);
                case_ok(&k, plm_oracle_slice);
                case_in(&j, (uint32_t)part, part == 0 ? a : b, 3, dim);
            }
            case_out(&j, 0, y, DIMS(3, 4, 5));
            case_ok(&j, plm_oracle_concat);
            assert_all_equal(y, x, 60);
        }
    node_case k;
    case_init(&k, PLM_OP_CONCAT);
    case_in(&k, 0, x, DIMS(2, 3));
    case_in(&k, 1, x, DIMS(2, 4));
    case_out(&k, 0, y, DIMS(4, 3));
    case_refused(&k, plm_oracle_concat, "input");
}

/* BE-09: the sum of a 33 x 256 array seen with its dims swapped, as a column by column sum of
** strided elements; one that runs along rows of 33 in memory differs. */
static void strided_sums(void **state)
{
    (void)state;
    enum { R = 33, W = 256 };
    static double x[R * W], column[R], ones[R];
    uint64_t seed = test_seed("BE-09");
    fill_random(&seed, x, COUNT(x));
    for (int i = 0; i < R; i++)
        ones[i] = 1;
    int differ = 0;
    for (int j = 0; j < W; j++) {
        double sum = 0, shortcut = 0, y[1];
        for (int i = 0; i < R; i++) {
            sum += x[i * W + j];
            shortcut += x[j * R + i];
        }
        node_case k;
        case_init(&k, PLM_OP_SLICE);
        case_int(&k, PLM_ATTR_AXIS, 1);
        case_int(&k, PLM_ATTR_START, j);
        case_int(&k, PLM_ATTR_COUNT, 1);
        case_in(&k, 0, x, DIMS(R, W));
        case_out(&k, 0, column, DIMS(R, 1));
        case_ok(&k, plm_oracle_slice);
        case_init(&k, PLM_OP_LINEAR);
        case_in(&k, 0, column, DIMS(1, R));
        case_in(&k, 1, ones, DIMS(1, R));
        case_out(&k, 0, y, DIMS(1, 1));
        case_ok(&k, plm_oracle_linear);
        assert_close(y[0], sum, 1e-12, 1e-14);
        differ += fabs(shortcut - sum) > 1e-6;
    }
    assert_true(differ > 200);
}

static void reshape_repeat_gather(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4, 5, 6};
    double y[12];
    node_case k;
    case_init(&k, PLM_OP_RESHAPE);
    case_in(&k, 0, x, DIMS(2, 3));
    case_out(&k, 0, y, DIMS(3, 1, 2));
    case_ok(&k, plm_oracle_reshape);
    assert_all_equal(y, x, 6);
    case_out(&k, 0, y, DIMS(4));
    case_refused(&k, plm_oracle_reshape, "output");

    case_init(&k, PLM_OP_REPEAT);
    case_int(&k, PLM_ATTR_AXIS, 1);
    case_int(&k, PLM_ATTR_COUNT, 2);
    case_in(&k, 0, x, DIMS(1, 3, 2));
    case_out(&k, 0, y, DIMS(1, 6, 2));
    case_ok(&k, plm_oracle_repeat);
    assert_all_equal(y, (const double[]){1, 2, 1, 2, 3, 4, 3, 4, 5, 6, 5, 6}, 12);
    k.attrs[1].v.i = 0;
    case_refused(&k, plm_oracle_repeat, "count");

    case_init(&k, PLM_OP_GATHER);
    case_in(&k, 0, x, DIMS(3, 2));
    case_in(&k, 1, (const double[]){2, 2, 0}, DIMS(3));
    case_out(&k, 0, y, DIMS(3, 2));
    case_ok(&k, plm_oracle_gather);
    assert_all_equal(y, (const double[]){5, 6, 5, 6, 1, 2}, 6);
    case_in(&k, 1, (const double[]){2, 3, 0}, DIMS(3));
    case_refused(&k, plm_oracle_gather, "rows");
}

static void argmax_and_top_k(void **state)
{
    (void)state;
    const double inf = (double)INFINITY, nan = (double)NAN;
    const double x[] = {1, 7, 7, -3, nan, 2, inf, 2, -inf, -inf, -inf, -inf};
    double y[3], values[9], index[9];
    node_case k;
    case_init(&k, PLM_OP_ARGMAX);
    case_in(&k, 0, x, DIMS(3, 4));
    case_out(&k, 0, y, DIMS(3));
    case_ok(&k, plm_oracle_argmax);
    assert_all_equal(y, (const double[]){1, 2, 0}, 3);

    case_init(&k, PLM_OP_TOP_K);
    case_int(&k, PLM_ATTR_TOP_K, 3);
    case_in(&k, 0, x, DIMS(3, 4));
    case_out(&k, 0, values, DIMS(3, 3));
    case_out(&k, 1, index, DIMS(3, 3));
    case_ok(&k, plm_oracle_top_k);
    assert_all_equal(index, (const double[]){1, 2, 0, 2, 1, 3, 0, 1, 2}, 9);
    assert_all_equal(values, (const double[]){7, 7, 1, inf, 2, 2, -inf, -inf, -inf}, 9);
    k.attrs[0].v.i = 5;
    case_refused(&k, plm_oracle_top_k, "top_k");
}

/* top_k of n is a sort: values fall, indices are a permutation. */
static void top_k_sorts(void **state)
{
    (void)state;
    enum { LEN = 50 };
    double x[LEN], values[LEN], index[LEN];
    uint64_t seed = test_seed("top_k");
    for (int i = 0; i < LEN; i++)
        x[i] = (double)random_below(&seed, 12); /* many equal */
    node_case k;
    case_init(&k, PLM_OP_TOP_K);
    case_int(&k, PLM_ATTR_TOP_K, LEN);
    case_in(&k, 0, x, DIMS(1, LEN));
    case_out(&k, 0, values, DIMS(1, LEN));
    case_out(&k, 1, index, DIMS(1, LEN));
    case_ok(&k, plm_oracle_top_k);
    bool seen[LEN] = {false};
    for (int i = 0; i < LEN; i++) {
        int at = (int)index[i];
        assert_true(!seen[at] && values[i] == x[at]);
        seen[at] = true;
        if (i > 0)
            assert_true(values[i - 1] > values[i] ||
                        (values[i - 1] == values[i] && index[i - 1] < index[i]));
    }
}

static void nothing_to_move(void **state)
{
    (void)state;
    double x[4] = {1, 2, 3, 4}, y[4];
    node_case k;
    case_init(&k, PLM_OP_GATHER);
    case_in(&k, 0, x, DIMS(2, 2));
    case_in(&k, 1, x, DIMS(0));
    case_out(&k, 0, y, DIMS(0, 2));
    case_ok(&k, plm_oracle_gather);
    case_init(&k, PLM_OP_ARGMAX);
    case_in(&k, 0, x, DIMS(2, 0));
    case_out(&k, 0, y, DIMS(2));
    case_ok(&k, plm_oracle_argmax);
    assert_all_equal(y, (const double[]){-1, -1}, 2);
    case_init(&k, PLM_OP_REPEAT);
    case_int(&k, PLM_ATTR_COUNT, 3);
    case_in(&k, 0, x, DIMS(0, 2));
    case_out(&k, 0, y, DIMS(0, 2));
    case_ok(&k, plm_oracle_repeat);
    case_init(&k, PLM_OP_ARGMAX); /* one row, no rows dim: one index */
    case_in(&k, 0, x, DIMS(4));
    k.out[0] = (plm_array){.data = y};
    case_ok(&k, plm_oracle_argmax);
    assert_true(y[0] == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slice_of_each_axis), cmocka_unit_test(concat_undoes_slice),
        cmocka_unit_test(strided_sums),       cmocka_unit_test(reshape_repeat_gather),
        cmocka_unit_test(argmax_and_top_k),   cmocka_unit_test(top_k_sorts),
        cmocka_unit_test(nothing_to_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
