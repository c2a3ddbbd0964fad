/* plan_text.c - the plans for people and as CSV. */
#include "cli/plan_text.h"

#include <string.h>

#include "cli/answer_text.h"

static void money_cell(plm_table *t, double v)
{
    if (v > 0)
        plm_table_number(t, v, 3);
    else
        plm_table_text(t, "-");
}

/* "tp2", or "3P tp1 + 1D tp2" for the two pools of a replica. */
static void row_layout(const plm_plan_row *r, char *buf, size_t cap)
{
    char decode[64], prefill[64];
    plm_text_ranks(&r->par, decode, sizeof decode);
    plm_text_ranks(&r->prefill_par, prefill, sizeof prefill);
    if (r->mode == 2)
        snprintf(buf, cap, "%lldP %s + %lldD %s", (long long)r->prefill_workers, prefill,
                 (long long)r->decode_workers, decode);
    else
        snprintf(buf, cap, "%s", decode);
}

/* For people: what all rows share stands above the table, and user speed is 1 / ITL. */
static plm_status print_rows(const plm_plan *p, size_t top, FILE *out, plm_error *err)
{
    bool device = false, quant = false;
    for (size_t i = 1; i < p->n_rows && i < top; i++) {
        device |= strcmp(p->rows[i].device, p->rows[0].device) != 0;
        quant |= strcmp(p->rows[i].quant, p->rows[0].quant) != 0;
    }
    const char *headers[16] = {"#"};
    size_t n = 1;
    if (device)
        headers[n++] = "device";
    if (quant)
        headers[n++] = "storage";
    static const char *const others[] = {
        "replicas\nx GPUs", "layout",          "batch",          "TTFT\n(ms)",      "ITL\n(ms)",
        "tok/s\nper GPU",   "requests\nper s", "input\n(USD/M)", "output\n(USD/M)", "bound"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        headers[n++] = others[i];
    plm_table *t;
    PLM_TRY(plm_table_create(headers, n, &t, err));
    for (size_t i = 0; i < p->n_rows && i < top; i++) {
        const plm_plan_row *r = &p->rows[i];
        char layout[160];
        row_layout(r, layout, sizeof layout);
        plm_table_format(t, "%zu%s", i + 1, r->pareto ? "*" : " ");
        if (device)
            plm_table_text(t, r->device);
        if (quant)
            plm_table_text(t, r->quant);
        plm_table_format(t, "%lld x %lld", (long long)r->replicas,
                         (long long)(r->devices / (r->replicas > 0 ? r->replicas : 1)));
        plm_table_text(t, layout);
        plm_table_format(t, "%lld", (long long)r->batch);
        plm_table_number(t, r->ttft_s.value * 1e3, 3);
        plm_table_number(t, r->itl_s.value * 1e3, 3);
        plm_table_number(t, r->tok_s_per_device, 3);
        plm_table_number(t, r->requests_s, 3);
        money_cell(t, r->usd_per_mtok_input);
        money_cell(t, r->usd_per_mtok_output);
        plm_table_text(t, r->bound);
    }
    plm_status status = plm_table_write(t, false, out, err);
    plm_table_destroy(t);
    return status;
}

plm_status plm_plan_print_csv(const plm_plan *p, size_t top, FILE *out, plm_error *err)
{
    static const char *const headers[] = {
        "#",     "mode",     "replicas x gpus", "device",    "storage",  "tp",        "pp",
        "ep",    "dp",       "batch",           "TTFT (ms)", "ITL (ms)", "tok/s/gpu", "tok/s/user",
        "req/s", "USD/M in", "USD/M out",       "bound",     "pareto",   "engine",    "layout",
        "USD/h"};
    plm_table *t;
    PLM_TRY(plm_table_create(headers, sizeof headers / sizeof *headers, &t, err));
    for (size_t i = 0; i < p->n_rows && i < top; i++) {
        const plm_plan_row *r = &p->rows[i];
        char layout[160];
        row_layout(r, layout, sizeof layout);
        plm_table_format(t, "%zu", i + 1);
        plm_table_text(t, r->mode == 2 ? "disagg" : "agg");
        plm_table_format(t, "%lld x %lld", (long long)r->replicas,
                         (long long)(r->devices / (r->replicas > 0 ? r->replicas : 1)));
        plm_table_text(t, r->device);
        plm_table_text(t, r->quant);
        const int32_t ranks[] = {r->par.tp, r->par.pp, r->par.ep, r->par.dp};
        for (size_t k = 0; k < sizeof ranks / sizeof *ranks; k++)
            plm_table_format(t, "%d", ranks[k]);
        plm_table_format(t, "%lld", (long long)r->batch);
        const double figures[] = {r->ttft_s.value * 1e3, r->itl_s.value * 1e3, r->tok_s_per_device,
                                  r->tok_s_per_user, r->requests_s};
        for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
            plm_table_number(t, figures[k], 4);
        money_cell(t, r->usd_per_mtok_input);
        money_cell(t, r->usd_per_mtok_output);
        plm_table_text(t, r->bound);
        plm_table_text(t, r->pareto ? "*" : "");
        plm_table_text(t, r->engine);
        plm_table_text(t, layout);
        money_cell(t, r->usd_per_hour);
    }
    plm_status status = plm_table_write(t, true, out, err);
    plm_table_destroy(t);
    return status;
}

static void print_range(FILE *out, const char *name, plm_figure f)
{
    char a[32], b[32], c[32];
    fprintf(out, "%s %s [%s, %s]", name, plm_text_time(f.value, a, sizeof a),
            plm_text_time(f.lo, b, sizeof b), plm_text_time(f.hi, c, sizeof c));
}

/* The first plan in words, with its ranges and its price. */
static void print_best(const plm_plan_query *q, const plm_plan *p, FILE *out)
{
    const plm_plan_row *r = &p->rows[0];
    char layout[160], a[32], b[32], c[32];
    bool targets = q->ttft_s > 0 || q->itl_s > 0 || q->rate > 0;
    row_layout(r, layout, sizeof layout);
    fprintf(out, "%s: %lld replica%s of %lld x %s, %s, %s, %s%s, batch %lld\n",
            r->meets ? "best plan" : "no plan meets the targets; nearest", (long long)r->replicas,
            r->replicas == 1 ? "" : "s",
            (long long)(r->devices / (r->replicas > 0 ? r->replicas : 1)), r->device, r->engine,
            r->quant, layout, r->mode == 2 ? " (P prefill, D decode workers)" : "",
            (long long)r->batch);
    fputs("  ", out);
    print_range(out, "TTFT", r->ttft_s);
    print_range(out, ", ITL", r->itl_s);
    fprintf(out, "; bound: %s\n", r->bound);
    if (r->usd_per_hour > 0)
        fprintf(out, "  %s USD/h, %s USD/M input, %s USD/M output tokens\n",
                plm_text_number(r->usd_per_hour, 3, a, sizeof a),
                plm_text_number(r->usd_per_mtok_input, 3, b, sizeof b),
                plm_text_number(r->usd_per_mtok_output, 3, c, sizeof c));
    else
        fprintf(out, "  no price of this device is known: give --price USD\n");
    if (!targets)
        fputs("  no target was given; --ttft, --itl and --rate set them\n", out);
    const char *misses = strstr(p->nearest, "misses ");
    if (misses != NULL)
        fprintf(out, "  %s\n", misses);
    fputc('\n', out);
}

plm_status plm_plan_print(const plm_plan_query *q, const plm_plan *p, size_t top, FILE *out,
                          plm_error *err)
{
    if (p->n_rows > 0) {
        print_best(q, p, out);
        PLM_TRY(print_rows(p, top, out, err));
        bool priced = p->rows[0].usd_per_hour > 0;
        bool blind = !priced && strcmp(q->objective, "cost") == 0;
        fprintf(out, "\nranked by %s; * Pareto front of speed per user and %s%s%s\n",
                blind ? "tok/s per GPU (no price)" : q->objective,
                priced ? "cost per request" : "tok/s per GPU",
                priced ? "; input and output pay for the time they take" : "",
                priced && q->rate > 0 ? ",\nall of it at the asked rate" : "");
    } else {
        fprintf(out, "no plan of %s fits within %lld devices a replica; --gpus N allows more\n\n",
                q->model, (long long)q->max_devices);
    }
    fprintf(out, "%llu plans in %.3f s: %llu illegal, %llu do not fit, %llu miss a target\n",
            (unsigned long long)p->considered, p->search_s, (unsigned long long)p->illegal,
            (unsigned long long)p->unfit, (unsigned long long)p->missed);
    return PLM_OK;
}
