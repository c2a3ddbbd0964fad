#include "core/model/arch.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/model/fields.h"

void plm_arch_init(plm_arch *a)
{
    memset(a, 0, sizeof *a);
    a->embed_scale = 1;
    a->norm_eps = 1e-5;
    a->file_dtype = PLM_DT_COUNT;
    for (size_t i = 0; i < PLM_KINDS_MAX; i++)
        a->kind[i].kv_shared_layer = -1;
}

void plm_arch_fini(plm_arch *a)
{
    plm_free(a->rope_short);
    plm_free(a->rope_long);
    a->rope_short = NULL;
    a->rope_long = NULL;
}

static bool same_kind(const plm_layer *a, const plm_layer *b)
{
    plm_field_table t = plm_fields_layer();
    for (size_t i = 0; i < t.count; i++)
        if (plm_field_value(&t.field[i], a) != plm_field_value(&t.field[i], b))
            return false;
    t = plm_fields_rope();
    for (size_t i = 0; i < t.count; i++)
        if (plm_field_value(&t.field[i], &a->rope) != plm_field_value(&t.field[i], &b->rope))
            return false;
    return true;
}

int32_t plm_arch_add_kind(plm_arch *a, const plm_layer *k)
{
    for (int32_t i = 0; i < a->n_kinds; i++)
        if (same_kind(&a->kind[i], k))
            return i;
    if (a->n_kinds >= PLM_KINDS_MAX)
        return -1;
    a->kind[a->n_kinds] = *k;
    return a->n_kinds++;
}

/* ---- check ---- */

/* What users know a field by, where that is not the record's own name. */
static const char *public_name(const char *field)
{
    static const struct {
        const char *field, *name;
    } alias[] = {
        {"heads", "num_attention_heads"},
        {"kv_heads", "num_key_value_heads"},
        {"dk", "head_dim"},
        {"dv", "v_head_dim"},
        {"hidden", "hidden_size"},
        {"vocab", "vocab_size"},
        {"ffn", "intermediate_size"},
        {"experts", "num_experts"},
        {"top_k", "num_experts_per_tok"},
        {"expert_ffn", "moe_intermediate_size"},
        {"window", "sliding_window"},
        {"kv_lora", "kv_lora_rank"},
        {"q_lora", "q_lora_rank"},
        {"dims", "rope dimensions"},
        {"theta", "rope_theta"},
    };
    for (size_t i = 0; i < sizeof alias / sizeof *alias; i++)
        if (strcmp(alias[i].field, field) == 0)
            return alias[i].name;
    return field;
}

static plm_status bad(const plm_arch *a, const char *field, double value, const char *why,
                      plm_error *err)
{
    return plm_fail(err, PLM_E_INVALID, "bad %s %.10g, model %s: %s; correct the file",
                    public_name(field), value, a->id, why);
}

static plm_status check_ranges(const plm_arch *a, plm_field_table t, const void *base,
                               plm_error *err)
{
    for (size_t i = 0; i < t.count; i++) {
        const plm_field *f = &t.field[i];
        if (f->type > PLM_FIELD_REAL)
            continue;
        double v = plm_field_value(f, base);
        if (!(v >= f->lo && v <= f->hi)) /* written so that NaN fails */
            return bad(a, f->name, v, "out of range", err);
    }
    return PLM_OK;
}

/* Two parts of a head, one rotated; an indexer; groups of the output. */
static plm_status check_latent(const plm_arch *a, const plm_layer *k, plm_error *err)
{
    bool mla = k->attn == PLM_ATTN_MLA;
    if (mla && k->kv_lora < 1)
        return bad(a, "kv_lora", k->kv_lora, "latent attention needs a positive rank", err);
    if (mla && k->dk != k->nope + k->rope_dim)
        return bad(a, "dk", k->dk, "not qk_nope_head_dim + qk_rope_head_dim", err);
    if (mla && k->kv_shared_layer >= 0)
        return bad(a, "kv_shared_layer", k->kv_shared_layer, "latent layers share no cache", err);
    if (mla && (k->nope < 1 || k->rope_dim < 2 || k->rope_dim % 2 != 0))
        return bad(a, "rope_dim", k->rope_dim, "want a positive nope and an even rope_dim", err);
    if ((k->index_heads > 0 || k->index_top_k > 0) &&
        (k->index_heads < 1 || k->index_dim < 1 || k->index_top_k < 1))
        return bad(a, "index_top_k", k->index_top_k, "an indexer needs heads, dimension and top-k",
                   err);
    if (k->o_groups > 0 && k->heads % k->o_groups != 0)
        return bad(a, "o_groups", k->o_groups, "does not divide num_attention_heads", err);
    return PLM_OK;
}

/* Columns of all heads together, twice with a gate, must be an attribute of a node (attr.c: 2^30). */
#define HEADS_WIDTH_MAX (1 << 28)

static plm_status check_attention(const plm_arch *a, const plm_layer *k, plm_error *err)
{
    if (k->heads < 1)
        return bad(a, "heads", k->heads, "an attention layer needs at least one", err);
    if (k->kv_heads < 1)
        return bad(a, "kv_heads", k->kv_heads, "an attention layer needs at least one", err);
    if (k->heads % k->kv_heads != 0)
        return bad(a, "heads", k->heads, "not a multiple of num_key_value_heads", err);
    if (k->dk < 1)
        return bad(a, "dk", k->dk, "must be positive", err);
    if (k->dv < 1)
        return bad(a, "dv", k->dv, "must be positive", err);
    if ((int64_t)k->heads * k->dk > HEADS_WIDTH_MAX || (int64_t)k->heads * k->dv > HEADS_WIDTH_MAX)
        return bad(a, "heads", k->heads, "too many for heads of that width", err);
    if (k->rope.dims > k->dk || k->rope.dims % 2 != 0)
        return bad(a, "dims", k->rope.dims, "must be even and at most head_dim", err);
    if (k->rope.theta > 0 && k->rope.dims == 0)
        return bad(a, "theta", k->rope.theta, "no rotated dimensions", err);
    bool windowed = k->attn == PLM_ATTN_SLIDING || k->attn == PLM_ATTN_CHUNKED ||
                    k->attn == PLM_ATTN_COMPRESSED;
    if (windowed && k->window < 1)
        return bad(a, "window", k->window, "a windowed layer needs a positive window", err);
    if (k->attn != PLM_ATTN_MLA && k->dk != k->dv && (k->k_eq_v || k->out_gate))
        return bad(a, "dv", k->dv, "must be dk where keys serve as values or q's width as a gate",
                   err);
    if (k->attn == PLM_ATTN_COMPRESSED && k->dv > k->dk)
        return bad(a, "dv", k->dv, "entries hold no more columns than keys", err);
    if (k->rope.n_factors > 0 && (a->rope_short == NULL || a->rope_long == NULL))
        return bad(a, "n_factors", k->rope.n_factors, "factors without their arrays", err);
    return check_latent(a, k, err);
}

static plm_status check_recurrent(const plm_arch *a, const plm_layer *k, plm_error *err)
{
    if (k->lin_v_heads < 1)
        return bad(a, "lin_v_heads", k->lin_v_heads, "a recurrent layer needs at least one", err);
    if (k->lin_dv < 1)
        return bad(a, "lin_dv", k->lin_dv, "must be positive", err);
    if (k->attn == PLM_ATTN_SHORT_CONV)
        return PLM_OK;
    if (k->attn == PLM_ATTN_MAMBA2) {
        if (k->ssm_groups < 1 || k->lin_v_heads % k->ssm_groups != 0)
            return bad(a, "ssm_groups", k->ssm_groups, "must divide the heads", err);
        if (k->ssm_state < 1)
            return bad(a, "ssm_state", k->ssm_state, "must be positive", err);
        return PLM_OK;
    }
    if (k->lin_k_heads < 1 || k->lin_v_heads % k->lin_k_heads != 0)
        return bad(a, "lin_k_heads", k->lin_k_heads, "must divide the value heads", err);
    if (k->lin_dk < 1)
        return bad(a, "lin_dk", k->lin_dk, "must be positive", err);
    if ((int64_t)k->lin_v_heads * k->lin_dk > HEADS_WIDTH_MAX ||
        (int64_t)k->lin_v_heads * k->lin_dv > HEADS_WIDTH_MAX)
        return bad(a, "lin_v_heads", k->lin_v_heads, "too many for heads of that width", err);
    return PLM_OK;
}

static plm_status check_ffn(const plm_arch *a, const plm_layer *k, plm_error *err)
{
    if ((k->ffn > 0 || k->experts > 0) && k->act == PLM_FN_NONE)
        return bad(a, "act", 0, "a feed-forward half needs an activation", err);
    if (k->act == PLM_FN_XIELU && (k->glu || k->experts > 0))
        return bad(a, "act", (double)k->act, "xielu is for dense halves without a gate", err);
    bool two = k->act == PLM_FN_SWIGLU_OAI || k->act == PLM_FN_SITU;
    if ((two && !k->glu) || k->act == PLM_FN_SOFTMAX || k->act == PLM_FN_SOFTMAX_TOPK)
        return bad(a, "act", (double)k->act, "no activation of this kind of feed-forward half", err);
    if (k->experts == 0) {
        if (k->top_k > 0 || k->shared_ffn > 0 || k->shared_experts > 0)
            return bad(a, "experts", 0, "expert fields without experts", err);
        return PLM_OK;
    }
    if (k->top_k < 1 || k->top_k > k->experts)
        return bad(a, "top_k", k->top_k, "must be within 1 and num_experts", err);
    if (k->expert_ffn < 1)
        return bad(a, "expert_ffn", k->expert_ffn, "must be positive", err);
    if ((k->shared_experts > 0) != (k->shared_ffn > 0))
        return bad(a, "shared_ffn", k->shared_ffn, "shared experts and their width go together",
                   err);
    if (k->n_group > 1 &&
        (k->experts % k->n_group != 0 || k->topk_group < 1 || k->topk_group > k->n_group))
        return bad(a, "n_group", k->n_group, "must divide num_experts, with topk_group inside it",
                   err);
    if (k->router_fn != PLM_FN_SOFTMAX && k->router_fn != PLM_FN_SOFTMAX_TOPK &&
        k->router_fn != PLM_FN_SIGMOID && k->router_fn != PLM_FN_SQRT_SOFTPLUS)
        return bad(a, "router_fn", (double)k->router_fn, "a router needs a function of its own",
                   err);
    return PLM_OK;
}

static plm_status check_kind(const plm_arch *a, const plm_layer *k, plm_error *err)
{
    PLM_TRY(check_ranges(a, plm_fields_layer(), k, err));
    PLM_TRY(check_ranges(a, plm_fields_rope(), &k->rope, err));
    if ((unsigned)k->attn >= PLM_ATTN_COUNT || (unsigned)k->act >= PLM_FN_COUNT ||
        (unsigned)k->router_fn >= PLM_FN_COUNT || (unsigned)k->qk_norm > PLM_QK_L2 ||
        (unsigned)k->rope.scaling >= PLM_ROPE_SCALING_COUNT)
        return bad(a, "attn", (double)k->attn, "unknown", err);
    if (k->attn == PLM_ATTN_GATED_DELTA || k->attn == PLM_ATTN_KDA ||
        k->attn == PLM_ATTN_MAMBA2 || k->attn == PLM_ATTN_SHORT_CONV)
        PLM_TRY(check_recurrent(a, k, err));
    else if (k->attn != PLM_ATTN_NONE)
        PLM_TRY(check_attention(a, k, err));
    if (k->norms != 7 && (k->norms < 1 || k->norms > 4))
        return bad(a, "norms", k->norms, "want 1 to 4, or 7 a layer", err);
    return check_ffn(a, k, err);
}

/* Upper estimate of a layer's elements, in double so that nothing wraps: all matrices of all kinds
** are bounded by hidden x the sum of the widths they join. */
static double layer_elements(const plm_arch *a, const plm_layer *k)
{
    double h = a->hidden, attn = 2.0 * k->heads * (k->dk + (double)k->dv) + k->q_lora + k->kv_lora +
                                 4.0 * k->lin_v_heads * (k->lin_dk + (double)k->lin_dv) +
                                 k->index_heads * (double)k->index_dim +
                                 2.0 * k->ssm_groups * k->ssm_state;
    double latent = ((double)k->q_lora + k->kv_lora + k->o_lora * (double)(k->o_groups + 1)) *
                    k->heads * (k->dk + (double)k->dv + 1);
    double wide = k->expert_hidden > 0 ? k->expert_hidden : h;
    return h * attn + latent + 3 * h * (k->ffn + (double)k->shared_ffn) +
           k->experts * (3 * wide * k->expert_ffn + h);
}

static plm_status check_size(const plm_arch *a, plm_error *err)
{
    double total = 2.0 * a->vocab * a->hidden + (double)a->pos_embed * a->hidden;
    for (int32_t i = 0; i < a->layers; i++)
        total += layer_elements(a, plm_arch_layer(a, i));
    if (total > 1e17) /* times 8 bytes still fits in int64 */
        return bad(a, "hidden", a->hidden, "the model has more than 1e17 parameters", err);
    return PLM_OK;
}

plm_status plm_arch_check(const plm_arch *a, plm_error *err)
{
    if (a->layers < 1 || a->layers > PLM_LAYERS_MAX)
        return bad(a, "num_hidden_layers", a->layers, "want 1 to 1024", err);
    if (a->n_kinds < 1 || a->n_kinds > PLM_KINDS_MAX)
        return bad(a, "kinds of layer", a->n_kinds, "want 1 to 64", err);
    PLM_TRY(check_ranges(a, plm_fields_arch(), a, err));
    for (int32_t i = 0; i < a->n_kinds; i++)
        PLM_TRY(check_kind(a, &a->kind[i], err));
    for (int32_t i = 0; i < a->layers; i++) {
        if (a->layer_kind[i] >= a->n_kinds)
            return bad(a, "layer_kind", a->layer_kind[i], "no such kind", err);
        if (plm_arch_layer(a, i)->kv_shared_layer >= i)
            return bad(a, "kv_shared_layer", plm_arch_layer(a, i)->kv_shared_layer,
                       "must be an earlier layer", err);
    }
    if (a->mtp_layers > 0 && (a->mtp_kind < 0 || a->mtp_kind >= a->n_kinds))
        return bad(a, "mtp_kind", a->mtp_kind, "no such kind", err);
    return check_size(a, err);
}
