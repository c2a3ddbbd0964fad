/* cli.h - the command line: options, output, commands. The only place that prints. */
#ifndef PLM_CLI_H
#define PLM_CLI_H
#include <jansson.h>
#include <stdio.h>

#include "sim/plan/plan.h"

typedef enum plm_command_id {
#define PLM_COMMAND(id, ...) PLM_CMD_##id,
#include "cli/commands.def"
#undef PLM_COMMAND
    PLM_CMD_COUNT
} plm_command_id;

typedef enum plm_option_id {
#define PLM_OPTION(id, ...) PLM_OPT_##id,
#include "cli/options.def"
#undef PLM_OPTION
    PLM_OPT_COUNT
} plm_option_id;

typedef enum plm_option_kind {
    PLM_KIND_FLAG, PLM_KIND_TEXT, PLM_KIND_COUNT, PLM_KIND_SIZE, PLM_KIND_TIME, PLM_KIND_REAL
} plm_option_kind;

typedef struct plm_option {
    const char *name, *meta, *help;
    char letter; /* 0 = none */
    plm_option_kind kind;
    uint32_t commands; /* bit of each plm_command_id */
} plm_option;

typedef struct plm_option_value {
    bool set;
    const char *text; /* as given; borrowed */
    int64_t count;    /* COUNT, SIZE */
    double real;      /* REAL, TIME (seconds) */
} plm_option_value;

/* What a command is given and where it writes. */
typedef struct plm_args {
    plm_command_id command;
    plm_option_value opt[PLM_OPT_COUNT];
} plm_args;

typedef struct plm_io {
    FILE *out, *err;
    bool colour, progress; /* err is a terminal, NO_COLOR is not set */
} plm_io;

/* The whole program: argv as main's. Returns the exit status; on status 2 or 3 nothing was written
** to io->out. */
int plm_cli_main(int argc, char **argv, const plm_io *io);

/* ---- options.c ---- */
const plm_option *plm_option_get(plm_option_id id);
const char *plm_command_name(plm_command_id id);
/* Command by name, PLM_CMD_COUNT if unknown. */
plm_command_id plm_command_find(const char *name);
/* Parses argv[0 .. argc) after the command's name. */
plm_status plm_args_parse(plm_args *a, int argc, char **argv, plm_error *err) PLM_MUST_USE;
/* Sets one option from text; `where` names it in errors ("--prompt"). */
plm_status plm_args_set(plm_args *a, plm_option_id id, const char *text, plm_error *err)
    PLM_MUST_USE;
/* Option by long name, '-' and '_' alike; PLM_OPT_COUNT if unknown. */
plm_option_id plm_option_find(const char *name, size_t n);
/* Numbers with units. `what` names the option in the error. All refuse negative, NaN, overflow. */
plm_status plm_parse_count(const char *text, const char *what, int64_t *out, plm_error *err)
    PLM_MUST_USE;
plm_status plm_parse_size(const char *text, const char *what, int64_t *out, plm_error *err)
    PLM_MUST_USE;
plm_status plm_parse_time(const char *text, const char *what, double *out, plm_error *err)
    PLM_MUST_USE;
plm_status plm_parse_real(const char *text, const char *what, double *out, plm_error *err)
    PLM_MUST_USE;
int64_t plm_args_count(const plm_args *a, plm_option_id id, int64_t otherwise);
double plm_args_real(const plm_args *a, plm_option_id id, double otherwise);
const char *plm_args_text(const plm_args *a, plm_option_id id, const char *otherwise);

/* ---- help.c ---- */
void plm_help_all(FILE *out);
void plm_help_command(plm_command_id id, FILE *out);
void plm_help_man(FILE *out);
/* shell: "bash", "zsh", "fish". */
plm_status plm_help_completion(const char *shell, FILE *out, plm_error *err) PLM_MUST_USE;

/* ---- output.c ---- */
/* JSON objects under construction. A failed allocation is remembered in *oom and shows when the
** object is written. Non-finite numbers become null. */
typedef struct plm_json_out {
    bool oom;
} plm_json_out;
json_t *plm_out_object(plm_json_out *o);
json_t *plm_out_array(plm_json_out *o);
/* Adds an object or array to obj (key) or to array (key NULL) and returns it, borrowed. */
json_t *plm_out_child(plm_json_out *o, json_t *parent, const char *key, json_t *child);
void plm_out_int(plm_json_out *o, json_t *obj, const char *key, int64_t v);
void plm_out_real(plm_json_out *o, json_t *obj, const char *key, double v);
void plm_out_text(plm_json_out *o, json_t *obj, const char *key, const char *v);
void plm_out_bool(plm_json_out *o, json_t *obj, const char *key, bool v);
/* What a device of known memory has room for; null when its memory is unknown. */
void plm_out_limit(plm_json_out *o, json_t *obj, const char *key, const plm_ledger *l, int64_t v);
/* key: value and key_range: [lo, hi]. */
void plm_out_figure(plm_json_out *o, json_t *obj, const char *key, plm_figure f);
/* Writes the object and a newline, and frees it (also after a failure). */
plm_status plm_out_write(plm_json_out *o, json_t *obj, FILE *out, plm_error *err) PLM_MUST_USE;

/* Tables: headers with units, cells as text; printed aligned or as CSV. A header may hold one '\n':
** two lines for people, a space in CSV. */
typedef struct plm_table plm_table;
plm_status plm_table_create(const char *const *headers, size_t columns, plm_table **out,
                            plm_error *err) PLM_MUST_USE;
void plm_table_destroy(plm_table *t);
/* Next cell, row by row; a failed allocation shows in plm_table_write. */
void plm_table_text(plm_table *t, const char *text);
void plm_table_format(plm_table *t, const char *fmt, ...) PLM_PRINTF(2, 3);
/* A figure of so many significant digits, never with an exponent. */
void plm_table_number(plm_table *t, double v, int digits);
plm_status plm_table_write(const plm_table *t, bool csv, FILE *out, plm_error *err) PLM_MUST_USE;
/* 0.00628, 62.8, 62831: `digits` significant ones, all of them before the point. */
const char *plm_text_number(double v, int digits, char *buf, size_t cap);
/* "1.5 GiB", "23.4 ms", "8.03 B": three digits for people. Writes to buf and returns it. */
const char *plm_text_bytes(double bytes, char *buf, size_t cap);
const char *plm_text_time(double seconds, char *buf, size_t cap);
const char *plm_text_count(double n, char *buf, size_t cap);

/* ---- commands: one file each ---- */
typedef plm_status (*plm_command_fn)(const plm_args *a, const plm_io *io, FILE *out, int *exit_status,
                                     plm_error *err);
#define PLM_COMMAND(id, name, function, ...)                                                       \
    plm_status plm_##function(const plm_args *a, const plm_io *io, FILE *out, int *exit_status,    \
                              plm_error *err) PLM_MUST_USE;
#include "cli/commands.def"
#undef PLM_COMMAND
/* Query of the options common to predict, fit and explain. */
plm_status plm_query_from_args(const plm_args *a, plm_query *q, plm_error *err) PLM_MUST_USE;
/* --jobs: answers each line with `answer`, in order; writes {"id","error"} for a line that fails.
** *exit_status becomes 1 if any did. */
typedef plm_status (*plm_job_fn)(plm_session *s, const plm_args *a, json_t **answer,
                                 plm_error *err);
plm_status plm_jobs_run(const plm_args *a, const plm_io *io, plm_job_fn answer, FILE *out,
                        int *exit_status, plm_error *err) PLM_MUST_USE;

#endif
