/* The command line as users and scripts see it: exit status, one error line, keys of the answers. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "tests/support.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/mem.h"

typedef struct run {
    int status;
    char *out, *err;
    size_t out_bytes, err_bytes;
} run;

/* Runs "plimsoll WORDS" in process; words are split at spaces. */
static run call(const char *words)
{
    run r = {0};
    char text[2048], *argv[96], *save = NULL;
    int argc = 0;
    snprintf(text, sizeof text, "plimsoll %s", words);
    for (char *p = strtok_r(text, " ", &save); p != NULL && argc < 95; p = strtok_r(NULL, " ", &save))
        argv[argc++] = p;
    argv[argc] = NULL;
    plm_io io = {open_memstream(&r.out, &r.out_bytes), open_memstream(&r.err, &r.err_bytes), false,
                 false};
    r.status = plm_cli_main(argc, argv, &io);
    fclose(io.out);
    fclose(io.err);
    return r;
}

static void drop(run *r)
{
    free(r->out);
    free(r->err);
}

static json_t *call_json(const char *words, int status)
{
    run r = call(words);
    if (r.status != status)
        fail_msg("plimsoll %s: exit %d, want %d: %s", words, r.status, status, r.err);
    json_error_t e;
    json_t *j = json_loads(r.out, JSON_REJECT_DUPLICATES, &e);
    if (j == NULL)
        fail_msg("plimsoll %s: not one JSON object: %s", words, e.text);
    assert_ptr_equal(strchr(r.out, '\n'), r.out + r.out_bytes - 1);
    drop(&r);
    return j;
}

/* Value at a dotted path, which must exist. */
static json_t *at(json_t *j, const char *path)
{
    char key[64];
    for (const char *p = path; j != NULL && *p != '\0';) {
        size_t n = strcspn(p, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, p);
        j = json_is_array(j) ? json_array_get(j, (size_t)atoi(key)) : json_object_get(j, key);
        p += n + (p[n] == '.');
    }
    if (j == NULL)
        fail_msg("no key %s", path);
    return j;
}

static void bad_input_is_one_line_and_exit_2(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "nonsense",
        "predict",
        "predict --model llama-3.1-8b",
        "predict --device h100_sxm_80",
        "predict --model no-such-model --device h100_sxm_80",
        "predict --model llama-3.1-8b --device no_such_device",
        "predict --model llama-3.1-8b --device h100_sxm_80 --engine no-such-engine",
        "predict --model llama-3.1-8b --device h100_sxm_80 --quant q99_z",
        "predict --model llama-3.1-8b --device h100_sxm_80 --kv-type what",
        "predict --model llama-3.1-8b --device h100_sxm_80 --batch -1",
        "predict --model llama-3.1-8b --device h100_sxm_80 --batch 0",
        "predict --model llama-3.1-8b --device h100_sxm_80 --batch 9223372036854775808",
        "predict --model llama-3.1-8b --device h100_sxm_80 --batch 99999999999999999999999999",
        "predict --model llama-3.1-8b --device h100_sxm_80 --prompt 1e400",
        "predict --model llama-3.1-8b --device h100_sxm_80 --prompt nan",
        "predict --model llama-3.1-8b --device h100_sxm_80 --prompt 0x10",
        "predict --model llama-3.1-8b --device h100_sxm_80 --prompt 1.5",
        "predict --model llama-3.1-8b --device h100_sxm_80 --prompt 12parsecs",
        "predict --model llama-3.1-8b --device h100_sxm_80 --prompt",
        "predict --model llama-3.1-8b --device h100_sxm_80 --prompt 0 --gen 0",
        "predict --model llama-3.1-8b --device h100_sxm_80:0",
        "predict --model llama-3.1-8b --device h100_sxm_80:x",
        "predict --model llama-3.1-8b --device h100_sxm_80:9223372036854775807",
        "predict --model llama-3.1-8b --device h100_sxm_80:8 --tp 7",
        "predict --model qwen2.5-7b --device h100_sxm_80:8 --tp 8",
        "predict --model llama-3.1-8b --device h100_sxm_80 --price -2",
        "predict --model llama-3.1-8b --device h100_sxm_80 --price inf",
        "predict --model llama-3.1-8b --device h100_sxm_80 --utilisation 2",
        "predict --model llama-3.1-8b --device h100_sxm_80 --json --csv",
        "predict --model llama-3.1-8b --device h100_sxm_80 --json=yes",
        "predict --model llama-3.1-8b --device h100_sxm_80 --unknown-flag 3",
        "predict --model llama-3.1-8b --model llama-3.1-8b --device h100_sxm_80",
        "predict llama-3.1-8b h100_sxm_80",
        "plan --model llama-3.1-8b --device h100_sxm_80",
        "plan --model llama-3.1-8b --device h100_sxm_80 --isl 0 --osl 10",
        "plan --model llama-3.1-8b --device h100_sxm_80 --isl 10 --osl 10 --objective fame",
        "plan --model llama-3.1-8b --device h100_sxm_80 --isl 10 --osl 10 --export vllm",
        "fit",
        "fit --model llama-3.1-8b --device h100_sxm_80 --train lots",
        "explain --model llama-3.1-8b --device h100_sxm_80 --phase dream",
        "occupancy --device h100_sxm_80 --threads 0 --regs 32",
        "occupancy --device h100_sxm_80 --threads 256",
        "models --model no-such-model",
        "devices --device no-such-device",
        "--completion ksh",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        run r = call(bad[i]);
        if (r.status != 2)
            fail_msg("plimsoll %s: exit %d, want 2: %s%s", bad[i], r.status, r.out, r.err);
        if (r.out_bytes != 0)
            fail_msg("plimsoll %s: wrote to standard output: %s", bad[i], r.out);
        if (*bad[i] != '\0' && strchr(r.err, '\n') != r.err + r.err_bytes - 1)
            fail_msg("plimsoll %s: not one line: %s", bad[i], r.err);
        if (*bad[i] != '\0' && strncmp(r.err, "plimsoll: ", 10) != 0)
            fail_msg("plimsoll %s: no name before the error: %s", bad[i], r.err);
        drop(&r);
    }
}

static void unreadable_files_are_exit_3_or_2(void **state)
{
    (void)state;
    run r = call("predict --jobs /nonexistent/jobs.jsonl");
    assert_int_equal(r.status, 3);
    assert_int_equal(r.out_bytes, 0);
    drop(&r);
    r = call("devices --catalog /nonexistent");
    assert_int_equal(r.status, 3);
    drop(&r);
    char path[] = "/tmp/plm_cli_XXXXXX.gguf";
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "GGUF\3\0\0\0", 8), 8);
    close(fd);
    char words[256];
    snprintf(words, sizeof words, "models --model %s", path);
    r = call(words);
    assert_int_equal(r.status, 2);
    assert_int_equal(r.out_bytes, 0);
    drop(&r);
    unlink(path);
}

static void numbers_with_units(void **state)
{
    (void)state;
    plm_error err;
    int64_t i;
    double x;
    assert_ok(plm_parse_count("8k", "--n", &i, &err), err);
    assert_int_equal(i, 8000);
    assert_ok(plm_parse_count("32Ki", "--n", &i, &err), err);
    assert_int_equal(i, 32768);
    assert_ok(plm_parse_count("1.5k", "--n", &i, &err), err);
    assert_int_equal(i, 1500);
    assert_ok(plm_parse_size("16GiB", "--n", &i, &err), err);
    assert_int_equal(i, 17179869184);
    assert_ok(plm_parse_size("16GB", "--n", &i, &err), err);
    assert_int_equal(i, 16000000000);
    assert_ok(plm_parse_time("25ms", "--n", &x, &err), err);
    assert_close(x, 0.025, 1e-15, 0);
    assert_ok(plm_parse_time("2h", "--n", &x, &err), err);
    assert_close(x, 7200, 0, 0);
    assert_int_equal(plm_parse_count("0x1p4", "--n", &i, &err), PLM_E_INVALID);
    assert_int_equal(plm_parse_count("", "--n", &i, &err), PLM_E_INVALID);
    assert_int_equal(plm_parse_count("9007199254740992", "--n", &i, &err), PLM_E_INVALID);
    assert_int_equal(plm_parse_size("inf", "--n", &i, &err), PLM_E_INVALID);
    assert_int_equal(plm_parse_real("1e999", "--n", &x, &err), PLM_E_INVALID);
}

static void predict_has_the_contract_keys(void **state)
{
    (void)state;
    json_t *j = call_json("predict --model llama-3.1-8b --device h100_sxm_80 --prompt 512 --gen 128 "
                          "--price 2.5 --concurrency 8 --json", 0);
    static const char *const numbers[] = {
        "model.params", "model.params_active", "model.weights_bytes", "device.count",
        "prefill.tokens", "prefill.time_s", "prefill.tok_s", "prefill.tok_s_range.0",
        "prefill.tok_s_range.1", "decode.batch", "decode.context_tokens", "decode.itl_s",
        "decode.itl_s_range.0", "decode.tok_s", "decode.tok_s_range.0", "decode.tok_s_per_user",
        "memory.weights_bytes", "memory.kv_bytes_per_token", "memory.kv_bytes",
        "memory.state_bytes", "memory.activation_bytes", "memory.overhead_bytes",
        "memory.total_bytes", "memory.capacity_bytes", "memory.max_context_tokens",
        "memory.max_batch", "serving.ttft_s", "serving.ttft_s_range.0", "serving.itl_s",
        "serving.itl_s_range.1", "serving.e2e_s", "serving.output_tok_s", "serving.total_tok_s",
        "serving.requests_s", "cost.usd_per_hour", "cost.usd_per_mtok_input",
        "cost.usd_per_mtok_output"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!json_is_number(at(j, numbers[i])))
            fail_msg("%s is not a number", numbers[i]);
    static const char *const texts[] = {"model.id", "device.id", "engine", "prefill.bound",
                                        "decode.bound", "serving.bound", "cost.price_source"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_true(json_is_string(at(j, texts[i])));
    assert_true(json_is_true(at(j, "memory.fits")));
    assert_int_equal(json_integer_value(at(j, "model.params")), 8030261248);
    assert_int_equal(json_integer_value(at(j, "model.weights_bytes")), 16060522496);
    assert_int_equal(json_integer_value(at(j, "memory.kv_bytes_per_token")), 131072);
    double tok = json_number_value(at(j, "decode.tok_s"));
    assert_true(json_number_value(at(j, "decode.tok_s_range.0")) <= tok);
    assert_true(json_number_value(at(j, "decode.tok_s_range.1")) >= tok);
    assert_close(json_number_value(at(j, "decode.itl_s")) * tok, 1.0, 1e-9, 0);
    assert_close(json_number_value(at(j, "cost.usd_per_hour")), 2.5, 1e-12, 0);
    json_decref(j);
}

static void ids_match_loosely(void **state)
{
    (void)state;
    json_t *a = call_json("predict --model Llama_3.1_8B --device H100-SXM-80 --json", 0);
    json_t *b = call_json("predict --model llama-3-1-8b --device h100_sxm_80 --json", 0);
    assert_true(json_equal(a, b));
    json_decref(a);
    json_decref(b);
}

static void what_does_not_fit_has_no_speed(void **state)
{
    (void)state;
    json_t *j = call_json("predict --model llama-3.1-405b --device rtx_4090_24 --json", 1);
    assert_true(json_is_false(at(j, "memory.fits")));
    assert_true(json_is_null(at(j, "prefill")));
    assert_true(json_is_null(at(j, "decode")));
    assert_int_equal(json_integer_value(at(j, "memory.max_context_tokens")), 0);
    json_decref(j);
}

static void jobs_answer_every_line(void **state)
{
    (void)state;
    char path[] = "/tmp/plm_jobs_XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");
    fputs("{\"id\":\"r1\",\"model\":\"llama-3.1-8b\",\"device\":\"rtx_4090_24\",\"engine\":"
          "\"llama.cpp\",\"quant\":\"q4_k_m\",\"prompt\":512,\"gen\":128}\n"
          "\n"
          "not json\n"
          "{\"id\":2,\"model\":\"no-such\",\"device\":\"rtx_4090_24\"}\n"
          "[1]\n"
          "{\"id\":\"r4\",\"model\":\"llama-3.1-8b\",\"device\":\"rtx_4090_24\",\"typo\":1}\n"
          "{\"id\":\"r5\",\"model\":\"llama-3.1-8b\",\"device\":\"h100_sxm_80\",\"weights_bytes\":"
          "16060522496,\"static-batch\":false}",
          f);
    fclose(f);
    char words[128];
    snprintf(words, sizeof words, "predict --jobs %s", path);
    run r = call(words);
    assert_int_equal(r.status, 1);
    char *save = NULL;
    int lines = 0, errors = 0;
    for (char *p = strtok_r(r.out, "\n", &save); p != NULL; p = strtok_r(NULL, "\n", &save)) {
        json_t *j = json_loads(p, 0, NULL);
        assert_non_null(j);
        assert_non_null(json_object_get(j, "id"));
        errors += json_object_get(j, "error") != NULL;
        if (lines == 0)
            assert_string_equal(json_string_value(json_object_get(j, "id")), "r1");
        lines++;
        json_decref(j);
    }
    assert_int_equal(lines, 6);
    assert_int_equal(errors, 4);
    drop(&r);
    unlink(path);
}

static void fit_both_ways(void **state)
{
    (void)state;
    json_t *j = call_json("fit --model llama-3.1-8b --json", 0);
    assert_true(json_array_size(at(j, "rows")) > 100);
    static const char *const keys[] = {"model", "device", "quant", "context_tokens", "fits",
                                       "total_bytes", "max_context_tokens", "ledger",
                                       "ledger.weights_bytes", "decode_tok_s"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        at(at(j, "rows.0"), keys[i]);
    json_decref(j);
    j = call_json("fit --device rtx_4090_24 --quant auto --json", 0);
    assert_true(json_array_size(at(j, "rows")) > 70);
    assert_true(json_is_true(at(j, "rows.0.fits")));
    json_decref(j);
    j = call_json("fit --model llama-2-7b --device h100_sxm_80 --train lora --json", 0);
    assert_true(json_is_true(at(j, "rows.0.fits")));
    json_decref(j);
    /* 16 B a parameter: 107.8 GB do not fit 80 GiB (serving_facts, S24). */
    j = call_json("fit --model llama-2-7b --device h100_sxm_80 --train full --json", 1);
    json_decref(j);
}

static void explain_adds_up(void **state)
{
    (void)state;
    json_t *j = call_json("explain --model qwen3-30b-a3b --device h100_sxm_80 --phase decode "
                          "--batch 8 --json", 0);
    double share = 0;
    size_t n = json_array_size(at(j, "ops"));
    assert_true(n >= 8);
    for (size_t i = 0; i < n; i++)
        share += json_number_value(at(json_array_get(at(j, "ops"), i), "share"));
    assert_close(share, 1.0, 1e-6, 0);
    double sum = 0;
    static const char *const names[] = {"tensor", "memory", "exp", "link", "overhead"};
    for (size_t i = 0; i < 5; i++)
        sum += json_number_value(json_object_get(at(j, "elasticity"), names[i]));
    assert_close(sum, 1.0, 0.15, 0); /* vector is the sixth, and maxima are not smooth */
    assert_close(json_number_value(at(j, "ridge_point_flop_per_byte")), 295.2, 0.01, 0);
    json_decref(j);
}

static void plan_finds_or_says_no(void **state)
{
    (void)state;
    json_t *j = call_json("plan --model llama-3.1-8b --device h100_sxm_80,l40s_48 --isl 1000 --osl "
                          "200 --ttft 1s --itl 50ms --json", 0);
    assert_true(json_integer_value(at(j, "searched")) > 20);
    static const char *const keys[] = {
        "rank", "mode", "device", "gpus", "replicas", "tp", "pp", "ep", "dp", "quant", "max_batch",
        "ttft_s", "itl_s", "tok_s_per_gpu", "tok_s_per_user", "requests_s", "usd_per_mtok_input",
        "usd_per_mtok_output", "kv_headroom_tokens", "bound", "pareto"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        at(at(j, "plans.0"), keys[i]);
    assert_true(json_number_value(at(j, "plans.0.ttft_s")) <= 1.0);
    assert_true(json_number_value(at(j, "plans.0.itl_s")) <= 0.05);
    json_decref(j);
    j = call_json("plan --model llama-3.1-405b --device rtx_4090_24 --isl 1000 --osl 200 --json", 1);
    json_decref(j);
    j = call_json("plan --model llama-3.1-8b --device t4_16 --isl 100k --osl 200 --ttft 1ms --json",
                  1);
    json_decref(j);
}

/* The same bytes from any number of threads, but for the clock. */
static void plan_is_the_same_on_any_thread_count(void **state)
{
    (void)state;
    json_t *first = NULL;
    for (int threads = 1; threads <= 5; threads += 2) {
        char words[256];
        snprintf(words, sizeof words, "plan --model qwen3-32b --device h100_sxm_80,h200_sxm_141 "
                 "--isl 2000 --osl 300 --ttft 2s --itl 60ms --json --threads %d", threads);
        run r = call(words);
        json_t *j = json_loads(r.out, 0, NULL);
        assert_non_null(j);
        json_object_del(j, "elapsed_s");
        if (first == NULL)
            first = j;
        else {
            assert_true(json_equal(first, j));
            json_decref(j);
        }
        drop(&r);
    }
    json_decref(first);
}

static void catalogs_are_listed(void **state)
{
    (void)state;
    json_t *j = call_json("devices --json", 0);
    assert_true(json_array_size(at(j, "devices")) >= 151);
    json_decref(j);
    j = call_json("devices --device h100_sxm_80 --json", 0);
    assert_close(json_number_value(at(j, "devices.0.peak_flop_s.bf16")), 989.4e12, 1e-9, 0);
    assert_close(json_number_value(at(j, "devices.0.bandwidth_bytes_s")), 3352e9, 1e-9, 0);
    json_decref(j);
    j = call_json("models --json", 0);
    assert_true(json_array_size(at(j, "models")) >= 81);
    json_decref(j);
    j = call_json("models --model deepseek-v3 --json", 0);
    assert_int_equal(json_integer_value(at(j, "models.0.params")), 671026419200);
    assert_int_equal(json_integer_value(at(j, "models.0.kv_bytes_per_token")), 70272);
    json_decref(j);
    j = call_json("occupancy --device h100_sxm_80 --threads 256 --regs 33 --json", 0);
    assert_int_equal(json_integer_value(at(j, "blocks_per_sm")), 6);
    assert_close(json_number_value(at(j, "occupancy")), 0.75, 1e-12, 0);
    json_decref(j);
}

static void help_covers_every_option(void **state)
{
    (void)state;
    for (int c = 0; c < PLM_CMD_COUNT; c++) {
        char words[64];
        snprintf(words, sizeof words, "%s --help", plm_command_name((plm_command_id)c));
        run r = call(words);
        assert_int_equal(r.status, 0);
        for (int i = 0; i < PLM_OPT_COUNT; i++) {
            const plm_option *o = plm_option_get((plm_option_id)i);
            char flag[64];
            snprintf(flag, sizeof flag, "--%s ", o->name);
            if ((o->commands & (1u << c)) != 0 && strstr(r.out, flag) == NULL)
                fail_msg("%s does not show %s", words, flag);
        }
        assert_non_null(strstr(r.out, "example:"));
        drop(&r);
    }
    static const char *const texts[] = {"--man", "--completion bash", "--completion zsh",
                                        "--completion fish", "--version", "--help"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        run r = call(texts[i]);
        assert_int_equal(r.status, 0);
        assert_true(r.out_bytes > 10);
        drop(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_input_is_one_line_and_exit_2),
        cmocka_unit_test(unreadable_files_are_exit_3_or_2),
        cmocka_unit_test(numbers_with_units),
        cmocka_unit_test(predict_has_the_contract_keys),
        cmocka_unit_test(ids_match_loosely),
        cmocka_unit_test(what_does_not_fit_has_no_speed),
        cmocka_unit_test(jobs_answer_every_line),
        cmocka_unit_test(fit_both_ways),
        cmocka_unit_test(explain_adds_up),
        cmocka_unit_test(plan_finds_or_says_no),
        cmocka_unit_test(plan_is_the_same_on_any_thread_count),
        cmocka_unit_test(catalogs_are_listed),
        cmocka_unit_test(help_covers_every_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
