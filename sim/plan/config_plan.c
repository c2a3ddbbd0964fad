/* config_plan.c - the ranks of a configuration: those asked for, and the choice of the rest. */
#include "core/base/mem.h"
#include "sim/plan/config.h"

static int32_t at_least_one(int32_t n)
{
    return n > 0 ? n : 1;
}

/* Greatest legal tp that divides `rest` and stays inside a node; the rest goes to stages. */
static plm_status spread_ranks(const plm_config *c, const plm_parallel *asked, int64_t rest,
                               plm_parallel *p, plm_error *err)
{
    int64_t node = c->machine.dev.node_devices > 0 ? c->machine.dev.node_devices : rest;
    bool tp_free = asked->tp <= 0 && !c->layer_split;
    bool pp_free = asked->pp <= 0;
    for (int64_t tp = tp_free ? plm_min_i64(rest, node) : 1; tp >= 1; tp--) {
        if (rest % tp != 0 || (rest / tp > 1 && !pp_free))
            continue;
        plm_parallel t = *p;
        if (tp_free)
            t.tp = (int32_t)tp;
        if (pp_free)
            t.pp = (int32_t)(rest / tp);
        if (t.pp <= PLM_STAGES_MAX && plm_parallel_check(c->arch, &t, NULL) == PLM_OK) {
            *p = t;
            return PLM_OK;
        }
    }
    return plm_fail(err, PLM_E_INVALID,
                    "parallel plan, %lld devices: tp %d pp %d ep %d dp %d cp %d "
                    "cannot be completed to that number for %s; give ranks whose product is %lld",
                    (long long)c->devices, p->tp, p->pp, p->ep, p->dp, p->cp, c->arch->id,
                    (long long)c->devices);
}

plm_status plm_config_plan(plm_config *c, const plm_parallel *asked, int64_t devices,
                           plm_error *err)
{
    plm_parallel p = *asked;
    p.tp = at_least_one(p.tp);
    p.pp = at_least_one(p.pp);
    p.ep = at_least_one(p.ep);
    p.dp = at_least_one(p.dp);
    p.cp = at_least_one(p.cp);
    p.per_node = asked->per_node > 0 ? asked->per_node : c->machine.dev.node_devices;
    int64_t given = plm_parallel_devices(&p);
    bool any = asked->tp > 0 || asked->pp > 0 || asked->dp > 0 || asked->cp > 0;
    if (devices < 1 || (devices == 1 && any))
        devices = given;
    c->devices = devices;
    if (devices > 65536 || p.pp > PLM_STAGES_MAX)
        return plm_fail(err, PLM_E_LIMIT,
                        "parallel plan, %lld devices in %d stages: more than 65536 "
                        "or %d; use fewer",
                        (long long)devices, p.pp, PLM_STAGES_MAX);
    if (devices != given) {
        if (devices % given != 0)
            return plm_fail(
                err, PLM_E_INVALID,
                "parallel plan, %lld devices: tp %d pp %d dp %d cp %d "
                "take %lld, which does not divide them; give ranks whose product is %lld",
                (long long)devices, p.tp, p.pp, p.dp, p.cp, (long long)given, (long long)devices);
        PLM_TRY(spread_ranks(c, asked, devices / given, &p, err));
    }
    PLM_TRY(plm_parallel_check(c->arch, &p, err));
    c->par = p;
    return PLM_OK;
}
