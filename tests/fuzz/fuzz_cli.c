/* Fuzzer of the command line: arbitrary words as arguments, and numbers with units. Commands that
** would search for long or read files are left out. */
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

/* No file may be opened or written by a fuzzer: words that may be an option that names one. */
static bool names_file(const char *word)
{
    for (int i = 0; i < PLM_OPT_COUNT; i++) {
        const plm_option *o = plm_option_get((plm_option_id)i);
        if (i != PLM_OPT_MODEL && strcmp(o->meta, "FILE") != 0 && strcmp(o->meta, "DIR") != 0)
            continue;
        if (word[0] != '-' || word[1] == '\0')
            continue;
        if (word[1] == o->letter ||
            plm_option_find(word + 2, strcspn(word + 2, "=")) == (plm_option_id)i)
            return true;
    }
    return false;
}

/* Commands whose answer takes long without --model. */
static bool is_long(const char *word)
{
    return strcmp(word, "models") == 0 || strcmp(word, "fit") == 0;
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
    for (int i = 1; i < argc; i++)
        if (names_file(argv[i]) || is_long(argv[i])) {
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
