/* bench_step.c - what a cost program costs: warm step time of Llama-70B on 8 ranks (target: under 2 us),
** and of larger graphs; time to make the program; time of its memory plan. One line a model. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/model/load.h"
#include "sim/step/step.h"

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The physics of an H100 SXM; only the arithmetic's cost matters here, not its result. */
static plm_status bind(bool tiles, plm_machine *m, plm_error *err)
{
    plm_device d = {.bandwidth_bytes_s = 3.352e12, .vector_flop_s = 66.9e12, .exp_s = 3.865e12,
                    .sm_count = 132, .l2_bytes = 50e6, .link_bytes_s = 450e9,
                    .link_latency_s = 2e-6, .link_switched = true, .node_devices = 8,
                    .target = "sm_90"};
    plm_profile p = {.launch_s = 1e-6, .step_s = 1e-4, .ramp_bytes = 1e6, .kernel_floor_s = 2e-6,
                     .skinny_m = 8, .link_one_shot_bytes = 262144, .tile_quant = tiles};
    d.peak_flop_s[PLM_MATH_BF16] = d.peak_flop_s[PLM_MATH_F16] = 989.4e12;
    d.peak_flop_s[PLM_MATH_F8] = 1978.9e12;
    return plm_machine_bind(&d, &p, m, err);
}

/* Best of several rounds, each over a falling batch so that no step repeats the last. */
static double warm_step_s(const plm_program *p, const plm_machine *m, bool mixed, double *sum)
{
    enum { ROUNDS = 7, STEPS = 4000 };
    double best = 1e9;
    for (int r = 0; r < ROUNDS; r++) {
        double start = now_s();
        for (int i = 0; i < STEPS; i++) {
            plm_segment seg[2] = {{1, 1000 + i, 64 + (i & 63)}, {512, 1024, 1}};
            plm_batch b = {seg, mixed ? 2u : 1u, -1, 0};
            plm_step s;
            plm_step_time(p, m, &b, &s);
            *sum += s.time_s;
        }
        double s = (now_s() - start) / STEPS;
        best = s < best ? s : best;
    }
    return best;
}

static plm_status measure(const plm_catalog *c, const char *model, int32_t tp, plm_error *err)
{
    plm_arch a;
    plm_build b;
    plm_graph g;
    plm_program *p = NULL;
    plm_machine plain, tiled;
    double sum = 0;
    int32_t top_k = 0;
    PLM_TRY(plm_model_load(c, model, &a, err));
    for (int32_t i = 0; i < a.n_kinds; i++)
        top_k = a.kind[i].top_k > top_k ? a.kind[i].top_k : top_k;
    plm_build_init(&b);
    b.par.tp = tp;
    b.fuse_qkv = b.fuse_gate_up = true;
    double t0 = now_s();
    plm_status status = plm_build_graph(&a, &b, &g, err);
    double t1 = now_s();
    size_t nodes = g.n_nodes, dims = g.dims.count;
    if (status == PLM_OK)
        status = plm_program_create(&g, UINT64_MAX, top_k, &p, err);
    double t2 = now_s();
    if (status == PLM_OK)
        status = bind(false, &plain, err);
    if (status == PLM_OK)
        status = bind(true, &tiled, err);
    if (status == PLM_OK)
        printf("step %-14s tp %d: %5zu nodes %3zu dims %3zu rows, build %.2f ms, program %.2f ms, "
               "warm step %.3f us decode, %.3f us mixed, %.3f us with tiles\n",
               model, tp, nodes, dims, plm_program_rows(p), (t1 - t0) * 1e3, (t2 - t1) * 1e3,
               warm_step_s(p, &plain, false, &sum) * 1e6, warm_step_s(p, &plain, true, &sum) * 1e6,
               warm_step_s(p, &tiled, true, &sum) * 1e6);
    if (sum < 0) /* keeps the loops */
        printf("%g\n", sum);
    plm_program_destroy(p);
    plm_graph_fini(&g);
    plm_arch_fini(&a);
    return status;
}

int main(void)
{
    static const struct {
        const char *model;
        int32_t tp;
    } rows[] = {{"llama-3.1-70b", 8}, {"llama-3.1-8b", 1}, {"llama-3.1-405b", 8},
                {"qwen3-30b-a3b", 1}, {"deepseek-v3", 8}};
    plm_catalog *c;
    plm_error err = {0};
    int failed = 0;
    if (plm_catalog_create(NULL, &c, &err) != PLM_OK) {
        fprintf(stderr, "bench_step: %s\n", err.text);
        return 3;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (measure(c, rows[i].model, rows[i].tp, &err) != PLM_OK) {
            fprintf(stderr, "bench_step: %s: %s\n", rows[i].model, err.text);
            failed = 1;
        }
    plm_catalog_destroy(c);
    return failed ? 1 : 0;
}
