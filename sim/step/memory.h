/* memory.h - the memory ledger of an engine on a device: every part in bytes, and what is left. */
#ifndef PLM_SIM_MEMORY_H
#define PLM_SIM_MEMORY_H
#include "core/model/build.h"
#include "sim/device/profile.h"

typedef struct plm_ledger {
    int64_t capacity_bytes;      /* of the device */
    int64_t usable_bytes;        /* after the engine's rule (fraction, GPU limit of unified memory) */
    int64_t weights_bytes, embed_host_bytes;
    int64_t kv_bytes;            /* for the asked batch x context, rounded to blocks */
    int64_t kv_pool_bytes;       /* what the engine would set aside (block engines), else = kv */
    int64_t state_bytes, activation_bytes, graph_bytes, context_bytes, reserve_bytes;
    int64_t overhead_bytes;      /* graph + context + reserve */
    int64_t total_bytes;         /* weights + kv + state + activation + overhead */
    int64_t kv_bytes_per_token;  /* of this device */
    int64_t kv_blocks;           /* blocks of the pool, 0 where the engine has none */
    int64_t max_context_tokens;  /* one sequence, 0 = none fits; at most the model's own maximum */
    int64_t max_batch;           /* sequences of the asked context */
    bool fits;
    char limit[32];              /* what is short: "weights", "activation", "kv", "graphs"; "" */
} plm_ledger;

typedef struct plm_ledger_query {
    const plm_arch *arch;
    const plm_device *dev;
    const plm_profile *prof;
    plm_parallel par;
    plm_dtype kv_k, kv_v;
    int64_t weights_bytes, embed_bytes, activation_bytes; /* of the fullest rank */
    int64_t context_tokens, batch;
} plm_ledger_query;
/* PLM_OK also when it does not fit. batch is the sequences of the whole instance: with attention data
** parallelism each device holds its share of them. Pure; about a microsecond a stage. */
plm_status plm_ledger_make(const plm_ledger_query *q, plm_ledger *out, plm_error *err)
    PLM_MUST_USE;

/* KV pool of a block engine from a budget given in bytes: blocks of `block` tokens. */
int64_t plm_kv_blocks(int64_t budget_bytes, int64_t bytes_per_token, int64_t block);

/* ---- fine-tuning (train.c); serving_facts section 24 ---- */
typedef enum plm_train { PLM_TRAIN_FULL, PLM_TRAIN_LORA, PLM_TRAIN_QLORA } plm_train;
typedef struct plm_train_ledger {
    int64_t weights_bytes, gradient_bytes, master_bytes, optimizer_bytes, adapter_bytes,
        activation_bytes, total_bytes;
    int64_t trainable_params;
} plm_train_ledger;
/* Adapters on every linear matrix of the layers. The common 14-byte variant of full fine-tuning, which
** frees gradients as it goes, is total_bytes - gradient_bytes. lora_rank is read for LoRA and QLoRA. */
plm_status plm_train_memory(const plm_arch *a, plm_train kind, int32_t lora_rank, int64_t sequence,
                            int64_t batch, plm_train_ledger *out, plm_error *err) PLM_MUST_USE;
#endif
