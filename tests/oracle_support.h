/* oracle_support.h - one node with its attributes and operands, to run an oracle on. */
#ifndef PLM_TESTS_ORACLE_SUPPORT_H
#define PLM_TESTS_ORACLE_SUPPORT_H
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/ir/oracle.h"
#include "tests/support.h"

#define DIMS(...)                                                                                  \
    (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])        \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
/* Names of an array as arguments, with its length. */
#define COUNT(a) (sizeof(a) / sizeof *(a))

typedef struct node_case {
    plm_graph g;
    plm_node n;
    plm_value values[PLM_OUT_MAX];
    plm_attr attrs[16];
    plm_array in[PLM_IN_MAX], out[PLM_OUT_MAX];
    plm_oracle_ctx c;
    plm_error err;
} node_case;

/* A node of the op without attributes and operands. The case must not move afterwards. */
static inline void case_init(node_case *k, plm_op op)
{
    memset(k, 0, sizeof *k);
    k->n.op = op;
    k->g.attrs = k->attrs;
    k->g.values = k->values;
    for (uint32_t i = 0; i < PLM_OUT_MAX; i++) {
        k->n.out[i] = i;
        k->values[i].dtype = PLM_DT_F32;
    }
    k->c.g = &k->g;
    k->c.n = &k->n;
}

static inline void case_int(node_case *k, plm_attr_key key, int64_t v)
{
    assert_true(k->n.n_attr < COUNT(k->attrs));
    k->attrs[k->n.n_attr++] = (plm_attr){.key = key, .v.i = v};
    k->g.n_attrs = k->n.n_attr;
}

static inline void case_real(node_case *k, plm_attr_key key, double v)
{
    assert_true(k->n.n_attr < COUNT(k->attrs));
    k->attrs[k->n.n_attr++] = (plm_attr){.key = key, .v.f = v};
    k->g.n_attrs = k->n.n_attr;
}

static inline plm_array make_array(double *data, uint32_t rank, const int64_t *dim)
{
    plm_array a = {.data = data, .rank = rank};
    for (uint32_t i = 0; i < rank; i++)
        a.dim[i] = dim[i];
    return a;
}

/* Input i; data NULL = absent. Oracles do not write to inputs, so const may be dropped here. */
static inline void case_in(node_case *k, uint32_t i, const double *data, uint32_t rank,
                           const int64_t *dim)
{
    union {
        const double *in;
        double *out;
    } u = {data};
    k->in[i] = make_array(u.out, rank, dim);
    if (k->n.n_in <= i)
        k->n.n_in = (uint8_t)(i + 1);
}

/* Output i, filled with NaN so that an element left unwritten shows (BE-05). */
static inline void case_out(node_case *k, uint32_t i, double *data, uint32_t rank,
                            const int64_t *dim)
{
    k->out[i] = make_array(data, rank, dim);
    for (int64_t j = 0; j < plm_array_count(&k->out[i]); j++)
        data[j] = NAN;
    if (k->n.n_out <= i)
        k->n.n_out = (uint8_t)(i + 1);
}

#define case_ok(k, oracle) assert_ok(oracle(&(k)->c, (k)->in, (k)->out, &(k)->err), (k)->err)
/* The oracle refuses, and its one line names the operand. */
#define case_refused(k, oracle, word)                                                              \
    do {                                                                                           \
        assert_int_equal(oracle(&(k)->c, (k)->in, (k)->out, &(k)->err), PLM_E_INVALID);            \
        if (strstr((k)->err.text, word) == NULL)                                                   \
            fail_msg("\"%s\" does not name %s", (k)->err.text, word);                              \
    } while (0)

/* n numbers in [-1, 1) from the generator. */
static inline void fill_random(uint64_t *seed, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (double)(int64_t)(test_random(seed) >> 11) * 0x1p-52 - 1;
}

static inline int64_t random_below(uint64_t *seed, int64_t n)
{
    return (int64_t)(test_random(seed) % (uint64_t)n);
}

static inline void assert_all_close(const double *got, const double *want, size_t n, double rel,
                                    double abs_)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= rel * fabs(want[i]) + abs_))
            fail_msg("element %zu is %.17g, want %.17g", i, got[i], want[i]);
}

static inline void assert_all_equal(const double *got, const double *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(got[i] == want[i]))
            fail_msg("element %zu is %.17g, want %.17g", i, got[i], want[i]);
}

#endif
