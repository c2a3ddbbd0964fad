/* gguf_layer.c - one layer of a GGUF model: metadata for what tensors cannot tell, tensors for the
** rest (which parts exist, their widths). Key names: GGUF specification and llama.cpp's
*llama-arch.cpp. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/model/gguf_arch.h"

static plm_status refuse(const plm_gguf_model *m, const char *what, const char *name)
{
    return plm_fail(m->err, PLM_E_UNSUPPORTED,
                    "unsupported %s %.80s, %s: architecture %s is not known this far; use a "
                    "config.json or a record",
                    what, name, m->where, m->prefix);
}

static plm_status bad_shape(const plm_gguf_model *m, const plm_tensor *t, const char *why)
{
    return plm_fail(m->err, PLM_E_INVALID, "shape, %s: tensor %s %s; the file is damaged", m->where,
                    t->name, why);
}

/* Width of an integer key that may be absent. */
static plm_status optional(const plm_gguf_model *m, const char *key, int32_t layer, int64_t hi,
                           int32_t *out)
{
    int64_t v = *out;
    if (!plm_gguf_model_int(m, key, layer, &v))
        return PLM_OK;
    if (v < 0 || v > hi)
        return plm_fail(m->err, PLM_E_INVALID,
                        "bad value of %s.%s, %s: %lld is not within 0 to %lld; "
                        "the file is damaged",
                        m->prefix, key, m->where, (long long)v, (long long)hi);
    *out = (int32_t)v;
    return PLM_OK;
}

/* ---- rotation ---- */

static plm_status read_scaling(const plm_gguf_model *m, plm_rope *r)
{
    char key[80];
    const char *type = NULL;
    size_t n = 0;
    double mult = 0;
    snprintf(key, sizeof key, "%s.rope.scaling.type", m->prefix);
    if (plm_gguf_model_tensor(m, "rope_freqs.weight") != NULL ||
        plm_gguf_model_blk(m, 0, "rope_freqs.weight") != NULL) {
        /* The tensor holds the divisors themselves; these are the ones of Llama 3.1. */
        r->scaling = PLM_ROPE_LLAMA3;
        r->factor = 8;
        r->low_freq = 1;
        r->high_freq = 4;
        r->orig_ctx = 8192;
        return PLM_OK;
    }
    if (!plm_gguf_text(m->meta, key, &type, &n))
        return PLM_OK;
    static const struct {
        const char *name;
        plm_rope_scaling scaling;
    } types[] = {{"none", PLM_ROPE_NONE},
                 {"linear", PLM_ROPE_LINEAR},
                 {"yarn", PLM_ROPE_YARN},
                 {"longrope", PLM_ROPE_LONGROPE}};
    size_t i = 0, count = sizeof types / sizeof *types;
    while (i < count && (strlen(types[i].name) != n || memcmp(types[i].name, type, n) != 0))
        i++;
    if (i == count)
        return refuse(m, "metadata", "rope.scaling.type");
    r->scaling = types[i].scaling;
    if (r->scaling == PLM_ROPE_NONE)
        return PLM_OK;
    plm_gguf_model_real(m, "rope.scaling.factor", &r->factor);
    plm_gguf_model_real(m, "rope.scaling.original_context_length", &r->orig_ctx);
    plm_gguf_model_real(m, "rope.scaling.attn_factor", &r->attn_factor);
    if (r->scaling == PLM_ROPE_YARN) {
        r->beta_fast = 32;
        r->beta_slow = 1;
        r->ramp_exact = strcmp(m->prefix, "gpt-oss") == 0; /* its config says "truncate": false */
        plm_gguf_model_real(m, "rope.scaling.yarn_beta_fast", &r->beta_fast);
        plm_gguf_model_real(m, "rope.scaling.yarn_beta_slow", &r->beta_slow);
        if (plm_gguf_model_real(m, "rope.scaling.yarn_log_multiplier", &mult))
            r->mscale = r->mscale_all = round(mult * 1e4) / 1e3; /* stored as 0.1 mscale_all_dim */
    }
    return PLM_OK;
}

static plm_status read_rope(const plm_gguf_model *m, bool sliding, int32_t dims, plm_rope *r)
{
    if ((m->family.flags & PLM_GF_NO_ROPE) != 0)
        return PLM_OK;
    r->theta = 10000;
    r->dims = dims;
    r->interleaved = (m->family.flags & PLM_GF_INTERLEAVED) != 0;
    plm_gguf_model_real(m, "rope.freq_base", &r->theta);
    PLM_TRY(optional(m, "rope.dimension_count", 0, 1 << 16, &r->dims));
    if (sliding) {
        bool own = plm_gguf_model_real(m, "rope.freq_base_swa", &r->theta);
        if (!own && strcmp(m->prefix, "gemma3") == 0) {
            r->theta = 10000; /* llama.cpp: the local base of Gemma 3 is not stored */
            own = true;
        }
        r->dims = own ? dims : r->dims;
        PLM_TRY(optional(m, "rope.dimension_count_swa", 0, 1 << 16, &r->dims));
        if (own)
            return PLM_OK;
    }
    return read_scaling(m, r);
}

/* ---- attention ---- */

static plm_status is_sliding(const plm_gguf_model *m, int32_t layer, int32_t window, bool *out)
{
    char key[96];
    int64_t v;
    *out = false;
    if (window == 0)
        return PLM_OK;
    snprintf(key, sizeof key, "%s.attention.sliding_window_pattern", m->prefix);
    int64_t period = m->family.pattern;
    if (plm_gguf_array_len(m->meta, key) > 0) {
        *out = plm_gguf_int_at(m->meta, key, (size_t)layer, &v) && v != 0;
        return PLM_OK;
    }
    if (plm_gguf_int(m->meta, key, &v))
        period = v;
    if (period < 0 || period > 1 << 20)
        return refuse(m, "metadata", "attention.sliding_window_pattern");
    *out = period == 0 || (layer + 1) % period != 0;
    return PLM_OK;
}

static int64_t rows_of(const plm_tensor *t)
{
    return t->rank >= 2 ? t->dim[t->rank - 2] : t->rank == 1 ? t->dim[0] : 1;
}

static int64_t cols_of(const plm_tensor *t)
{
    return t->rank >= 1 ? t->dim[t->rank - 1] : 1;
}

/* q, k, v of the widths that the head counts say, apart or in one matrix. */
static plm_status check_projections(const plm_gguf_model *m, int32_t layer, const plm_layer *k)
{
    const plm_tensor *q = plm_gguf_model_blk(m, layer, "attn_q.weight");
    const plm_tensor *kw = plm_gguf_model_blk(m, layer, "attn_k.weight");
    const plm_tensor *all = plm_gguf_model_blk(m, layer, "attn_qkv.weight");
    int64_t q_rows = (int64_t)k->heads * k->dk * (k->out_gate ? 2 : 1);
    int64_t k_rows = (int64_t)k->kv_heads * k->dk, v_rows = (int64_t)k->kv_heads * k->dv;
    if (all != NULL && rows_of(all) != q_rows + k_rows + v_rows)
        return bad_shape(m, all, "has other rows than the heads of the metadata");
    if (q != NULL && rows_of(q) != q_rows)
        return bad_shape(m, q, "has other rows than the heads of the metadata");
    if (kw != NULL && rows_of(kw) != k_rows)
        return bad_shape(m, kw, "has other rows than the key-value heads of the metadata");
    if ((q != NULL && cols_of(q) != m->arch->hidden) ||
        (all != NULL && cols_of(all) != m->arch->hidden))
        return bad_shape(m, q != NULL ? q : all, "does not start from embedding_length");
    return PLM_OK;
}

static plm_status read_mla(const plm_gguf_model *m, int32_t layer, plm_layer *k)
{
    int32_t key = 0, value = 0;
    k->attn = PLM_ATTN_MLA;
    k->kv_heads = k->heads;
    PLM_TRY(plm_gguf_model_count(m, "attention.kv_lora_rank", layer, 1 << 20, &k->kv_lora));
    PLM_TRY(optional(m, "attention.q_lora_rank", layer, 1 << 20, &k->q_lora));
    PLM_TRY(optional(m, "rope.dimension_count", layer, 1 << 16, &k->rope_dim));
    PLM_TRY(optional(m, "attention.key_length", layer, 1 << 16, &key));
    PLM_TRY(optional(m, "attention.value_length", layer, 1 << 16, &value));
    /* Newer files keep the latent's widths there and the heads' own under _mla. */
    PLM_TRY(optional(m, "attention.key_length_mla", layer, 1 << 16, &key));
    PLM_TRY(optional(m, "attention.value_length_mla", layer, 1 << 16, &value));
    k->dk = key;
    k->dv = value;
    k->nope = key - k->rope_dim;
    PLM_TRY(optional(m, "attention.indexer.head_count", layer, 1 << 16, &k->index_heads));
    PLM_TRY(optional(m, "attention.indexer.key_length", layer, 1 << 16, &k->index_dim));
    PLM_TRY(optional(m, "attention.indexer.top_k", layer, 1 << 24, &k->index_top_k));
    return read_rope(m, false, k->rope_dim, &k->rope);
}

static plm_status read_recurrent(const plm_gguf_model *m, int32_t layer, plm_layer *k)
{
    int32_t inner = 0, state = 0, heads = 0, groups = 0;
    PLM_TRY(plm_gguf_model_count(m, "ssm.inner_size", layer, 1 << 20, &inner));
    PLM_TRY(plm_gguf_model_count(m, "ssm.state_size", layer, 1 << 16, &state));
    PLM_TRY(plm_gguf_model_count(m, "ssm.time_step_rank", layer, 1 << 16, &heads));
    PLM_TRY(plm_gguf_model_count(m, "ssm.group_count", layer, 1 << 16, &groups));
    PLM_TRY(plm_gguf_model_count(m, "ssm.conv_kernel", layer, 256, &k->conv_taps));
    k->lin_v_heads = heads;
    k->lin_dv = inner / heads;
    if (strncmp(m->prefix, "qwen3", 5) == 0) { /* llama.cpp stores the delta rule under ssm.* */
        k->attn = PLM_ATTN_GATED_DELTA;
        k->lin_k_heads = groups;
        k->lin_dk = state;
    } else if (strncmp(m->prefix, "nemotron_h", 10) == 0) {
        k->attn = PLM_ATTN_MAMBA2;
        k->ssm_groups = groups;
        k->ssm_state = state;
    } else {
        return refuse(m, "tensors", "ssm_*");
    }
    return PLM_OK;
}

/* The norm of q: one weight a head's column, or one for every column of all heads. */
static void read_qk_norm(const plm_gguf_model *m, int32_t layer, plm_layer *k)
{
    const plm_tensor *n = plm_gguf_model_blk(m, layer, "attn_q_norm.weight");
    if (n == NULL)
        return;
    k->qk_norm = n->rank == 1 && n->dim[0] == k->dk ? PLM_QK_HEAD : PLM_QK_FULL;
    k->qk_norm_after_rope = (m->family.flags & PLM_GF_QK_AFTER_ROPE) != 0;
}

static void read_scale(const plm_gguf_model *m, plm_layer *k)
{
    plm_gguf_model_real(m, "attn_logit_softcapping", &k->softcap);
    plm_gguf_model_real(m, "attention.scale", &k->attn_scale);
    /* llama.cpp: Gemma 2 27B and Gemma 3 27B scale by the width of hidden / heads, not stored. */
    bool odd = (strcmp(m->prefix, "gemma2") == 0 && m->arch->layers == 46) ||
               (strcmp(m->prefix, "gemma3") == 0 && m->arch->layers == 62);
    if (odd)
        k->attn_scale = 1 / sqrt((double)m->arch->hidden / k->heads);
}

static plm_status read_heads(const plm_gguf_model *m, int32_t layer, plm_layer *k)
{
    bool fused = plm_gguf_model_blk(m, layer, "attn_qkv.bias") != NULL;
    bool sliding = false, rope;
    k->dk = m->arch->hidden / k->heads;
    k->kv_heads = k->heads;
    int64_t kv = 0;
    if (plm_gguf_model_int(m, "attention.head_count_kv", layer, &kv))
        PLM_TRY(plm_gguf_model_count(m, "attention.head_count_kv", layer, 1 << 16, &k->kv_heads));
    PLM_TRY(optional(m, "attention.key_length", layer, 1 << 16, &k->dk));
    k->dv = k->dk;
    PLM_TRY(optional(m, "attention.value_length", layer, 1 << 16, &k->dv));
    PLM_TRY(optional(m, "attention.sliding_window", layer, 1 << 30, &k->window));
    PLM_TRY(is_sliding(m, layer, k->window, &sliding));
    if (sliding) {
        PLM_TRY(optional(m, "attention.key_length_swa", layer, 1 << 16, &k->dk));
        k->dv = k->dk;
        PLM_TRY(optional(m, "attention.value_length_swa", layer, 1 << 16, &k->dv));
    }
    k->attn = sliding ? PLM_ATTN_SLIDING : PLM_ATTN_FULL;
    rope = !(k->window > 0 && !sliding && (m->family.flags & PLM_GF_NOPE_FULL) != 0);
    k->window = sliding ? k->window : 0;
    if (rope)
        PLM_TRY(read_rope(m, sliding, k->dk, &k->rope));
    k->bias_q = fused || plm_gguf_model_blk(m, layer, "attn_q.bias") != NULL;
    k->bias_k = fused || plm_gguf_model_blk(m, layer, "attn_k.bias") != NULL;
    k->bias_v = fused || plm_gguf_model_blk(m, layer, "attn_v.bias") != NULL;
    k->bias_o = plm_gguf_model_blk(m, layer, "attn_output.bias") != NULL;
    k->sinks = plm_gguf_model_blk(m, layer, "attn_sinks.weight") != NULL;
    k->alibi = (m->family.flags & PLM_GF_ALIBI) != 0;
    k->out_gate = (m->family.flags & PLM_GF_OUT_GATE) != 0;
    k->k_eq_v = plm_gguf_model_blk(m, layer, "attn_k.weight") != NULL &&
                plm_gguf_model_blk(m, layer, "attn_v.weight") == NULL;
    read_qk_norm(m, layer, k);
    read_scale(m, k);
    return check_projections(m, layer, k);
}

static plm_status read_attention(const plm_gguf_model *m, int32_t layer, plm_layer *k)
{
    bool linear = plm_gguf_model_blk(m, layer, "ssm_out.weight") != NULL ||
                  plm_gguf_model_blk(m, layer, "ssm_in.weight") != NULL;
    bool any = plm_gguf_model_blk(m, layer, "attn_q.weight") != NULL ||
               plm_gguf_model_blk(m, layer, "attn_qkv.weight") != NULL;
    bool latent = plm_gguf_model_blk(m, layer, "attn_kv_a_mqa.weight") != NULL;
    if (linear)
        return read_recurrent(m, layer, k);
    if (!any && !latent) {
        k->attn = PLM_ATTN_NONE;
        return PLM_OK;
    }
    PLM_TRY(plm_gguf_model_count(m, "attention.head_count", layer, 1 << 16, &k->heads));
    return latent ? read_mla(m, layer, k) : read_heads(m, layer, k);
}

/* ---- feed-forward ---- */

static plm_status read_width(const plm_gguf_model *m, const plm_tensor *t, int64_t limit,
                             int32_t *out)
{
    int64_t rows = rows_of(t);
    if (rows < 1 || rows > limit)
        return bad_shape(m, t, "has an impossible width");
    *out = (int32_t)rows;
    return PLM_OK;
}

static plm_status read_router(const plm_gguf_model *m, int32_t layer, plm_layer *k)
{
    static const plm_fn by_number[] = {PLM_FN_NONE, PLM_FN_SOFTMAX, PLM_FN_SIGMOID,
                                       PLM_FN_SOFTMAX_TOPK, PLM_FN_SQRT_SOFTPLUS};
    int64_t gate = 0, norm = (m->family.flags & PLM_GF_RENORM) != 0;
    k->router_fn = m->family.router;
    if (plm_gguf_model_int(m, "expert_gating_func", layer, &gate)) {
        if (gate < 0 || gate >= (int64_t)(sizeof by_number / sizeof *by_number))
            return refuse(m, "metadata", "expert_gating_func");
        k->router_fn = gate > 0 ? by_number[gate] : k->router_fn;
    }
    if (k->router_fn == PLM_FN_NONE)
        return refuse(m, "router of", m->prefix);
    plm_gguf_model_int(m, "expert_weights_norm", layer, &norm);
    k->renorm = norm != 0 && k->router_fn != PLM_FN_SOFTMAX_TOPK;
    plm_gguf_model_real(m, "expert_weights_scale", &k->router_scale);
    if (k->router_scale == 1)
        k->router_scale = 0;
    k->router_bias = plm_gguf_model_blk(m, layer, "exp_probs_b.bias") != NULL;
    k->router_linear_bias = plm_gguf_model_blk(m, layer, "ffn_gate_inp.bias") != NULL;
    PLM_TRY(optional(m, "expert_group_count", layer, 1 << 16, &k->n_group));
    PLM_TRY(optional(m, "expert_group_used_count", layer, 1 << 16, &k->topk_group));
    if (k->n_group <= 1)
        k->n_group = k->topk_group = 0;
    return PLM_OK;
}

static plm_status read_experts(const plm_gguf_model *m, int32_t layer, const plm_tensor *up,
                               plm_layer *k)
{
    const plm_tensor *shared = plm_gguf_model_blk(m, layer, "ffn_up_shexp.weight");
    PLM_TRY(plm_gguf_model_count(m, "expert_count", layer, 1 << 16, &k->experts));
    PLM_TRY(plm_gguf_model_count(m, "expert_used_count", layer, 1 << 16, &k->top_k));
    if (up->rank != 3 || up->dim[0] != k->experts)
        return bad_shape(m, up, "has another number of experts than the metadata");
    PLM_TRY(read_width(m, up, 1 << 24, &k->expert_ffn));
    if (cols_of(up) != m->arch->hidden) /* experts behind a projection to a narrower width */
        k->expert_hidden = cols_of(up) <= 1 << 20 ? (int32_t)cols_of(up) : 0;
    if (plm_gguf_model_blk(m, layer, "ffn_gate_exps.weight") == NULL &&
        plm_gguf_model_blk(m, layer, "ffn_gate_up_exps.weight") == NULL)
        k->glu = false;
    k->expert_bias = plm_gguf_model_blk(m, layer, "ffn_up_exps.bias") != NULL;
    if (shared != NULL) {
        k->shared_experts = 1;
        PLM_TRY(optional(m, "expert_shared_count", layer, 1 << 10, &k->shared_experts));
        k->shared_experts = k->shared_experts > 0 ? k->shared_experts : 1;
        PLM_TRY(read_width(m, shared, 1 << 24, &k->shared_ffn));
        k->shared_gate = plm_gguf_model_blk(m, layer, "ffn_gate_inp_shexp.weight") != NULL;
    }
    return read_router(m, layer, k);
}

static plm_status read_ffn(const plm_gguf_model *m, int32_t layer, plm_layer *k)
{
    const plm_tensor *up = plm_gguf_model_blk(m, layer, "ffn_up.weight");
    const plm_tensor *down = plm_gguf_model_blk(m, layer, "ffn_down.weight");
    const plm_tensor *exps = plm_gguf_model_blk(m, layer, "ffn_up_exps.weight");
    if (up == NULL && exps == NULL)
        return PLM_OK;
    k->act = m->family.act;
    k->glu = true;
    if (k->act == PLM_FN_SWIGLU_OAI) {
        k->act_limit = 7; /* gpt-oss model card */
        k->act_alpha = 1.702;
    }
    if (up != NULL) {
        PLM_TRY(read_width(m, up, 1 << 25, &k->ffn));
        bool packed = down != NULL && k->ffn == 2 * cols_of(down); /* gate and up in one (Phi-3) */
        k->glu = packed || plm_gguf_model_blk(m, layer, "ffn_gate.weight") != NULL;
        k->ffn = packed ? k->ffn / 2 : k->ffn;
        k->bias_mlp = plm_gguf_model_blk(m, layer, "ffn_up.bias") != NULL;
    }
    return exps != NULL ? read_experts(m, layer, exps, k) : PLM_OK;
}

/* ---- the frame ---- */

static void count_norms(const plm_gguf_model *m, int32_t layer, plm_layer *k)
{
    static const char *const norm[] = {"attn_norm.weight",       "attn_norm_2.weight",
                                       "ffn_norm.weight",        "post_attention_norm.weight",
                                       "attn_post_norm.weight",  "post_ffw_norm.weight",
                                       "ffn_post_norm.weight",   "pre_ffw_norm_2.weight",
                                       "post_ffw_norm_1.weight", "post_ffw_norm_2.weight"};
    for (size_t i = 0; i < sizeof norm / sizeof *norm; i++)
        k->norms += plm_gguf_model_blk(m, layer, norm[i]) != NULL;
    k->post_norm = k->norms == 2 && plm_gguf_model_blk(m, layer, "post_attention_norm.weight") != NULL &&
                   plm_gguf_model_blk(m, layer, "post_ffw_norm.weight") != NULL;
}

plm_status plm_gguf_layer(const plm_gguf_model *m, int32_t layer, plm_layer *k)
{
    memset(k, 0, sizeof *k);
    k->kv_shared_layer = -1;
    PLM_TRY(read_attention(m, layer, k));
    PLM_TRY(read_ffn(m, layer, k));
    count_norms(m, layer, k);
    k->parallel = (m->family.flags & PLM_GF_PARALLEL) != 0;
    return PLM_OK;
}
