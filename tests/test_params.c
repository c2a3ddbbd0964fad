/* test_params.c - parameter counts: every catalog model against tests/data/params.csv, and the
** acceptance records MF-24, CA-10.8b, CA-11 and CA-12 from models described by hand. */
#include "tests/support.h"

#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/model/build.h"
#include "core/model/load.h"

static plm_error err;
static plm_arch arch; /* some 20 KB */

typedef struct row {
    char id[64];
    int64_t total, active, no_embed, unbiased, kv_bytes;
} row;

/* Next line of the table; false at its end. */
static bool next_row(const char **at, row *r)
{
    for (const char *p = *at; *p != '\0';) {
        size_t n = strcspn(p, "\n");
        char line[256], *end;
        assert_true(n < sizeof line);
        memcpy(line, p, n);
        line[n] = '\0';
        p += n + (p[n] == '\n');
        *at = p;
        if (n == 0 || line[0] == '#' || strncmp(line, "id,", 3) == 0)
            continue;
        size_t id = strcspn(line, ",");
        assert_true(id < sizeof r->id && line[id] == ',');
        memcpy(r->id, line, id);
        r->id[id] = '\0';
        int64_t *field[] = {&r->total, &r->active, &r->no_embed, &r->unbiased, &r->kv_bytes};
        end = &line[id];
        for (int i = 0; i < 5; i++) {
            assert_int_equal(*end, ',');
            *field[i] = strtoll(end + 1, &end, 10);
        }
        assert_int_equal(*end, '\0');
        return true;
    }
    return false;
}

/* Selection biases of all routers. */
static int64_t router_biases(const plm_arch *a)
{
    int64_t n = 0;
    for (int32_t i = 0; i < a->layers; i++)
        n += plm_arch_layer(a, i)->router_bias ? plm_arch_layer(a, i)->experts : 0;
    return n;
}

static void check_row(const plm_catalog *c, const row *r)
{
    plm_params p;
    assert_ok(plm_model_load(c, r->id, &arch, &err), err);
    assert_ok(plm_count_params(&arch, &p, &err), err);
    /* What the source leaves out of `active` is that and nothing else. */
    assert_true(r->unbiased == 0 || r->unbiased == router_biases(&arch));
    if (p.total != r->total || p.active != r->active + r->unbiased ||
        p.active_no_embed != r->no_embed + r->unbiased)
        fail_msg(
            "%s: total %lld want %lld, active %lld want %lld, without embedding %lld want %lld",
            r->id, (long long)p.total, (long long)r->total, (long long)p.active,
            (long long)(r->active + r->unbiased), (long long)p.active_no_embed,
            (long long)(r->no_embed + r->unbiased));
    assert_true(p.embed == (int64_t)arch.vocab * arch.hidden);
    assert_true(p.head == (arch.tied_head ? 0 : p.embed));
    assert_true(p.experts <= p.total - p.embed - p.head);
    int64_t kv;
    const plm_kv_options o = {.k = PLM_DT_BF16, .v = PLM_DT_BF16};
    assert_ok(plm_kv_bytes_per_token(&arch, &o, &kv, &err), err);
    if (kv != r->kv_bytes)
        fail_msg("%s: %lld bytes of cache a token, want %lld", r->id, (long long)kv,
                 (long long)r->kv_bytes);
    plm_arch_fini(&arch);
}

static void catalog_models(void **state)
{
    (void)state;
    plm_catalog *c;
    char *text;
    size_t bytes, rows = 0;
    row r;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    assert_ok(plm_file_read(PLM_ROOT "/tests/data/params.csv", 1 << 20, &text, &bytes, &err), err);
    for (const char *at = text; next_row(&at, &r); rows++)
        check_row(c, &r);
    assert_int_equal(rows, 78);
    plm_free(text);
    plm_catalog_destroy(c);
}

/* Models whose owners give a rounded figure alone, which leaves out the tables beside the layers
** (engrams): within a hundredth of it. */
static void rounded_figures(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        double total;
    } models[] = {{"DeepSeek-V4-Flash", 284e9}, {"DeepSeek-V4.1-Flash", 552e9}};
    plm_catalog *c;
    plm_params p;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        assert_ok(plm_model_load(c, models[i].id, &arch, &err), err);
        assert_ok(plm_count_params(&arch, &p, &err), err);
        assert_close((double)p.total, models[i].total, 0.01, 0);
        plm_arch_fini(&arch);
    }
    plm_catalog_destroy(c);
}

/* Weights of routed experts by hand, layers x experts x 3 h w: Kimi K3 92 layers at width 3584
** (2.723 T, 1446 GB in 4.25 bits), DeepSeek-V4-Flash 43; gpt-oss-120b 36 x 128 x 3 x 2880^2 and
** their biases. What a token leaves out is the experts it is not routed to, nothing else. */
static void routed_weights(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        int64_t experts;
    } models[] = {
        {"Kimi-K3", INT64_C(92) * 896 * 33030144},
        {"DeepSeek-V4-Flash", INT64_C(43) * 256 * 3 * 4096 * 2048},
        {"gpt-oss-120b", INT64_C(36) * 128 * (24883200 + 2 * 2880 + 2880)},
    };
    plm_catalog *c;
    plm_params p;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        assert_ok(plm_model_load(c, models[i].id, &arch, &err), err);
        assert_ok(plm_count_params(&arch, &p, &err), err);
        assert_int_equal(p.experts, models[i].experts);
        const plm_layer *l = plm_arch_layer(&arch, arch.layers - 1);
        assert_int_equal(p.total - p.active, p.experts - p.experts / l->experts * l->top_k);
        plm_arch_fini(&arch);
    }
    assert_int_equal(models[0].experts, 2722740830208);
    assert_close((double)models[0].experts * 4.25 / 8, 1446e9, 1e-3, 0);
    plm_catalog_destroy(c);
}

/* Kimi K3, all of it, by hand. 69 KDA mixers: q, k, v, output 7168 x 12288; two low-rank pairs
** through 128; beta 96 x 7168; filters of 4 taps; A_log 96, dt_bias 12288, norm 128 (Kimi Linear,
** arXiv 2510.26692). 24 MLA: latents 1536 and 512, heads 96 of 192 and 128, output gate. One dense
** layer of 33792; 92 with 896 experts at width 3584 between two projections, two shared ones. */
static void kimi_k3_by_hand(void **state)
{
    (void)state;
    const int64_t h = 7168, w = 96 * 128;
    int64_t kda = 4 * h * w + 2 * (h * 128 + 128 * w) + h * 96 + 3 * 4 * w + 96 + w + 128;
    int64_t mla = h * 1536 + 1536 + INT64_C(1536) * 96 * 192 + h * 576 + 512 +
                  INT64_C(512) * 96 * 256 + 2 * w * h;
    int64_t moe = 896 * (INT64_C(33030144) + h + 1) + 2 * h * 3584 + 3 * h * 6144;
    int64_t want = 69 * kda + 24 * mla + 3 * h * 33792 + 92 * moe + 93 * 2 * h + h +
                   2 * INT64_C(163840) * h;
    plm_catalog *c;
    plm_params p;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    assert_ok(plm_model_load(c, "Kimi-K3", &arch, &err), err);
    assert_ok(plm_count_params(&arch, &p, &err), err);
    assert_int_equal(p.total, want);
    const plm_kv_options o = {.k = PLM_DT_BF16, .v = PLM_DT_BF16};
    int64_t kv, state_bytes, conv;
    assert_ok(plm_kv_bytes_per_token(&arch, &o, &kv, &err), err);
    assert_ok(plm_state_parts(&arch, &o, &state_bytes, &conv, &err), err);
    assert_int_equal(kv, 27648);
    assert_int_equal(state_bytes, 434110464); /* 69 x 96 x 128 x 128 x 4 */
    plm_arch_fini(&arch);
    plm_catalog_destroy(c);
}

/* A dense model with the fields that the acceptance records give. */
static plm_layer *dense(int32_t layers, int32_t hidden, int32_t ffn, int32_t heads,
                        int32_t kv_heads, int32_t d, int32_t vocab, bool tied)
{
    plm_layer l = {.attn = PLM_ATTN_FULL,
                   .heads = heads,
                   .kv_heads = kv_heads,
                   .dk = d,
                   .dv = d,
                   .kv_shared_layer = -1,
                   .rope = {.theta = 1e4, .dims = d},
                   .ffn = ffn,
                   .glu = true,
                   .act = PLM_FN_SILU,
                   .norms = 2};
    plm_arch_init(&arch);
    arch.layers = layers;
    arch.hidden = hidden;
    arch.vocab = vocab;
    arch.tied_head = tied;
    assert_int_equal(plm_arch_add_kind(&arch, &l), 0);
    return &arch.kind[0];
}

static plm_params count(void)
{
    plm_params p;
    assert_ok(plm_arch_check(&arch, &err), err);
    assert_ok(plm_count_params(&arch, &p, &err), err);
    return p;
}

/* MF-24.1b (rasbt/LLMs-from-scratch issue 822), CA-10.8b (ik_llama.cpp issue 84). */
static void dense_records(void **state)
{
    (void)state;
    dense(16, 2048, 8192, 32, 8, 64, 128256, true);
    plm_params p = count();
    assert_int_equal(p.total, 1235814400);
    assert_int_equal(p.embed, 262668288);
    assert_int_equal(p.head, 0);
    assert_int_equal(p.active_no_embed, p.total); /* the table is the head too */
    arch.tied_head = false;
    p = count();
    assert_int_equal(p.total, 1498482688);
    assert_int_equal(p.head, 262668288);
    dense(32, 4096, 14336, 32, 8, 128, 128256, false);
    assert_int_equal(count().total, 8030261248);
}

/* MF-24.15M, .42M, .110M (karpathy/llama2.c issue 378): a checkpoint that repeats a tied table
*counts
** it twice. Widths of the three models are those of that repository's README. */
static void tied_tables_count_once(void **state)
{
    (void)state;
    static const struct {
        int32_t layers, dim, heads, kv_heads, ffn;
        int64_t checkpoint, params;
    } m[] = {{6, 288, 6, 6, 768, 24407712, 15191712},
             {8, 512, 8, 8, 1376, 58073600, 41689600},
             {12, 768, 12, 12, 2048, 134105856, 109529856}};
    for (size_t i = 0; i < sizeof m / sizeof *m; i++) {
        dense(m[i].layers, m[i].dim, m[i].ffn, m[i].heads, m[i].kv_heads, m[i].dim / m[i].heads,
              32000, true);
        assert_int_equal(count().total, m[i].params);
        arch.tied_head = false;
        assert_int_equal(count().total, m[i].checkpoint);
    }
}

static void give_experts(plm_layer *l, int32_t experts, int32_t top_k, int32_t ffn)
{
    l->ffn = 0;
    l->experts = experts;
    l->top_k = top_k;
    l->expert_ffn = ffn;
    l->router_fn = PLM_FN_SOFTMAX;
}

/* CA-11.mixtral (jranaraki/vllm-fit issue 27), CA-11.qwen3_30b (huggingface.js issue 2182). */
static void expert_records(void **state)
{
    (void)state;
    give_experts(dense(32, 4096, 0, 32, 8, 128, 32000, false), 8, 2, 14336);
    plm_params p = count();
    assert_int_equal(p.total, 46702792704);
    assert_int_equal(p.active, 12879925248);
    assert_int_equal(p.experts, INT64_C(32) * 8 * 3 * 4096 * 14336);
    plm_layer *l = dense(48, 2048, 0, 32, 4, 128, 151936, false);
    give_experts(l, 128, 8, 768);
    l->qk_norm = PLM_QK_HEAD;
    p = count();
    assert_int_equal(p.total, 30532122624);
    assert_int_equal(p.active, 3353032704);
    assert_int_equal(p.active_no_embed, 3041867776);
}

/* CA-11.dsv3 (huggingface.js issue 2182): forgetting the shared expert gives 34997966336. */
static void latent_record(void **state)
{
    (void)state;
    plm_layer *l = dense(61, 7168, 18432, 128, 128, 192, 129280, false);
    l->attn = PLM_ATTN_MLA;
    l->dv = 128;
    l->q_lora = 1536;
    l->kv_lora = 512;
    l->nope = 128;
    l->rope_dim = l->rope.dims = 64;
    plm_layer moe = *l;
    give_experts(&moe, 256, 8, 2048);
    moe.router_fn = PLM_FN_SIGMOID;
    moe.router_bias = true;
    assert_int_equal(plm_arch_add_kind(&arch, &moe), 1);
    for (int i = 3; i < 61; i++)
        arch.layer_kind[i] = 1;
    assert_int_equal(count().active, 34997966336);
    arch.kind[1].shared_experts = 1;
    arch.kind[1].shared_ffn = 2048;
    plm_params p = count();
    assert_int_equal(p.total, 671026419200);
    assert_int_equal(p.active, 37552297472);
}

/* CA-12 (paiml/aprender issue 484): 14e9 bytes of f16 are 7e9 parameters. The same the other way:
** the bytes of a graph are two for each parameter in f16, and 4.5 bits in q4_0 for whole rows. */
static void bytes_of_weights(void **state)
{
    (void)state;
    plm_build b;
    plm_graph g;
    int64_t bytes, embed;
    dense(32, 4096, 11008, 32, 32, 128, 32000, false);
    int64_t params = count().total, norms = INT64_C(65) * 4096;
    plm_build_init(&b);
    b.recipe = plm_recipe_by_name("f16");
    assert_ok(plm_build_graph(&arch, &b, &g, &err), err);
    assert_ok(plm_graph_weight_bytes(&g, &bytes, &embed, &err), err);
    assert_int_equal(params, 6738415616);            /* Llama-2-7B */
    assert_int_equal(bytes, 2 * params + 2 * norms); /* norms are kept in f32 */
    assert_int_equal(embed, INT64_C(2) * 32000 * 4096);
    plm_graph_fini(&g);
    assert_close(14e9 / (plm_dtype_bits(PLM_DT_F16) / 8), 7e9, 0, 0);
    b.recipe = plm_recipe_by_name("bf16");
    b.fuse_qkv = b.fuse_gate_up = true;
    assert_ok(plm_build_graph(&arch, &b, &g, &err), err);
    assert_ok(plm_graph_weight_bytes(&g, &bytes, NULL, &err), err);
    assert_int_equal(bytes, 2 * params);
    plm_graph_fini(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(catalog_models),   cmocka_unit_test(rounded_figures),
        cmocka_unit_test(routed_weights),   cmocka_unit_test(kimi_k3_by_hand),
        cmocka_unit_test(dense_records),    cmocka_unit_test(tied_tables_count_once),
        cmocka_unit_test(expert_records),   cmocka_unit_test(latent_record),
        cmocka_unit_test(bytes_of_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
