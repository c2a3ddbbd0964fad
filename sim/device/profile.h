/* profile.h - the engine profile: what software does with a device. Data in catalog/engines.
**
** A record may name a "base" whose values it starts from, and lists "where" clauses (vendor, arch,
** class, device) that override values for matching devices, later clauses over earlier ones.
*/
#ifndef PLM_SIM_PROFILE_H
#define PLM_SIM_PROFILE_H
#include "core/ir/op.h"
#include "sim/device/device.h"

typedef enum plm_regime {
#define PLM_REGIME_MAP(X)                                                                          \
    X(DECODE, "decode") X(PREFILL, "prefill") X(TPOT, "tpot") X(TTFT, "ttft")                      \
    X(THROUGHPUT, "throughput") X(MEMORY, "memory")
#define PLM_REGIME_ENUM(id, name) PLM_REGIME_##id,
    PLM_REGIME_MAP(PLM_REGIME_ENUM)
#undef PLM_REGIME_ENUM
    PLM_REGIME_COUNT
} plm_regime;

typedef enum plm_memory_rule {
    PLM_MEMORY_ALL,      /* weights + KV + activations + overhead must fit (llama.cpp, ollama, mlx) */
    PLM_MEMORY_FRACTION, /* KV pool = fraction * total - weights - activations - context (vllm) */
    PLM_MEMORY_FREE      /* KV pool = fraction * (free after weights and activations) (trtllm) */
} plm_memory_rule;

typedef struct plm_profile {
    char id[48], engine[32]; /* "llama.cpp-cuda", "llama.cpp" */
    /* time */
    double mem_eff[PLM_CLASS_COUNT];    /* achieved share of bandwidth, large transfers */
    double tensor_eff[PLM_CLASS_COUNT]; /* achieved share of the dense peak, large tiles */
    double vector_eff, exp_eff;
    double weight_eff[PLM_DT_COUNT];    /* factor on mem_eff for weights of that type, 0 = 1 */
    double weight_math[PLM_DT_COUNT];   /* factor on tensor_eff for weights of that type, 0 = 1 */
    double launch_s;                    /* each kernel left after fusion */
    double kernel_s[PLM_CLASS_COUNT];   /* and by class: prologue, epilogue and tail of such a kernel */
    double weight_s[PLM_DT_COUNT];      /* and of a product with weights of that type: rows quantised */
    double launch_clk;                  /* and clocks of the device on top, 0 = none */
    double step_s;                      /* each step: host, sampling, graph launch */
    double seq_s;                       /* each sequence of a step */
    double layer_s;                     /* each layer (sync points) */
    double host_layer_s;                /* least time of a layer where the host launches every kernel and
                                           the device waits for it; 0 = captured or ahead */
    double chunk_layer_s;               /* each layer of a step that holds part of a prompt: such steps
                                           are not captured in a graph */
    double ramp_bytes;                  /* transfer at which half the bandwidth is reached, per op */
    double kernel_floor_s;              /* least time of a kernel that moves data */
    double cache_rate;                  /* rate of the last cache over memory's, for activations, and
                                           for weights and KV when a whole step fits; 0 = unknown:
                                           activations that fit cost nothing, the rest is memory's */
    bool tile_quant;                    /* wave and tile quantisation of GEMMs applies */
    int32_t tile_m, tile_n;             /* tile of the large-GEMM kernel; 0 = best of a list */
    double skinny_m;                    /* rows up to which a mat-vec kernel is used */
    double skinny_eff;                  /* its bandwidth share, 0 = mem_eff */
    double weight_clk, row_clk;         /* clocks in which one SM takes a byte of weights in there, and
                                           for each row past the first; 0 = none */
    double attn_decode_eff;             /* bandwidth share of decode attention, 0 = mem_eff */
    double unfused_eff, unfused_tensor; /* without fused attention: the same, and the share of the
                                           peak in longer segments; 0 = no change */
    double power_flop_j;                /* int8 operations a joule up to which tensor units keep their
                                           peak, 0 = always (cost.c) */
    double link_eff, link_latency_s;    /* 0 latency = the device's */
    double link_one_shot_bytes;         /* one-shot all-reduce up to this message */
    double moe_eff_small;               /* bandwidth share of grouped GEMM with few experts hit */
    double expert_popularity;           /* shape of the gamma distribution of experts' popularity in real
                                           text, 0 = even (plm_skewed_experts) */
    bool acc16;                         /* float16 products accumulate in float16 */
    bool int8_dot;                      /* quantised weights multiply int8 activations (mmq) */
    uint64_t fuse;                      /* patterns taken, plm_fusion_name order */
    bool absorb_mla;
    /* schedule */
    int64_t ubatch;                     /* prefill chunk (llama.cpp 512; vllm max_num_batched_tokens) */
    int64_t max_seqs;
    int64_t pipeline;                   /* chunks of a prompt in flight over split layers; 0, 1 = one
                                           after another */
    bool chunked_prefill, overlap_schedule;
    double ttft_host_s;                 /* client-side: tokenise, HTTP, first sample */
    double burst_share;                 /* closed loop: share of requests that arrive all together, in
                                           step from a common start, and not spread in time */
    double fixed_bunch;                 /* the same where all requests are equally long: requests that
                                           stay together, 0 = as burst_share says */
    /* memory */
    plm_memory_rule memory_rule;
    double memory_fraction;
    double context_bytes, graph_bytes, reserve_bytes; /* runtime context; captured graphs; rest */
    bool reserve_output;                /* a request is let in when its whole length fits; else as it
                                           grows: prompt and half of the output on average */
    double state_share, state_copies;   /* models with recurrent state: share of the pool kept for
                                           states, and how many a running request takes; 0 = one pool */
    double comm_bytes;                  /* context on top where ranks exchange tensors */
    double logit_bytes;                 /* workspace of sampling, for each logit of max_seqs sequences;
                                           taken when it exceeds the activations */
    int64_t kv_block;                   /* tokens of a block */
    int64_t kv_pad;                     /* cells of a slot rounded up to (llama.cpp 256) */
    int64_t window_slack;               /* -1 = ubatch */
    int64_t tail_bytes;                 /* of an element of a conv tail, 0 = 2 */
    bool matrices_apart;                /* q, k, v and gate, up are multiplied one by one, as files have
                                           them */
    bool windows_full, all_logits, embed_on_host;
    bool ubatch_logits;                 /* room for logits of a whole chunk is reserved */
    bool kv_head_copy;                  /* KV heads copied when tp exceeds them */
    int64_t vocab_pad;
    plm_dtype kv_default, act_default;
    plm_dtype kv_narrow;                /* cache beside weights of 8-bit or narrower floats, kv_default
                                           unless a record says */
    char quant_default[32];
    /* uncertainty: predicted * band[0] .. predicted * band[1] holds 90 % of measurements */
    double band[PLM_REGIME_COUNT][2];
} plm_profile;

/* id "llama.cpp-cuda", or "llama.cpp" (the backend usual on that device is chosen). */
plm_status plm_profile_load(const plm_catalog *c, const char *id, const plm_device *d,
                            plm_profile *out, plm_error *err) PLM_MUST_USE;
/* Usual engine of a device: vllm for data-centre GPUs, llama.cpp-<backend> for the rest. */
const char *plm_profile_usual(const plm_device *d);
#endif
