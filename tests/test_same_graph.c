/* test_same_graph.c - what predict says a model takes is, to the byte, what the executor asks of the device:
** parameters, weights, KV cache, recurrent state, activations; for the tiny models of tests/golden laid
** out as folders, and for a trained one in a GGUF. */
#define _GNU_SOURCE /* mkdtemp, nftw */
#include "tests/cli_run.h"

#include "core/host/loaded.h"
#include "tests/golden_support.h"

static plm_error err;

static int64_t figure(const json_t *j, const char *part, const char *key)
{
    const json_t *v = json_object_get(json_object_get(j, part), key);
    if (!json_is_integer(v))
        fail_msg("predict: no %s.%s", part, key);
    return json_integer_value(v);
}

/* path: the model; context: tokens the cache is sized for. */
static void compare(const char *name, const char *path, const char *quant, int64_t context)
{
    char line[256];
    plm_loaded m;
    plm_loaded_options o;
    plm_loaded_options_init(&o);
    o.kv = PLM_DT_F32;
    o.context_tokens = context;
    assert_ok(plm_loaded_open(path, &o, &m, &err), err);
    snprintf(line, sizeof line, "predict --model @ --device epyc_9755 --engine plimsoll --quant %s "
             "--kv-type f32 --context %lld --json", quant, (long long)context);
    cli_result r = cli_run(line, path);
    if (r.status > 1)
        fail_msg("%s: %s", name, r.err);
    json_t *j = json_loads(r.out, 0, NULL);
    assert_non_null(j);
    const plm_runner_memory *got = plm_runner_memory_of(m.runner);
    const struct {
        const char *what;
        int64_t run, predicted;
    } rows[] = {{"params", got->params, figure(j, "model", "params")},
                {"weights", got->weights_bytes, figure(j, "model", "weights_bytes")},
                {"weights in memory", got->weights_bytes, figure(j, "memory", "weights_bytes")},
                {"KV cache", got->kv_bytes, figure(j, "memory", "kv_bytes")},
                {"state", got->state_bytes, figure(j, "memory", "state_bytes")},
                {"activations", got->activation_bytes, figure(j, "memory", "activation_bytes")}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].run != rows[i].predicted)
            fail_msg("%s, %s: %lld, predict says %lld", name, rows[i].what, (long long)rows[i].run,
                     (long long)rows[i].predicted);
    assert_true(got->params > 0 && got->kv_bytes > 0 && got->activation_bytes > 0);
    json_decref(j);
    cli_drop(&r);
    plm_loaded_fini(&m);
}

static void families_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < GOLDEN_FAMILIES; i++) {
        golden g;
        golden_open(&g, golden_families[i]);
        char *config = json_dumps(json_object_get(g.json, "config"), 0);
        assert_non_null(config);
        cli_write("config.json", config, strlen(config));
        cli_write("model.safetensors", g.file, g.file_bytes);
        compare(golden_families[i], cli_folder, "f32", 100 + (int64_t)i);
        plm_free(config);
        golden_close(&g);
    }
}

static void a_file_agrees(void **state)
{
    (void)state;
    compare("stories260k", PLM_ROOT "/tests/data/stories260k.gguf", "f32", 201);
}

int main(void)
{
    plm_mem_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_agree),
        cmocka_unit_test(a_file_agrees),
    };
    return cmocka_run_group_tests(tests, cli_folder_create, cli_folder_remove);
}
