/* test_plan.c - the search: what it returns against predict, against its own rules, against threads;
** and two pools apart from any device. */
#include "core/base/mem.h"
#include "sim/plan/disagg.h"
#include "sim/plan/plan.h"
#include "sim/plan/tasks.h"
#include "tests/session_support.h"

static const char *const h100[] = {"h100_sxm_80"};
static const char *const two[] = {"h100_sxm_80:4", "rtx_4090_24:4"};

static plm_plan_query query(const char *model)
{
    return (plm_plan_query){.model = model,
                            .devices = h100,
                            .n_devices = 1,
                            .isl = 2000,
                            .osl = 300,
                            .max_devices = 8,
                            .price_usd = -1,
                            .objective = "cost",
                            .threads = 1};
}

static plm_plan search(const plm_plan_query *q)
{
    plm_plan p;
    assert_ok(plm_plan_search(session, q, &p, &err), err);
    return p;
}

static void rows_obey_the_query(void **state)
{
    (void)state;
    plm_plan_query q = query("llama-3.1-70b");
    q.ttft_s = 1;
    q.itl_s = 0.04;
    plm_plan p = search(&q);
    assert_true(p.n_rows > 10);
    assert_true(p.missed > 0 && p.unfit > 0);
    assert_int_equal(p.nearest[0], '\0');
    bool agg = false, disagg = false;
    const plm_arch *a;
    assert_ok(plm_session_model(session, q.model, &a, &err), err);
    for (size_t i = 0; i < p.n_rows; i++) {
        const plm_plan_row *r = &p.rows[i];
        assert_true(r->meets && r->ttft_s.value <= 1 && r->itl_s.value <= 0.04);
        assert_true(r->memory_bytes > 0 && r->memory_bytes <= r->capacity_bytes);
        assert_ok(plm_parallel_check(a, &r->par, &err), err);
        assert_true(r->devices >= 1 && r->devices <= 8 && r->batch >= 1);
        assert_true(r->kv_headroom_tokens >= 0);
        assert_close(r->tok_s_per_device * (double)r->devices, r->output_tok_s.value, 1e-9, 0);
        assert_close(r->requests_s * 300, r->output_tok_s.value, 1e-9, 0);
        if (r->mode == 2) {
            disagg = true;
            assert_int_equal(r->devices,
                             r->prefill_workers * plm_parallel_devices(&r->prefill_par) +
                                 r->decode_workers * plm_parallel_devices(&r->par));
            assert_true(r->prefill_util > 0 && r->prefill_util <= 0.95);
        } else {
            agg = true;
            assert_int_equal(r->devices, plm_parallel_devices(&r->par));
        }
    }
    assert_true(agg && disagg);
    plm_plan_fini(&p);
}

/* Each aggregated row is what predict says of the same configuration. */
static void rows_equal_predictions(void **state)
{
    (void)state;
    plm_plan_query q = query("qwen3-30b-a3b");
    q.mode = 1;
    q.max_devices = 4;
    plm_plan p = search(&q);
    assert_true(p.n_rows > 20);
    size_t compared = 0;
    for (size_t i = 0; i < p.n_rows; i += 7) {
        const plm_plan_row *r = &p.rows[i];
        plm_query one;
        plm_answer a;
        plm_query_init(&one);
        one.model = q.model;
        one.device = "h100_sxm_80";
        one.engine = r->engine;
        one.quant = r->quant;
        one.par = r->par;
        one.prompt = q.isl;
        one.gen = q.osl;
        one.concurrency = r->batch;
        assert_ok(plm_predict(session, &one, &a, &err), err);
        /* predict admits by mean length, the search by full length; equal while all are admitted.
         */
        if (a.serving.waiting > 0)
            continue;
        assert_close(a.serving.itl_s.value, r->itl_s.value, 1e-6, 0);
        assert_close(a.serving.ttft_s.value, r->ttft_s.value, 1e-6, 0);
        assert_close(a.serving.output_tok_s.value, r->output_tok_s.value, 1e-6, 0);
        compared++;
    }
    assert_true(compared > 5);
    plm_plan_fini(&p);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    plm_plan_query q = query("qwen3-30b-a3b");
    q.devices = two;
    q.n_devices = 2;
    q.itl_s = 0.05;
    plm_plan one = search(&q);
    for (int threads = 2; threads <= 7; threads += 5) {
        q.threads = threads;
        plm_plan many = search(&q);
        assert_int_equal(many.n_rows, one.n_rows);
        assert_memory_equal(many.rows, one.rows, one.n_rows * sizeof *one.rows);
        assert_int_equal(many.considered, one.considered);
        assert_int_equal(many.missed, one.missed);
        plm_plan_fini(&many);
    }
    plm_plan_fini(&one);
}

static double request_usd(const plm_plan_row *r)
{
    return r->usd_per_mtok_input * 2000 + r->usd_per_mtok_output * 300;
}

static void order_and_front(void **state)
{
    (void)state;
    static const char *const objectives[] = {"cost", "throughput", "latency"};
    for (int o = 0; o < 3; o++) {
        plm_plan_query q = query("llama-3.1-8b");
        q.objective = objectives[o];
        q.price_usd = 2;
        plm_plan p = search(&q);
        size_t on = 0;
        for (size_t i = 0; i < p.n_rows; i++) {
            const plm_plan_row *r = &p.rows[i];
            if (i > 0 && o == 0)
                assert_true(request_usd(r) >= request_usd(r - 1) * (1 - 1e-12));
            if (i > 0 && o == 1)
                assert_true(r->tok_s_per_device <= r[-1].tok_s_per_device);
            if (i > 0 && o == 2)
                assert_true(r->ttft_s.value + 299 * r->itl_s.value >=
                            r[-1].ttft_s.value + 299 * r[-1].itl_s.value);
            bool beaten = false;
            for (size_t k = 0; k < p.n_rows && !beaten; k++) {
                const plm_plan_row *x = &p.rows[k];
                beaten = x->tok_s_per_user >= r->tok_s_per_user &&
                         request_usd(x) <= request_usd(r) &&
                         (x->tok_s_per_user > r->tok_s_per_user || request_usd(x) < request_usd(r));
            }
            assert_int_equal(r->pareto, !beaten);
            on += r->pareto;
            /* All the money of an hour is on the tokens of an hour. */
            assert_close(request_usd(r) * 1e-6 * r->requests_s * 3600, r->usd_per_hour, 1e-9, 0);
        }
        assert_true(on >= 2);
        assert_true(p.rows[0].pareto || o == 1);
        plm_plan_fini(&p);
    }
}

static void a_rate_takes_replicas(void **state)
{
    (void)state;
    plm_plan_query q = query("llama-3.1-8b");
    q.rate = 200;
    q.itl_s = 0.03;
    plm_plan p = search(&q);
    assert_true(p.n_rows > 0);
    for (size_t i = 0; i < p.n_rows; i++) {
        const plm_plan_row *r = &p.rows[i];
        double each = r->output_tok_s.value / 300;
        assert_int_equal(r->replicas, (int64_t)ceil(200 / each - 1e-9));
        assert_true(r->requests_s >= 200 * (1 - 1e-9) && r->requests_s - each < 200);
        assert_int_equal(r->devices % r->replicas, 0);
    }
    assert_true(p.rows[0].replicas > 1);
    plm_plan_fini(&p);
}

static void impossible_targets_name_the_nearest(void **state)
{
    (void)state;
    plm_plan_query q = query("llama-3.1-70b");
    q.itl_s = 1e-4;
    plm_plan p = search(&q);
    assert_true(p.n_rows > 0);
    assert_false(p.rows[0].meets);
    assert_true(strstr(p.nearest, "ITL") != NULL && strstr(p.nearest, "%") != NULL);
    for (size_t i = 1; i < p.n_rows; i++)
        assert_true(p.rows[i].itl_s.value >= p.rows[0].itl_s.value * (1 - 1e-12));
    assert_int_equal(p.missed, p.n_rows);
    plm_plan_fini(&p);
    /* And nothing fits at all: no rows, and no failure. */
    static const char *const small[] = {"rtx_4090_24:1"};
    q.devices = small;
    static const char *const bf16[] = {"bf16"};
    q.quants = bf16;
    q.n_quants = 1;
    p = search(&q);
    assert_int_equal(p.n_rows, 0);
    assert_true(p.unfit > 0);
    plm_plan_fini(&p);
}

static void local_engines_split_by_layers(void **state)
{
    (void)state;
    plm_plan_query q = query("llama-3.1-70b");
    static const char *const cards[] = {"rtx_4090_24:4"};
    q.devices = cards;
    plm_plan p = search(&q);
    assert_true(p.n_rows > 0);
    for (size_t i = 0; i < p.n_rows; i++)
        assert_true(p.rows[i].par.tp == 1 && p.rows[i].devices <= 4 && p.rows[i].mode == 1);
    plm_plan_fini(&p);
}

static void bad_queries(void **state)
{
    (void)state;
    plm_plan p;
    plm_plan_query q = query("llama-3.1-8b");
    q.isl = 0;
    assert_int_equal(plm_plan_search(session, &q, &p, &err), PLM_E_INVALID);
    q = query("llama-3.1-8b");
    q.objective = "beauty";
    assert_int_equal(plm_plan_search(session, &q, &p, &err), PLM_E_INVALID);
    assert_true(strstr(err.text, "beauty") != NULL);
    q = query("llama-3.1-8b");
    q.n_devices = 0;
    assert_int_equal(plm_plan_search(session, &q, &p, &err), PLM_E_INVALID);
    q = query("no-such-model");
    assert_int_equal(plm_plan_search(session, &q, &p, &err), PLM_E_NOT_FOUND);
    static const char *const odd[] = {"q0_z"};
    q = query("llama-3.1-8b");
    q.quants = odd;
    q.n_quants = 1;
    assert_int_equal(plm_plan_search(session, &q, &p, &err), PLM_E_INVALID);
    q = query("llama-3.1-8b");
    q.rate = NAN;
    assert_int_equal(plm_plan_search(session, &q, &p, &err), PLM_E_INVALID);
}

static void memory_runs_out(void **state)
{
    (void)state;
    plm_mem_init();
    plm_plan_query q = query("smollm2-135m");
    q.max_devices = 2;
    int failures = 0;
    for (uint64_t n = 1; n < 10000000; n += 1 + n / 10) {
        plm_session *s = NULL;
        plm_plan p = {0};
        int64_t live = plm_mem_live();
        plm_mem_fail_at(n, true);
        plm_status status = plm_session_create(NULL, &s, &err);
        if (status == PLM_OK)
            status = plm_plan_search(s, &q, &p, &err);
        plm_mem_fail_at(0, false);
        if (status == PLM_OK)
            plm_plan_fini(&p);
        plm_session_destroy(s);
        assert_int_equal(plm_mem_live(), live);
        if (status == PLM_OK) {
            assert_true(failures > 20);
            return;
        }
        assert_int_equal(status, PLM_E_NO_MEMORY);
        failures++;
    }
    fail();
}

/* ---- two pools ---- */

static double flat_itl(const void *ctx, double batch)
{
    const double *fixed_and_each = ctx;
    return fixed_and_each[0] + fixed_and_each[1] * batch;
}

static void pools_in_closed_form(void **state)
{
    (void)state;
    const double cost[] = {0.01, 0};
    plm_pools p = {.itl = flat_itl,
                   .ctx = cost,
                   .prefill_s = 0.1,
                   .prefill_servers = 1,
                   .transfer_s = 0.02,
                   .host_s = 0.03,
                   .gen = 101,
                   .decode_workers = 1,
                   .seqs_max = 64};
    plm_pools_state s;
    /* 8 sequences at 10 ms for 100 steps: 8 requests/s; M/D/1 at .8: .3 s (DistServe). */
    plm_pools_at(&p, 8, 1, &s);
    assert_close(s.rate, 8, 1e-12, 0);
    assert_close(s.ttft_s, 0.3 + 0.02 + 0.03, 1e-12, 0);
    assert_close(s.prefill_util, 0.8, 1e-12, 0);
    plm_pools_at(&p, 10, 1, &s);
    assert_true(isinf(s.ttft_s));
    /* One client waits for nobody. */
    plm_pools_closed(&p, 1, &s);
    assert_close(s.ttft_s, 0.15, 1e-6, 0);
    assert_close(s.rate, 1 / (0.15 + 1), 1e-6, 0);
    /* Any number: Little's law, and never more than the prefill worker does. */
    for (double n = 1; n < 5000; n *= 3) {
        plm_pools_closed(&p, n, &s);
        assert_close(s.rate * (s.ttft_s + 100 * s.itl_s), n, 1e-6, 0);
        assert_true(s.rate <= 10 && s.batch <= 64);
    }
    assert_close(s.rate, 10, 0.01, 0); /* min of the pools: prefill */
    p.prefill_servers = 100;
    plm_pools_closed(&p, 5000, &s);
    assert_close(s.rate, 64, 1e-9, 0); /* min of the pools: decode */
    assert_close(s.waiting, 5000 - 64 * (1 + 0.15), 0.01, 0);
}

static void count_task(void *ctx, size_t i)
{
    unsigned char *done = ctx;
    done[i]++;
}

static void note_progress(void *ctx, double share)
{
    double *last = ctx;
    assert_true(share > 0 && share <= 1);
    *last = share;
}

static void each_task_runs_once(void **state)
{
    (void)state;
    static unsigned char done[1000];
    for (int threads = 0; threads <= 9; threads += 3) {
        double last = 0;
        memset(done, 0, sizeof done);
        plm_tasks_run(1000, threads, count_task, done, note_progress, &last);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(done[i], 1);
        plm_tasks_run(0, threads, count_task, done, NULL, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_obey_the_query),
        cmocka_unit_test(rows_equal_predictions),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(order_and_front),
        cmocka_unit_test(a_rate_takes_replicas),
        cmocka_unit_test(impossible_targets_name_the_nearest),
        cmocka_unit_test(local_engines_split_by_layers),
        cmocka_unit_test(bad_queries),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(pools_in_closed_form),
        cmocka_unit_test(each_task_runs_once),
    };
    return cmocka_run_group_tests_name("plan", tests, open_session, close_session);
}
