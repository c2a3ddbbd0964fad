/* test_pareto.c - fronts against the definition. */
#include "core/base/mem.h"
#include "sim/plan/plan.h"
#include "tests/support.h"

#define N_MAX 300

/* The definition, written out: on the front when nobody is at least as good in all and better in
** one. */
static bool on_front(const double *p, size_t n, size_t k, size_t i)
{
    for (size_t j = 0; j < n; j++) {
        size_t ge = 0, gt = 0;
        for (size_t o = 0; o < k; o++) {
            ge += p[j * k + o] >= p[i * k + o];
            gt += p[j * k + o] > p[i * k + o];
        }
        if (ge == k && gt > 0)
            return false;
    }
    return true;
}

static void compare_random(size_t k, unsigned levels)
{
    static double p[N_MAX * 4];
    static bool front[N_MAX];
    uint64_t seed = test_seed("compare_random") + k * 1000 + levels;
    for (int round = 0; round < 40; round++) {
        size_t n = test_random(&seed) % N_MAX + 1;
        size_t marked = 0;
        for (size_t i = 0; i < n * k; i++)
            p[i] = (double)(test_random(&seed) % levels);
        plm_pareto(p, n, k, front);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(front[i], on_front(p, n, k, i));
            marked += front[i];
        }
        assert_true(marked > 0);
    }
}

static void equals_the_definition(void **state)
{
    (void)state;
    for (size_t k = 1; k <= 4; k++) {
        compare_random(k, 6);       /* many ties */
        compare_random(k, 1000000); /* hardly any */
    }
}

static void known_fronts(void **state)
{
    (void)state;
    /* (3,1) (2,2) (1,3) are the front; (2,1) and (1,1) fall; equal points stay together. */
    const double p[] = {3, 1, 2, 2, 1, 3, 2, 1, 1, 1, 2, 2};
    const bool want[] = {true, true, true, false, false, true};
    bool front[6];
    plm_pareto(p, 6, 2, front);
    assert_memory_equal(front, want, sizeof want);
    /* A line of falling slope is all front, a rising one only its end. */
    double line[200];
    bool all[100];
    for (int i = 0; i < 100; i++) {
        line[2 * i] = i;
        line[2 * i + 1] = -i;
    }
    plm_pareto(line, 100, 2, all);
    for (int i = 0; i < 100; i++)
        assert_true(all[i]);
    for (int i = 0; i < 100; i++)
        line[2 * i + 1] = i;
    plm_pareto(line, 100, 2, all);
    for (int i = 0; i < 100; i++)
        assert_int_equal(all[i], i == 99);
}

static void memory_short_gives_the_same(void **state)
{
    (void)state;
    double p[60];
    bool a[30], b[30];
    uint64_t seed = test_seed("memory_short");
    for (int i = 0; i < 60; i++)
        p[i] = (double)(test_random(&seed) % 9);
    plm_pareto(p, 30, 2, a);
    plm_mem_fail_at(1, true);
    plm_pareto(p, 30, 2, b);
    plm_mem_fail_at(0, false);
    assert_memory_equal(a, b, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_definition),
        cmocka_unit_test(known_fronts),
        cmocka_unit_test(memory_short_gives_the_same),
    };
    return cmocka_run_group_tests_name("pareto", tests, NULL, NULL);
}
