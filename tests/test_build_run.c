/* test_build_run.c - graphs of the builder run by the oracles: forms that an engine may choose
*between
** compute the same logits.
**
** A small model with latent attention, gated grouped-query attention, a delta rule and experts, two
** sequences in one step. Absorbed against expanded latents, and matrices fused against apart: the
** fused ones are filled with the rows of the others.
*/
#include "core/model/build.h"
#include "tests/oracle_support.h"

enum { T = 7, SLOTS = 12, VALUES = 1024, VOCAB = 13, HID = 16 };

static plm_error err;
static plm_arch arch;

/* ---- weights by name and place ---- */

/* Number i of a weight of that name: in [-1/2, 1/2), the same in every form of the model. */
static double number(const char *name, int64_t i)
{
    uint64_t seed = test_seed(name) + (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15);
    return (double)(test_random(&seed) >> 11) / 9007199254740992.0 - 0.5;
}

/* Rows of a fused matrix come from these, one after another. */
static const struct {
    const char *fused, *part[3];
} fusions[] = {{"attn_qkv", {"attn_q", "attn_k", "attn_v"}},
               {"attn_qkv_a", {"attn_q_a", "attn_kv_a", NULL}},
               {"ffn_gate_up", {"ffn_gate", "ffn_up", NULL}},
               {"ffn_gate_up_exps", {"ffn_gate_exps", "ffn_up_exps", NULL}},
               {"ffn_gate_up_shexp", {"ffn_gate_shexp", "ffn_up_shexp", NULL}}};

/* Rows of a part in layer kind l; 0 = not one of these. */
static int64_t part_rows(const plm_layer *l, const char *part)
{
    const struct {
        const char *name;
        int64_t rows;
    } parts[] = {{"attn_q", (int64_t)l->heads * l->dk * (l->out_gate ? 2 : 1)},
                 {"attn_k", (int64_t)l->kv_heads * l->dk},
                 {"attn_v", (int64_t)l->kv_heads * l->dv},
                 {"attn_q_a", l->q_lora},
                 {"attn_kv_a", l->kv_lora + l->rope_dim},
                 {"ffn_gate", l->ffn},
                 {"ffn_up", l->ffn},
                 {"ffn_gate_exps", l->expert_ffn},
                 {"ffn_up_exps", l->expert_ffn},
                 {"ffn_gate_shexp", l->shared_ffn},
                 {"ffn_up_shexp", l->shared_ffn}};
    for (size_t i = 0; i < COUNT(parts); i++)
        if (strcmp(parts[i].name, part) == 0)
            return parts[i].rows;
    fail_msg("%s: no such part", part);
    return 0;
}

static const char *local_name(const char *name)
{
    const char *dot = strncmp(name, "blk.", 4) == 0 ? strchr(name + 4, '.') : NULL;
    return dot != NULL ? dot + 1 : name;
}

static void fill_from(const char *layer, const char *part, int64_t matrix, int64_t rows,
                      int64_t cols, double *to)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s", layer, part);
    for (int64_t i = 0; i < rows * cols; i++)
        to[i] = number(name, matrix * rows * cols + i);
}

static bool fill_fused(const plm_value *v, plm_array *a)
{
    const char *local = local_name(v->name);
    char layer[32] = "";
    memcpy(layer, v->name, (size_t)(local - v->name));
    for (size_t f = 0; f < COUNT(fusions); f++) {
        if (strcmp(fusions[f].fused, local) != 0)
            continue;
        const plm_layer *l = plm_arch_layer(&arch, v->layer);
        int64_t cols = a->dim[a->rank - 1], rows = a->dim[a->rank - 2];
        int64_t stack = a->rank == 3 ? a->dim[0] : 1;
        for (int64_t m = 0; m < stack; m++) {
            int64_t at = 0;
            for (int p = 0; p < 3 && fusions[f].part[p] != NULL; p++) {
                int64_t n = part_rows(l, fusions[f].part[p]);
                fill_from(layer, fusions[f].part[p], m, n, cols, &a->data[(m * rows + at) * cols]);
                at += n;
            }
            assert_int_equal(at, rows);
        }
        return true;
    }
    return false;
}

/* The absorbed form holds the up projection of keys by head and turned over. */
static bool fill_turned(const plm_value *v, plm_array *a)
{
    if (strcmp(local_name(v->name), "attn_k_b") != 0 || a->rank != 3)
        return false;
    int64_t heads = a->dim[0], lora = a->dim[1], nope = a->dim[2];
    for (int64_t h = 0; h < heads; h++)
        for (int64_t n = 0; n < lora; n++)
            for (int64_t k = 0; k < nope; k++)
                a->data[(h * lora + n) * nope + k] = number(v->name, (h * nope + k) * lora + n);
    return true;
}

/* ---- running ---- */

typedef struct machine {
    plm_graph g;
    plm_array v[VALUES];
} machine;

static void place(machine *m, plm_value_id id, const int64_t *dims)
{
    const plm_value *v = &m->g.values[id];
    plm_array *a = &m->v[id];
    a->rank = v->rank;
    for (uint32_t i = 0; i < v->rank; i++)
        a->dim[i] = dims[v->dim[i]];
    if (v->alias != PLM_NONE) {
        a->data = m->v[v->alias].data;
        return;
    }
    size_t n = (size_t)plm_array_count(a);
    a->data = calloc(n + 1, sizeof *a->data);
    assert_non_null(a->data);
    if (v->kind == PLM_VALUE_WEIGHT && !fill_fused(v, a) && !fill_turned(v, a))
        for (size_t i = 0; i < n; i++)
            a->data[i] = number(v->name, (int64_t)i);
    if (v->kind == PLM_VALUE_INPUT)
        for (size_t i = 0; i < n; i++) /* sequences of 4 and 3 tokens */
            a->data[i] = strcmp(v->name, "ids") == 0 ? (double)(i * 5 % VOCAB) : (double)(i % 4);
}

static void run(const plm_build *b, double *logits)
{
    static machine m;
    static const int64_t seq[T] = {0, 0, 0, 0, 1, 1, 1}, pos[T] = {0, 1, 2, 3, 0, 1, 2},
                         slot[T] = {3, 1, 7, 2, 9, 4, 0};
    int64_t slot_seq[SLOTS], slot_pos[SLOTS] = {0}, sym[PLM_SYM_COUNT] = {0};
    for (int i = 0; i < SLOTS; i++)
        slot_seq[i] = -1;
    for (int i = 0; i < T; i++) {
        slot_seq[slot[i]] = seq[i];
        slot_pos[slot[i]] = pos[i];
    }
    memset(&m, 0, sizeof m);
    assert_ok(plm_build_graph(&arch, b, &m.g, &err), err);
    assert_true(m.g.n_values <= VALUES);
    int64_t *dims = calloc(m.g.dims.count, sizeof *dims);
    assert_non_null(dims);
    sym[PLM_SYM_T] = T;
    sym[PLM_SYM_S] = 2;
    sym[PLM_SYM_C] = SLOTS;
    plm_dims_eval(&m.g.dims, sym, dims);
    for (plm_value_id i = 0; i < m.g.n_values; i++)
        place(&m, i, dims);
    for (size_t i = 0; i < m.g.n_nodes; i++) {
        const plm_node *n = &m.g.nodes[i];
        plm_array in[PLM_IN_MAX] = {{0}}, out[PLM_OUT_MAX] = {{0}};
        for (uint32_t j = 0; j < n->n_in; j++)
            if (n->in[j] != PLM_NONE)
                in[j] = m.v[n->in[j]];
        for (uint32_t j = 0; j < n->n_out; j++)
            out[j] = m.v[n->out[j]];
        plm_oracle_ctx c = {.g = &m.g,
                            .n = n,
                            .token_seq = seq,
                            .token_pos = pos,
                            .slot_seq = slot_seq,
                            .slot_pos = slot_pos,
                            .token_slot = slot,
                            .n_seq = 2};
        assert_ok(plm_op_get(n->op)->oracle(&c, in, out, &err), err);
    }
    memcpy(logits, m.v[m.g.outputs[0]].data, sizeof(double) * T * VOCAB);
    for (plm_value_id i = 0; i < m.g.n_values; i++)
        if (m.g.values[i].alias == PLM_NONE)
            free(m.v[i].data);
    free(dims);
    plm_graph_fini(&m.g);
}

/* ---- the model ---- */

static void make_model(void)
{
    plm_layer mla = {.attn = PLM_ATTN_MLA,
                     .heads = 3,
                     .kv_heads = 3,
                     .dk = 10,
                     .dv = 5,
                     .kv_shared_layer = -1,
                     .rope = {.theta = 100, .dims = 4},
                     .q_lora = 7,
                     .kv_lora = 6,
                     .nope = 6,
                     .rope_dim = 4,
                     .ffn = 9,
                     .glu = true,
                     .act = PLM_FN_SILU,
                     .norms = 4};
    plm_layer gqa = {.attn = PLM_ATTN_SLIDING,
                     .heads = 4,
                     .kv_heads = 2,
                     .dk = 6,
                     .dv = 6,
                     .window = 2,
                     .kv_shared_layer = -1,
                     .rope = {.theta = 100, .dims = 4},
                     .qk_norm = PLM_QK_HEAD,
                     .out_gate = true,
                     .sinks = true,
                     .experts = 5,
                     .top_k = 2,
                     .expert_ffn = 3,
                     .shared_experts = 1,
                     .shared_ffn = 4,
                     .shared_gate = true,
                     .router_fn = PLM_FN_SOFTMAX,
                     .renorm = true,
                     .glu = true,
                     .act = PLM_FN_GELU_TANH,
                     .norms = 2};
    plm_layer delta = {.attn = PLM_ATTN_GATED_DELTA,
                       .kv_shared_layer = -1,
                       .lin_k_heads = 2,
                       .lin_v_heads = 4,
                       .lin_dk = 3,
                       .lin_dv = 5,
                       .conv_taps = 3,
                       .ffn = 9,
                       .glu = true,
                       .act = PLM_FN_SILU,
                       .norms = 2};
    plm_arch_init(&arch);
    arch.layers = 3;
    arch.hidden = HID;
    arch.vocab = VOCAB;
    arch.tied_head = true;
    assert_int_equal(plm_arch_add_kind(&arch, &mla), 0);
    assert_int_equal(plm_arch_add_kind(&arch, &gqa), 1);
    assert_int_equal(plm_arch_add_kind(&arch, &delta), 2);
    arch.layer_kind[1] = 1;
    arch.layer_kind[2] = 2;
    assert_ok(plm_arch_check(&arch, &err), err);
}

static void forms_agree(void **state)
{
    (void)state;
    static double want[T * VOCAB], got[T * VOCAB];
    plm_build b;
    make_model();
    plm_build_init(&b);
    b.recipe = plm_recipe_by_name("f32");
    b.act = b.kv_k = b.kv_v = PLM_DT_F32;
    b.all_logits = true;
    run(&b, want);
    double spread = 0;
    for (size_t i = 1; i < COUNT(want); i++)
        spread += fabs(want[i] - want[0]);
    assert_true(spread > 1 && isfinite(spread));
    for (int form = 1; form < 8; form++) {
        b.mla_expanded = form & 1;
        b.fuse_qkv = (form & 2) != 0;
        b.fuse_gate_up = (form & 4) != 0;
        memset(got, 0, sizeof got);
        run(&b, got);
        assert_all_close(got, want, COUNT(want), 1e-11, 1e-12);
    }
}

/* A change that the model must feel: what the forms agree on depends on every part. */
static void parts_matter(void **state)
{
    (void)state;
    static double want[T * VOCAB], got[T * VOCAB];
    plm_build b;
    plm_build_init(&b);
    b.recipe = plm_recipe_by_name("f32");
    b.act = b.kv_k = b.kv_v = PLM_DT_F32;
    b.all_logits = true;
    make_model();
    run(&b, want);
    for (int part = 0; part < 6; part++) {
        make_model();
        switch (part) {
        case 0:
            arch.kind[0].rope.theta = 50;
            break;
        case 1:
            arch.kind[1].window = 3;
            break;
        case 2:
            arch.kind[1].rope.interleaved = true;
            break;
        case 3:
            arch.kind[1].router_scale = 2;
            break;
        case 4:
            arch.residual_scale = 0.5;
            break;
        default:
            arch.logit_softcap = 3;
            break;
        }
        run(&b, got);
        double change = 0;
        for (size_t i = 0; i < COUNT(want); i++)
            change += fabs(got[i] - want[i]);
        if (!(change > 1e-3))
            fail_msg("part %d: changes the logits by %g in all", part, change);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_agree),
        cmocka_unit_test(parts_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
