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

/* Writes what a command printed; 3 when the disk is full or the reader is gone. */
static plm_status deliver(const plm_io *io, const char *text, size_t bytes, plm_error *err)
{
    if (fwrite(text, 1, bytes, io->out) != bytes || fflush(io->out) != 0)
        return plm_fail(err, PLM_E_IO, "cannot write, standard output: the device is full or the "
                        "reader is gone; free space or check the pipe");
    return PLM_OK;
}

/* Runs a command with its output held back until it has succeeded. --jobs writes through: a line an
** answer is its contract. */
static plm_status run_command(const plm_args *a, const plm_io *io, int *exit_status,
                              plm_error *err)
{
    if (a->opt[PLM_OPT_JOBS].set)
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

/* The options that stand alone before any command; false when argv[1] is none of them. */
static bool run_global(int argc, char **argv, const plm_io *io, int *exit_status)
{
    plm_error err = {PLM_OK, ""};
    *exit_status = 0;
    if (argc < 2) {
        plm_help_all(io->err);
        *exit_status = 2;
    } else if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
               strcmp(argv[1], "help") == 0) {
        plm_command_id id = argc > 2 ? plm_command_find(argv[2]) : PLM_CMD_COUNT;
        if (id != PLM_CMD_COUNT)
            plm_help_command(id, io->out);
        else
            plm_help_all(io->out);
    } else if (strcmp(argv[1], "--version") == 0) {
        fprintf(io->out, "plimsoll " PLM_VERSION "\n");
    } else if (strcmp(argv[1], "--man") == 0) {
        plm_help_man(io->out);
    } else if (strcmp(argv[1], "--completion") == 0) {
        plm_status status = plm_help_completion(argc > 2 ? argv[2] : "", io->out, &err);
        if (status != PLM_OK)
            *exit_status = report(io, status, &err);
    } else {
        return false;
    }
    return true;
}

int plm_cli_main(int argc, char **argv, const plm_io *io)
{
    plm_mem_init();
    int exit_status;
    if (run_global(argc, argv, io, &exit_status))
        return exit_status;
    plm_error err = {PLM_OK, ""};
    plm_args a;
    memset(&a, 0, sizeof a);
    a.command = plm_command_find(argv[1]);
    if (a.command == PLM_CMD_COUNT)
        return report(io, plm_fail(&err, PLM_E_INVALID,
                                   "unknown command, \"%.60s\": there is none of that name; see "
                                   "plimsoll --help", argv[1]), &err);
    plm_status status = plm_args_parse(&a, argc - 2, argv + 2, &err);
    if (status == PLM_OK && a.opt[PLM_OPT_HELP].set) {
        plm_help_command(a.command, io->out);
        return 0;
    }
    if (status == PLM_OK && a.opt[PLM_OPT_JSON].set && a.opt[PLM_OPT_CSV].set)
        status = plm_fail(&err, PLM_E_INVALID, "two formats, --json and --csv: one answer has one "
                          "form; drop one");
    if (status == PLM_OK)
        status = run_command(&a, io, &exit_status, &err);
    return status == PLM_OK ? exit_status : report(io, status, &err);
}
