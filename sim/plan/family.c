/* family.c - the rows of one device, storage and parallel plan over the batches it can hold. */
#include "sim/plan/family.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "sim/plan/disagg.h"
#include "sim/plan/phase.h"

#define REPLICAS_MAX 1e9
#define PREFILL_FULL 0.95 /* share of time a prefill pool may be busy */
#define WORKERS_MAX 64    /* of one pool of a unit */

bool plm_plan_meets(const plm_plan_query *q, double ttft_s, double itl_s)
{
    return (q->ttft_s <= 0 || ttft_s <= q->ttft_s) && (q->itl_s <= 0 || itl_s <= q->itl_s);
}

/* 1, 2, 3, 4, 6, 8, 12, 16 ... up to most, and most itself. */
static size_t fill_grid(int64_t most, int64_t *batch)
{
    size_t n = 0;
    for (int64_t b = 1; b <= most && n + 2 < PLM_GRID_MAX; b *= 2) {
        batch[n++] = b;
        if (b > 1 && b + b / 2 <= most)
            batch[n++] = b + b / 2;
    }
    if (n > 0 && batch[n - 1] < most)
        batch[n++] = most;
    return n;
}

/* Money of a row whose deployment carries `rate` requests/s. */
static void put_money(const plm_family *f, const plm_plan_query *q, double rate, double prefill_s,
                      double decode_s, plm_plan_row *r)
{
    r->usd_per_hour = r->usd_per_mtok_input = r->usd_per_mtok_output = -1;
    if (f->price < 0 || !(rate > 0))
        return;
    r->usd_per_hour = f->price * (double)r->devices;
    double paid = r->usd_per_hour / (q->utilisation > 0 ? q->utilisation : 1);
    double whole = 1 / rate / (prefill_s + decode_s); /* time of the deployment a request takes */
    plm_attribute(paid, prefill_s * whole, (double)q->isl, decode_s * whole, (double)q->osl,
                  &r->usd_per_mtok_input, &r->usd_per_mtok_output);
}

/* Fields that both kinds of rows fill alike. unit: devices of a replica, rate: requests/s of it. */
static void put_common(const plm_family *f, const plm_plan_query *q, int64_t batch, int64_t unit,
                       double rate, plm_plan_row *r)
{
    const plm_config *c = &f->config;
    memcpy(r->device, c->machine.dev.id, sizeof r->device);
    snprintf(r->engine, sizeof r->engine, "%s", c->machine.prof.id);
    snprintf(r->quant, sizeof r->quant, "%s", plm_recipe_name(c->recipe));
    r->par = c->par;
    r->batch = batch;
    double replicas = 1;
    if (q->rate > 0)
        replicas = fmin(fmax(1, ceil(q->rate / rate - 1e-9)), REPLICAS_MAX);
    r->replicas = (int64_t)replicas;
    r->devices = r->replicas * unit;
    r->requests_s = rate * replicas;
    r->tok_s_per_device = rate * (double)q->osl / (double)unit;
    r->meets = plm_plan_meets(q, r->ttft_s.value, r->itl_s.value);
    int64_t full = q->isl + q->osl, left = f->seqs_full - batch;
    r->kv_headroom_tokens = left > 0 ? left * full : 0;
}

static plm_status put_memory(const plm_config *c, const plm_plan_query *q, plm_plan_row *r,
                             plm_error *err)
{
    plm_ledger l;
    PLM_TRY(plm_config_ledger(c, q->isl + q->osl, r->batch, &l, err));
    r->memory_bytes = l.total_bytes;
    r->capacity_bytes = l.capacity_bytes;
    return PLM_OK;
}

/* One row of the aggregated form; PLM_E_INFEASIBLE when the loop has no room. */
static plm_status make_row(plm_family *f, const plm_plan_query *q, plm_steady_query *sq,
                           int64_t batch, plm_plan_row *r)
{
    const plm_config *c = &f->config;
    plm_serving v;
    memset(r, 0, sizeof *r);
    sq->concurrency = (double)batch;
    PLM_TRY(plm_steady(sq, &v, &f->error));
    r->mode = 1;
    r->ttft_s = v.ttft_s;
    r->itl_s = v.itl_s;
    r->output_tok_s = v.output_tok_s;
    r->tok_s_per_user = v.itl_s.value > 0 ? 1 / v.itl_s.value : 0;
    put_common(f, q, batch, plm_parallel_devices(&c->par), v.requests_s.value, r);
    double carried = q->rate > 0 ? fmin(q->rate, r->requests_s) : r->requests_s;
    put_money(f, q, carried, f->prefill_s, v.itl_s.value * (double)q->osl / fmax(1, v.running), r);
    memcpy(r->bound, v.bound, sizeof r->bound);
    return put_memory(c, q, r, &f->error);
}

static plm_status size_family(plm_family *f, const plm_plan_query *q)
{
    const plm_config *c = &f->config;
    double tokens, full = (double)(q->isl + q->osl);
    plm_ledger l;
    PLM_TRY(plm_config_ledger(c, q->isl + q->osl, 1, &l, &f->error));
    if (!l.fits)
        return PLM_OK;
    PLM_TRY(plm_config_kv_tokens(c, full, &tokens, &f->error));
    double most = (double)c->machine.prof.max_seqs * c->par.dp;
    f->seqs_full = (int64_t)fmin(floor(tokens / full + 1e-9), 1e9);
    f->n_batch = fill_grid((int64_t)fmin((double)f->seqs_full, most), f->batch);
    PLM_TRY(plm_pool_kv_bytes(c, q->isl, &f->kv_bytes, &f->error));
    plm_phase p;
    plm_phase_prefill(c, q->isl, 0, c->par.dp, &p);
    f->prefill_s = p.time_s.value;
    f->prefills = true;
    return PLM_OK;
}

void plm_family_size(plm_family *f, const plm_plan_query *q)
{
    f->status = size_family(f, q);
}

size_t plm_family_room(const plm_family *f, const plm_plan_query *q)
{
    return f->n_batch * (q->mode == 0 && !f->config.layer_split ? 2 : 1);
}

void plm_family_fill(plm_family *f, const plm_plan_query *q)
{
    const plm_config *c = &f->config;
    if (f->status != PLM_OK || f->n_batch == 0) {
        f->considered = 1;
        f->unfit = f->status == PLM_OK;
        return;
    }
    if (q->mode != 1) {
        plm_pool_ctx ctx = {c, (double)q->isl + (double)q->osl / 2};
        for (size_t i = 0; i < f->n_batch; i++)
            f->itl_s[i] = plm_pool_itl(&ctx, (double)f->batch[i]);
    }
    if (q->mode == 2)
        return;
    plm_steady_query sq = {.stage = c->program,
                           .n_stage = c->par.pp,
                           .machine = &c->machine,
                           .prompt = (double)q->isl,
                           .gen = (double)q->osl,
                           .replicas = c->par.dp,
                           .experts = c->experts,
                           .top_k = c->top_k,
                           .ep = c->par.ep};
    sq.kv_tokens_capacity = (double)f->seqs_full * (double)(q->isl + q->osl);
    for (size_t i = 0; i < f->n_batch; i++) {
        f->considered++;
        plm_status status = make_row(f, q, &sq, f->batch[i], &f->rows[f->n_rows]);
        if (status == PLM_OK)
            f->n_rows++;
        else if (status == PLM_E_INFEASIBLE)
            f->unfit++;
        else
            f->status = status;
    }
}

/* ---- two pools ---- */

/* A unit of np prefill and nd decode workers at one batch, and how good it is. */
typedef struct unit {
    const plm_family *prefill;
    int64_t np, nd, devices;
    plm_pools_state state;
    bool meets;
    double value; /* requests/s a device */
} unit;

static double known_itl(const void *ctx, double batch)
{
    (void)batch;
    return *(const double *)ctx;
}

static void try_unit(const plm_family *f, const plm_family *p, size_t i, int64_t np, int64_t nd,
                     const plm_plan_query *q, unit *best)
{
    const plm_config *c = &f->config;
    int64_t from = plm_parallel_devices(&p->config.par), to = plm_parallel_devices(&c->par);
    unit u = {.prefill = p, .np = np, .nd = nd, .devices = np * from + nd * to};
    if (u.devices > q->max_devices)
        return;
    double link = plm_pool_link_bytes_s(&c->machine.dev, from, to, u.devices);
    double layers = c->arch->layers;
    if (!(link > 0))
        return;
    plm_pools pools = {.itl = known_itl,
                       .ctx = &f->itl_s[i],
                       .prefill_s = p->prefill_s,
                       .prefill_servers = (double)np * p->config.par.dp,
                       .host_s = c->machine.prof.ttft_host_s,
                       .gen = (double)q->osl,
                       .decode_workers = (double)nd,
                       .seqs_max = (double)f->seqs_full};
    pools.transfer_s =
        plm_layerwise_s(layers, p->prefill_s / layers, p->kv_bytes / link / layers) - p->prefill_s;
    plm_pools_at(&pools, (double)f->batch[i], 1, &u.state);
    if (!(u.state.prefill_util <= PREFILL_FULL))
        return;
    u.meets = plm_plan_meets(q, u.state.ttft_s, u.state.itl_s);
    u.value = u.state.rate / (double)u.devices;
    if (best->prefill == NULL || u.meets > best->meets ||
        (u.meets == best->meets && u.value > best->value))
        *best = u;
}

static void find_unit(plm_family *f, const plm_family *p, size_t i, const plm_plan_query *q,
                      unit *best)
{
    int64_t from = plm_parallel_devices(&p->config.par);
    int64_t to = plm_parallel_devices(&f->config.par);
    double one = (double)f->batch[i] / (fmax(1, (double)q->osl - 1) * f->itl_s[i]);
    double need =
        one * p->prefill_s / p->config.par.dp / PREFILL_FULL; /* workers a decode worker */
    for (int64_t nd = 1; nd <= WORKERS_MAX && nd * to + from <= q->max_devices; nd++) {
        double np = ceil((double)nd * need - 1e-9);
        if (!(np * (double)from + (double)(nd * to) <= (double)q->max_devices))
            break;
        f->considered++;
        try_unit(f, p, i, plm_max_i64(1, (int64_t)np), nd, q, best);
        if (q->ttft_s > 0) /* one more shortens the queue */
            try_unit(f, p, i, plm_max_i64(1, (int64_t)np) + 1, nd, q, best);
    }
}

static plm_status unit_row(plm_family *f, const plm_plan_query *q, size_t i, const unit *u,
                           plm_plan_row *r)
{
    const plm_profile *p = &f->config.machine.prof;
    memset(r, 0, sizeof *r);
    r->mode = 2;
    r->ttft_s = plm_figure_band(u->state.ttft_s, p->band[PLM_REGIME_TTFT]);
    r->itl_s = plm_figure_band(u->state.itl_s, p->band[PLM_REGIME_TPOT]);
    r->output_tok_s =
        plm_figure_band(u->state.rate * (double)q->osl, p->band[PLM_REGIME_THROUGHPUT]);
    r->tok_s_per_user = 1 / u->state.itl_s;
    r->prefill_par = u->prefill->config.par;
    r->prefill_workers = u->np;
    r->decode_workers = u->nd;
    r->prefill_batch = plm_max_i64(1, llround(u->state.rate * u->state.ttft_s / (double)u->np));
    r->prefill_util = u->state.prefill_util;
    r->decode_util = u->state.decode_util;
    put_common(f, q, f->batch[i], u->devices, u->state.rate, r);
    double carried = q->rate > 0 ? fmin(q->rate, r->requests_s) : r->requests_s;
    double prefill = (double)(u->np * plm_parallel_devices(&r->prefill_par));
    put_money(f, q, carried, prefill, (double)u->devices - prefill, r);
    snprintf(r->bound, sizeof r->bound, "%s", u->state.prefill_util > 0.8 ? "prefill" : "decode");
    return put_memory(&f->config, q, r, &f->error);
}

void plm_family_pair(plm_family *f, plm_family *const *all, size_t n, const plm_plan_query *q)
{
    if (f->status != PLM_OK || q->osl < 2 || f->config.layer_split)
        return; /* local engines hand no cache over */
    for (size_t i = 0; i < f->n_batch; i++) {
        unit best = {0};
        for (size_t k = 0; k < n; k++)
            if (all[k]->group == f->group && all[k]->prefills)
                find_unit(f, all[k], i, q, &best);
        if (best.prefill == NULL)
            continue;
        plm_status status = unit_row(f, q, i, &best, &f->rows[f->n_rows]);
        if (status == PLM_OK)
            f->n_rows++;
        else
            f->status = status;
    }
}
