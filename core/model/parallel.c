/* parallel.c - which parallel plans a model allows, and the layers of a pipeline stage.
**
** Pure functions of the arch record; a message names the values that would do.
*/
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/build.h"

#define RANKS_MAX 65536
#define LISTED_MAX 64 /* tp values tried for a message */

plm_parallel plm_parallel_one(void)
{
    return (plm_parallel){.tp = 1, .pp = 1, .ep = 1, .dp = 1, .cp = 1, .per_node = 0};
}

int64_t plm_parallel_devices(const plm_parallel *p)
{
    return (int64_t)p->tp * p->pp * p->dp * p->cp;
}

/* Source: the divisibility checks of vLLM and transformers (vllm issue 11797, transformers issue
** 47811): query heads are split evenly, KV heads are split evenly or copied evenly. */
bool plm_tp_heads_legal(int64_t heads, int64_t kv_heads, int64_t tp)
{
    if (heads < 1 || kv_heads < 1 || tp < 1 || heads % tp != 0)
        return false;
    return kv_heads % tp == 0 || tp % kv_heads == 0;
}

/* Ranks that share one expert's matrices. */
static int64_t expert_tp(const plm_parallel *p)
{
    return plm_max_i64(1, (int64_t)p->tp * p->dp / p->ep);
}

/* Heads of every kind allow this tp. A kind without a mixer allows any. */
static bool heads_allow(const plm_layer *l, int64_t tp)
{
    switch (l->attn) {
    case PLM_ATTN_NONE:
        return true;
    case PLM_ATTN_MLA: /* the latent is copied: query heads alone decide */
        return l->heads > 0 && l->heads % tp == 0;
    case PLM_ATTN_GATED_DELTA:
    case PLM_ATTN_KDA:
        return plm_tp_heads_legal(l->lin_v_heads, l->lin_k_heads, tp);
    case PLM_ATTN_SHORT_CONV: /* channels */
        return plm_tp_heads_legal(l->lin_v_heads, l->lin_v_heads, tp);
    case PLM_ATTN_MAMBA2:
        return plm_tp_heads_legal(l->lin_v_heads, l->ssm_groups, tp);
    default:
        return plm_tp_heads_legal(l->heads, l->kv_heads, tp);
    }
}

/* 0, or the first feed-forward width that this plan does not divide. */
static int64_t width_refused(const plm_layer *l, int64_t tp, int64_t etp)
{
    if (l->ffn % tp != 0)
        return l->ffn;
    if (l->experts > 0 && l->expert_ffn % etp != 0)
        return l->expert_ffn;
    if (l->shared_experts > 0 && l->shared_ffn % tp != 0)
        return l->shared_ffn;
    return 0;
}

static bool kind_used(const plm_arch *a, int32_t kind)
{
    return memchr(a->layer_kind, kind, (size_t)plm_min_i64(a->layers, PLM_LAYERS_MAX)) != NULL;
}

static bool all_heads_allow(const plm_arch *a, int64_t tp)
{
    for (int32_t k = 0; k < a->n_kinds; k++)
        if (kind_used(a, k) && !heads_allow(&a->kind[k], tp))
            return false;
    return true;
}

static int64_t any_width_refused(const plm_arch *a, int64_t tp, int64_t etp)
{
    for (int32_t k = 0; k < a->n_kinds; k++) {
        int64_t w = kind_used(a, k) ? width_refused(&a->kind[k], tp, etp) : 0;
        if (w != 0)
            return w;
    }
    return 0;
}

size_t plm_parallel_legal_tp(const plm_arch *a, int64_t max, int64_t *out, size_t n)
{
    size_t found = 0;
    max = plm_min_i64(max, RANKS_MAX);
    for (int64_t tp = 1; tp <= max && found < n; tp++)
        if (all_heads_allow(a, tp) && any_width_refused(a, tp, tp) == 0)
            out[found++] = tp;
    return found;
}

/* "1, 2, 4" of the tp values up to LISTED_MAX that pass; widths too when `widths`. */
static void list_tp(const plm_arch *a, bool widths, char *text, size_t cap)
{
    size_t at = 0;
    text[0] = '\0';
    for (int64_t tp = 1; tp <= LISTED_MAX; tp++) {
        if (!all_heads_allow(a, tp) || (widths && any_width_refused(a, tp, tp) != 0))
            continue;
        int w = snprintf(text + at, cap - at, "%s%lld", at > 0 ? ", " : "", (long long)tp);
        if (w < 0 || (size_t)w >= cap - at)
            break;
        at += (size_t)w;
    }
}

/* "28 heads and 4 KV heads" of the first kind that refuses tp. */
static void name_heads(const plm_arch *a, int64_t tp, char *text, size_t cap)
{
    for (int32_t k = 0; k < a->n_kinds; k++) {
        const plm_layer *l = &a->kind[k];
        if (!kind_used(a, k) || heads_allow(l, tp))
            continue;
        if (l->attn == PLM_ATTN_MLA)
            snprintf(text, cap, "%d heads", l->heads);
        else if (l->attn == PLM_ATTN_GATED_DELTA || l->attn == PLM_ATTN_KDA)
            snprintf(text, cap, "%d value heads and %d key heads of the linear layers",
                     l->lin_v_heads, l->lin_k_heads);
        else if (l->attn == PLM_ATTN_SHORT_CONV)
            snprintf(text, cap, "%d channels of the convolutions", l->lin_v_heads);
        else if (l->attn == PLM_ATTN_MAMBA2)
            snprintf(text, cap, "%d heads and %d groups of the Mamba layers", l->lin_v_heads,
                     l->ssm_groups);
        else
            snprintf(text, cap, "%d heads and %d KV heads", l->heads, l->kv_heads);
        return;
    }
    snprintf(text, cap, "the heads");
}

static int32_t most_experts(const plm_arch *a)
{
    int32_t experts = 0;
    for (int32_t k = 0; k < a->n_kinds; k++)
        if (kind_used(a, k) && a->kind[k].experts > experts)
            experts = a->kind[k].experts;
    return experts;
}

static plm_status check_tp(const plm_arch *a, const plm_parallel *p, plm_error *err)
{
    char heads[96], legal[128], both[128];
    int64_t width = any_width_refused(a, p->tp, expert_tp(p));
    list_tp(a, false, legal, sizeof legal);
    if (!all_heads_allow(a, p->tp)) {
        name_heads(a, p->tp, heads, sizeof heads);
        list_tp(a, true, both, sizeof both);
        if (strcmp(both, legal) == 0)
            return plm_fail(err, PLM_E_INVALID,
                            "--tp, %d: %s allow %s; choose one of these or use --pp", p->tp, heads,
                            legal);
        return plm_fail(err, PLM_E_INVALID,
                        "--tp, %d: %s allow %s, the feed-forward widths of these %s; choose one of "
                        "the latter or use --pp",
                        p->tp, heads, legal, both);
    }
    if (width != 0) {
        list_tp(a, true, both, sizeof both);
        return plm_fail(err, PLM_E_INVALID,
                        "--tp, %d: feed-forward width %lld does not split over %lld ranks; tp %s "
                        "do, or use --pp%s",
                        p->tp, (long long)width,
                        (long long)(width % p->tp != 0 ? p->tp : expert_tp(p)), both,
                        most_experts(a) > 0 ? " or --ep" : "");
    }
    return PLM_OK;
}

static bool all_experts_allow(const plm_arch *a, int64_t ep)
{
    for (int32_t k = 0; k < a->n_kinds; k++)
        if (kind_used(a, k) && a->kind[k].experts % ep != 0)
            return false;
    return true;
}

static plm_status check_ep(const plm_arch *a, const plm_parallel *p, plm_error *err)
{
    int64_t group = (int64_t)p->tp * p->dp;
    int32_t experts = most_experts(a);
    char legal[128] = "1";
    size_t at = 1;
    if (p->ep == 1)
        return PLM_OK;
    if (experts == 0)
        return plm_fail(err, PLM_E_INVALID,
                        "--ep, %d: the model has no routed experts; use --ep 1", p->ep);
    if (all_experts_allow(a, p->ep) && group % p->ep == 0)
        return PLM_OK;
    for (int64_t ep = 2; ep <= group && at < sizeof legal - 8; ep++)
        if (group % ep == 0 && all_experts_allow(a, ep))
            at += (size_t)snprintf(legal + at, sizeof legal - at, ", %lld", (long long)ep);
    return plm_fail(err, PLM_E_INVALID,
                    "--ep, %d: %d experts over tp %d x dp %d allow %s; choose one of these", p->ep,
                    experts, p->tp, p->dp, legal);
}

plm_status plm_parallel_check(const plm_arch *a, const plm_parallel *p, plm_error *err)
{
    const struct {
        const char *flag;
        int32_t value;
    } part[] = {
        {"--tp", p->tp}, {"--pp", p->pp}, {"--ep", p->ep}, {"--dp", p->dp}, {"--cp", p->cp}};
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        if (part[i].value < 1 || part[i].value > RANKS_MAX)
            return plm_fail(err, PLM_E_INVALID, "%s, %d: ranks are 1 to %d; give one of these",
                            part[i].flag, part[i].value, RANKS_MAX);
    if (p->per_node < 0)
        return plm_fail(err, PLM_E_INVALID,
                        "devices of a node, %d: negative; give 0 for all in one node", p->per_node);
    if (plm_parallel_devices(p) > RANKS_MAX)
        return plm_fail(err, PLM_E_INVALID,
                        "plan, tp %d pp %d dp %d cp %d: more than %d devices; use fewer", p->tp,
                        p->pp, p->dp, p->cp, RANKS_MAX);
    if (p->pp > a->layers)
        return plm_fail(err, PLM_E_INVALID,
                        "--pp, %d: the model has %d layers; choose 1 to %d", p->pp, a->layers,
                        a->layers);
    if (p->dp > 1 && p->cp > 1)
        return plm_fail(err, PLM_E_INVALID,
                        "--dp, %d with --cp %d: both divide the sequences' attention; set one of "
                        "them to 1",
                        p->dp, p->cp);
    PLM_TRY(check_ep(a, p, err));
    return check_tp(a, p, err);
}

void plm_parallel_stage(const plm_arch *a, const plm_parallel *p, int32_t stage, int32_t *first,
                        int32_t *count)
{
    int32_t pp = p->pp < 1 ? 1 : p->pp, each = a->layers / pp, rest = a->layers % pp;
    /* rest < pp, so stages 0 .. rest-1 take one more and the last, which has the head, never does.
    ** */
    *first = stage * each + (stage < rest ? stage : rest);
    *count = each + (stage < rest ? 1 : 0);
}
