/* answer_text.c - a prediction for people. */
#include "cli/answer_text.h"

#include <string.h>

void plm_text_ranks(const plm_parallel *p, char *buf, size_t cap)
{
    const struct {
        const char *name;
        int32_t n;
    } ranks[] = {{"tp", p->tp}, {"pp", p->pp}, {"ep", p->ep}, {"dp", p->dp}, {"cp", p->cp}};
    size_t at = 0;
    snprintf(buf, cap, "tp1");
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        if (ranks[i].n > 1 && at < cap)
            at += (size_t)snprintf(buf + at, cap - at, "%s%s%d", at > 0 ? " " : "", ranks[i].name,
                                   ranks[i].n);
}

static void print_head(const plm_query *q, const plm_answer *r, FILE *out)
{
    char ranks[64], a[32], b[32];
    plm_text_ranks(&r->par, ranks, sizeof ranks);
    fprintf(out, "%s, %s, on %lld x %s", r->model, r->quant, (long long)r->devices, r->device);
    if (r->devices > 1)
        fprintf(out, " (%s)", ranks);
    fprintf(out, ", %s: ", r->engine);
    if (!r->memory.fits)
        fprintf(out, "does not fit (%s): needs %s, the engine may take %s\n", r->memory.limit,
                plm_text_bytes((double)r->memory.total_bytes, a, sizeof a),
                plm_text_bytes((double)r->memory.usable_bytes, b, sizeof b));
    else if (r->has_serving)
        fprintf(out, "%s tok/s out for %lld clients\n",
                plm_text_number(r->serving.output_tok_s.value, 3, a, sizeof a),
                (long long)q->concurrency);
    else if (q->gen > 0)
        fprintf(out, "%s tok/s decode at batch %lld\n",
                plm_text_number(r->decode.tok_s.value, 3, a, sizeof a), (long long)q->batch);
    else
        fprintf(out, "%s tok/s prefill\n", plm_text_number(r->prefill.tok_s.value, 3, a, sizeof a));
}

static void time_row(plm_table *t, const char *what, const char *at, plm_figure f,
                     const char *bound)
{
    char a[32], b[32];
    plm_table_text(t, what);
    plm_table_text(t, at);
    plm_table_text(t, plm_text_time(f.value, a, sizeof a));
    plm_table_format(t, "%s to %s", plm_text_time(f.lo, a, sizeof a),
                     plm_text_time(f.hi, b, sizeof b));
    plm_table_text(t, bound);
}

static void speed_row(plm_table *t, const char *what, const char *unit, plm_figure f)
{
    char a[32], b[32];
    plm_table_text(t, what);
    plm_table_text(t, "");
    plm_table_format(t, "%s %s", plm_text_number(f.value, 3, a, sizeof a), unit);
    plm_table_format(t, "%s to %s", plm_text_number(f.lo, 3, a, sizeof a),
                     plm_text_number(f.hi, 3, b, sizeof b));
    plm_table_text(t, "");
}

static void phase_rows(plm_table *t, const plm_query *q, const plm_answer *r)
{
    char at[80];
    if (q->prompt > 0) {
        snprintf(at, sizeof at, "%.0f tokens", r->prefill.tokens);
        time_row(t, "prefill", at, r->prefill.time_s, r->prefill.bound);
        speed_row(t, "", "tok/s", r->prefill.tok_s);
    }
    if (q->gen > 0) {
        snprintf(at, sizeof at, "batch %.0f, %.0f tokens deep", r->decode.batch,
                 r->decode.context_tokens);
        time_row(t, "decode, ITL", at, r->decode.time_s, r->decode.bound);
        speed_row(t, "", "tok/s", r->decode.tok_s);
    }
}

static void serving_rows(plm_table *t, const plm_query *q, const plm_serving *v)
{
    char at[80];
    snprintf(at, sizeof at, "%lld clients, %.0f running", (long long)q->concurrency, v->running);
    time_row(t, "serving, TTFT", at, v->ttft_s, v->bound);
    time_row(t, "         ITL", "", v->itl_s, "");
    time_row(t, "         whole request", "", v->e2e_s, "");
    speed_row(t, "         output", "tok/s", v->output_tok_s);
    speed_row(t, "         requests", "1/s", v->requests_s);
}

static plm_status print_figures(const plm_query *q, const plm_answer *r, FILE *out, plm_error *err)
{
    static const char *const headers[] = {"phase", "at", "predicted", "90 % range", "bound"};
    plm_table *t;
    PLM_TRY(plm_table_create(headers, sizeof headers / sizeof *headers, &t, err));
    phase_rows(t, q, r);
    if (r->has_serving)
        serving_rows(t, q, &r->serving);
    fputc('\n', out);
    plm_status status = plm_table_write(t, false, out, err);
    plm_table_destroy(t);
    return status;
}

static void print_memory(const plm_query *q, const plm_answer *r, FILE *out)
{
    const plm_ledger *m = &r->memory;
    char buf[32], kv[48];
    snprintf(kv, sizeof kv, "KV cache, batch %lld", (long long)q->batch);
    const struct {
        const char *name;
        int64_t bytes;
    } parts[] = {{"weights", m->weights_bytes},   {kv, m->kv_bytes},
                 {"state", m->state_bytes},       {"activations", m->activation_bytes},
                 {"overhead", m->overhead_bytes}, {"total", m->total_bytes},
                 {"capacity", m->capacity_bytes}, {"usable", m->usable_bytes}};
    fprintf(out, "\nmemory%s\n", r->devices > 1 ? " of the fullest device" : "");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].bytes > 0)
            fprintf(out, "  %-20s %10s\n", parts[i].name,
                    plm_text_bytes((double)parts[i].bytes, buf, sizeof buf));
    fprintf(out, "  KV %s a token", plm_text_bytes((double)m->kv_bytes_per_token, buf, sizeof buf));
    if (m->kv_pool_bytes > m->kv_bytes)
        fprintf(out, ", pool of %s", plm_text_bytes((double)m->kv_pool_bytes, buf, sizeof buf));
    int64_t asked = q->context > 0 ? q->context : q->depth + q->prompt + q->gen;
    if (m->fits && m->capacity_bytes > 0)
        fprintf(out, "; longest context %lld tokens; room for %lld sequences of %lld",
                (long long)m->max_context_tokens, (long long)m->max_batch, (long long)asked);
    fputc('\n', out);
}

static void print_cost(const plm_answer *r, FILE *out)
{
    char a[32];
    fprintf(out, "\ncost  %s USD/h", plm_text_number(r->usd_per_hour, 3, a, sizeof a));
    if (r->usd_per_mtok_input > 0)
        fprintf(out, ", %s USD/M input", plm_text_number(r->usd_per_mtok_input, 3, a, sizeof a));
    if (r->usd_per_mtok_output > 0)
        fprintf(out, ", %s USD/M output", plm_text_number(r->usd_per_mtok_output, 3, a, sizeof a));
    fprintf(out, " tokens; each pays for the time it takes\n  price: %s\n", r->price_source);
}

plm_status plm_answer_print(const plm_query *q, const plm_answer *r, FILE *out, plm_error *err)
{
    print_head(q, r, out);
    if (r->memory.fits)
        PLM_TRY(print_figures(q, r, out, err));
    print_memory(q, r, out);
    if (r->has_cost && r->memory.fits)
        print_cost(r, out);
    if (r->note[0] != '\0')
        fprintf(out, "\nnote: %s\n", r->note);
    return PLM_OK;
}
