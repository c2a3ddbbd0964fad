/* disagg.h - prefill and decode in two pools of workers. Internal to sim/plan. */
#ifndef PLM_SIM_DISAGG_H
#define PLM_SIM_DISAGG_H
#include "sim/plan/config.h"

typedef struct plm_pools {
    /* Seconds of a decode step of one worker that runs `batch` sequences. Pure. */
    double (*itl)(const void *ctx, double batch);
    const void *ctx;
    double prefill_s;       /* of one prompt, alone on its share of a worker */
    double prefill_servers; /* prompts that all prefill workers take at once */
    double transfer_s;      /* KV hand-off that prefill does not hide */
    double host_s;
    double gen;
    double decode_workers;
    double seqs_max; /* of one decode worker */
} plm_pools;

typedef struct plm_pools_state {
    double ttft_s, itl_s, rate; /* rate: requests/s */
    double batch;               /* running in one decode worker */
    double waiting;             /* for a place in a decode worker */
    double prefill_util, decode_util;
} plm_pools_state;

/* The pools when each decode worker runs `batch` sequences, 0 < batch <= seqs_max: prefill as M/D/c
** at the rate that takes, TTFT INFINITY when that is more than the prefill pool can do.
** others: share of the traffic that a request meets ((N - 1) / N of a closed loop). */
void plm_pools_at(const plm_pools *p, double batch, double others, plm_pools_state *out);
/* The closed loop of `clients` >= 1 clients: the batch at which the requests under way are as many
*as
** the clients, by bisection. */
void plm_pools_closed(const plm_pools *p, double clients, plm_pools_state *out);

/* Step of a decode worker of a built config as plm_pools.itl; ctx is a plm_pool_ctx. */
typedef struct plm_pool_ctx {
    const plm_config *config;
    double context;
} plm_pool_ctx;
double plm_pool_itl(const void *ctx, double batch);
/* KV of one prompt, all layers and ranks together, copies once. */
plm_status plm_pool_kv_bytes(const plm_config *c, int64_t prompt, double *bytes,
                             plm_error *err) PLM_MUST_USE;
/* Rate at which a prefill worker of `from` devices sends to one of `to`: the links of a node when
** all `total` devices are in one, else the network, of the smaller side. 0 = not known. */
double plm_pool_link_bytes_s(const plm_device *d, int64_t from, int64_t to, int64_t total);
/* Time of one prompt on a prefill worker (its data parallel ranks take one each), and how much of
*the
** hand-off over `link_bytes_s` is seen after it. */
plm_status plm_pool_prefill(const plm_config *c, int64_t prompt, double link_bytes_s,
                            double *prefill_s, double *transfer_s, plm_error *err) PLM_MUST_USE;

/* Closed loop of a query whose decode pool is `decode` (built) and whose prefill pool is its
** prefill_par (zeros: as decode). *devices: of all workers. */
plm_status plm_disagg_predict(plm_session *s, const plm_query *q, const plm_config *decode,
                              plm_serving *out, int64_t *devices, plm_error *err) PLM_MUST_USE;

#endif
