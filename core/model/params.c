/* params.c - parameters and stored bytes, counted from the weights of a graph: the graph that is
*costed
** and run is the one that is counted. */
#include "core/base/mem.h"
#include "core/model/build.h"

static plm_status elements(const plm_graph *g, const plm_value *v, int64_t *out, plm_error *err)
{
    *out = 1;
    for (uint32_t d = 0; d < v->rank; d++)
        if (!plm_mul_i64(*out, plm_dim_value(&g->dims, v->dim[d]), out))
            return plm_fail(err, PLM_E_INVALID,
                            "weight, %s: more than 2^63 elements; check the "
                            "model",
                            v->name);
    return PLM_OK;
}

/* Matrices of routed experts, and their biases: the only ones of two dims. */
static bool of_experts(const plm_value *v)
{
    switch (v->role) {
    case PLM_ROLE_EXPERT_GATE:
    case PLM_ROLE_EXPERT_UP:
    case PLM_ROLE_EXPERT_GATE_UP:
    case PLM_ROLE_EXPERT_DOWN:
        return true;
    case PLM_ROLE_BIAS:
        return v->rank == 2;
    default:
        return false;
    }
}

/* A weight that is learned: tables of expert ids are not. */
static bool is_parameter(const plm_value *v)
{
    return v->kind == PLM_VALUE_WEIGHT && v->dtype != PLM_DT_I32;
}

static plm_status add_weight(const plm_arch *a, const plm_graph *g, const plm_value *v,
                             plm_params *p, plm_error *err)
{
    int64_t n, active;
    PLM_TRY(elements(g, v, &n, err));
    active = n;
    if (of_experts(v)) {
        const plm_layer *l = plm_arch_layer(a, v->layer);
        active = n / l->experts * l->top_k;
        p->experts += n;
    }
    p->embed += v->role == PLM_ROLE_EMBED ? n : 0;
    p->head += v->role == PLM_ROLE_HEAD ? n : 0;
    if (!plm_add_i64(p->total, n, &p->total))
        return plm_fail(err, PLM_E_INVALID, "model, %s: more than 2^63 parameters; check it",
                        a->id);
    p->active += active;
    return PLM_OK;
}

plm_status plm_count_params(const plm_arch *a, plm_params *out, plm_error *err)
{
    plm_build b;
    plm_graph g;
    plm_params p = {0};
    plm_build_init(&b);
    b.recipe = plm_recipe_by_name("bf16");
    plm_status status;
    PLM_GOTO(plm_build_graph(a, &b, &g, err));
    for (size_t i = 0; i < g.n_values; i++)
        if (is_parameter(&g.values[i]))
            PLM_GOTO(add_weight(a, &g, &g.values[i], &p, err));
    /* params_extra (engram tables) stay out, as the makers' own total leaves them out. */
    p.active_no_embed = p.active - (a->tied_head ? 0 : p.embed);
    *out = p;
done:
    plm_graph_fini(&g);
    return status;
}

plm_status plm_graph_weight_bytes(const plm_graph *g, int64_t *bytes, int64_t *embed_bytes,
                                  plm_error *err)
{
    int64_t embed = 0;
    *bytes = 0;
    for (size_t i = 0; i < g->n_values; i++) {
        int64_t n;
        if (g->values[i].kind != PLM_VALUE_WEIGHT)
            continue;
        PLM_TRY(plm_value_bytes(g, (plm_value_id)i, NULL, &n, err));
        if (!plm_add_i64(*bytes, n, bytes))
            return plm_fail(err, PLM_E_INVALID,
                            "weights, %s: more than 2^63 bytes; check the model",
                            g->values[i].name);
        if (g->values[i].role == PLM_ROLE_EMBED)
            embed += n;
    }
    if (embed_bytes != NULL)
        *embed_bytes = embed;
    return PLM_OK;
}
