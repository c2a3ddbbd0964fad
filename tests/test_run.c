/* test_run.c - the command run: text, tokens, logits, and what it refuses. */
#define _GNU_SOURCE /* mkdtemp, nftw */
#include "tests/cli_run.h"

#include "tests/golden_support.h"

#define MODEL PLM_ROOT "/tests/data/stories260k.gguf"

static json_t *run_json(const char *line)
{
    cli_result r = cli_run(line, MODEL);
    if (r.status != 0)
        fail_msg("%s: exit %d: %s", line, r.status, r.err);
    json_t *j = json_loads(r.out, 0, NULL);
    assert_non_null(j);
    cli_drop(&r);
    return j;
}

static void text_is_the_makers(void **state)
{
    (void)state;
    json_t *truth = json_load_file(PLM_ROOT "/tests/golden/stories260k.json", 0, NULL);
    assert_non_null(truth);
    const char *text = json_string_value(json_object_get(truth, "text"));
    json_t *j = run_json("run --model @ --tokens 1 -n 200 --kv-type f32 --json");
    assert_string_equal(json_string_value(json_object_get(j, "text")), text);
    assert_true(json_equal(json_object_get(j, "tokens"), json_object_get(truth, "tokens")));
    assert_int_equal(json_integer_value(json_object_get(j, "prompt_tokens")), 1);
    assert_int_equal(json_integer_value(json_object_get(j, "generated_tokens")), 200);
    assert_true(json_number_value(json_object_get(j, "prefill_tok_s")) > 0);
    assert_true(json_number_value(json_object_get(j, "decode_tok_s")) > 0);
    json_decref(j);
    /* The story told from its first words; the cache at half precision does not change these. */
    cli_result r = cli_run_list((const char *const[]){"run", "--model", MODEL, "-p", "Once upon a time", "-n",
                                                      "40", "--backend", "ref", NULL});
    assert_int_equal(r.status, 0);
    assert_true(r.out_bytes > 40 && r.out[r.out_bytes - 1] == '\n');
    const char *rest = text + strlen("Once upon a time");
    assert_memory_equal(r.out, rest, r.out_bytes - 1);
    cli_drop(&r);
    /* The same from a file. */
    cli_text("prompt", "Once upon a time");
    r = cli_run_list((const char *const[]){"run", "--model", MODEL, "--prompt-file", cli_path("prompt"),
                                           "-n", "5", NULL});
    assert_int_equal(r.status, 0);
    assert_memory_equal(r.out, rest, r.out_bytes - 1);
    cli_drop(&r);
    json_decref(truth);
}

/* NumPy's header, and rows whose greatest logits are the tokens that came. */
static void logits_are_saved(void **state)
{
    (void)state;
    json_t *truth = json_load_file(PLM_ROOT "/tests/golden/stories260k.json", 0, NULL);
    json_t *tokens = json_object_get(truth, "tokens");
    enum { ROWS = 70, VOCAB = 512 }; /* more than one step takes when logits are kept */
    char ids[1024] = "1";
    for (size_t i = 0; i + 1 < ROWS; i++)
        snprintf(ids + strlen(ids), sizeof ids - strlen(ids), ",%lld",
                 (long long)json_integer_value(json_array_get(tokens, i)));
    cli_result r = cli_run_list((const char *const[]){"run", "--model", MODEL, "--tokens", ids, "-n", "0",
                                                      "--logits", cli_path("l.npy"), "--json", NULL});
    if (r.status != 0)
        fail_msg("%s", r.err);
    cli_drop(&r);
    char *data;
    size_t bytes;
    plm_error err;
    assert_ok(plm_file_read(cli_path("l.npy"), 1 << 20, &data, &bytes, &err), err);
    assert_memory_equal(data, "\x93NUMPY\x01\x00\x76\x00", 10);
    assert_non_null(strstr(data + 10, "'descr': '<f4'"));
    assert_non_null(strstr(data + 10, "(70, 512)"));
    assert_int_equal(bytes, 128 + ROWS * VOCAB * sizeof(float));
    for (size_t row = 0; row < ROWS; row++) {
        float x[VOCAB];
        size_t best = 0;
        memcpy(x, data + 128 + row * sizeof x, sizeof x);
        for (size_t i = 1; i < VOCAB; i++)
            best = x[i] > x[best] ? i : best;
        assert_int_equal(best, json_integer_value(json_array_get(tokens, row)));
    }
    plm_free(data);
    json_decref(truth);
}

static void seeds_repeat(void **state)
{
    (void)state;
    static const char line[] = "run --model @ --tokens 1 -n 30 --temp 1 --top-k 50 --top-p 0.9 --seed 7 "
                               "--json";
    json_t *a = run_json(line), *b = run_json(line);
    assert_true(json_equal(json_object_get(a, "tokens"), json_object_get(b, "tokens")));
    json_t *c = run_json("run --model @ --tokens 1 -n 30 --temp 1 --top-k 50 --top-p 0.9 --seed 8 --json");
    assert_false(json_equal(json_object_get(a, "tokens"), json_object_get(c, "tokens")));
    json_decref(a);
    json_decref(b);
    json_decref(c);
}

static void wrong_use_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int status;
    } cases[] = {
        {"run --tokens 1", 2},
        {"run --model @", 2},
        {"run --model @ --tokens 1 --prompt x", 2},
        {"run --model @ --tokens 1,,2", 2},
        {"run --model @ --tokens 1,-2", 2},
        {"run --model @ --tokens 512", 2},
        {"run --model @ --tokens 1 --backend warp", 2},
        {"run --model @ --tokens 1 --kv-type q9", 2},
        {"run --model @ --tokens 1 --kv-type q4_k", 2},
        {"run --model @ --tokens 1 --temp 1 --top-p 2", 2},
        {"run --model @ --tokens 1 -n 0 --logits /nowhere/l.npy", 3},
        {"run --model /nowhere/x.gguf --tokens 1", 2},
        {"run --model llama-3.1-8b --tokens 1", 2},
        {"predict --tokens 1", 2},
        {"run --tokens 1 --model /nowhere/folder", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cli_result r = cli_run(cases[i].line, MODEL);
        if (r.status != cases[i].status || !cli_one_line(&r) || r.out_bytes != 0)
            fail_msg("%s: exit %d, %s%s", cases[i].line, r.status, r.out, r.err);
        cli_drop(&r);
    }
}

/* Families whose graph is not exact are told before any weight is looked for. */
static void costed_only_is_told(void **state)
{
    (void)state;
    cli_text("config.json",
             "{\"model_type\":\"phimoe\",\"hidden_size\":32,\"num_hidden_layers\":1,\"vocab_size\":48,"
             "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":48,"
             "\"num_local_experts\":4,\"num_experts_per_tok\":2}");
    cli_result r = cli_run("run --model @ --tokens 1", cli_folder);
    assert_int_equal(r.status, 2);
    assert_true(cli_one_line(&r));
    assert_non_null(strstr(r.err, "phimoe"));
    cli_drop(&r);
}

/* An allocation fails, and all after it: exit 3 with one line, nothing printed, no block left behind. */
static void memory_may_run_out(void **state)
{
    (void)state;
    static const char line[] = "run --model @ --tokens 1,2 -n 2 --json";
    cli_result r = cli_run(line, MODEL);
    cli_drop(&r);
    int64_t live = plm_mem_live();
    unsigned failures = 0;
    for (uint64_t n = 1;; n += 1 + n / 25) {
        plm_mem_fail_at(n, true);
        r = cli_run(line, MODEL);
        plm_mem_fail_at(0, false);
        if (plm_mem_live() != live)
            fail_msg("allocation %llu: %lld blocks leaked", (unsigned long long)n,
                     (long long)(plm_mem_live() - live));
        bool done = r.status == 0;
        if (!done && (r.status != 3 || !cli_one_line(&r) || r.out_bytes != 0))
            fail_msg("allocation %llu: exit %d: %s", (unsigned long long)n, r.status, r.err);
        cli_drop(&r);
        if (done)
            break;
        failures++;
    }
    assert_true(failures > 50);
}

int main(void)
{
    plm_mem_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_the_makers),
        cmocka_unit_test(logits_are_saved),
        cmocka_unit_test(seeds_repeat),
        cmocka_unit_test(wrong_use_is_told),
        cmocka_unit_test(costed_only_is_told),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, cli_folder_create, cli_folder_remove);
}
