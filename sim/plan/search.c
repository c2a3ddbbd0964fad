/* search.c - every device, storage type, parallel plan and batch of a query, in order of merit.
**
** Families (plans that differ in their batch alone) are listed and built in order by one thread,
*since
** the session's caches are; they are then costed in any order, each into its own rows, and the rows
** are gathered in the order of the list. So the answer does not depend on the number of threads.
*/
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/mem.h"
#include "core/base/vec.h"
#include "sim/plan/family.h"
#include "sim/plan/tasks.h"

#define FAMILIES_MAX 8192u
#define PP_MAX 16
#define QUANTS_MAX 64

typedef struct search {
    plm_session *s;
    const plm_plan_query *q;
    PLM_VEC(plm_family *) families;
    plm_plan *out;
    size_t group;
} search;

static double now_s(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
        return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the list of families ---- */

static void free_family(plm_family *f)
{
    if (f != NULL)
        plm_free(f->rows);
    plm_free(f);
}

/* Adds the plan if it is legal and can be built; counts it where it cannot. */
static plm_status add_family(search *x, const plm_config *base, double price,
                             const plm_parallel *par, plm_error *err)
{
    plm_error why;
    if (plm_parallel_check(base->arch, par, &why) != PLM_OK) {
        x->out->considered++;
        x->out->illegal++;
        return PLM_OK;
    }
    plm_family *f = plm_calloc(1, sizeof *f);
    if (f == NULL)
        return plm_fail_memory(err, "plan search");
    f->config = *base;
    f->config.par = *par;
    f->config.devices = plm_parallel_devices(par);
    f->group = x->group;
    f->price = price;
    plm_status status = plm_config_build(x->s, &f->config, false, &why);
    if (status == PLM_E_NO_MEMORY || status == PLM_E_INTERNAL) {
        free_family(f);
        return plm_fail(err, status, "%s", why.text);
    }
    if (status != PLM_OK) { /* a shard the storage type cannot hold, say */
        free_family(f);
        x->out->considered++;
        x->out->illegal++;
        return PLM_OK;
    }
    plm_family_size(f, x->q);
    f->rows = plm_calloc(plm_family_room(f, x->q), sizeof *f->rows);
    if (f->rows == NULL || !plm_vec_push(&x->families, f, FAMILIES_MAX)) {
        bool full = x->families.count >= FAMILIES_MAX;
        free_family(f);
        return full ? plm_fail(err, PLM_E_LIMIT,
                               "too many plans, search: more than %u families; name "
                               "fewer devices or storage types",
                               FAMILIES_MAX)
                    : plm_fail_memory(err, "plan search");
    }
    return PLM_OK;
}

/* Expert ranks of a plan: sharded with the rest, or spread whole over all tp x dp ranks. */
static plm_status add_expert_plans(search *x, const plm_config *base, double price,
                                   plm_parallel par, plm_error *err)
{
    par.ep = 1;
    if (par.dp == 1) /* experts sharded like the rest */
        PLM_TRY(add_family(x, base, price, &par, err));
    if (base->experts > 0 && par.tp * par.dp > 1) {
        par.ep = par.tp * par.dp;
        PLM_TRY(add_family(x, base, price, &par, err));
    }
    return PLM_OK;
}

/* Powers of two for every kind of rank, up to `most` devices. */
static plm_status add_plans(search *x, const plm_config *base, double price, int64_t most,
                            plm_error *err)
{
    int64_t tp_most = base->layer_split ? 1 : most, dp_most = base->experts > 0 ? most : 1;
    int64_t node = base->machine.dev.node_devices;
    for (int64_t tp = 1; tp <= tp_most; tp *= 2)
        for (int64_t pp = 1; pp <= plm_min_i64(most / tp, PP_MAX); pp *= 2)
            for (int64_t dp = 1; dp <= plm_min_i64(most / tp / pp, dp_most); dp *= 2) {
                if (base->layer_split && dp > 1)
                    break;
                plm_parallel par = plm_parallel_one();
                par.tp = (int32_t)tp;
                par.pp = (int32_t)pp;
                par.dp = (int32_t)dp;
                par.per_node = (int32_t)node;
                PLM_TRY(add_expert_plans(x, base, price, par, err));
            }
    return PLM_OK;
}

/* Storage types to try: those named, else the model's own, and 8 bit and 4 bit where they run. */
static size_t list_quants(const plm_plan_query *q, const plm_machine *m, const char **out)
{
    size_t n = 0;
    if (q->n_quants > 0) {
        for (; n < q->n_quants && n < QUANTS_MAX; n++)
            out[n] = q->quants[n];
        return n;
    }
    out[n++] = NULL;
    if (plm_layer_split(&m->prof)) {
        out[n++] = "q8_0";
        out[n++] = "q4_k_m";
    } else if (m->dev.peak_flop_s[PLM_MATH_F8] > 0) {
        out[n++] = "fp8";
    }
    return n;
}

static plm_status add_device(search *x, const char *text, plm_error *err)
{
    const plm_plan_query *q = x->q;
    const char *quants[QUANTS_MAX];
    const plm_recipe *seen[QUANTS_MAX];
    size_t n_seen = 0;
    char id[256], source[256];
    int64_t most;
    const plm_machine *m;
    PLM_TRY(plm_device_split(text, id, sizeof id, &most, err));
    if (strchr(text, ':') == NULL || most > q->max_devices)
        most = q->max_devices;
    PLM_TRY(plm_session_machine(x->s, id, q->engine, &m, err));
    double price = -1;
    PLM_TRY(plm_config_price(plm_session_catalog(x->s), m->dev.id, q->price_usd, &price, source,
                             sizeof source, err));
    size_t n = list_quants(q, m, quants);
    for (size_t i = 0; i < n; i++) {
        plm_query one;
        plm_config base;
        plm_query_init(&one);
        one.model = q->model;
        one.device = id;
        one.engine = q->engine;
        one.quant = quants[i];
        one.kv_type = q->kv_type;
        one.batch = 256; /* activations of engines that plan for what is asked */
        PLM_TRY(plm_config_init(x->s, &one, &base, err));
        bool again = false;
        for (size_t k = 0; k < n_seen; k++)
            again = again || seen[k] == base.recipe;
        if (again)
            continue;
        seen[n_seen++] = base.recipe;
        x->group++;
        PLM_TRY(add_plans(x, &base, price, most, err));
    }
    return PLM_OK;
}

/* ---- costing ---- */

static void fill_task(void *ctx, size_t i)
{
    search *x = ctx;
    plm_family_fill(x->families.items[i], x->q);
}

static void pair_task(void *ctx, size_t i)
{
    search *x = ctx;
    plm_family_pair(x->families.items[i], x->families.items, x->families.count, x->q);
}

/* ---- order of merit ---- */

typedef struct ranked {
    double miss, merit, tie; /* all: the less the better */
    size_t index;
} ranked;

static double miss_of(const plm_plan_query *q, const plm_plan_row *r)
{
    double miss = 0;
    if (q->ttft_s > 0)
        miss = fmax(miss, r->ttft_s.value / q->ttft_s - 1);
    if (q->itl_s > 0)
        miss = fmax(miss, r->itl_s.value / q->itl_s - 1);
    return miss;
}

static double usd_per_request(const plm_plan_query *q, const plm_plan_row *r)
{
    return r->usd_per_mtok_input * (double)q->isl + r->usd_per_mtok_output * (double)q->osl;
}

static double merit_of(const plm_plan_query *q, const plm_plan_row *r)
{
    const char *objective = q->objective != NULL ? q->objective : "cost";
    if (strcmp(objective, "latency") == 0)
        return r->ttft_s.value + (double)(q->osl - 1) * r->itl_s.value;
    if (strcmp(objective, "throughput") == 0)
        return -r->tok_s_per_device;
    /* Plans without a price come after all that have one, the busiest devices first. */
    return r->usd_per_hour >= 0 ? usd_per_request(q, r) : 1e30 / (1 + r->tok_s_per_device);
}

static int by_merit(const void *pa, const void *pb)
{
    const ranked *a = pa, *b = pb;
    const double x[] = {a->miss, a->merit, a->tie}, y[] = {b->miss, b->merit, b->tie};
    for (int i = 0; i < 3; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void name_nearest(const plm_plan_query *q, const plm_plan_row *r, plm_plan *out)
{
    bool ttft = q->ttft_s > 0 &&
                r->ttft_s.value / q->ttft_s >= (q->itl_s > 0 ? r->itl_s.value / q->itl_s : 0);
    double value = ttft ? r->ttft_s.value : r->itl_s.value, want = ttft ? q->ttft_s : q->itl_s;
    snprintf(
        out->nearest, sizeof out->nearest,
        "no plan meets the targets; nearest: %lld x %s, %s, tp %d pp %d ep %d dp %d, batch %lld, "
        "misses %s by %.1f %% (%.4g ms for %.4g ms)",
        (long long)(r->devices / plm_max_i64(1, r->replicas)), r->device, r->quant, r->par.tp,
        r->par.pp, r->par.ep, r->par.dp, (long long)r->batch, ttft ? "TTFT" : "ITL",
        100 * (value / want - 1), value * 1e3, want * 1e3);
}

/* Rows of all families into out->rows, best first. When some meet the targets only those stay. */
static plm_status gather(search *x, plm_error *err)
{
    plm_plan *out = x->out;
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < x->families.count; i++) {
        plm_family *f = x->families.items[i];
        if (f->status != PLM_OK)
            return plm_fail(err, f->status, "%s", f->error.text);
        out->considered += f->considered;
        out->unfit += f->unfit;
        for (size_t k = 0; k < f->n_rows; k++) {
            kept += f->rows[k].meets;
            out->missed += !f->rows[k].meets;
        }
        n += f->n_rows;
    }
    if (n == 0)
        return PLM_OK;
    bool all = kept == 0;
    ranked *order = plm_calloc(n, sizeof *order);
    const plm_plan_row **at = plm_calloc(n, sizeof *at);
    out->rows = plm_calloc(all ? n : kept, sizeof *out->rows);
    if (order == NULL || at == NULL || out->rows == NULL) {
        plm_free(order);
        plm_free(at);
        return plm_fail_memory(err, "plans");
    }
    size_t m = 0;
    for (size_t i = 0; i < x->families.count; i++)
        for (size_t k = 0; k < x->families.items[i]->n_rows; k++) {
            const plm_plan_row *r = &x->families.items[i]->rows[k];
            if (!all && !r->meets)
                continue;
            at[m] = r;
            order[m] =
                (ranked){all ? miss_of(x->q, r) : 0, merit_of(x->q, r), -r->tok_s_per_user, m};
            m++;
        }
    qsort(order, m, sizeof *order, by_merit);
    for (size_t i = 0; i < m; i++)
        out->rows[i] = *at[order[i].index];
    out->n_rows = out->room = m;
    plm_free(order);
    plm_free(at);
    if (all)
        name_nearest(x->q, &out->rows[0], out);
    return PLM_OK;
}

/* Front of speed for a user against what a token costs (devices it takes, without prices). */
static plm_status mark_front(plm_plan *out, const plm_plan_query *q, plm_error *err)
{
    if (out->n_rows == 0)
        return PLM_OK;
    double *points = plm_calloc(out->n_rows, 2 * sizeof *points);
    bool *front = plm_calloc(out->n_rows, sizeof *front), priced = true;
    if (points == NULL || front == NULL) {
        plm_free(points);
        plm_free(front);
        return plm_fail_memory(err, "plans");
    }
    for (size_t i = 0; i < out->n_rows; i++)
        priced = priced && out->rows[i].usd_per_hour >= 0;
    for (size_t i = 0; i < out->n_rows; i++) {
        const plm_plan_row *r = &out->rows[i];
        points[2 * i] = r->tok_s_per_user;
        points[2 * i + 1] = priced ? -usd_per_request(q, r) : r->tok_s_per_device;
    }
    plm_pareto(points, out->n_rows, 2, front);
    for (size_t i = 0; i < out->n_rows; i++)
        out->rows[i].pareto = front[i];
    plm_free(points);
    plm_free(front);
    return PLM_OK;
}

static plm_status check_query(const plm_plan_query *q, plm_error *err)
{
    if (q->model == NULL || q->n_devices < 1 || q->n_quants > QUANTS_MAX)
        return plm_fail(err, PLM_E_INVALID,
                        "plan search, query: a model and at least one device are "
                        "needed, and at most %d storage types; name them",
                        QUANTS_MAX);
    if (q->isl < 1 || q->osl < 1 || q->isl > 100000000 || q->osl > 100000000 ||
        q->max_devices < 1 || q->max_devices > 4096 || !(q->rate >= 0) || !(q->ttft_s >= 0) ||
        !(q->itl_s >= 0) || !(q->utilisation >= 0 && q->utilisation <= 1) || q->mode < 0 ||
        q->mode > 2 || q->threads < 0)
        return plm_fail(err, PLM_E_INVALID,
                        "plan search, query: tokens, devices, rate, targets, "
                        "utilisation, mode or threads out of range; correct them");
    const char *o = q->objective;
    if (o != NULL && strcmp(o, "cost") != 0 && strcmp(o, "throughput") != 0 &&
        strcmp(o, "latency") != 0)
        return plm_fail(err, PLM_E_INVALID,
                        "unknown objective, \"%.40s\": give cost, throughput or "
                        "latency",
                        o);
    return PLM_OK;
}

plm_status plm_plan_search(plm_session *s, const plm_plan_query *q, plm_plan *out, plm_error *err)
{
    search x = {.s = s, .q = q, .out = out};
    memset(out, 0, sizeof *out);
    plm_status status = check_query(q, err);
    if (status != PLM_OK)
        return status;
    double start = now_s();
    plm_session_trim(s);
    for (size_t i = 0; i < q->n_devices; i++)
        PLM_GOTO(add_device(&x, q->devices[i], err));
    plm_tasks_run(x.families.count, q->threads, fill_task, &x, q->progress, q->progress_ctx);
    if (q->mode != 1)
        plm_tasks_run(x.families.count, q->threads, pair_task, &x, NULL, NULL);
    PLM_GOTO(gather(&x, err));
    PLM_GOTO(mark_front(out, q, err));
    out->search_s = now_s() - start;
done:
    for (size_t i = 0; i < x.families.count; i++)
        free_family(x.families.items[i]);
    plm_vec_fini(&x.families);
    if (status != PLM_OK)
        plm_plan_fini(out);
    return status;
}

void plm_plan_fini(plm_plan *p)
{
    plm_free(p->rows);
    memset(p, 0, sizeof *p);
}
