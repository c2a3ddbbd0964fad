/* cmd_predict.c - predict: speed, memory and cost of one configuration. */
#include <string.h>

#include "cli/answer_text.h"
#include "cli/cli.h"

/* Integer option into a field of the query, with a bound that keeps later products in range. */
static plm_status take(const plm_args *a, plm_option_id id, int64_t lo, int64_t hi, int64_t *field,
                       plm_error *err)
{
    if (!a->opt[id].set)
        return PLM_OK;
    int64_t v = a->opt[id].count;
    if (v < lo || v > hi)
        return plm_fail(err, PLM_E_INVALID,
                        "out of range, --%s: %lld is not within %lld to %lld; correct it",
                        plm_option_get(id)->name, (long long)v, (long long)lo, (long long)hi);
    *field = v;
    return PLM_OK;
}

static plm_status take_ranks(const plm_args *a, plm_option_id id, int32_t *field, plm_error *err)
{
    int64_t v = *field;
    PLM_TRY(take(a, id, 1, 4096, &v, err));
    *field = (int32_t)v;
    return PLM_OK;
}

static plm_status take_disagg(const plm_args *a, plm_query *q, plm_error *err)
{
    PLM_TRY(take(a, PLM_OPT_PREFILL_WORKERS, 1, 65536, &q->prefill_workers, err));
    PLM_TRY(take(a, PLM_OPT_DECODE_WORKERS, 1, 65536, &q->decode_workers, err));
    PLM_TRY(take_ranks(a, PLM_OPT_PREFILL_TP, &q->prefill_par.tp, err));
    PLM_TRY(take_ranks(a, PLM_OPT_PREFILL_EP, &q->prefill_par.ep, err));
    PLM_TRY(take_ranks(a, PLM_OPT_PREFILL_DP, &q->prefill_par.dp, err));
    if (q->prefill_workers > 0 || q->decode_workers > 0) {
        if (!a->opt[PLM_OPT_CONCURRENCY].set)
            return plm_fail(err, PLM_E_INVALID, "--concurrency missing, --prefill-workers: two "
                            "pools serve a closed loop; give --concurrency N");
        q->mode = "disagg";
    }
    return PLM_OK;
}

plm_status plm_query_from_args(const plm_args *a, plm_query *q, plm_error *err)
{
    static const int64_t tokens_max = 100000000;
    plm_query_init(q);
    q->model = plm_args_text(a, PLM_OPT_MODEL, NULL);
    q->device = plm_args_text(a, PLM_OPT_DEVICE, NULL);
    q->engine = plm_args_text(a, PLM_OPT_ENGINE, NULL);
    q->quant = plm_args_text(a, PLM_OPT_QUANT, NULL);
    q->kv_type = plm_args_text(a, PLM_OPT_KV_TYPE, NULL);
    PLM_TRY(take_ranks(a, PLM_OPT_TP, &q->par.tp, err));
    PLM_TRY(take_ranks(a, PLM_OPT_PP, &q->par.pp, err));
    PLM_TRY(take_ranks(a, PLM_OPT_EP, &q->par.ep, err));
    PLM_TRY(take_ranks(a, PLM_OPT_DP, &q->par.dp, err));
    PLM_TRY(take_ranks(a, PLM_OPT_CP, &q->par.cp, err));
    PLM_TRY(take(a, PLM_OPT_PROMPT, 0, tokens_max, &q->prompt, err));
    PLM_TRY(take(a, PLM_OPT_GEN, 0, tokens_max, &q->gen, err));
    PLM_TRY(take(a, PLM_OPT_BATCH, 1, 1000000, &q->batch, err));
    PLM_TRY(take(a, PLM_OPT_DEPTH, 0, tokens_max, &q->depth, err));
    PLM_TRY(take(a, PLM_OPT_CONTEXT, 1, tokens_max, &q->context, err));
    PLM_TRY(take(a, PLM_OPT_CONCURRENCY, 1, 1000000, &q->concurrency, err));
    PLM_TRY(take(a, PLM_OPT_WEIGHTS_BYTES, 1, INT64_C(1) << 50, &q->weights_bytes, err));
    PLM_TRY(take(a, PLM_OPT_UBATCH, 1, 10000000, &q->ubatch, err));
    PLM_TRY(take(a, PLM_OPT_MAX_SEQS, 1, 1000000, &q->max_seqs, err));
    PLM_TRY(take(a, PLM_OPT_MAX_BATCHED, 1, tokens_max, &q->max_batched_tokens, err));
    int64_t flash = q->flash_attn;
    PLM_TRY(take(a, PLM_OPT_FLASH_ATTN, 0, 1, &flash, err));
    q->flash_attn = (int32_t)flash;
    q->memory_fraction = plm_args_real(a, PLM_OPT_MEMORY_FRACTION, 0);
    q->utilisation = plm_args_real(a, PLM_OPT_UTILISATION, 0);
    q->price_usd = plm_args_real(a, PLM_OPT_PRICE, -1);
    q->static_batch = a->opt[PLM_OPT_STATIC_BATCH].set;
    q->fixed_lengths = a->opt[PLM_OPT_FIXED_LENGTHS].set;
    return take_disagg(a, q, err);
}

static plm_status need(const plm_args *a, plm_option_id id, plm_error *err)
{
    if (a->opt[id].set)
        return PLM_OK;
    return plm_fail(err, PLM_E_INVALID, "option missing, --%s: %s needs it; give %s, see plimsoll %s --help",
                    plm_option_get(id)->name, plm_command_name(a->command),
                    plm_option_get(id)->meta, plm_command_name(a->command));
}

/* ---- JSON ---- */

static void put_memory(plm_json_out *o, json_t *root, const plm_ledger *m)
{
    json_t *j = plm_out_child(o, root, "memory", plm_out_object(o));
    plm_out_int(o, j, "weights_bytes", m->weights_bytes);
    plm_out_int(o, j, "kv_bytes_per_token", m->kv_bytes_per_token);
    plm_out_int(o, j, "kv_bytes", m->kv_bytes);
    plm_out_int(o, j, "kv_pool_bytes", m->kv_pool_bytes);
    plm_out_int(o, j, "kv_blocks", m->kv_blocks);
    plm_out_int(o, j, "state_bytes", m->state_bytes);
    plm_out_int(o, j, "activation_bytes", m->activation_bytes);
    plm_out_int(o, j, "graph_bytes", m->graph_bytes);
    plm_out_int(o, j, "context_bytes", m->context_bytes);
    plm_out_int(o, j, "reserve_bytes", m->reserve_bytes);
    plm_out_int(o, j, "overhead_bytes", m->overhead_bytes);
    plm_out_int(o, j, "total_bytes", m->total_bytes);
    if (m->capacity_bytes > 0)
        plm_out_int(o, j, "capacity_bytes", m->capacity_bytes);
    else
        plm_out_child(o, j, "capacity_bytes", json_null());
    plm_out_bool(o, j, "fits", m->fits);
    if (!m->fits)
        plm_out_text(o, j, "limit", m->limit);
    plm_out_limit(o, j, "max_context_tokens", m, m->max_context_tokens);
    plm_out_limit(o, j, "max_batch", m, m->max_batch);
}

static void put_phases(plm_json_out *o, json_t *root, const plm_query *q, const plm_answer *r)
{
    json_t *p = plm_out_child(o, root, "prefill",
                              r->memory.fits && q->prompt > 0 ? plm_out_object(o) : json_null());
    if (json_is_object(p)) {
        plm_out_int(o, p, "tokens", (int64_t)r->prefill.tokens);
        plm_out_figure(o, p, "time_s", r->prefill.time_s);
        plm_out_figure(o, p, "tok_s", r->prefill.tok_s);
        plm_out_text(o, p, "bound", r->prefill.bound);
    }
    json_t *d = plm_out_child(o, root, "decode",
                              r->memory.fits && q->gen > 0 ? plm_out_object(o) : json_null());
    if (json_is_object(d)) {
        plm_out_int(o, d, "batch", (int64_t)r->decode.batch);
        plm_out_int(o, d, "context_tokens", (int64_t)r->decode.context_tokens);
        plm_out_figure(o, d, "itl_s", r->decode.time_s);
        plm_out_figure(o, d, "tok_s", r->decode.tok_s);
        plm_out_real(o, d, "tok_s_per_user", r->decode.tok_s_per_user);
        plm_out_text(o, d, "bound", r->decode.bound);
    }
}

static void put_serving(plm_json_out *o, json_t *root, const plm_serving *v)
{
    json_t *j = plm_out_child(o, root, "serving", plm_out_object(o));
    plm_out_figure(o, j, "ttft_s", v->ttft_s);
    plm_out_figure(o, j, "itl_s", v->itl_s);
    plm_out_figure(o, j, "e2e_s", v->e2e_s);
    plm_out_figure(o, j, "output_tok_s", v->output_tok_s);
    plm_out_figure(o, j, "total_tok_s", v->total_tok_s);
    plm_out_figure(o, j, "requests_s", v->requests_s);
    plm_out_real(o, j, "running", v->running);
    plm_out_real(o, j, "waiting", v->waiting);
    plm_out_text(o, j, "bound", v->bound);
}

static void put_cost(plm_json_out *o, json_t *root, const plm_answer *r)
{
    json_t *j = plm_out_child(o, root, "cost", r->has_cost ? plm_out_object(o) : json_null());
    if (!r->has_cost)
        return;
    plm_out_real(o, j, "usd_per_hour", r->usd_per_hour);
    const double each[] = {r->usd_per_mtok_input, r->usd_per_mtok_output};
    const char *const keys[] = {"usd_per_mtok_input", "usd_per_mtok_output"};
    for (int i = 0; i < 2; i++)
        plm_out_child(o, j, keys[i], each[i] > 0 ? json_real(each[i]) : json_null());
    plm_out_text(o, j, "price_source", r->price_source);
}

static json_t *answer_json(plm_json_out *o, const plm_query *q, const plm_answer *r)
{
    json_t *root = plm_out_object(o);
    json_t *m = plm_out_child(o, root, "model", plm_out_object(o));
    plm_out_text(o, m, "id", r->model);
    plm_out_int(o, m, "params", r->params.total);
    plm_out_int(o, m, "params_active", r->params.active);
    plm_out_int(o, m, "weights_bytes", r->model_weights_bytes);
    json_t *d = plm_out_child(o, root, "device", plm_out_object(o));
    plm_out_text(o, d, "id", r->device);
    plm_out_int(o, d, "count", r->devices);
    plm_out_text(o, root, "engine", r->engine);
    plm_out_text(o, root, "quant", r->quant);
    plm_out_text(o, root, "kv_type", r->kv_type);
    json_t *p = plm_out_child(o, root, "parallel", plm_out_object(o));
    plm_out_int(o, p, "tp", r->par.tp);
    plm_out_int(o, p, "pp", r->par.pp);
    plm_out_int(o, p, "ep", r->par.ep);
    plm_out_int(o, p, "dp", r->par.dp);
    plm_out_int(o, p, "cp", r->par.cp);
    put_phases(o, root, q, r);
    put_memory(o, root, &r->memory);
    if (r->has_serving)
        put_serving(o, root, &r->serving);
    put_cost(o, root, r);
    if (r->note[0] != '\0')
        plm_out_text(o, root, "note", r->note);
    return root;
}

/* ---- command ---- */

static plm_status answer(plm_session *s, const plm_args *a, plm_query *q, plm_answer *r,
                         plm_error *err)
{
    PLM_TRY(need(a, PLM_OPT_MODEL, err));
    PLM_TRY(need(a, PLM_OPT_DEVICE, err));
    PLM_TRY(plm_query_from_args(a, q, err));
    if (q->prompt == 0 && q->gen == 0)
        return plm_fail(err, PLM_E_INVALID, "nothing to predict, --prompt and --gen: both are 0; "
                        "give tokens to at least one");
    return plm_predict(s, q, r, err);
}

static plm_status answer_job(plm_session *s, const plm_args *a, json_t **out, plm_error *err)
{
    plm_query q;
    plm_answer r;
    PLM_TRY(answer(s, a, &q, &r, err));
    plm_json_out o = {false};
    *out = answer_json(&o, &q, &r);
    if (o.oom) {
        json_decref(*out);
        *out = NULL;
        return plm_fail_memory(err, "the answer");
    }
    return PLM_OK;
}

plm_status plm_cmd_predict(const plm_args *a, const plm_io *io, FILE *out, int *exit_status,
                           plm_error *err)
{
    if (a->opt[PLM_OPT_JOBS].set)
        return plm_jobs_run(a, io, answer_job, out, exit_status, err);
    plm_session *s = NULL;
    plm_query q;
    plm_answer r;
    plm_status status;
    PLM_GOTO(plm_session_create(plm_args_text(a, PLM_OPT_CATALOG, NULL), &s, err));
    PLM_GOTO(answer(s, a, &q, &r, err));
    *exit_status = r.memory.fits ? 0 : 1;
    if (a->opt[PLM_OPT_JSON].set) {
        plm_json_out o = {false};
        PLM_GOTO(plm_out_write(&o, answer_json(&o, &q, &r), out, err));
    } else {
        PLM_GOTO(plm_answer_print(&q, &r, out, err));
    }
done:
    plm_session_destroy(s);
    return status;
}
