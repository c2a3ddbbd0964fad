/* arch.h - the arch record: what a model is, whatever file described it.
**
** A model is a few kinds of layer and a sequence of them. Everything a graph needs is here as plain
** numbers; names of families do not matter below this line. Front ends: config.c (Hugging Face
** config.json, and the catalog's model records), gguf.c, safetensors.c. An unknown construct is
** refused by name, never guessed.
*/
#ifndef PLM_MODEL_ARCH_H
#define PLM_MODEL_ARCH_H
#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"
#include "core/ir/dtype.h"
#include "core/ir/fn.h"

#define PLM_LAYERS_MAX 1024
#define PLM_KINDS_MAX 64

typedef enum plm_attn {
#define PLM_ATTN_MAP(X)                                                                            \
    X(NONE, "none")               /* layer without a mixer (Nemotron-H MoE layers) */              \
    X(FULL, "full")                                                                                \
    X(SLIDING, "sliding")         /* window > 0 */                                                 \
    X(CHUNKED, "chunked")         /* attends inside its own chunk of `window` tokens (Llama-4) */  \
    X(MLA, "mla")                                                                                  \
    X(GATED_DELTA, "gated_delta") /* Qwen3-Next / Qwen3.5 linear attention */                      \
    X(KDA, "kda")                 /* Kimi delta attention: decay per channel */                    \
    X(MAMBA2, "mamba2")                                                                            \
    X(COMPRESSED, "compressed")   /* DeepSeek-V4: one entry a `ratio` tokens + sliding window */  \
    X(SHORT_CONV, "short_conv")   /* LFM2: gated convolution over lin_v_heads lin_dv channels */
#define PLM_ATTN_ENUM(id, name) PLM_ATTN_##id,
    PLM_ATTN_MAP(PLM_ATTN_ENUM)
#undef PLM_ATTN_ENUM
    PLM_ATTN_COUNT
} plm_attn;

typedef enum plm_norm { PLM_NORM_RMS, PLM_NORM_LAYER } plm_norm;
typedef enum plm_qk_norm {
    PLM_QK_NONE,
    PLM_QK_HEAD,  /* RMS norm of each head, weight [d] */
    PLM_QK_FULL,  /* RMS norm over the whole q and whole k, weights [H d], [G d] (MiniMax-M2) */
    PLM_QK_L2     /* without weight (Llama-4) */
} plm_qk_norm;

typedef struct plm_rope {
    double theta;  /* 0 = no rotary embedding on this layer */
    int32_t dims;  /* rotated columns of a head */
    bool interleaved;
    bool ramp_exact; /* yarn: the ends of the ramp are not rounded to whole indices (gpt-oss) */
    plm_rope_scaling scaling;
    double factor, low_freq, high_freq, orig_ctx, beta_fast, beta_slow;
    double mscale, mscale_all;
    double attn_factor; /* explicit factor on cos/sin, 0 = by the scaling's rule */
    int32_t n_factors;  /* longrope: half of dims; arrays in plm_arch */
} plm_rope;

/* One kind of layer. Zero = absent throughout. */
typedef struct plm_layer {
    plm_attn attn;
    int32_t heads, kv_heads, dk, dv;
    int32_t window;          /* SLIDING, CHUNKED, COMPRESSED */
    bool k_eq_v;             /* V shares K's projection (Gemma-4 full layers); still cached apart */
    int32_t kv_shared_layer; /* >= 0: reuses the KV of that earlier layer; -1 = own */
    plm_rope rope;
    plm_qk_norm qk_norm;
    bool qk_norm_after_rope;
    bool bias_q, bias_k, bias_v, bias_o;
    bool sinks;              /* one learned logit a head (gpt-oss) */
    bool out_gate;           /* attention output * sigmoid(gate), gate from q's projection */
    bool gate_per_head;      /* ... or one gate a head, from a projection of its own (Laguna) */
    bool alibi;
    double softcap;          /* scores, 0 = none */
    double attn_scale;       /* 0 = 1/sqrt(dk) */
    /* MLA */
    int32_t q_lora, kv_lora, nope, rope_dim; /* dk = nope + rope_dim; q_lora 0 = full q projection */
    int32_t o_lora, o_groups;                /* DeepSeek-V4 low-rank output, 0 = plain */
    /* index-selected sparse attention */
    int32_t index_heads, index_dim, index_top_k, index_block; /* top_k in blocks when block > 1 */
    int32_t ratio;           /* COMPRESSED: tokens an entry stands for; 0 = the window alone */
    /* delta rule, KDA, Mamba-2 */
    int32_t lin_k_heads, lin_v_heads, lin_dk, lin_dv, conv_taps;
    int32_t ssm_groups, ssm_state;           /* Mamba-2: lin_v_heads heads of lin_dv, state n */
    /* feed-forward: dense (ffn > 0), routed (experts > 0), both (Gemma-4 MoE), or neither */
    int32_t ffn;
    bool glu;                /* gate * up; false = up, fn, down */
    plm_fn act;
    double act_limit, act_alpha;
    bool bias_mlp;
    int32_t experts, top_k, expert_ffn;
    int32_t expert_hidden;   /* width the experts work at, 0 = hidden (latent MoE) */
    int32_t shared_experts, shared_ffn; /* shared_ffn: width of all shared experts together */
    bool shared_gate;        /* sigmoid gate on the shared expert (Qwen) */
    plm_fn router_fn;
    bool router_bias, router_linear_bias, expert_bias, renorm;
    bool hash_routed;        /* experts by token id, weighed by the router (DeepSeek-V4's first) */
    int32_t n_group, topk_group;
    double router_scale;
    /* norms around the two halves */
    int32_t norms;           /* weights of `hidden` a layer: 1, 2, 4; 3 = one after the feed-forward
                                half too (A.X-K1); 7 = 4 and one more before and after the routed
                                half, one after the dense (Gemma-4 MoE) */
    bool post_norm;          /* the two norms stand behind the halves, not before them (OLMo 2) */
    bool parallel;           /* attention and FFN read the same input (GPT-J, Falcon) */
} plm_layer;

typedef struct plm_arch {
    char id[96];         /* catalog id, or the name of the file */
    char family[48];     /* informative */
    int32_t layers, hidden, vocab;
    int64_t max_context; /* tokens, 0 = unknown */
    bool tied_head;
    plm_norm norm;
    double norm_eps, norm_offset; /* offset 1: weight stored as w, used as 1 + w */
    bool norm_bias;
    bool norm_plain;     /* norms of the stream have no weights (OLMo, nanochat) */
    bool embed_norm;     /* norm after the embedding (BLOOM) */
    int32_t pos_embed;   /* rows of a learned position table (GPT-2), 0 = none */
    double embed_scale;  /* 1, or sqrt(hidden) for Gemma */
    double logit_softcap, logit_scale; /* 0 = none */
    double residual_scale; /* factor on the output of each half of a layer (Granite), 0 = none */
    bool head_bias;
    int32_t hyper;       /* hyper-connection streams (DeepSeek-V4: 4), 0 = plain residual */
    int32_t mtp_layers;  /* multi-token prediction modules, not counted in params */
    int32_t mtp_kind;    /* index of their layer kind */
    int32_t n_kinds;
    plm_layer kind[PLM_KINDS_MAX];
    uint8_t layer_kind[PLM_LAYERS_MAX]; /* by layer */
    float *rope_short, *rope_long;      /* longrope factors, heap, rope.n_factors each; NULL */
    /* what the file says of its own storage */
    plm_dtype file_dtype;               /* PLM_DT_COUNT = not said */
    char file_quant[32];                /* recipe name: "fp8_block", "mxfp4", "awq4", "q4_k_m"; "" */
    /* facts for cross-checks, 0 = not given */
    int64_t params_published, active_published;
    /* parameters beside the layers (engram tables kept on the host), not in the total, 0 */
    int64_t params_extra;
} plm_arch;

void plm_arch_init(plm_arch *a);  /* zeros, and the defaults said above */
void plm_arch_fini(plm_arch *a);
static inline const plm_layer *plm_arch_layer(const plm_arch *a, int32_t layer)
{
    return &a->kind[a->layer_kind[layer]];
}
/* Index of a kind equal to *k, added if new; -1 when PLM_KINDS_MAX is reached. */
int32_t plm_arch_add_kind(plm_arch *a, const plm_layer *k);
/* Every number in range, heads a multiple of kv_heads, windows positive, products representable.
** Front ends end with it; the error names the field ("num_attention_heads"). */
plm_status plm_arch_check(const plm_arch *a, plm_error *err) PLM_MUST_USE;

/* ---- KV and state, per token and per sequence, of one rank (kv.c) ---- */
typedef struct plm_kv_options {
    plm_dtype k, v;        /* storage of the cache */
    int32_t tp;            /* KV heads are split over tp, copied when tp exceeds them; MLA is copied */
    int32_t cp;            /* context parallel: tokens split */
    bool mla_expanded;     /* engine caches full heads instead of the latent */
    int32_t first_layer, n_layers; /* pipeline stage; n_layers 0 = all */
    int64_t window_slack;  /* extra cells of a windowed layer (llama.cpp: ubatch), 0 */
    int64_t window_pad;    /* cells rounded up to a multiple (llama.cpp: 256), 0 = 1 */
    bool windows_full;     /* engine stores windowed layers at full length (llama.cpp --swa-full) */
    bool index_cache;      /* count the index keys of index-selected layers too (index_dim a token; the
                              entries of COMPRESSED layers always carry theirs) */
    int32_t tail_bytes;      /* of an element of a conv tail, 0 = 2 */
    bool index_as_k;       /* ... kept in the K type; false: one byte an element, as served (fp8) */
} plm_kv_options;
/* Bytes that grow with every token while no window is full (all attending layers). */
plm_status plm_kv_bytes_per_token(const plm_arch *a, const plm_kv_options *o, int64_t *bytes,
                                  plm_error *err) PLM_MUST_USE;
/* Bytes of one sequence of `tokens` tokens: full layers grow, windowed layers stop at
** min(tokens, pad(window + slack)), compressed layers grow by 1/ratio. full_bytes and window_bytes
** (may be NULL) are its two parts. */
plm_status plm_kv_bytes(const plm_arch *a, const plm_kv_options *o, int64_t tokens, int64_t *bytes,
                        int64_t *full_bytes, int64_t *window_bytes, plm_error *err) PLM_MUST_USE;
/* Longest sequence whose KV fits the budget (inverts plm_kv_bytes; not a division). */
plm_status plm_kv_max_tokens(const plm_arch *a, const plm_kv_options *o, int64_t budget_bytes,
                             int64_t *tokens, plm_error *err) PLM_MUST_USE;
/* Fixed bytes a sequence (conv tails, delta-rule and SSM state, f32 unless said), of one rank. */
plm_status plm_state_bytes(const plm_arch *a, const plm_kv_options *o, int64_t *bytes,
                           plm_error *err) PLM_MUST_USE;
/* The same in its two parts: recurrent state (f32) and conv tails (tail_bytes an element). */
plm_status plm_state_parts(const plm_arch *a, const plm_kv_options *o, int64_t *state_bytes,
                           int64_t *conv_bytes, plm_error *err) PLM_MUST_USE;

#endif
