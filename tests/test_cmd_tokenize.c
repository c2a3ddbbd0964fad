/* plimsoll tokenize: JSON, the text's three ways in, exit statuses, and memory running out. */
#include "tests/support.h"

#include <stdlib.h>

#include "cli/cli.h"
#include "core/base/mem.h"

#define MODEL PLM_ROOT "/tests/golden/tokens/llama3.json"

static int call(int argc, const char *const *words, char **out, char **err)
{
    char *argv[16];
    size_t n, m;
    argv[0] = (char *)(uintptr_t) "plimsoll";
    for (int i = 0; i < argc; i++)
        argv[i + 1] = (char *)(uintptr_t)words[i];
    argv[argc + 1] = NULL;
    plm_io io = {open_memstream(out, &n), open_memstream(err, &m), false, false};
    int status = plm_cli_main(argc + 1, argv, &io);
    fclose(io.out);
    fclose(io.err);
    return status;
}

static void expect(int status, const char *text, const char *const *words)
{
    char *out, *err;
    int argc = 0;
    while (words[argc] != NULL)
        argc++;
    int got = call(argc, words, &out, &err);
    if (got != status || strstr(status == 0 ? out : err, text) == NULL)
        fail_msg("exit %d, want %d with \"%s\": %s%s", got, status, text, out, err);
    if (status != 0) {
        assert_string_equal(out, "");
        assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1);
    }
    free(out);
    free(err);
}
#define EXPECT(status, text, ...)                                                                  \
    expect(status, text, (const char *const[]){"tokenize", __VA_ARGS__, NULL})

static void answers(void **state)
{
    (void)state;
    /* Ids by huggingface/tokenizers: <s> is 0; the letters of bytes follow the four control tokens.
     */
    EXPECT(0, "{\"tokens\":[0]}", "-m", MODEL, "--json", "");
    EXPECT(0, "{\"tokens\":[68]}", "-m", MODEL, "--json", "--no-bos", "a");
    EXPECT(0, "{\"tokens\":[3]}", "-m", MODEL, "--json", "--no-bos", "<|im_end|>");
    EXPECT(0, "{\"tokens\":[68]}", "-m", MODEL, "--json", "--no-bos", "--text", "a");
    EXPECT(0, "{\"tokens\":[16]}", "-m", MODEL, "--json", "--no-bos", "--", "-");
    EXPECT(0, "2 tokens\n", "-m", MODEL, "a");
    EXPECT(0, "\"a\"\n", "-m", MODEL, "a");
}

static void refusals(void **state)
{
    (void)state;
    EXPECT(2, "no text", "-m", MODEL);
    EXPECT(2, "two texts", "-m", MODEL, "--file", "x", "a");
    EXPECT(2, "given twice", "-m", MODEL, "a", "b");
    EXPECT(2, "--model", "a");
    EXPECT(2, "want a .gguf", "-m", "llama-3.1-8b", "a");
    EXPECT(3, "no-such-file", "-m", MODEL, "--file", "/no-such-file");
}

static void memory_runs_out(void **state)
{
    (void)state;
    static const char *const words[] = {"tokenize", "-m", MODEL, "--json",
                                        "hello <s> w\xc3\xb6rld 123"};
    char *good, *out, *err;
    plm_mem_fail_at(0, false);
    assert_int_equal(call(5, words, &good, &err), 0);
    free(err);
    uint64_t total = plm_mem_count(), failures = 0;
    int64_t live = plm_mem_live();
    for (uint64_t n = 1; n <= total; n += 17) {
        plm_mem_fail_at(n, false);
        int status = call(5, words, &out, &err);
        plm_mem_fail_at(0, false);
        failures += status == 3;
        assert_true(status == 3 ? *out == '\0' : strcmp(out, good) == 0);
        assert_int_equal(plm_mem_live(), live);
        free(out);
        free(err);
    }
    assert_true(failures > 10);
    free(good);
}

int main(void)
{
    plm_mem_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(refusals),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
