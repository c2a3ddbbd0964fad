/* cli_run.h - the command line run in process, and files for it to read. Define _GNU_SOURCE or
** _DEFAULT_SOURCE before the first include (mkdtemp). */
#ifndef PLM_TESTS_CLI_RUN_H
#define PLM_TESTS_CLI_RUN_H
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/mem.h"
#include "tests/support.h"

typedef struct cli_result {
    int status;
    char *out, *err;
    size_t out_bytes, err_bytes;
} cli_result;

/* words: argv after the program's name, ended by NULL. */
static inline cli_result cli_run_list(const char *const *words)
{
    cli_result r = {0};
    char *argv[96] = {(char[]){"plimsoll"}};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++) {
        assert_true(argc < 95);
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
    }
    plm_io io = {open_memstream(&r.out, &r.out_bytes), open_memstream(&r.err, &r.err_bytes), false,
                 false};
    r.status = plm_cli_main(argc, argv, &io);
    fclose(io.out);
    fclose(io.err);
    return r;
}

/* "predict --model x": words parted by single spaces. A word "@" stands for the text of `at`. */
static inline cli_result cli_run(const char *line, const char *at)
{
    char text[2048], *save = NULL;
    const char *words[96];
    int n = 0;
    assert_true((size_t)snprintf(text, sizeof text, "%s", line) < sizeof text);
    for (char *p = strtok_r(text, " ", &save); p != NULL && n < 95; p = strtok_r(NULL, " ", &save))
        words[n++] = strcmp(p, "@") == 0 ? at : p;
    words[n] = NULL;
    return cli_run_list(words);
}

static inline void cli_drop(cli_result *r)
{
    free(r->out);
    free(r->err);
}

/* One line "plimsoll: what, where: why; what to do"? */
static inline bool cli_one_line(const cli_result *r)
{
    const char *end = strchr(r->err, '\n'), *colon = strstr(r->err, ": "), *more;
    if (strncmp(r->err, "plimsoll: ", 10) != 0 || end == NULL || end[1] != '\0')
        return false;
    more = strstr(colon + 2, ": ");
    return more != NULL && strchr(more, ';') != NULL && more < strchr(more, ';');
}

/* ---- a folder of the test's own ---- */

static char cli_folder[64];

static inline const char *cli_path(const char *name)
{
    static char path[4][256];
    static unsigned turn;
    char *p = path[turn++ % 4];
    assert_true((size_t)snprintf(p, sizeof path[0], "%s/%s", cli_folder, name) < sizeof path[0]);
    return p;
}

static inline void cli_write(const char *name, const void *data, size_t bytes)
{
    FILE *f = fopen(cli_path(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static inline void cli_text(const char *name, const char *text)
{
    cli_write(name, text, strlen(text));
}

static inline int cli_folder_create(void **state)
{
    (void)state;
    snprintf(cli_folder, sizeof cli_folder, "/tmp/plm_test_XXXXXX");
    return mkdtemp(cli_folder) == NULL;
}

static inline int cli_remove(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static inline int cli_folder_remove(void **state)
{
    (void)state;
    return nftw(cli_folder, cli_remove, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
