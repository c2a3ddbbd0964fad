/* cli.c - from argv to a command; the buffer that keeps a failed answer off standard output. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/mem.h"

static const plm_command_fn functions[PLM_CMD_COUNT] = {
#define PLM_COMMAND(id, name, function, ...) [PLM_CMD_##id] = plm_##function,
#include "cli/commands.def"
#undef PLM_COMMAND
};

static int report(const plm_io *io, plm_status status, const plm_error *err)
{
    fprintf(io->err, "%splimsoll:%s %s\n", io->colour ? "\033[31m" : "",
            io->colour ? "\033[0m" : "", err->text);
    return plm_status_exit(status);
}

static plm_status fail_output(plm_error *err)
{
    return plm_fail(err, PLM_E_IO, "cannot write, standard output: the device is full or the "
                    "reader is gone; free space or check the pipe");
}

/* Writes what a command printed; 3 when the disk is full or the reader is gone. */
static plm_status deliver(const plm_io *io, const char *text, size_t bytes, plm_error *err)
{
    bool good = fwrite(text, 1, bytes, io->out) == bytes && fflush(io->out) == 0;
    return good ? PLM_OK : fail_output(err);
}

/* Runs a command with its output held back until it has succeeded. --jobs writes through: a line an
** answer is its contract. */
static plm_status run_command(const plm_args *a, const plm_io *io, int *exit_status,
                              plm_error *err)
{
    bool text_as_it_comes = a->command == PLM_CMD_RUN && !a->opt[PLM_OPT_JSON].set;
    if (a->opt[PLM_OPT_JOBS].set || text_as_it_comes)
        return functions[a->command](a, io, io->out, exit_status, err);
    char *text = NULL;
    size_t bytes = 0;
    FILE *held = open_memstream(&text, &bytes);
    if (held == NULL)
        return plm_fail_memory(err, "the answer");
    plm_status status = functions[a->command](a, io, held, exit_status, err);
    if (fclose(held) != 0 && status == PLM_OK)
        status = plm_fail_memory(err, "the answer");
    if (status == PLM_OK)
        status = deliver(io, text, bytes, err);
    free(text); /* open_memstream's own allocation */
    return status;
}

static plm_status unknown_command(const char *name, plm_error *err)
{
    return plm_fail(err, PLM_E_INVALID, "unknown command, \"%.60s\": there is none of that name; see "
                    "plimsoll --help", name);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

/* Words that stand alone before any command: at most one more may follow them. */
static plm_status run_global(int argc, char **argv, FILE *out, plm_error *err)
{
    const char *more = argc > 2 ? argv[2] : NULL;
    plm_command_id id = more != NULL ? plm_command_find(more) : PLM_CMD_COUNT;
    bool takes_one = is_help(argv[1]) || strcmp(argv[1], "--completion") == 0;
    if (argc > (takes_one ? 3 : 2))
        return plm_fail(err, PLM_E_INVALID, "unexpected argument, \"%.60s\": nothing follows %s; "
                        "remove it", argv[takes_one ? 3 : 2], argv[1]);
    if (is_help(argv[1]) && id != PLM_CMD_COUNT)
        plm_help_command(id, out);
    else if (is_help(argv[1]) && more != NULL)
        return unknown_command(more, err);
    else if (is_help(argv[1]))
        plm_help_all(out);
    else if (strcmp(argv[1], "--version") == 0)
        fprintf(out, "plimsoll " PLM_VERSION "\n");
    else if (strcmp(argv[1], "--man") == 0)
        plm_help_man(out);
    else
        PLM_TRY(plm_help_completion(more != NULL ? more : "", out, err));
    return fflush(out) == 0 && !ferror(out) ? PLM_OK : fail_output(err);
}

static bool is_global(const char *word)
{
    return is_help(word) || strcmp(word, "--version") == 0 || strcmp(word, "--man") == 0 ||
           strcmp(word, "--completion") == 0;
}

static plm_status run(int argc, char **argv, const plm_io *io, int *exit_status, plm_error *err)
{
    plm_args a;
    if (is_global(argv[1]))
        return run_global(argc, argv, io->out, err);
    memset(&a, 0, sizeof a);
    a.command = plm_command_find(argv[1]);
    if (a.command == PLM_CMD_COUNT)
        return unknown_command(argv[1], err);
    PLM_TRY(plm_args_parse(&a, argc - 2, argv + 2, err));
    if (a.opt[PLM_OPT_HELP].set) {
        plm_help_command(a.command, io->out);
        return fflush(io->out) == 0 && !ferror(io->out) ? PLM_OK : fail_output(err);
    }
    if (a.opt[PLM_OPT_JSON].set && a.opt[PLM_OPT_CSV].set)
        return plm_fail(err, PLM_E_INVALID, "two formats, --json and --csv: one answer has one form; "
                        "drop one");
    return run_command(&a, io, exit_status, err);
}

int plm_cli_main(int argc, char **argv, const plm_io *io)
{
    int exit_status = 0;
    plm_error err = {PLM_OK, ""};
    plm_mem_init();
    if (argc < 2) {
        plm_help_all(io->err);
        return 2;
    }
    plm_status status = run(argc, argv, io, &exit_status, &err);
    return status == PLM_OK ? exit_status : report(io, status, &err);
}
