/* cmd_plan.c - plan: the search, its table, and the export of the best plan. */
#include <string.h>

#include "cli/cli.h"
#include "cli/export.h"
#include "cli/plan_text.h"

#define LIST_MAX 64

/* "a,b,c" cut in place into at most LIST_MAX parts. */
static plm_status split(char *text, const char *what, const char **parts, size_t *n,
                        plm_error *err)
{
    *n = 0;
    char *save = NULL;
    for (char *p = strtok_r(text, ",", &save); p != NULL; p = strtok_r(NULL, ",", &save)) {
        if (*n == LIST_MAX)
            return plm_fail(err, PLM_E_INVALID, "too many, %s: more than %d; give fewer", what,
                            LIST_MAX);
        parts[(*n)++] = p;
    }
    if (*n == 0)
        return plm_fail(err, PLM_E_INVALID, "empty list, %s: no name in it; name at least "
                        "one", what);
    return PLM_OK;
}

static plm_status copy_list(const plm_args *a, plm_option_id id, char *buf, size_t cap,
                            const char **parts, size_t *n, plm_error *err)
{
    char what[40];
    snprintf(what, sizeof what, "--%s", plm_option_get(id)->name);
    *n = 0;
    if (!a->opt[id].set)
        return PLM_OK;
    if (strlen(a->opt[id].text) >= cap)
        return plm_fail(err, PLM_E_INVALID, "too long, %s: more than %zu bytes; give fewer", what,
                        cap - 1);
    strcpy(buf, a->opt[id].text);
    return split(buf, what, parts, n, err);
}

static plm_status choose(const plm_args *a, plm_option_id id, const char *const *names, int *out,
                         plm_error *err)
{
    const char *text = plm_args_text(a, id, names[0]);
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = i;
            return PLM_OK;
        }
    return plm_fail(err, PLM_E_INVALID, "unknown choice, --%s: \"%.40s\"; give %s",
                    plm_option_get(id)->name, text, plm_option_get(id)->meta);
}

static void show_progress(void *ctx, double share)
{
    const plm_io *io = ctx;
    fprintf(io->err, "\rsearching %3.0f %%", 100 * share);
}

typedef struct plan_lists {
    char device_text[4096], quant_text[1024];
    const char *devices[LIST_MAX], *quants[LIST_MAX];
} plan_lists;

static plm_status query_from_args(const plm_args *a, const plm_io *io, plan_lists *l,
                                  plm_plan_query *q, plm_error *err)
{
    static const char *const objectives[] = {"cost", "throughput", "latency", NULL};
    static const char *const disaggs[] = {"auto", "off", "on", NULL};
    memset(q, 0, sizeof *q);
    if (!a->opt[PLM_OPT_MODEL].set || !a->opt[PLM_OPT_DEVICE].set || !a->opt[PLM_OPT_ISL].set ||
        !a->opt[PLM_OPT_OSL].set)
        return plm_fail(err, PLM_E_INVALID, "option missing, --model, --device, --isl and --osl: "
                        "plan needs all four; see plimsoll plan --help");
    int objective;
    PLM_TRY(copy_list(a, PLM_OPT_DEVICE, l->device_text, sizeof l->device_text, l->devices,
                      &q->n_devices, err));
    PLM_TRY(copy_list(a, PLM_OPT_QUANT, l->quant_text, sizeof l->quant_text, l->quants,
                      &q->n_quants, err));
    PLM_TRY(choose(a, PLM_OPT_OBJECTIVE, objectives, &objective, err));
    PLM_TRY(choose(a, PLM_OPT_DISAGG, disaggs, &q->mode, err));
    q->model = a->opt[PLM_OPT_MODEL].text;
    q->devices = l->devices;
    q->quants = l->quants;
    q->engine = plm_args_text(a, PLM_OPT_ENGINE, NULL);
    q->kv_type = plm_args_text(a, PLM_OPT_KV_TYPE, NULL);
    q->objective = objectives[objective];
    q->isl = a->opt[PLM_OPT_ISL].count;
    q->osl = a->opt[PLM_OPT_OSL].count;
    q->ttft_s = plm_args_real(a, PLM_OPT_TTFT, 0);
    q->itl_s = plm_args_real(a, PLM_OPT_ITL, 0);
    q->rate = plm_args_real(a, PLM_OPT_RATE, 0);
    q->max_devices = plm_args_count(a, PLM_OPT_GPUS, 8);
    q->price_usd = plm_args_real(a, PLM_OPT_PRICE, -1);
    q->utilisation = plm_args_real(a, PLM_OPT_UTILISATION, 0);
    int64_t threads = plm_args_count(a, PLM_OPT_THREADS, 0);
    if (threads > 256)
        return plm_fail(err, PLM_E_INVALID, "out of range, --threads: %lld is not within 0 (all "
                        "cores) to 256; correct it", (long long)threads);
    q->threads = (int)threads;
    q->progress = io->progress ? show_progress : NULL;
    q->progress_ctx = (void *)(uintptr_t)io;
    return PLM_OK;
}

/* ---- output ---- */

static void put_pool(plm_json_out *o, json_t *j, const char *key, const plm_parallel *p,
                     int64_t workers, int64_t batch, double util)
{
    json_t *pool = plm_out_child(o, j, key, plm_out_object(o));
    plm_out_int(o, pool, "workers", workers);
    plm_out_int(o, pool, "gpus_per_worker", plm_parallel_devices(p));
    plm_out_int(o, pool, "tp", p->tp);
    plm_out_int(o, pool, "pp", p->pp);
    plm_out_int(o, pool, "ep", p->ep);
    plm_out_int(o, pool, "dp", p->dp);
    plm_out_int(o, pool, "max_batch", batch);
    plm_out_real(o, pool, "utilization", util);
}

static void put_row(plm_json_out *o, json_t *rows, const plm_plan_row *r, size_t rank)
{
    json_t *j = plm_out_child(o, rows, NULL, plm_out_object(o));
    plm_out_int(o, j, "rank", (int64_t)rank);
    plm_out_text(o, j, "mode", r->mode == 2 ? "disagg" : "agg");
    plm_out_text(o, j, "device", r->device);
    plm_out_text(o, j, "engine", r->engine);
    plm_out_int(o, j, "gpus", r->devices);
    plm_out_int(o, j, "replicas", r->replicas);
    plm_out_int(o, j, "tp", r->par.tp);
    plm_out_int(o, j, "pp", r->par.pp);
    plm_out_int(o, j, "ep", r->par.ep);
    plm_out_int(o, j, "dp", r->par.dp);
    plm_out_text(o, j, "quant", r->quant);
    plm_out_int(o, j, "max_batch", r->batch);
    plm_out_figure(o, j, "ttft_s", r->ttft_s);
    plm_out_figure(o, j, "itl_s", r->itl_s);
    plm_out_real(o, j, "tok_s_per_gpu", r->tok_s_per_device);
    plm_out_real(o, j, "tok_s_per_user", r->tok_s_per_user);
    plm_out_real(o, j, "requests_s", r->requests_s);
    const double money[] = {r->usd_per_hour, r->usd_per_mtok_input, r->usd_per_mtok_output};
    const char *const keys[] = {"usd_per_hour", "usd_per_mtok_input", "usd_per_mtok_output"};
    for (int i = 0; i < 3; i++)
        plm_out_child(o, j, keys[i], money[i] > 0 ? json_real(money[i]) : json_null());
    plm_out_int(o, j, "kv_headroom_tokens", r->kv_headroom_tokens);
    plm_out_int(o, j, "memory_bytes", r->memory_bytes);
    plm_out_int(o, j, "capacity_bytes", r->capacity_bytes);
    plm_out_text(o, j, "bound", r->bound);
    plm_out_bool(o, j, "meets", r->meets);
    plm_out_bool(o, j, "pareto", r->pareto);
    if (r->mode == 2) {
        put_pool(o, j, "prefill", &r->prefill_par, r->prefill_workers, r->prefill_batch,
                 r->prefill_util);
        put_pool(o, j, "decode", &r->par, r->decode_workers, r->batch, r->decode_util);
    }
}

static json_t *plan_json(plm_json_out *o, const plm_plan_query *q, const plm_plan *p, size_t top)
{
    json_t *root = plm_out_object(o);
    json_t *w = plm_out_child(o, root, "workload", plm_out_object(o));
    plm_out_text(o, w, "model", q->model);
    plm_out_int(o, w, "isl", q->isl);
    plm_out_int(o, w, "osl", q->osl);
    plm_out_child(o, w, "ttft_s", q->ttft_s > 0 ? json_real(q->ttft_s) : json_null());
    plm_out_child(o, w, "itl_s", q->itl_s > 0 ? json_real(q->itl_s) : json_null());
    plm_out_child(o, w, "requests_s", q->rate > 0 ? json_real(q->rate) : json_null());
    plm_out_text(o, w, "objective", q->objective);
    plm_out_int(o, root, "searched", (int64_t)p->considered);
    json_t *out = plm_out_child(o, root, "left_out", plm_out_object(o));
    plm_out_int(o, out, "illegal", (int64_t)p->illegal);
    plm_out_int(o, out, "does_not_fit", (int64_t)p->unfit);
    plm_out_int(o, out, "misses_target", (int64_t)p->missed);
    plm_out_real(o, root, "elapsed_s", p->search_s);
    json_t *rows = plm_out_child(o, root, "plans", plm_out_array(o));
    for (size_t i = 0; i < p->n_rows && i < top; i++)
        put_row(o, rows, &p->rows[i], i + 1);
    if (p->nearest[0] != '\0')
        plm_out_text(o, root, "nearest", p->nearest);
    return root;
}

plm_status plm_cmd_plan(const plm_args *a, const plm_io *io, FILE *out, int *exit_status,
                        plm_error *err)
{
    static plan_lists lists;
    plm_plan_query q;
    plm_plan p = {0};
    plm_session *s = NULL;
    plm_status status;
    PLM_GOTO(query_from_args(a, io, &lists, &q, err));
    PLM_GOTO(plm_export_check(a, err));
    PLM_GOTO(plm_session_create(plm_args_text(a, PLM_OPT_CATALOG, NULL), &s, err));
    status = plm_plan_search(s, &q, &p, err);
    if (io->progress)
        fprintf(io->err, "\r%*s\r", 20, "");
    PLM_GOTO(status);
    bool meets = p.n_rows > 0 && p.rows[0].meets;
    bool csv = a->opt[PLM_OPT_CSV].set;
    size_t top = (size_t)plm_args_count(a, PLM_OPT_TOP, csv ? 1 << 20 : 10);
    bool people = !csv && !a->opt[PLM_OPT_JSON].set;
    if (a->opt[PLM_OPT_JSON].set) {
        plm_json_out o = {false};
        PLM_GOTO(plm_out_write(&o, plan_json(&o, &q, &p, top), out, err));
    } else if (csv) {
        PLM_GOTO(plm_plan_print_csv(&p, top, out, err));
    } else {
        PLM_GOTO(plm_plan_print(&q, &p, top, out, err));
    }
    if (meets && a->opt[PLM_OPT_EXPORT].set)
        PLM_GOTO(plm_export_write(a, &q, &p.rows[0], people ? out : NULL, err));
    *exit_status = meets ? 0 : 1;
done:
    plm_plan_fini(&p);
    plm_session_destroy(s);
    return status;
}
