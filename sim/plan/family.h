/* family.h - plans that differ in their batch alone: one device, storage and parallel plan.
 *Internal
 ** to sim/plan. */
#ifndef PLM_SIM_FAMILY_H
#define PLM_SIM_FAMILY_H
#include "sim/plan/config.h"
#include "sim/plan/plan.h"

#define PLM_GRID_MAX 72 /* batches of a family: 1, 2, 3, 4, 6, 8, 12 ... and the greatest */

typedef struct plm_family {
    plm_config config;
    size_t group; /* families of one device and storage: partners in two pools */
    double price; /* of a device-hour, < 0 = none */
    /* found by plm_family_size; n_batch 0 when it does not fit */
    int64_t batch[PLM_GRID_MAX];
    double itl_s[PLM_GRID_MAX]; /* of decode alone at that batch */
    size_t n_batch;
    int64_t seqs_full;          /* requests that fit at full length */
    bool prefills;              /* can be a prefill worker */
    double prefill_s, kv_bytes; /* one prompt on it, and the prompt's KV */
    plm_plan_row *rows;         /* heap; room for plm_family_room */
    size_t n_rows;
    uint64_t considered, unfit;
    plm_status status; /* a failure that is not "does not fit" */
    plm_error error;
} plm_family;

/* Batches that fit, and what the family is as a prefill worker; f->status as below. The caller then
** makes room for plm_family_room rows. */
void plm_family_size(plm_family *f, const plm_plan_query *q);
size_t plm_family_room(const plm_family *f, const plm_plan_query *q);
/* Aggregated plans: rows for each batch of the grid. Thread-safe on distinct families. */
void plm_family_fill(plm_family *f, const plm_plan_query *q);
/* Disaggregated plans with f as the decode pool and any of `all` (same group) as the prefill pool:
 *for
 ** each batch the best pairing. */
void plm_family_pair(plm_family *f, plm_family *const *all, size_t n, const plm_plan_query *q);
bool plm_plan_meets(const plm_plan_query *q, double ttft_s, double itl_s);

#endif
