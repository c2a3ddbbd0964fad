/* test_host.c - the parts of the executor by themselves: numbers of the contract, blocks of the cache,
** prefixes shared, sampling, refusals, memory that runs out. */
#include "core/host/flat.h"
#include "core/host/ref.h"
#include "core/host/sample.h"
#include "core/ir/rules.h"
#include "tests/golden_support.h"

static plm_error err;

/* ---- the contract ---- */

static void everything_has_its_number(void **state)
{
    (void)state;
    for (int i = 0; i < PLM_OP_COUNT; i++)
        if (plm_flat_op_number((plm_op)i) == PLM_BACKEND_NONE)
            fail_msg("op %s: append it to PLM_BACKEND_OP_MAP in include/plimsoll/backend.h",
                     plm_op_get((plm_op)i)->name);
    for (int i = 0; i < PLM_ATTR_KEYS; i++)
        if (plm_flat_attr_number((plm_attr_key)i) == PLM_BACKEND_NONE)
            fail_msg("attribute %s: append it to PLM_BACKEND_ATTR_MAP", plm_attr_name((plm_attr_key)i));
    for (int i = 0; i < PLM_DT_COUNT; i++)
        if (plm_flat_dtype_number((plm_dtype)i) == PLM_BACKEND_NONE)
            fail_msg("type %s: append it to PLM_BACKEND_DTYPE_MAP", plm_dtype_get((plm_dtype)i)->name);
}

/* Names and sizes that the contract repeats are those of the tables. */
static void numbers_say_the_same(void **state)
{
    (void)state;
#define X(id, number, text, each, size)                                                            \
    assert_string_equal(plm_dtype_get(PLM_DT_##id)->name, text);                                   \
    assert_int_equal(plm_dtype_get(PLM_DT_##id)->block, each);                                     \
    assert_int_equal(plm_dtype_get(PLM_DT_##id)->block_bytes, size);                               \
    assert_int_equal(plm_flat_dtype(number), PLM_DT_##id);
    PLM_BACKEND_DTYPE_MAP(X)
#undef X
#define X(id, number, text)                                                                        \
    assert_string_equal(plm_op_get(PLM_OP_##id)->name, text);                                      \
    assert_int_equal(plm_flat_op_number(PLM_OP_##id), number);
    PLM_BACKEND_OP_MAP(X)
#undef X
#define X(id, number, text, kind)                                                                  \
    assert_string_equal(plm_attr_name(PLM_ATTR_##id), text);                                       \
    assert_int_equal(plm_attr_type(PLM_ATTR_##id), kind);
    PLM_BACKEND_ATTR_MAP(X)
#undef X
}

/* A view holds all of the graph: what is made of it again prints the same nodes. */
static void a_view_is_the_whole_graph(void **state)
{
    (void)state;
    golden m;
    plm_graph g, back;
    plm_memory_plan plan;
    plm_flat flat;
    plm_build b = golden_build();
    golden_open(&m, "qwen3_next");
    assert_ok(plm_build_graph(&m.arch, &b, &g, &err), err);
    assert_ok(plm_memory_plan_make(&g, &plan, &err), err);
    assert_ok(plm_flat_make(&g, &plan, NULL, 4, &flat, &err), err);
    assert_int_equal(flat.view.arena_bytes, plan.peak_bytes);
    assert_ok(plm_flat_graph(&flat.view, &back, &err), err);
    assert_int_equal(back.n_nodes, g.n_nodes);
    assert_int_equal(back.n_values, g.n_values);
    assert_int_equal(back.n_attrs, g.n_attrs);
    for (size_t i = 0; i < g.n_nodes; i++) {
        assert_int_equal(back.nodes[i].op, g.nodes[i].op);
        assert_int_equal(back.nodes[i].n_in, g.nodes[i].n_in);
        assert_int_equal(back.nodes[i].n_attr, g.nodes[i].n_attr);
        assert_memory_equal(back.nodes[i].in, g.nodes[i].in, g.nodes[i].n_in * sizeof(plm_value_id));
        assert_memory_equal(back.nodes[i].out, g.nodes[i].out,
                            g.nodes[i].n_out * sizeof(plm_value_id));
        for (uint32_t k = 0; k < g.nodes[i].n_attr; k++) {
            plm_attr x = g.attrs[g.nodes[i].attr + k], y = back.attrs[back.nodes[i].attr + k];
            assert_int_equal(x.key, y.key);
            assert_int_equal(x.v.i, y.v.i); /* the bits of a real, too */
        }
    }
    for (size_t i = 0; i < g.n_values; i++)
        assert_int_equal(back.values[i].dtype, g.values[i].dtype);
    /* Every value lies inside the arena, or in a slot. */
    for (size_t i = 0; i < g.n_values; i++)
        if (flat.values[i].slot == 0)
            assert_true(flat.values[i].offset < flat.view.arena_bytes);
    /* Damage is told. */
    uint32_t *edge = &flat.edges[0], kept = *edge;
    plm_graph none;
    *edge = (uint32_t)g.n_values;
    assert_int_equal(plm_flat_graph(&flat.view, &none, &err), PLM_E_INVALID);
    *edge = kept;
    flat.nodes[0].op = 9999;
    assert_int_equal(plm_flat_graph(&flat.view, &none, &err), PLM_E_UNSUPPORTED);
    plm_graph_fini(&back);
    plm_flat_fini(&flat);
    plm_memory_plan_fini(&plan);
    plm_graph_fini(&g);
    golden_close(&m);
}

/* Tables that cannot be used are refused with a reason, one with a longer table is not. */
static void tables_are_checked(void **state)
{
    (void)state;
    struct {
        plm_backend table;
        void *newer;
    } more;
    const plm_backend *good = plm_ref_open(NULL, &err);
    assert_non_null(good);
    assert_ok(plm_open_check(good, &err), err);
    memset(&more, 0, sizeof more);
    more.table = *good;
    more.table.struct_size = sizeof more;
    more.table.minor = 7;
    assert_ok(plm_open_check(&more.table, &err), err);
    more.table.major++;
    assert_int_equal(plm_open_check(&more.table, &err), PLM_E_VERSION);
    more.table = *good;
    more.table.struct_size = offsetof(plm_backend, execute);
    assert_int_equal(plm_open_check(&more.table, &err), PLM_E_VERSION);
    more.table = *good;
    more.table.execute = NULL;
    assert_int_equal(plm_open_check(&more.table, &err), PLM_E_INVALID);
    assert_int_equal(plm_open_check(NULL, &err), PLM_E_INVALID);
    plm_backend_host host;
    plm_opened dev;
    assert_int_equal(plm_open("warp", 0, NULL, &host, &dev, &err), PLM_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "ref"));
    assert_int_equal(plm_open("ref", 1, NULL, &host, &dev, &err), PLM_E_NO_DEVICE);
    assert_ok(plm_open(NULL, 0, NULL, &host, &dev, &err), err);
    /* The host's memory is aligned as asked, and given back. */
    int64_t live = plm_mem_live();
    for (size_t align = 1; align <= 4096; align *= 2) {
        void *p = host.alloc(host.ctx, 100, align);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % align, 0);
        memset(p, 1, 100);
        host.free(host.ctx, p, 100);
    }
    assert_int_equal(plm_mem_live(), live);
    plm_close(&dev);
}

/* ---- blocks ---- */

static void blocks_are_shared_and_copied(void **state)
{
    (void)state;
    plm_paging p;
    int32_t a, b, c, from, to;
    const int32_t order[6] = {4, 2, 5, 0, 1, 3};
    assert_ok(plm_paging_init(&p, 6, 4, 3, order, &err), err);
    assert_ok(plm_paging_open(&p, &a, &err), err);
    assert_ok(plm_paging_reserve(&p, a, 6, &from, &to, &err), err);
    assert_int_equal(from, -1);
    plm_paging_advance(&p, a, 6);
    assert_int_equal(plm_paging_slot(&p, a, 0), 4 * 4);
    assert_int_equal(plm_paging_slot(&p, a, 5), 2 * 4 + 1);
    assert_int_equal(p.n_free, 4);
    /* A fork holds the same slots and takes none. */
    assert_ok(plm_paging_fork(&p, a, 5, &b, &err), err);
    assert_int_equal(p.n_free, 4);
    assert_int_equal(plm_paging_slot(&p, b, 4), plm_paging_slot(&p, a, 4));
    /* It writes into the middle of a shared block: that one is copied. */
    assert_ok(plm_paging_reserve(&p, b, 1, &from, &to, &err), err);
    assert_int_equal(from, 2);
    assert_int_equal(to, 5);
    plm_paging_advance(&p, b, 1);
    assert_int_equal(plm_paging_slot(&p, b, 0), 4 * 4);
    assert_int_equal(plm_paging_slot(&p, b, 5), 5 * 4 + 1);
    /* Now it is its own. */
    assert_ok(plm_paging_reserve(&p, b, 1, &from, &to, &err), err);
    assert_int_equal(to, -1);
    assert_ok(plm_paging_reserve(&p, a, 1, &from, &to, &err), err);
    assert_int_equal(to, -1);
    /* A fork at the end of a block writes to a new one. */
    assert_ok(plm_paging_fork(&p, a, 4, &c, &err), err);
    assert_ok(plm_paging_reserve(&p, c, 1, &from, &to, &err), err);
    assert_int_equal(to, -1);
    assert_int_equal(p.n_free, 2);
    plm_paging_advance(&p, c, 1);
    /* No sequence is left, then no block; nothing moves. */
    int32_t d;
    assert_int_equal(plm_paging_open(&p, &d, &err), PLM_E_LIMIT);
    assert_int_equal(plm_paging_reserve(&p, c, 12, &from, &to, &err), PLM_E_LIMIT);
    assert_int_equal(p.n_free, 2);
    assert_ok(plm_paging_reserve(&p, c, 11, &from, &to, &err), err);
    assert_int_equal(p.n_free, 0);
    plm_paging_close(&p, a);
    assert_int_equal(p.n_free, 1); /* its second block; the first is shared by the others */
    plm_paging_close(&p, b);
    plm_paging_close(&p, c);
    assert_int_equal(p.n_free, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(p.refs[i], 0);
    assert_int_equal(plm_paging_reserve(&p, a, 1, &from, &to, &err), PLM_E_INVALID);
    plm_paging_fini(&p);
}

/* Any mix of opening, forking, writing and closing keeps the counts right. */
static void blocks_are_counted(void **state)
{
    (void)state;
    enum { BLOCKS = 20, SEQS = 6 };
    plm_paging p;
    uint64_t seed = test_seed("blocks_are_counted");
    assert_ok(plm_paging_init(&p, BLOCKS, 3, SEQS, NULL, &err), err);
    for (int round = 0; round < 4000; round++) {
        int32_t id = (int32_t)(test_random(&seed) % SEQS), other, from, to;
        int64_t n = (int64_t)(test_random(&seed) % 7);
        switch (test_random(&seed) % 5) {
        case 0:
            (void)!plm_paging_open(&p, &other, &err);
            break;
        case 1:
            if (plm_paging_is_open(&p, id))
                (void)!plm_paging_fork(&p, id, p.seq[id].tokens * n / 6, &other, &err);
            break;
        case 2:
            plm_paging_close(&p, id);
            break;
        case 3:
            if (plm_paging_is_open(&p, id))
                plm_paging_truncate(&p, id, p.seq[id].tokens * n / 6);
            break;
        default:
            if (plm_paging_is_open(&p, id) &&
                plm_paging_reserve(&p, id, n, &from, &to, &err) == PLM_OK)
                plm_paging_advance(&p, id, n);
        }
        int32_t refs[BLOCKS] = {0};
        int64_t used = 0;
        for (int s = 0; s < SEQS; s++)
            for (int64_t i = 0; p.seq[s].open && i < p.seq[s].n_blocks; i++)
                refs[p.seq[s].block[i]]++;
        for (int i = 0; i < BLOCKS; i++) {
            assert_int_equal(refs[i], p.refs[i]);
            used += refs[i] > 0;
        }
        assert_int_equal(used + p.n_free, BLOCKS);
    }
    plm_paging_fini(&p);
}

/* ---- prefixes ---- */

static void step(plm_runner *r, int32_t seq, const int32_t *ids, int64_t n, float *out)
{
    int64_t rows, vocab;
    plm_part part = {seq, ids, n, PLM_WANT_ALL};
    assert_ok(plm_runner_step(r, &part, 1, &err), err);
    const float *x = plm_runner_logits(r, &rows, &vocab);
    assert_int_equal(rows, n);
    memcpy(out, x, (size_t)(rows * vocab) * sizeof *out);
}

/* Two go on from one prefix, each its own way, as if each had run alone; the first still stands. */
static void forked(const char *family, int64_t prefix)
{
    golden m;
    golden_run x;
    plm_build b = golden_build();
    static float alone[2][GOLDEN_TOKENS * 48], got[GOLDEN_TOKENS * 48];
    int32_t ids[2][GOLDEN_TOKENS], a, c;
    golden_open(&m, family);
    golden_start(&m, &b, NULL, &x);
    for (int k = 0; k < 2; k++) {
        memcpy(ids[k], m.prompt[0], sizeof ids[k]);
        for (int64_t i = prefix; k == 1 && i < GOLDEN_TOKENS; i++)
            ids[1][i] = (int32_t)((ids[0][i] + 5) % m.vocab);
        assert_ok(plm_runner_open(x.r, &a, &err), err);
        step(x.r, a, ids[k], GOLDEN_TOKENS, alone[k]);
        plm_runner_close(x.r, a);
    }
    assert_ok(plm_runner_open(x.r, &a, &err), err);
    step(x.r, a, ids[0], prefix, got);
    assert_ok(plm_runner_fork(x.r, a, prefix, &c, &err), err);
    assert_int_equal(plm_runner_tokens(x.r, c), prefix);
    size_t v = (size_t)m.vocab, bytes = (size_t)(GOLDEN_TOKENS - prefix) * v * sizeof(float);
    step(x.r, c, &ids[1][prefix], GOLDEN_TOKENS - prefix, got);
    assert_memory_equal(got, &alone[1][(size_t)prefix * v], bytes);
    step(x.r, a, &ids[0][prefix], GOLDEN_TOKENS - prefix, got);
    assert_memory_equal(got, &alone[0][(size_t)prefix * v], bytes);
    assert_true(memcmp(&alone[0][(size_t)prefix * v], &alone[1][(size_t)prefix * v], bytes) != 0);
    golden_stop(&x);
    golden_close(&m);
}

static void prefixes_are_shared(void **state)
{
    (void)state;
    for (int64_t prefix = 3; prefix <= 5; prefix++) { /* blocks hold four tokens */
        forked("llama", prefix);
        forked("deepseek_v3", prefix);
        forked("qwen3_next", prefix);
    }
}

/* ---- refusals ---- */

static void wrong_steps_are_refused(void **state)
{
    (void)state;
    golden m;
    golden_run x;
    plm_build b = golden_build();
    int32_t seq, other;
    static const int32_t ids[40] = {1, 2, 3}, bad[1] = {48};
    b.max_slots = 3 * GOLDEN_BLOCK;
    b.all_logits = false;
    golden_open(&m, "qwen3_next");
    golden_start(&m, &b, NULL, &x);
    assert_ok(plm_runner_open(x.r, &seq, &err), err);
    const struct {
        plm_part part[2];
        size_t n;
        plm_status want;
    } cases[] = {{{{seq, ids, 0, PLM_WANT_LAST}}, 1, PLM_E_INVALID},
                 {{{seq + 1, ids, 1, PLM_WANT_LAST}}, 1, PLM_E_INVALID},
                 {{{-1, ids, 1, PLM_WANT_LAST}}, 1, PLM_E_INVALID},
                 {{{seq, bad, 1, PLM_WANT_LAST}}, 1, PLM_E_INVALID},
                 {{{seq, ids, 1, PLM_WANT_ALL}}, 1, PLM_E_INVALID},
                 {{{seq, ids, 1, PLM_WANT_LAST}, {seq, ids, 1, PLM_WANT_LAST}}, 2, PLM_E_INVALID},
                 {{{seq, ids, 25, PLM_WANT_LAST}}, 1, PLM_E_LIMIT},
                 {{{seq, ids, 13, PLM_WANT_LAST}}, 1, PLM_E_LIMIT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(plm_runner_step(x.r, cases[i].part, cases[i].n, &err), cases[i].want);
        assert_int_equal(plm_runner_tokens(x.r, seq), 0);
    }
    plm_part part = {seq, ids, 12, PLM_WANT_NONE};
    int64_t rows, vocab;
    assert_ok(plm_runner_step(x.r, &part, 1, &err), err);
    plm_runner_logits(x.r, &rows, &vocab);
    assert_int_equal(rows, 0);
    assert_int_equal(plm_runner_fork(x.r, seq, 5, &other, &err), PLM_E_UNSUPPORTED); /* has state */
    /* Each node but views took time; the sum is no more than what the clock would say. */
    uint64_t sum = 0;
    for (size_t i = 0; i < x.g.n_nodes; i++)
        sum += plm_runner_node_ns(x.r)[i];
    assert_in_range(sum, 1, UINT64_C(600000000000));
    golden_stop(&x);
    golden_close(&m);
}

/* A step that mixes wanted and unwanted logits gives the rows asked for, in order. */
static void rows_are_those_wanted(void **state)
{
    (void)state;
    golden m;
    golden_run x, y;
    plm_build b = golden_build(), last = golden_build();
    int32_t s[3];
    static float all[GOLDEN_TOKENS * 48];
    int64_t rows, vocab;
    last.all_logits = false;
    golden_open(&m, "qwen3");
    golden_start(&m, &b, NULL, &x);
    assert_ok(plm_runner_open(x.r, &s[0], &err), err);
    step(x.r, s[0], m.prompt[0], 7, all);
    golden_start(&m, &last, NULL, &y);
    for (int i = 0; i < 3; i++)
        assert_ok(plm_runner_open(y.r, &s[i], &err), err);
    const plm_part parts[3] = {{s[0], m.prompt[0], 3, PLM_WANT_LAST},
                               {s[1], m.prompt[1], 5, PLM_WANT_NONE},
                               {s[2], m.prompt[0], 7, PLM_WANT_LAST}};
    assert_ok(plm_runner_step(y.r, parts, 3, &err), err);
    const float *got = plm_runner_logits(y.r, &rows, &vocab);
    assert_int_equal(rows, 2);
    assert_memory_equal(got, &all[2 * vocab], (size_t)vocab * sizeof *got);
    assert_memory_equal(got + vocab, &all[6 * vocab], (size_t)vocab * sizeof *got);
    golden_stop(&x);
    golden_stop(&y);
    golden_close(&m);
}

/* Every allocation of a start and a step fails in turn: a clean error, and no block left behind. */
static void memory_may_run_out(void **state)
{
    (void)state;
    golden m;
    golden_open(&m, "qwen3_next");
    plm_build b = golden_build();
    plm_graph g;
    int64_t live;
    unsigned failures = 0;
    assert_ok(plm_build_graph(&m.arch, &b, &g, &err), err);
    assert_ok(plm_weights_stamp(m.weights, &g, &err), err);
    plm_weight_source src = plm_weight_source_files(m.weights);
    live = plm_mem_live();
    for (uint64_t n = 1;; n += 1 + n / 40) {
        plm_backend_host host;
        plm_opened dev;
        plm_runner *r = NULL;
        int32_t seq;
        plm_mem_fail_at(n, true);
        plm_status s = plm_open("ref", 0, NULL, &host, &dev, &err);
        if (s == PLM_OK)
            s = plm_runner_create(&m.arch, &g, &dev, &src, NULL, &r, &err);
        if (s == PLM_OK)
            s = plm_runner_open(r, &seq, &err);
        if (s == PLM_OK) {
            plm_part part = {seq, m.prompt[0], 5, PLM_WANT_ALL};
            s = plm_runner_step(r, &part, 1, &err);
        }
        plm_mem_fail_at(0, false);
        plm_runner_destroy(r);
        plm_close(&dev);
        if (plm_mem_live() != live)
            fail_msg("allocation %llu: %lld blocks leaked", (unsigned long long)n,
                     (long long)(plm_mem_live() - live));
        if (s == PLM_OK)
            break;
        if (s != PLM_E_NO_MEMORY)
            fail_msg("allocation %llu: %s", (unsigned long long)n, err.text);
        failures++;
    }
    assert_true(failures > 50);
    plm_graph_fini(&g);
    golden_close(&m);
}

/* ---- sampling ---- */

static int32_t pick(const plm_sampling *how, const float *x, int64_t n)
{
    plm_sampler s;
    int32_t id;
    assert_ok(plm_sampler_init(&s, how, &err), err);
    assert_ok(plm_sampler_pick(&s, x, n, &id, &err), err);
    plm_sampler_fini(&s);
    return id;
}

/* Shares of many draws are the probabilities of the softmax that the filters leave. */
static void draws_have_their_shares(void **state)
{
    (void)state;
    static const float x[5] = {1, 3, 2, 3, -40};
    static const struct {
        plm_sampling how;
        double share[5]; /* of e^(x/T), normalised over those that stay */
    } cases[] = {
        {{1, 0, 1, 1}, {0.0541, 0.3995, 0.1470, 0.3995, 0}},
        {{2, 0, 1, 2}, {0.1245, 0.3383, 0.2052, 0.3383, 0}},
        {{1, 2, 1, 3}, {0, 0.5, 0, 0.5, 0}},
        {{1, 1, 1, 4}, {0, 1, 0, 0, 0}}, /* the lowest id of equals */
        {{1, 0, 0.5, 5}, {0, 0.5, 0, 0.5, 0}},
        {{1, 0, 0.3, 6}, {0, 1, 0, 0, 0}},
        {{0, 3, 0.9, 7}, {0, 1, 0, 0, 0}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        enum { DRAWS = 20000 };
        plm_sampler s;
        int count[5] = {0};
        assert_ok(plm_sampler_init(&s, &cases[c].how, &err), err);
        for (int i = 0; i < DRAWS; i++) {
            int32_t id;
            assert_ok(plm_sampler_pick(&s, x, 5, &id, &err), err);
            count[id]++;
        }
        for (int i = 0; i < 5; i++) /* five standard deviations of a share near a half */
            assert_close((double)count[i] / DRAWS, cases[c].share[i], 0, 0.018);
        plm_sampler_fini(&s);
    }
    /* A seed is a sequence. */
    plm_sampling how = {1, 0, 1, 9};
    assert_int_equal(pick(&how, x, 4), pick(&how, x, 4));
    const float odd[3] = {NAN, 2, NAN};
    assert_int_equal(pick(&how, odd, 3), 1);
    const plm_sampling bad[] = {{-1, 0, 1, 0}, {NAN, 0, 1, 0}, {1, -1, 1, 0}, {1, 0, 1.5, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        plm_sampler s;
        assert_int_equal(plm_sampler_init(&s, &bad[i], &err), PLM_E_INVALID);
    }
    const float none[2] = {NAN, NAN};
    plm_sampler s;
    int32_t id;
    assert_ok(plm_sampler_init(&s, &how, &err), err);
    assert_int_equal(plm_sampler_pick(&s, none, 2, &id, &err), PLM_E_INVALID);
    plm_sampler_fini(&s);
}

int main(void)
{
    plm_mem_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_has_its_number),
        cmocka_unit_test(numbers_say_the_same),
        cmocka_unit_test(a_view_is_the_whole_graph),
        cmocka_unit_test(tables_are_checked),
        cmocka_unit_test(blocks_are_shared_and_copied),
        cmocka_unit_test(blocks_are_counted),
        cmocka_unit_test(prefixes_are_shared),
        cmocka_unit_test(wrong_steps_are_refused),
        cmocka_unit_test(rows_are_those_wanted),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(draws_have_their_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
