/* gguf_arch.c - GGUF metadata and tensor records -> arch record.
**
** Where a file says a thing twice, the tensors decide: rows of the embedding are the vocabulary, a
** missing output.weight is a tied head, the width of the experts is that of their matrices. An
** architecture without a row below is read as a Llama if all its tensors are such.
*/
#include "core/model/gguf_arch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"

#define I PLM_GF_INTERLEAVED
static const plm_gguf_family families[] = {
    {"llama", I, PLM_FN_SILU, PLM_FN_SOFTMAX_TOPK, 0},
    {"mistral3", I, PLM_FN_SILU, PLM_FN_NONE, 0},
    {"deci", I, PLM_FN_SILU, PLM_FN_NONE, 0},
    {"qwen2", 0, PLM_FN_SILU, PLM_FN_NONE, 0},
    {"qwen2vl", 0, PLM_FN_SILU, PLM_FN_NONE, 0},
    {"qwen2moe", 0, PLM_FN_SILU, PLM_FN_SOFTMAX, 0},
    {"qwen3", 0, PLM_FN_SILU, PLM_FN_NONE, 0},
    {"qwen3vl", 0, PLM_FN_SILU, PLM_FN_NONE, 0},
    {"qwen3moe", PLM_GF_RENORM, PLM_FN_SILU, PLM_FN_SOFTMAX, 0},
    {"qwen3next", PLM_GF_RENORM | PLM_GF_OUT_GATE, PLM_FN_SILU, PLM_FN_SOFTMAX, 0},
    {"qwen35", PLM_GF_RENORM | PLM_GF_OUT_GATE, PLM_FN_SILU, PLM_FN_SOFTMAX, 0},
    {"qwen35moe", PLM_GF_RENORM | PLM_GF_OUT_GATE, PLM_FN_SILU, PLM_FN_SOFTMAX, 0},
    {"gemma", PLM_GF_EMBED_SQRT, PLM_FN_GELU_TANH, PLM_FN_NONE, 0},
    {"gemma2", PLM_GF_EMBED_SQRT, PLM_FN_GELU_TANH, PLM_FN_NONE, 2},
    {"gemma3", PLM_GF_EMBED_SQRT, PLM_FN_GELU_TANH, PLM_FN_NONE, 6},
    {"gemma4", PLM_GF_EMBED_SQRT | PLM_GF_RENORM, PLM_FN_GELU_TANH, PLM_FN_SOFTMAX, 6},
    {"phi2", PLM_GF_PARALLEL, PLM_FN_GELU_TANH, PLM_FN_NONE, 0},
    {"phi3", 0, PLM_FN_SILU, PLM_FN_NONE, 0},
    {"gpt2", PLM_GF_NO_ROPE, PLM_FN_GELU_TANH, PLM_FN_NONE, 0},
    {"gptj", I | PLM_GF_PARALLEL, PLM_FN_GELU_TANH, PLM_FN_NONE, 0},
    {"gptneox", PLM_GF_PARALLEL, PLM_FN_GELU_ERF, PLM_FN_NONE, 0},
    {"falcon", PLM_GF_PARALLEL, PLM_FN_GELU_ERF, PLM_FN_NONE, 0},
    {"bloom", PLM_GF_NO_ROPE | PLM_GF_ALIBI, PLM_FN_GELU_TANH, PLM_FN_NONE, 0},
    {"starcoder2", 0, PLM_FN_GELU_TANH, PLM_FN_NONE, 0},
    {"command-r", I | PLM_GF_PARALLEL, PLM_FN_SILU, PLM_FN_NONE, 0},
    {"cohere2", I | PLM_GF_PARALLEL | PLM_GF_NOPE_FULL, PLM_FN_SILU, PLM_FN_NONE, 4},
    {"olmo2", 0, PLM_FN_SILU, PLM_FN_NONE, 4},
    {"olmoe", 0, PLM_FN_SILU, PLM_FN_SOFTMAX, 0},
    {"granite", I, PLM_FN_SILU, PLM_FN_NONE, 0},
    {"granitemoe", I, PLM_FN_SILU, PLM_FN_SOFTMAX_TOPK, 0},
    {"stablelm", 0, PLM_FN_SILU, PLM_FN_NONE, 0},
    {"internlm2", I, PLM_FN_SILU, PLM_FN_NONE, 0},
    {"nemotron", 0, PLM_FN_RELU2, PLM_FN_NONE, 0},
    {"nemotron_h", PLM_GF_NO_ROPE, PLM_FN_RELU2, PLM_FN_NONE, 0},
    {"nemotron_h_moe", PLM_GF_NO_ROPE | PLM_GF_RENORM, PLM_FN_RELU2, PLM_FN_SIGMOID, 0},
    {"deepseek", I, PLM_FN_SILU, PLM_FN_SOFTMAX, 0},
    {"deepseek2", I, PLM_FN_SILU, PLM_FN_SOFTMAX, 0},
    {"glm-dsa", I | PLM_GF_RENORM, PLM_FN_SILU, PLM_FN_SIGMOID, 0},
    {"gpt-oss", 0, PLM_FN_SWIGLU_OAI, PLM_FN_SOFTMAX_TOPK, 2},
    {"glm4", I, PLM_FN_SILU, PLM_FN_NONE, 0},
    {"glm4moe", PLM_GF_RENORM, PLM_FN_SILU, PLM_FN_SIGMOID, 0},
    {"minimax-m2", PLM_GF_RENORM, PLM_FN_SILU, PLM_FN_SIGMOID, 0},
    {"dots1", PLM_GF_RENORM, PLM_FN_SILU, PLM_FN_SIGMOID, 0},
    {"hunyuan-moe", PLM_GF_RENORM | PLM_GF_QK_AFTER_ROPE, PLM_FN_SILU, PLM_FN_SOFTMAX, 0},
    {"hunyuan-dense", PLM_GF_QK_AFTER_ROPE, PLM_FN_SILU, PLM_FN_NONE, 0},
    {"seed_oss", 0, PLM_FN_SILU, PLM_FN_NONE, 0},
    {"ernie4_5", I, PLM_FN_SILU, PLM_FN_NONE, 0},
    {"exaone4", PLM_GF_NOPE_FULL, PLM_FN_SILU, PLM_FN_NONE, 4},
};
#undef I

/* Names of a layer's tensors that the reader understands; "*" ends a prefix. */
static const char *const layer_tensors[] = {
    "attn_norm.*",
    "attn_norm_2.*",
    "attn_q.*",
    "attn_k.*",
    "attn_v.*",
    "attn_qkv.*",
    "attn_output.*",
    "attn_q_norm.*",
    "attn_k_norm.*",
    "attn_sinks.*",
    "attn_rot_embd",
    "rope_freqs.*",
    "ffn_norm.*",
    "ffn_gate.*",
    "ffn_up.*",
    "ffn_down.*",
    "ffn_gate_inp.*",
    "ffn_gate_exps.*",
    "ffn_up_exps.*",
    "ffn_down_exps.*",
    "post_attention_norm.*",
    "post_ffw_norm.*",
    "attn_post_norm.*",
    "ffn_post_norm.*",
    "attn_k_b.*",
    "attn_v_b.*",
    "attn_kv_a_mqa.*",
    "attn_kv_a_norm.*",
    "attn_kv_b.*",
    "attn_q_a.*",
    "attn_q_a_norm.*",
    "attn_q_b.*",
    "indexer.*",
    "exp_probs_b.*",
    "ffn_gate_shexp.*",
    "ffn_up_shexp.*",
    "ffn_down_shexp.*",
    "ffn_gate_inp_shexp.*",
    "ffn_gate_up_exps.*",
    "ssm_*",
    "attn_gate.*",
    "nextn.*",
    "rope_factors_long.*",
    "rope_factors_short.*",
    "pre_ffw_norm_2.*",
    "post_ffw_norm_1.*",
    "post_ffw_norm_2.*",
    "layer_output_scale.*",
    "ffn_latent_*",
};
/* Of these, the ones of a plain Llama: for architectures without a row. */
#define REGULAR_TENSORS 24

bool plm_gguf_model_int(const plm_gguf_model *m, const char *key, int32_t layer, int64_t *out)
{
    char full[128];
    snprintf(full, sizeof full, "%s.%s", m->prefix, key);
    return plm_gguf_int_at(m->meta, full, (size_t)layer, out);
}

bool plm_gguf_model_real(const plm_gguf_model *m, const char *key, double *out)
{
    char full[128];
    double v;
    snprintf(full, sizeof full, "%s.%s", m->prefix, key);
    if (!plm_gguf_real(m->meta, full, &v))
        return false;
    /* Stored in single precision: 1e-6 is meant, not 9.99999997e-7. */
    char text[32];
    snprintf(text, sizeof text, "%.7g", v);
    return sscanf(text, "%lf", out) == 1;
}

const plm_tensor *plm_gguf_model_tensor(const plm_gguf_model *m, const char *name)
{
    for (size_t i = 0; i < m->parts; i++) {
        const plm_tensor *t = plm_gguf_find(m->part[i], name);
        if (t != NULL)
            return t;
    }
    return NULL;
}

const plm_tensor *plm_gguf_model_blk(const plm_gguf_model *m, int32_t layer, const char *name)
{
    char full[80];
    snprintf(full, sizeof full, "blk.%d.%s", layer, name);
    return plm_gguf_model_tensor(m, full);
}

plm_status plm_gguf_model_count(const plm_gguf_model *m, const char *key, int32_t layer, int64_t hi,
                                int32_t *out)
{
    int64_t v;
    if (!plm_gguf_model_int(m, key, layer, &v))
        return plm_fail(m->err, PLM_E_INVALID,
                        "missing key %s.%s, %s: it is required; convert the file again", m->prefix,
                        key, m->where);
    if (v == 0)
        return plm_fail(m->err, PLM_E_INVALID,
                        "zero_divisor, %s: %s.%s is 0; the file is damaged or hostile", m->where,
                        m->prefix, key);
    if (v < 0 || v > hi)
        return plm_fail(m->err, PLM_E_INVALID,
                        "bad value of %s.%s, %s: %lld is not within 1 to %lld; the file is damaged",
                        m->prefix, key, m->where, (long long)v, (long long)hi);
    *out = (int32_t)v;
    return PLM_OK;
}

/* ---- which architecture ---- */

static bool name_fits(const char *pattern, const char *name)
{
    size_t n = strlen(pattern);
    return pattern[n - 1] == '*' ? strncmp(pattern, name, n - 1) == 0 : strcmp(pattern, name) == 0;
}

/* Every tensor of a layer must be understood: an unknown one is a construct that is not modelled.
 */
static plm_status check_tensors(const plm_gguf_model *m)
{
    size_t known = (m->family.flags & PLM_GF_UNKNOWN) != 0
                       ? REGULAR_TENSORS
                       : sizeof layer_tensors / sizeof *layer_tensors;
    for (size_t p = 0; p < m->parts; p++)
        for (size_t i = 0; i < plm_gguf_tensor_count(m->part[p]); i++) {
            const char *name = plm_gguf_tensor(m->part[p], i)->name;
            const char *rest = strncmp(name, "blk.", 4) == 0 ? strchr(name + 4, '.') : NULL;
            size_t k = 0;
            while (rest != NULL && k < known && !name_fits(layer_tensors[k], rest + 1))
                k++;
            if (rest != NULL && k == known)
                return plm_fail(m->err, PLM_E_UNSUPPORTED,
                                "unsupported architecture %s, %s: tensor %s is not known; use a "
                                "config.json or a record",
                                m->prefix, m->where, name);
        }
    return PLM_OK;
}

static plm_status find_family(plm_gguf_model *m)
{
    const char *name;
    size_t n;
    if (!plm_gguf_text(m->meta, "general.architecture", &name, &n) || n == 0 ||
        n >= sizeof m->prefix || memchr(name, '\0', n) != NULL)
        return plm_fail(m->err, PLM_E_INVALID,
                        "missing key general.architecture, %s: it is required; "
                        "convert the file again",
                        m->where);
    memcpy(m->prefix, name, n);
    m->prefix[n] = '\0';
    m->family = (plm_gguf_family){m->prefix, PLM_GF_UNKNOWN, PLM_FN_SILU, PLM_FN_NONE, 0};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i].name, m->prefix) == 0)
            m->family = families[i];
    return PLM_OK;
}

/* ---- top level ---- */

/* general.file_type (llama.cpp's llama_ftype) -> recipe. */
static void read_storage(const plm_gguf_model *m)
{
    static const char *const recipe[] = {
        [0] = "f32",      [1] = "f16",      [2] = "q4_0",      [3] = "q4_1",    [7] = "q8_0",
        [8] = "q5_0",     [9] = "q5_1",     [10] = "q2_k",     [11] = "q3_k_s", [12] = "q3_k_m",
        [13] = "q3_k_l",  [14] = "q4_k_s",  [15] = "q4_k_m",   [16] = "q5_k_s", [17] = "q5_k_m",
        [18] = "q6_k",    [19] = "iq2_xxs", [20] = "iq2_xs",   [21] = "q2_k_s", [22] = "iq3_xs",
        [23] = "iq3_xxs", [24] = "iq1_s",   [25] = "iq4_nl",   [26] = "iq3_s",  [27] = "iq3_m",
        [28] = "iq2_s",   [29] = "iq2_m",   [30] = "iq4_xs",   [31] = "iq1_m",  [32] = "bf16",
        [36] = "tq1_0",   [37] = "tq2_0",   [38] = "mxfp4_moe"};
    int64_t type = -1;
    if (plm_gguf_int(m->meta, "general.file_type", &type) && type >= 0 &&
        type < (int64_t)(sizeof recipe / sizeof *recipe) && recipe[type] != NULL)
        snprintf(m->arch->file_quant, sizeof m->arch->file_quant, "%s", recipe[type]);
    const plm_tensor *t = plm_gguf_model_blk(m, 0, "attn_q.weight");
    if (t != NULL)
        m->arch->file_dtype = t->dtype;
}

/* The embedding's rows are the vocabulary; more tokens than rows is an error, fewer is padding. */
static plm_status read_vocab(const plm_gguf_model *m)
{
    const plm_tensor *t = plm_gguf_model_tensor(m, "token_embd.weight");
    if (t == NULL)
        return plm_fail(m->err, PLM_E_INVALID,
                        "absent, %s: there is no tensor token_embd.weight, so no vocabulary; the "
                        "file is no whole language model",
                        m->where);
    if (t->rank != 2 || t->dim[0] < 1 || t->dim[0] > 1 << 26 || t->dim[1] != m->arch->hidden)
        return plm_fail(
            m->err, PLM_E_INVALID,
            "shape, %s: token_embd.weight is not vocabulary x embedding_length; the file "
            "is damaged",
            m->where);
    m->arch->vocab = (int32_t)t->dim[0];
    size_t tokens = plm_gguf_array_len(m->meta, "tokenizer.ggml.tokens");
    if (tokens > (size_t)m->arch->vocab)
        return plm_fail(m->err, PLM_E_INVALID,
                        "vocab, %s: %zu tokens but %d embedding rows; the file is damaged",
                        m->where, tokens, m->arch->vocab);
    return PLM_OK;
}

static plm_status read_top(const plm_gguf_model *m)
{
    plm_arch *a = m->arch;
    int64_t context = 0, nextn = 0, heads;
    PLM_TRY(plm_gguf_model_count(m, "embedding_length", 0, 1 << 20, &a->hidden));
    if (plm_gguf_model_int(m, "attention.head_count", 0, &heads) && heads == 0 &&
        plm_gguf_model_blk(m, 0, "ssm_in.weight") == NULL)
        return plm_fail(m->err, PLM_E_INVALID,
                        "zero_divisor, %s: %s.attention.head_count is 0; the file is damaged or "
                        "hostile",
                        m->where, m->prefix);
    PLM_TRY(plm_gguf_model_count(m, "block_count", 0, PLM_LAYERS_MAX, &a->layers));
    if (plm_gguf_model_int(m, "nextn_predict_layers", 0, &nextn) && nextn > 0) {
        if (nextn >= a->layers || nextn > 64)
            return plm_fail(m->err, PLM_E_INVALID,
                            "bad value of %s.nextn_predict_layers, %s: %lld; "
                            "the file is damaged",
                            m->prefix, m->where, (long long)nextn);
        a->mtp_layers = (int32_t)nextn; /* block_count includes them */
        a->layers -= (int32_t)nextn;
    }
    if (plm_gguf_model_int(m, "context_length", 0, &context) && context > 0 &&
        context <= INT64_C(1) << 39)
        a->max_context = context;
    PLM_TRY(read_vocab(m));
    bool rms = plm_gguf_model_real(m, "attention.layer_norm_rms_epsilon", &a->norm_eps);
    if (!rms)
        plm_gguf_model_real(m, "attention.layer_norm_epsilon", &a->norm_eps);
    a->norm = rms ? PLM_NORM_RMS : PLM_NORM_LAYER;
    a->norm_bias = plm_gguf_model_tensor(m, "output_norm.bias") != NULL;
    a->tied_head = plm_gguf_model_tensor(m, "output.weight") == NULL;
    a->head_bias = plm_gguf_model_tensor(m, "output.bias") != NULL;
    a->embed_norm = plm_gguf_model_tensor(m, "token_embd_norm.weight") != NULL;
    const plm_tensor *pos = plm_gguf_model_tensor(m, "position_embd.weight");
    if (pos != NULL && pos->rank == 2 && pos->dim[0] <= 1 << 26)
        a->pos_embed = (int32_t)pos->dim[0];
    plm_gguf_model_real(m, "embedding_scale", &a->embed_scale);
    if ((m->family.flags & PLM_GF_EMBED_SQRT) != 0)
        a->embed_scale = sqrt((double)a->hidden);
    plm_gguf_model_real(m, "final_logit_softcapping", &a->logit_softcap);
    plm_gguf_model_real(m, "residual_scale", &a->residual_scale);
    if (plm_gguf_model_real(m, "logit_scale", &a->logit_scale) &&
        strncmp(m->prefix, "granite", 7) == 0 && a->logit_scale > 0)
        a->logit_scale = 1 / a->logit_scale; /* Granite divides */
    return PLM_OK;
}

static plm_status read_layers(const plm_gguf_model *m)
{
    plm_arch *a = m->arch;
    plm_layer k;
    for (int32_t i = 0; i < a->layers + (a->mtp_layers > 0 ? 1 : 0); i++) {
        PLM_TRY(plm_gguf_layer(m, i, &k));
        int32_t kind = plm_arch_add_kind(a, &k);
        if (kind < 0)
            return plm_fail(m->err, PLM_E_LIMIT,
                            "too many kinds of layer, %s: more than %d; use a "
                            "record",
                            m->where, PLM_KINDS_MAX);
        if (i < a->layers)
            a->layer_kind[i] = (uint8_t)kind;
        else
            a->mtp_kind = kind;
    }
    return PLM_OK;
}

static plm_status check_parts(const plm_gguf_model *m)
{
    plm_split_part *part = plm_calloc(m->parts, sizeof *part);
    if (part == NULL)
        return plm_fail_memory(m->err, m->where);
    bool split = false;
    for (size_t i = 0; i < m->parts; i++) {
        part[i].count = 1;
        part[i].tensors = part[i].tensors_total = (int64_t)plm_gguf_tensor_count(m->part[i]);
        split = plm_gguf_int(m->part[i], "split.count", &part[i].count) || split;
        plm_gguf_int(m->part[i], "split.no", &part[i].no);
        plm_gguf_int(m->part[i], "split.tensors.count", &part[i].tensors_total);
    }
    /* split.count 0 or 1 is a whole file. */
    plm_status status = m->parts > 1 || (split && part[0].count > 1)
                            ? plm_split_check(part, m->parts, m->err)
                            : PLM_OK;
    plm_free(part);
    return status;
}

static void set_id(plm_arch *a, const char *where, const char *family)
{
    const char *slash = strrchr(where, '/');
    const char *start = slash != NULL ? slash + 1 : where;
    size_t n = strlen(start);
    if (n > 5 && strcmp(start + n - 5, ".gguf") == 0)
        n -= 5;
    snprintf(a->id, sizeof a->id, "%.*s", (int)plm_min_i64((int64_t)n, 90), start);
    snprintf(a->family, sizeof a->family, "%.47s", family);
}

plm_status plm_model_from_gguf_parts(const plm_gguf *const *parts, size_t n, const char *where,
                                     plm_arch *out, plm_error *err)
{
    plm_arch_init(out);
    plm_gguf_model m = {
        .part = parts, .parts = n, .meta = parts[0], .where = where, .arch = out, .err = err};
    PLM_TRY(check_parts(&m));
    PLM_TRY(find_family(&m));
    set_id(out, where, m.prefix);
    PLM_TRY(check_tensors(&m));
    PLM_TRY(read_top(&m));
    read_storage(&m);
    PLM_TRY(read_layers(&m));
    return plm_arch_check(out, err);
}

plm_status plm_model_from_gguf(const plm_gguf *g, const char *where, plm_arch *out, plm_error *err)
{
    return plm_model_from_gguf_parts(&g, 1, where, out, err);
}
