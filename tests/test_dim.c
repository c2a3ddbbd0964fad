/* The pool of symbolic dims: interning, folding, values against plain arithmetic. */
#include "tests/support.h"

#include "core/base/mem.h"
#include "core/ir/dim.h"

static const int64_t step[PLM_SYM_COUNT] = {[PLM_SYM_T] = 17, [PLM_SYM_S] = 3, [PLM_SYM_R] = 3,
                                            [PLM_SYM_E] = 136, [PLM_SYM_C] = 4096};

static int64_t value(const plm_dims *p, plm_dim d)
{
    int64_t all[256];
    assert_true(p->count <= 256 && d < p->count);
    plm_dims_eval(p, step, all);
    return all[d];
}

static void test_folding(void **state)
{
    (void)state;
    plm_dims p;
    plm_dims_init(&p);
    plm_dim t = plm_dim_sym(&p, PLM_SYM_T), s = plm_dim_sym(&p, PLM_SYM_S);
    plm_dim c0 = plm_dim_const(&p, 0), c1 = plm_dim_const(&p, 1), c8 = plm_dim_const(&p, 8),
            c16 = plm_dim_const(&p, 16), c128 = plm_dim_const(&p, 128);
    assert_int_equal(plm_dim_const(&p, 8), c8);
    assert_int_equal(plm_dim_sym(&p, PLM_SYM_T), t);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_MUL, c8, c16), c128);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_MUL, t, c1), t);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_MUL, c1, t), t);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_MUL, t, c0), c0);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_ADD, c0, t), t);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_CEILDIV, t, c1), t);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_MIN, t, t), t);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_MAX, t, t), t);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_MAX, c0, t), t);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_MIN, t, c0), c0);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_ADD, t, s), plm_dim_make(&p, PLM_DIM_ADD, s, t));
    plm_dim t8 = plm_dim_make(&p, PLM_DIM_MUL, c8, t);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_MUL, t8, c16), plm_dim_make(&p, PLM_DIM_MUL, t, c128));
    assert_int_not_equal(plm_dim_make(&p, PLM_DIM_CEILDIV, t, s),
                         plm_dim_make(&p, PLM_DIM_CEILDIV, s, t));
    assert_int_equal(plm_dim_value(&p, c128), 128);
    assert_int_equal(plm_dim_value(&p, t), -1);
    assert_int_equal(plm_dim_value(&p, PLM_DIM_NONE), -1);
    plm_dims_fini(&p);
}

static void test_failures(void **state)
{
    (void)state;
    plm_dims p;
    plm_dims_init(&p);
    plm_dim t = plm_dim_sym(&p, PLM_SYM_T), zero = plm_dim_const(&p, 0),
            big = plm_dim_const(&p, INT64_MAX), two = plm_dim_const(&p, 2);
    assert_int_equal(plm_dim_const(&p, -1), PLM_DIM_NONE);
    assert_int_equal(plm_dim_sym(&p, PLM_SYM_COUNT), PLM_DIM_NONE);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_MUL, big, two), PLM_DIM_NONE);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_ADD, big, two), PLM_DIM_NONE);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_CEILDIV, t, zero), PLM_DIM_NONE);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_MUL, t, PLM_DIM_NONE), PLM_DIM_NONE);
    assert_int_equal(plm_dim_make(&p, PLM_DIM_CONST, t, t), PLM_DIM_NONE);
    assert_int_equal(
        plm_dim_make(&p, PLM_DIM_MUL, plm_dim_make(&p, PLM_DIM_MUL, t, big), two), PLM_DIM_NONE);
    assert_false(p.no_memory);
    plm_dims_fini(&p);
}

static void test_bounds_and_saturation(void **state)
{
    (void)state;
    plm_dims p;
    plm_dims_init(&p);
    plm_dim t = plm_dim_sym(&p, PLM_SYM_T), s = plm_dim_sym(&p, PLM_SYM_S);
    assert_int_equal(plm_dim_upper(&p, t), INT32_MAX);
    p.hi[PLM_SYM_T] = 8192;
    p.hi[PLM_SYM_S] = 0;
    plm_dim t6 = plm_dim_make(&p, PLM_DIM_MUL, t, plm_dim_const(&p, 6));
    assert_int_equal(plm_dim_upper(&p, t6), 49152);
    assert_int_equal(plm_dim_upper(&p, plm_dim_const(&p, 5)), 5);
    assert_int_equal(plm_dim_upper(&p, PLM_DIM_NONE), INT64_MAX);
    plm_dim div = plm_dim_make(&p, PLM_DIM_CEILDIV, t, s);
    assert_int_equal(plm_dim_upper(&p, div), INT64_MAX);
    p.hi[PLM_SYM_T] = 0;
    assert_int_equal(plm_dim_upper(&p, div), 0);
    p.hi[PLM_SYM_T] = INT64_MAX;
    assert_int_equal(plm_dim_upper(&p, t6), INT64_MAX);
    /* a symbol given below 0 counts as 0 */
    int64_t sym[PLM_SYM_COUNT] = {-5}, all[64];
    plm_dims_eval(&p, sym, all);
    assert_int_equal(all[t6], 0);
    plm_dims_fini(&p);
}

/* Depth 200 of x * x would be 2^200 visits for a walk of the tree: the pool is evaluated once over. */
static void test_deep_expression(void **state)
{
    (void)state;
    plm_dims p;
    plm_dims_init(&p);
    plm_dim d = plm_dim_sym(&p, PLM_SYM_T);
    for (int i = 0; i < 2000; i++)
        d = plm_dim_make(&p, PLM_DIM_MUL, d, d);
    assert_int_not_equal(d, PLM_DIM_NONE);
    p.hi[PLM_SYM_T] = 1;
    assert_int_equal(plm_dim_upper(&p, d), 1);
    p.hi[PLM_SYM_T] = 2;
    assert_int_equal(plm_dim_upper(&p, d), INT64_MAX);
    plm_dims_fini(&p);
}

static int64_t plain(plm_dim_op op, int64_t a, int64_t b)
{
    switch (op) {
    case PLM_DIM_ADD: return a + b;
    case PLM_DIM_MUL: return a * b;
    case PLM_DIM_CEILDIV: return b == 0 ? (a == 0 ? 0 : INT64_MAX) : (a + b - 1) / b;
    case PLM_DIM_MIN: return a < b ? a : b;
    default: return a > b ? a : b;
    }
}

/* Random expressions against the same arithmetic on plain numbers. */
static void test_random_values(void **state)
{
    (void)state;
    uint64_t seed = test_seed("dim_random_values");
    size_t made = 0;
    for (int round = 0; round < 300; round++) {
        plm_dims p;
        plm_dims_init(&p);
        plm_dim have[24];
        int64_t want[24];
        for (int i = 0; i < 24; i++) {
            if (i < 8) {
                bool sym = test_random(&seed) % 2 == 0;
                int64_t k = (int64_t)(test_random(&seed) % 5);
                have[i] = sym ? plm_dim_sym(&p, (plm_sym)k) : plm_dim_const(&p, k * 3);
                want[i] = sym ? step[k] : k * 3;
                continue;
            }
            size_t a = test_random(&seed) % (size_t)i, b = test_random(&seed) % (size_t)i;
            plm_dim_op op = (plm_dim_op)(PLM_DIM_ADD + (int)(test_random(&seed) % 5));
            have[i] = plm_dim_make(&p, op, have[a], have[b]);
            want[i] = plain(op, want[a], want[b]);
            if (have[i] == PLM_DIM_NONE || want[i] > 1000000 || want[i] < 0) {
                have[i] = have[a]; /* constant division by 0, or out of the range of `plain` */
                want[i] = want[a];
                continue;
            }
            assert_true(value(&p, have[i]) == want[i]);
            made++;
        }
        plm_dims_fini(&p);
    }
    assert_true(made > 2000);
}

/* Every allocation failing in turn: a clean PLM_DIM_NONE, nothing lost. */
static void test_torture(void **state)
{
    (void)state;
    int64_t live = plm_mem_live();
    bool done = false;
    int n = 0;
    while (!done && n < 100) {
        plm_dims p;
        plm_dims_init(&p);
        plm_mem_fail_at((uint64_t)++n, false);
        plm_dim d = plm_dim_sym(&p, PLM_SYM_T);
        for (int i = 1; d != PLM_DIM_NONE && i < 200; i++)
            d = plm_dim_make(&p, i % 2 ? PLM_DIM_ADD : PLM_DIM_MIN, d, plm_dim_const(&p, 1000 - i));
        plm_mem_fail_at(0, false);
        done = d != PLM_DIM_NONE;
        assert_int_equal(p.no_memory, !done);
        plm_dims_fini(&p);
        assert_int_equal(plm_mem_live(), live);
    }
    assert_true(done && n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folding),       cmocka_unit_test(test_failures),
        cmocka_unit_test(test_bounds_and_saturation),
        cmocka_unit_test(test_deep_expression), cmocka_unit_test(test_random_values),
        cmocka_unit_test(test_torture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
