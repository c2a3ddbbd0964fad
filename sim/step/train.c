/* train.c - memory of fine-tuning: full, LoRA, QLoRA.
**
** Full: 16 bytes a parameter: bf16 weights and gradients, a float32 master copy, two float32
** moments of Adam. LoRA: the base in bf16, 16 bytes for each adapter parameter. QLoRA: linear
** matrices in NF4 with doubly quantised scales (4.127 bits), the rest bf16. Source: serving_facts
** section 24; QLoRA, arXiv 2305.14314. Adapters sit on every linear matrix of the layers, rank *
** (in + out) each. Pure functions, thread-safe.
*/
#include <string.h>

#include "core/base/mem.h"
#include "sim/step/memory.h"

#define LORA_RANK_MAX 65536
#define TOKENS_MAX (INT64_C(1) << 32)

/* Bytes of the linears and of the rest, and the adapters of rank 1. */
typedef struct shape {
    int64_t params, linear;      /* all; of them in matrices of the layers */
    int64_t nf4_bytes;           /* the linears in NF4 */
    int64_t adapter_per_rank;    /* sum of in + out over the linears */
} shape;

static plm_status add_matrix(shape *s, int64_t rows, int64_t cols, int64_t count, plm_error *err)
{
    int64_t n, bytes, ends;
    if (rows == 0 || cols == 0 || count == 0)
        return PLM_OK;
    PLM_TRY(plm_dtype_bytes(PLM_DT_NF4_DQ, rows, cols, &bytes, err));
    if (!plm_mul_i64(rows, cols, &n) || !plm_mul_i64(n, count, &n) ||
        !plm_mul_i64(bytes, count, &bytes) || !plm_mul_i64(rows + cols, count, &ends) ||
        !plm_add_i64(s->linear, n, &s->linear) ||
        !plm_add_i64(s->nf4_bytes, bytes, &s->nf4_bytes) ||
        !plm_add_i64(s->adapter_per_rank, ends, &s->adapter_per_rank))
        return plm_fail(err, PLM_E_INVALID, 
                        "fine-tuning, matrix %lld x %lld: too large; check the model",
                        (long long)rows, (long long)cols);
    return PLM_OK;
}

static plm_status add_attention(shape *s, const plm_layer *l, int64_t h, plm_error *err)
{
    int64_t q = (int64_t)l->heads * l->dk, k = (int64_t)l->kv_heads * l->dk;
    int64_t v = (int64_t)l->kv_heads * l->dv, o = (int64_t)l->heads * l->dv;
    switch (l->attn) {
    case PLM_ATTN_NONE:
        return PLM_OK;
    case PLM_ATTN_MLA:
        if (l->q_lora > 0) {
            PLM_TRY(add_matrix(s, l->q_lora, h, 1, err));
            PLM_TRY(add_matrix(s, q, l->q_lora, 1, err));
        } else {
            PLM_TRY(add_matrix(s, q, h, 1, err));
        }
        PLM_TRY(add_matrix(s, (int64_t)l->kv_lora + l->rope_dim, h, 1, err));
        PLM_TRY(add_matrix(s, (int64_t)l->heads * ((int64_t)l->nope + l->dv), l->kv_lora, 1, err));
        return add_matrix(s, h, o, 1, err);
    case PLM_ATTN_GATED_DELTA:
    case PLM_ATTN_KDA:
        k = (int64_t)l->lin_k_heads * l->lin_dk;
        v = (int64_t)l->lin_v_heads * l->lin_dv;
        PLM_TRY(add_matrix(s, 2 * k + 2 * v, h, 1, err)); /* q, k, v and the output gate */
        return add_matrix(s, h, v, 1, err);
    case PLM_ATTN_SHORT_CONV:
        v = (int64_t)l->lin_v_heads * l->lin_dv;
        PLM_TRY(add_matrix(s, 3 * v, h, 1, err));
        return add_matrix(s, h, v, 1, err);
    case PLM_ATTN_MAMBA2:
        v = (int64_t)l->lin_v_heads * l->lin_dv;
        PLM_TRY(add_matrix(s, 2 * v + 2 * (int64_t)l->ssm_groups * l->ssm_state + l->lin_v_heads, h,
                           1, err));
        return add_matrix(s, h, v, 1, err);
    default:
        PLM_TRY(add_matrix(s, l->out_gate ? 2 * q : q, h, 1, err));
        PLM_TRY(add_matrix(s, k, h, 1, err));
        PLM_TRY(add_matrix(s, l->k_eq_v ? 0 : v, h, 1, err));
        return add_matrix(s, h, o, 1, err);
    }
}

static plm_status add_ffn(shape *s, const plm_layer *l, int64_t h, plm_error *err)
{
    int64_t into = l->glu ? 2 : 1, eh = l->expert_hidden > 0 ? l->expert_hidden : h;
    PLM_TRY(add_matrix(s, l->ffn, h, into, err));
    PLM_TRY(add_matrix(s, h, l->ffn, 1, err));
    PLM_TRY(add_matrix(s, l->shared_ffn, h, into, err));
    PLM_TRY(add_matrix(s, h, l->shared_ffn, 1, err));
    PLM_TRY(add_matrix(s, l->expert_ffn, eh, into * l->experts, err));
    return add_matrix(s, eh, l->expert_ffn, l->experts, err);
}

static plm_status measure(const plm_arch *a, shape *s, plm_error *err)
{
    plm_params p;
    memset(s, 0, sizeof *s);
    PLM_TRY(plm_count_params(a, &p, err));
    s->params = p.total;
    for (int32_t i = 0; i < a->layers; i++) {
        const plm_layer *l = plm_arch_layer(a, i);
        PLM_TRY(add_attention(s, l, a->hidden, err));
        PLM_TRY(add_ffn(s, l, a->hidden, err));
    }
    if (s->linear > s->params) /* matrices of constructs shared between layers */
        s->linear = s->params;
    return PLM_OK;
}

/* Activations kept with one checkpoint a layer: the input of each layer, one layer's inside worked
** out anew in the backward pass (34 * hidden bytes a token and layer without flash attention's
** scores; Korthikanti et al., arXiv 2205.05198), and bf16 logits with their float32 gradient. */
static bool activations(const plm_arch *a, int64_t sequence, int64_t batch, int64_t *bytes)
{
    int64_t tokens, layer, logits, each;
    return plm_mul_i64(sequence, batch, &tokens) && plm_mul_i64(a->hidden, 2, &layer) &&
           plm_mul_i64(layer, a->layers, &each) &&
           plm_add_i64(each, 34 * (int64_t)a->hidden, &each) &&
           plm_mul_i64(a->vocab, 6, &logits) && plm_add_i64(each, logits, &each) &&
           plm_mul_i64(tokens, each, bytes);
}

static bool sum_parts(plm_train_ledger *l)
{
    const int64_t part[] = {l->weights_bytes,   l->gradient_bytes, l->master_bytes,
                            l->optimizer_bytes, l->adapter_bytes,  l->activation_bytes};
    l->total_bytes = 0;
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        if (!plm_add_i64(l->total_bytes, part[i], &l->total_bytes))
            return false;
    return true;
}

plm_status plm_train_memory(const plm_arch *a, plm_train kind, int32_t lora_rank, int64_t sequence,
                            int64_t batch, plm_train_ledger *out, plm_error *err)
{
    plm_train_ledger l = {0};
    shape s;
    bool fits;
    if (sequence < 1 || batch < 1 || sequence > TOKENS_MAX || batch > TOKENS_MAX)
        return plm_fail(err, PLM_E_INVALID,
                        "fine-tuning, sequence %lld x batch %lld: out of range; give 1 to 2^32",
                        (long long)sequence, (long long)batch);
    if (kind != PLM_TRAIN_FULL && (lora_rank < 1 || lora_rank > LORA_RANK_MAX))
        return plm_fail(err, PLM_E_INVALID, "fine-tuning, LoRA rank %d: give 1 to %d", lora_rank,
                        LORA_RANK_MAX);
    PLM_TRY(measure(a, &s, err));
    fits = activations(a, sequence, batch, &l.activation_bytes);
    l.trainable_params = s.params;
    if (kind != PLM_TRAIN_FULL)
        fits = plm_mul_i64(s.adapter_per_rank, lora_rank, &l.trainable_params) && fits;
    fits = plm_mul_i64(l.trainable_params, 2, &l.gradient_bytes) && fits;
    fits = plm_mul_i64(l.trainable_params, 4, &l.master_bytes) && fits;
    fits = plm_mul_i64(l.trainable_params, 8, &l.optimizer_bytes) && fits;
    fits = plm_mul_i64(s.params, 2, &l.weights_bytes) && fits;
    if (kind == PLM_TRAIN_QLORA)
        fits = plm_mul_i64(s.params - s.linear, 2, &l.weights_bytes) &&
               plm_add_i64(l.weights_bytes, s.nf4_bytes, &l.weights_bytes) && fits;
    if (kind != PLM_TRAIN_FULL)
        fits = plm_mul_i64(l.trainable_params, 2, &l.adapter_bytes) && fits;
    if (!fits || !sum_parts(&l))
        return plm_fail(err, PLM_E_INVALID,
                        "fine-tuning, %s: the total does not fit 63 bits; use a smaller batch",
                        a->id);
    *out = l;
    return PLM_OK;
}
