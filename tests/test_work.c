/* Work rules against hand counts, published vectors (hw_facts c.1, serving_facts S13) and plain loops
** over positions. */
#include "core/ir/fn.h"
#include "core/ir/op.h"
#include "core/ir/work.h"
#include "tests/support.h"

typedef struct bench {
    plm_graph g;
    plm_dim T, S, C, E;
} bench;

static void open_bench(bench *b)
{
    plm_graph_init(&b->g);
    b->T = plm_dim_sym(&b->g.dims, PLM_SYM_T);
    b->S = plm_dim_sym(&b->g.dims, PLM_SYM_S);
    b->C = plm_dim_sym(&b->g.dims, PLM_SYM_C);
    b->E = plm_dim_sym(&b->g.dims, PLM_SYM_E);
}

static plm_dim k(bench *b, int64_t value)
{
    return plm_dim_const(&b->g.dims, value);
}

static plm_value_id value(bench *b, plm_value_kind kind, plm_dtype t, uint32_t rank,
                          const plm_dim *dim)
{
    static int serial;
    char name[16];
    snprintf(name, sizeof name, "v%d", serial++);
    return plm_graph_value(&b->g, kind, kind == PLM_VALUE_STATE ? PLM_ROLE_KV : PLM_ROLE_NONE, t,
                           name, rank, dim);
}

#define VALUE(b, kind, t, ...)                                                                     \
    value(b, PLM_VALUE_##kind, PLM_DT_##t,                                                         \
          (uint32_t)(sizeof((plm_dim[]){__VA_ARGS__}) / sizeof(plm_dim)), (plm_dim[]){__VA_ARGS__})

/* Work of the newest node for one kind of sequence. */
static plm_work work_of(bench *b, int64_t q, int64_t c, int64_t count, int64_t top_k)
{
    plm_segment seg = {q, c, count};
    plm_batch batch = {&seg, 1, -1, 0};
    int64_t sym[PLM_SYM_COUNT], dims[256];
    assert_int_equal(b->g.error.code, PLM_OK);
    assert_true(b->g.n_nodes > 0 && b->g.dims.count < 256);
    plm_batch_symbols(&batch, top_k, sym);
    plm_dims_eval(&b->g.dims, sym, dims);
    const plm_node *n = &b->g.nodes[b->g.n_nodes - 1];
    plm_work w = {.weight_dtype = PLM_DT_COUNT};
    plm_op_get(n->op)->work(&b->g, n, dims, &batch, &w);
    return w;
}

static plm_work linear_work(plm_dtype t, int64_t rows, int64_t n, int64_t cols)
{
    bench b;
    open_bench(&b);
    plm_value_id x = VALUE(&b, INPUT, BF16, b.T, k(&b, cols));
    plm_value_id w = value(&b, PLM_VALUE_WEIGHT, t, 2, (plm_dim[]){k(&b, n), k(&b, cols)});
    plm_node_begin(&b.g, PLM_OP_LINEAR);
    plm_node_in(&b.g, x);
    plm_node_in(&b.g, w);
    plm_node_end(&b.g, PLM_DT_COUNT);
    plm_work out = work_of(&b, rows, 0, 1, 0);
    plm_graph_fini(&b.g);
    return out;
}

static void linear_counts_flop_and_bytes(void **state)
{
    (void)state;
    plm_work w = linear_work(PLM_DT_BF16, 7, 4096, 14336);
    assert_close(w.tensor_flop, 2.0 * 7 * 4096 * 14336, 0, 0);
    assert_close(w.weight_bytes, 117440512.0, 0, 0);
    assert_close(w.act_read_bytes, 7.0 * 14336 * 2, 0, 0);
    assert_close(w.act_write_bytes, 7.0 * 4096 * 2, 0, 0);
    assert_close(w.m, 7, 0, 0);
    assert_close(w.n, 4096, 0, 0);
    assert_close(w.k, 14336, 0, 0);
    assert_int_equal(w.launches, 1);
    /* Block sizes of hw_facts g.4: 256 numbers of q4_k in 144 bytes, 32 of q8_0 in 34. */
    assert_close(linear_work(PLM_DT_Q4_K, 1, 4096, 4096).weight_bytes, 4096.0 * 16 * 144, 0, 0);
    assert_close(linear_work(PLM_DT_Q8_0, 1, 4096, 4096).weight_bytes, 4096.0 * 128 * 34, 0, 0);
    /* fp8 by 128 x 128 blocks: a float32 scale each. */
    assert_close(linear_work(PLM_DT_FP8_BLOCK, 1, 4096, 4096).weight_bytes,
                 16777216.0 + 32 * 32 * 4, 0, 0);
}

/* Attention node: 0 of window, chunk, top_k, ratio = none. */
static plm_work attention_work(plm_dtype kv, int64_t heads, int64_t kv_heads, int64_t dk, int64_t dv,
                               bool v_in_k, int64_t window, int64_t q, int64_t c, int64_t count)
{
    bench b;
    open_bench(&b);
    plm_value_id x = VALUE(&b, INPUT, BF16, b.T, k(&b, heads), k(&b, dk));
    plm_value_id kc = value(&b, PLM_VALUE_STATE, kv, 3, (plm_dim[]){b.C, k(&b, kv_heads), k(&b, dk)});
    plm_value_id vc = PLM_NONE;
    if (!v_in_k)
        vc = value(&b, PLM_VALUE_STATE, kv, 3, (plm_dim[]){b.C, k(&b, kv_heads), k(&b, dv)});
    plm_node_begin(&b.g, PLM_OP_ATTENTION);
    plm_node_in(&b.g, x);
    plm_node_in(&b.g, kc);
    plm_node_in(&b.g, vc);
    plm_node_int(&b.g, PLM_ATTR_HEADS, heads);
    plm_node_int(&b.g, PLM_ATTR_KV_HEADS, kv_heads);
    plm_node_int(&b.g, PLM_ATTR_DK, dk);
    plm_node_int(&b.g, PLM_ATTR_DV, dv);
    plm_node_int(&b.g, PLM_ATTR_WINDOW, window);
    plm_node_int(&b.g, PLM_ATTR_CAUSAL, 1);
    plm_node_int(&b.g, PLM_ATTR_V_IN_K, v_in_k);
    plm_node_end(&b.g, PLM_DT_COUNT);
    plm_work w = work_of(&b, q, c, count, 0);
    plm_graph_fini(&b.g);
    return w;
}

/* Four streams of 4096 columns, three tokens: each array once; a weight times each column of a stream,
** and of the half's output. */
static void streams_move_each_array_once(void **state)
{
    (void)state;
    bench b;
    open_bench(&b);
    plm_value_id x = VALUE(&b, INPUT, BF16, b.T, k(&b, 4), k(&b, 4096));
    plm_value_id w = VALUE(&b, INPUT, BF16, b.T, k(&b, 4));
    plm_node_begin(&b.g, PLM_OP_STREAM_SUM);
    plm_node_in(&b.g, x);
    plm_node_in(&b.g, w);
    plm_value_id y = plm_node_end(&b.g, PLM_DT_COUNT);
    plm_work sum = work_of(&b, 3, 0, 1, 0);
    assert_close(sum.vector_flop, 2.0 * 3 * 4 * 4096, 0, 0);
    assert_close(sum.act_read_bytes, 2.0 * 3 * (4 * 4096 + 4), 0, 0);
    assert_close(sum.act_write_bytes, 2.0 * 3 * 4096, 0, 0);
    const plm_value_id in[] = {x, VALUE(&b, INPUT, BF16, b.T, k(&b, 4), k(&b, 4)), y, w};
    plm_node_begin(&b.g, PLM_OP_STREAM_MIX);
    for (size_t i = 0; i < 4; i++)
        plm_node_in(&b.g, in[i]);
    plm_node_end(&b.g, PLM_DT_COUNT);
    plm_work mix = work_of(&b, 3, 0, 1, 0);
    assert_close(mix.vector_flop, 2.0 * 3 * 4 * 4096 * 5, 0, 0);
    assert_close(mix.act_read_bytes, 2.0 * 3 * (5 * 4096 + 20), 0, 0);
    assert_close(mix.act_write_bytes, 2.0 * 3 * 4 * 4096, 0, 0);
    plm_graph_fini(&b.g);
}

/* hw_facts c.1: B 1, H 32, Hkv 8, S 8192, d 128, bf16, causal. The published figures take half of S^2
** pairs; exactly there are S (S + 1) / 2, a share of 1/S more. */
static void prefill_attention_matches_published_counts(void **state)
{
    (void)state;
    plm_work w = attention_work(PLM_DT_BF16, 32, 8, 128, 128, false, 0, 8192, 0, 1);
    double exact = 1.0 + 1.0 / 8192;
    assert_close(w.tensor_flop, 549755813888.0 * exact, 0, 0);
    assert_close(w.exp, 1073741824.0 * exact, 0, 0);
    assert_close(w.act_read_bytes + w.act_write_bytes, 134217728.0, 0, 0);
    assert_close(w.kv_read_bytes, 33554432.0, 0, 0);
}

/* Decode: intensity 2 (H / Hkv) / element bytes, for one and for many sequences (hw_facts c.1). */
static void decode_attention_has_gqa_intensity(void **state)
{
    (void)state;
    plm_work one = attention_work(PLM_DT_BF16, 32, 8, 128, 128, false, 0, 1, 4095, 1);
    assert_close(one.tensor_flop / one.kv_read_bytes, 4.0, 1e-15, 0);
    assert_close(one.kv_read_bytes, 2.0 * 8 * 128 * 4096 * 2, 0, 0);
    assert_close(one.m, 1, 0, 0);
    plm_work many = attention_work(PLM_DT_BF16, 32, 8, 128, 128, false, 0, 1, 4095, 64);
    assert_close(many.kv_read_bytes, 64 * one.kv_read_bytes, 0, 0);
    assert_close(many.tensor_flop, 64 * one.tensor_flop, 0, 0);
    plm_work fp8 = attention_work(PLM_DT_F8E4M3, 32, 8, 128, 128, false, 0, 1, 4095, 1);
    assert_close(fp8.kv_read_bytes, one.kv_read_bytes / 2, 0, 0);
    plm_work q8 = attention_work(PLM_DT_Q8_0, 32, 8, 128, 128, false, 0, 1, 4095, 1);
    assert_close(q8.kv_read_bytes, one.kv_read_bytes / 2 * 34 / 32, 0, 0);
    /* A window of 128 keeps 128 keys, whatever is cached. */
    plm_work win = attention_work(PLM_DT_BF16, 64, 8, 64, 64, false, 128, 1, 10000, 3);
    assert_close(win.kv_read_bytes, 3.0 * 2 * 8 * 64 * 128 * 2, 0, 0);
    assert_close(win.exp, 3.0 * 64 * 128, 0, 0);
}

/* MLA in latent form: 576 columns cached, values are 512 of them and are not read again. */
static void latent_attention_reads_keys_once(void **state)
{
    (void)state;
    plm_work w = attention_work(PLM_DT_BF16, 128, 1, 576, 512, true, 0, 1, 999, 2);
    assert_close(w.kv_read_bytes, 2.0 * 1000 * 576 * 2, 0, 0);
    assert_close(w.tensor_flop, 2.0 * 128 * 2000 * (576 + 512), 0, 0);
    assert_close(w.act_write_bytes, 2.0 * 128 * 512 * 2, 0, 0);
}

/* Keys that the query at `pos` attends, by definition. */
static double attended(const plm_attention_shape *s, int64_t pos, int64_t total)
{
    int64_t n = 0;
    for (int64_t key = 0; key < total; key++) {
        if (s->causal && key > pos)
            continue;
        if (s->ratio > 1 && key % (int64_t)s->ratio != (int64_t)s->ratio - 1)
            continue; /* an entry stands at the last of its tokens */
        if (s->window > 0 && key <= pos - (int64_t)s->window)
            continue;
        if (s->chunk > 0 && key / (int64_t)s->chunk != pos / (int64_t)s->chunk)
            continue;
        n++;
    }
    return s->top_k > 0 && (double)n > s->top_k ? s->top_k : (double)n;
}

static void pairs_equal_a_count_over_positions(void **state)
{
    (void)state;
    uint64_t seed = test_seed("pairs_equal_a_count_over_positions");
    for (int trial = 0; trial < 3000; trial++) {
        plm_attention_shape s = {.causal = true};
        int kind = trial % 7;
        if (kind == 1 || kind == 4 || kind == 6)
            s.window = 1.0 + (double)(test_random(&seed) % 40);
        if (kind == 2)
            s.chunk = 1.0 + (double)(test_random(&seed) % 40);
        if (kind == 3 || kind == 5)
            s.top_k = 1.0 + (double)(test_random(&seed) % 40);
        if (kind == 4 || kind == 5)
            s.ratio = 2.0 + (double)(test_random(&seed) % 6);
        if (kind == 6)
            s.causal = false;
        int64_t q = 1 + (int64_t)(test_random(&seed) % 60), c = (int64_t)(test_random(&seed) % 90);
        double want = 0, most = 0;
        for (int64_t pos = c; pos < c + q; pos++) {
            double one = attended(&s, pos, c + q);
            want += one;
            most = fmax(most, one);
        }
        assert_close(plm_attention_pairs(&s, (double)q, (double)c), want, 0, 1e-9);
        double keys = plm_attention_keys(&s, (double)q, (double)c);
        assert_true(keys >= most && keys <= fmin(want, (double)(c + q)));
        if (q == 1)
            assert_close(keys, want, 0, 1e-9);
    }
}

/* A prefill in pieces makes the pairs of a prefill in one. */
static void pairs_add_up_over_chunks(void **state)
{
    (void)state;
    plm_attention_shape s = {.causal = true, .window = 1000};
    double whole = plm_attention_pairs(&s, 8192, 0), sum = 0;
    for (int i = 0; i < 16; i++)
        sum += plm_attention_pairs(&s, 512, 512.0 * i);
    assert_close(sum, whole, 0, 0);
}

/* serving_facts section 13, S13. Uniform routing, printed to one decimal. */
static void distinct_experts_match_published_rows(void **state)
{
    (void)state;
    static const struct {
        double experts, k, tokens, want;
    } rows[] = {
        {128, 8, 1, 8},      {128, 8, 8, 51.6},   {128, 8, 16, 82.4},  {128, 8, 32, 111.8},
        {128, 8, 64, 125.9}, {128, 8, 128, 128},  {256, 8, 1, 8},      {256, 8, 8, 57.4},
        {256, 8, 32, 163.3}, {256, 8, 64, 222.4}, {256, 8, 128, 251.6}, {128, 4, 1, 4},
        {128, 4, 8, 28.7},   {128, 4, 32, 81.7},  {128, 4, 64, 111.2}, {128, 4, 128, 125.8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_close(plm_distinct_experts(rows[i].experts, rows[i].k, rows[i].tokens), rows[i].want,
                     0, 0.05);
    assert_close(plm_distinct_experts(8, 8, 3), 8, 0, 0);
    assert_close(plm_distinct_experts(8, 2, 0), 0, 0, 0);
}

static plm_work grouped_work(int64_t local, int64_t experts, int64_t tokens, double imbalance)
{
    bench b;
    open_bench(&b);
    plm_value_id x = VALUE(&b, INPUT, BF16, b.E, k(&b, 2048));
    plm_value_id w = VALUE(&b, WEIGHT, BF16, k(&b, local), k(&b, 2304), k(&b, 2048));
    plm_value_id o = VALUE(&b, INPUT, I32, k(&b, local + 1));
    plm_node_begin(&b.g, PLM_OP_LINEAR_GROUPED);
    plm_node_in(&b.g, x);
    plm_node_in(&b.g, w);
    plm_node_in(&b.g, o);
    plm_node_int(&b.g, PLM_ATTR_EXPERTS, experts);
    plm_node_int(&b.g, PLM_ATTR_LOCAL_EXPERTS, local);
    plm_node_int(&b.g, PLM_ATTR_TOP_K, 8);
    plm_node_end(&b.g, PLM_DT_COUNT);
    plm_segment seg = {tokens, 0, 1};
    plm_batch batch = {&seg, 1, -1, imbalance};
    int64_t sym[PLM_SYM_COUNT], dims[256];
    assert_int_equal(b.g.error.code, PLM_OK);
    plm_batch_symbols(&batch, 8, sym);
    plm_dims_eval(&b.g.dims, sym, dims);
    plm_work out = {0};
    const plm_node *n = &b.g.nodes[b.g.n_nodes - 1];
    plm_op_get(n->op)->work(&b.g, n, dims, &batch, &out);
    plm_graph_fini(&b.g);
    return out;
}

/* Qwen3-30B-A3B: an expert is 9 MiB in bf16, here its three matrices as one of 2304 x 2048. */
static void grouped_product_reads_the_experts_hit(void **state)
{
    (void)state;
    double expert = 9.0 * 1048576;
    plm_work one = grouped_work(128, 128, 1, 0);
    assert_close(one.weight_bytes, 8 * expert, 1e-12, 0);
    assert_close(one.tensor_flop, 2.0 * 8 * 2304 * 2048, 0, 0);
    assert_close(one.groups, 8, 1e-12, 0);
    assert_close(one.m, 1, 1e-12, 0);
    assert_close(grouped_work(128, 128, 32, 0).weight_bytes, 111.8 * expert, 0, 0.05 * expert);
    /* A quarter of the experts on this rank, whose own 32 tokens make 256 pairs; the group of four
       then has 128 tokens, which hit 128.0 of 128, so 32 of these 32. */
    plm_work ep = grouped_work(32, 128, 32, 0);
    assert_close(ep.groups, 32, 1e-3, 0);
    assert_close(ep.tensor_flop, 2.0 * 256 * 2304 * 2048, 0, 0);
    plm_work hot = grouped_work(32, 128, 32, 1.5);
    assert_close(hot.tensor_flop, 1.5 * ep.tensor_flop, 1e-12, 0);
    /* Imbalance is between ranks: with all experts here there is none. */
    assert_close(grouped_work(128, 128, 32, 1.5).tensor_flop,
                 grouped_work(128, 128, 32, 0).tensor_flop, 0, 0);
}

static void glu_counts_exp_and_traffic(void **state)
{
    (void)state;
    bench b;
    open_bench(&b);
    plm_value_id x = VALUE(&b, INPUT, BF16, b.T, k(&b, 14336));
    plm_value_id y = VALUE(&b, INPUT, BF16, b.T, k(&b, 14336));
    plm_node_begin(&b.g, PLM_OP_GLU);
    plm_node_in(&b.g, x);
    plm_node_in(&b.g, y);
    plm_node_int(&b.g, PLM_ATTR_FN, PLM_FN_SILU);
    plm_node_end(&b.g, PLM_DT_COUNT);
    plm_work w = work_of(&b, 3, 0, 2, 0);
    assert_close(w.exp, 6.0 * 14336, 0, 0);
    assert_close(w.act_read_bytes, 2 * 6.0 * 14336 * 2, 0, 0);
    assert_close(w.act_write_bytes, 6.0 * 14336 * 2, 0, 0);
    plm_graph_fini(&b.g);
}

static void kv_write_counts_the_cache_type(void **state)
{
    (void)state;
    bench b;
    open_bench(&b);
    plm_value_id key = VALUE(&b, INPUT, BF16, b.T, k(&b, 8), k(&b, 128));
    plm_value_id val = VALUE(&b, INPUT, BF16, b.T, k(&b, 8), k(&b, 128));
    plm_value_id kc = VALUE(&b, STATE, Q8_0, b.C, k(&b, 8), k(&b, 128));
    plm_value_id vc = VALUE(&b, STATE, F8E4M3, b.C, k(&b, 8), k(&b, 128));
    plm_node_begin(&b.g, PLM_OP_KV_WRITE);
    plm_node_in(&b.g, key);
    plm_node_in(&b.g, kc);
    plm_node_in(&b.g, val);
    plm_node_in(&b.g, vc);
    plm_node_end(&b.g, PLM_DT_COUNT);
    plm_work w = work_of(&b, 5, 100, 2, 0);
    assert_close(w.act_read_bytes, 2 * 10.0 * 1024 * 2, 0, 0);
    assert_close(w.kv_write_bytes, 10.0 * (1024.0 * 34 / 32 + 1024), 0, 0);
    assert_close(w.act_write_bytes, 0, 0, 0);
    assert_close(w.kv_read_bytes, 0, 0, 0);
    plm_graph_fini(&b.g);
}

/* State of the delta rule: read and written once a sequence, however many tokens. Qwen3-Next: 32
** heads of 128 x 128 in float32 are 2 MiB. */
static void delta_rule_moves_its_state_twice(void **state)
{
    (void)state;
    bench b;
    open_bench(&b);
    plm_value_id q = VALUE(&b, INPUT, BF16, b.T, k(&b, 16), k(&b, 128));
    plm_value_id key = VALUE(&b, INPUT, BF16, b.T, k(&b, 16), k(&b, 128));
    plm_value_id v = VALUE(&b, INPUT, BF16, b.T, k(&b, 32), k(&b, 128));
    plm_value_id g = VALUE(&b, INPUT, F32, b.T, k(&b, 32));
    plm_value_id beta = VALUE(&b, INPUT, F32, b.T, k(&b, 32));
    plm_value_id st = VALUE(&b, STATE, F32, b.S, k(&b, 32), k(&b, 128), k(&b, 128));
    plm_node_begin(&b.g, PLM_OP_GATED_DELTA);
    plm_node_in(&b.g, q);
    plm_node_in(&b.g, key);
    plm_node_in(&b.g, v);
    plm_node_in(&b.g, g);
    plm_node_in(&b.g, beta);
    plm_node_in(&b.g, st);
    plm_node_int(&b.g, PLM_ATTR_CHUNK, 64);
    plm_node_end(&b.g, PLM_DT_COUNT);
    plm_work one = work_of(&b, 1, 0, 4, 0);
    assert_close(one.state_bytes, 4.0 * 2 * 2097152, 0, 0);
    assert_close(one.tensor_flop, 4.0 * 32 * 6 * 128 * 128, 0, 0);
    assert_close(one.exp, 4.0 * 32, 0, 0);
    plm_work many = work_of(&b, 128, 0, 4, 0);
    assert_close(many.state_bytes, one.state_bytes, 0, 0);
    /* Two chunks of 64: 2 * 64 * 65 / 2 pairs of tokens, 4 (dk + dv) FLOP each and head. */
    assert_close(many.tensor_flop, 128 * one.tensor_flop + 4.0 * 32 * 4160 * 4 * 256, 0, 0);
    plm_graph_fini(&b.g);
}

static void links_count_their_message(void **state)
{
    (void)state;
    bench b;
    open_bench(&b);
    plm_value_id x = VALUE(&b, INPUT, BF16, b.T, k(&b, 8192));
    plm_node_begin(&b.g, PLM_OP_ALL_REDUCE);
    plm_node_in(&b.g, x);
    plm_node_int(&b.g, PLM_ATTR_RANKS, 16);
    plm_node_int(&b.g, PLM_ATTR_NODES, 2);
    plm_value_id y = plm_node_end(&b.g, PLM_DT_COUNT);
    plm_work w = work_of(&b, 1, 0, 32, 0);
    assert_close(w.link_bytes, 32.0 * 8192 * 2, 0, 0);
    assert_int_equal(w.link, PLM_LINK_ALL_REDUCE);
    assert_int_equal(w.ranks, 16);
    assert_int_equal(w.nodes, 2);
    plm_node_begin(&b.g, PLM_OP_RECV);
    plm_node_in(&b.g, y);
    plm_node_end(&b.g, PLM_DT_COUNT);
    w = work_of(&b, 1, 0, 32, 0);
    assert_close(w.link_bytes + w.act_read_bytes + w.launches, 0, 0, 0);
    plm_graph_fini(&b.g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_move_each_array_once),
        cmocka_unit_test(linear_counts_flop_and_bytes),
        cmocka_unit_test(prefill_attention_matches_published_counts),
        cmocka_unit_test(decode_attention_has_gqa_intensity),
        cmocka_unit_test(latent_attention_reads_keys_once),
        cmocka_unit_test(pairs_equal_a_count_over_positions),
        cmocka_unit_test(pairs_add_up_over_chunks),
        cmocka_unit_test(distinct_experts_match_published_rows),
        cmocka_unit_test(grouped_product_reads_the_experts_hit),
        cmocka_unit_test(glu_counts_exp_and_traffic),
        cmocka_unit_test(kv_write_counts_the_cache_type),
        cmocka_unit_test(delta_rule_moves_its_state_twice),
        cmocka_unit_test(links_count_their_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
