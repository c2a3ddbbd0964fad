/* Hostile GGUF files, cuts at every byte, split rules, and arch records of headers written here. */
#include "core/base/catalog.h"
#include "core/base/mem.h"
#include "core/model/fields.h"
#include "core/model/load.h"
#include "tests/gguf_writer.h"
#include "tests/hostile.h"
#include "tests/data/hostile.h"

static plm_status open_bytes(const unsigned char *d, size_t n, plm_gguf **g, plm_error *e)
{
    return plm_gguf_open(d, n, n, "file.gguf", g, e);
}

static void expect_reason(const char *name, const char *reason, plm_status status,
                          const plm_error *err)
{
    size_t n = strlen(reason);
    if (status != PLM_E_INVALID || strncmp(err->text, reason, n) != 0 || err->text[n] != ',')
        fail_msg("%s: want %s, got %d \"%s\"", name, reason, (int)status, err->text);
}

/* Every FL.gguf record; no more memory is asked for than max(1 MiB, 2 x file). */
static void hostile(void **state)
{
    (void)state;
    (void)hostile_safetensors;
    size_t rows = sizeof hostile_gguf / sizeof *hostile_gguf;
    assert_int_equal(rows, 36);
    for (size_t i = 0; i < rows; i++) {
        const hostile_file *f = &hostile_gguf[i];
        unsigned char *data = hostile_decode(f);
        plm_gguf *g = NULL;
        plm_error err = {0};
        plm_mem_fail_at(0, false);
        plm_status status = open_bytes(data, f->bytes, &g, &err);
        assert_true(plm_mem_asked_bytes() <= 1u << 20);
        if (f->reason == NULL || f->reason[0] == '+') {
            if (status != PLM_OK)
                fail_msg("%s: %s", f->name, err.text);
        } else {
            expect_reason(f->name, f->reason, status, &err);
            assert_null(g);
        }
        if (f->reason != NULL && f->reason[0] == '+') {
            plm_arch a;
            status = plm_model_from_gguf(g, "file.gguf", &a, &err);
            expect_reason(f->name, f->reason + 1, status, &err);
            plm_arch_fini(&a);
        }
        plm_gguf_close(g);
        free(data);
    }
}

static const hostile_file *row(const char *name)
{
    for (size_t i = 0; i < sizeof hostile_gguf / sizeof *hostile_gguf; i++)
        if (strcmp(hostile_gguf[i].name, name) == 0)
            return &hostile_gguf[i];
    fail_msg("%s", name);
    return NULL;
}

/* FL.gguf.cut_sweep: a good file cut at each byte is refused, or its ranges still hold. */
static void cut_sweep(void **state)
{
    (void)state;
    const hostile_file *f = row("FL.gguf.one_f32_ok");
    unsigned char *whole = hostile_decode(f);
    for (size_t cut = 0; cut <= f->bytes; cut++) {
        unsigned char *d = malloc(cut ? cut : 1);
        assert_non_null(d);
        memcpy(d, whole, cut);
        plm_gguf *g = NULL;
        plm_status status = open_bytes(d, cut, &g, NULL);
        assert_int_equal(status, cut == f->bytes ? PLM_OK : PLM_E_INVALID);
        plm_gguf_close(g);
        free(d);
    }
    free(whole);
}

/* Cases the rules name beside the records: alignment of another type, one byte short, dims that
*wrap
** to 4, five dims, a row that is no multiple of its block, repeated keys, bad text. */
static void more_hostile(void **state)
{
    (void)state;
    static const struct {
        const char *reason;
        int what;
    } bad[] = {{"overflow", 0}, {"ndims", 1}, {"block", 2},   {"dup_key", 3}, {"alignment", 4},
               {"utf8", 5},     {"name", 6},  {"version", 7}, {"count", 8}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        gguf_writer *w = calloc(1, sizeof *w);
        assert_non_null(w);
        put_u32(w, bad[i].what == 5 ? "k\xff" : "k", 1);
        if (bad[i].what == 3)
            put_u32(w, "k", 2);
        if (bad[i].what == 4) {
            put_key(w, "general.alignment", 5);
            w->pair_bytes += put_le(w->pairs + w->pair_bytes, 32, 4);
        }
        char name[65];
        memset(name, 'n', 64);
        name[64] = '\0';
        put_tensor(w, -1, bad[i].what == 6 ? name : "t", 64, bad[i].what == 0 ? 4 : 0, 0);
        unsigned char *rank = w->tensors + 8 + (bad[i].what == 6 ? 64 : 1);
        if (bad[i].what == 0)
            put_le(rank + 4, (UINT64_C(1) << 62) + 1, 8);
        if (bad[i].what == 1)
            put_le(rank, 5, 4);
        if (bad[i].what == 2) {
            put_le(rank + 4, 896, 8); /* FL-12: 896 / 256 = 3.5 */
            put_le(rank + 12, 14, 4); /* q6_k */
        }
        finish_gguf(w);
        if (bad[i].what == 7)
            put_le(w->file + 4, 1, 4);
        if (bad[i].what == 8)
            put_le(w->file + 8, w->bytes, 8);
        plm_gguf *g = NULL;
        plm_error err = {0};
        plm_status status = plm_gguf_open(w->file, w->bytes, w->bytes + 65536, "f", &g, &err);
        expect_reason(bad[i].reason, bad[i].reason, status, &err);
        free_gguf(w);
    }
    const hostile_file *f = row("FL.gguf.one_f32_ok");
    unsigned char *d = hostile_decode(f);
    plm_gguf *g;
    plm_error err = {0};
    expect_reason("cut1", "range", open_bytes(d, f->bytes - 1, &g, &err), &err);
    free(d);
}

/* FL.gguf.shards: two parts of 694 and 604 tensors (FlashML-org/FreeToken issue 154). */
static void split_rules(void **state)
{
    (void)state;
    plm_split_part p[3] = {{0, 2, 1298, 694}, {1, 2, 1298, 604}, {1, 2, 1298, 604}};
    plm_error err = {0};
    assert_ok(plm_split_check(p, 2, &err), err);
    plm_split_part swapped[2] = {p[1], p[0]};
    assert_ok(plm_split_check(swapped, 2, &err), err);
    assert_int_equal(plm_split_check(p, 1, &err), PLM_E_INVALID);
    assert_non_null(strstr(err.text, "part 2 of 2: missing"));
    assert_int_equal(plm_split_check(p + 1, 1, &err), PLM_E_INVALID);
    assert_non_null(strstr(err.text, "part 1 of 2: missing"));
    assert_int_equal(plm_split_check(p + 1, 2, &err), PLM_E_INVALID); /* one twice */
    assert_int_equal(plm_split_check(p, 3, &err), PLM_E_INVALID);
    p[1].tensors = 603;
    assert_int_equal(plm_split_check(p, 2, &err), PLM_E_INVALID);
    p[1] = (plm_split_part){1, 2, 1299, 604};
    assert_int_equal(plm_split_check(p, 2, &err), PLM_E_INVALID); /* of another model */
    p[1] = (plm_split_part){2, 2, 1298, 604};
    assert_int_equal(plm_split_check(p, 2, &err), PLM_E_INVALID); /* counted from one */
    assert_int_equal(plm_split_check(p, 0, &err), PLM_E_INVALID);
}

static void load_record(const plm_catalog *c, const char *id, plm_arch *a)
{
    plm_error err = {0};
    const plm_record *r = plm_catalog_find(c, "models", id);
    assert_non_null(r);
    assert_ok(plm_model_from_record(r->text, r->bytes, id, a, &err), err);
}

/* What a GGUF keeps differently: norm weights have their 1 added, the pairs of Llama's rotation are
** neighbours, MTP layers are left out by most files. */
static void as_gguf(plm_arch *a, bool interleaved)
{
    a->norm_offset = 0;
    a->mtp_layers = 0;
    for (int i = 0; i < a->n_kinds; i++)
        a->kind[i].rope.interleaved = interleaved && a->kind[i].rope.theta > 0;
}

static void models(void **state)
{
    (void)state;
    static const struct {
        const char *id, *family;
        bool packed, interleaved;
    } m[] = {
        {"Llama-3.1-8B", "llama", false, true},
        {"Mixtral-8x7B-v0.1", "llama", false, true},
        {"Llama-3.2-1B", "llama", false, true},
        {"Qwen2.5-7B", "qwen2", false, false},
        {"Qwen3-0.6B", "qwen3", false, false},
        {"Qwen3-30B-A3B", "qwen3moe", false, false},
        {"Gemma-2-9B", "gemma2", false, false},
        {"Gemma-2-27B", "gemma2", false, false},
        {"Gemma-3-27B", "gemma3", false, false},
        {"Gemma-3-1B", "gemma3", false, false},
        {"Gemma-2B", "gemma", false, false},
        {"Phi-3-mini-4k", "phi3", true, false},
        {"DeepSeek-V3", "deepseek2", false, true},
        {"DeepSeek-V2-Lite", "deepseek2", false, true},
        {"gpt-oss-20b", "gpt-oss", false, false},
        {"Qwen3-Next-80B-A3B", "qwen3next", false, false},
        {"GLM-4.5", "glm4moe", false, false},
        {"Falcon-7B", "falcon", true, false},
        {"GPT-2", "gpt2", true, false},
        {"BLOOM-176B", "bloom", true, false},
        {"MiniMax-M2", "minimax-m2", false, false},
        {"dots.llm1", "dots1", false, false},
        {"Llama-2-7B", "novel-llama", false, false}, /* no row: read as a Llama */
    };
    plm_error err = {0};
    plm_catalog *c;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    for (size_t i = 0; i < sizeof m / sizeof *m; i++) {
        plm_arch want, got;
        load_record(c, m[i].id, &want);
        as_gguf(&want, m[i].interleaved);
        if (strcmp(m[i].id, "Llama-3.2-1B") ==
            0) /* the factor is in the tensor, see read_scaling */
            want.kind[0].rope.factor = 8;
        gguf_writer *w = write_model(&want, m[i].family, m[i].packed);
        plm_gguf *g;
        if (plm_gguf_open(w->file, w->bytes, announced_bytes(w), m[i].id, &g, &err) != PLM_OK ||
            plm_model_from_gguf(g, "x/file.gguf", &got, &err) != PLM_OK)
            fail_msg("%s: %s", m[i].id, err.text);
        if (plm_arch_same(&got, &want, &err) != PLM_OK)
            fail_msg("%s: %s", m[i].id, err.text);
        assert_string_equal(got.file_quant, "q4_k_m");
        assert_string_equal(got.id, "file");
        plm_arch_fini(&got);
        plm_arch_fini(&want);
        plm_gguf_close(g);
        free_gguf(w);
    }
    plm_catalog_destroy(c);
}

static plm_status read_model(gguf_writer *w, plm_arch *out, plm_error *err)
{
    plm_gguf *g;
    PLM_TRY(plm_gguf_open(w->file, w->bytes, announced_bytes(w), "f", &g, err));
    plm_status status = plm_model_from_gguf(g, "f.gguf", out, err);
    plm_gguf_close(g);
    return status;
}

/* FL-16: embedding rows rule; extra rows are padding, fewer than tokens or none an error. */
static void vocabulary(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, tokens;
        const char *error;
    } v[] = {{2000, 1990, NULL}, {100, 101, "vocab,"}, {0, 10, "absent,"}, {100, 0, NULL}};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        gguf_writer *w = calloc(1, sizeof *w);
        assert_non_null(w);
        strcpy(w->prefix, "llama");
        put_text(w, "general.architecture", "llama");
        put_u32(w, ".block_count", 1);
        put_u32(w, ".embedding_length", 64);
        put_u32(w, ".vocab_size", 77); /* what metadata says does not count */
        put_u32(w, ".attention.head_count", 2);
        put_f32(w, ".attention.layer_norm_rms_epsilon", 1e-5);
        if (v[i].tokens > 0)
            put_tokens(w, "tokenizer.ggml.tokens", (uint64_t)v[i].tokens);
        if (v[i].rows > 0)
            put_tensor(w, -1, "token_embd.weight", 64, v[i].rows, 0);
        put_tensor(w, 0, "attn_norm.weight", 64, 0, 0);
        put_tensor(w, 0, "ffn_norm.weight", 64, 0, 0);
        put_tensor(w, 0, "attn_q.weight", 64, 64, 0);
        put_tensor(w, 0, "attn_k.weight", 64, 64, 0);
        put_tensor(w, 0, "attn_v.weight", 64, 64, 0);
        put_tensor(w, 0, "ffn_up.weight", 64, 128, 0);
        put_tensor(w, 0, "ffn_gate.weight", 64, 128, 0);
        put_tensor(w, 0, "ffn_down.weight", 128, 64, 0);
        finish_gguf(w);
        plm_arch a;
        plm_error err = {0};
        plm_status status = read_model(w, &a, &err);
        if (v[i].error == NULL) {
            assert_ok(status, err);
            assert_int_equal(a.vocab, v[i].rows);
            assert_true(a.tied_head);
        } else {
            assert_int_equal(status, PLM_E_INVALID);
            assert_int_equal(strncmp(err.text, v[i].error, strlen(v[i].error)), 0);
        }
        free_gguf(w);
    }
}

/* An architecture without a row and with tensors of another kind is refused by both names. */
static void unknown(void **state)
{
    (void)state;
    plm_error err = {0};
    plm_catalog *c;
    plm_arch a;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    load_record(c, "Llama-2-7B", &a);
    a.layers = 1;
    gguf_writer *w = write_model(&a, "rwkv9", false);
    put_tensor(w, 0, "time_mix_w1.weight", 64, 64, 0);
    free(w->file);
    finish_gguf(w);
    plm_arch got;
    assert_int_equal(read_model(w, &got, &err), PLM_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "rwkv9"));
    assert_non_null(strstr(err.text, "time_mix_w1"));
    free_gguf(w);
    /* heads of the metadata that do not fit the matrices */
    static const char key[] = "llama.attention.head_count_kv";
    w = write_model(&a, "llama", false);
    assert_ok(read_model(w, &got, &err), err);
    size_t at = 0;
    while (memcmp(w->file + at, key, sizeof key - 1) != 0)
        at++;
    put_le(w->file + at + sizeof key - 1 + 4, 8, 4);
    assert_int_equal(read_model(w, &got, &err), PLM_E_INVALID);
    assert_non_null(strstr(err.text, "attn_k.weight"));
    free_gguf(w);
    plm_catalog_destroy(c);
}

static void torture(void **state)
{
    (void)state;
    plm_mem_init();
    plm_error err = {0};
    plm_catalog *c;
    plm_arch a, got;
    assert_ok(plm_catalog_create(NULL, &c, &err), err);
    load_record(c, "gpt-oss-20b", &a);
    gguf_writer *w = write_model(&a, "gpt-oss", false);
    int64_t live = plm_mem_live();
    for (uint64_t n = 1;; n++) {
        plm_mem_fail_at(n, false);
        plm_status status = read_model(w, &got, &err);
        plm_mem_fail_at(0, false);
        assert_int_equal(plm_mem_live(), live);
        if (status == PLM_OK)
            break;
        assert_int_equal(status, PLM_E_NO_MEMORY);
        assert_true(n < 100);
    }
    free_gguf(w);
    plm_catalog_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile),     cmocka_unit_test(cut_sweep), cmocka_unit_test(more_hostile),
        cmocka_unit_test(split_rules), cmocka_unit_test(models),    cmocka_unit_test(vocabulary),
        cmocka_unit_test(unknown),     cmocka_unit_test(torture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
