/* Attributes of nodes: their names and types, which op has which, and the range of each. */
#include <string.h>

#include "core/ir/fn.h"
#include "core/ir/op.h"
#include "core/ir/rules.h"

static const struct {
    const char *name;
    char type;
} attr_info[PLM_ATTR_KEYS] = {
#define PLM_ATTR(id, name, type, doc) {name, #type[0]},
#include "core/ir/attrs.def"
#undef PLM_ATTR
};

/* Ranges wide enough for any model that could be, narrow enough that products of two fit int64. */
#define WIDE 1e30
#define MANY 1073741824.0
static const struct {
    double lo, hi;
} attr_range[PLM_ATTR_KEYS] = {
    [PLM_ATTR_EPS] = {0, 1},
    [PLM_ATTR_WEIGHT_OFFSET] = {-WIDE, WIDE},
    [PLM_ATTR_SCALE] = {-WIDE, WIDE},
    [PLM_ATTR_FN] = {0, PLM_FN_COUNT - 1},
    [PLM_ATTR_LIMIT] = {0, WIDE},
    [PLM_ATTR_ALPHA] = {-WIDE, WIDE},
    [PLM_ATTR_HEADS] = {1, MANY},
    [PLM_ATTR_KV_HEADS] = {1, MANY},
    [PLM_ATTR_DK] = {1, MANY},
    [PLM_ATTR_DV] = {1, MANY},
    [PLM_ATTR_WINDOW] = {0, MANY},
    [PLM_ATTR_CHUNK] = {0, MANY},
    [PLM_ATTR_SOFTCAP] = {0, WIDE},
    [PLM_ATTR_CAUSAL] = {0, 1},
    [PLM_ATTR_ALIBI] = {0, 1},
    [PLM_ATTR_V_IN_K] = {0, 1},
    [PLM_ATTR_SPARSE_TOP_K] = {0, MANY},
    [PLM_ATTR_RATIO] = {0, MANY},
    [PLM_ATTR_ROPE_DIMS] = {2, MANY},
    [PLM_ATTR_ROPE_STYLE] = {0, 1},
    [PLM_ATTR_ROPE_SCALING] = {0, PLM_ROPE_SCALING_COUNT - 1},
    [PLM_ATTR_THETA] = {1e-30, WIDE},
    [PLM_ATTR_FACTOR] = {0, WIDE},
    [PLM_ATTR_LOW_FREQ] = {0, WIDE},
    [PLM_ATTR_HIGH_FREQ] = {0, WIDE},
    [PLM_ATTR_ORIG_CTX] = {0, WIDE},
    [PLM_ATTR_BETA_FAST] = {0, WIDE},
    [PLM_ATTR_BETA_SLOW] = {0, WIDE},
    [PLM_ATTR_RAMP_EXACT] = {0, 1},
    [PLM_ATTR_MSCALE] = {0, WIDE},
    [PLM_ATTR_EXPERTS] = {1, MANY},
    [PLM_ATTR_LOCAL_EXPERTS] = {1, MANY},
    [PLM_ATTR_TOP_K] = {1, MANY},
    [PLM_ATTR_N_GROUP] = {0, MANY},
    [PLM_ATTR_TOPK_GROUP] = {0, MANY},
    [PLM_ATTR_RENORM] = {0, 1},
    [PLM_ATTR_AXIS] = {0, PLM_RANK_MAX - 1},
    [PLM_ATTR_START] = {0, MANY},
    [PLM_ATTR_COUNT] = {1, MANY},
    [PLM_ATTR_D0] = {-1, MANY},
    [PLM_ATTR_D1] = {-1, MANY},
    [PLM_ATTR_D2] = {-1, MANY},
    [PLM_ATTR_RANK] = {1, MANY},
    [PLM_ATTR_RANKS] = {1, MANY},
    [PLM_ATTR_NODES] = {1, MANY},
    [PLM_ATTR_BLOCK] = {0, MANY},
};

#define BIT(fn) (UINT32_C(1) << PLM_FN_##fn)
#define ONE_NUMBER                                                                                 \
    (BIT(NONE) | BIT(SILU) | BIT(GELU_TANH) | BIT(GELU_ERF) | BIT(SIGMOID) | BIT(SOFTPLUS) |       \
     BIT(TANH) | BIT(EXP) | BIT(RELU) | BIT(RELU2) | BIT(SQRT_SOFTPLUS))
/* Functions that an op may name. */
static const struct {
    plm_op op;
    uint32_t fns;
} op_fns[] = {
    {PLM_OP_UNARY, ONE_NUMBER | BIT(XIELU)},
    {PLM_OP_GLU, ONE_NUMBER | BIT(SWIGLU_OAI) | BIT(SITU)},
    {PLM_OP_CONV_CAUSAL, ONE_NUMBER},
    {PLM_OP_RMS_NORM_GATED, BIT(SILU) | BIT(SIGMOID)},
    {PLM_OP_GATE, BIT(SOFTMAX) | BIT(SOFTMAX_TOPK) | BIT(SIGMOID) | BIT(SQRT_SOFTPLUS)},
};

const char *plm_attr_name(plm_attr_key key)
{
    return attr_info[key].name;
}

char plm_attr_type(plm_attr_key key)
{
    return attr_info[key].type;
}

/* Whether the word stands in a list of words apart by spaces. */
static bool has_word(const char *list, const char *word)
{
    for (const char *p = list; *p != '\0';) {
        const char *w = word;
        while (*w != '\0' && *p == *w) {
            p++;
            w++;
        }
        if (*w == '\0' && (*p == ' ' || *p == '\0'))
            return true;
        while (*p != '\0' && *p != ' ')
            p++;
        p += *p == ' ';
    }
    return false;
}

static bool fn_allowed(plm_op op, int64_t fn)
{
    for (size_t i = 0; i < sizeof op_fns / sizeof op_fns[0]; i++)
        if (op_fns[i].op == op)
            return (op_fns[i].fns >> fn & 1) != 0;
    return true;
}

static plm_status check_attr(const plm_op_info *op, const plm_node *n, const plm_attr *a,
                             plm_error *err)
{
    if ((unsigned)a->key >= PLM_ATTR_KEYS)
        return plm_fail(err, PLM_E_INVALID, "attribute %d: no such key", (int)a->key);
    const char *name = attr_info[a->key].name;
    if (!has_word(op->attrs, name))
        return plm_fail(err, PLM_E_INVALID, "attribute %s: the op has none of that name", name);
    double lo = attr_range[a->key].lo, hi = attr_range[a->key].hi;
    bool real = attr_info[a->key].type == 'F';
    double v = real ? a->v.f : (double)a->v.i;
    if (!(v >= lo && v <= hi))
        return plm_fail(err, PLM_E_INVALID, "attribute %s, %.17g: must be %g to %g", name, v, lo,
                        hi);
    if (a->key == PLM_ATTR_FN && !fn_allowed(n->op, a->v.i))
        return plm_fail(err, PLM_E_INVALID, "attribute fn, %lld: not a function of this op",
                        (long long)a->v.i);
    return PLM_OK;
}

plm_status plm_attrs_check(const plm_graph *g, const plm_node *n, plm_error *err)
{
    const plm_op_info *op = plm_op_get(n->op);
    bool seen[PLM_ATTR_KEYS] = {false};
    if (n->attr > g->n_attrs || n->n_attr > g->n_attrs - n->attr || n->n_attr > PLM_ATTR_KEYS)
        return plm_fail(err, PLM_E_INVALID, "attributes: not in the graph");
    for (uint32_t i = 0; i < n->n_attr; i++) {
        const plm_attr *a = &g->attrs[n->attr + i];
        PLM_TRY(check_attr(op, n, a, err));
        if (seen[a->key])
            return plm_fail(err, PLM_E_INVALID, "attribute %s: given twice",
                            attr_info[a->key].name);
        seen[a->key] = true;
    }
    return PLM_OK;
}
