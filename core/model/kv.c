/* kv.c - bytes of the KV cache and of recurrent state, per token and per sequence, of one rank.
**
** The cache of a rank is a short list of terms: entries of so many bytes, one for every `ratio`
** tokens, at most `cap` of them. Layers with equal ratio and cap fold into one term, so evaluating
** a length is a few multiplications and inverting it a bisection. Pure functions, thread-safe.
**
** Sources of the formulas: K and V per token 2 * kv_heads * head_dim * bytes, one latent and one
** rotary key for MLA (DeepSeek-V2, arXiv 2405.04434), window cells pad(window + ubatch)
** (llama.cpp pull requests 13194 and 14123), KV heads copied when tp exceeds them
** (transformers issue 48566), the latent copied on every rank (tt-xla issue 5861).
*/
#include "core/model/arch.h"

#include "core/base/mem.h"

#define TERMS_MAX (3 * PLM_KINDS_MAX)
#define TOKENS_TOP (INT64_C(1) << 47) /* longest sequence that plm_kv_max_tokens tries */
#define RANKS_MAX 1048576

typedef struct kv_term {
    int64_t bytes; /* of one entry, all layers of the term */
    int64_t ratio; /* tokens an entry stands for */
    int64_t cap;   /* entries kept, 0 = all */
    bool window;   /* belongs to the windowed part */
    bool ring;     /* window of a compressed layer: not part of the rate per token */
} kv_term;

typedef struct kv_shape {
    kv_term term[TERMS_MAX];
    size_t n;
    int64_t cp;
} kv_shape;

/* out += a * b; false when the result does not fit. */
static bool add_product(int64_t *out, int64_t a, int64_t b)
{
    int64_t p;
    return plm_mul_i64(a, b, &p) && plm_add_i64(*out, p, out);
}

static plm_status fail_size(const plm_arch *a, const char *what, plm_error *err)
{
    return plm_fail(err, PLM_E_INVALID,
                    "%s, %s: the size does not fit 63 bits; check the model and the token count",
                    a->id[0] != '\0' ? a->id : "model", what);
}

/* Layers of the stage, checked; ranks 0 mean 1. */
static plm_status read_options(const plm_arch *a, const plm_kv_options *o, int32_t *first,
                               int32_t *end, int64_t *tp, int64_t *cp, plm_error *err)
{
    int64_t count = o->n_layers == 0 ? (int64_t)a->layers - o->first_layer : o->n_layers;
    if (a->layers < 0 || a->layers > PLM_LAYERS_MAX || o->first_layer < 0 || count < 0 ||
        o->first_layer + count > a->layers)
        return plm_fail(err, PLM_E_INVALID,
                        "pipeline stage, layers %d + %lld: the model has %d; give others",
                        o->first_layer, (long long)count, a->layers);
    *tp = o->tp == 0 ? 1 : o->tp;
    *cp = o->cp == 0 ? 1 : o->cp;
    if (*tp < 1 || *tp > RANKS_MAX || *cp < 1 || *cp > RANKS_MAX)
        return plm_fail(err, PLM_E_INVALID,
                        "KV cache, tp %lld cp %lld: ranks are 1 to %d; correct the plan",
                        (long long)*tp, (long long)*cp, RANKS_MAX);
    if ((int)o->k < 0 || o->k >= PLM_DT_COUNT || (int)o->v < 0 || o->v >= PLM_DT_COUNT)
        return plm_fail(err, PLM_E_INVALID, "KV cache, type: not a storage type; give f16 or q8_0");
    *first = o->first_layer;
    *end = (int32_t)(o->first_layer + count);
    return PLM_OK;
}

/* Heads of a rank: split over tp, copied when tp exceeds them. */
static int64_t heads_of_rank(int64_t heads, int64_t tp)
{
    return heads <= 0 ? 0 : plm_ceil_div(heads, tp);
}

static void add_term(kv_shape *s, int64_t bytes, int64_t ratio, int64_t cap, bool window, bool ring,
                     bool *fits)
{
    if (bytes == 0)
        return;
    for (size_t i = 0; i < s->n; i++) {
        kv_term *t = &s->term[i];
        if (t->ratio == ratio && t->cap == cap && t->window == window && t->ring == ring) {
            *fits = plm_add_i64(t->bytes, bytes, &t->bytes) && *fits;
            return;
        }
    }
    s->term[s->n++] = (kv_term){bytes, ratio, cap, window, ring};
}

/* Bytes of `heads` rows of `cols` elements. "fp8" in a cache is plain E4M3, and a scale that a
** format keeps once a tensor is once a layer here, not once a token. */
static plm_status cache_bytes(plm_dtype t, int64_t heads, int64_t cols, int64_t *bytes,
                              plm_error *err)
{
    const plm_dtype_info *info = plm_dtype_get(t);
    if (t == PLM_DT_FP8 || t == PLM_DT_FP8_ROW || t == PLM_DT_FP8_BLOCK)
        t = PLM_DT_F8E4M3;
    PLM_TRY(plm_dtype_bytes(t, heads, cols, bytes, err));
    if (info->family == PLM_FAMILY_PLANAR && t != PLM_DT_F8E4M3)
        *bytes -= plm_min_i64(*bytes, info->tensor_bytes);
    return PLM_OK;
}

/* Bytes of the K and V (v = false: K alone) of one token in one layer of `heads` heads. */
static plm_status row_bytes(const plm_kv_options *o, int64_t heads, int64_t dk, int64_t dv, bool v,
                            int64_t *bytes, plm_error *err)
{
    int64_t kb = 0, vb = 0;
    PLM_TRY(cache_bytes(o->k, heads, dk, &kb, err));
    if (v)
        PLM_TRY(cache_bytes(o->v, heads, dv, &vb, err));
    if (!plm_add_i64(kb, vb, bytes))
        return plm_fail(err, PLM_E_INVALID, "KV cache, head row: too large; check head sizes");
    return PLM_OK;
}

/* Cells of a windowed layer: pad(window + slack), 0 when the engine keeps it at full length. */
static plm_status window_cells(const plm_kv_options *o, int64_t window, int64_t *cells,
                               plm_error *err)
{
    int64_t pad = o->window_pad <= 0 ? 1 : o->window_pad, sum;
    if (o->windows_full) {
        *cells = 0;
        return PLM_OK;
    }
    if (o->window_slack < 0 || !plm_add_i64(window, o->window_slack, &sum) ||
        !plm_mul_i64(plm_ceil_div(sum, pad), pad, cells))
        return plm_fail(err, PLM_E_INVALID,
                        "KV cache, window %lld with slack %lld: out of range; use smaller values",
                        (long long)window, (long long)o->window_slack);
    return PLM_OK;
}

/* Index keys of one token and layer: one head, never split over tp. */
static plm_status index_bytes(const plm_kv_options *o, const plm_layer *l, bool as_k,
                              int64_t *bytes, plm_error *err)
{
    if (as_k)
        return cache_bytes(o->k, 1, l->index_dim, bytes, err);
    *bytes = l->index_dim;
    return PLM_OK;
}

/* Terms of `layers` layers of one kind. */
static plm_status add_kind_terms(const plm_arch *a, const plm_kv_options *o, const plm_layer *l,
                                 int64_t layers, int64_t tp, kv_shape *s, plm_error *err)
{
    int64_t row = 0, index = 0, cells = 0, bytes = 0, ratio = 1;
    bool own = l->kv_shared_layer < 0, window = false, fits = true;
    switch (l->attn) {
    case PLM_ATTN_FULL:
    case PLM_ATTN_SLIDING:
    case PLM_ATTN_CHUNKED:
        PLM_TRY(row_bytes(o, heads_of_rank(l->kv_heads, tp), l->dk, l->dv, true, &row, err));
        window = l->attn != PLM_ATTN_FULL;
        if (window)
            PLM_TRY(window_cells(o, l->window, &cells, err));
        break;
    case PLM_ATTN_MLA:
        if (o->mla_expanded)
            PLM_TRY(row_bytes(o, heads_of_rank(l->heads, tp), l->dk, l->dv, true, &row, err));
        else
            PLM_TRY(row_bytes(o, 1, (int64_t)l->kv_lora + l->rope_dim, 0, false, &row, err));
        break;
    case PLM_ATTN_COMPRESSED:
        /* Entry and window hold one vector of dk that serves as key and value. */
        PLM_TRY(row_bytes(o, heads_of_rank(l->kv_heads, tp), l->dk, 0, false, &row, err));
        if (l->window > 0) {
            PLM_TRY(window_cells(o, l->window, &cells, err));
            cells = cells > 0 ? cells : l->window; /* never kept at full length */
            fits = plm_mul_i64(row, layers, &bytes);
            add_term(s, bytes, 1, cells, true, true, &fits);
        }
        own = own && l->ratio > 0;
        ratio = l->ratio > 0 ? l->ratio : 1;
        cells = 0;
        break;
    default:
        return PLM_OK;
    }
    if (l->index_dim > 0 && (o->index_cache || l->attn == PLM_ATTN_COMPRESSED))
        PLM_TRY(index_bytes(o, l, o->index_as_k || l->attn == PLM_ATTN_COMPRESSED, &index, err));
    if (own) {
        fits = plm_add_i64(row, index, &row) && plm_mul_i64(row, layers, &bytes) && fits;
        add_term(s, bytes, ratio, cells, window, false, &fits);
    }
    return fits ? PLM_OK : fail_size(a, "KV cache", err);
}

/* Layers of a stage that read caches of an earlier stage: the stage holds a copy of each. Windows of
** compressed layers, whose entries alone are shared, are not part of it. */
static plm_status add_copies(const plm_arch *a, const plm_kv_options *o, int32_t first, int32_t end,
                             int64_t tp, kv_shape *s, plm_error *err)
{
    bool held[PLM_LAYERS_MAX] = {false};
    for (int32_t i = first; i < end; i++) {
        int32_t source = plm_arch_layer(a, i)->kv_shared_layer;
        if (source < 0 || source >= first || held[source])
            continue;
        held[source] = true;
        plm_layer copy = *plm_arch_layer(a, source);
        if (copy.attn == PLM_ATTN_COMPRESSED)
            copy.window = 0;
        PLM_TRY(add_kind_terms(a, o, &copy, 1, tp, s, err));
    }
    return PLM_OK;
}

static plm_status make_shape(const plm_arch *a, const plm_kv_options *o, kv_shape *s,
                             plm_error *err)
{
    int32_t first, end, count[PLM_KINDS_MAX] = {0};
    int64_t tp;
    s->n = 0;
    PLM_TRY(read_options(a, o, &first, &end, &tp, &s->cp, err));
    for (int32_t i = first; i < end; i++)
        count[a->layer_kind[i] % PLM_KINDS_MAX]++;
    for (int32_t k = 0; k < a->n_kinds && k < PLM_KINDS_MAX; k++)
        if (count[k] > 0)
            PLM_TRY(add_kind_terms(a, o, &a->kind[k], count[k], tp, s, err));
    return add_copies(a, o, first, end, tp, s, err);
}

/* Bytes of a sequence of `tokens` tokens, both parts; false when they do not fit int64. */
static bool shape_bytes(const kv_shape *s, int64_t tokens, int64_t *full, int64_t *window)
{
    int64_t own = plm_ceil_div(tokens, s->cp);
    *full = *window = 0;
    for (size_t i = 0; i < s->n; i++) {
        const kv_term *t = &s->term[i];
        int64_t n = plm_ceil_div(own, t->ratio);
        if (t->cap > 0)
            n = plm_min_i64(n, plm_ceil_div(t->cap, s->cp));
        if (!add_product(t->window ? window : full, t->bytes, n))
            return false;
    }
    return true;
}

plm_status plm_kv_bytes_per_token(const plm_arch *a, const plm_kv_options *o, int64_t *bytes,
                                  plm_error *err)
{
    kv_shape s;
    PLM_TRY(make_shape(a, o, &s, err));
    /* Terms of unequal ratio are added over a common denominator, so that quarters of a byte from
    ** several layers are not each rounded up. */
    int64_t whole = 0, parts = 0, base = 1;
    for (size_t i = 0; i < s.n; i++) {
        const kv_term *t = &s.term[i];
        if (t->ring)
            continue;
        int64_t num = t->bytes % t->ratio;
        if (!plm_add_i64(whole, t->bytes / t->ratio, &whole))
            return fail_size(a, "KV cache", err);
        if (num == 0)
            continue;
        int64_t p, q, d;
        if (!plm_mul_i64(parts, t->ratio, &p) || !plm_mul_i64(num, base, &q) ||
            !plm_mul_i64(base, t->ratio, &d) || !plm_add_i64(p, q, &parts))
            return fail_size(a, "KV cache", err);
        base = d;
    }
    if (!plm_add_i64(whole, plm_ceil_div(parts, base), &whole))
        return fail_size(a, "KV cache", err);
    *bytes = plm_ceil_div(whole, s.cp);
    return PLM_OK;
}

plm_status plm_kv_bytes(const plm_arch *a, const plm_kv_options *o, int64_t tokens, int64_t *bytes,
                        int64_t *full_bytes, int64_t *window_bytes, plm_error *err)
{
    kv_shape s;
    int64_t full, window;
    if (tokens < 0)
        return plm_fail(err, PLM_E_INVALID, "KV cache, %lld tokens: negative; give 0 or more",
                        (long long)tokens);
    PLM_TRY(make_shape(a, o, &s, err));
    if (!shape_bytes(&s, tokens, &full, &window) || !plm_add_i64(full, window, bytes))
        return fail_size(a, "KV cache", err);
    if (full_bytes != NULL)
        *full_bytes = full;
    if (window_bytes != NULL)
        *window_bytes = window;
    return PLM_OK;
}

static bool sequence_fits(const kv_shape *s, int64_t tokens, int64_t budget)
{
    int64_t full, window, sum;
    return shape_bytes(s, tokens, &full, &window) && plm_add_i64(full, window, &sum) &&
           sum <= budget;
}

plm_status plm_kv_max_tokens(const plm_arch *a, const plm_kv_options *o, int64_t budget_bytes,
                             int64_t *tokens, plm_error *err)
{
    kv_shape s;
    PLM_TRY(make_shape(a, o, &s, err));
    if (budget_bytes < 0 || !sequence_fits(&s, 1, budget_bytes)) {
        *tokens = 0;
        return PLM_OK;
    }
    int64_t lo = 1, hi = 2;
    while (hi < TOKENS_TOP && sequence_fits(&s, hi, budget_bytes)) {
        lo = hi;
        hi *= 2;
    }
    if (hi >= TOKENS_TOP && sequence_fits(&s, TOKENS_TOP, budget_bytes)) {
        *tokens = INT64_MAX; /* nothing grows: windows or recurrent state only */
        return PLM_OK;
    }
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        if (sequence_fits(&s, mid, budget_bytes))
            lo = mid;
        else
            hi = mid;
    }
    *tokens = lo;
    return PLM_OK;
}

/* a * b * c * d, all >= 0. */
static bool product4(int64_t a, int64_t b, int64_t c, int64_t d, int64_t *out)
{
    return plm_mul_i64(a, b, out) && plm_mul_i64(*out, c, out) && plm_mul_i64(*out, d, out);
}

/* Recurrent state (f32) and conv tail (`tail` bytes an element) of one layer on one rank. q, k and v
** pass through the convolution; in Mamba-2 x, B and C do. Source: the configs and state sizes of
** Qwen3-Next, Nemotron-H and Kimi-K3 in the catalog's model records. */
static bool layer_state(const plm_layer *l, int64_t tp, int64_t tail, int64_t *state, int64_t *conv)
{
    int64_t v_heads = heads_of_rank(l->lin_v_heads, tp), channels = 0, q;
    *state = *conv = 0;
    switch (l->attn) {
    case PLM_ATTN_GATED_DELTA:
    case PLM_ATTN_KDA:
        if (!product4(v_heads, l->lin_dk, l->lin_dv, 4, state) ||
            !product4(heads_of_rank(l->lin_k_heads, tp), l->lin_dk, 2, 1, &q))
            return false;
        break;
    case PLM_ATTN_MAMBA2:
        if (!product4(v_heads, l->lin_dv, l->ssm_state, 4, state) ||
            !product4(heads_of_rank(l->ssm_groups, tp), l->ssm_state, 2, 1, &q))
            return false;
        break;
    case PLM_ATTN_SHORT_CONV: /* the tail alone, of all channels */
        q = 0;
        break;
    default:
        return true;
    }
    return product4(v_heads, l->lin_dv, 1, 1, &channels) && plm_add_i64(channels, q, &channels) &&
           product4(channels, l->conv_taps > 1 ? l->conv_taps - 1 : 0, tail, 1, conv);
}

plm_status plm_state_parts(const plm_arch *a, const plm_kv_options *o, int64_t *state_bytes,
                           int64_t *conv_bytes, plm_error *err)
{
    int32_t first, end;
    int64_t tp, cp;
    PLM_TRY(read_options(a, o, &first, &end, &tp, &cp, err));
    *state_bytes = *conv_bytes = 0;
    for (int32_t i = first; i < end; i++) {
        int64_t state, conv;
        if (!layer_state(plm_arch_layer(a, i), tp, o->tail_bytes > 0 ? o->tail_bytes : 2, &state,
                         &conv) ||
            !plm_add_i64(*state_bytes, state, state_bytes) ||
            !plm_add_i64(*conv_bytes, conv, conv_bytes))
            return fail_size(a, "recurrent state", err);
    }
    return PLM_OK;
}

plm_status plm_state_bytes(const plm_arch *a, const plm_kv_options *o, int64_t *bytes,
                           plm_error *err)
{
    int64_t conv;
    PLM_TRY(plm_state_parts(a, o, bytes, &conv, err));
    if (!plm_add_i64(*bytes, conv, bytes))
        return fail_size(a, "recurrent state", err);
    return PLM_OK;
}
