/* params.c - parameters and stored bytes, counted from the weights of a graph: the graph that is costed
** and run is the one that is counted. */
#include "core/base/mem.h"
#include "core/model/build.h"

/* Elements of a weight, 0 and an error when they pass 2^63. */
static plm_status elements(const plm_graph *g, const plm_value *v, int64_t *out, plm_error *err)
{
    *out = 1;
    for (uint32_t d = 0; d < v->rank; d++)
        if (!plm_mul_i64(*out, plm_dim_value(&g->dims, v->dim[d]), out))
            return plm_fail(err, PLM_E_INVALID, "weight, %s: more than 2^63 elements; check the "
                            "model", v->name);
    return PLM_OK;
}

/* A stack of experts, its bias included: the first dim is the experts. */
static bool of_experts(const plm_value *v, int32_t experts, const plm_graph *g)
{
    if (experts == 0 || v->rank < 2 || plm_dim_value(&g->dims, v->dim[0]) != experts)
        return false;
    switch (v->role) {
    case PLM_ROLE_EXPERT_GATE:
    case PLM_ROLE_EXPERT_UP:
    case PLM_ROLE_EXPERT_GATE_UP:
    case PLM_ROLE_EXPERT_DOWN:
    case PLM_ROLE_BIAS:
        return true;
    default:
        return false;
    }
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
    for (size_t i = 0; i < g.n_values; i++) {
        const plm_value *v = &g.values[i];
        int64_t n;
        if (v->kind != PLM_VALUE_WEIGHT)
            continue;
        PLM_GOTO(elements(&g, v, &n, err));
        const plm_layer *l = v->layer >= 0 ? plm_arch_layer(a, v->layer) : NULL;
        bool experts = l != NULL && of_experts(v, l->experts, &g);
        int64_t active = experts ? n / l->experts * l->top_k : n;
        if (!plm_add_i64(p.total, n, &p.total) || !plm_add_i64(p.active, active, &p.active)) {
            status = plm_fail(err, PLM_E_INVALID, "model, %s: more than 2^63 parameters; check it",
                              a->id);
            goto done;
        }
        p.embed += v->role == PLM_ROLE_EMBED ? n : 0;
        p.head += v->role == PLM_ROLE_HEAD ? n : 0;
        p.experts += experts ? n : 0;
    }
    p.active_no_embed = p.active - (a->tied_head ? 0 : p.embed);
    *out = p;
    status = PLM_OK;
done:
    plm_graph_fini(&g);
    return status;
}

plm_status plm_graph_weight_bytes(const plm_graph *g, int64_t *bytes, int64_t *embed_bytes,
                                  plm_error *err)
{
    *bytes = 0;
    if (embed_bytes != NULL)
        *embed_bytes = 0;
    for (size_t i = 0; i < g->n_values; i++) {
        int64_t n;
        if (g->values[i].kind != PLM_VALUE_WEIGHT)
            continue;
        PLM_TRY(plm_value_bytes(g, (plm_value_id)i, NULL, &n, err));
        if (!plm_add_i64(*bytes, n, bytes))
            return plm_fail(err, PLM_E_INVALID, "weights, %s: more than 2^63 bytes; check the model",
                            g->values[i].name);
        if (embed_bytes != NULL && g->values[i].role == PLM_ROLE_EMBED)
            *embed_bytes += n;
    }
    return PLM_OK;
}
