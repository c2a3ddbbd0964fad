/* Bounds and consistency of arch records: one wrong field at a time, each named in the error. */
#include "core/base/catalog.h"
#include "core/base/mem.h"
#include "core/model/fields.h"
#include "core/model/load.h"
#include "tests/support.h"

static void load(const plm_catalog *c, const char *id, plm_arch *a)
{
    plm_error err = {0};
    assert_ok(plm_model_load(c, id, a, &err), err);
}

#define BAD(id, change, named)                                                                     \
    do {                                                                                           \
        plm_error err_ = {0};                                                                      \
        load(c, id, &a);                                                                           \
        assert_ok(plm_arch_check(&a, &err_), err_);                                                \
        change;                                                                                    \
        plm_status status_ = plm_arch_check(&a, &err_);                                            \
        if (status_ != PLM_E_INVALID || strstr(err_.text, named) == NULL)                          \
            fail_msg("%s: %d \"%s\"", #change, (int)status_, err_.text);                           \
    } while (0)

static void checks(void **state)
{
    (void)state;
    plm_error err = {0};
    plm_catalog *c;
    static plm_arch a;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    BAD("llama-3.1-8b", a.layers = 0, "num_hidden_layers");
    BAD("llama-3.1-8b", a.layers = 1025, "num_hidden_layers");
    BAD("llama-3.1-8b", a.hidden = -4096, "hidden_size");
    BAD("llama-3.1-8b", a.vocab = 0, "vocab_size");
    BAD("llama-3.1-8b", a.norm_eps = NAN, "norm_eps");
    BAD("llama-3.1-8b", a.n_kinds = 0, "kinds");
    BAD("llama-3.1-8b", a.layer_kind[7] = 1, "layer_kind");
    BAD("llama-3.1-8b", a.kind[0].heads = 0, "num_attention_heads");
    BAD("llama-3.1-8b", a.kind[0].heads = 30, "num_attention_heads");
    BAD("llama-3.1-8b", a.kind[0].kv_heads = 0, "num_key_value_heads");
    BAD("llama-3.1-8b", a.kind[0].dk = 0, "head_dim");
    BAD("llama-3.1-8b", a.kind[0].dv = -1, "v_head_dim");
    BAD("llama-3.1-8b", a.kind[0].rope.dims = 129, "rope dimensions");
    BAD("llama-3.1-8b", a.kind[0].rope.dims = 130, "rope dimensions");
    BAD("llama-3.1-8b", a.kind[0].rope.theta = INFINITY, "rope_theta");
    BAD("llama-3.1-8b", a.kind[0].norms = 5, "norms");
    BAD("llama-3.1-8b", a.kind[0].act = PLM_FN_NONE, "act");
    BAD("llama-3.1-8b", a.kind[0].top_k = 2, "num_experts");
    BAD("llama-3.1-8b", a.kind[0].kv_shared_layer = 3, "kv_shared_layer");
    BAD("llama-3.1-8b", a.kind[0].rope.n_factors = 64, "n_factors");
    BAD("gpt-oss-20b", a.kind[0].window = 0, "sliding_window");
    BAD("gpt-oss-20b", a.kind[0].top_k = 33, "num_experts_per_tok");
    BAD("gpt-oss-20b", a.kind[0].expert_ffn = 0, "moe_intermediate_size");
    BAD("deepseek-v3", a.kind[1].kv_lora = 0, "kv_lora_rank");
    BAD("deepseek-v3", a.kind[1].nope = 64, "head_dim");
    BAD("deepseek-v3", a.kind[1].n_group = 7, "n_group");
    BAD("deepseek-v3", a.kind[1].shared_ffn = 0, "shared_ffn");
    BAD("deepseek-v3", a.kind[1].router_fn = PLM_FN_NONE, "router_fn");
    BAD("deepseek-v3.2", a.kind[1].index_top_k = 0, "index_top_k");
    BAD("deepseek-v3", a.mtp_kind = 9, "mtp_kind");
    BAD("qwen3.5-27b", a.kind[0].lin_k_heads = 5, "lin_k_heads");
    BAD("nemotron-3-nano-30b-a3b", a.kind[0].ssm_state = 0, "ssm_state");
    BAD("deepseek-v4-flash", a.kind[0].o_groups = 7, "o_groups");
    /* Each width is legal, their product is not. */
    BAD("mixtral-8x7b-v0.1",
        (a.hidden = 1 << 20, a.kind[0].experts = 1 << 16, a.kind[0].expert_ffn = 1 << 24),
        "parameters");
    plm_catalog_destroy(c);
}

static void kinds(void **state)
{
    (void)state;
    static plm_arch a;
    plm_arch_init(&a);
    plm_layer k = {.attn = PLM_ATTN_FULL, .heads = 1, .kv_shared_layer = -1};
    assert_int_equal(a.kind[0].kv_shared_layer, -1);
    assert_close(a.embed_scale, 1, 0, 0);
    assert_int_equal(a.file_dtype, PLM_DT_COUNT);
    for (int32_t i = 0; i < PLM_KINDS_MAX; i++) {
        k.window = i;
        assert_int_equal(plm_arch_add_kind(&a, &k), i);
        assert_int_equal(plm_arch_add_kind(&a, &k), i);
    }
    k.window = PLM_KINDS_MAX;
    assert_int_equal(plm_arch_add_kind(&a, &k), -1);
    k.window = 3;
    k.rope.theta = 5; /* a difference in the rotation alone makes another kind */
    assert_int_equal(plm_arch_add_kind(&a, &k), -1);
}

/* plm_arch_same sees a difference in any field of the tables. */
static void same_sees_all(void **state)
{
    (void)state;
    plm_error err = {0};
    plm_catalog *c;
    static plm_arch a, b;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    load(c, "gpt-oss-20b", &a);
    plm_field_table t = plm_fields_layer();
    assert_true(t.count > 50);
    for (size_t i = 0; i < t.count; i++) {
        memcpy(&b, &a, sizeof b);
        assert_ok(plm_arch_same(&a, &b, &err), err);
        unsigned char *at = (unsigned char *)&b.kind[0] + t.field[i].offset;
        if (t.field[i].type == PLM_FIELD_BOOL)
            *(bool *)(void *)at = !*(bool *)(void *)at;
        else if (t.field[i].type == PLM_FIELD_REAL)
            *(double *)(void *)at += 0.5;
        else
            *(int32_t *)(void *)at += 1;
        assert_int_equal(plm_arch_same(&a, &b, &err), PLM_E_INVALID);
        assert_non_null(strstr(err.text, t.field[i].name));
    }
    plm_catalog_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks),
        cmocka_unit_test(kinds),
        cmocka_unit_test(same_sees_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
