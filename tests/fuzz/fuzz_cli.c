/* Fuzzer of the command line: arbitrary words as arguments, and numbers with units. Commands that
** would search for long are kept to their argument errors by leaving out --model. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void numbers(const char *text)
{
    int64_t i;
    double x;
    plm_error err;
    if (plm_parse_count(text, "--n", &i, &err) == PLM_OK && i < 0)
        abort();
    if (plm_parse_size(text, "--n", &i, &err) == PLM_OK && i < 0)
        abort();
    if (plm_parse_time(text, "--n", &x, &err) == PLM_OK && !(x >= 0))
        abort();
    if (plm_parse_real(text, "--n", &x, &err) == PLM_OK && !(x >= 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 4096)
        return 0;
    char *text = malloc(size + 1), *argv[64];
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    numbers(text);
    int argc = 0;
    argv[argc++] = (char[]){"plimsoll"};
    char *save = NULL;
    for (char *p = strtok_r(text, "\n", &save); p != NULL && argc < 63;
         p = strtok_r(NULL, "\n", &save))
        argv[argc++] = p;
    argv[argc] = NULL;
    /* No file may be opened or written by a fuzzer: drop the words that name one. */
    static const char *const files[] = {"--jobs", "-j", "--out", "-o", "--trace", "--catalog",
                                        "--model", "-m", "fit", "plan"};
    for (int i = 1; i < argc; i++)
        for (size_t f = 0; f < sizeof files / sizeof *files; f++)
            if (strncmp(argv[i], files[f], strlen(files[f])) == 0) {
                free(text);
                return 0;
            }
    char *out_text = NULL, *err_text = NULL;
    size_t out_bytes, err_bytes;
    plm_io io = {open_memstream(&out_text, &out_bytes), open_memstream(&err_text, &err_bytes),
                 false, false};
    int status = plm_cli_main(argc, argv, &io);
    fclose(io.out);
    fclose(io.err);
    if (status < 0 || status > 3)
        abort();
    if (status >= 2 && argc > 1) { /* one clear line, nothing on standard output */
        const char *end = strchr(err_text, '\n');
        if (out_bytes != 0 || end == NULL || end[1] != '\0')
            abort();
    }
    free(out_text);
    free(err_text);
    free(text);
    return 0;
}
