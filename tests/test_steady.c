/* test_steady.c - the closed loop against closed forms, against Little's law, and against a small
** simulation of the same engine written here; and the closed forms of waiting. */
#include <stdlib.h>

#include "sim/plan/plan.h"
#include "sim/plan/queue.h"
#include "sim/plan/steady.h"
#include "tests/support.h"

/* ---- queue forms ---- */

/* Values of the serving facts, section 8: D = .1 s, 8 requests/s, split speed-up 1.5. */
static void distserve_values(void **state)
{
    (void)state;
    assert_close(plm_md1_ttft_s(0.1, 8), 0.3, 1e-12, 0);
    assert_close(plm_md1_two_stage_s(0.1, 8), 0.116667, 1e-5, 0);
    assert_close(plm_md1_split_s(0.1, 8, 1.5), 0.104762, 1e-5, 0);
    /* Little traffic: service alone. Full: no steady state. */
    assert_close(plm_md1_ttft_s(0.1, 0), 0.1, 1e-12, 0);
    assert_true(isinf(plm_md1_ttft_s(0.1, 10)));
    assert_true(isinf(plm_md1_two_stage_s(0.1, 20)));
    assert_true(isinf(plm_md1_split_s(0.1, 15, 1.5)));
    /* M/D/1 waits at these loads, in service times. */
    const double rho[] = {0.5, 0.7, 0.8, 0.9, 0.95}, wait[] = {0.5, 1.166667, 2.0, 4.5, 9.5};
    for (int i = 0; i < 5; i++)
        assert_close(plm_mdc_wait_s(1, rho[i], 1), wait[i], 1e-5, 0);
    assert_true(plm_mdc_wait_s(1, 0.8, 4) < plm_mdc_wait_s(1, 0.8, 2));
    assert_true(isinf(plm_mdc_wait_s(1, 1, 3)));
    assert_close(plm_mdc_wait_s(1, 0, 3), 0, 0, 0);
}

/* KV of 1,500 tokens of Llama-2-70B: 491.52 MB at 25 GB/s is 19.661 ms, of which one layer of 80 is
** seen when compute hides the rest. */
static void layerwise_values(void **state)
{
    (void)state;
    double all = 1500.0 * 327680 / 25e9, each = all / 80;
    assert_close(all, 19.661e-3, 5e-5, 0);
    double compute = 2e-3;
    assert_close(plm_layerwise_s(80, compute, each) - 80 * compute, 0.2458e-3, 5e-4, 0);
    /* Transfer bound: everything but the first layer's compute is the transfer. */
    assert_close(plm_layerwise_s(80, 1e-5, each), 1e-5 + all, 1e-12, 0);
    assert_close(plm_layerwise_s(1, 3, 4), 7, 1e-12, 0);
}

/* Ideal column of the table in serving facts section 12. */
static void wave_values(void **state)
{
    (void)state;
    const double n[] = {2, 4, 8, 16, 32, 64, 128};
    const double four[] = {1.000, 1.600, 2.286, 2.909, 3.368, 3.657, 3.821};
    for (int i = 0; i < 7; i++)
        assert_close(plm_wave_speedup(n[i], 4), four[i], 0, 5e-4);
    const double two[] = {1.333, 1.600, 1.778}; /* two devices, 4, 8, 16 micro-batches */
    const double m[] = {4, 8, 16};
    for (int i = 0; i < 3; i++)
        assert_close(plm_wave_speedup(m[i], 2), two[i], 0, 5e-4);
}

/* Qwen3-32B, 262,144 B a token, 32,768 tokens: 8 GiB; recomputing 3,171 TFLOP at half of 989
 *TFLOP/s
 ** takes 6.4126 s; break-even 1.340 GB/s (serving facts section 14). */
static void breakeven_value(void **state)
{
    (void)state;
    double kv = 262144.0 * 32768, recompute = 6.4126;
    assert_close(kv, 8589934592.0, 0, 0);
    assert_close(plm_breakeven_bytes_s(262144, 32768 / recompute), 1.340e9, 5e-4, 0);
    const double rate[] = {450e9, 55e9, 50e9, 42949672960.0, 28e9, 25e9, 12.5e9, 7e9};
    const double ms[] = {19.1, 156.2, 171.8, 200.0, 306.8, 343.6, 687.2, 1227.1};
    for (int i = 0; i < 8; i++)
        assert_close(plm_layerwise_s(1, 0, kv / rate[i]) * 1e3, ms[i], 0, 0.06);
}

/* Monte-Carlo means of serving facts section 13. */
static void imbalance_values(void **state)
{
    (void)state;
    const double at[][4] = {{128, 128, 8, 1.122},
                            {128, 512, 8, 1.062},
                            {128, 128, 32, 1.375},
                            {256, 128, 32, 1.381},
                            {256, 1024, 32, 1.130}};
    for (int i = 0; i < 5; i++)
        assert_close(plm_expert_imbalance(at[i][0], 8, at[i][1], at[i][2]), at[i][3], 0, 0.03);
    assert_close(plm_expert_imbalance(128, 8, 64, 1), 1, 0, 0);
    assert_close(plm_expert_imbalance(0, 0, 64, 8), 1, 0, 0);
    assert_true(plm_expert_imbalance(128, 1, 1, 32) <= 32);
}

/* ---- the loop ---- */

/* A step costs `fixed`, `per_token` for each token, `per_context` for each decode's context. */
typedef struct affine {
    double fixed, per_token, per_context;
} affine;

static double affine_step(const void *ctx, const plm_mix *m, plm_bound *bound)
{
    const affine *a = ctx;
    if (bound != NULL)
        *bound = PLM_BOUND_MEMORY;
    double tokens = (double)m->decodes + (double)m->chunks * (double)m->chunk_tokens;
    return a->fixed + a->per_token * tokens +
           a->per_context * (double)m->decodes * (double)m->context;
}

static plm_loop_query workload(const affine *a, double clients)
{
    return (plm_loop_query){.step = affine_step,
                            .ctx = a,
                            .prompt = 1000,
                            .gen = 201,
                            .clients = clients,
                            .seqs_max = 256,
                            .budget = 2048,
                            .host_s = 0.01};
}

/* A lone client never shares a step: every figure is a plain sum. */
static void lone_client_is_exact(void **state)
{
    (void)state;
    const affine a = {5e-3, 2e-5, 1e-6};
    plm_loop_query q = workload(&a, 1);
    plm_loop l;
    plm_loop_solve(&q, &l);
    double itl = 5e-3 + 2e-5 + 1e-6 * 1101; /* context 1000 + 100.5, rounded */
    double prefill = 5e-3 + 2e-5 * 1000;
    assert_close(l.itl_s, itl, 1e-9, 0);
    assert_close(l.ttft_s, 0.01 + prefill, 1e-9, 0);
    assert_close(l.rate, 1 / (0.01 + prefill + 200 * itl), 1e-9, 0);
    q.budget = 301; /* four chunks of 250 beside the client's own slot */
    plm_loop_solve(&q, &l);
    assert_close(l.ttft_s, 0.01 + 4 * 5e-3 + 2e-5 * 1000, 1e-9, 0);
    q.whole_prompts = true;
    plm_loop_solve(&q, &l);
    assert_close(l.ttft_s, 0.01 + prefill, 1e-9, 0);
}

/* N = X * (TTFT + (gen - 1) ITL) whatever binds, and the rate never exceeds what one token's cost
** allows. */
static void littles_law_holds(void **state)
{
    (void)state;
    const affine costs[] = {{5e-3, 2e-5, 1e-7}, {1e-4, 1e-4, 0}, {2e-2, 1e-7, 1e-6}};
    for (size_t c = 0; c < 3; c++)
        for (double n = 1; n <= 4096; n *= 2) {
            plm_loop_query q = workload(&costs[c], n);
            plm_loop l;
            plm_loop_solve(&q, &l);
            assert_close(l.rate * (l.ttft_s + 200 * l.itl_s), n, 2e-3, 0);
            assert_true(l.running <= 256 && l.waiting >= 0);
            assert_true(l.rate * 1200 * costs[c].per_token <= 1.002);
            assert_true(l.rounds < 60);
        }
}

/* A server that is never idle spends its time on steps and tokens and on nothing else. */
static void busy_server_balances(void **state)
{
    (void)state;
    const affine a = {5e-3, 2e-5, 0};
    plm_loop_query q = workload(&a, 200);
    q.host_s = 0;
    plm_loop l;
    plm_loop_solve(&q, &l);
    double busy = a.fixed / l.itl_s + a.per_token * l.rate * (1000 + 200);
    assert_close(busy, 1, 0.02, 0);
}

static void more_clients_never_slow_the_server(void **state)
{
    (void)state;
    const affine a = {5e-3, 2e-5, 1e-7};
    double last_rate = 0, last_itl = 0;
    for (double n = 1; n <= 1024; n *= 2) {
        plm_loop_query q = workload(&a, n);
        plm_loop l;
        plm_loop_solve(&q, &l);
        assert_true(l.rate >= last_rate * 0.999);
        assert_true(l.itl_s >= last_itl * 0.98);
        last_rate = l.rate;
        last_itl = l.itl_s;
    }
}

/* Beyond the room for sequences, clients wait and the rate stands still. */
static void waiting_is_littles_law(void **state)
{
    (void)state;
    const affine a = {5e-3, 2e-5, 1e-7};
    plm_loop at, past;
    plm_loop_query q = workload(&a, 64);
    q.seqs_max = 64;
    plm_loop_solve(&q, &at);
    q.clients = 192;
    plm_loop_solve(&q, &past);
    assert_close(past.rate, at.rate, 1e-9, 0);
    assert_close(past.itl_s, at.itl_s, 1e-9, 0);
    assert_close(past.waiting, 128, 1e-9, 0);
    assert_close(past.ttft_s - at.ttft_s, 128 / at.rate, 1e-6, 0);
}

/* 64 prompts of 1000 in steps of two, then 200 steps of 64 sequences. */
static void static_batch_is_a_sum(void **state)
{
    (void)state;
    const affine a = {5e-3, 2e-5, 0};
    plm_loop_query q = workload(&a, 64);
    plm_loop l;
    q.static_batch = true;
    q.budget = 2048;
    plm_loop_solve(&q, &l);
    double prefill = 32 * (5e-3 + 2e-5 * 2000), itl = 5e-3 + 2e-5 * 64;
    assert_close(l.ttft_s, 0.01 + prefill, 1e-9, 0);
    assert_close(l.itl_s, itl, 1e-9, 0);
    assert_close(l.rate, 64 / (0.01 + prefill + 200 * itl), 1e-9, 0);
}

/* 40 clients in step: prompts in 20 steps of two, the mean one done after 10.5 of them; its 200
** decodes have 9.5 more of those steps among them. A part of the clients: as far from the steady state as their share. */
static void bursts_come_in_order(void **state)
{
    (void)state;
    const affine a = {5e-3, 2e-5, 0};
    plm_loop_query q = workload(&a, 40);
    plm_loop spread, all, half;
    plm_loop_solve(&q, &spread);
    q.burst_share = 1;
    plm_loop_solve(&q, &all);
    assert_close(all.ttft_s, 0.01 + 10.5 * (5e-3 + 2e-5 * 2000), 1e-9, 0);
    assert_close(all.itl_s, 5e-3 + 2e-5 * 40 + 9.5 * (5e-3 + 2e-5 * 2000) / 200, 1e-9, 0);
    q.burst_share = 0.5;
    plm_loop_solve(&q, &half);
    assert_close(half.ttft_s, (all.ttft_s + spread.ttft_s) / 2, 1e-9, 0);
    assert_close(half.itl_s, (all.itl_s + spread.itl_s) / 2, 1e-9, 0);
    assert_close(half.rate * (half.ttft_s + 200 * half.itl_s), 40, 1e-9, 0);
    q.clients = 1; /* a lone client is no burst */
    plm_loop_solve(&q, &half);
    assert_close(half.ttft_s, 0.01 + 5e-3 + 0.02, 1e-9, 0);
}

/* Equal requests. Eight come back together: their prompts take four steps of 45 ms, the mean one is
** done after 9/16 of them; decodes as in the steady state. When all 40 do, 41/80 of twenty steps, and
** a request's 200 decodes lie among the rest. */
static void equal_requests_come_in_bunches(void **state)
{
    (void)state;
    const affine a = {5e-3, 2e-5, 0};
    plm_loop_query q = workload(&a, 40);
    plm_loop spread, eight, all;
    plm_loop_solve(&q, &spread);
    q.bunch = 8;
    plm_loop_solve(&q, &eight);
    assert_true(spread.ttft_s < eight.ttft_s);
    assert_close(eight.ttft_s, 0.01 + hypot(spread.ttft_s - 0.01, 4 * 0.045 * 9 / 16), 1e-9, 0);
    assert_close(eight.itl_s, spread.itl_s, 1e-9, 0);
    q.bunch = 1e9;
    plm_loop_solve(&q, &all);
    assert_close(all.ttft_s, 0.01 + 20 * 0.045 * 41 / 80, 1e-9, 0);
    assert_close(all.itl_s, 5e-3 + 2e-5 * 40 + 20 * 0.045 * 39 / 80 / 200, 1e-9, 0);
    q.clients = 1;
    plm_loop_solve(&q, &all);
    assert_close(all.ttft_s, 0.01 + 0.025, 1e-9, 0);
}

static void one_token_out(void **state)
{
    (void)state;
    const affine a = {5e-3, 2e-5, 0};
    plm_loop_query q = workload(&a, 1);
    q.gen = 1;
    plm_loop l;
    plm_loop_solve(&q, &l);
    assert_close(l.rate, 1 / (0.01 + 5e-3 + 0.02), 1e-9, 0);
    assert_close(l.itl_s, 0, 0, 0);
    q.clients = 500;
    plm_loop_solve(&q, &l);
    assert_true(l.rate > 0 && l.rate < 1 / 0.02);
    assert_close(l.rate * l.ttft_s, 500, 1e-6, 0);
}

/* ---- a simulation of the same engine ---- */

#define CLIENTS_MAX 512
typedef struct request {
    int prompt_left, gen_left, gen;
    double ready, first;
    int active;
} request;

typedef struct measured {
    double ttft, itl, rate;
} measured;

/* Step by step: decodes first, then prompts in order of arrival with what the budget leaves.
 *Lengths
 ** out vary by +-20 % so that clients fall out of step. */
static measured simulate(const affine *a, int clients, int prompt, int gen, int budget, double host)
{
    static request r[CLIENTS_MAX];
    static int order[CLIENTS_MAX];
    uint64_t seed = test_seed("simulate");
    double now = 0, ttft = 0, itl = 0;
    long done = 0, counted = 0;
    double start = 0;
    for (int i = 0; i < clients; i++) {
        int g = (int)(gen * (0.8 + 0.4 * (double)(test_random(&seed) % 1000) / 1000));
        r[i] = (request){prompt, g, g, host + (double)i * 1e-3, 0, 1};
        order[i] = i;
    }
    const long warm = 6L * clients, total = warm + 30L * clients + 300;
    while (done < total) {
        int tokens = 0, decodes = 0;
        for (int i = 0; i < clients; i++)
            decodes += r[i].prompt_left == 0;
        int room = budget - decodes;
        static int chunk[CLIENTS_MAX];
        for (int k = 0; k < clients; k++) { /* in order of arrival */
            int i = order[k];
            chunk[i] = 0;
            if (r[i].prompt_left > 0 && r[i].ready <= now && room > 0) {
                chunk[i] = r[i].prompt_left < room ? r[i].prompt_left : room;
                room -= chunk[i];
                tokens += chunk[i];
            }
        }
        if (decodes + tokens == 0) { /* idle until the next request is ready */
            double next = 1e30;
            for (int i = 0; i < clients; i++)
                if (r[i].ready < next)
                    next = r[i].ready;
            now = next;
            continue;
        }
        now += a->fixed + a->per_token * (decodes + tokens);
        for (int i = 0; i < clients; i++) {
            int was_decoding = r[i].prompt_left == 0;
            if (chunk[i] > 0) {
                r[i].prompt_left -= chunk[i];
                if (r[i].prompt_left == 0) {
                    r[i].first = now;
                    r[i].gen_left--;
                }
            } else if (was_decoding) {
                r[i].gen_left--;
            }
            if (r[i].prompt_left == 0 && r[i].gen_left <= 0) {
                if (++done == warm)
                    start = now;
                if (done > warm) {
                    counted++;
                    ttft += r[i].first - r[i].ready + host;
                    itl += (now - r[i].first) / (r[i].gen - 1);
                }
                int g = (int)(gen * (0.8 + 0.4 * (double)(test_random(&seed) % 1000) / 1000));
                r[i] = (request){prompt, g, g, now + host, 0, 1};
                int at = 0; /* to the end of the order of arrival */
                while (order[at] != i)
                    at++;
                for (; at + 1 < clients; at++)
                    order[at] = order[at + 1];
                order[clients - 1] = i;
            }
        }
    }
    return (measured){ttft / (double)counted, itl / (double)counted,
                      (double)counted / (now - start)};
}

static void agrees_with_simulation(void **state)
{
    (void)state;
    const affine costs[] = {{5e-3, 2e-5, 0}, {1e-2, 5e-5, 0}, {2e-3, 5e-6, 0}};
    const int prompts[] = {1000, 4000, 200}, gens[] = {201, 101, 401};
    for (size_t c = 0; c < 3; c++)
        for (int n = 1; n <= 64; n *= 4) {
            plm_loop_query q = workload(&costs[c], n);
            q.prompt = prompts[c];
            q.gen = gens[c];
            plm_loop l;
            plm_loop_solve(&q, &l);
            measured m = simulate(&costs[c], n, prompts[c], gens[c], 2048, 0.01);
            if (getenv("PLM_SHOW") != NULL)
                print_message("cost %zu n %d: itl %.5f sim %.5f, ttft %.4f sim %.4f, rate %.4f sim "
                              "%.4f\n",
                              c, n, l.itl_s, m.itl, l.ttft_s, m.ttft, l.rate, m.rate);
            assert_close(l.itl_s, m.itl, 0.03, 0);
            assert_close(l.rate, m.rate, 0.03, 0);
            assert_close(l.ttft_s, m.ttft, 0.30, 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distserve_values),
        cmocka_unit_test(layerwise_values),
        cmocka_unit_test(wave_values),
        cmocka_unit_test(breakeven_value),
        cmocka_unit_test(imbalance_values),
        cmocka_unit_test(lone_client_is_exact),
        cmocka_unit_test(littles_law_holds),
        cmocka_unit_test(busy_server_balances),
        cmocka_unit_test(more_clients_never_slow_the_server),
        cmocka_unit_test(waiting_is_littles_law),
        cmocka_unit_test(static_batch_is_a_sum),
        cmocka_unit_test(bursts_come_in_order),
        cmocka_unit_test(equal_requests_come_in_bunches),
        cmocka_unit_test(one_token_out),
        cmocka_unit_test(agrees_with_simulation),
    };
    return cmocka_run_group_tests_name("steady", tests, NULL, NULL);
}
