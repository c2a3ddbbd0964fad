/* jobs.c - --jobs: one JSON object a line whose keys are the long options. */
#include <errno.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/json.h"
#include "core/base/mem.h"

#define LINE_MAX_BYTES ((size_t)1 << 20)
#define LINE_SKIP_BYTES ((size_t)64 << 20) /* no file of lines has one of this length */

/* Text of a scalar JSON value, as the command line would have it; number holds it if not a string. */
static const char *scalar_text(const json_t *v, char *number, size_t cap)
{
    if (json_is_string(v))
        return json_string_value(v);
    if (json_is_integer(v)) {
        snprintf(number, cap, "%lld", (long long)json_integer_value(v));
        return number;
    }
    if (json_is_real(v)) {
        snprintf(number, cap, "%.17g", json_real_value(v));
        /* 5e+06 and 512.0 are numbers too; the option's own parser judges them. */
        return number;
    }
    return NULL;
}

/* Options of the job over those of the command line (minus --jobs itself). numbers: storage for the
** texts of numbers, one row an option. */
static plm_status set_options(plm_args *a, const json_t *job, char numbers[][40], plm_error *err)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)job, key, v)
    {
        if (strcmp(key, "id") == 0 || json_is_null(v))
            continue;
        plm_option_id id = plm_option_find(key, strlen(key));
        if (id == PLM_OPT_COUNT)
            return plm_fail(err, PLM_E_INVALID, "unknown key, \"%.60s\": it is no long option of "
                            "this command; see --help", key);
        if (id == PLM_OPT_JOBS || id == PLM_OPT_JSON || id == PLM_OPT_CSV || id == PLM_OPT_HELP ||
            id == PLM_OPT_CATALOG)
            return plm_fail(err, PLM_E_INVALID, "key not for a job, \"%.60s\": it belongs on the "
                            "command line; remove it", key);
        a->opt[id].set = false; /* a job's own value replaces the command line's */
        if (plm_option_get(id)->kind == PLM_KIND_FLAG) {
            if (!json_is_boolean(v))
                return plm_fail(err, PLM_E_INVALID, "bad value of \"%.60s\": want true or false; "
                                "correct it", key);
            if (json_is_true(v))
                PLM_TRY(plm_args_set(a, id, NULL, err));
            continue;
        }
        const char *text = scalar_text(v, numbers[id], sizeof numbers[id]);
        if (text == NULL)
            return plm_fail(err, PLM_E_INVALID, "bad value of \"%.60s\": want a string or a "
                            "number; correct it", key);
        PLM_TRY(plm_args_set(a, id, text, err));
    }
    return PLM_OK;
}

/* Answers one line into *result (new reference, NULL when memory is short for even an error). */
static plm_status answer_line(plm_session *s, const plm_args *base, const char *line, size_t n,
                              size_t number, plm_job_fn answer, json_t **result, plm_error *err)
{
    char where[40];
    snprintf(where, sizeof where, "--jobs line %zu", number);
    json_t *job = NULL;
    *result = NULL;
    plm_status status =
        n <= LINE_MAX_BYTES
            ? plm_json_parse(line, n, where, &job, err)
            : plm_fail(err, PLM_E_LIMIT, "line too long, %s: more than 1 MiB; write one object a "
                       "line", where);
    if (status == PLM_OK && !json_is_object(job))
        status = plm_fail(err, PLM_E_INVALID, "bad job, %s: not a JSON object; write one object a "
                          "line", where);
    plm_args a = *base;
    a.opt[PLM_OPT_JOBS].set = false;
    char numbers[PLM_OPT_COUNT][40];
    if (status == PLM_OK)
        status = set_options(&a, job, numbers, err);
    json_t *body = NULL;
    if (status == PLM_OK)
        status = answer(s, &a, &body, err);
    plm_json_out o = {false};
    json_t *out = plm_out_object(&o);
    json_t *id = job != NULL ? json_object_get(job, "id") : NULL;
    plm_out_child(&o, out, "id", id != NULL ? json_incref(id) : json_null());
    if (status == PLM_OK)
        o.oom |= json_object_update(out, body) != 0;
    else
        plm_out_text(&o, out, "error", err->text);
    json_decref(body);
    json_decref(job);
    if (o.oom) {
        json_decref(out);
        return plm_fail_memory(err, where);
    }
    *result = out;
    return status;
}

/* Next line of in, without its newline, in *line (grown as needed); of a line past the limit only the
** beginning, and *n is LINE_MAX_BYTES + 1. false at the end, and when memory or the file fails. */
static bool read_line(FILE *in, char **line, size_t *room, size_t *n, plm_status *status,
                      plm_error *err)
{
    size_t seen = 0;
    *n = 0;
    for (int c = getc(in);; c = getc(in)) {
        if (*n + 2 > *room) {
            size_t want = *room ? *room * 2 : 4096;
            char *bigger = plm_realloc(*line, want);
            if (bigger == NULL) {
                *status = plm_fail_memory(err, "--jobs");
                return false;
            }
            *line = bigger;
            *room = want;
        }
        if (c == EOF || c == '\n') {
            (*line)[*n] = '\0';
            break;
        }
        if (*n <= LINE_MAX_BYTES)
            (*line)[(*n)++] = (char)c;
        if (seen++ > LINE_SKIP_BYTES) {
            *status = plm_fail(err, PLM_E_LIMIT, "line too long, --jobs: 64 MiB without an end of "
                               "line; name a file of lines");
            return false;
        }
    }
    if (ferror(in)) {
        *status = plm_fail(err, PLM_E_IO, "cannot read, --jobs: %s; name a file of lines",
                           strerror(errno));
        return false;
    }
    return !feof(in) || *n > 0;
}

plm_status plm_jobs_run(const plm_args *a, const plm_io *io, plm_job_fn answer, FILE *out,
                        int *exit_status, plm_error *err)
{
    const char *path = a->opt[PLM_OPT_JOBS].text;
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (in == NULL)
        return plm_fail(err, PLM_E_IO, "cannot read, %.200s: %s; check the path", path,
                        strerror(errno));
    plm_session *s = NULL;
    char *line = NULL;
    size_t room = 0, n, number = 0;
    plm_status status =
        plm_session_create(plm_args_text(a, PLM_OPT_CATALOG, NULL), &s, err);
    while (status == PLM_OK && read_line(in, &line, &room, &n, &status, err)) {
        number++;
        if (strspn(line, " \t\r") >= n)
            continue;
        plm_error job_err = {PLM_OK, ""};
        json_t *result;
        if (answer_line(s, a, line, n, number, answer, &result, &job_err) != PLM_OK)
            *exit_status = 1;
        if (result == NULL) {
            *err = job_err;
            status = job_err.code;
            break;
        }
        plm_json_out o = {false};
        status = plm_out_write(&o, result, out, err);
        if (status == PLM_OK && ferror(out))
            status = plm_fail(err, PLM_E_IO, "cannot write, standard output: the device is full or "
                              "the reader is gone; free space or check the pipe");
        if (io->progress && number % 1000 == 0)
            fprintf(io->err, "\r%zu jobs", number);
    }
    if (io->progress && number >= 1000)
        fprintf(io->err, "\r%*s\r", 30, "");
    if (status == PLM_OK && fflush(out) != 0)
        status = plm_fail(err, PLM_E_IO, "cannot write, standard output: the device is full or the "
                          "reader is gone; free space or check the pipe");
    plm_session_destroy(s);
    plm_free(line);
    if (in != stdin)
        fclose(in);
    return status;
}
