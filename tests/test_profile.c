/* test_profile.c - engine profiles: inheritance, where clauses, names, and the records shipped. */
#include "tests/support.h"

#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "sim/device/profile.h"

/* A catalog with extra engine records, given as id, text pairs. */
static plm_catalog *with_engines(const char *const (*pairs)[2], size_t n)
{
    char dir[] = "/tmp/plm_profile_XXXXXX", path[128];
    plm_error e;
    plm_catalog *c;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/engines", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/engines/%s.json", dir, pairs[i][0]);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(pairs[i][1], f);
        assert_int_equal(fclose(f), 0);
    }
    assert_ok(plm_catalog_create(dir, &c, &e), e);
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/engines/%s.json", dir, pairs[i][0]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/engines", dir);
    rmdir(path);
    rmdir(dir);
    return c;
}

static const plm_device h100 = {.id = "h100_sxm_80", .vendor = "nvidia", .cls = "gpu",
                                .arch = "Hopper", .target = "sm_90", .datacenter = true,
                                .memory_bytes = 80.0 * 1073741824};
static const plm_device m4 = {.id = "apple_m4", .vendor = "apple", .cls = "apu",
                              .arch = "Apple GPU", .target = "metal",
                              .memory_bytes = 32.0 * 1073741824};

static void test_inheritance(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"ta", "{\"id\":\"ta\",\"engine\":\"t\",\"mem_eff\":{\"all\":0.5,\"attention\":0.4},"
               "\"launch_s\":1e-6,\"ubatch\":128,\"kv_default\":\"q8_0\",\"fuse\":[\"glu\"],"
               "\"where\":[{\"vendor\":\"nvidia\",\"set\":{\"mem_eff\":{\"linear\":0.6}}},"
               "{\"arch\":[\"Ada\",\"Hop\"],\"min_memory_GiB\":80,\"set\":{\"launch_s\":3e-6}},"
               "{\"device\":\"H100-SXM-80\",\"vendor\":\"amd\",\"set\":{\"ubatch\":7}},"
               "{\"class\":\"apu\",\"set\":{\"ubatch\":9}}],"
               "\"band\":{\"decode\":[0.5,2]},\"comments\":{\"ubatch\":\"why\"}}"},
        {"tb", "{\"id\":\"tb\",\"base\":\"ta\",\"launch_s\":2e-6,\"weight_eff\":{\"Q4_K\":0.9},"
               "\"where\":[{\"target\":\"sm_9\",\"set\":{\"memory_rule\":\"free\"}}]}"},
    };
    plm_error e;
    plm_profile p;
    plm_catalog *c = with_engines(pairs, 2);
    assert_ok(plm_profile_load(c, "ta", &h100, &p, &e), e);
    assert_string_equal(p.id, "ta");
    assert_close(p.mem_eff[PLM_CLASS_LINEAR], 0.6, 0, 0);
    assert_close(p.mem_eff[PLM_CLASS_ATTENTION], 0.4, 0, 0);
    assert_close(p.mem_eff[PLM_CLASS_GATHER], 0.5, 0, 0);
    assert_close(p.tensor_eff[PLM_CLASS_LINEAR], 1, 0, 0); /* unset: neutral */
    assert_close(p.launch_s, 3e-6, 0, 0);
    assert_int_equal(p.ubatch, 128); /* a clause needs all its conditions */
    assert_int_equal(p.kv_default, PLM_DT_Q8_0);
    assert_close(p.band[PLM_REGIME_DECODE][1], 2, 0, 0);
    assert_close(p.band[PLM_REGIME_TTFT][0], 1, 0, 0);
    size_t glu = 0;
    while (strcmp(plm_fusion_name(glu), "glu") != 0)
        glu++;
    assert_true(p.fuse == UINT64_C(1) << glu);
    assert_ok(plm_profile_load(c, "TB", &h100, &p, &e), e);
    assert_string_equal(p.id, "tb");
    assert_string_equal(p.engine, "t");
    assert_close(p.mem_eff[PLM_CLASS_LINEAR], 0.6, 0, 0);
    assert_close(p.launch_s, 2e-6, 0, 0); /* own value over the base's clause */
    assert_close(p.weight_eff[PLM_DT_Q4_K], 0.9, 0, 0);
    assert_close(p.weight_eff[PLM_DT_Q5_K], 0, 0, 0);
    assert_int_equal(p.memory_rule, PLM_MEMORY_FREE);
    assert_ok(plm_profile_load(c, "tb", &m4, &p, &e), e);
    assert_close(p.mem_eff[PLM_CLASS_LINEAR], 0.5, 0, 0);
    assert_int_equal(p.ubatch, 9);
    assert_int_equal(p.memory_rule, PLM_MEMORY_ALL);
    plm_catalog_destroy(c);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *json, *says;
    } rows[] = {
        {"{", "bad JSON"},
        {"[]", "not an object"},
        {"{}", "missing key \"id\""},
        {"{\"id\":\"t\",\"mem_ef\":1}", "unknown key \"mem_ef\""},
        {"{\"id\":\"t\",\"mem_eff\":1.01}", "mem_eff"},
        {"{\"id\":\"t\",\"mem_eff\":{\"liner\":1}}", "unknown class of ops \"liner\""},
        {"{\"id\":\"t\",\"mem_eff\":{\"linear\":72}}", "linear"},
        {"{\"id\":\"t\",\"weight_eff\":{\"q4_kk\":1}}", "unknown storage type \"q4_kk\""},
        {"{\"id\":\"t\",\"kv_default\":\"q99\"}", "unknown storage type \"q99\""},
        {"{\"id\":\"t\",\"memory_rule\":\"most\"}", "unknown memory rule"},
        {"{\"id\":\"t\",\"fuse\":[\"glue\"]}", "unknown fusion pattern \"glue\""},
        {"{\"id\":\"t\",\"fuse\":3}", "fuse"},
        {"{\"id\":\"t\",\"band\":{\"decod\":[1,1]}}", "unknown regime"},
        {"{\"id\":\"t\",\"band\":{\"decode\":[1.1,2]}}", "decode"},
        {"{\"id\":\"t\",\"band\":{\"decode\":[0.5]}}", "decode"},
        {"{\"id\":\"t\",\"launch_s\":\"fast\"}", "launch_s"},
        {"{\"id\":\"t\",\"launch_s\":-1}", "launch_s"},
        {"{\"id\":\"t\",\"ubatch\":0}", "ubatch"},
        {"{\"id\":\"t\",\"ubatch\":1e30}", "ubatch"},
        {"{\"id\":\"t\",\"int8_dot\":1}", "int8_dot"},
        {"{\"id\":\"t\",\"where\":{}}", "where"},
        {"{\"id\":\"t\",\"where\":[{\"vender\":\"x\",\"set\":{}}]}",
         "unknown condition \"vender\""},
        {"{\"id\":\"t\",\"where\":[{\"vendor\":3,\"set\":{}}]}", "vendor"},
        {"{\"id\":\"t\",\"where\":[{\"vendor\":\"amd\"}]}", "set"},
        /* Checked although the clause does not apply here. */
        {"{\"id\":\"t\",\"where\":[{\"vendor\":\"amd\",\"set\":{\"lunch_s\":1}}]}",
         "unknown key \"lunch_s\""},
        {"{\"id\":\"t\",\"base\":\"t\"}", "ring"},
        {"{\"id\":\"t\",\"base\":\"nowhere\"}", "no such record"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const pairs[][2] = {{"t", rows[i].json}};
        plm_error e = {0};
        plm_profile p;
        plm_catalog *c = with_engines(pairs, 1);
        plm_status status = plm_profile_load(c, "t", &h100, &p, &e);
        if (status == PLM_OK || strstr(e.text, rows[i].says) == NULL)
            fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].json, e.text, rows[i].says);
        plm_catalog_destroy(c);
    }
}

static plm_catalog *catalog;
static int open_catalog(void **state)
{
    (void)state;
    plm_error e;
    return plm_catalog_create(NULL, &catalog, &e);
}
static int close_catalog(void **state)
{
    (void)state;
    plm_catalog_destroy(catalog);
    return 0;
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *device, *usual, *llama; /* usual engine; what "llama.cpp" means there */
    } rows[] = {
        {"h100_sxm_80", "vllm", "llama.cpp-cuda"},
        {"mi300x_192", "vllm", "llama.cpp-hip"},
        {"rtx_4090_24", "llama.cpp-cuda", "llama.cpp-cuda"},
        {"rx_7900xtx_24", "llama.cpp-hip", "llama.cpp-hip"},
        {"rx_580_8", "llama.cpp-vulkan", "llama.cpp-vulkan"},
        {"arc_b580_12", "llama.cpp-vulkan", "llama.cpp-vulkan"},
        {"apple_m4_max", "llama.cpp-metal", "llama.cpp-metal"},
        {"epyc_9755", "llama.cpp-cpu", "llama.cpp-cpu"},
        {"apple_m2_max_cpu", "llama.cpp-cpu", "llama.cpp-cpu"},
        {"tpu_v6e", "vllm", NULL},
        {"cerebras_wse3", "ideal", NULL},
    };
    plm_error e;
    plm_profile p;
    plm_device d;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_ok(plm_device_load(catalog, rows[i].device, &d, &e), e);
        assert_string_equal(plm_profile_usual(&d), rows[i].usual);
        assert_ok(plm_profile_load(catalog, plm_profile_usual(&d), &d, &p, &e), e);
        plm_status status = plm_profile_load(catalog, "llama.cpp", &d, &p, &e);
        if (rows[i].llama == NULL) {
            assert_int_equal(status, PLM_E_UNSUPPORTED);
            continue;
        }
        assert_int_equal(status, PLM_OK);
        assert_string_equal(p.id, rows[i].llama);
        assert_string_equal(p.engine, "llama.cpp");
    }
    assert_ok(plm_device_load(catalog, "rtx_4090_24", &d, &e), e);
    assert_ok(plm_profile_load(catalog, "Ollama", &d, &p, &e), e);
    assert_string_equal(p.id, "ollama-cuda");
    assert_ok(plm_profile_load(catalog, "llama.cpp-vulkan", &d, &p, &e), e);
    assert_string_equal(p.id, "llama.cpp-vulkan");
    assert_int_equal(plm_profile_load(catalog, "vlm", &d, &p, &e), PLM_E_NOT_FOUND);
    assert_non_null(strstr(e.text, "did you mean vllm"));
    assert_int_equal(plm_profile_load(catalog, "server", &d, &p, &e), PLM_E_UNSUPPORTED);
}

/* Engine defaults from the engines' documentation. */
static void test_defaults(void **state)
{
    (void)state;
    plm_error e;
    plm_profile p;
    plm_device d;
    assert_ok(plm_device_load(catalog, "h100_sxm_80", &d, &e), e);
    assert_ok(plm_profile_load(catalog, "vllm", &d, &p, &e), e);
    assert_close(p.memory_fraction, 0.9, 0, 0);
    assert_int_equal(p.memory_rule, PLM_MEMORY_FRACTION);
    assert_int_equal(p.kv_block, 16);
    assert_int_equal(p.max_seqs, 1024);
    assert_int_equal(p.ubatch, 8192);
    assert_ok(plm_device_load(catalog, "l40s_48", &d, &e), e);
    assert_ok(plm_profile_load(catalog, "vllm", &d, &p, &e), e);
    assert_int_equal(p.max_seqs, 256);
    assert_int_equal(p.ubatch, 2048);
    assert_ok(plm_profile_load(catalog, "trtllm", &d, &p, &e), e);
    assert_int_equal(p.memory_rule, PLM_MEMORY_FREE);
    assert_int_equal(p.kv_block, 32);
    assert_ok(plm_profile_load(catalog, "llama.cpp-cuda", &d, &p, &e), e);
    assert_int_equal(p.ubatch, 512);
    assert_int_equal(p.kv_pad, 256);
    assert_int_equal(p.kv_default, PLM_DT_F16);
    assert_int_equal(p.memory_rule, PLM_MEMORY_ALL);
    assert_true(p.embed_on_host && p.int8_dot);
    /* ideal: the plain roofline. */
    assert_ok(plm_profile_load(catalog, "ideal", &d, &p, &e), e);
    for (int i = 0; i < PLM_CLASS_COUNT; i++) {
        assert_close(p.mem_eff[i], 1, 0, 0);
        assert_close(p.tensor_eff[i], 1, 0, 0);
    }
    assert_close(p.vector_eff * p.exp_eff * p.link_eff, 1, 0, 0);
    assert_close(p.launch_s + p.step_s + p.seq_s + p.layer_s + p.ramp_bytes + p.kernel_floor_s +
                     p.ttft_host_s + p.context_bytes + p.graph_bytes + p.reserve_bytes, 0, 0, 0);
}

/* Every record loads on every device, or has no backend there; every constant says where it comes
** from; bands hold 1. */
static void test_records(void **state)
{
    (void)state;
    static const char *const plain[] = {"id", "engine", "base", "family", "doc", "where",
                                        "comments"};
    plm_error e;
    size_t n = plm_catalog_count(catalog, "engines"), loaded = 0;
    assert_true(n >= 20);
    for (size_t i = 0; i < n; i++) {
        const plm_record *r = plm_catalog_at(catalog, "engines", i);
        json_t *root = json_loadb(r->text, r->bytes, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(root);
        assert_string_equal(json_string_value(json_object_get(root, "id")), r->id);
        const json_t *comments = json_object_get(root, "comments");
        const char *key;
        json_t *v;
        json_object_foreach(root, key, v) {
            size_t k = 0;
            while (k < sizeof plain / sizeof *plain && strcmp(key, plain[k]) != 0)
                k++;
            if (k == sizeof plain / sizeof *plain && json_object_get(comments, key) == NULL)
                fail_msg("%s: \"%s\" has no comment", r->id, key);
        }
        size_t at;
        json_array_foreach(json_object_get(root, "where"), at, v) {
            if (json_object_get(v, "comment") == NULL)
                fail_msg("%s: clause %zu has no comment", r->id, at);
        }
        json_decref(root);
        for (size_t j = 0; j < plm_catalog_count(catalog, "devices"); j += 7) {
            plm_device d;
            plm_profile p;
            assert_ok(plm_device_load(catalog, plm_catalog_at(catalog, "devices", j)->id, &d, &e),
                      e);
            plm_status status = plm_profile_load(catalog, r->id, &d, &p, &e);
            if (status != PLM_OK && status != PLM_E_UNSUPPORTED)
                fail_msg("%s on %s: %s", r->id, d.id, e.text);
            loaded += status == PLM_OK;
        }
    }
    assert_true(loaded > 20 * n);
}

static void test_torture(void **state)
{
    (void)state;
    plm_error e;
    plm_profile p;
    plm_mem_fail_at(0, false);
    assert_ok(plm_profile_load(catalog, "ollama-cuda", &h100, &p, &e), e);
    uint64_t asked = plm_mem_count();
    int64_t before = plm_mem_live();
    assert_true(asked > 50);
    for (uint64_t n = 1; n <= asked; n += 3) {
        plm_mem_fail_at(n, false);
        plm_status status = plm_profile_load(catalog, "ollama-cuda", &h100, &p, &e);
        plm_mem_fail_at(0, false);
        if (status != PLM_E_NO_MEMORY)
            fail_msg("allocation %d: status %d, %s", (int)n, (int)status, e.text);
        assert_int_equal(plm_mem_live(), before);
    }
}

int main(void)
{
    plm_mem_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inheritance), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_records),     cmocka_unit_test(test_torture),
    };
    return cmocka_run_group_tests(tests, open_catalog, close_catalog);
}
