/* test_build.c - graphs of ranks: every catalog model under many plans, sums over ranks and stages
** against the whole model, caches against kv.c, structure of chosen layers, failing allocations.
**
** plm_build_graph verifies what it builds, so a graph that comes back has passed plm_graph_verify.
*/
#include "tests/support.h"

#include <stdlib.h>

#include "core/base/mem.h"
#include "core/ir/rules.h"
#include "core/model/build.h"
#include "core/model/load.h"

static plm_error err;
static plm_arch arch;
static plm_catalog *catalog;

static int open_catalog(void **state)
{
    (void)state;
    return plm_catalog_create(NULL, &catalog, &err) != PLM_OK;
}

static int close_catalog(void **state)
{
    (void)state;
    plm_catalog_destroy(catalog);
    return 0;
}

static void load(const char *id)
{
    plm_arch_fini(&arch);
    assert_ok(plm_model_load(catalog, id, &arch, &err), err);
}

static plm_graph graph_of(const plm_build *b)
{
    plm_graph g;
    plm_status s = plm_build_graph(&arch, b, &g, &err);
    if (s != PLM_OK)
        fail_msg("%s, tp %d pp %d ep %d dp %d cp %d stage %d: %s", arch.id, b->par.tp, b->par.pp,
                 b->par.ep, b->par.dp, b->par.cp, b->stage, err.text);
    return g;
}

static plm_build plan(int32_t tp, int32_t pp, int32_t ep, int32_t dp, int32_t cp)
{
    plm_build b;
    plm_build_init(&b);
    b.par = (plm_parallel){.tp = tp, .pp = pp, .ep = ep, .dp = dp, .cp = cp};
    b.recipe = plm_recipe_by_name("bf16");
    return b;
}

/* ---- reading graphs ---- */

static int64_t elements(const plm_graph *g, const plm_value *v)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < v->rank; i++)
        n *= plm_dim_value(&g->dims, v->dim[i]);
    return n;
}

static int64_t weight_elements(const plm_graph *g)
{
    int64_t n = 0;
    for (size_t i = 0; i < g->n_values; i++)
        if (g->values[i].kind == PLM_VALUE_WEIGHT && g->values[i].dtype != PLM_DT_I32)
            n += elements(g, &g->values[i]);
    return n;
}

static const plm_value *find(const plm_graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_values; i++)
        if (g->values[i].name != NULL && strcmp(g->values[i].name, name) == 0)
            return &g->values[i];
    return NULL;
}

/* A weight must have exactly these dims (0 ends them) and the role. */
static void check_weight(const plm_graph *g, const char *name, plm_role role, int64_t d0,
                         int64_t d1, int64_t d2)
{
    const plm_value *v = find(g, name);
    const int64_t d[] = {d0, d1, d2};
    uint32_t rank = d1 == 0 ? 1 : d2 == 0 ? 2 : 3;
    if (v == NULL || v->kind != PLM_VALUE_WEIGHT || v->role != role || v->rank != rank)
        fail_msg("%s: not in the graph, or of another role or rank", name);
    for (uint32_t i = 0; i < rank; i++)
        if (plm_dim_value(&g->dims, v->dim[i]) != d[i])
            fail_msg("%s, dim %u: %lld, want %lld", name, i,
                     (long long)plm_dim_value(&g->dims, v->dim[i]), (long long)d[i]);
}

static size_t count_ops(const plm_graph *g, plm_op op, int32_t layer)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++)
        n += g->nodes[i].op == op && (layer < -1 || g->nodes[i].layer == layer);
    return n;
}

/* The nth node of an op in a layer. */
static const plm_node *node_of(const plm_graph *g, plm_op op, int32_t layer, size_t nth)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].op == op && g->nodes[i].layer == layer && nth-- == 0)
            return &g->nodes[i];
    fail_msg("layer %d: no such node of %s", layer, plm_op_get(op)->name);
    return NULL;
}

/* Names of the ops of a layer that are no views, apart by spaces. */
static const char *layer_ops(const plm_graph *g, int32_t layer)
{
    static char text[4096];
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < g->n_nodes; i++) {
        const plm_op_info *op = plm_op_get(g->nodes[i].op);
        if (g->nodes[i].layer != layer || (op->flags & PLM_OPF_VIEW) != 0)
            continue;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", at > 0 ? " " : "", op->name);
        assert_true(at < sizeof text);
    }
    return text;
}

/* Work of all nodes of a class for one step: n sequences of one new token after `past`. */
static plm_work work_of(const plm_graph *g, plm_class cls, int64_t sequences, int64_t past,
                        int64_t top_k)
{
    plm_segment seg = {.q_len = 1, .kv_len = past, .count = sequences};
    plm_batch b = {.seg = &seg, .n_seg = 1, .logit_rows = -1};
    int64_t sym[PLM_SYM_COUNT], *dims = plm_calloc(g->dims.count, sizeof *dims);
    plm_work sum = {0};
    assert_non_null(dims);
    plm_batch_symbols(&b, top_k, sym);
    plm_dims_eval(&g->dims, sym, dims);
    for (size_t i = 0; i < g->n_nodes; i++) {
        const plm_op_info *op = plm_op_get(g->nodes[i].op);
        plm_work w = {0};
        if (op->cls != cls || op->work == NULL)
            continue;
        op->work(g, &g->nodes[i], dims, &b, &w);
        sum.tensor_flop += w.tensor_flop;
        sum.link_bytes += w.link_bytes;
        sum.kv_read_bytes += w.kv_read_bytes;
        sum.weight_bytes += w.weight_bytes;
    }
    plm_free(dims);
    return sum;
}

/* ---- every model ---- */

static void build_all_stages(plm_build b)
{
    for (b.stage = 0; b.stage < b.par.pp; b.stage++) {
        plm_graph g = graph_of(&b);
        assert_true(g.n_outputs >= 1 && g.n_nodes > 0);
        plm_graph_fini(&g);
    }
}

/* Plans a model may refuse by the rules of parallel.c are left out; it must allow some. */
static size_t build_plans(void)
{
    static const int32_t plans[][5] = {
        {2, 1, 1, 1, 1}, {4, 1, 1, 1, 1}, {8, 1, 1, 1, 1},   {8, 1, 8, 1, 1}, {8, 1, 2, 1, 1},
        {1, 2, 1, 1, 1}, {2, 3, 1, 1, 1}, {1, 1, 1, 1, 2},   {2, 1, 1, 1, 4}, {1, 1, 1, 2, 1},
        {1, 1, 2, 2, 1}, {2, 1, 4, 4, 1}, {1, 1, 16, 16, 1}, {4, 2, 16, 8, 1}};
    size_t built = 0;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        plm_build b = plan(plans[i][0], plans[i][1], plans[i][2], plans[i][3], plans[i][4]);
        b.par.per_node = i % 2 ? 8 : 0;
        if (plm_parallel_check(&arch, &b.par, &err) != PLM_OK)
            continue;
        b.fuse_qkv = i % 3 == 0;
        b.fuse_gate_up = i % 3 != 1;
        b.mla_expanded = i % 4 == 1;
        build_all_stages(b);
        built++;
    }
    return built;
}

static void every_model_under_many_plans(void **state)
{
    (void)state;
    size_t n = plm_catalog_count(catalog, "models");
    assert_int_equal(n, 81);
    for (size_t i = 0; i < n; i++) {
        load(plm_catalog_at(catalog, "models", i)->id);
        assert_true(build_plans() >= 3);
        plm_build b = plan(1, 1, 1, 1, 1);
        b.all_logits = b.mtp = b.fuse_qkv = b.fuse_gate_up = true;
        b.vocab_pad = 64;
        b.act = PLM_DT_F16;
        b.kv_k = PLM_DT_Q8_0;
        b.kv_v = PLM_DT_FP8;
        build_all_stages(b);
    }
}

static void every_recipe_builds(void **state)
{
    (void)state;
    static const char *const ids[] = {"Llama-3.1-8B", "DeepSeek-V3.2", "gpt-oss-120b",
                                      "Qwen3-Next-80B-A3B", "DeepSeek-V4-Flash"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        load(ids[i]);
        for (size_t r = 0; r < plm_recipe_count(); r++)
            for (int32_t tp = 1; tp <= 8; tp *= 8) {
                plm_build b = plan(tp, 1, 1, 1, 1);
                b.recipe = plm_recipe_at(r);
                b.fuse_gate_up = r % 2;
                build_all_stages(b);
            }
    }
}

/* ---- sums over stages and ranks ---- */

/* Stages of a pipeline hold the model's weights, a tied table twice. */
static void stages_hold_the_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < plm_catalog_count(catalog, "models"); i++) {
        load(plm_catalog_at(catalog, "models", i)->id);
        plm_params p;
        assert_ok(plm_count_params(&arch, &p, &err), err);
        int64_t sum = 0;
        plm_build b = plan(1, 3, 1, 1, 1);
        for (b.stage = 0; b.stage < 3; b.stage++) {
            plm_graph g = graph_of(&b);
            sum += weight_elements(&g);
            assert_int_equal(count_ops(&g, PLM_OP_RECV, -2), b.stage > 0);
            assert_int_equal(count_ops(&g, PLM_OP_SEND, -2), b.stage < 2);
            assert_int_equal(find(&g, "logits") != NULL, b.stage == 2);
            plm_graph_fini(&g);
        }
        if (sum != p.total + (arch.tied_head ? p.embed : 0))
            fail_msg("%s: stages hold %lld, the model has %lld", arch.id, (long long)sum,
                     (long long)p.total);
    }
}

/* Elements of weights that tensor parallelism copies: norms, MLA's latents, routers, indexers. */
static int64_t copied_elements(const plm_graph *g)
{
    int64_t n = 0;
    for (size_t i = 0; i < g->n_values; i++) {
        const plm_value *v = &g->values[i];
        if (v->kind == PLM_VALUE_WEIGHT &&
            (v->role == PLM_ROLE_NORM || v->role == PLM_ROLE_Q_A || v->role == PLM_ROLE_KV_A ||
             v->role == PLM_ROLE_ROUTER || v->role == PLM_ROLE_INDEX))
            n += elements(g, v);
    }
    return n;
}

/* Each rank of tp (and of ep inside it) holds an equal part of all that is not copied. */
static void ranks_hold_equal_parts(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        int32_t tp, ep;
    } cases[] = {{"Llama-3.1-70B", 8, 1},     {"Qwen3-30B-A3B", 4, 1}, {"Qwen3-30B-A3B", 4, 4},
                 {"DeepSeek-V3", 16, 16},     {"DeepSeek-V3", 8, 2},   {"DeepSeek-V3.2", 8, 1},
                 {"Mixtral-8x7B-v0.1", 8, 8}, {"Phi-3-mini-4k", 32, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        load(cases[i].id);
        plm_build one = plan(1, 1, 1, 1, 1), b = plan(cases[i].tp, 1, cases[i].ep, 1, 1);
        plm_graph whole = graph_of(&one), rank = graph_of(&b);
        int64_t copied = copied_elements(&whole);
        assert_int_equal(copied_elements(&rank), copied);
        assert_int_equal((weight_elements(&rank) - copied) * cases[i].tp,
                         weight_elements(&whole) - copied);
        plm_graph_fini(&whole);
        plm_graph_fini(&rank);
    }
}

/* More ranks than KV heads: each holds one, copied. Llama-3.1-8B has 8; tp 16 gives 2 query heads.
 */
static void kv_heads_are_copied_beyond_their_number(void **state)
{
    (void)state;
    load("Llama-3.1-8B");
    plm_build b = plan(16, 1, 1, 1, 1);
    plm_graph g = graph_of(&b);
    check_weight(&g, "blk.31.attn_q", PLM_ROLE_Q, 256, 4096, 0);
    check_weight(&g, "blk.31.attn_k", PLM_ROLE_K, 128, 4096, 0);
    check_weight(&g, "blk.31.attn_output", PLM_ROLE_O, 4096, 256, 0);
    check_weight(&g, "blk.31.ffn_down", PLM_ROLE_DOWN, 4096, 896, 0);
    check_weight(&g, "token_embd", PLM_ROLE_EMBED, 8016, 4096, 0);
    check_weight(&g, "output", PLM_ROLE_HEAD, 8016, 4096, 0);
    plm_graph_fini(&g);
}

/* FLOP of a rank times ranks is FLOP of the model, for matrices, experts and attention alike. */
static void ranks_do_equal_parts(void **state)
{
    (void)state;
    load("Mixtral-8x7B-v0.1");
    plm_build one = plan(1, 1, 1, 1, 1);
    plm_graph whole = graph_of(&one);
    static const int32_t plans[][2] = {{8, 1}, {8, 8}, {4, 2}};
    double router = 2.0 * 32 * 64 * 8 * 4096; /* layers, tokens, experts, hidden: on every rank */
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        plm_build b = plan(plans[i][0], 1, plans[i][1], 1, 1);
        plm_graph g = graph_of(&b);
        double tp = plans[i][0];
        assert_close((work_of(&g, PLM_CLASS_LINEAR, 64, 100, 2).tensor_flop - router) * tp,
                     work_of(&whole, PLM_CLASS_LINEAR, 64, 100, 2).tensor_flop - router, 1e-12, 0);
        assert_close(work_of(&g, PLM_CLASS_GROUPED, 64, 100, 2).tensor_flop * tp,
                     work_of(&whole, PLM_CLASS_GROUPED, 64, 100, 2).tensor_flop, 1e-12, 0);
        assert_close(work_of(&g, PLM_CLASS_ATTENTION, 64, 100, 2).tensor_flop * tp,
                     work_of(&whole, PLM_CLASS_ATTENTION, 64, 100, 2).tensor_flop, 1e-12, 0);
        plm_graph_fini(&g);
    }
    plm_graph_fini(&whole);
}

/* One decoded token of Llama-3.1-8B: two FLOP a parameter of the matrices, and 4 H d for each layer
** and key. Parameters of matrices: all 8030261248 but the embedding and 65 norms. */
static void flop_of_a_token(void **state)
{
    (void)state;
    load("Llama-3.1-8B");
    plm_build b = plan(1, 1, 1, 1, 1);
    plm_graph g = graph_of(&b);
    double matrices = 8030261248.0 - 128256.0 * 4096 - 65.0 * 4096;
    assert_close(work_of(&g, PLM_CLASS_LINEAR, 1, 999, 0).tensor_flop, 2 * matrices, 0, 0);
    assert_close(work_of(&g, PLM_CLASS_ATTENTION, 1, 999, 0).tensor_flop,
                 4.0 * 32 * 128 * 32 * 1000, 0, 0);
    /* bf16: the matrices once; K and V of 8 heads in each layer. */
    assert_close(work_of(&g, PLM_CLASS_LINEAR, 1, 999, 0).weight_bytes, 2 * matrices, 0, 0);
    assert_close(work_of(&g, PLM_CLASS_ATTENTION, 1, 999, 0).kv_read_bytes, 131072.0 * 1000, 0, 0);
    plm_graph_fini(&g);
}

/* ---- caches and state against kv.c ---- */

/* Bytes of the caches for n slots, less what kv.c does not grow by: rings of compressed layers. */
static int64_t cache_bytes(const plm_graph *g, plm_role role, int64_t n)
{
    int64_t sym[PLM_SYM_COUNT] = {0}, sum = 0, *dims = plm_calloc(g->dims.count, sizeof *dims);
    assert_non_null(dims);
    sym[PLM_SYM_C] = n;
    sym[PLM_SYM_S] = n;
    plm_dims_eval(&g->dims, sym, dims);
    for (size_t i = 0; i < g->n_values; i++) {
        const plm_value *v = &g->values[i];
        int64_t bytes;
        if (v->kind != PLM_VALUE_STATE || v->role != role ||
            strstr(v->name, "cache_window") != NULL || strstr(v->name, "_tail") != NULL)
            continue;
        assert_ok(plm_value_bytes(g, (plm_value_id)i, dims, &bytes, &err), err);
        sum += bytes;
    }
    plm_free(dims);
    return sum;
}

static void caches_are_those_of_the_ledger(void **state)
{
    (void)state;
    enum { TOKENS = 1 << 14 }; /* a multiple of every ratio */
    for (size_t i = 0; i < plm_catalog_count(catalog, "models"); i++) {
        load(plm_catalog_at(catalog, "models", i)->id);
        bool compressed = plm_arch_layer(&arch, arch.layers - 1)->attn == PLM_ATTN_COMPRESSED;
        for (int32_t tp = 1; tp <= 2; tp++) {
            plm_build b = plan(tp, 1, 1, 1, 1);
            if (plm_parallel_check(&arch, &b.par, &err) != PLM_OK)
                continue;
            plm_graph g = graph_of(&b);
            plm_kv_options o = {.k = PLM_DT_BF16,
                                .v = PLM_DT_BF16,
                                .tp = tp,
                                .windows_full = true,
                                .index_cache = true};
            int64_t full, window, bytes, recurrent, conv;
            assert_ok(plm_kv_bytes(&arch, &o, TOKENS, &bytes, &full, &window, &err), err);
            assert_ok(plm_state_parts(&arch, &o, &recurrent, &conv, &err), err);
            int64_t got = cache_bytes(&g, PLM_ROLE_KV, TOKENS), want = compressed ? full : bytes;
            if (got != want)
                fail_msg("%s, tp %d: caches of %lld bytes, the ledger has %lld", arch.id, tp,
                         (long long)got, (long long)want);
            assert_int_equal(cache_bytes(&g, PLM_ROLE_STATE, 1), recurrent);
            plm_graph_fini(&g);
        }
    }
}

/* ---- structure ---- */

static void a_plain_layer(void **state)
{
    (void)state;
    load("Llama-3.1-8B");
    plm_build b = plan(1, 1, 1, 1, 1);
    plm_graph g = graph_of(&b);
    assert_string_equal(layer_ops(&g, 5),
                        "rms_norm linear linear linear rope rope kv_write attention linear add "
                        "rms_norm linear linear glu linear add");
    assert_string_equal(layer_ops(&g, -1), "embed gather rms_norm linear");
    const plm_node *n = node_of(&g, PLM_OP_ATTENTION, 5, 0);
    assert_close(plm_attr_real(&g, n, PLM_ATTR_SCALE, 0), 0.08838834764831845, 1e-15, 0);
    assert_int_equal(plm_attr_int(&g, n, PLM_ATTR_WINDOW, 0), 0);
    n = node_of(&g, PLM_OP_ROPE, 5, 1);
    assert_int_equal(plm_attr_int(&g, n, PLM_ATTR_ROPE_SCALING, 0), PLM_ROPE_LLAMA3);
    assert_close(plm_attr_real(&g, n, PLM_ATTR_THETA, 0), 500000, 0, 0);
    assert_close(plm_attr_real(&g, n, PLM_ATTR_ORIG_CTX, 0), 8192, 0, 0);
    plm_graph_fini(&g);
    b.fuse_qkv = b.fuse_gate_up = b.all_logits = true;
    g = graph_of(&b);
    assert_string_equal(layer_ops(&g, 5), "rms_norm linear rope rope kv_write attention linear add "
                                          "rms_norm linear glu linear add");
    assert_string_equal(layer_ops(&g, -1), "embed rms_norm linear");
    check_weight(&g, "blk.5.attn_qkv", PLM_ROLE_QKV, 6144, 4096, 0);
    check_weight(&g, "blk.5.ffn_gate_up", PLM_ROLE_GATE_UP, 28672, 4096, 0);
    plm_graph_fini(&g);
}

/* DeepSeek-V3: absorbed heads of 576 = 512 + 64 columns over one latent, values its first 512;
*softmax
** scale (0.1 ln 40 + 1)^2 / sqrt(192) = 0.135234 (its modeling file). */
static void a_latent_layer(void **state)
{
    (void)state;
    load("DeepSeek-V3");
    plm_build b = plan(8, 1, 1, 1, 1);
    plm_graph g = graph_of(&b);
    const plm_node *n = node_of(&g, PLM_OP_ATTENTION, 10, 0);
    assert_int_equal(plm_attr_int(&g, n, PLM_ATTR_HEADS, 0), 16);
    assert_int_equal(plm_attr_int(&g, n, PLM_ATTR_KV_HEADS, 0), 1);
    assert_int_equal(plm_attr_int(&g, n, PLM_ATTR_DK, 0), 576);
    assert_int_equal(plm_attr_int(&g, n, PLM_ATTR_DV, 0), 512);
    assert_int_equal(plm_attr_int(&g, n, PLM_ATTR_V_IN_K, 0), 1);
    assert_close(plm_attr_real(&g, n, PLM_ATTR_SCALE, 0), 0.1352337788608801, 1e-12, 0);
    check_weight(&g, "blk.10.attn_q_b", PLM_ROLE_Q_B, 16 * 192, 1536, 0);
    check_weight(&g, "blk.10.attn_k_b", PLM_ROLE_K_B, 16, 512, 128);
    check_weight(&g, "blk.10.attn_v_b", PLM_ROLE_V_B, 16, 128, 512);
    check_weight(&g, "blk.10.attn_kv_a", PLM_ROLE_KV_A, 576, 7168, 0);
    check_weight(&g, "blk.10.exp_probs_b", PLM_ROLE_ROUTER, 256, 0, 0);
    assert_int_equal(count_ops(&g, PLM_OP_BMM, 10), 2);
    plm_graph_fini(&g);
    b.mla_expanded = true;
    g = graph_of(&b);
    n = node_of(&g, PLM_OP_ATTENTION, 10, 0);
    assert_int_equal(plm_attr_int(&g, n, PLM_ATTR_KV_HEADS, 0), 16);
    assert_int_equal(plm_attr_int(&g, n, PLM_ATTR_DK, 0), 192);
    assert_int_equal(plm_attr_int(&g, n, PLM_ATTR_DV, 0), 128);
    assert_int_equal(count_ops(&g, PLM_OP_BMM, 10), 0);
    plm_graph_fini(&g);
}

/* Layers of other makes, by the ops and attributes that set them apart. */
static void layers_of_other_makes(void **state)
{
    (void)state;
    plm_build b = plan(1, 1, 1, 1, 1);
    load("Gemma-3-27B");
    plm_graph g = graph_of(&b);
    assert_string_equal(layer_ops(&g, 5),
                        "rms_norm linear linear linear rms_norm rope rms_norm rope kv_write "
                        "attention linear rms_norm add rms_norm linear linear glu linear rms_norm "
                        "add");
    assert_close(plm_attr_real(&g, node_of(&g, PLM_OP_ATTENTION, 5, 0), PLM_ATTR_SCALE, 0),
                 0.07715167498104596, 1e-14, 0); /* 1 / sqrt(168) */
    assert_int_equal(plm_attr_int(&g, node_of(&g, PLM_OP_ATTENTION, 5, 0), PLM_ATTR_WINDOW, 0), 0);
    assert_int_equal(plm_attr_int(&g, node_of(&g, PLM_OP_ATTENTION, 4, 0), PLM_ATTR_WINDOW, 0),
                     1024);
    assert_close(plm_attr_real(&g, node_of(&g, PLM_OP_RMS_NORM, 5, 0), PLM_ATTR_WEIGHT_OFFSET, 0),
                 1, 0, 0);
    assert_close(plm_attr_real(&g, node_of(&g, PLM_OP_EMBED, -1, 0), PLM_ATTR_SCALE, 0),
                 73.32121111929344, 1e-13, 0); /* sqrt(5376) */
    assert_null(find(&g, "output"));
    plm_graph_fini(&g);

    load("gpt-oss-20b");
    g = graph_of(&b);
    assert_string_equal(layer_ops(&g, 0),
                        "rms_norm linear linear linear rope rope kv_write attention linear add "
                        "rms_norm linear gate moe_sort linear_grouped linear_grouped glu "
                        "linear_grouped moe_combine add");
    check_weight(&g, "blk.0.attn_sinks", PLM_ROLE_SINK, 64, 0, 0);
    check_weight(&g, "blk.0.ffn_down_exps.bias", PLM_ROLE_BIAS, 32, 2880, 0);
    check_weight(&g, "blk.0.attn_q.bias", PLM_ROLE_BIAS, 4096, 0, 0);
    plm_graph_fini(&g);

    load("Qwen3-Next-80B-A3B");
    g = graph_of(&b);
    check_weight(&g, "blk.3.attn_q", PLM_ROLE_Q, 2 * 16 * 256, 2048, 0);
    check_weight(&g, "blk.3.ffn_gate_inp_shexp", PLM_ROLE_ROUTER, 1, 2048, 0);
    assert_int_equal(count_ops(&g, PLM_OP_GATED_DELTA, -2), 36);
    assert_int_equal(count_ops(&g, PLM_OP_ATTENTION, -2), 12);
    check_weight(&g, "blk.0.ssm_in", PLM_ROLE_SSM_IN, 2 * 2048 + 2 * 4096, 2048, 0);
    plm_graph_fini(&g);

    load("Falcon-7B"); /* one norm, both halves of one input, one sum */
    b.par.tp = 71;
    if (plm_parallel_check(&arch, &b.par, &err) != PLM_OK)
        b.par.tp = 1;
    g = graph_of(&b);
    assert_int_equal(count_ops(&g, PLM_OP_LAYER_NORM, 7), 1);
    assert_int_equal(count_ops(&g, PLM_OP_ALL_REDUCE, 7), b.par.tp > 1);
    plm_graph_fini(&g);
}

/* Keys chosen by an indexer: DeepSeek-V3.2, and blocks of 128 (MiniMax-M3). */
static void sparse_layers(void **state)
{
    (void)state;
    plm_build b = plan(1, 1, 1, 1, 1);
    load("DeepSeek-V3.2");
    plm_graph g = graph_of(&b);
    const plm_node *n = node_of(&g, PLM_OP_ATTENTION, 7, 0);
    assert_int_equal(plm_attr_int(&g, n, PLM_ATTR_SPARSE_TOP_K, 0), 2048);
    assert_true(n->in[4] == node_of(&g, PLM_OP_INDEX, 7, 0)->out[0]);
    check_weight(&g, "blk.7.index_q", PLM_ROLE_INDEX, 64 * 128, 1536, 0);
    plm_graph_fini(&g);
    load("MiniMax-M3");
    g = graph_of(&b);
    n = node_of(&g, PLM_OP_ATTENTION, 3, 0);
    assert_int_equal(plm_attr_int(&g, n, PLM_ATTR_SPARSE_TOP_K, 0), 16 * 128);
    assert_int_equal(plm_attr_int(&g, node_of(&g, PLM_OP_INDEX, 3, 0), PLM_ATTR_BLOCK, 0), 128);
    assert_int_equal(count_ops(&g, PLM_OP_INDEX, 2), 0);
    plm_graph_fini(&g);
}

/* DeepSeek-V4-Flash: layers 0 and 1 have the window alone, 2 chooses entries of 4 tokens, 3 reads
*all
** entries of 128. */
static void compressed_layers(void **state)
{
    (void)state;
    load("DeepSeek-V4-Flash");
    plm_build b = plan(1, 1, 1, 1, 1);
    plm_graph g = graph_of(&b);
    static const struct {
        size_t attention, index, pool;
        int64_t ratio;
    } want[] = {{1, 0, 0, 0}, {1, 0, 0, 0}, {2, 1, 2, 4}, {2, 0, 1, 128}};
    for (int32_t i = 0; i < 4; i++) {
        assert_int_equal(count_ops(&g, PLM_OP_ATTENTION, i), want[i].attention);
        assert_int_equal(count_ops(&g, PLM_OP_INDEX, i), want[i].index);
        assert_int_equal(count_ops(&g, PLM_OP_KV_POOL, i), want[i].pool);
        assert_int_equal(plm_attr_int(&g, node_of(&g, PLM_OP_ATTENTION, i, 0), PLM_ATTR_WINDOW, 0),
                         128);
        if (want[i].ratio > 0)
            assert_int_equal(
                plm_attr_int(&g, node_of(&g, PLM_OP_ATTENTION, i, 1), PLM_ATTR_RATIO, 0),
                want[i].ratio);
    }
    assert_non_null(find(&g, "blk.2.ffn_hash_ids"));
    assert_null(find(&g, "blk.3.ffn_hash_ids"));
    /* Layers 0 to 2 choose by token id; the router weighs what they chose. */
    check_weight(&g, "blk.2.ffn_gate_inp", PLM_ROLE_ROUTER, 256, 4096, 0);
    assert_int_equal(node_of(&g, PLM_OP_GATE, 2, 0)->n_in, 3);
    assert_int_equal(node_of(&g, PLM_OP_GATE, 3, 0)->n_in, 2);
    check_weight(&g, "blk.3.hc_attn", PLM_ROLE_SSM_SMALL, 24, 4 * 4096, 0);
    check_weight(&g, "blk.3.attn_o_a", PLM_ROLE_O, 8, 1024, 4096);
    plm_graph_fini(&g);
    /* Tokens of 4 groups are gathered, and the ids of their experts. */
    b = plan(1, 1, 4, 4, 1);
    g = graph_of(&b);
    assert_int_equal(count_ops(&g, PLM_OP_ALL_GATHER, 2), 2);
    assert_int_equal(count_ops(&g, PLM_OP_ALL_GATHER, 3), 1);
    plm_graph_fini(&g);
}

/* Layers that read the cache of an earlier one have neither its weights nor a cache. */
static void shared_caches(void **state)
{
    (void)state;
    load("Llama-3.1-8B");
    plm_layer reuse = arch.kind[0];
    reuse.kv_shared_layer = 3;
    int32_t kind = plm_arch_add_kind(&arch, &reuse);
    arch.layer_kind[9] = (uint8_t)kind;
    plm_build b = plan(1, 1, 1, 1, 1);
    b.fuse_qkv = true;
    plm_graph g = graph_of(&b);
    assert_null(find(&g, "blk.9.attn_k"));
    assert_null(find(&g, "blk.9.cache_k"));
    check_weight(&g, "blk.9.attn_q", PLM_ROLE_Q, 4096, 4096, 0);
    assert_int_equal(count_ops(&g, PLM_OP_KV_WRITE, 9), 0);
    assert_true(node_of(&g, PLM_OP_ATTENTION, 9, 0)->in[1] ==
                node_of(&g, PLM_OP_KV_WRITE, 3, 0)->out[0]);
    plm_graph_fini(&g);
}

/* One quantised form of what several matrices read: the input of q, k, v; of o; of gate and up; of
** down. MLA's attention in fp8 too; nothing in weight-only formats. */
static void activations_are_quantised_once(void **state)
{
    (void)state;
    load("Llama-3.1-8B");
    plm_build b = plan(1, 1, 1, 1, 1);
    b.recipe = plm_recipe_by_name("fp8_block");
    plm_graph g = graph_of(&b);
    assert_int_equal(count_ops(&g, PLM_OP_QUANT, 6), 4);
    const plm_node *n = node_of(&g, PLM_OP_LINEAR, 6, 0);
    assert_int_equal(g.values[n->in[0]].dtype, PLM_DT_F8E4M3);
    assert_int_equal(g.values[n->in[1]].dtype, PLM_DT_FP8_BLOCK);
    assert_int_equal(g.values[n->out[0]].dtype, PLM_DT_BF16);
    assert_int_equal(plm_attr_int(&g, node_of(&g, PLM_OP_QUANT, 6, 0), PLM_ATTR_BLOCK, 0), 128);
    assert_int_equal(count_ops(&g, PLM_OP_QUANT, -1), 0); /* the head stays bf16 */
    plm_graph_fini(&g);
    static const char *const weight_only[] = {"awq4", "q4_k_m", "mxfp4", "bf16"};
    for (size_t i = 0; i < sizeof weight_only / sizeof *weight_only; i++) {
        b.recipe = plm_recipe_by_name(weight_only[i]);
        g = graph_of(&b);
        assert_int_equal(count_ops(&g, PLM_OP_QUANT, -2), 0);
        plm_graph_fini(&g);
    }
}

/* ---- links ---- */

static void links_of_tensor_parallel(void **state)
{
    (void)state;
    load("Llama-3.1-70B");
    plm_build b = plan(8, 1, 1, 1, 1);
    b.par.per_node = 4;
    plm_graph g = graph_of(&b);
    assert_int_equal(count_ops(&g, PLM_OP_ALL_REDUCE, -2), 2 * 80 + 1);
    assert_int_equal(count_ops(&g, PLM_OP_ALL_GATHER, -2), 1);
    const plm_node *n = node_of(&g, PLM_OP_ALL_REDUCE, 40, 1);
    assert_int_equal(plm_attr_int(&g, n, PLM_ATTR_RANKS, 0), 8);
    assert_int_equal(plm_attr_int(&g, n, PLM_ATTR_NODES, 0), 2);
    /* 161 sums of a row of 8192 and a row of the vocabulary, in bf16, for one token. */
    assert_close(work_of(&g, PLM_CLASS_LINK, 1, 10, 0).link_bytes, 2.0 * (161 * 8192 + 128256), 0,
                 0);
    plm_graph_fini(&g);
}

/* Stages of 4 devices on nodes of 8: stages 0 and 1 share one, 1 and 2 do not. */
static void links_of_stages(void **state)
{
    (void)state;
    load("Llama-3.1-8B");
    plm_build b = plan(4, 4, 1, 1, 1);
    b.par.per_node = 8;
    for (b.stage = 0; b.stage < 4; b.stage++) {
        plm_graph g = graph_of(&b);
        if (b.stage < 3)
            assert_int_equal(plm_attr_int(&g, node_of(&g, PLM_OP_SEND, -1, 0), PLM_ATTR_NODES, 0),
                             b.stage == 1 ? 2 : 1);
        if (b.stage > 0)
            assert_int_equal(plm_attr_int(&g, node_of(&g, PLM_OP_RECV, -1, 0), PLM_ATTR_NODES, 0),
                             b.stage == 2 ? 2 : 1);
        plm_graph_fini(&g);
    }
}

/* Rows that the experts of a rank compute for one step of 64 tokens a dp group. */
static int64_t expert_rows(const plm_graph *g, int32_t layer)
{
    int64_t sym[PLM_SYM_COUNT] = {[PLM_SYM_T] = 64, [PLM_SYM_S] = 64, [PLM_SYM_R] = 64}, rows;
    int64_t *dims = plm_calloc(g->dims.count, sizeof *dims);
    assert_non_null(dims);
    plm_dims_eval(&g->dims, sym, dims);
    rows = dims[g->values[node_of(g, PLM_OP_LINEAR_GROUPED, layer, 0)->in[0]].dim[0]];
    plm_free(dims);
    return rows;
}

/* The forms of expert parallelism (build_ffn.c). 64 tokens choose 8 of 256 experts: 512 pairs of
*one
** dp group, shared out over the ranks that hold whole experts. */
static void forms_of_expert_parallel(void **state)
{
    (void)state;
    static const struct {
        int32_t tp, ep, dp;
        int64_t rows, local, width;
        size_t all_reduce, all_to_all, all_gather, reduce_scatter; /* of one layer */
    } cases[] = {
        {8, 1, 1, 512, 256, 256, 2, 0, 0, 0}, /* widths split */
        {8, 8, 1, 64, 32, 2048, 2, 0, 0, 0},  /* tokens everywhere: the sum joins them */
        {8, 2, 1, 256, 128, 512, 2, 0, 0, 0},
        {1, 1, 4, 2048, 256, 512, 0, 0, 1, 1},  /* widths split over the groups */
        {1, 16, 16, 512, 16, 2048, 0, 3, 0, 0}, /* pairs travel: ids, rows, back */
        {1, 4, 4, 512, 64, 2048, 0, 0, 1, 1},   /* fewer ranks than choices: tokens travel */
        {4, 16, 8, 256, 16, 1024, 2, 0, 1, 1},  /* 512 pairs x 8 groups / 16, half as wide */
    };
    load("DeepSeek-V3");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plm_build b = plan(cases[i].tp, 1, cases[i].ep, cases[i].dp, 1);
        plm_graph g = graph_of(&b);
        assert_int_equal(expert_rows(&g, 30), cases[i].rows);
        check_weight(&g, "blk.30.ffn_up_exps", PLM_ROLE_EXPERT_UP, cases[i].local, cases[i].width,
                     7168);
        assert_int_equal(count_ops(&g, PLM_OP_ALL_REDUCE, 30), cases[i].all_reduce);
        assert_int_equal(count_ops(&g, PLM_OP_ALL_TO_ALL, 30), cases[i].all_to_all);
        assert_int_equal(count_ops(&g, PLM_OP_ALL_GATHER, 30), cases[i].all_gather);
        assert_int_equal(count_ops(&g, PLM_OP_REDUCE_SCATTER, 30), cases[i].reduce_scatter);
        plm_graph_fini(&g);
    }
}

/* Context parallel: a rank reads its share of the keys, and the parts are summed. */
static void context_parallel_shares_the_keys(void **state)
{
    (void)state;
    static const char *const ids[] = {"Llama-3.1-8B", "DeepSeek-V3", "gpt-oss-20b"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        load(ids[i]);
        plm_build one = plan(1, 1, 1, 1, 1), b = plan(1, 1, 1, 1, 4);
        plm_graph whole = graph_of(&one), g = graph_of(&b);
        assert_close(4 * work_of(&g, PLM_CLASS_ATTENTION, 3, 4095, 1).tensor_flop,
                     work_of(&whole, PLM_CLASS_ATTENTION, 3, 4095, 1).tensor_flop, 1e-12, 0);
        assert_int_equal(count_ops(&g, PLM_OP_ALL_REDUCE, -2), arch.layers);
        plm_graph_fini(&g);
        plm_graph_fini(&whole);
    }
}

/* ---- MTP ---- */

/* DeepSeek-V3's module: three norms, a projection of twice the hidden width, a layer of its kind.
 */
static void prediction_modules(void **state)
{
    (void)state;
    load("DeepSeek-V3");
    plm_build b = plan(1, 1, 1, 1, 1);
    plm_graph without = graph_of(&b);
    b.mtp = true;
    plm_graph with = graph_of(&b);
    int64_t h = 7168, attention = h * 1536 + 1536 + INT64_C(1536) * 128 * 192 + h * 576 + 512 +
                                  INT64_C(512) * 128 * 256 + INT64_C(128) * 128 * h;
    int64_t layer = attention + 2 * h + 256 * h + 256 + 257 * 3 * h * 2048;
    assert_int_equal(weight_elements(&with) - weight_elements(&without), layer + 3 * h + 2 * h * h);
    assert_non_null(find(&with, "mtp.0.logits"));
    assert_int_equal(with.n_outputs, 2);
    check_weight(&with, "blk.61.nextn.eh_proj", PLM_ROLE_MTP, 7168, 14336, 0);
    plm_graph_fini(&with);
    plm_graph_fini(&without);
}

/* ---- refusals and failures ---- */

static void refuse(const plm_build *b, const char *word)
{
    plm_graph g;
    assert_int_equal(plm_build_graph(&arch, b, &g, &err), PLM_E_INVALID);
    if (strstr(err.text, word) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, word);
    plm_graph_fini(&g);
}

static void bad_builds_are_refused(void **state)
{
    (void)state;
    load("Qwen2.5-7B");
    plm_build b = plan(8, 1, 1, 1, 1);
    refuse(&b, "28 heads");
    b = plan(1, 2, 1, 1, 1);
    b.stage = 2;
    refuse(&b, "stage, 2");
    b.stage = -1;
    refuse(&b, "stage, -1");
    b = plan(1, 1, 1, 1, 1);
    b.max_tokens = -5;
    refuse(&b, "negative");
    b = plan(1, 1, 1, 1, 1);
    b.kv_v = PLM_DT_COUNT;
    refuse(&b, "type");
    b = plan(1, 1, 1, 1, 1);
    b.kv_k = PLM_DT_Q4_K; /* rows of 128 are no multiple of its block; caches are not verified */
    plm_graph g;
    plm_status s = plm_build_graph(&arch, &b, &g, &err);
    assert_true(s == PLM_OK || s == PLM_E_INVALID);
    plm_graph_fini(&g);
}

/* A model with a layer of every kind, small. */
static void make_mixed(void)
{
    plm_arch_fini(&arch);
    plm_arch_init(&arch);
    plm_layer base = {.heads = 4,
                      .kv_heads = 2,
                      .dk = 16,
                      .dv = 16,
                      .kv_shared_layer = -1,
                      .rope = {.theta = 1e4, .dims = 8},
                      .window = 8,
                      .kv_lora = 32,
                      .nope = 8,
                      .rope_dim = 8,
                      .q_lora = 24,
                      .lin_k_heads = 2,
                      .lin_v_heads = 4,
                      .lin_dk = 8,
                      .lin_dv = 8,
                      .conv_taps = 4,
                      .ssm_groups = 2,
                      .ssm_state = 8,
                      .ffn = 32,
                      .glu = true,
                      .act = PLM_FN_SILU,
                      .norms = 2,
                      .sinks = true,
                      .bias_q = true};
    for (int k = 0; k < PLM_ATTN_COUNT; k++) {
        plm_layer l = base;
        l.attn = (plm_attn)k;
        l.kv_heads = l.attn == PLM_ATTN_MLA ? 4 : l.attn == PLM_ATTN_COMPRESSED ? 1 : 2;
        l.ratio = l.attn == PLM_ATTN_COMPRESSED ? 4 : 0;
        if (l.attn == PLM_ATTN_MLA || l.attn == PLM_ATTN_COMPRESSED) {
            l.index_heads = 2;
            l.index_dim = 16;
            l.index_top_k = 4;
        }
        if (k % 2 == 0) {
            l.ffn = 0;
            l.experts = 8;
            l.top_k = 2;
            l.expert_ffn = 16;
            l.shared_experts = 1;
            l.shared_ffn = 16;
            l.router_fn = PLM_FN_SIGMOID;
            l.router_bias = l.expert_bias = l.shared_gate = true;
        }
        assert_int_equal(plm_arch_add_kind(&arch, &l), k);
        arch.layer_kind[k] = (uint8_t)k;
    }
    arch.layers = PLM_ATTN_COUNT;
    arch.hidden = 64;
    arch.vocab = 128;
    arch.mtp_layers = 1;
    arch.mtp_kind = PLM_ATTN_MLA;
    arch.hyper = 2;
    arch.embed_norm = true;
    arch.pos_embed = 32;
    arch.head_bias = true;
    arch.logit_softcap = 30;
    assert_ok(plm_arch_check(&arch, &err), err);
}

static void torture(const plm_build *b)
{
    plm_graph g;
    int64_t before = plm_mem_live();
    for (uint64_t n = 1;; n++) {
        plm_mem_fail_at(n, n % 2 == 0);
        plm_status s = plm_build_graph(&arch, b, &g, &err);
        bool reached = plm_mem_count() >= n;
        plm_mem_fail_at(0, false);
        plm_graph_fini(&g);
        assert_int_equal(plm_mem_live(), before);
        if (!reached) {
            assert_int_equal(s, PLM_OK);
            assert_true(n > 20);
            return;
        }
        assert_int_equal(s, PLM_E_NO_MEMORY);
        assert_true(n < 10000);
    }
}

static void failing_allocations(void **state)
{
    (void)state;
    make_mixed();
    plm_build b = plan(1, 1, 1, 1, 1);
    b.mtp = true;
    torture(&b);
    b = plan(2, 1, 4, 4, 1);
    b.recipe = plm_recipe_by_name("fp8");
    b.fuse_qkv = b.fuse_gate_up = true;
    torture(&b);
    plm_params p;
    int64_t before = plm_mem_live();
    plm_mem_fail_at(3, true);
    assert_int_equal(plm_count_params(&arch, &p, &err), PLM_E_NO_MEMORY);
    plm_mem_fail_at(0, false);
    assert_int_equal(plm_mem_live(), before);
}

/* The mixed model under every plan its widths allow, and printed and parsed again. */
static void every_kind_of_layer(void **state)
{
    (void)state;
    make_mixed();
    assert_true(build_plans() >= 5);
    plm_build b = plan(2, 1, 2, 2, 1);
    b.mtp = true;
    plm_graph g = graph_of(&b), again;
    char *text, *second;
    assert_ok(plm_graph_print(&g, &text, &err), err);
    assert_ok(plm_graph_parse(text, strlen(text), &again, &err), err);
    assert_ok(plm_graph_print(&again, &second, &err), err);
    assert_string_equal(text, second);
    plm_free(text);
    plm_free(second);
    plm_graph_fini(&again);
    plm_graph_fini(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_under_many_plans),
        cmocka_unit_test(every_recipe_builds),
        cmocka_unit_test(stages_hold_the_model),
        cmocka_unit_test(ranks_hold_equal_parts),
        cmocka_unit_test(kv_heads_are_copied_beyond_their_number),
        cmocka_unit_test(ranks_do_equal_parts),
        cmocka_unit_test(flop_of_a_token),
        cmocka_unit_test(caches_are_those_of_the_ledger),
        cmocka_unit_test(a_plain_layer),
        cmocka_unit_test(a_latent_layer),
        cmocka_unit_test(layers_of_other_makes),
        cmocka_unit_test(sparse_layers),
        cmocka_unit_test(compressed_layers),
        cmocka_unit_test(shared_caches),
        cmocka_unit_test(activations_are_quantised_once),
        cmocka_unit_test(links_of_tensor_parallel),
        cmocka_unit_test(links_of_stages),
        cmocka_unit_test(forms_of_expert_parallel),
        cmocka_unit_test(context_parallel_shares_the_keys),
        cmocka_unit_test(prediction_modules),
        cmocka_unit_test(bad_builds_are_refused),
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(every_kind_of_layer),
    };
    return cmocka_run_group_tests(tests, open_catalog, close_catalog);
}
