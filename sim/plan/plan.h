/* plan.h - search over devices, counts, parallel plans, quantisation and batch. */
#ifndef PLM_SIM_PLAN_H
#define PLM_SIM_PLAN_H
#include "sim/plan/predict.h"

typedef struct plm_plan_query {
    const char *model;
    const char *const *devices; /* "ID[:MAX]" */
    size_t n_devices;
    const char *engine;         /* NULL = usual of each device */
    const char *const *quants;
    size_t n_quants;            /* 0 = the model's own and fp8 / q4_k_m / q8_0 where the device can */
    const char *kv_type;
    int64_t isl, osl;           /* tokens in and out of a request */
    double ttft_s, itl_s;       /* targets, 0 = none */
    double rate;                /* requests/s the deployment must carry, 0 = one replica */
    int64_t max_devices;        /* of one replica */
    int mode;                   /* 0 both, 1 aggregated, 2 disaggregated */
    double price_usd;           /* < 0 = catalog */
    double utilisation;
    const char *objective;      /* "cost", "throughput", "latency" */
    int threads;                /* 0 = all */
    void (*progress)(void *ctx, double share); /* may be NULL; called from one thread */
    void *progress_ctx;
} plm_plan_query;

typedef struct plm_plan_row {
    char device[64], engine[48], quant[32];
    int mode;                   /* 1 aggregated, 2 disaggregated */
    plm_parallel par, prefill_par;
    int64_t replicas, devices;  /* replicas x devices of one replica */
    int64_t prefill_workers, decode_workers; /* disaggregated: workers of each pool of a unit */
    int64_t prefill_batch;      /* disaggregated: prompts in flight of a prefill worker */
    double prefill_util, decode_util; /* disaggregated: share of time each pool is busy */
    int64_t batch;              /* concurrency of a replica */
    plm_figure ttft_s, itl_s, output_tok_s;  /* of a replica */
    double tok_s_per_device, tok_s_per_user;
    double requests_s;          /* of the whole deployment: all replicas */
    int64_t kv_headroom_tokens; /* KV slots of a replica left when `batch` requests are at full length */
    double usd_per_hour, usd_per_mtok_input, usd_per_mtok_output; /* < 0 = no price */
    int64_t memory_bytes, capacity_bytes;
    bool meets, pareto;
    char bound[16];
} plm_plan_row;

typedef struct plm_plan {
    plm_plan_row *rows;         /* best first; heap */
    size_t n_rows, room;
    uint64_t considered, illegal, unfit, missed; /* plans looked at, and why others fell out */
    double search_s;
    char nearest[256];          /* when none meets the targets: the closest and what it misses */
} plm_plan;
/* Exhaustive; same answer to the byte on any thread count. PLM_OK with n_rows 0 when nothing fits. */
plm_status plm_plan_search(plm_session *s, const plm_plan_query *q, plm_plan *out, plm_error *err)
    PLM_MUST_USE;
void plm_plan_fini(plm_plan *p);
/* Exact Pareto front of n points, all objectives to be made greater: marks those not dominated. */
void plm_pareto(const double *points, size_t n, size_t objectives, bool *front);
/* Layer-wise KV hand-off: a + (L - 1) max(a, x) + x; serving_facts section 8. */
double plm_layerwise_s(double layers, double compute_s, double transfer_s);
#endif
