/* predict.h - one configuration: time of prefill and decode, memory, cost; and its closed loop. */
#ifndef PLM_SIM_PREDICT_H
#define PLM_SIM_PREDICT_H
#include "sim/market/price.h"
#include "sim/plan/session.h"
#include "sim/step/memory.h"

typedef struct plm_query {
    const char *model, *device, *engine; /* engine NULL = usual */
    int64_t device_count;                /* 0 = from "ID:COUNT", else devices of the plan */
    const char *quant, *kv_type;         /* NULL = the file's / the engine's; kv "q8_0" or "f16,q8_0" */
    plm_parallel par;                    /* zeros = chosen: tp up to the node for vllm-like engines,
                                            layer split (pp, one stream at a time) for llama.cpp */
    int64_t prompt, gen, batch, depth;   /* llama-bench's pp, tg, batch, depth; 512, 128, 1, 0 */
    int64_t concurrency;                 /* closed loop of N clients, 0 = none */
    int64_t context;                     /* tokens the KV is sized for, 0 = depth + prompt + gen */
    int64_t weights_bytes;               /* of the file where known, 0 = computed */
    int64_t ubatch, max_seqs, max_batched_tokens; /* overrides, 0 = the profile's */
    double memory_fraction;              /* override, 0 = the profile's */
    double price_usd;                    /* $/h of one device, < 0 = from the catalog */
    double utilisation;                  /* share of the paid time in use, 0 = 1 */
    bool static_batch;                   /* closed loop: all requests start together */
    bool fixed_lengths;                  /* closed loop: all requests are equally long, so that those
                                            served together come back together */
    int32_t flash_attn;                  /* -1 = engine's default, 0 off, 1 on */
    const char *mode;                    /* NULL or "agg"; "disagg" uses the two pools below */
    plm_parallel prefill_par;
    int64_t prefill_workers, decode_workers;
} plm_query;
void plm_query_init(plm_query *q);

typedef struct plm_figure {
    double value, lo, hi; /* 90 % interval */
} plm_figure;

typedef struct plm_phase {
    double tokens, batch, context_tokens;
    plm_figure time_s, tok_s;   /* time: whole prefill, or one decode step (ITL) */
    double tok_s_per_user;
    char bound[16];
    plm_step step;              /* mean step of the phase */
} plm_phase;

typedef struct plm_serving {
    plm_figure ttft_s, itl_s, e2e_s, output_tok_s, total_tok_s, requests_s;
    double running, waiting;    /* mean sequences in the batch, and queued for KV */
    char bound[16];
} plm_serving;

typedef struct plm_answer {
    char model[96], device[64], engine[48], quant[32], kv_type[32];
    int64_t devices;
    plm_parallel par;
    plm_params params;
    int64_t model_weights_bytes;         /* of the whole model, all devices together */
    plm_phase prefill, decode;
    plm_ledger memory;
    bool has_serving;
    plm_serving serving;
    bool has_cost;
    double usd_per_hour, usd_per_mtok_input, usd_per_mtok_output;
    char price_source[256];
    bool above_roofline, extrapolated; /* of a measurement given; outside what the profile covers */
    char note[256];                    /* one sentence or "" */
} plm_answer;

/* PLM_OK also when it does not fit: memory.fits says so and the speeds are then left zero (never a
** speed for what does not fit). */
plm_status plm_predict(plm_session *s, const plm_query *q, plm_answer *out, plm_error *err)
    PLM_MUST_USE;
/* The ops of one step of a phase, the ridge point, and elasticities (explain.c): relative change of
** the step's speed for a relative change of each resource, by machine.scale; they sum to about 1. */
typedef struct plm_explanation {
    char model[96], device[64], engine[48], quant[32];
    int64_t devices;
    double tokens, context_tokens, batch;
    double time_s, time_lo_s, time_hi_s;
    double ridge_flop_per_byte; /* tensor peak of the weights' arithmetic over bandwidth */
    plm_step_row rows[128];
    size_t n_rows;
    double elasticity[PLM_BOUND_COUNT];
} plm_explanation;
plm_status plm_explain(plm_session *s, const plm_query *q, bool decode, plm_explanation *out,
                       plm_error *err) PLM_MUST_USE;

/* Steady state of N closed-loop clients on a program (steady.c): fixed point of Little's law with
** chunked prefill mixed into decode steps, KV capacity bounding the running batch. */
typedef struct plm_steady_query {
    const plm_program *const *stage;     /* pp programs */
    int32_t n_stage;
    const plm_machine *machine;
    double prompt, gen, concurrency;
    double kv_tokens_capacity;           /* of the instance */
    double replicas;                     /* attention data parallel groups */
    bool static_batch;                   /* all start together (no mixing) */
    bool fixed_lengths;                  /* as in plm_query */
    double experts, top_k, ep;           /* routed experts over ep ranks: load of the busiest; 0 = none */
} plm_steady_query;
plm_status plm_steady(const plm_steady_query *q, plm_serving *out, plm_error *err) PLM_MUST_USE;
#endif
