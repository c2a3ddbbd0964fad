/* Shape rules of the ops that compute; those that move rows and the links are in shape_move.c. */
#include "core/ir/shape.h"

#include "core/base/mem.h"

static plm_status by_pattern(plm_graph *g, const plm_node *n, const char *pattern,
                             const char *result, plm_value *out, plm_error *err)
{
    plm_bind b;
    plm_bind_init(&b);
    PLM_TRY(plm_bind_match(&b, g, n, pattern, err));
    return plm_bind_result(&b, g, n, result, out, err);
}

#define RULE(name, pattern, result)                                                                \
    plm_status plm_shape_##name(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)   \
    {                                                                                              \
        return by_pattern(g, n, pattern, result, out, err);                                        \
    }
RULE(linear, ".k nk ?n", ".n")
RULE(bmm, "THk Hnk", "THn")
RULE(stream_sum, "Tnh Tn", "Th")
RULE(stream_mix, "Tnh Tnn Th Tn", "Tnh")
RULE(lora_expand, "Tn Tr Anr #T", "Tn")
RULE(kv_copy, "CGd #P2", "=0")
RULE(moe_combine, "Eh #E Tk", "Th")
RULE(argmax, ".n", "#.")

/* Ops whose output has the shape of input 0. Those with weights say which shape these have. */
static const char *same_pattern(plm_op op)
{
    switch (op) {
    case PLM_OP_RMS_NORM: return ".n ?n";
    case PLM_OP_LAYER_NORM: return ".n ?n ?n";
    case PLM_OP_RMS_NORM_GATED: return ".n .n n";
    case PLM_OP_L2_NORM:
    case PLM_OP_SOFTMAX: return ".n";
    case PLM_OP_ROPE: return "THd #T ?f";
    case PLM_OP_UNARY: return ". ?p";
    default: return ".";
    }
}

/* rope_dims columns, an even number of them, are rotated, one factor for each pair. */
static plm_status check_rope(const plm_graph *g, const plm_node *n, const plm_bind *b,
                             plm_error *err)
{
    int64_t d = plm_dim_value(&g->dims, b->dim['d']);
    int64_t dims = plm_attr_int(g, n, PLM_ATTR_ROPE_DIMS, d);
    if (d < 0 || dims < 2 || dims > d || dims % 2 != 0)
        return plm_fail(err, PLM_E_INVALID, "rope_dims, %lld: must be even and within the %lld "
                        "columns of a head", (long long)dims, (long long)d);
    if (b->dim['f'] != PLM_DIM_NONE && plm_dim_value(&g->dims, b->dim['f']) != dims / 2)
        return plm_fail(err, PLM_E_INVALID, "input 2: must hold %lld factors",
                        (long long)(dims / 2));
    return PLM_OK;
}

plm_status plm_shape_same(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    plm_bind b;
    plm_bind_init(&b);
    PLM_TRY(plm_bind_match(&b, g, n, same_pattern(n->op), err));
    if (n->op == PLM_OP_ROPE)
        PLM_TRY(check_rope(g, n, &b, err));
    const plm_value *x = plm_shape_input(g, n, 0);
    out[0].rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++)
        out[0].dim[i] = x->dim[i];
    return PLM_OK;
}

/* ids say nothing of the output's type: that of the table if it holds plain floats, else bf16. */
plm_status plm_shape_embed(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    PLM_TRY(by_pattern(g, n, "#T Vh", "Th", out, err));
    if (plm_shape_is_index(out[0].dtype)) {
        plm_dtype t = plm_shape_input(g, n, 1)->dtype;
        out[0].dtype = t == PLM_DT_F32 || t == PLM_DT_F16 || t == PLM_DT_BF16 ? t : PLM_DT_BF16;
    }
    return PLM_OK;
}

/* Letter `to` = letter `from` (a constant) + add. */
static plm_status bind_sum(plm_graph *g, plm_bind *b, char to, char from, int64_t add,
                           plm_error *err)
{
    int64_t v = plm_dim_value(&g->dims, b->dim[(unsigned char)from]), sum;
    if (v < 0 || !plm_add_i64(v, add, &sum) || sum < 0)
        return plm_fail(err, PLM_E_INVALID, "a dim that must be a constant is not, or too small");
    return plm_bind_const(b, g, to, sum, err);
}

plm_status plm_shape_linear_grouped(plm_graph *g, const plm_node *n, plm_value *out,
                                    plm_error *err)
{
    plm_bind b;
    plm_bind_init(&b);
    PLM_TRY(plm_bind_match(&b, g, n, "Ek Xnk #Y ?Xn", err));
    plm_dim offsets = b.dim['Y'];
    PLM_TRY(bind_sum(g, &b, 'Y', 'X', 1, err));
    if (offsets != b.dim['Y'])
        return plm_fail(err, PLM_E_INVALID, "input 2: must hold one offset more than the experts of "
                        "input 1");
    PLM_TRY(plm_shape_agrees(g, n, PLM_ATTR_LOCAL_EXPERTS, b.dim['X'], err));
    return plm_bind_result(&b, g, n, "En", out, err);
}

plm_status plm_shape_lora_shrink(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    plm_bind b;
    plm_bind_init(&b);
    PLM_TRY(plm_bind_match(&b, g, n, "Tk Ark #T", err));
    PLM_TRY(plm_shape_agrees(g, n, PLM_ATTR_RANK, b.dim['r'], err));
    return plm_bind_result(&b, g, n, "Tr", out, err);
}

/* ---- pointwise ---- */

/* b has the trailing dims of a, or 1 for the last of them. */
plm_status plm_shape_broadcast(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    const plm_value *a = plm_shape_input(g, n, 0), *b = plm_shape_input(g, n, 1);
    if (b->rank > a->rank)
        return plm_fail(err, PLM_E_INVALID, "input 1: rank %u passes that of input 0, %u", b->rank,
                        a->rank);
    for (uint32_t i = 0; i < b->rank; i++) {
        char got[24], want[24];
        plm_dim d = a->dim[a->rank - b->rank + i];
        bool last = i + 1 == b->rank;
        if (b->dim[i] != d && !(last && plm_dim_value(&g->dims, b->dim[i]) == 1))
            return plm_fail(err, PLM_E_INVALID, "input 1, dim %u: %s, must be %s%s", i,
                            plm_shape_dim_text(g, b->dim[i], got), plm_shape_dim_text(g, d, want),
                            last ? " or 1" : "");
    }
    out[0].rank = a->rank;
    for (uint32_t i = 0; i < a->rank; i++)
        out[0].dim[i] = a->dim[i];
    return PLM_OK;
}

plm_status plm_shape_glu(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    if (plm_shape_input(g, n, 1) != NULL)
        return by_pattern(g, n, ".n .n", ".n", out, err);
    plm_bind b;
    plm_bind_init(&b);
    PLM_TRY(plm_bind_match(&b, g, n, ".m", err));
    int64_t both = plm_dim_value(&g->dims, b.dim['m']);
    if (both < 0 || both % 2 != 0)
        return plm_fail(err, PLM_E_INVALID, "input 0: gate and up in one need an even constant "
                        "last dim");
    PLM_TRY(plm_bind_const(&b, g, 'n', both / 2, err));
    return plm_bind_result(&b, g, n, ".n", out, err);
}

/* ---- attention ---- */

static bool same_presence(const plm_graph *g, const plm_node *n, uint32_t a, uint32_t b)
{
    return (plm_shape_input(g, n, a) == NULL) == (plm_shape_input(g, n, b) == NULL);
}

plm_status plm_shape_kv_write(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    if (!same_presence(g, n, 2, 3))
        return plm_fail(err, PLM_E_INVALID, "inputs 2 and 3: values and their cache go together");
    return by_pattern(g, n, "TGk CGk ?TGv ?CGv", "=1 =3", out, err);
}

/* Several query heads share a key head: the first count is a multiple of the second. */
static plm_status check_shared(const plm_graph *g, plm_dim many, plm_dim few, plm_error *err)
{
    int64_t h = plm_dim_value(&g->dims, many), k = plm_dim_value(&g->dims, few);
    if (h > 0 && k > 0 && h % k == 0)
        return PLM_OK;
    return plm_fail(err, PLM_E_INVALID, "%lld heads over %lld key heads: must be a multiple",
                    (long long)h, (long long)k);
}

/* Width of the values: of their cache, or dv leading columns of the keys (MLA's latent). */
static plm_status bind_values(plm_graph *g, const plm_node *n, plm_bind *b, plm_error *err)
{
    bool in_keys = plm_attr_int(g, n, PLM_ATTR_V_IN_K, 0) != 0;
    int64_t dv, dk = plm_dim_value(&g->dims, b->dim['k']);
    if (in_keys != (plm_shape_input(g, n, 2) == NULL))
        return plm_fail(err, PLM_E_INVALID, "input 2: values are in their cache or, with v_in_k=1, "
                        "in the keys");
    if (!in_keys)
        return plm_shape_agrees(g, n, PLM_ATTR_DV, b->dim['v'], err);
    PLM_TRY(plm_shape_need(g, n, PLM_ATTR_DV, 1, dk, &dv, err));
    return plm_bind_const(b, g, 'v', dv, err);
}

plm_status plm_shape_attention(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    plm_bind b;
    plm_bind_init(&b);
    PLM_TRY(plm_bind_match(&b, g, n, "THk CGk ?CGv ?H ?#TI", err));
    PLM_TRY(check_shared(g, b.dim['H'], b.dim['G'], err));
    PLM_TRY(plm_shape_agrees(g, n, PLM_ATTR_HEADS, b.dim['H'], err));
    PLM_TRY(plm_shape_agrees(g, n, PLM_ATTR_KV_HEADS, b.dim['G'], err));
    PLM_TRY(plm_shape_agrees(g, n, PLM_ATTR_DK, b.dim['k'], err));
    PLM_TRY(bind_values(g, n, &b, err));
    return plm_bind_result(&b, g, n, "THv", out, err);
}

plm_status plm_shape_index(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    plm_bind b;
    int64_t top_k;
    plm_bind_init(&b);
    PLM_TRY(plm_bind_match(&b, g, n, "THd C1d TH", err));
    PLM_TRY(plm_shape_agrees(g, n, PLM_ATTR_HEADS, b.dim['H'], err));
    PLM_TRY(plm_shape_agrees(g, n, PLM_ATTR_DK, b.dim['d'], err));
    PLM_TRY(plm_shape_need(g, n, PLM_ATTR_TOP_K, 1, INT32_MAX, &top_k, err));
    PLM_TRY(plm_bind_const(&b, g, 'K', top_k, err));
    return plm_bind_result(&b, g, n, "#TK", out, err);
}

plm_status plm_shape_kv_pool(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    plm_bind b;
    plm_bind_init(&b);
    PLM_TRY(plm_bind_match(&b, g, n, "Td Td Srd ?rd", err));
    PLM_TRY(plm_shape_agrees(g, n, PLM_ATTR_RATIO, b.dim['r'], err));
    return plm_bind_result(&b, g, n, "Td =2", out, err);
}

/* ---- mixture of experts ---- */

plm_status plm_shape_gate(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    plm_bind b;
    int64_t top_k;
    plm_bind_init(&b);
    PLM_TRY(plm_bind_match(&b, g, n, "TX ?X ?#TK", err));
    plm_dim given = b.dim['K'];
    int64_t experts = plm_dim_value(&g->dims, b.dim['X']);
    PLM_TRY(plm_shape_agrees(g, n, PLM_ATTR_EXPERTS, b.dim['X'], err));
    PLM_TRY(plm_shape_need(g, n, PLM_ATTR_TOP_K, 1, experts, &top_k, err));
    PLM_TRY(plm_bind_const(&b, g, 'K', top_k, err));
    if (given != PLM_DIM_NONE && given != b.dim['K'])
        return plm_fail(err, PLM_E_INVALID, "input 2: must hold top_k, %lld, experts a token",
                        (long long)top_k);
    return plm_bind_result(&b, g, n, "TK #TK", out, err);
}

/* E of a rank: T top_k local / experts. */
static plm_status share_of_pairs(plm_graph *g, plm_bind *b, int64_t local, int64_t experts,
                                 plm_error *err)
{
    int64_t top_k = plm_dim_value(&g->dims, b->dim['K']), k;
    if (top_k < 0 || !plm_mul_i64(top_k, local == experts ? 1 : local, &k))
        return plm_fail(err, PLM_E_INVALID, "input 1: top_k must be a constant");
    plm_dim pairs = plm_dim_make(&g->dims, PLM_DIM_MUL, b->dim['T'], plm_dim_const(&g->dims, k));
    b->dim['E'] = local == experts ? pairs
                                   : plm_dim_make(&g->dims, PLM_DIM_CEILDIV, pairs,
                                                  plm_dim_const(&g->dims, experts));
    return plm_shape_dim(g, b->dim['E'], err);
}

/* The rank's experts are local_experts of them, all when it is not said: its rows are that share of
** the T top_k pairs, rounded up. With all of them and T tokens that is the symbol E's value. */
plm_status plm_shape_moe_sort(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    plm_bind b;
    int64_t experts;
    plm_bind_init(&b);
    PLM_TRY(plm_bind_match(&b, g, n, "Th #TK", err));
    PLM_TRY(plm_shape_agrees(g, n, PLM_ATTR_TOP_K, b.dim['K'], err));
    PLM_TRY(plm_shape_need(g, n, PLM_ATTR_EXPERTS, 1, INT32_MAX, &experts, err));
    int64_t local = plm_attr_int(g, n, PLM_ATTR_LOCAL_EXPERTS, experts);
    if (local < 1 || local > experts)
        return plm_fail(err, PLM_E_INVALID, "local_experts, %lld: must be 1 to %lld",
                        (long long)local, (long long)experts);
    PLM_TRY(plm_bind_const(&b, g, 'Y', local + 1, err));
    PLM_TRY(share_of_pairs(g, &b, local, experts, err));
    return plm_bind_result(&b, g, n, "Eh #Y #E", out, err);
}

/* ---- recurrence ---- */

plm_status plm_shape_conv_causal(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    plm_bind b;
    plm_bind_init(&b);
    PLM_TRY(plm_bind_match(&b, g, n, "Tc cw Sct ?c", err));
    plm_dim tail = b.dim['t'];
    PLM_TRY(bind_sum(g, &b, 't', 'w', -1, err));
    if (tail != b.dim['t'])
        return plm_fail(err, PLM_E_INVALID, "input 2: must keep one column less than the taps of "
                        "input 1");
    return plm_bind_result(&b, g, n, "Tc =2", out, err);
}

/* The decay is one number a head, or one a key column (kimi delta attention). */
plm_status plm_shape_gated_delta(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    plm_bind b;
    plm_bind_init(&b);
    const plm_value *decay = plm_shape_input(g, n, 3);
    PLM_TRY(plm_bind_match(&b, g, n, decay != NULL && decay->rank == 3
                                         ? "THk THk TVv TVk TV SVkv"
                                         : "THk THk TVv TV TV SVkv", err));
    PLM_TRY(check_shared(g, b.dim['V'], b.dim['H'], err));
    return plm_bind_result(&b, g, n, "TVv =5", out, err);
}

plm_status plm_shape_ssm_scan(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err)
{
    plm_bind b;
    plm_bind_init(&b);
    PLM_TRY(plm_bind_match(&b, g, n, "THd TH TGn TGn H H SHdn", err));
    PLM_TRY(check_shared(g, b.dim['H'], b.dim['G'], err));
    return plm_bind_result(&b, g, n, "THd =6", out, err);
}
