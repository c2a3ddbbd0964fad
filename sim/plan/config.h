/* config.h - a query made definite: model, machine, storage, parallel plan, cost programs of its
** stages, memory. Shared by predict, explain and the search. Internal to sim/plan. */
#ifndef PLM_SIM_CONFIG_H
#define PLM_SIM_CONFIG_H
#include "sim/plan/steady.h"

#define PLM_STAGES_MAX 128

typedef struct plm_config {
    const plm_arch *arch;
    const plm_params *params;
    plm_machine machine, rest; /* rest: without what a step pays once */
    const plm_recipe *recipe;
    plm_dtype kv_k, kv_v;
    char kv_name[32];
    plm_parallel par;
    int64_t devices; /* of the plan */
    bool layer_split;
    bool unfused;          /* attention writes its scores to memory */
    int64_t seqs_bound;    /* sequences the programs' activation memory is planned for */
    int64_t weights_given; /* of the whole model, 0 = as computed */
    /* after plm_config_build */
    const plm_program *program[PLM_STAGES_MAX];
    plm_stages stages; /* points into this struct: do not copy a config after building */
    int64_t weights_bytes, embed_bytes, activation_bytes; /* of the fullest rank */
    int64_t model_weights_bytes;
    double experts, top_k; /* greatest of any layer, 0 = none */
} plm_config;

/* Model, machine, storage and overrides of a query; not the plan. */
plm_status plm_config_init(plm_session *s, const plm_query *q, plm_config *c,
                           plm_error *err) PLM_MUST_USE;
/* The plan asked for, its gaps chosen: the ranks of `devices` left by what was given go to layers
** (pp) on engines that split by layers, else to tp as far as legal and within a node, then to pp.
** devices 0 = the product of what was given. Illegal: PLM_E_INVALID with the legal values. */
plm_status plm_config_plan(plm_config *c, const plm_parallel *asked, int64_t devices,
                           plm_error *err) PLM_MUST_USE;
/* Cost programs of all stages of c->par, and the bytes of the fullest rank. whole_model: find
** model_weights_bytes too (needs the program of an unsharded model). */
plm_status plm_config_build(plm_session *s, plm_config *c, bool whole_model,
                            plm_error *err) PLM_MUST_USE;
/* Ledger for `batch` sequences of `context` tokens. A device of unknown memory fits, capacity 0. */
plm_status plm_config_ledger(const plm_config *c, int64_t context, int64_t batch, plm_ledger *out,
                             plm_error *err) PLM_MUST_USE;
/* Tokens of KV for sequences that hold `tokens` on average: whole sequences times tokens, all ranks
** of the instance together. */
plm_status plm_config_kv_tokens(const plm_config *c, double tokens, double *out,
                                plm_error *err) PLM_MUST_USE;
/* Seconds of a step of one segment; slowest (may be NULL): of the slowest stage. out may be NULL.
 */
double plm_config_step(const plm_config *c, int64_t q_len, int64_t kv_len, int64_t count,
                       int64_t logit_rows, plm_step *out, double *slowest);

/* Price of one device-hour: the query's, else the catalog's; *usd is -1 if it has none. */
plm_status plm_config_price(const plm_catalog *cat, const char *device, double given, double *usd,
                            char *source, size_t cap, plm_error *err) PLM_MUST_USE;
/* Drops cached programs of earlier answers beyond a few tens. */
void plm_session_trim(plm_session *s);
plm_figure plm_figure_band(double value, const double band[2]);
/* "q8_0" or "f16,q8_0"; NULL or "auto": the engine's. */
plm_status plm_kv_types(const char *text, const plm_profile *p, plm_dtype *k, plm_dtype *v,
                        char *name, size_t cap, plm_error *err) PLM_MUST_USE;

#endif
