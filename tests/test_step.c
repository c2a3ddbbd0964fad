/* Cost programs: a folded program says what asking every node's rule says; knobs change their own term
** and nothing else; fusion drops inner traffic; failing allocations end cleanly. */
#include "core/base/mem.h"
#include "core/ir/fn.h"
#include "core/model/load.h"
#include "sim/step/step.h"
#include "tests/support.h"

/* ---- a small transformer by hand ---- */

typedef struct net {
    plm_graph g;
    plm_dim T, C, R;
    int64_t h, heads, kv_heads, d, ffn, experts, top_k;
    int serial;
} net;

static plm_dim k(net *x, int64_t v)
{
    return plm_dim_const(&x->g.dims, v);
}

static plm_value_id value(net *x, plm_value_kind kind, plm_role role, plm_dtype t, uint32_t rank,
                          plm_dim a, plm_dim b, plm_dim c)
{
    char name[24];
    snprintf(name, sizeof name, "v%d", x->serial++);
    return plm_graph_value(&x->g, kind, role, t, name, rank, (plm_dim[]){a, b, c});
}

static plm_value_id linear(net *x, plm_value_id in, plm_role role, int64_t n, int64_t cols)
{
    plm_value_id w = value(x, PLM_VALUE_WEIGHT, role, PLM_DT_BF16, 2, k(x, n), k(x, cols), 0);
    plm_node_begin(&x->g, PLM_OP_LINEAR);
    plm_node_in(&x->g, in);
    plm_node_in(&x->g, w);
    return plm_node_end(&x->g, PLM_DT_COUNT);
}

static plm_value_id norm(net *x, plm_value_id in)
{
    plm_value_id w = value(x, PLM_VALUE_WEIGHT, PLM_ROLE_NORM, PLM_DT_BF16, 1, k(x, x->h), 0, 0);
    plm_node_begin(&x->g, PLM_OP_RMS_NORM);
    plm_node_in(&x->g, in);
    plm_node_in(&x->g, w);
    plm_node_real(&x->g, PLM_ATTR_EPS, 1e-6);
    return plm_node_end(&x->g, PLM_DT_COUNT);
}

static plm_value_id two(net *x, plm_op op, plm_value_id a, plm_value_id b)
{
    plm_node_begin(&x->g, op);
    plm_node_in(&x->g, a);
    plm_node_in(&x->g, b);
    if (op == PLM_OP_GLU)
        plm_node_int(&x->g, PLM_ATTR_FN, PLM_FN_SILU);
    return plm_node_end(&x->g, PLM_DT_COUNT);
}

static plm_value_id shape(net *x, plm_value_id in, int64_t rank, int64_t d1, int64_t d2)
{
    plm_node_begin(&x->g, PLM_OP_RESHAPE);
    plm_node_in(&x->g, in);
    plm_node_int(&x->g, PLM_ATTR_RANK, rank);
    plm_node_int(&x->g, PLM_ATTR_D0, -1);
    plm_node_int(&x->g, PLM_ATTR_D1, d1);
    if (rank > 2)
        plm_node_int(&x->g, PLM_ATTR_D2, d2);
    return plm_node_end(&x->g, PLM_DT_COUNT);
}

static plm_value_id attention(net *x, plm_value_id in)
{
    int64_t kw = x->kv_heads * x->d;
    plm_value_id q = shape(x, linear(x, in, PLM_ROLE_Q, x->heads * x->d, x->h), 3, x->heads, x->d);
    plm_value_id key = shape(x, linear(x, in, PLM_ROLE_K, kw, x->h), 3, x->kv_heads, x->d);
    plm_value_id val = shape(x, linear(x, in, PLM_ROLE_V, kw, x->h), 3, x->kv_heads, x->d);
    plm_value_id kc = value(x, PLM_VALUE_STATE, PLM_ROLE_KV, PLM_DT_BF16, 3, x->C,
                            k(x, x->kv_heads), k(x, x->d));
    plm_value_id vc = value(x, PLM_VALUE_STATE, PLM_ROLE_KV, PLM_DT_BF16, 3, x->C,
                            k(x, x->kv_heads), k(x, x->d));
    plm_node_begin(&x->g, PLM_OP_KV_WRITE);
    plm_node_in(&x->g, key);
    plm_node_in(&x->g, kc);
    plm_node_in(&x->g, val);
    plm_node_in(&x->g, vc);
    kc = plm_node_end(&x->g, PLM_DT_COUNT);
    vc = plm_node_out(&x->g, 1);
    plm_node_begin(&x->g, PLM_OP_ATTENTION);
    plm_node_in(&x->g, q);
    plm_node_in(&x->g, kc);
    plm_node_in(&x->g, vc);
    plm_node_int(&x->g, PLM_ATTR_HEADS, x->heads);
    plm_node_int(&x->g, PLM_ATTR_KV_HEADS, x->kv_heads);
    plm_node_int(&x->g, PLM_ATTR_DK, x->d);
    plm_node_int(&x->g, PLM_ATTR_DV, x->d);
    plm_node_int(&x->g, PLM_ATTR_CAUSAL, 1);
    plm_value_id y = shape(x, plm_node_end(&x->g, PLM_DT_COUNT), 2, x->heads * x->d, 0);
    return linear(x, y, PLM_ROLE_O, x->h, x->heads * x->d);
}

static plm_value_id grouped(net *x, plm_value_id in, plm_value_id offsets, plm_role role, int64_t n,
                            int64_t cols)
{
    plm_value_id w = value(x, PLM_VALUE_WEIGHT, role, PLM_DT_BF16, 3, k(x, x->experts), k(x, n),
                           k(x, cols));
    plm_node_begin(&x->g, PLM_OP_LINEAR_GROUPED);
    plm_node_in(&x->g, in);
    plm_node_in(&x->g, w);
    plm_node_in(&x->g, offsets);
    plm_node_int(&x->g, PLM_ATTR_EXPERTS, x->experts);
    plm_node_int(&x->g, PLM_ATTR_LOCAL_EXPERTS, x->experts);
    plm_node_int(&x->g, PLM_ATTR_TOP_K, x->top_k);
    return plm_node_end(&x->g, PLM_DT_COUNT);
}

static plm_value_id experts(net *x, plm_value_id in)
{
    plm_value_id logits = linear(x, in, PLM_ROLE_ROUTER, x->experts, x->h);
    plm_node_begin(&x->g, PLM_OP_GATE);
    plm_node_in(&x->g, logits);
    plm_node_int(&x->g, PLM_ATTR_FN, PLM_FN_SOFTMAX);
    plm_node_int(&x->g, PLM_ATTR_EXPERTS, x->experts);
    plm_node_int(&x->g, PLM_ATTR_TOP_K, x->top_k);
    plm_value_id weights = plm_node_end(&x->g, PLM_DT_F32), ids = plm_node_out(&x->g, 1);
    plm_node_begin(&x->g, PLM_OP_MOE_SORT);
    plm_node_in(&x->g, in);
    plm_node_in(&x->g, ids);
    plm_node_int(&x->g, PLM_ATTR_EXPERTS, x->experts);
    plm_node_int(&x->g, PLM_ATTR_LOCAL_EXPERTS, x->experts);
    plm_node_int(&x->g, PLM_ATTR_TOP_K, x->top_k);
    plm_value_id rows = plm_node_end(&x->g, PLM_DT_COUNT), offsets = plm_node_out(&x->g, 1);
    plm_value_id perm = plm_node_out(&x->g, 2);
    plm_value_id a = grouped(x, rows, offsets, PLM_ROLE_EXPERT_GATE, x->ffn, x->h);
    plm_value_id b = grouped(x, rows, offsets, PLM_ROLE_EXPERT_UP, x->ffn, x->h);
    plm_value_id y = grouped(x, two(x, PLM_OP_GLU, a, b), offsets, PLM_ROLE_EXPERT_DOWN, x->h,
                             x->ffn);
    plm_node_begin(&x->g, PLM_OP_MOE_COMBINE);
    plm_node_in(&x->g, y);
    plm_node_in(&x->g, perm);
    plm_node_in(&x->g, weights);
    return plm_node_end(&x->g, PLM_DT_BF16);
}

static plm_value_id dense(net *x, plm_value_id in)
{
    plm_value_id a = linear(x, in, PLM_ROLE_GATE, x->ffn, x->h);
    plm_value_id b = linear(x, in, PLM_ROLE_UP, x->ffn, x->h);
    return linear(x, two(x, PLM_OP_GLU, a, b), PLM_ROLE_DOWN, x->h, x->ffn);
}

/* experts 0 = dense. Graph of `layers` layers and a head; errors are left for the caller. */
static void build_net(net *x, int layers, int64_t n_experts)
{
    *x = (net){.h = 1024, .heads = 16, .kv_heads = 4, .d = 64, .ffn = 3072, .experts = n_experts,
               .top_k = 4};
    plm_graph_init(&x->g);
    x->T = plm_dim_sym(&x->g.dims, PLM_SYM_T);
    x->C = plm_dim_sym(&x->g.dims, PLM_SYM_C);
    x->R = plm_dim_sym(&x->g.dims, PLM_SYM_R);
    x->g.dims.hi[PLM_SYM_T] = 2048;
    plm_value_id y = value(x, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_BF16, 2, x->T, k(x, x->h), 0);
    for (int i = 0; i < layers; i++) {
        x->g.layer = i;
        y = two(x, PLM_OP_ADD, attention(x, norm(x, y)), y);
        plm_value_id n = norm(x, y);
        y = two(x, PLM_OP_ADD, n_experts > 0 ? experts(x, n) : dense(x, n), y);
    }
    x->g.layer = -1;
    plm_value_id rows = value(x, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_I32, 1, x->R, 0, 0);
    y = two(x, PLM_OP_GATHER, y, rows);
    plm_graph_output(&x->g, linear(x, norm(x, y), PLM_ROLE_HEAD, 32000, x->h), "logits");
}

static plm_program *program(int layers, int64_t n_experts, uint64_t fuse)
{
    net x;
    plm_program *p;
    plm_error err = {0};
    build_net(&x, layers, n_experts);
    assert_ok(plm_graph_finish(&x.g, &err), err);
    assert_ok(plm_program_create(&x.g, fuse, (int32_t)x.top_k, &p, &err), err);
    plm_graph_fini(&x.g);
    return p;
}

static plm_machine machine(const plm_profile *p)
{
    plm_device d = {.bandwidth_bytes_s = 3.35e12, .vector_flop_s = 66.9e12, .exp_s = 3.865e12,
                    .sm_count = 132, .l2_bytes = 50e6, .link_bytes_s = 450e9};
    plm_machine m;
    plm_error err = {0};
    d.peak_flop_s[PLM_MATH_BF16] = d.peak_flop_s[PLM_MATH_F16] = 989.4e12;
    assert_ok(plm_machine_bind(&d, p, &m, &err), err);
    return m;
}

static plm_profile busy_profile(void)
{
    plm_profile p = {.launch_s = 2e-6, .step_s = 1e-4, .seq_s = 1e-6, .layer_s = 3e-6,
                     .ramp_bytes = 1e5, .kernel_floor_s = 2e-6, .skinny_m = 8, .skinny_eff = 0.7,
                     .attn_decode_eff = 0.6, .moe_eff_small = 0.5, .tile_quant = true};
    for (int i = 0; i < PLM_CLASS_COUNT; i++)
        p.mem_eff[i] = p.tensor_eff[i] = 0.8;
    return p;
}

static plm_step step(const plm_program *p, const plm_machine *m, int64_t q, int64_t c, int64_t count)
{
    plm_segment seg = {q, c, count};
    plm_batch b = {&seg, 1, -1, 0};
    plm_step s;
    plm_step_time(p, m, &b, &s);
    return s;
}

/* ---- tests ---- */

/* Adds the nodes' work and cost, by the rules and plm_op_cost alone; attention nodes or all others. */
static void add_nodes(const plm_graph *g, const plm_machine *m, const plm_batch *b, int64_t top_k,
                      bool attend, plm_step *s)
{
    int64_t sym[PLM_SYM_COUNT], dims[512];
    assert_true(g->dims.count < 512);
    plm_batch_symbols(b, top_k, sym);
    plm_dims_eval(&g->dims, sym, dims);
    for (size_t i = 0; i < g->n_nodes && b->n_seg > 0; i++) {
        const plm_op_info *op = plm_op_get(g->nodes[i].op);
        plm_work w = {.weight_dtype = PLM_DT_COUNT};
        plm_op_time t;
        if (op->work == NULL || (g->nodes[i].op == PLM_OP_ATTENTION) != attend)
            continue;
        op->work(g, &g->nodes[i], dims, b, &w);
        plm_op_cost(m, op->cls, &w, &t);
        s->time_s += t.time_s;
        s->flop += w.tensor_flop + w.vector_flop;
        s->exp += w.exp;
        s->bytes += w.weight_bytes + w.act_read_bytes + w.act_write_bytes + w.kv_read_bytes +
                    w.kv_write_bytes + w.state_bytes;
    }
}

/* Single tokens and longer segments meet attention in kernels of their own. */
static plm_step by_nodes(const plm_graph *g, const plm_machine *m, const plm_batch *b, int64_t top_k,
                         double layers)
{
    plm_step s = {0};
    plm_segment part[2][4];
    plm_batch split[2] = {{part[0], 0, -1, 0}, {part[1], 0, -1, 0}};
    double sequences = 0;
    for (uint32_t i = 0; i < b->n_seg; i++) {
        int k2 = b->seg[i].q_len > 1;
        part[k2][split[k2].n_seg++] = b->seg[i];
        sequences += (double)b->seg[i].count;
    }
    add_nodes(g, m, b, top_k, false, &s);
    add_nodes(g, m, &split[0], top_k, true, &s);
    add_nodes(g, m, &split[1], top_k, true, &s);
    s.time_s += m->prof.step_s + sequences * m->prof.seq_s + layers * m->prof.layer_s;
    return s;
}

static void a_program_says_what_its_nodes_say(void **state)
{
    uint64_t seed = test_seed("a_program_says_what_its_nodes_say");
    plm_profile prof = busy_profile();
    plm_machine m = machine(&prof);
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        net x;
        plm_error err = {0};
        build_net(&x, 5, kind * 32);
        assert_ok(plm_graph_finish(&x.g, &err), err);
        plm_program *p = program(5, kind * 32, 0);
        for (int i = 0; i < 60; i++) {
            plm_segment seg[3];
            bool prefill = i % 3 == 1, mixed = i % 3 == 2;
            for (int j = 0; j < 3; j++)
                seg[j] = (plm_segment){
                    .q_len = prefill || (mixed && j == 2) ? 2 + (int64_t)(test_random(&seed) % 900)
                                                          : 1,
                    .kv_len = (int64_t)(test_random(&seed) % 5000),
                    .count = 1 + (int64_t)(test_random(&seed) % 40)};
            plm_batch b = {seg, 1 + (uint32_t)(i % 3), i % 5 ? -1 : 17, i % 2 ? 1.3 : 0};
            plm_step got, want = by_nodes(&x.g, &m, &b, x.top_k, 5);
            plm_step_time(p, &m, &b, &got);
            assert_close(got.flop, want.flop, 1e-9, 0);
            assert_close(got.bytes, want.bytes, 1e-9, 0);
            assert_close(got.exp, want.exp, 1e-9, 0);
            assert_close(got.time_s, want.time_s, 1e-9, 0);
            double parts = 0;
            for (int j = 0; j < PLM_BOUND_COUNT; j++)
                parts += got.part_s[j];
            assert_close(parts, got.time_s, 1e-12, 0);
        }
        plm_program_destroy(p);
        plm_graph_fini(&x.g);
    }
}

static void equal_layers_fold(void **state)
{
    plm_profile prof = busy_profile();
    prof.step_s = prof.seq_s = 0;
    plm_machine m = machine(&prof);
    plm_program *a = program(4, 0, 0), *b = program(40, 0, 0);
    (void)state;
    assert_int_equal(plm_program_rows(a), plm_program_rows(b));
    assert_true(plm_program_rows(a) <= 20);
    /* Time, FLOP and weights grow by the same layer 36 times over. */
    plm_program *c = program(5, 0, 0);
    double ta = step(a, &m, 1, 100, 4).time_s, tb = step(b, &m, 1, 100, 4).time_s;
    double tc = step(c, &m, 1, 100, 4).time_s;
    assert_close(tb - ta, 36 * (tc - ta), 1e-9, 0);
    assert_close((double)(plm_program_weight_bytes(b) - plm_program_weight_bytes(a)),
                 36.0 * (double)(plm_program_weight_bytes(c) - plm_program_weight_bytes(a)), 0, 0);
    assert_int_equal(plm_program_activation_bytes(a), plm_program_activation_bytes(b));
    assert_true(plm_program_activation_bytes(a) > 0);
    plm_program_destroy(a);
    plm_program_destroy(b);
    plm_program_destroy(c);
}

/* serving_facts section 27: 24 layers of 12 kernels, launch cost 3 us -> 0 removes exactly .864 ms. */
static void launch_cost_is_one_term(void **state)
{
    net x = {.h = 1024};
    plm_program *p;
    plm_error err = {0};
    (void)state;
    plm_graph_init(&x.g);
    x.T = plm_dim_sym(&x.g.dims, PLM_SYM_T);
    plm_value_id y = value(&x, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_BF16, 2, x.T, k(&x, 1024), 0);
    for (int i = 0; i < 24; i++)
        for (int j = 0; j < 12; j++) {
            x.g.layer = i;
            y = j % 3 == 0 ? norm(&x, y) : linear(&x, y, PLM_ROLE_O, 1024, 1024);
        }
    plm_graph_output(&x.g, y, "y");
    assert_ok(plm_graph_finish(&x.g, &err), err);
    assert_ok(plm_program_create(&x.g, 0, 0, &p, &err), err);
    plm_profile prof = {.launch_s = 3e-6};
    plm_machine with = machine(&prof);
    prof.launch_s = 0;
    plm_machine without = machine(&prof);
    plm_step a = step(p, &with, 1, 0, 16), b = step(p, &without, 1, 0, 16);
    assert_close(a.time_s - b.time_s, 0.864e-3, 1e-12, 0);
    assert_close(a.part_s[PLM_BOUND_OVERHEAD] - b.part_s[PLM_BOUND_OVERHEAD], 0.864e-3, 1e-12, 0);
    for (int i = 0; i < PLM_BOUND_OVERHEAD; i++)
        assert_close(a.part_s[i], b.part_s[i], 1e-12, 0);
    assert_close(b.part_s[PLM_BOUND_OVERHEAD], 0, 0, 0);
    plm_program_destroy(p);
    plm_graph_fini(&x.g);
}

static void step_layer_and_sequence_costs_add(void **state)
{
    plm_profile none = {0}, some = {.step_s = 1e-3, .layer_s = 1e-5, .seq_s = 1e-6};
    plm_machine a = machine(&none), b = machine(&some);
    plm_program *p = program(6, 0, 0);
    (void)state;
    assert_close(step(p, &b, 1, 10, 32).time_s - step(p, &a, 1, 10, 32).time_s,
                 1e-3 + 6e-5 + 32e-6, 1e-9, 0);
    plm_program_destroy(p);
}

static uint64_t bit(const char *name)
{
    for (size_t i = 0; i < plm_fusion_count(); i++)
        if (strcmp(plm_fusion_name(i), name) == 0)
            return UINT64_C(1) << i;
    fail_msg("no pattern %s", name);
    return 0;
}

/* A fused group drops what only its members write and read, and its launches but one. Per layer and
** token: glu 2 * 3072 numbers written and read again; add_norm reads 1024 twice less, here in 2 sums of
** a layer, of which the last of the net is read through a gather instead. */
static void fusion_drops_inner_traffic(void **state)
{
    plm_profile prof = {.launch_s = 1e-6};
    plm_machine m = machine(&prof);
    plm_program *plain = program(8, 0, 0), *glu = program(8, 0, bit("glu"));
    plm_program *sums = program(8, 0, bit("add_norm"));
    plm_step a = step(plain, &m, 1, 100, 16), b = step(glu, &m, 1, 100, 16);
    plm_step c = step(sums, &m, 1, 100, 16);
    (void)state;
    assert_close(a.bytes - b.bytes, 8.0 * 16 * 2 * 3072 * 2 * 2, 1e-9, 0);
    assert_close(a.flop, b.flop, 1e-12, 0);
    assert_close(a.exp, b.exp, 1e-12, 0);
    assert_close(a.part_s[PLM_BOUND_OVERHEAD] - b.part_s[PLM_BOUND_OVERHEAD], 8 * 2e-6, 1e-9, 0);
    assert_close(a.bytes - c.bytes, 15.0 * 16 * 1024 * 2, 1e-9, 0);
    assert_close(a.part_s[PLM_BOUND_OVERHEAD] - c.part_s[PLM_BOUND_OVERHEAD], 15 * 1e-6, 1e-9, 0);
    plm_program_destroy(plain);
    plm_program_destroy(glu);
    plm_program_destroy(sums);
}

/* Experts of a fused glu are hit as often as apart, and read once each. */
static void fused_experts_read_the_same_weights(void **state)
{
    plm_profile prof = {0};
    plm_machine m = machine(&prof);
    plm_program *plain = program(3, 64, 0), *glu = program(3, 64, bit("glu"));
    (void)state;
    for (int64_t n = 1; n <= 4096; n *= 4) {
        plm_step a = step(plain, &m, 1, 50, n), b = step(glu, &m, 1, 50, n);
        assert_close(a.bytes - b.bytes, 3.0 * (double)n * 4 * 2 * 3072 * 2 * 2, 1e-6, 0);
        assert_close(a.flop, b.flop, 1e-12, 0);
        assert_true(b.time_s <= a.time_s * (1 + 1e-12));
    }
    plm_program_destroy(plain);
    plm_program_destroy(glu);
}

/* The group of a link has the link's time and that of the rest, and one launch. */
static void a_link_keeps_its_time_in_a_group(void **state)
{
    plm_profile prof = {.launch_s = 1e-6};
    plm_machine m = machine(&prof);
    double time[2];
    (void)state;
    m.link_alpha_s = 5e-6;
    for (int fused = 0; fused < 2; fused++) {
        net x = {.h = 1024};
        plm_program *p;
        plm_error err = {0};
        plm_graph_init(&x.g);
        x.T = plm_dim_sym(&x.g.dims, PLM_SYM_T);
        plm_value_id a = value(&x, PLM_VALUE_INPUT, PLM_ROLE_NONE, PLM_DT_BF16, 2, x.T, k(&x, 1024),
                               0);
        plm_node_begin(&x.g, PLM_OP_ALL_REDUCE);
        plm_node_in(&x.g, a);
        plm_node_int(&x.g, PLM_ATTR_RANKS, 8);
        plm_value_id y = norm(&x, two(&x, PLM_OP_ADD, plm_node_end(&x.g, PLM_DT_COUNT), a));
        plm_graph_output(&x.g, y, "y");
        assert_ok(plm_graph_finish(&x.g, &err), err);
        assert_ok(plm_program_create(&x.g, fused ? bit("allreduce_norm") : 0, 0, &p, &err), err);
        plm_step s = step(p, &m, 1, 0, 64);
        time[fused] = s.time_s;
        assert_close(s.part_s[PLM_BOUND_OVERHEAD], fused ? 1e-6 : 3e-6, 1e-9, 0);
        assert_close(s.part_s[PLM_BOUND_LINK],
                     plm_link_s(&m, PLM_LINK_ALL_REDUCE, 8, 1, 64 * 1024 * 2), 1e-9, 0);
        assert_close(s.link_bytes, 64 * 1024 * 2, 0, 0);
        plm_program_destroy(p);
        plm_graph_fini(&x.g);
    }
    assert_true(time[1] < time[0]);
}

static void rows_add_up_to_the_step(void **state)
{
    plm_profile prof = busy_profile();
    plm_machine m = machine(&prof);
    plm_program *p = program(7, 32, bit("glu") | bit("add_norm"));
    plm_segment seg[2] = {{1, 700, 30}, {512, 128, 1}};
    plm_batch b = {seg, 2, -1, 0};
    plm_step s;
    plm_step_row rows[64];
    (void)state;
    plm_step_time(p, &m, &b, &s);
    static const size_t rooms[] = {64, 3};
    for (size_t r = 0; r < 2; r++) {
        size_t n = plm_step_rows(p, &m, &b, rows, rooms[r]);
        double time = 0, flop = 0, bytes = 0, exp = 0;
        bool decode = false, prefill = false;
        for (size_t i = 0; i < n; i++) {
            time += rows[i].time_s;
            flop += rows[i].flop;
            bytes += rows[i].bytes;
            exp += rows[i].exp;
            decode |= strcmp(rows[i].name, "attention decode") == 0 && rows[i].count == 7;
            prefill |= strcmp(rows[i].name, "attention prefill") == 0 && rows[i].count == 7;
        }
        assert_true(n <= rooms[r]);
        assert_close(time, s.time_s, 1e-12, 0);
        assert_close(flop, s.flop, 1e-12, 0);
        assert_close(bytes, s.bytes, 1e-12, 0);
        assert_close(exp, s.exp, 1e-12, 0);
        if (r == 0)
            assert_true(decode && prefill);
    }
    assert_int_equal(plm_step_rows(p, &m, &b, rows, 0), 0);
    plm_program_destroy(p);
}

/* More sequences never make one of them faster, and never make the step shorter (serving_facts S1). */
static void steps_grow_with_the_batch(void **state)
{
    plm_profile prof = busy_profile();
    plm_machine m = machine(&prof);
    plm_program *p[2] = {program(6, 0, 0), program(6, 32, 0)};
    (void)state;
    for (int i = 0; i < 2; i++) {
        double last = 0;
        for (int64_t n = 1; n <= 8192; n = n * 5 / 4 + 1) {
            /* Above the rows of the mat-vec kernel, whose share of bandwidth is its own. */
            double t = step(p[i], &m, 1, 1000, n).time_s;
            assert_true(n < 10 || t >= last * (1 - 1e-12));
            last = t;
        }
        plm_program_destroy(p[i]);
    }
}

/* Relative change of the time for a change of each resource: together they are all of it. */
static void elasticities_sum_to_one(void **state)
{
    plm_profile prof = busy_profile();
    plm_machine m = machine(&prof);
    plm_program *p = program(6, 0, 0);
    double base = step(p, &m, 1, 3000, 64).time_s, sum = 0;
    (void)state;
    for (int i = 0; i < PLM_BOUND_COUNT; i++) {
        m.scale[i] = 1.0001;
        sum += (base / step(p, &m, 1, 3000, 64).time_s - 1) / 0.0001;
        m.scale[i] = 1;
    }
    assert_close(sum, 1, 0, 1e-3);
    plm_program_destroy(p);
}

/* A model that fits the last cache is read from there. */
static void small_models_stay_in_cache(void **state)
{
    plm_profile prof = {.cache_rate = 4};
    plm_machine m = machine(&prof);
    plm_program *p = program(1, 0, 0);
    (void)state;
    m.cache_bytes = 1e9;
    double fast = step(p, &m, 1, 0, 1).time_s;
    m.cache_bytes = 1e6;
    double slow = step(p, &m, 1, 0, 1).time_s;
    assert_close(slow / fast, 4, 0.02, 0);
    plm_program_destroy(p);
}

static void failed_allocations_end_cleanly(void **state)
{
    int64_t before = plm_mem_live();
    bool done = false;
    (void)state;
    for (uint64_t n = 1; !done && n < 2000; n++) {
        net x;
        plm_program *p = NULL;
        plm_error err = {0};
        build_net(&x, 2, 8);
        assert_ok(plm_graph_finish(&x.g, &err), err);
        plm_mem_fail_at(n, false);
        plm_status s = plm_program_create(&x.g, UINT64_MAX, 4, &p, &err);
        plm_mem_fail_at(0, false);
        done = s == PLM_OK;
        if (!done) {
            assert_int_equal(s, PLM_E_NO_MEMORY);
            assert_null(p);
        }
        plm_program_destroy(p);
        plm_graph_fini(&x.g);
        assert_int_equal(plm_mem_live(), before);
    }
    assert_true(done);
}

/* serving_facts S1 end to end: Llama-3.1-8B of the catalog on an ideal H100 (3.35 TB/s, 989.4 TFLOP/s),
** a cache of 2047 tokens and the one each sequence writes. S1 counts bytes of weights and KV, and
** matrix FLOP: activations stay on chip, and exp and vector units are out of the way. */
static void llama_8b_takes_the_published_times(void **state)
{
    static const struct {
        int64_t batch;
        double ms;
    } rows[] = {{1, 4.561}, {8, 5.122}, {32, 7.045}, {64, 9.609}, {128, 14.737}, {256, 24.994}};
    plm_catalog *c;
    plm_arch a;
    plm_build b;
    plm_graph g;
    plm_program *p;
    plm_error err = {0};
    plm_profile prof = {0};
    plm_machine m = machine(&prof);
    (void)state;
    m.cache_bytes = 1e12;
    m.inv_vector = m.inv_exp = 0;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    assert_ok(plm_model_load(c, "llama-3.1-8b", &a, &err), err);
    plm_build_init(&b);
    assert_ok(plm_build_graph(&a, &b, &g, &err), err);
    assert_ok(plm_program_create(&g, 0, 0, &p, &err), err);
    assert_int_equal(plm_program_weight_bytes(p) - plm_program_embed_bytes(p), 15009849344);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plm_step s = step(p, &m, 1, 2047, rows[i].batch);
        assert_close(s.time_s * 1e3, rows[i].ms, 1e-4, 5e-4);
        assert_int_equal(s.bound, PLM_BOUND_MEMORY);
    }
    plm_program_destroy(p);
    plm_graph_fini(&g);
    plm_arch_fini(&a);
    plm_catalog_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_says_what_its_nodes_say),
        cmocka_unit_test(equal_layers_fold),
        cmocka_unit_test(launch_cost_is_one_term),
        cmocka_unit_test(step_layer_and_sequence_costs_add),
        cmocka_unit_test(fusion_drops_inner_traffic),
        cmocka_unit_test(fused_experts_read_the_same_weights),
        cmocka_unit_test(a_link_keeps_its_time_in_a_group),
        cmocka_unit_test(rows_add_up_to_the_step),
        cmocka_unit_test(steps_grow_with_the_batch),
        cmocka_unit_test(elasticities_sum_to_one),
        cmocka_unit_test(small_models_stay_in_cache),
        cmocka_unit_test(failed_allocations_end_cleanly),
        cmocka_unit_test(llama_8b_takes_the_published_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
