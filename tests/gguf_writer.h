/* gguf_writer.h - GGUF headers for tests, written from an arch record by the names of llama.cpp's
** llama-arch.cpp. Headers only: the tensors' data is announced, not there. */
#ifndef PLM_TESTS_GGUF_WRITER_H
#define PLM_TESTS_GGUF_WRITER_H
#include <stdlib.h>

#include "core/model/load.h"
#include "tests/support.h"

typedef struct gguf_writer {
    unsigned char pairs[1 << 16], tensors[1 << 20], *file;
    size_t pair_bytes, tensor_bytes, bytes;
    uint64_t n_pairs, n_tensors, data_bytes;
    char prefix[32];
} gguf_writer;

static inline size_t put_le(unsigned char *at, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (unsigned char)(v >> (8 * i));
    return n;
}

static inline void put_key(gguf_writer *w, const char *key, uint32_t type)
{
    char full[128];
    snprintf(full, sizeof full, key[0] == '.' ? "%s%s" : "%.0s%s", w->prefix, key);
    size_t n = strlen(full);
    assert_true(w->pair_bytes + n + 64 < sizeof w->pairs);
    w->pair_bytes += put_le(w->pairs + w->pair_bytes, n, 8);
    memcpy(w->pairs + w->pair_bytes, full, n);
    w->pair_bytes += n;
    w->pair_bytes += put_le(w->pairs + w->pair_bytes, type, 4);
    w->n_pairs++;
}

static inline void put_u32(gguf_writer *w, const char *key, int64_t v)
{
    put_key(w, key, 4);
    w->pair_bytes += put_le(w->pairs + w->pair_bytes, (uint64_t)v, 4);
}

static inline void put_f32(gguf_writer *w, const char *key, double v)
{
    float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    put_key(w, key, 6);
    w->pair_bytes += put_le(w->pairs + w->pair_bytes, bits, 4);
}

static inline void put_text(gguf_writer *w, const char *key, const char *v)
{
    put_key(w, key, 8);
    w->pair_bytes += put_le(w->pairs + w->pair_bytes, strlen(v), 8);
    memcpy(w->pairs + w->pair_bytes, v, strlen(v));
    w->pair_bytes += strlen(v);
}

/* n texts of no length, as a vocabulary. */
static inline void put_tokens(gguf_writer *w, const char *key, uint64_t n)
{
    put_key(w, key, 9);
    w->pair_bytes += put_le(w->pairs + w->pair_bytes, 8, 4);
    w->pair_bytes += put_le(w->pairs + w->pair_bytes, n, 8);
    assert_true(w->pair_bytes + 8 * n < sizeof w->pairs);
    memset(w->pairs + w->pair_bytes, 0, 8 * (size_t)n);
    w->pair_bytes += 8 * (size_t)n;
}

/* A bf16 tensor, dims innermost first, 0 ends them; layer < 0: the name stands alone. */
static inline void put_tensor(gguf_writer *w, int layer, const char *name, int64_t d0, int64_t d1,
                              int64_t d2)
{
    char full[128];
    if (layer >= 0)
        snprintf(full, sizeof full, "blk.%d.%s", layer, name);
    else
        snprintf(full, sizeof full, "%s", name);
    size_t n = strlen(full);
    uint32_t rank = d1 == 0 ? 1 : d2 == 0 ? 2 : 3;
    int64_t dim[3] = {d0, d1, d2};
    uint64_t bytes = 2;
    unsigned char *at = w->tensors + w->tensor_bytes;
    assert_true(w->tensor_bytes + n + 64 < sizeof w->tensors);
    at += put_le(at, n, 8);
    memcpy(at, full, n);
    at += n;
    at += put_le(at, rank, 4);
    for (uint32_t i = 0; i < rank; i++) {
        at += put_le(at, (uint64_t)dim[i], 8);
        bytes *= (uint64_t)dim[i];
    }
    at += put_le(at, 30, 4);
    at += put_le(at, w->data_bytes, 8);
    w->data_bytes += (bytes + 31) / 32 * 32;
    w->tensor_bytes = (size_t)(at - w->tensors);
    w->n_tensors++;
}

/* The header in a heap block of its exact size. */
static inline void finish_gguf(gguf_writer *w)
{
    w->bytes = 24 + w->pair_bytes + w->tensor_bytes;
    w->file = malloc(w->bytes);
    assert_non_null(w->file);
    memcpy(w->file, "GGUF", 4);
    put_le(w->file + 4, 3, 4);
    put_le(w->file + 8, w->n_tensors, 8);
    put_le(w->file + 16, w->n_pairs, 8);
    memcpy(w->file + 24, w->pairs, w->pair_bytes);
    memcpy(w->file + 24 + w->pair_bytes, w->tensors, w->tensor_bytes);
}

static inline uint64_t announced_bytes(const gguf_writer *w)
{
    return (w->bytes + 31) / 32 * 32 + w->data_bytes;
}

/* ---- a model ---- */

static inline void put_ffn(gguf_writer *w, const plm_arch *a, int i, const plm_layer *k,
                           bool packed)
{
    int64_t h = a->hidden, wide = k->expert_hidden ? k->expert_hidden : h;
    if (k->ffn > 0) {
        if (k->glu && !packed)
            put_tensor(w, i, "ffn_gate.weight", h, k->ffn, 0);
        put_tensor(w, i, "ffn_up.weight", h, packed ? 2 * k->ffn : k->ffn, 0);
        put_tensor(w, i, "ffn_down.weight", k->ffn, h, 0);
        if (k->bias_mlp)
            put_tensor(w, i, "ffn_up.bias", k->ffn, 0, 0);
    }
    if (k->experts == 0)
        return;
    put_tensor(w, i, "ffn_gate_inp.weight", h, k->experts, 0);
    if (k->router_linear_bias)
        put_tensor(w, i, "ffn_gate_inp.bias", k->experts, 0, 0);
    if (k->router_bias)
        put_tensor(w, i, "exp_probs_b.bias", k->experts, 0, 0);
    if (k->glu)
        put_tensor(w, i, "ffn_gate_exps.weight", wide, k->expert_ffn, k->experts);
    put_tensor(w, i, "ffn_up_exps.weight", wide, k->expert_ffn, k->experts);
    put_tensor(w, i, "ffn_down_exps.weight", k->expert_ffn, wide, k->experts);
    if (k->expert_bias)
        put_tensor(w, i, "ffn_up_exps.bias", k->expert_ffn, k->experts, 0);
    if (k->shared_ffn > 0) {
        put_tensor(w, i, "ffn_up_shexp.weight", h, k->shared_ffn, 0);
        if (k->shared_gate)
            put_tensor(w, i, "ffn_gate_inp_shexp.weight", h, 0, 0);
    }
}

static inline void put_attention(gguf_writer *w, const plm_arch *a, int i, const plm_layer *k,
                                 bool packed)
{
    int64_t h = a->hidden, q = (int64_t)k->heads * k->dk, kk = (int64_t)k->kv_heads * k->dk,
            v = (int64_t)k->kv_heads * k->dv;
    if (k->attn == PLM_ATTN_GATED_DELTA || k->attn == PLM_ATTN_MAMBA2) {
        put_tensor(w, i, "ssm_out.weight", (int64_t)k->lin_v_heads * k->lin_dv, h, 0);
        return;
    }
    if (k->attn == PLM_ATTN_NONE)
        return;
    if (k->attn == PLM_ATTN_MLA) {
        put_tensor(w, i, "attn_kv_a_mqa.weight", h, k->kv_lora + k->rope_dim, 0);
        return;
    }
    if (packed) {
        put_tensor(w, i, "attn_qkv.weight", h, q + kk + v, 0);
        if (k->bias_q)
            put_tensor(w, i, "attn_qkv.bias", q + kk + v, 0, 0);
    } else {
        put_tensor(w, i, "attn_q.weight", h, k->out_gate ? 2 * q : q, 0);
        put_tensor(w, i, "attn_k.weight", h, kk, 0);
        put_tensor(w, i, "attn_v.weight", h, v, 0);
        if (k->bias_q) {
            put_tensor(w, i, "attn_q.bias", q, 0, 0);
            put_tensor(w, i, "attn_k.bias", kk, 0, 0);
            put_tensor(w, i, "attn_v.bias", v, 0, 0);
        }
    }
    put_tensor(w, i, "attn_output.weight", (int64_t)k->heads * k->dv, h, 0);
    if (k->bias_o)
        put_tensor(w, i, "attn_output.bias", h, 0, 0);
    if (k->sinks)
        put_tensor(w, i, "attn_sinks.weight", k->heads, 0, 0);
    if (k->qk_norm == PLM_QK_HEAD || k->qk_norm == PLM_QK_FULL)
        put_tensor(w, i, "attn_q_norm.weight", k->qk_norm == PLM_QK_HEAD ? k->dk : q, 0, 0);
}

static inline void put_rope(gguf_writer *w, const plm_rope *r)
{
    if (r->theta == 0)
        return;
    put_f32(w, ".rope.freq_base", r->theta);
    put_u32(w, ".rope.dimension_count", r->dims);
    if (r->scaling == PLM_ROPE_LLAMA3)
        put_tensor(w, -1, "rope_freqs.weight", r->dims / 2, 0, 0);
    if (r->scaling == PLM_ROPE_LINEAR || r->scaling == PLM_ROPE_YARN) {
        put_text(w, ".rope.scaling.type", r->scaling == PLM_ROPE_YARN ? "yarn" : "linear");
        put_f32(w, ".rope.scaling.factor", r->factor);
    }
    if (r->scaling == PLM_ROPE_YARN) {
        put_u32(w, ".rope.scaling.original_context_length", (int64_t)r->orig_ctx);
        if (r->beta_fast != 32)
            put_f32(w, ".rope.scaling.yarn_beta_fast", r->beta_fast);
        if (r->mscale_all > 0)
            put_f32(w, ".rope.scaling.yarn_log_multiplier", 0.1 * r->mscale_all);
    }
}

static inline void put_metadata(gguf_writer *w, const plm_arch *a)
{
    const plm_layer *k = NULL, *lin = NULL, *moe = NULL;
    for (int i = 0; i < a->n_kinds; i++) {
        if (a->kind[i].heads > 0 && (k == NULL || a->kind[i].attn != PLM_ATTN_SLIDING))
            k = &a->kind[i];
        if (a->kind[i].lin_v_heads > 0)
            lin = &a->kind[i];
        if (a->kind[i].experts > 0)
            moe = &a->kind[i];
        if (a->kind[i].window > 0)
            put_u32(w, ".attention.sliding_window", a->kind[i].window);
    }
    put_u32(w, ".block_count", a->layers);
    put_u32(w, ".embedding_length", a->hidden);
    put_u32(w, ".context_length", a->max_context);
    put_f32(w,
            a->norm == PLM_NORM_RMS ? ".attention.layer_norm_rms_epsilon"
                                    : ".attention.layer_norm_epsilon",
            a->norm_eps);
    put_u32(w, ".attention.head_count", k->heads);
    put_u32(w, ".attention.head_count_kv", k->attn == PLM_ATTN_MLA ? 1 : k->kv_heads);
    put_rope(w, &k->rope);
    if (k->attn == PLM_ATTN_MLA) {
        put_u32(w, ".attention.kv_lora_rank", k->kv_lora);
        if (k->q_lora > 0)
            put_u32(w, ".attention.q_lora_rank", k->q_lora);
        put_u32(w, ".attention.key_length", k->kv_lora + k->rope_dim);
        put_u32(w, ".attention.value_length", k->kv_lora);
        put_u32(w, ".attention.key_length_mla", k->dk);
        put_u32(w, ".attention.value_length_mla", k->dv);
    } else {
        put_u32(w, ".attention.key_length", k->dk);
        put_u32(w, ".attention.value_length", k->dv);
    }
    if (k->softcap > 0)
        put_f32(w, ".attn_logit_softcapping", k->softcap);
    if (a->logit_softcap > 0)
        put_f32(w, ".final_logit_softcapping", a->logit_softcap);
    if (lin != NULL) {
        put_u32(w, ".ssm.inner_size", (int64_t)lin->lin_v_heads * lin->lin_dv);
        put_u32(w, ".ssm.state_size", lin->attn == PLM_ATTN_MAMBA2 ? lin->ssm_state : lin->lin_dk);
        put_u32(w, ".ssm.time_step_rank", lin->lin_v_heads);
        put_u32(w, ".ssm.group_count",
                lin->attn == PLM_ATTN_MAMBA2 ? lin->ssm_groups : lin->lin_k_heads);
        put_u32(w, ".ssm.conv_kernel", lin->conv_taps);
    }
    if (moe == NULL)
        return;
    put_u32(w, ".expert_count", moe->experts);
    put_u32(w, ".expert_used_count", moe->top_k);
    if (moe->shared_experts > 0)
        put_u32(w, ".expert_shared_count", moe->shared_experts);
    if (moe->n_group > 0) {
        put_u32(w, ".expert_group_count", moe->n_group);
        put_u32(w, ".expert_group_used_count", moe->topk_group);
    }
    if (moe->router_scale > 0)
        put_f32(w, ".expert_weights_scale", moe->router_scale);
    if (moe->router_fn == PLM_FN_SIGMOID) {
        put_u32(w, ".expert_gating_func", 2);
        put_u32(w, ".expert_weights_norm", moe->renorm);
    }
}

/* packed: q, k, v in one matrix, and gate and up in one (Phi-3, GPT-2, Falcon, BLOOM). */
static inline gguf_writer *write_model(const plm_arch *a, const char *family, bool packed)
{
    static const char *const norm[] = {"attn_norm.weight", "ffn_norm.weight",
                                       "post_attention_norm.weight", "post_ffw_norm.weight"};
    gguf_writer *w = calloc(1, sizeof *w);
    assert_non_null(w);
    snprintf(w->prefix, sizeof w->prefix, "%s", family);
    put_text(w, "general.architecture", family);
    put_u32(w, "general.file_type", 15);
    put_metadata(w, a);
    put_tokens(w, "tokenizer.ggml.tokens", 5);
    put_tensor(w, -1, "token_embd.weight", a->hidden, a->vocab, 0);
    if (a->pos_embed > 0)
        put_tensor(w, -1, "position_embd.weight", a->hidden, a->pos_embed, 0);
    if (a->embed_norm)
        put_tensor(w, -1, "token_embd_norm.weight", a->hidden, 0, 0);
    put_tensor(w, -1, "output_norm.weight", a->hidden, 0, 0);
    if (a->norm_bias)
        put_tensor(w, -1, "output_norm.bias", a->hidden, 0, 0);
    if (!a->tied_head)
        put_tensor(w, -1, "output.weight", a->hidden, a->vocab, 0);
    for (int i = 0; i < a->layers; i++) {
        const plm_layer *k = plm_arch_layer(a, i);
        put_attention(w, a, i, k, packed);
        put_ffn(w, a, i, k, packed && k->glu);
        for (int n = 0; n < k->norms; n++)
            put_tensor(w, i, norm[n], a->hidden, 0, 0);
    }
    finish_gguf(w);
    return w;
}

static inline void free_gguf(gguf_writer *w)
{
    free(w->file);
    free(w);
}

#endif
