/* test_golden.c - tiny models of the families people run: the graph that is costed, run by the reference backend,
** gives the logits of transformers; and however the tokens come, the same ones.
**
** Truth: tests/golden/NAME.json, made by tests/golden/make_models.py. */
#include "tests/golden_support.h"

static plm_error err;

/* Appends the logits of the last step to `to`, returns rows. */
static int64_t take_logits(plm_runner *r, float *to)
{
    int64_t rows, vocab;
    const float *x = plm_runner_logits(r, &rows, &vocab);
    memcpy(to, x, (size_t)(rows * vocab) * sizeof *to);
    return rows;
}

/* Logits of all tokens of a prompt that comes `most` tokens at a time, in a sequence of its own. */
static void feed(golden *m, plm_runner *r, int p, int64_t most, float *out)
{
    int32_t seq;
    assert_ok(plm_runner_open(r, &seq, &err), err);
    for (int64_t at = 0; at < m->prompt_n[p];) {
        plm_part part = {seq, &m->prompt[p][at], plm_min_i64(most, m->prompt_n[p] - at),
                         PLM_WANT_ALL};
        assert_ok(plm_runner_step(r, &part, 1, &err), err);
        at += take_logits(r, &out[at * m->vocab]);
    }
    assert_int_equal(plm_runner_tokens(r, seq), m->prompt_n[p]);
    plm_runner_close(r, seq);
}

static void assert_truth(const golden *m, const char *family, const char *what, int p,
                         const float *got)
{
    for (int64_t i = 0; i < m->prompt_n[p] * m->vocab; i++) {
        double want = (double)m->logits[p][i];
        if (!(fabs((double)got[i] - want) <= 1e-4 * fabs(want) + 1e-5 * (double)m->largest))
            fail_msg("%s, %s, prompt %d, token %lld, logit %lld: %.9g, transformers has %.9g", family,
                     what, p, (long long)(i / m->vocab), (long long)(i % m->vocab), (double)got[i],
                     want);
    }
}

static void assert_same(const golden *m, const char *family, const char *what, int p,
                        const float *got, const float *want)
{
    if (memcmp(got, want, (size_t)(m->prompt_n[p] * m->vocab) * sizeof *got) == 0)
        return;
    for (int64_t i = 0; i < m->prompt_n[p] * m->vocab; i++)
        if (got[i] != want[i])
            fail_msg("%s, %s, prompt %d, token %lld: %.9g, in one step %.9g", family, what, p,
                     (long long)(i / m->vocab), (double)got[i], (double)want[i]);
}

/* Both prompts side by side: the first begins, the second joins, pieces of either mix with single tokens. */
static void feed_both(golden *m, plm_runner *r, float *first, float *second)
{
    int32_t a, b;
    int64_t at[2] = {0, 0};
    float *out[2] = {first, second};
    assert_ok(plm_runner_open(r, &a, &err), err);
    assert_ok(plm_runner_open(r, &b, &err), err);
    const int32_t seq[2] = {a, b};
    static const int64_t pieces[][2] = {{3, 0}, {1, 2}, {4, 1}, {1, 3}, {2, 1}, {1, 0}};
    for (size_t s = 0; s < sizeof pieces / sizeof *pieces; s++) {
        plm_part part[2];
        size_t n = 0;
        /* The order of the parts changes with the step, too. */
        for (int k = 0; k < 2; k++) {
            int p = (int)(s % 2) ^ k;
            if (pieces[s][p] > 0)
                part[n++] = (plm_part){seq[p], &m->prompt[p][at[p]], pieces[s][p], PLM_WANT_ALL};
        }
        assert_ok(plm_runner_step(r, part, n, &err), err);
        int64_t rows, vocab;
        const float *x = plm_runner_logits(r, &rows, &vocab);
        for (size_t i = 0; i < n; i++) {
            int p = part[i].seq == a ? 0 : 1;
            memcpy(&out[p][at[p] * vocab], x, (size_t)(part[i].n * vocab) * sizeof *x);
            x += part[i].n * vocab;
            at[p] += part[i].n;
        }
    }
    assert_int_equal(at[0], m->prompt_n[0]);
    assert_int_equal(at[1], m->prompt_n[1]);
    plm_runner_close(r, a);
    plm_runner_close(r, b);
}

static float *room(const golden *m)
{
    float *x = calloc((size_t)(GOLDEN_TOKENS * m->vocab), sizeof *x);
    assert_non_null(x);
    return x;
}

static void check_family(const char *family)
{
    golden m;
    golden_run x;
    plm_build b = golden_build();
    int32_t order[GOLDEN_SLOTS / GOLDEN_BLOCK];
    uint64_t seed = test_seed(family);
    golden_open(&m, family);
    float *whole[2] = {room(&m), room(&m)}, *got[2] = {room(&m), room(&m)};
    golden_start(&m, &b, NULL, &x);
    for (int p = 0; p < 2; p++) {
        feed(&m, x.r, p, GOLDEN_TOKENS, whole[p]);
        assert_truth(&m, family, "one step", p, whole[p]);
    }
    static const int64_t steps[] = {1, 2, 5};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        feed(&m, x.r, 0, steps[i], got[0]);
        assert_same(&m, family, "in pieces", 0, got[0], whole[0]);
    }
    feed_both(&m, x.r, got[0], got[1]);
    assert_same(&m, family, "two sequences", 0, got[0], whole[0]);
    assert_same(&m, family, "two sequences", 1, got[1], whole[1]);
    golden_stop(&x);
    /* Any places of the blocks. */
    int32_t n = (int32_t)(sizeof order / sizeof *order);
    for (int32_t i = 0; i < n; i++)
        order[i] = i;
    for (int32_t i = n - 1; i > 0; i--) {
        int32_t j = (int32_t)(test_random(&seed) % (uint64_t)(i + 1)), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    golden_start(&m, &b, order, &x);
    feed_both(&m, x.r, got[0], got[1]);
    assert_same(&m, family, "other blocks", 0, got[0], whole[0]);
    assert_same(&m, family, "other blocks", 1, got[1], whole[1]);
    golden_stop(&x);
    for (int p = 0; p < 2; p++) {
        free(whole[p]);
        free(got[p]);
    }
    golden_close(&m);
}

static void family_is_right(void **state)
{
    check_family(*state);
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[GOLDEN_FAMILIES];
    size_t n = 0;
    for (size_t i = 0; i < GOLDEN_FAMILIES; i++)
        if (argc < 2 || strcmp(argv[1], golden_families[i]) == 0)
            tests[n++] = (struct CMUnitTest){golden_families[i], family_is_right, NULL, NULL,
                                             (void *)(uintptr_t)golden_families[i]};
    return _cmocka_run_group_tests("golden", tests, n, NULL, NULL);
}
