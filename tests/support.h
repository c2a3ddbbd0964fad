/* support.h - what every test program includes: cmocka, a real-valued comparison, seeds by name. */
#ifndef PLM_TESTS_SUPPORT_H
#define PLM_TESTS_SUPPORT_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* |got - want| <= rel * |want| + abs, both finite. */
#define assert_close(got, want, rel, abs_)                                                         \
    do {                                                                                           \
        double got_ = (got), want_ = (want);                                                       \
        if (!(fabs(got_ - want_) <= (rel) * fabs(want_) + (abs_)))                                 \
            fail_msg("%s = %.17g, want %.17g", #got, got_, want_);                                 \
    } while (0)

/* PLM_OK, or the error text in the failure. */
#define assert_ok(expr, err)                                                                       \
    do {                                                                                           \
        plm_status status_ = (expr);                                                               \
        if (status_ != PLM_OK)                                                                     \
            fail_msg("%s: %s", #expr, (err).text);                                                 \
    } while (0)

/* Generator for property tests: splitmix64, seeded from the test's name. */
static inline uint64_t test_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
static inline uint64_t test_seed(const char *name)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (; *name != '\0'; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return h;
}

#endif
