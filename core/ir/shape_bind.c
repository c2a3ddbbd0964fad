#include <stdio.h>
#include <string.h>

#include "core/ir/shape.h"

void plm_bind_init(plm_bind *b)
{
    memset(b->dim, 0xff, sizeof b->dim); /* PLM_DIM_NONE everywhere */
    b->n_lead = 0;
    b->lead_bound = false;
}

const plm_value *plm_shape_input(const plm_graph *g, const plm_node *n, uint32_t i)
{
    return i < n->n_in && n->in[i] != PLM_NONE ? &g->values[n->in[i]] : NULL;
}

bool plm_shape_is_index(plm_dtype t)
{
    static const plm_dtype index[] = {PLM_DT_I16, PLM_DT_I32, PLM_DT_I64,
                                      PLM_DT_U16, PLM_DT_U32, PLM_DT_U64};
    for (size_t i = 0; i < sizeof index / sizeof index[0]; i++)
        if (t == index[i])
            return true;
    return false;
}

const char *plm_shape_dim_text(const plm_graph *g, plm_dim d, char buf[24])
{
    static const char *const sym[] = {
#define SYM_NAME(id, name, doc) name,
        PLM_SYM_MAP(SYM_NAME)
#undef SYM_NAME
    };
    if (d >= g->dims.count)
        return "none";
    const plm_dim_node *n = &g->dims.items[d];
    if (n->op == PLM_DIM_SYM)
        return sym[n->k];
    if (n->op != PLM_DIM_CONST)
        return "expression";
    snprintf(buf, 24, "%lld", (long long)n->k);
    return buf;
}

plm_status plm_shape_dim(const plm_graph *g, plm_dim d, plm_error *err)
{
    if (d != PLM_DIM_NONE)
        return PLM_OK;
    if (g->dims.no_memory)
        return plm_fail_memory(err, "dims of a graph");
    if (g->dims.count >= PLM_DIMS_MAX)
        return plm_fail(err, PLM_E_LIMIT, "output: more than %u dims in the graph", PLM_DIMS_MAX);
    return plm_fail(err, PLM_E_INVALID, "output: a dim passes 2^63");
}

/* Letters up to a space or the end; words are so short that a library call costs more. */
static size_t word_length(const char *p)
{
    size_t n = 0;
    while (p[n] != '\0' && p[n] != ' ')
        n++;
    return n;
}

/* ---- matching ---- */

static plm_status bind_letter(plm_bind *b, const plm_graph *g, char letter, plm_dim d,
                              uint32_t input, uint32_t at, plm_error *err)
{
    char got[24], want[24];
    plm_dim *bound = &b->dim[(unsigned char)letter & 127];
    if (letter >= '0' && letter <= '9') {
        if (plm_dim_value(&g->dims, d) == letter - '0')
            return PLM_OK;
        return plm_fail(err, PLM_E_INVALID, "input %u, dim %u: %s, must be %c", input, at,
                        plm_shape_dim_text(g, d, got), letter);
    }
    if (*bound == PLM_DIM_NONE)
        *bound = d;
    if (*bound == d)
        return PLM_OK;
    return plm_fail(err, PLM_E_INVALID, "input %u, dim %u: %s, must be %s as before", input, at,
                    plm_shape_dim_text(g, d, got), plm_shape_dim_text(g, *bound, want));
}

static plm_status match_word(plm_bind *b, const plm_graph *g, const plm_value *v,
                             const char *letters, size_t n_letters, uint32_t input, plm_error *err)
{
    uint32_t lead = 0;
    bool leads = n_letters > 0 && letters[0] == '.';
    if (leads) {
        letters++;
        n_letters--;
        lead = v->rank >= n_letters ? v->rank - (uint32_t)n_letters : 0;
    }
    if (v->rank != lead + n_letters || (leads && b->lead_bound && lead != b->n_lead))
        return plm_fail(err, PLM_E_INVALID, "input %u: rank %u, must be %s%zu", input, v->rank,
                        leads && !b->lead_bound ? "at least " : "",
                        n_letters + (leads && b->lead_bound ? b->n_lead : 0));
    for (uint32_t i = 0; i < lead; i++) {
        char got[24], want[24];
        if (!b->lead_bound)
            b->lead[i] = v->dim[i];
        else if (b->lead[i] != v->dim[i])
            return plm_fail(err, PLM_E_INVALID, "input %u, dim %u: %s, must be %s as before", input,
                            i, plm_shape_dim_text(g, v->dim[i], got),
                            plm_shape_dim_text(g, b->lead[i], want));
    }
    if (leads) {
        b->n_lead = lead;
        b->lead_bound = true;
    }
    for (uint32_t i = 0; i < n_letters; i++)
        PLM_TRY(bind_letter(b, g, letters[i], v->dim[lead + i], input, lead + i, err));
    return PLM_OK;
}

plm_status plm_bind_match(plm_bind *b, const plm_graph *g, const plm_node *n, const char *pattern,
                          plm_error *err)
{
    const char *p = pattern;
    for (uint32_t i = 0; *p != '\0'; i++) {
        bool optional = *p == '?';
        p += optional;
        bool integers = *p == '#';
        p += integers;
        size_t len = word_length(p);
        const plm_value *v = plm_shape_input(g, n, i);
        if (v == NULL && !optional)
            return plm_fail(err, PLM_E_INVALID, "input %u: missing", i);
        if (v != NULL) {
            if (integers && !plm_shape_is_index(v->dtype))
                return plm_fail(err, PLM_E_INVALID, "input %u: %s, must be an integer type", i,
                                plm_dtype_get(v->dtype)->name);
            PLM_TRY(match_word(b, g, v, p, len, i, err));
        }
        p += len;
        p += *p == ' ';
    }
    return PLM_OK;
}

plm_status plm_bind_const(plm_bind *b, plm_graph *g, char letter, int64_t value, plm_error *err)
{
    b->dim[(unsigned char)letter & 127] = plm_dim_const(&g->dims, value);
    return plm_shape_dim(g, b->dim[(unsigned char)letter & 127], err);
}

/* ---- results ---- */

static void next_version(const plm_graph *g, const plm_node *n, uint32_t input, plm_value *out)
{
    const plm_value *state = plm_shape_input(g, n, input);
    if (state == NULL) {
        out->dtype = PLM_DT_COUNT; /* no output */
        return;
    }
    out->alias = n->in[input];
    out->dtype = state->dtype;
    out->rank = state->rank;
    memcpy(out->dim, state->dim, sizeof out->dim);
}

static plm_status result_word(const plm_bind *b, const char *p, size_t len, plm_value *out,
                              plm_error *err)
{
    out->rank = 0;
    for (size_t i = 0; i < len; i++) {
        uint32_t add = p[i] == '.' ? b->n_lead : 1;
        if (out->rank + add > PLM_RANK_MAX)
            return plm_fail(err, PLM_E_INVALID, "output: more than %d dims", PLM_RANK_MAX);
        for (uint32_t j = 0; j < add; j++)
            out->dim[out->rank++] = p[i] == '.' ? b->lead[j] : b->dim[(unsigned char)p[i] & 127];
    }
    return PLM_OK;
}

plm_status plm_bind_result(const plm_bind *b, const plm_graph *g, const plm_node *n,
                           const char *result, plm_value *out, plm_error *err)
{
    const char *p = result;
    for (uint32_t i = 0; *p != '\0' && i < PLM_OUT_MAX; i++) {
        size_t len = word_length(p);
        if (*p == '=') {
            next_version(g, n, (uint32_t)(p[1] - '0'), &out[i]);
        } else {
            bool integers = *p == '#';
            PLM_TRY(result_word(b, p + integers, len - integers, &out[i], err));
            if (integers && !plm_shape_is_index(out[i].dtype))
                out[i].dtype = PLM_DT_I32;
        }
        p += len;
        p += *p == ' ';
    }
    return PLM_OK;
}

/* ---- attributes ---- */

plm_status plm_shape_agrees(const plm_graph *g, const plm_node *n, plm_attr_key key, plm_dim d,
                            plm_error *err)
{
    char text[24];
    int64_t v = plm_attr_int(g, n, key, -1);
    if (v < 0 || plm_dim_value(&g->dims, d) == v)
        return PLM_OK;
    return plm_fail(err, PLM_E_INVALID, "%s, %lld: must be %s as the inputs' shape says",
                    plm_attr_name(key), (long long)v, plm_shape_dim_text(g, d, text));
}

plm_status plm_shape_need(const plm_graph *g, const plm_node *n, plm_attr_key key, int64_t lo,
                          int64_t hi, int64_t *v, plm_error *err)
{
    *v = plm_attr_int(g, n, key, INT64_MIN);
    if (*v == INT64_MIN)
        return plm_fail(err, PLM_E_INVALID, "%s: missing", plm_attr_name(key));
    if (*v < lo || *v > hi)
        return plm_fail(err, PLM_E_INVALID, "%s, %lld: must be %lld to %lld", plm_attr_name(key),
                        (long long)*v, (long long)lo, (long long)hi);
    return PLM_OK;
}
