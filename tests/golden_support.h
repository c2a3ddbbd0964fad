/* golden_support.h - the tiny models of tests/golden: their files laid out in memory, a graph, an executor.
**
** tests/golden/make_models.py says how the numbers of a tensor follow from its name. */
#ifndef PLM_TESTS_GOLDEN_SUPPORT_H
#define PLM_TESTS_GOLDEN_SUPPORT_H
#include <jansson.h>
#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/host/runner.h"
#include "core/model/load.h"
#include "core/model/weights.h"
#include "tests/support.h"

enum { GOLDEN_PROMPTS = 2, GOLDEN_TOKENS = 12, GOLDEN_BLOCK = 4, GOLDEN_SLOTS = 96 };

static const char *const golden_families[] = {
    "llama", "qwen2", "qwen3", "phi3", "gpt2", "gemma2", "gemma3", "mixtral", "qwen3_moe",
    "deepseek_v3", "gpt_oss", "qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen2_moe", "mistral",
    "deepseek_v2", "glm4_moe", "minimax_m2", "olmo2", "olmo3", "olmoe", "exaone4", "granite",
    "granitemoe", "cohere2", "smollm3", "ernie4_5_moe", "hunyuan", "starcoder2", "stablelm",
    "phi", "lfm2"};
#define GOLDEN_FAMILIES (sizeof golden_families / sizeof *golden_families)

typedef struct golden {
    json_t *json;
    plm_arch arch;
    unsigned char *file; /* the safetensors */
    size_t file_bytes;
    plm_weights *weights;
    int32_t prompt[GOLDEN_PROMPTS][GOLDEN_TOKENS];
    int64_t prompt_n[GOLDEN_PROMPTS], vocab;
    float *logits[GOLDEN_PROMPTS]; /* [prompt_n][vocab], by transformers */
    float largest;                 /* of their magnitudes */
} golden;

static inline float golden_number(const char *name, uint64_t i)
{
    uint64_t z = test_seed(name) + i * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    double u = (double)(z >> 40) * 0x1p-23 - 1;
    size_t n = strlen(name);
    bool norm = strstr(name, "norm") != NULL && n >= 6 && strcmp(name + n - 6, "weight") == 0;
    return (float)(norm ? 1 + u / 4 : u / 4);
}

static inline size_t golden_count(const json_t *shape)
{
    size_t n = 1;
    for (size_t i = 0; i < json_array_size(shape); i++)
        n *= (size_t)json_integer_value(json_array_get(shape, i));
    return n;
}

/* The model's safetensors file: header, then every tensor in F32. */
static inline void golden_lay_file(golden *m)
{
    json_t *header = json_object(), *tensors = json_object_get(m->json, "tensors"), *shape;
    const char *name;
    size_t at = 0;
    json_object_foreach(tensors, name, shape)
    {
        size_t bytes = golden_count(shape) * sizeof(float);
        json_object_set_new(header, name,
                            json_pack("{s:s,s:O,s:[I,I]}", "dtype", "F32", "shape", shape,
                                      "data_offsets", (json_int_t)at, (json_int_t)(at + bytes)));
        at += bytes;
    }
    char *text = json_dumps(header, JSON_COMPACT);
    assert_non_null(text);
    size_t head = strlen(text), padded = (head + 7) / 8 * 8;
    m->file_bytes = 8 + padded + at;
    m->file = plm_malloc(m->file_bytes);
    assert_non_null(m->file);
    uint64_t size = padded;
    memcpy(m->file, &size, 8);
    memset(m->file + 8, ' ', padded);
    memcpy(m->file + 8, text, head);
    at = 8 + padded;
    json_object_foreach(tensors, name, shape)
    {
        for (size_t i = 0; i < golden_count(shape); i++, at += sizeof(float)) {
            float x = golden_number(name, i);
            memcpy(m->file + at, &x, sizeof x);
        }
    }
    json_decref(header);
    plm_free(text); /* jansson allocates through mem.h */
}

static inline void golden_open(golden *m, const char *family)
{
    plm_error err = {PLM_OK, ""};
    json_error_t where;
    char path[512];
    memset(m, 0, sizeof *m);
    plm_mem_init();
    snprintf(path, sizeof path, "%s/tests/golden/%s.json", PLM_ROOT, family);
    m->json = json_load_file(path, 0, &where);
    if (m->json == NULL)
        fail_msg("%s: %s", path, where.text);
    char *config = json_dumps(json_object_get(m->json, "config"), 0);
    assert_non_null(config);
    plm_arch_init(&m->arch);
    assert_ok(plm_model_from_config(config, strlen(config), family, &m->arch, &err), err);
    plm_free(config);
    golden_lay_file(m);
    const plm_weights_file file = {m->file, m->file_bytes, family};
    assert_ok(plm_weights_open_memory(&file, 1, &m->arch, &m->weights, &err), err);
    m->vocab = m->arch.vocab;
    for (size_t p = 0; p < GOLDEN_PROMPTS; p++) {
        json_t *ids = json_array_get(json_object_get(m->json, "prompts"), p);
        json_t *rows = json_array_get(json_object_get(m->json, "logits"), p);
        m->prompt_n[p] = (int64_t)json_array_size(ids);
        assert_in_range(m->prompt_n[p], 1, GOLDEN_TOKENS);
        assert_int_equal(json_array_size(rows), m->prompt_n[p]);
        m->logits[p] = calloc((size_t)(m->prompt_n[p] * m->vocab), sizeof(float));
        assert_non_null(m->logits[p]);
        for (size_t t = 0; t < (size_t)m->prompt_n[p]; t++) {
            m->prompt[p][t] = (int32_t)json_integer_value(json_array_get(ids, t));
            assert_int_equal(json_array_size(json_array_get(rows, t)), m->vocab);
            for (size_t i = 0; i < (size_t)m->vocab; i++) {
                double x = json_number_value(json_array_get(json_array_get(rows, t), i));
                m->logits[p][t * (size_t)m->vocab + i] = (float)x;
                if (fabs(x) > (double)m->largest)
                    m->largest = (float)fabs(x);
            }
        }
    }
}

static inline void golden_close(golden *m)
{
    plm_weights_close(m->weights);
    plm_arch_fini(&m->arch);
    plm_free(m->file);
    for (int p = 0; p < GOLDEN_PROMPTS; p++)
        free(m->logits[p]);
    json_decref(m->json);
}

/* A graph in float32 throughout, whose head makes the logits of every token. */
static inline plm_build golden_build(void)
{
    plm_build b;
    plm_build_init(&b);
    b.recipe = plm_recipe_by_name("f32");
    b.act = b.kv_k = b.kv_v = PLM_DT_F32;
    b.all_logits = true;
    b.max_tokens = 2 * GOLDEN_TOKENS;
    b.max_seqs = 4;
    b.max_slots = GOLDEN_SLOTS;
    return b;
}

/* A model on the reference backend. */
typedef struct golden_run {
    plm_graph g;
    plm_backend_host host;
    plm_opened dev;
    plm_runner *r;
} golden_run;

static inline void golden_start(golden *m, const plm_build *b, const int32_t *order, golden_run *x)
{
    plm_error err = {PLM_OK, ""};
    const plm_runner_options o = {.block_tokens = GOLDEN_BLOCK, .block_order = order,
                                  .node_times = true};
    plm_weight_source src = plm_weight_source_files(m->weights);
    memset(x, 0, sizeof *x);
    assert_ok(plm_build_graph(&m->arch, b, &x->g, &err), err);
    assert_ok(plm_weights_stamp(m->weights, &x->g, &err), err);
    assert_ok(plm_open("ref", 0, NULL, &x->host, &x->dev, &err), err);
    assert_ok(plm_runner_create(&m->arch, &x->g, &x->dev, &src, &o, &x->r, &err), err);
}

static inline void golden_stop(golden_run *x)
{
    plm_runner_destroy(x->r);
    plm_close(&x->dev);
    plm_graph_fini(&x->g);
}

#endif
