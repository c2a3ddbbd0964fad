/* bench_plan.c - time of an exhaustive search, from an empty session (catalog, model, graphs,
*programs)
** to the ordered plans, on one thread and on all. The aim: 10,000 plans under 0.5 s on one core. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/mem.h"
#include "sim/plan/plan.h"

#define ROUNDS 3
#define AIM_PLANS 10000.0
#define AIM_S 0.5

static double processor_s(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

typedef struct result {
    double wall_s, cpu_s;
    plm_plan plan;
} result;

static plm_status run(const plm_plan_query *q, result *r, plm_error *err)
{
    plm_session *s = NULL;
    double cpu = processor_s();
    struct timespec a, b;
    timespec_get(&a, TIME_UTC);
    plm_status status = plm_session_create(NULL, &s, err);
    if (status == PLM_OK)
        status = plm_plan_search(s, q, &r->plan, err);
    timespec_get(&b, TIME_UTC);
    r->wall_s = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
    r->cpu_s = processor_s() - cpu;
    plm_session_destroy(s);
    return status;
}

/* Least of a few runs; false after a failure. */
static bool measure(const char *name, plm_plan_query q, int threads)
{
    plm_error err;
    double wall = 1e9, cpu = 1e9, plans = 0;
    size_t rows = 0;
    q.threads = threads;
    for (int i = 0; i < ROUNDS; i++) {
        result r = {0};
        if (run(&q, &r, &err) != PLM_OK) {
            fprintf(stderr, "bench_plan: %s\n", err.text);
            return false;
        }
        wall = r.wall_s < wall ? r.wall_s : wall;
        cpu = r.cpu_s < cpu ? r.cpu_s : cpu;
        plans = (double)r.plan.considered;
        rows = r.plan.n_rows;
        plm_plan_fini(&r.plan);
    }
    printf("%-36s %7d %8.0f %8zu %9.4f %9.4f %12.0f %14.4f\n", name, threads, plans, rows, wall,
           cpu, plans / cpu, AIM_PLANS * cpu / plans / AIM_S);
    return true;
}

int main(void)
{
    static const char *const three[] = {"h100_sxm_80", "h200_sxm_141", "b200_sxm_180"};
    static const char *const quants[] = {"bf16", "fp8", "awq4", "int8"};
    const struct {
        const char *name;
        plm_plan_query q;
    } cases[] = {
        {"Llama-3.1-70B, 3 devices, 4 types",
         {.model = "llama-3.1-70b",
          .devices = three,
          .n_devices = 3,
          .quants = quants,
          .n_quants = 4,
          .isl = 2000,
          .osl = 500,
          .max_devices = 16,
          .price_usd = -1}},
        {"DeepSeek-V3, 3 devices, own types",
         {.model = "deepseek-v3",
          .devices = three,
          .n_devices = 3,
          .isl = 4000,
          .osl = 1000,
          .max_devices = 16,
          .price_usd = -1}},
        {"Qwen3-30B-A3B, one pool only",
         {.model = "qwen3-30b-a3b",
          .devices = three,
          .n_devices = 3,
          .quants = quants,
          .n_quants = 4,
          .isl = 1000,
          .osl = 1000,
          .max_devices = 64,
          .mode = 1,
          .price_usd = -1}},
    };
    plm_mem_init();
    printf("%-36s %7s %8s %8s %9s %9s %12s %14s\n", "search", "threads", "plans", "rows", "wall s",
           "cpu s", "plans/cpu s", "10k over 0.5s");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!measure(cases[i].name, cases[i].q, 1) || !measure(cases[i].name, cases[i].q, 0))
            return 1;
    return 0;
}
