/* The catalog's 81 model records: all read, all sane, and their published totals are those that the
** fields give by the closed form below. */
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/catalog.h"
#include "core/base/mem.h"
#include "core/model/fields.h"
#include "core/model/load.h"
#include "tests/gguf_writer.h"
#include "tests/support.h"

typedef struct count {
    int64_t total, active;
} count;

/* Weights of an attention half; -1 for the kinds whose form the sources do not give in full. */
static int64_t mixer_params(const plm_arch *a, const plm_layer *k)
{
    int64_t h = a->hidden, q = (int64_t)k->heads * k->dk, kk = (int64_t)k->kv_heads * k->dk;
    int64_t v = (int64_t)k->kv_heads * k->dv, o = (int64_t)k->heads * k->dv, n = 0;
    int64_t lk = (int64_t)k->lin_k_heads * k->lin_dk, lv = (int64_t)k->lin_v_heads * k->lin_dv;
    switch (k->attn) {
    case PLM_ATTN_NONE:
        return 0;
    case PLM_ATTN_FULL:
    case PLM_ATTN_SLIDING:
    case PLM_ATTN_CHUNKED:
        n = h * q * (k->out_gate ? 2 : 1) + h * kk + (k->k_eq_v ? 0 : h * v) + o * h;
        n += (k->bias_q ? q : 0) + (k->bias_k ? kk : 0) + (k->bias_v ? v : 0) + (k->bias_o ? h : 0);
        n += k->sinks ? k->heads : 0;
        return n + (k->qk_norm == PLM_QK_HEAD ? 2 * k->dk : k->qk_norm == PLM_QK_FULL ? q + kk : 0);
    case PLM_ATTN_MLA:
        n = k->q_lora > 0 ? h * k->q_lora + k->q_lora + k->q_lora * q : h * q;
        n += h * (k->kv_lora + k->rope_dim) + k->kv_lora +
             (int64_t)k->kv_lora * k->heads * (k->nope + k->dv) + o * h;
        if (k->index_heads > 0)
            n += (int64_t)k->q_lora * k->index_heads * k->index_dim + h * k->index_dim +
                 h * k->index_heads + 2 * k->index_dim;
        return n;
    case PLM_ATTN_GATED_DELTA:
        return h * (2 * lk + 2 * lv) + h * 2 * k->lin_v_heads + (2 * lk + lv) * k->conv_taps +
               2 * k->lin_v_heads + k->lin_dv + lv * h;
    case PLM_ATTN_MAMBA2: {
        int64_t bc = 2 * (int64_t)k->ssm_groups * k->ssm_state;
        return h * (2 * lv + bc + k->lin_v_heads) + (lv + bc) * (k->conv_taps + 1) +
               3 * k->lin_v_heads + lv + lv * h;
    }
    default:
        return -1;
    }
}

static count ffn_params(const plm_arch *a, const plm_layer *k)
{
    int64_t h = a->hidden, mats = k->glu ? 3 : 2, both = 0, expert;
    int64_t wide = k->expert_hidden > 0 ? k->expert_hidden : h;
    if (k->ffn > 0)
        both += mats * h * k->ffn + (k->bias_mlp ? (mats - 1) * k->ffn + h : 0);
    if (k->experts == 0)
        return (count){both, both};
    expert = mats * wide * k->expert_ffn + (k->expert_bias ? (mats - 1) * k->expert_ffn + h : 0);
    both += h * k->experts;
    both += (k->router_bias ? k->experts : 0) + (k->router_linear_bias ? k->experts : 0);
    both += k->expert_hidden > 0 ? 2 * h * wide : 0;
    both += mats * h * k->shared_ffn + (k->shared_gate ? h : 0);
    return (count){both + expert * k->experts, both + expert * k->top_k};
}

static bool count_params(const plm_arch *a, count *c)
{
    int64_t norm = a->norm_bias ? 2 * (int64_t)a->hidden : a->hidden;
    int64_t table = (int64_t)a->vocab * a->hidden;
    c->total = table * (a->tied_head ? 1 : 2) + norm + (int64_t)a->pos_embed * a->hidden +
               (a->embed_norm ? norm : 0) + (a->head_bias ? a->vocab : 0);
    c->active = c->total;
    for (int32_t i = 0; i < a->layers; i++) {
        const plm_layer *k = plm_arch_layer(a, i);
        int64_t mixer = mixer_params(a, k);
        if (mixer < 0)
            return false;
        count f = ffn_params(a, k);
        c->total += mixer + f.total + k->norms * norm;
        c->active += mixer + f.active + k->norms * norm;
    }
    return true;
}

static void records(void **state)
{
    (void)state;
    plm_error err = {0};
    plm_catalog *c;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    size_t n = plm_catalog_count(c, "models"), exact = 0;
    assert_true(n >= 81);
    for (size_t i = 0; i < n; i++) {
        const plm_record *r = plm_catalog_at(c, "models", i);
        plm_arch a;
        count got;
        if (plm_model_load(c, r->id, &a, &err) != PLM_OK)
            fail_msg("%s: %s", r->id, err.text);
        assert_string_equal(a.id, r->id);
        assert_non_null(strstr(r->text, "\"date\": \"2026-11-30\""));
        assert_non_null(strstr(r->text, "\"sources\": ["));
        if (count_params(&a, &got)) {
            if (got.total != a.params_published || got.active != a.active_published)
                fail_msg("%s: total %lld, published %lld; active %lld, published %lld", r->id,
                         (long long)got.total, (long long)a.params_published, (long long)got.active,
                         (long long)a.active_published);
            exact++;
        }
        plm_arch_fini(&a);
    }
    /* All but Kimi-K3 and the two DeepSeek-V4, whose mixers have no published count. */
    assert_int_equal(exact, 78);
    plm_catalog_destroy(c);
}

/* Published exact counts, typed in by hand: model cards, and case CA-11 (jranaraki/vllm-fit issue
*27;
** huggingface.js issue 2182). */
static void published(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        int64_t total, active;
    } p[] = {
        {"mixtral_8x7b-V0.1", 46702792704, 12879925248}, {"QWEN3-30B-A3B", 30532122624, 3353032704},
        {"deepseek v3", 671026419200, 37552297472},      {"llama-3.1-8b", 8030261248, 8030261248},
        {"gpt_oss_20b", 20914757184, 4187440704},        {"gpt2", 124439808, 124439808},
        {"falcon-7b", 6921720704, 6921720704},
    };
    plm_error err = {0};
    plm_catalog *c;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
        plm_arch a;
        count got;
        assert_ok(plm_model_load(c, p[i].id, &a, &err), err);
        assert_true(count_params(&a, &got));
        assert_int_equal(got.total, p[i].total);
        assert_int_equal(got.active, p[i].active);
    }
    plm_arch a;
    assert_int_equal(plm_model_load(c, "lama-3.1-8b", &a, &err), PLM_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "Llama-3.1-8B"));
    assert_int_equal(plm_model_load(c, "no/such/config.json", &a, &err), PLM_E_NOT_FOUND);
    plm_catalog_destroy(c);
}

/* DeepSeek-V4: fields have no other witness, so the sequence is checked as the report states it. */
static void compressed(void **state)
{
    (void)state;
    plm_error err = {0};
    plm_catalog *c;
    plm_arch a;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    assert_ok(plm_model_load(c, "DeepSeek-V4-Flash", &a, &err), err);
    int by_ratio[129] = {0}, indexed = 0, hashed = 0;
    for (int32_t i = 0; i < a.layers; i++) {
        const plm_layer *k = plm_arch_layer(&a, i);
        assert_int_equal(k->attn, PLM_ATTN_COMPRESSED);
        assert_int_equal(k->window, 128);
        by_ratio[k->ratio]++;
        indexed += k->index_heads > 0;
        hashed += k->hash_routed;
    }
    assert_int_equal(by_ratio[0], 2);
    assert_int_equal(by_ratio[4], 21);
    assert_int_equal(by_ratio[128], 20);
    assert_int_equal(indexed, 21);
    assert_int_equal(hashed, 3);
    assert_int_equal(a.hyper, 4);
    /* 2.5 entries a token: 3 caches of ratio 2 and one of ratio 1 own their entries. */
    assert_ok(plm_model_load(c, "DeepSeek-V4.1-Flash", &a, &err), err);
    double entries = 0;
    for (int32_t i = 0; i < a.layers; i++) {
        const plm_layer *k = plm_arch_layer(&a, i);
        if (k->ratio > 0 && k->kv_shared_layer < 0)
            entries += 1.0 / k->ratio;
    }
    assert_close(entries, 2.5, 0, 0);
    assert_int_equal(a.params_extra, INT64_C(196000000000));
    plm_catalog_destroy(c);
}

static const char record_head[] = "{\"id\":\"x\",\"hidden\":64,\"vocab\":100,";
static const char record_kind[] =
    "\"attn\":\"full\",\"heads\":4,\"kv_heads\":2,\"dk\":16,\"dv\":16,"
    "\"ffn\":128,\"glu\":true,\"act\":\"silu\",\"norms\":2";

static plm_status read_record(plm_arch *a, plm_error *err, const char *tail)
{
    char text[1024];
    snprintf(text, sizeof text, "%s\"kinds\":{\"a\":{%s},\"b\":{\"like\":\"a\",\"ffn\":64}},%s}",
             record_head, record_kind, tail);
    memset(err, 0, sizeof *err);
    return plm_model_from_record(text, strlen(text), "x.json", a, err);
}

static void sequences(void **state)
{
    (void)state;
    plm_error err;
    plm_arch a;
    assert_ok(read_record(&a, &err, "\"layers\":[\"a\",{\"repeat\":3,\"layers\":[\"b*2\",\"a\"]}]"),
              err);
    assert_int_equal(a.layers, 10);
    static const int32_t want[] = {128, 64, 64, 128, 64, 64, 128, 64, 64, 128};
    for (int32_t i = 0; i < 10; i++)
        assert_int_equal(plm_arch_layer(&a, i)->ffn, want[i]);
    static const struct {
        const char *tail, *named;
    } bad[] = {
        {"\"layers\":[]", "num_hidden_layers"},
        {"\"layers\":[\"c\"]", "\"c\""},
        {"\"layers\":[\"a*1025\"]", "too many layers"},
        {"\"layers\":[\"a*9223372036854775807\"]", "too many layers"},
        {"\"layers\":[\"a*-1\"]", "too many layers"},
        {"\"layers\":[\"a*x\"]", "a*x"},
        {"\"layers\":[{\"repeat\":1024,\"layers\":[{\"repeat\":1024,\"layers\":[\"a\"]}]}]",
         "too many layers"},
        {"\"layers\":[{\"repeat\":1024,\"layers\":[{\"repeat\":1024,\"layers\":[]}]}]", "repeat"},
        {"\"layers\":[\"a\"],\"layer_count\":2", "layer_count"},
        {"\"layers\":[\"a\"],\"colour\":1", "colour"},
        {"\"layers\":[\"a\"],\"mtp_layers\":1", "mtp_kind"},
        {"\"layers\":[\"a\"],\"embed_scale\":\"cube\"", "embed_scale"},
        {"\"layers\":[\"a\"],\"file_dtype\":\"f99\"", "file_dtype"},
        {"\"layers\":[\"a\"],\"norm\":\"batch\"", "batch"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        plm_status status = read_record(&a, &err, bad[i].tail);
        if (status == PLM_OK || strstr(err.text, bad[i].named) == NULL)
            fail_msg("%s: %d \"%s\"", bad[i].tail, (int)status, err.text);
    }
}

/* ---- files ---- */

static void write_file(const char *folder, const char *name, const void *data, size_t bytes,
                       uint64_t full)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
    if (full > bytes) /* announced tensor data: a hole */
        assert_int_equal(truncate(path, (off_t)full), 0);
}

static plm_status load_file(const char *folder, const char *name, plm_arch *a, plm_error *err)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    memset(err, 0, sizeof *err);
    return plm_model_load(NULL, path, a, err);
}

static void remove_file(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

static const char small_config[] =
    "{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":8,\"num_attention_heads\":2,"
    "\"intermediate_size\":16,\"vocab_size\":10,\"rms_norm_eps\":1e-5}";

/* A folder of config.json and weights: FL-16, the embedding's rows rule; a cut shard is refused. */
static void folder(void **state)
{
    (void)state;
    static const char header[] = "{\"model.embed_tokens.weight\":{\"dtype\":\"F16\",\"shape\":[12,"
                                 "8],\"data_offsets\":[0,192]}}";
    char dir[] = "/tmp/plm-models-XXXXXX", shard[8 + sizeof header - 1] = {0};
    assert_non_null(mkdtemp(dir));
    plm_error err;
    plm_arch a;
    assert_int_equal(load_file(dir, "", &a, &err), PLM_E_NOT_FOUND);
    write_file(dir, "config.json", small_config, sizeof small_config - 1, 0);
    assert_ok(load_file(dir, "", &a, &err), err);
    assert_int_equal(a.vocab, 10);
    assert_string_equal(a.id, strrchr(dir, '/') + 1);
    put_le((unsigned char *)shard, sizeof header - 1, 8);
    memcpy(shard + 8, header, sizeof header - 1);
    write_file(dir, "model.safetensors", shard, sizeof shard, sizeof shard + 192);
    assert_ok(load_file(dir, "config.json", &a, &err), err);
    assert_int_equal(a.vocab, 12);
    assert_ok(load_file(dir, "model.safetensors", &a, &err), err);
    assert_int_equal(a.vocab, 12);
    write_file(dir, "model.safetensors", shard, sizeof shard, sizeof shard + 191);
    assert_int_equal(load_file(dir, "", &a, &err), PLM_E_INVALID);
    assert_int_equal(strncmp(err.text, "incomplete_cover,", 17), 0);
    remove_file(dir, "model.safetensors");
    remove_file(dir, "config.json");
    assert_int_equal(rmdir(dir), 0);
}

/* A split GGUF: whichever part is named, the whole set is read; a missing part is named. */
static void split(void **state)
{
    (void)state;
    char dir[] = "/tmp/plm-models-XXXXXX";
    assert_non_null(mkdtemp(dir));
    plm_error err = {0};
    plm_arch want, got;
    assert_ok(plm_model_from_config(small_config, sizeof small_config - 1, "x", &want, &err), err);
    want.kind[0].rope.interleaved = true;
    want.max_context = 512;
    gguf_writer *second = write_model(&want, "llama", false);
    int64_t tensors = (int64_t)second->n_tensors;
    /* all metadata in the first part, all tensors in the second */
    gguf_writer *first = calloc(1, sizeof *first);
    assert_non_null(first);
    memcpy(first->pairs, second->pairs, second->pair_bytes);
    first->pair_bytes = second->pair_bytes;
    first->n_pairs = second->n_pairs;
    second->pair_bytes = second->n_pairs = 0;
    free(second->file);
    gguf_writer *part[2] = {first, second};
    static const char *const name[2] = {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"};
    for (int i = 0; i < 2; i++) {
        put_u32(part[i], "split.no", i);
        put_u32(part[i], "split.count", 2);
        put_u32(part[i], "split.tensors.count", tensors);
        finish_gguf(part[i]);
        write_file(dir, name[i], part[i]->file, part[i]->bytes, announced_bytes(part[i]));
    }
    for (int i = 0; i < 2; i++) {
        assert_ok(load_file(dir, name[i], &got, &err), err);
        assert_ok(plm_arch_same(&got, &want, &err), err);
    }
    remove_file(dir, name[1]);
    assert_int_not_equal(load_file(dir, name[0], &got, &err), PLM_OK);
    assert_non_null(strstr(err.text, name[1]));
    remove_file(dir, name[0]);
    assert_int_equal(rmdir(dir), 0);
    free_gguf(first);
    free_gguf(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records),   cmocka_unit_test(published), cmocka_unit_test(compressed),
        cmocka_unit_test(sequences), cmocka_unit_test(folder),    cmocka_unit_test(split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
