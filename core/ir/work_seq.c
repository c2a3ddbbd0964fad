/* work_seq.c - work rules of ops that depend on segments, experts or state: attention, caches,
** mixture of experts, recurrences. */
#include <math.h>

#include "core/ir/fn.h"
#include "core/ir/rules.h"
#include "core/ir/work_common.h"

/* ---- sums over positions ---- */

static double triangle(double n)
{
    return n > 0 ? n * (n + 1.0) / 2.0 : 0.0;
}

/* sum over j = 1 .. n of min(j, limit); limit 0 = none. */
static double sum_capped(double n, double limit)
{
    if (limit <= 0 || n <= limit)
        return triangle(n);
    return triangle(limit) + (n - limit) * limit;
}

/* sum over j = 1 .. n of min((j - 1) mod chunk + 1, limit). */
static double sum_chunked(double n, double chunk, double limit)
{
    double whole = floor(n / chunk);
    return whole * sum_capped(chunk, limit) + sum_capped(n - whole * chunk, limit);
}

/* sum over j = 1 .. n of min(floor(j / ratio), limit). */
static double sum_entries(double n, double ratio, double limit)
{
    double last = n;
    if (n <= 0)
        return 0.0;
    if (limit > 0 && n > ratio * (limit + 1.0) - 1.0)
        last = ratio * (limit + 1.0) - 1.0; /* floor(j / ratio) <= limit up to here */
    double a = floor(last / ratio), rest = last - a * ratio;
    return ratio * triangle(a - 1.0) + a * (rest + 1.0) + (n - last) * limit;
}

/* The tighter of two limits, 0 = none. */
static double tighter(double a, double b)
{
    return a <= 0 ? b : b <= 0 ? a : fmin(a, b);
}

/* The same when a cache entry stands for `ratio` tokens and is seen from its last one on: the window
** and the chunk count tokens, top_k entries. */
static double entry_sum(const plm_attention_shape *s, double n)
{
    if (s->chunk > 0)
        return sum_chunked(n, s->chunk, s->window) / s->ratio;
    if (s->window <= 0)
        return sum_entries(n, s->ratio, s->top_k);
    double sum = sum_entries(n, s->ratio, 0);
    if (n > s->window)
        sum -= sum_entries(n - s->window, s->ratio, 0);
    return s->top_k > 0 ? fmin(sum, n * s->top_k) : sum;
}

/* Keys seen by the queries at positions 0 .. n-1 together, each causal. */
static double causal_sum(const plm_attention_shape *s, double n)
{
    if (s->ratio > 1)
        return entry_sum(s, n);
    double limit = tighter(s->window, s->top_k);
    return s->chunk > 0 ? sum_chunked(n, s->chunk, limit) : sum_capped(n, limit);
}

double plm_attention_pairs(const plm_attention_shape *s, double q, double c)
{
    if (s->causal || s->chunk > 0 || s->ratio > 1)
        return causal_sum(s, c + q) - causal_sum(s, c);
    /* Every key of the sequence, less those that fell out of the window. */
    double all = q * (c + q);
    if (s->window > 0)
        all -= triangle(c + q - s->window) - triangle(c - s->window);
    return s->top_k > 0 ? fmin(all, q * s->top_k) : all;
}

double plm_attention_keys(const plm_attention_shape *s, double q, double c)
{
    double end = c + q, first = 0.0; /* positions first .. end-1 are in reach of one of the queries */
    if (s->chunk > 0)
        first = floor(c / s->chunk) * s->chunk;
    if (s->window > 0)
        first = fmax(first, c + 1.0 - s->window);
    double keys = s->ratio > 1 ? floor(end / s->ratio) - floor(first / s->ratio) : end - first;
    return s->top_k > 0 ? fmin(keys, q * s->top_k) : keys;
}

void plm_attention_add(const plm_attention_shape *s, const plm_segment *seg, plm_work *w)
{
    double q = (double)seg->q_len, c = (double)seg->kv_len, count = (double)seg->count;
    double pairs = plm_attention_pairs(s, q, c) * count;
    w->tensor_flop += s->flop_per_pair * pairs;
    w->vector_flop += s->vector_per_pair * pairs;
    w->exp += s->exp_per_pair * pairs;
    w->kv_read_bytes += s->key_bytes * plm_attention_keys(s, q, c) * count;
    w->groups += count;
    w->m += q * count;
}

/* ---- attention ---- */

/* Bytes of one cache slot: `heads` rows of `width` elements. */
static double slot_bytes(const plm_graph *g, plm_value_id cache)
{
    const plm_value *x = &g->values[cache];
    int64_t heads = x->rank > 1 ? plm_dim_value(&g->dims, x->dim[1]) : 1;
    int64_t width = x->rank > 2 ? plm_dim_value(&g->dims, x->dim[2]) : 1, bytes = 0;
    if (heads < 0 || width < 0)
        return 0.0;
    if (plm_dtype_bytes(x->dtype, heads, width, &bytes, NULL) != PLM_OK)
        return (double)heads * (double)width * plm_dtype_bits(x->dtype) / 8.0;
    return (double)bytes;
}

static double const_dim(const plm_graph *g, plm_value_id v, uint32_t i)
{
    const plm_value *x = &g->values[v];
    int64_t d = i < x->rank ? plm_dim_value(&g->dims, x->dim[i]) : -1;
    return d > 0 ? (double)d : 0.0;
}

static double attr_or(const plm_graph *g, const plm_node *n, plm_attr_key key, double otherwise)
{
    int64_t v = plm_attr_int(g, n, key, 0);
    return v > 0 ? (double)v : otherwise;
}

/* FLOP 2 H pairs (dk + dv), one exp a score (hw_facts c.1); tanh of a softcap is one more. */
static void resolve_attention(const plm_graph *g, const plm_node *n, plm_attention_shape *s)
{
    plm_value_id k = n->in[1], v = plm_work_in(n, 2);
    bool v_in_k = plm_attr_int(g, n, PLM_ATTR_V_IN_K, 0) != 0;
    s->heads = attr_or(g, n, PLM_ATTR_HEADS, const_dim(g, n->in[0], 1));
    s->dk = attr_or(g, n, PLM_ATTR_DK, const_dim(g, n->in[0], 2));
    s->dv = attr_or(g, n, PLM_ATTR_DV, v != PLM_NONE ? const_dim(g, v, 2) : s->dk);
    s->window = attr_or(g, n, PLM_ATTR_WINDOW, 0);
    s->chunk = attr_or(g, n, PLM_ATTR_CHUNK, 0);
    s->top_k = attr_or(g, n, PLM_ATTR_SPARSE_TOP_K, 0);
    s->ratio = attr_or(g, n, PLM_ATTR_RATIO, 0);
    s->causal = plm_attr_int(g, n, PLM_ATTR_CAUSAL, 1) != 0;
    s->flop_per_pair = 2.0 * s->heads * (s->dk + s->dv);
    s->exp_per_pair = s->heads;
    if (plm_attr_real(g, n, PLM_ATTR_SOFTCAP, 0.0) > 0)
        s->exp_per_pair += s->heads;
    s->key_bytes = slot_bytes(g, k) + (v != PLM_NONE && !v_in_k ? slot_bytes(g, v) : 0.0);
}

/* Lightning indexer: one dot product a head, relu, weight and add; every key is scored. How many tokens
** a key stands for is said by the op that wrote it. */
static void resolve_index(const plm_graph *g, const plm_node *n, plm_attention_shape *s)
{
    s->heads = attr_or(g, n, PLM_ATTR_HEADS, const_dim(g, n->in[0], 1));
    s->dk = attr_or(g, n, PLM_ATTR_DK, const_dim(g, n->in[0], 2));
    plm_node_id writer = g->values[n->in[1]].producer;
    if (writer != PLM_NONE)
        s->ratio = attr_or(g, &g->nodes[writer], PLM_ATTR_RATIO, 0);
    s->causal = true;
    s->flop_per_pair = 2.0 * s->heads * s->dk;
    s->vector_per_pair = 3.0 * s->heads;
    s->key_bytes = slot_bytes(g, n->in[1]);
}

void plm_attention_resolve(const plm_graph *g, const plm_node *n, plm_attention_shape *s)
{
    *s = (plm_attention_shape){0};
    if (n->op == PLM_OP_INDEX)
        resolve_index(g, n, s);
    else
        resolve_attention(g, n, s);
}

/* m: mean new tokens of a sequence, n: mean distinct keys, k: key width, groups: sequences. */
static void attend(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                   const plm_batch *b, plm_work *w)
{
    plm_attention_shape s;
    plm_attention_resolve(g, n, &s);
    for (uint32_t i = 0; i < n->n_in; i++)
        plm_work_read(g, n, i, dim_values, w);
    plm_work_write(g, n, dim_values, w);
    for (uint32_t i = 0; i < b->n_seg; i++)
        plm_attention_add(&s, &b->seg[i], w);
    if (w->groups > 0)
        w->m /= w->groups;
    if (w->groups > 0 && s.key_bytes > 0)
        w->n = w->kv_read_bytes / (s.key_bytes * w->groups);
    w->k = s.dk;
    w->launches = n->op == PLM_OP_INDEX ? 2 : 1;
    w->weight_dtype = PLM_DT_COUNT;
    w->act_dtype = g->values[n->in[0]].dtype;
}

void plm_work_attention(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                        const plm_batch *b, plm_work *w)
{
    attend(g, n, dim_values, b, w);
}

void plm_work_index(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                    const plm_batch *b, plm_work *w)
{
    attend(g, n, dim_values, b, w);
}

/* ---- caches ---- */

static void no_gemm(const plm_graph *g, const plm_node *n, plm_work *w)
{
    w->launches = 1;
    w->groups = 1;
    w->weight_dtype = PLM_DT_COUNT;
    w->act_dtype = g->values[n->in[0]].dtype;
}

/* k[T,G,dk] kcache v? vcache?: each token fills one slot, or a ratio-th of one. */
void plm_work_kv_write(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                       const plm_batch *b, plm_work *w)
{
    double tokens = plm_work_dim(g, n->in[0], 0, dim_values);
    double ratio = attr_or(g, n, PLM_ATTR_RATIO, 1);
    (void)b;
    no_gemm(g, n, w);
    for (uint32_t i = 0; i < n->n_in; i += 2)
        plm_work_read(g, n, i, dim_values, w);
    for (uint32_t i = 1; i < n->n_in; i += 2)
        if (plm_work_in(n, i) != PLM_NONE)
            w->kv_write_bytes += tokens * slot_bytes(g, n->in[i]) / ratio;
}

void plm_work_kv_copy(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                      const plm_batch *b, plm_work *w)
{
    double pairs = plm_work_dim(g, n->in[1], 0, dim_values);
    (void)b;
    no_gemm(g, n, w);
    plm_work_read(g, n, 1, dim_values, w);
    w->kv_read_bytes = w->kv_write_bytes = pairs * slot_bytes(g, n->in[0]);
}

/* A state is read and written once a step. */
static void touch_state(const plm_graph *g, plm_value_id state, const int64_t *dim_values,
                        plm_work *w)
{
    w->state_bytes += 2.0 * plm_work_bytes(g, state, dim_values);
}

static void read_all(const plm_graph *g, const plm_node *n, const int64_t *dim_values, plm_work *w)
{
    no_gemm(g, n, w);
    for (uint32_t i = 0; i < n->n_in; i++)
        plm_work_read(g, n, i, dim_values, w);
    plm_work_write(g, n, dim_values, w);
}

/* Softmax of the gate and a weighted sum: one exp and 3 FLOP an element. */
void plm_work_kv_pool(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                      const plm_batch *b, plm_work *w)
{
    double elements = plm_work_elements(g, n->in[0], dim_values);
    (void)b;
    read_all(g, n, dim_values, w);
    touch_state(g, n->in[2], dim_values, w);
    w->exp = elements;
    w->vector_flop = 3.0 * elements;
}

/* ---- mixture of experts ---- */

/* Scores, and one comparison an expert for the choice. The chosen weights are few. */
void plm_work_gate(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                   const plm_batch *b, plm_work *w)
{
    double logits = plm_work_elements(g, n->in[0], dim_values);
    double chosen = plm_work_elements(g, n->out[0], dim_values);
    int64_t fn = plm_attr_int(g, n, PLM_ATTR_FN, PLM_FN_SOFTMAX);
    (void)b;
    read_all(g, n, dim_values, w);
    plm_work_fn_add(fn, fn == PLM_FN_SOFTMAX_TOPK ? chosen : logits, w);
    w->vector_flop += logits;
    /* Unfused: scores, choice, gather of the weights; then bias, renormalisation (sum, divide), scale. */
    w->launches = 3 + (plm_work_in(n, 1) != PLM_NONE) +
                  2 * (plm_attr_int(g, n, PLM_ATTR_RENORM, 0) != 0) +
                  (plm_attr_real(g, n, PLM_ATTR_SCALE, 1.0) != 1.0);
}

/* Histogram with prefix sum, then the rows. */
void plm_work_moe_sort(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                       const plm_batch *b, plm_work *w)
{
    (void)b;
    read_all(g, n, dim_values, w);
    w->launches = 2;
}

void plm_work_moe_combine(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                          const plm_batch *b, plm_work *w)
{
    (void)b;
    read_all(g, n, dim_values, w);
    w->vector_flop = 2.0 * plm_work_elements(g, n->in[0], dim_values);
}

double plm_skewed_experts(double experts, double k, double t, double shape)
{
    if (!(shape > 0.0) || t <= 1.0 || k >= experts)
        return plm_distinct_experts(experts, k, t);
    double mean = (t - 1.0) * k / experts;
    return k + (experts - k) * (1.0 - pow(1.0 + mean / shape, -shape));
}

double plm_distinct_experts(double experts, double k, double t)
{
    if (experts <= 0 || k <= 0 || t <= 0)
        return 0.0;
    if (k >= experts)
        return experts;
    return -experts * expm1(t * log1p(-k / experts));
}

/* x[E,k] w[X,n,k]: the rows of this rank meet an expected number of its X experts; each that is hit
** is read once. E rows of X local experts out of `experts` with top_k a token come from
** E experts / (top_k X) tokens of the whole group. The busiest of several ranks has `imbalance` times
** the mean rows. */
void plm_work_linear_grouped(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                             const plm_batch *b, plm_work *w)
{
    plm_value_id weight = n->in[1], bias = plm_work_in(n, 3);
    double local = plm_work_dim(g, weight, 0, dim_values);
    double experts = attr_or(g, n, PLM_ATTR_EXPERTS, local);
    double top_k = fmin(attr_or(g, n, PLM_ATTR_TOP_K, 1), experts);
    double rows = plm_work_dim(g, n->in[0], 0, dim_values);
    double load = b->imbalance > 1.0 && local < experts ? b->imbalance : 1.0;
    double hit = 0.0;
    no_gemm(g, n, w);
    plm_work_read(g, n, 0, dim_values, w);
    plm_work_read(g, n, 2, dim_values, w);
    plm_work_write(g, n, dim_values, w);
    if (local > 0 && rows > 0)
        hit = plm_distinct_experts(experts, top_k, rows * load * experts / (top_k * local)) * local /
              experts;
    hit = fmin(hit, rows * load); /* never more experts than rows */
    w->n = plm_work_dim(g, weight, 1, dim_values);
    w->k = plm_work_dim(g, weight, 2, dim_values);
    w->groups = hit;
    w->group_share = local > 0 ? hit / local : 0.0;
    w->m = hit > 0 ? rows * load / hit : 0.0;
    w->act_read_bytes *= load;
    w->act_write_bytes *= load;
    w->tensor_flop = 2.0 * rows * load * w->n * w->k;
    if (local > 0)
        w->weight_bytes = plm_work_bytes(g, weight, dim_values) * hit / local;
    if (bias != PLM_NONE && local > 0) {
        w->weight_bytes += plm_work_bytes(g, bias, dim_values) * hit / local;
        w->vector_flop = rows * load * w->n;
    }
    w->weight_dtype = g->values[weight].dtype;
}

/* ---- recurrence ---- */

/* x[T,c] w[c,taps]: 2 taps FLOP an element, then fn. */
void plm_work_conv_causal(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                          const plm_batch *b, plm_work *w)
{
    double elements = plm_work_elements(g, n->in[0], dim_values);
    (void)b;
    read_all(g, n, dim_values, w);
    touch_state(g, n->in[2], dim_values, w);
    w->vector_flop = 2.0 * elements * plm_work_dim(g, n->in[1], 1, dim_values);
    plm_work_fn_add(plm_attr_int(g, n, PLM_ATTR_FN, PLM_FN_NONE), elements, w);
}

/* Pairs of tokens, each with itself and those before it in its chunk; 0 for single tokens, which take
** the recurrent form. */
static double chunk_pairs(double q, double chunk)
{
    if (q <= 1 || chunk <= 1)
        return 0.0;
    double whole = floor(q / chunk);
    return whole * triangle(chunk) + triangle(q - whole * chunk);
}

/* Delta rule by token and head: S^T k, rank-one update, S^T q are 2 dk dv FLOP each, decay dk dv. The
** chunked form adds products inside the chunk: 2 (2 dk + 2 dv) a pair of its tokens. Source: Gated
** DeltaNet, arXiv 2412.06464, section 3. */
void plm_work_gated_delta(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                          const plm_batch *b, plm_work *w)
{
    plm_value_id v = n->in[2], decay = n->in[3];
    double tokens = plm_work_dim(g, v, 0, dim_values), heads = plm_work_dim(g, v, 1, dim_values);
    double dv = plm_work_dim(g, v, 2, dim_values), dk = plm_work_dim(g, n->in[0], 2, dim_values);
    double chunk = attr_or(g, n, PLM_ATTR_CHUNK, 0), pairs = 0.0;
    read_all(g, n, dim_values, w);
    touch_state(g, n->in[5], dim_values, w);
    for (uint32_t i = 0; i < b->n_seg; i++)
        pairs += chunk_pairs((double)b->seg[i].q_len, chunk) * (double)b->seg[i].count;
    w->tensor_flop = heads * (6.0 * tokens * dk * dv + 4.0 * pairs * (dk + dv));
    w->vector_flop = tokens * heads * dk * dv;
    w->exp = plm_work_elements(g, decay, dim_values);
}

/* Mamba-2 by token and head: S = decay S + (dt x) b^T is 3 d n, S c is 2 d n; one exp for the decay.
** Source: arXiv 2405.21060. */
void plm_work_ssm_scan(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                       const plm_batch *b, plm_work *w)
{
    plm_value_id x = n->in[0];
    double tokens = plm_work_dim(g, x, 0, dim_values), heads = plm_work_dim(g, x, 1, dim_values);
    double d = plm_work_dim(g, x, 2, dim_values), state = plm_work_dim(g, n->in[2], 2, dim_values);
    double chunk = attr_or(g, n, PLM_ATTR_CHUNK, 0), pairs = 0.0;
    read_all(g, n, dim_values, w);
    touch_state(g, n->in[6], dim_values, w);
    for (uint32_t i = 0; i < b->n_seg; i++)
        pairs += chunk_pairs((double)b->seg[i].q_len, chunk) * (double)b->seg[i].count;
    w->tensor_flop = heads * (4.0 * tokens * d * state + 2.0 * pairs * (d + state));
    w->vector_flop = tokens * heads * d * state;
    w->exp = tokens * heads;
}
