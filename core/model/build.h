/* build.h - arch record + storage + parallel plan -> the graph of one rank.
**
** Parallelism enters here: the builder emits the graph that one rank of the plan runs, with sharded
** weights and the links between ranks as ops. (Design section 2 speaks of passes over a built graph;
** sharding needs to know what each matrix is for, and the builder knows, so it shards as it emits.)
*/
#ifndef PLM_MODEL_BUILD_H
#define PLM_MODEL_BUILD_H
#include "core/ir/op.h"
#include "core/model/arch.h"

/* ---- storage of weights ---- */
/* A recipe gives each weight its type by role, layer and shape: "bf16", "fp8_block", "q4_k_m" (K-quant
** mixes give attn_v, ffn_down and the head more bits in some layers, and fall back where the row is
** no multiple of the block), "mxfp4" (experts only), "awq4", "nf4_dq", ... recipe.c has the table. */
typedef struct plm_recipe plm_recipe;
/* NULL if unknown. Names without regard to case; "ud-q4_k_xl" etc. included. */
const plm_recipe *plm_recipe_by_name(const char *name);
const char *plm_recipe_name(const plm_recipe *r);
size_t plm_recipe_count(void);
const plm_recipe *plm_recipe_at(size_t i);
/* Type of activations the recipe computes in where the engine quantises them (fp8, int8, nvfp4), else
** PLM_DT_COUNT. */
plm_dtype plm_recipe_act(const plm_recipe *r);
plm_dtype plm_recipe_weight(const plm_recipe *r, const plm_arch *a, plm_role role, int32_t layer,
                            int64_t rows, int64_t cols);
/* Usual recipe of the file the arch came from, else bf16. */
const plm_recipe *plm_recipe_default(const plm_arch *a);
/* What the recipe says of itself: "" or one sentence, e.g. that a mix is an approximation. */
const char *plm_recipe_note(const plm_recipe *r);
/* The recipe as a GGUF file holds it: "mxfp4" has its rest in q8_0 there and in bf16 elsewhere, "int8"
** is q8_0, "int4" q4_0, and so on; r itself where GGUF has no other form. For llama.cpp and kin. */
const plm_recipe *plm_recipe_gguf(const plm_recipe *r);

/* ---- parallel plan ---- */
typedef struct plm_parallel {
    int32_t tp;      /* tensor parallel ranks */
    int32_t pp;      /* pipeline stages */
    int32_t ep;      /* expert parallel ranks (over tp x dp), 1 = widths split over tp x dp */
    int32_t dp;      /* attention data parallel ranks inside one instance */
    int32_t cp;      /* context parallel ranks */
    int32_t per_node; /* devices of a node; links of larger groups cross nodes. 0 = all in one */
} plm_parallel;
/* All ones. Devices of the plan = tp * pp * dp * cp. */
plm_parallel plm_parallel_one(void);
int64_t plm_parallel_devices(const plm_parallel *p);
/* Legal or PLM_E_INVALID with the legal values named: "--tp, 8: 28 heads and 4 KV heads allow 1, 2,
** 4, 28; choose one of these or use --pp". Rules: tp divides heads; tp divides kv_heads or kv_heads
** divides tp; tp divides ffn widths and (padded to 64 x tp) the vocabulary; pp <= layers; ep divides
** experts and equals a divisor of tp*dp; dp > 1 with cp > 1 refused. MLA: latent is copied. */
plm_status plm_parallel_check(const plm_arch *a, const plm_parallel *p, plm_error *err)
    PLM_MUST_USE;
/* Legal tp values up to max (at most n written), for messages and for the search. */
size_t plm_parallel_legal_tp(const plm_arch *a, int64_t max, int64_t *out, size_t n);
/* Rule on head counts alone: tp divides heads and (kv_heads % tp == 0 or tp % kv_heads == 0). */
bool plm_tp_heads_legal(int64_t heads, int64_t kv_heads, int64_t tp);
/* Layers of a stage: first and count; the remainder goes to the earlier stages but not the last. */
void plm_parallel_stage(const plm_arch *a, const plm_parallel *p, int32_t stage, int32_t *first,
                        int32_t *count);

/* ---- the graph ---- */
typedef struct plm_build {
    plm_parallel par;
    int32_t stage;              /* pipeline stage, 0 .. pp-1 */
    const plm_recipe *recipe;   /* NULL = plm_recipe_default */
    plm_dtype act;              /* activations between ops: bf16, f16, f32 */
    plm_dtype kv_k, kv_v;
    bool mla_expanded;          /* run MLA as full heads (prefill form, engines without absorption) */
    bool fuse_qkv, fuse_gate_up; /* one matrix for q,k,v and for gate,up, as the engine stores them */
    bool all_logits;            /* head over all T rows instead of R */
    bool mtp;                   /* include the MTP modules' weights and graph */
    int32_t vocab_pad;          /* rows of embedding and head rounded up to a multiple, 0 = none */
    int64_t max_tokens, max_seqs, max_slots; /* upper bounds of T, S, C; 0 = 8192, 256, 2^20 */
} plm_build;
/* bf16 everywhere, one device. */
void plm_build_init(plm_build *b);
/* Graph of the rank. out is initialised here; fini it also after a failure. */
plm_status plm_build_graph(const plm_arch *a, const plm_build *b, plm_graph *out, plm_error *err)
    PLM_MUST_USE;

/* Parameters of the language model, counted from the weights of the unsharded graph.
** active: experts of a layer count top_k of them; both with and without the input embedding. */
typedef struct plm_params {
    int64_t total, active, active_no_embed;
    int64_t embed, head, experts; /* parts of total; a tied head counts once, in embed */
} plm_params;
plm_status plm_count_params(const plm_arch *a, plm_params *out, plm_error *err) PLM_MUST_USE;
/* Bytes of the weights of a graph; host_embed_bytes: of them the input embedding table. */
plm_status plm_graph_weight_bytes(const plm_graph *g, int64_t *bytes, int64_t *embed_bytes,
                                  plm_error *err) PLM_MUST_USE;

/* ---- rotary tables (rope.c), for the oracle's cross-checks and the kernels ---- */
/* mscale of YaRN: 0.1 * m * ln(factor) + 1 for factor > 1, else 1. Source: YaRN, arXiv 2309.00071. */
double plm_yarn_mscale(double factor, double m);
/* Factor on cos/sin and factor on the softmax scale of an MLA layer (DeepSeek: g(m)/g(m_all), and
** g(m_all)^2). */
void plm_rope_scales(const plm_rope *r, double *cos_sin, double *softmax_mult);
/* First sequence length that uses the long factors (longrope): original context + 1; 0 = none. */
int64_t plm_longrope_switch(const plm_rope *r);
/* Inverse frequencies, dims/2 of them, after scaling. */
void plm_rope_inv_freq(const plm_arch *a, const plm_rope *r, int64_t seq_len, double *out);

#endif
