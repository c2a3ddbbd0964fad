/* cmd_explain.c - explain: the ops of one step, what binds each, and elasticities. */
#include <errno.h>
#include <string.h>

#include "cli/cli.h"

static void put_rows(plm_json_out *o, json_t *root, const plm_explanation *e)
{
    json_t *rows = plm_out_child(o, root, "ops", plm_out_array(o));
    double total = 0;
    for (size_t i = 0; i < e->n_rows; i++)
        total += e->rows[i].time_s;
    for (size_t i = 0; i < e->n_rows; i++) {
        const plm_step_row *r = &e->rows[i];
        json_t *j = plm_out_child(o, rows, NULL, plm_out_object(o));
        plm_out_text(o, j, "op", r->name);
        plm_out_int(o, j, "count", (int64_t)r->count);
        plm_out_real(o, j, "flop", r->flop);
        plm_out_real(o, j, "bytes", r->bytes);
        plm_out_real(o, j, "exp", r->exp);
        plm_out_real(o, j, "time_s", r->time_s);
        plm_out_real(o, j, "share", total > 0 ? r->time_s / total : 0);
        plm_out_real(o, j, "intensity_flop_per_byte", r->bytes > 0 ? r->flop / r->bytes : 0);
        plm_out_text(o, j, "bound", plm_bound_name(r->bound));
    }
}

static json_t *explanation_json(plm_json_out *o, const plm_explanation *e, const char *phase)
{
    json_t *root = plm_out_object(o);
    plm_out_text(o, root, "phase", phase);
    plm_out_text(o, root, "model", e->model);
    plm_out_text(o, root, "device", e->device);
    plm_out_int(o, root, "devices", e->devices);
    plm_out_text(o, root, "engine", e->engine);
    plm_out_text(o, root, "quant", e->quant);
    plm_out_real(o, root, "tokens", e->tokens);
    plm_out_real(o, root, "context_tokens", e->context_tokens);
    plm_out_figure(o, root, "time_s", (plm_figure){e->time_s, e->time_lo_s, e->time_hi_s});
    plm_out_real(o, root, "ridge_point_flop_per_byte", e->ridge_flop_per_byte);
    put_rows(o, root, e);
    json_t *j = plm_out_child(o, root, "elasticity", plm_out_object(o));
    for (int b = 0; b < PLM_BOUND_COUNT; b++)
        plm_out_real(o, j, plm_bound_name((plm_bound)b), e->elasticity[b]);
    return root;
}

static plm_status print_table(const plm_explanation *e, bool csv, size_t top, FILE *out,
                              plm_error *err)
{
    static const char *const headers[] = {
        "op",         "count",      "work\n(GFLOP)",       "data\n(MB)", "exp\n(M)",
        "time\n(us)", "share\n(%)", "work/data\n(FLOP/B)", "bound"};
    plm_table *t;
    plm_status status = plm_table_create(headers, sizeof headers / sizeof *headers, &t, err);
    double total = 0, left = 0;
    int digits = csv ? 6 : 3;
    for (size_t i = 0; i < e->n_rows; i++) {
        total += e->rows[i].time_s;
        left += i < top ? 0 : e->rows[i].time_s;
    }
    for (size_t i = 0; status == PLM_OK && i < e->n_rows && i < top; i++) {
        const plm_step_row *r = &e->rows[i];
        plm_table_text(t, r->name);
        plm_table_format(t, "%.0f", r->count);
        plm_table_number(t, r->flop / 1e9, digits);
        plm_table_number(t, r->bytes / 1e6, digits);
        plm_table_number(t, r->exp / 1e6, digits);
        plm_table_number(t, r->time_s * 1e6, digits);
        plm_table_format(t, csv ? "%.4f" : "%.1f", total > 0 ? 100 * r->time_s / total : 0);
        plm_table_number(t, r->bytes > 0 ? r->flop / r->bytes : 0, digits);
        plm_table_text(t, plm_bound_name(r->bound));
    }
    if (status == PLM_OK)
        status = plm_table_write(t, csv, out, err);
    plm_table_destroy(t);
    if (status == PLM_OK && !csv && e->n_rows > top)
        fprintf(out, "... %zu more ops, %.1f %% of the time; --top N or --csv shows them\n",
                e->n_rows - top, total > 0 ? 100 * left / total : 0);
    return status;
}

/* What binds first, then the ops, then the elasticities. */
static plm_status print_text(const plm_explanation *e, const char *phase, size_t top, FILE *out,
                             plm_error *err)
{
    char time[32], lo[32], hi[32], ridge[32];
    fprintf(out, "%s step of %s, %s, on %lld x %s, %s: %s [%s, %s]\n", phase, e->model, e->quant,
            (long long)e->devices, e->device, e->engine,
            plm_text_time(e->time_s, time, sizeof time), plm_text_time(e->time_lo_s, lo, sizeof lo),
            plm_text_time(e->time_hi_s, hi, sizeof hi));
    fprintf(out,
            "  %.0f token%s at context %.0f; ops of one device, each with its count in the step; "
            "ridge point %s FLOP/B\n\n",
            e->tokens, e->tokens == 1 ? "" : "s", e->context_tokens,
            plm_text_number(e->ridge_flop_per_byte, 3, ridge, sizeof ridge));
    PLM_TRY(print_table(e, false, top, out, err));
    fprintf(out, "\n1 %% more of a resource makes the step faster by:");
    for (int b = 0, n = 0; b < PLM_BOUND_COUNT; b++)
        if (e->elasticity[b] >= 0.005)
            fprintf(out, "%s %s %.2f %%", n++ > 0 ? "," : "", plm_bound_name((plm_bound)b),
                    e->elasticity[b]);
    fputc('\n', out);
    return PLM_OK;
}

/* Chrome trace of one step: the rows one after another, each as one span of its total time. */
static plm_status write_trace(const plm_explanation *e, const char *phase, const char *path,
                              plm_error *err)
{
    FILE *f = fopen(path, "we");
    if (f == NULL)
        return plm_fail(err, PLM_E_IO, "cannot write, %.200s: %s; check the path", path,
                        strerror(errno));
    plm_json_out o = {false};
    json_t *root = plm_out_object(&o);
    plm_out_text(&o, root, "displayTimeUnit", "ns");
    json_t *events = plm_out_child(&o, root, "traceEvents", plm_out_array(&o));
    double at = 0;
    for (size_t i = 0; i < e->n_rows; i++) {
        const plm_step_row *r = &e->rows[i];
        json_t *j = plm_out_child(&o, events, NULL, plm_out_object(&o));
        plm_out_text(&o, j, "name", r->name);
        plm_out_text(&o, j, "cat", phase);
        plm_out_text(&o, j, "ph", "X");
        plm_out_real(&o, j, "ts", at * 1e6);
        plm_out_real(&o, j, "dur", r->time_s * 1e6);
        plm_out_int(&o, j, "pid", 1);
        plm_out_int(&o, j, "tid", 1);
        json_t *args = plm_out_child(&o, j, "args", plm_out_object(&o));
        plm_out_real(&o, args, "count", r->count);
        plm_out_real(&o, args, "flop", r->flop);
        plm_out_real(&o, args, "bytes", r->bytes);
        plm_out_text(&o, args, "bound", plm_bound_name(r->bound));
        at += r->time_s;
    }
    plm_status status = plm_out_write(&o, root, f, err);
    bool bad = ferror(f) != 0; /* an earlier write; fclose tells of the last */
    if ((fclose(f) != 0 || bad) && status == PLM_OK)
        status =
            plm_fail(err, PLM_E_IO, "cannot write, %.200s: %s; free space", path, strerror(errno));
    return status;
}

plm_status plm_cmd_explain(const plm_args *a, const plm_io *io, FILE *out, int *exit_status,
                           plm_error *err)
{
    (void)io;
    const char *phase = plm_args_text(a, PLM_OPT_PHASE, "decode");
    size_t top = (size_t)plm_args_count(a, PLM_OPT_TOP, 1000);
    plm_session *s = NULL;
    plm_query q;
    static plm_explanation e; /* 128 rows: too large for a small stack */
    plm_status status = PLM_OK;
    if (strcmp(phase, "decode") != 0 && strcmp(phase, "prefill") != 0)
        return plm_fail(err, PLM_E_INVALID,
                        "unknown phase, --phase: \"%.40s\"; give prefill or "
                        "decode",
                        phase);
    if (!a->opt[PLM_OPT_MODEL].set || !a->opt[PLM_OPT_DEVICE].set)
        return plm_fail(err, PLM_E_INVALID,
                        "option missing, --model and --device: explain needs "
                        "both; see plimsoll explain --help");
    PLM_GOTO(plm_query_from_args(a, &q, err));
    PLM_GOTO(plm_session_create(plm_args_text(a, PLM_OPT_CATALOG, NULL), &s, err));
    PLM_GOTO(plm_explain(s, &q, strcmp(phase, "decode") == 0, &e, err));
    if (a->opt[PLM_OPT_TRACE].set)
        PLM_GOTO(write_trace(&e, phase, a->opt[PLM_OPT_TRACE].text, err));
    if (a->opt[PLM_OPT_JSON].set) {
        plm_json_out o = {false};
        PLM_GOTO(plm_out_write(&o, explanation_json(&o, &e, phase), out, err));
    } else if (a->opt[PLM_OPT_CSV].set) {
        PLM_GOTO(print_table(&e, true, top, out, err));
    } else {
        PLM_GOTO(print_text(&e, phase, top, out, err));
    }
    *exit_status = 0;
done:
    plm_session_destroy(s);
    return status;
}
