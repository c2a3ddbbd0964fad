/* libFuzzer: any bytes as a --jobs file of predict, and a single line also of fit. Every line with
** something on it must give one JSON object with an id, in order, and the run must end in 0 or 1. */
#define _GNU_SOURCE /* memmem, mkstemp */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/mem.h"

#define LINES 16 /* an input of more lines says nothing new */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[64];

static void remove_file(void)
{
    unlink(path);
}

static void need(bool ok)
{
    if (!ok)
        abort();
}

static size_t count_lines(const uint8_t *data, size_t size)
{
    size_t n = 0;
    bool some = false;
    for (size_t i = 0; i < size; i++) {
        some = some || (data[i] != '\n' && data[i] != ' ' && data[i] != '\t' && data[i] != '\r');
        if (data[i] == '\n' || i + 1 == size) {
            n += some;
            some = false;
        }
    }
    return n;
}

static void run(const char *command, size_t lines)
{
    char words[3][80], *argv[] = {words[0], words[1], words[2], NULL}, *out = NULL, *err = NULL;
    size_t out_bytes, err_bytes, answers = 0;
    snprintf(words[0], sizeof words[0], "plimsoll");
    snprintf(words[1], sizeof words[1], "%s", command);
    snprintf(words[2], sizeof words[2], "--jobs=%s", path);
    plm_io io = {open_memstream(&out, &out_bytes), open_memstream(&err, &err_bytes), false, false};
    int status = plm_cli_main(3, argv, &io);
    need(fclose(io.out) == 0 && fclose(io.err) == 0);
    need(status == 0 || status == 1);
    need(err_bytes == 0);
    for (char *p = out, *end; *p != '\0'; p = end + 1) {
        end = strchr(p, '\n');
        need(end != NULL);
        json_t *j = json_loadb(p, (size_t)(end - p), JSON_REJECT_DUPLICATES, NULL);
        need(json_is_object(j) && json_object_get(j, "id") != NULL);
        json_decref(j);
        answers++;
    }
    need(answers == lines);
    free(out);
    free(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (path[0] == '\0') {
        plm_mem_init();
        snprintf(path, sizeof path, "/tmp/plm_fuzz_jobs_XXXXXX");
        int fd = mkstemp(path);
        need(fd >= 0 && close(fd) == 0 && atexit(remove_file) == 0);
    }
    size_t lines = count_lines(data, size);
    if (lines > LINES)
        return -1;
    /* The lines may name paths; nothing is written, but a terminal must not be waited for. */
    FILE *f = fopen(path, "wb");
    need(f != NULL && fwrite(data, 1, size, f) == size && fclose(f) == 0);
    run("predict", lines);
    if (lines == 1 && memmem(data, size, "\"model\"", 7) != NULL &&
        memmem(data, size, "\"device\"", 8) != NULL)
        run("fit", lines);
    return 0;
}
