/* test_build_sums.c - properties of graphs that hold for every model of the catalog: weights of
** ranks against those of the whole, links, caches, FLOP of a token, text; and for records of random
** fields, which must build or be refused.
*/
#include "tests/support.h"

#include <stdlib.h>

#include "core/base/mem.h"
#include "core/ir/text.h"
#include "core/model/build.h"
#include "core/model/fields.h"
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
    plm_arch_fini(&arch);
    plm_catalog_destroy(catalog);
    return 0;
}

static size_t models(void)
{
    return plm_catalog_count(catalog, "models");
}

static void load_at(size_t i)
{
    plm_arch_fini(&arch);
    assert_ok(plm_model_load(catalog, plm_catalog_at(catalog, "models", i)->id, &arch, &err), err);
}

static void load(const char *id)
{
    plm_arch_fini(&arch);
    assert_ok(plm_model_load(catalog, id, &arch, &err), err);
}

static plm_build plan(int32_t tp, int32_t pp, int32_t cp)
{
    plm_build b;
    plm_build_init(&b);
    b.par.tp = tp;
    b.par.pp = pp;
    b.par.cp = cp;
    b.recipe = plm_recipe_by_name("bf16");
    return b;
}

static plm_graph graph_of(const plm_build *b)
{
    plm_graph g;
    if (plm_build_graph(&arch, b, &g, &err) != PLM_OK)
        fail_msg("%s, tp %d stage %d: %s", arch.id, b->par.tp, b->stage, err.text);
    return g;
}

static int64_t elements(const plm_graph *g, const plm_value *v)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < v->rank; i++)
        n *= plm_dim_value(&g->dims, v->dim[i]);
    return n;
}

/* ---- weights of a rank ---- */

static bool named(const plm_value *v, const char *part)
{
    return strstr(v->name, part) != NULL;
}

/* A rank holds all of it: norms of the stream, latents, routers, indexers, positions, the low-rank
** inputs of delta attention, mixing weights of hyper-connections, projections around latent experts;
** biases of matrices whose outputs are summed. */
static bool may_be_copied(const plm_value *v)
{
    if (named(v, "attn_pool_place") || named(v, "index_place")) /* beside the latents they weigh */
        return true;
    switch (v->role) {
    case PLM_ROLE_NORM:
    case PLM_ROLE_Q_A:
    case PLM_ROLE_KV_A:
    case PLM_ROLE_ROUTER:
    case PLM_ROLE_INDEX:
    case PLM_ROLE_POS_EMBED:
        return true;
    case PLM_ROLE_SSM_SMALL:
        return named(v, "ssm_f_a") || named(v, "ssm_g_a") || named(v, "hc");
    case PLM_ROLE_SHARED_UP:
    case PLM_ROLE_SHARED_DOWN:
        return named(v, "ffn_latent");
    case PLM_ROLE_BIAS:
        return named(v, "attn_output") || named(v, "down") || named(v, "hc") ||
               named(v, "ffn_gate_inp");
    default:
        return false;
    }
}

/* Elements that one of tp ranks must hold of a weight of n elements, by what is split; 0 = no one
** number (vectors of heads and groups together). */
static int64_t share(const plm_value *v, int64_t n, int64_t tp)
{
    const plm_layer *l = v->layer >= 0 ? plm_arch_layer(&arch, v->layer) : NULL;
    if (v->role == PLM_ROLE_EMBED || v->role == PLM_ROLE_HEAD)
        return plm_ceil_div(arch.vocab, tp) * (n / arch.vocab);
    if (v->role == PLM_ROLE_K || v->role == PLM_ROLE_V || named(v, "attn_k.bias") ||
        named(v, "attn_v.bias"))
        return n / plm_min_i64(tp, l->kv_heads);
    if (v->role == PLM_ROLE_SSM_IN || v->role == PLM_ROLE_CONV || named(v, "ssm_conv"))
        return l->lin_k_heads % tp == 0 && l->ssm_groups % tp == 0 ? n / tp : 0;
    return n / tp;
}

static void check_rank(const plm_graph *whole, const plm_graph *rank, int64_t tp)
{
    size_t r = 0;
    for (size_t i = 0; i < whole->n_values; i++) {
        const plm_value *w = &whole->values[i];
        if (w->kind != PLM_VALUE_WEIGHT || w->dtype == PLM_DT_I32)
            continue;
        while (r < rank->n_values && (rank->values[r].kind != PLM_VALUE_WEIGHT ||
                                      rank->values[r].dtype == PLM_DT_I32))
            r++;
        assert_true(r < rank->n_values);
        const plm_value *v = &rank->values[r++];
        assert_string_equal(v->name, w->name);
        int64_t all = elements(whole, w), got = elements(rank, v), want = share(w, all, tp);
        bool good = want == 0 ? got >= all / tp && got < all : got == want;
        if (!good && !(got == all && may_be_copied(w)))
            fail_msg("%s, tp %lld, %s: %lld elements of %lld, want %lld", arch.id, (long long)tp,
                     w->name, (long long)got, (long long)all, (long long)want);
    }
}

static void ranks_lose_no_weight(void **state)
{
    (void)state;
    size_t checked = 0;
    for (size_t i = 0; i < models(); i++) {
        load_at(i);
        plm_build one = plan(1, 1, 1);
        plm_graph whole = graph_of(&one);
        for (int32_t tp = 2; tp <= 8; tp *= 2) {
            plm_build b = plan(tp, 1, 1);
            if (plm_parallel_check(&arch, &b.par, &err) != PLM_OK)
                continue;
            plm_graph g = graph_of(&b);
            check_rank(&whole, &g, tp);
            plm_graph_fini(&g);
            checked++;
        }
        plm_graph_fini(&whole);
    }
    assert_true(checked > 150);
}

/* Bytes of the stages of a pipeline are those of the whole, whatever the storage; a tied table is
** there twice. */
static void stages_hold_the_bytes(void **state)
{
    (void)state;
    static const char *const recipes[] = {"bf16", "fp8_block", "q4_k_m", "mxfp4", "awq4"};
    static const char *const ids[] = {"Llama-3.1-8B", "Gemma-3-27B", "Qwen3-30B-A3B", "DeepSeek-V3",
                                      "gpt-oss-20b"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++) {
            int64_t whole, embed, bytes, sum = 0;
            load(ids[i]);
            plm_build b = plan(1, 1, 1);
            b.recipe = plm_recipe_by_name(recipes[r]);
            plm_graph g = graph_of(&b);
            assert_ok(plm_graph_weight_bytes(&g, &whole, &embed, &err), err);
            plm_graph_fini(&g);
            b.par.pp = 4;
            for (b.stage = 0; b.stage < 4; b.stage++) {
                g = graph_of(&b);
                assert_ok(plm_graph_weight_bytes(&g, &bytes, NULL, &err), err);
                plm_graph_fini(&g);
                sum += bytes;
            }
            if (!arch.tied_head)
                assert_int_equal(sum, whole);
            else
                assert_true(sum > whole && sum <= whole + 2 * embed + 2 * (int64_t)arch.vocab);
        }
}

/* Layers of the stages, from the nodes: each layer on one stage, in order. */
static void stages_hold_each_layer_once(void **state)
{
    (void)state;
    static const int32_t stages[] = {2, 3, 7};
    for (size_t i = 0; i < models(); i++)
        for (size_t p = 0; p < sizeof stages / sizeof *stages; p++) {
            int32_t next = 0;
            load_at(i);
            plm_build b = plan(1, stages[p], 1);
            for (b.stage = 0; b.stage < b.par.pp; b.stage++) {
                plm_graph g = graph_of(&b);
                for (size_t n = 0; n < g.n_nodes; n++) {
                    int32_t layer = g.nodes[n].layer;
                    assert_true(layer == -1 || layer == next || layer == next - 1);
                    if (layer == next)
                        next++;
                }
                plm_graph_fini(&g);
            }
            assert_int_equal(next, arch.layers);
        }
}

/* ---- links ---- */

static size_t count_ops(const plm_graph *g, plm_op op, int32_t layer)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++)
        n += g->nodes[i].op == op && g->nodes[i].layer == layer;
    return n;
}

/* Sums over tp of a layer: one a half, one for both of a parallel layer, and one more where dense
** and routed halves have each a norm behind them. */
static size_t sums_of(const plm_layer *l)
{
    bool mixer = l->attn != PLM_ATTN_NONE, ffn = l->ffn > 0 || l->experts > 0;
    if (mixer && ffn && l->parallel)
        return 1;
    return (size_t)mixer + ffn + (l->ffn > 0 && l->experts > 0 && l->norms == 7);
}

static size_t links(const plm_graph *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++)
        n += (plm_op_get(g->nodes[i].op)->flags & PLM_OPF_LINK) != 0;
    return n;
}

static void links_of_every_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < models(); i++) {
        load_at(i);
        plm_build b = plan(1, 1, 1);
        plm_graph g = graph_of(&b);
        assert_int_equal(links(&g), 0);
        plm_graph_fini(&g);
        int64_t tp[2];
        if (plm_parallel_legal_tp(&arch, 64, tp, 2) < 2)
            continue;
        b = plan((int32_t)tp[1], 1, 1);
        g = graph_of(&b);
        size_t all = 2; /* of the embedding, and the gathered logits */
        for (int32_t l = 0; l < arch.layers; l++) {
            assert_int_equal(count_ops(&g, PLM_OP_ALL_REDUCE, l), sums_of(plm_arch_layer(&arch, l)));
            all += sums_of(plm_arch_layer(&arch, l));
        }
        assert_int_equal(count_ops(&g, PLM_OP_ALL_REDUCE, -1), 1);
        assert_int_equal(count_ops(&g, PLM_OP_ALL_GATHER, -1), 1);
        assert_int_equal(links(&g), all);
        plm_graph_fini(&g);
    }
}

/* ---- caches ---- */

/* Bytes of the caches for n slots; rings of compressed layers, which do not grow, left out. */
static int64_t cache_bytes(const plm_graph *g, int64_t n)
{
    int64_t sym[PLM_SYM_COUNT] = {0}, sum = 0, *dims = plm_calloc(g->dims.count, sizeof *dims);
    assert_non_null(dims);
    sym[PLM_SYM_C] = n;
    plm_dims_eval(&g->dims, sym, dims);
    for (size_t i = 0; i < g->n_values; i++) {
        const plm_value *v = &g->values[i];
        int64_t bytes;
        if (v->kind != PLM_VALUE_STATE || v->role != PLM_ROLE_KV || named(v, "cache_window"))
            continue;
        assert_ok(plm_value_bytes(g, (plm_value_id)i, dims, &bytes, &err), err);
        sum += bytes;
    }
    plm_free(dims);
    return sum;
}

/* What the ledger says of the same stage of the same plan. */
static int64_t ledger_bytes(const plm_build *b, int64_t n)
{
    plm_kv_options o = {.k = b->kv_k,
                        .v = b->kv_v,
                        .tp = b->par.tp,
                        .cp = b->par.cp,
                        .mla_expanded = b->mla_expanded,
                        .windows_full = true,
                        .index_cache = true};
    int64_t bytes, full, window;
    plm_parallel_stage(&arch, &b->par, b->stage, &o.first_layer, &o.n_layers);
    assert_ok(plm_kv_bytes(&arch, &o, n, &bytes, &full, &window, &err), err);
    for (int32_t i = o.first_layer; i < o.first_layer + o.n_layers; i++)
        if (plm_arch_layer(&arch, i)->attn == PLM_ATTN_COMPRESSED)
            return full; /* its windows are rings, always kept short */
    return bytes;
}

static void caches_of_every_plan(void **state)
{
    (void)state;
    enum { TOKENS = 1 << 14 }; /* a multiple of every ratio times every cp here */
    static const struct {
        int32_t tp, pp, cp;
        plm_dtype k, v;
        bool expanded;
    } plans[] = {
        {1, 1, 2, PLM_DT_BF16, PLM_DT_BF16, false}, {4, 1, 1, PLM_DT_FP8, PLM_DT_FP8, false},
        {8, 1, 1, PLM_DT_BF16, PLM_DT_BF16, false}, {1, 1, 1, PLM_DT_BF16, PLM_DT_BF16, true},
        {2, 1, 4, PLM_DT_BF16, PLM_DT_FP8, true},   {1, 3, 1, PLM_DT_BF16, PLM_DT_BF16, false},
        {2, 2, 1, PLM_DT_F16, PLM_DT_F16, false},
    };
    size_t checked = 0;
    for (size_t i = 0; i < models(); i++) {
        load_at(i);
        for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
            plm_build b = plan(plans[p].tp, plans[p].pp, plans[p].cp);
            b.kv_k = plans[p].k;
            b.kv_v = plans[p].v;
            b.mla_expanded = plans[p].expanded;
            if (plm_parallel_check(&arch, &b.par, &err) != PLM_OK)
                continue;
            for (b.stage = 0; b.stage < b.par.pp; b.stage++) {
                plm_graph g = graph_of(&b);
                int64_t got = cache_bytes(&g, TOKENS), want = ledger_bytes(&b, TOKENS);
                if (got != want)
                    fail_msg("%s, plan %zu stage %d: caches of %lld bytes, the ledger has %lld",
                             arch.id, p, b.stage, (long long)got, (long long)want);
                plm_graph_fini(&g);
                checked++;
            }
        }
    }
    assert_true(checked > 400);
}

/* ---- FLOP ---- */

/* FLOP of matrices and of attention for one token that follows `past` others. */
static void flop_of(const plm_graph *g, int64_t past, int64_t top_k, double *matrices,
                    double *attention)
{
    plm_segment seg = {.q_len = 1, .kv_len = past, .count = 1};
    plm_batch b = {.seg = &seg, .n_seg = 1, .logit_rows = -1};
    int64_t sym[PLM_SYM_COUNT], *dims = plm_calloc(g->dims.count, sizeof *dims);
    assert_non_null(dims);
    plm_batch_symbols(&b, top_k, sym);
    plm_dims_eval(&g->dims, sym, dims);
    *matrices = *attention = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const plm_op_info *op = plm_op_get(g->nodes[i].op);
        plm_work w = {0};
        if (op->work == NULL)
            continue;
        op->work(g, &g->nodes[i], dims, &b, &w);
        if (op->cls == PLM_CLASS_LINEAR || op->cls == PLM_CLASS_GROUPED)
            *matrices += w.tensor_flop;
        else if (g->nodes[i].op == PLM_OP_ATTENTION)
            *attention += w.tensor_flop;
    }
    plm_free(dims);
}

/* Keys a layer attends of `n`, the token's own among them; -1 where an indexer or a pool decides. */
static int64_t keys_of(const plm_layer *l, int64_t n)
{
    switch (l->attn) {
    case PLM_ATTN_FULL:
        return l->index_top_k > 0 ? -1 : n;
    case PLM_ATTN_SLIDING:
        return plm_min_i64(n, l->window);
    case PLM_ATTN_CHUNKED:
        return (n - 1) % l->window + 1;
    case PLM_ATTN_MLA:
    case PLM_ATTN_COMPRESSED:
        return -1;
    default:
        return 0;
    }
}

/* Two FLOP for each parameter that a token uses, but the input table, within a hundredth (norms,
** filters, biases, position tables multiply no matrix); for attention 2 (dk + dv) a head and key. */
static void flop_of_a_token(void **state)
{
    (void)state;
    enum { PAST = 2999 };
    size_t exact = 0;
    for (size_t i = 0; i < models(); i++) {
        load_at(i);
        plm_build b = plan(1, 1, 1);
        plm_graph g = graph_of(&b);
        plm_params p;
        double matrices, attention, want = 0;
        int64_t top_k = 1;
        bool known = true;
        assert_ok(plm_count_params(&arch, &p, &err), err);
        for (int32_t l = 0; l < arch.layers; l++) {
            const plm_layer *k = plm_arch_layer(&arch, l);
            int64_t keys = keys_of(k, PAST + 1);
            known = known && keys >= 0;
            want += 2.0 * (double)keys * k->heads * ((double)k->dk + k->dv);
            top_k = plm_max_i64(top_k, k->top_k);
        }
        flop_of(&g, PAST, top_k, &matrices, &attention);
        double active = (double)(p.active_no_embed - (int64_t)arch.pos_embed * arch.hidden);
        if (!(fabs(matrices - 2 * active) <= 0.01 * 2 * active))
            fail_msg("%s: %.0f FLOP of matrices, %.0f active parameters", arch.id, matrices,
                     active);
        if (known)
            assert_close(attention, want, 1e-12, 0);
        exact += known;
        plm_graph_fini(&g);
    }
    assert_true(exact > 60);
}

/* ---- text ---- */

static void text_of_graphs(void **state)
{
    (void)state;
    for (size_t i = 0; i < models(); i += 5) {
        load_at(i);
        int64_t tp[2];
        size_t n = plm_parallel_legal_tp(&arch, 16, tp, 2);
        assert_true(n >= 1);
        plm_build b = plan((int32_t)tp[n - 1], 2, 1);
        b.stage = i % 2;
        b.fuse_qkv = b.mtp = true;
        plm_graph g = graph_of(&b), again;
        char *text, *second;
        assert_ok(plm_graph_print(&g, &text, &err), err);
        assert_ok(plm_graph_parse(text, strlen(text), &again, &err), err);
        assert_ok(plm_graph_verify(&again, &err), err);
        assert_ok(plm_graph_print(&again, &second, &err), err);
        assert_string_equal(text, second);
        plm_free(text);
        plm_free(second);
        plm_graph_fini(&again);
        plm_graph_fini(&g);
    }
}

/* ---- prediction modules on a pipeline ---- */

/* The last stage of a tied model has its table once: it is the head's and the module's. */
static void modules_share_a_tied_table(void **state)
{
    (void)state;
    load("Llama-3.2-1B");
    arch.mtp_layers = 1;
    arch.mtp_kind = 0;
    plm_build b = plan(1, 2, 1);
    b.stage = 1;
    b.mtp = true;
    plm_graph g = graph_of(&b);
    size_t tables = 0;
    for (size_t i = 0; i < g.n_values; i++)
        tables += g.values[i].kind == PLM_VALUE_WEIGHT &&
                  (g.values[i].role == PLM_ROLE_EMBED || g.values[i].role == PLM_ROLE_HEAD);
    assert_int_equal(tables, 1);
    plm_graph_fini(&g);
}

/* ---- records of random fields ---- */

static int64_t below(uint64_t *seed, int64_t n)
{
    return (int64_t)(test_random(seed) % (uint64_t)n);
}

/* An integer as likely small as near a bound or of any size between. */
static int64_t random_in(uint64_t *seed, double lo, double hi)
{
    static const int64_t usual[] = {0, 1, 2, 3, 4, 8, 16, 64, 128, 256};
    switch (below(seed, 12)) {
    case 0:
        return (int64_t)hi;
    case 1:
        return (int64_t)lo;
    case 2:
        return (int64_t)hi + 1;
    case 3:
        return (int64_t)lo - 1;
    case 4:
    case 5:
        return (int64_t)exp((double)below(seed, 1000) / 1000 * log(hi > 2 ? hi : 2));
    default:
        return usual[below(seed, (int64_t)(sizeof usual / sizeof *usual))];
    }
}

static void set_field(const plm_field *f, void *base, uint64_t *seed)
{
    char *at = (char *)base + f->offset;
    int32_t i;
    int64_t n = random_in(seed, f->lo, f->hi);
    double v = below(seed, 8) == 0 ? NAN : (double)n / (below(seed, 2) ? 1 : 7);
    bool yes = n & 1;
    unsigned e = (unsigned)below(seed, below(seed, 20) == 0 ? 100 : 10);
    switch (f->type) {
    case PLM_FIELD_INT:
        i = n > INT32_MAX ? INT32_MAX : n < INT32_MIN ? INT32_MIN : (int32_t)n;
        memcpy(at, &i, sizeof i);
        break;
    case PLM_FIELD_LONG:
        memcpy(at, &n, sizeof n);
        break;
    case PLM_FIELD_BOOL:
        memcpy(at, &yes, sizeof yes);
        break;
    case PLM_FIELD_REAL:
        memcpy(at, &v, sizeof v);
        break;
    default:
        memcpy(at, &e, sizeof e);
        break;
    }
}

static void set_some(plm_field_table t, void *base, int64_t times, uint64_t *seed)
{
    for (int64_t i = 0; i < times; i++)
        set_field(&t.field[below(seed, (int64_t)t.count)], base, seed);
}

/* A model of the catalog cut to some layers, with random fields in it. */
static void spoil(uint64_t *seed)
{
    load_at((size_t)below(seed, (int64_t)models()));
    arch.layers = 1 + (int32_t)below(seed, 8);
    for (int32_t i = 0; i < arch.layers; i++)
        arch.layer_kind[i] = (uint8_t)below(seed, arch.n_kinds);
    if (below(seed, 3) == 0)
        set_some(plm_fields_arch(), &arch, 1 + below(seed, 3), seed);
    plm_layer *k = &arch.kind[below(seed, arch.n_kinds)];
    set_some(plm_fields_layer(), k, 1 + below(seed, 6), seed);
    if (below(seed, 3) == 0)
        set_some(plm_fields_rope(), &k->rope, 1 + below(seed, 3), seed);
}

static plm_build random_plan(uint64_t *seed)
{
    static const int32_t ranks[] = {1, 1, 1, 2, 4, 8};
    plm_build b = plan(ranks[below(seed, 6)], 1 + (int32_t)below(seed, 2), 1);
    b.par.cp = ranks[below(seed, 6)];
    b.par.dp = b.par.cp == 1 ? ranks[below(seed, 6)] : 1;
    b.par.ep = ranks[below(seed, 6)];
    b.stage = (int32_t)below(seed, b.par.pp);
    b.recipe = plm_recipe_at((size_t)below(seed, (int64_t)plm_recipe_count()));
    b.fuse_qkv = below(seed, 2);
    b.fuse_gate_up = below(seed, 2);
    b.mla_expanded = below(seed, 2);
    b.mtp = below(seed, 2);
    return b;
}

/* What plm_arch_check lets pass has a graph of one device; under a plan it builds or is refused in
** words; it has a cache. Nothing crashes (sanitizers) and nothing leaks. */
static void random_records(void **state)
{
    (void)state;
    uint64_t seed = test_seed("random_records");
    size_t passed = 0, built = 0;
    for (int i = 0; i < 6000; i++) {
        plm_graph g;
        plm_params p;
        int64_t bytes;
        spoil(&seed);
        err.text[0] = '\0';
        if (plm_arch_check(&arch, &err) != PLM_OK) {
            assert_true(strlen(err.text) > 10);
            continue;
        }
        passed++;
        plm_build b = random_plan(&seed);
        const plm_kv_options o = {.k = PLM_DT_F16, .v = PLM_DT_F16, .tp = b.par.tp};
        int64_t live = plm_mem_live();
        plm_status s = plm_build_graph(&arch, &b, &g, &err);
        if (s != PLM_OK && (s == PLM_E_INTERNAL || s == PLM_E_NO_MEMORY || strlen(err.text) < 10))
            fail_msg("case %d, %s: %s", i, arch.id, err.text);
        built += s == PLM_OK;
        plm_graph_fini(&g);
        if (plm_count_params(&arch, &p, &err) != PLM_OK)
            fail_msg("case %d, %s, one device: %s", i, arch.id, err.text);
        assert_true(p.active <= p.total && p.active_no_embed >= 0 && p.experts >= 0);
        s = plm_kv_bytes(&arch, &o, 100000, &bytes, NULL, NULL, &err);
        assert_true(s == PLM_OK ? bytes >= 0 : strlen(err.text) > 10);
        assert_int_equal(plm_mem_live(), live);
    }
    assert_true(passed > 1000 && passed < 5000 && built > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_lose_no_weight),
        cmocka_unit_test(stages_hold_the_bytes),
        cmocka_unit_test(stages_hold_each_layer_once),
        cmocka_unit_test(links_of_every_model),
        cmocka_unit_test(caches_of_every_plan),
        cmocka_unit_test(flop_of_a_token),
        cmocka_unit_test(text_of_graphs),
        cmocka_unit_test(modules_share_a_tied_table),
        cmocka_unit_test(random_records),
    };
    return cmocka_run_group_tests(tests, open_catalog, close_catalog);
}
