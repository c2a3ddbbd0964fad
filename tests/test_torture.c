/* Torture: every allocation of a command fails, one at a time, then all from there on. Each run must
** end in exit 3 with one line, or answer as if nothing had happened (an allocation that a library
** can do without), and must leave no block behind. */
#include "tests/support.h"

#include <stdlib.h>

#include "cli/cli.h"
#include "core/base/mem.h"

static int call(const char *words, char **out, char **err)
{
    char text[1024], *argv[64], *save = NULL;
    int argc = 0;
    size_t n, m;
    snprintf(text, sizeof text, "plimsoll %s", words);
    for (char *p = strtok_r(text, " ", &save); p != NULL; p = strtok_r(NULL, " ", &save))
        argv[argc++] = p;
    argv[argc] = NULL;
    plm_io io = {open_memstream(out, &n), open_memstream(err, &m), false, false};
    int status = plm_cli_main(argc, argv, &io);
    fclose(io.out);
    fclose(io.err);
    return status;
}

/* stride: every stride-th allocation, for commands with very many. */
static void torture(const char *words, uint64_t stride, bool all_after)
{
    char *out, *err, *good;
    plm_mem_fail_at(0, false);
    int want = call(words, &good, &err);
    assert_true(want == 0 || want == 1);
    uint64_t total = plm_mem_count();
    int64_t live = plm_mem_live();
    free(err);
    assert_true(total > 10);
    unsigned failures = 0;
    for (uint64_t n = 1; n <= total; n += stride) {
        plm_mem_fail_at(n, all_after);
        int status = call(words, &out, &err);
        plm_mem_fail_at(0, false);
        if (status == 3) {
            failures++;
            if (*out != '\0' || strncmp(err, "plimsoll: ", 10) != 0 ||
                strchr(err, '\n') != err + strlen(err) - 1)
                fail_msg("%s: allocation %llu: not a clean error: %s", words,
                         (unsigned long long)n, err);
        } else if (status != want) {
            fail_msg("%s: allocation %llu of %llu: exit %d: %s", words, (unsigned long long)n,
                     (unsigned long long)total, status, err);
        }
        if (plm_mem_live() != live)
            fail_msg("%s: allocation %llu: %lld blocks leaked", words, (unsigned long long)n,
                     (long long)(plm_mem_live() - live));
        free(out);
        free(err);
    }
    assert_true(failures * 2 > total / stride);
    free(good);
}

static void predict_survives(void **state)
{
    (void)state;
    torture("predict --model llama-3.1-8b --device h100_sxm_80 --json", 1, false);
    torture("predict --model qwen3-next-80b-a3b --device h200_sxm_141:2 --tp 2 --concurrency 4 "
            "--json", 7, true);
    torture("predict --model llama-3.1-8b --device rtx_4090_24", 5, true);
}

static void other_commands_survive(void **state)
{
    (void)state;
    torture("explain --model gemma-3-4b --device l40s_48 --json", 3, false);
    torture("occupancy --device h100_sxm_80 --threads 256 --regs 64 --json", 1, false);
    torture("fit --model llama-3.2-1b --device rtx_4090_24", 5, false);
    torture("devices --device mi300x_192 --json", 1, true);
    torture("models --model gpt-oss-20b --json", 3, false);
    torture("plan --model llama-3.2-1b --device l40s_48 --isl 512 --osl 64 --gpus 1 --threads 1 "
            "--json", 23, true);
}

int main(void)
{
    plm_mem_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predict_survives),
        cmocka_unit_test(other_commands_survive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
