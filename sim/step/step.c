/* step.c - time of one step of a cost program, and the same by op. */
#include "sim/step/step.h"

#include <stdio.h>
#include <string.h>

#include "sim/step/program.h"

static double far_bytes(const plm_work *w)
{
    return w->weight_bytes + w->kv_read_bytes + w->state_bytes;
}

/* Every byte the op moves, once. */
static double all_bytes(const plm_work *w)
{
    return far_bytes(w) + w->act_read_bytes + w->act_write_bytes + w->kv_write_bytes;
}

/* Share of weights, KV and state that the last cache keeps from one step to the next: their sum over
** the step against its size. Most programs are far larger than any cache and need no sum. */
static double resident_share(const plm_program *p, const plm_machine *m, const int64_t *dims,
                             const plm_batch *b)
{
    double sum = 0.0;
    if (!(m->prof.cache_rate > 0) ||
        (double)(p->weight_bytes - p->embed_bytes) >= m->cache_bytes)
        return 0.0;
    for (size_t i = 0; i < p->n_rows; i++) {
        plm_work w[2];
        uint32_t n =
            plm_row_work(p, &p->rows[i], dims, b, m->prof.expert_popularity, w);
        for (uint32_t k = 0; k < n; k++)
            sum += far_bytes(&w[k]) * p->rows[i].count;
    }
    return plm_cache_share(sum, m->cache_bytes);
}

/* What every step costs besides its ops, which take ops_s. Where the host launches every kernel, the
** device waits for the slower of the two (hw_facts e.1). */
static double step_overhead(const plm_program *p, const plm_machine *m, const plm_batch *b,
                            const int64_t *sym, double ops_s)
{
    const plm_profile *f = &m->prof;
    double layer = f->layer_s;
    for (uint32_t i = 0; i < b->n_seg; i++)
        if (b->seg[i].q_len > 1) {
            layer += f->chunk_layer_s;
            break;
        }
    double host = f->step_s + (double)sym[PLM_SYM_S] * f->seq_s + p->layers * layer;
    if (p->layers * f->host_layer_s > ops_s)
        host += p->layers * f->host_layer_s - ops_s;
    return host / m->scale[PLM_BOUND_OVERHEAD];
}

static void add_op(plm_step *out, double count, const plm_work *w, const plm_op_time *t)
{
    double overhead = t->part_s[PLM_BOUND_OVERHEAD];
    out->time_s += count * t->time_s;
    out->part_s[PLM_BOUND_OVERHEAD] += count * overhead;
    out->part_s[t->rest_bound] += count * (t->time_s - overhead);
    out->flop += count * (w->tensor_flop + w->vector_flop);
    out->bytes += count * all_bytes(w);
    out->exp += count * w->exp;
    out->link_bytes += count * w->link_bytes;
}

void plm_step_time(const plm_program *p, const plm_machine *m, const plm_batch *b, plm_step *out)
{
    int64_t sym[PLM_SYM_COUNT], dims[PLM_PROGRAM_DIMS];
    memset(out, 0, sizeof *out);
    plm_batch_symbols(b, p->top_k, sym);
    plm_dims_eval(&p->g.dims, sym, dims);
    double resident = resident_share(p, m, dims, b);
    for (size_t i = 0; i < p->n_rows; i++) {
        const plm_row *r = &p->rows[i];
        plm_work w[2];
        uint32_t n = plm_row_work(p, r, dims, b, m->prof.expert_popularity, w);
        for (uint32_t k = 0; k < n; k++) {
            plm_op_time t;
            plm_op_cost_resident(m, r->cls, &w[k], resident, &t);
            add_op(out, r->count, &w[k], &t);
        }
    }
    double overhead = step_overhead(p, m, b, sym, out->time_s);
    out->time_s += overhead;
    out->part_s[PLM_BOUND_OVERHEAD] += overhead;
    for (int i = 0; i < PLM_BOUND_COUNT; i++)
        if (out->part_s[i] > out->part_s[out->bound])
            out->bound = (plm_bound)i;
}

/* ---- rows ---- */

typedef struct row_sum {
    plm_step_row *rows;
    double (*part)[PLM_BOUND_COUNT]; /* by row */
    size_t n, max;
} row_sum;

enum { ROWS_MAX = 256 };

/* Row of that name, made if new; the last one takes what finds no room. */
static size_t find_row(row_sum *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->rows[i].name, name) == 0)
            return i;
    if (s->n == s->max)
        return s->n - 1;
    size_t i = s->n++;
    memset(&s->rows[i], 0, sizeof s->rows[i]);
    memset(s->part[i], 0, sizeof s->part[i]);
    snprintf(s->rows[i].name, sizeof s->rows[i].name, "%s", s->n == s->max ? "other" : name);
    return i;
}

static void add_to_row(row_sum *s, const char *name, double count, const plm_work *w,
                       const plm_op_time *t)
{
    size_t i = find_row(s, name);
    plm_step_row *r = &s->rows[i];
    double overhead = t->part_s[PLM_BOUND_OVERHEAD];
    r->count += count;
    r->flop += count * (w->tensor_flop + w->vector_flop);
    r->bytes += count * all_bytes(w);
    r->exp += count * w->exp;
    r->time_s += count * t->time_s;
    s->part[i][PLM_BOUND_OVERHEAD] += count * overhead;
    s->part[i][t->rest_bound] += count * (t->time_s - overhead);
}

static const char *part_name(const plm_row *r, const plm_work *w, char *text, size_t room)
{
    if (r->kind != PLM_ROW_ATTENTION)
        return r->name;
    snprintf(text, room, "%.40s %s", r->name, w->m > 1.0 ? "prefill" : "decode");
    return text;
}

size_t plm_step_rows(const plm_program *p, const plm_machine *m, const plm_batch *b,
                     plm_step_row *rows, size_t max)
{
    int64_t sym[PLM_SYM_COUNT], dims[PLM_PROGRAM_DIMS];
    double part[ROWS_MAX][PLM_BOUND_COUNT];
    row_sum s = {rows, part, 0, max < ROWS_MAX ? max : ROWS_MAX};
    if (max == 0)
        return 0;
    plm_batch_symbols(b, p->top_k, sym);
    plm_dims_eval(&p->g.dims, sym, dims);
    double resident = resident_share(p, m, dims, b);
    for (size_t i = 0; i < p->n_rows; i++) {
        const plm_row *r = &p->rows[i];
        plm_work w[2];
        uint32_t n = plm_row_work(p, r, dims, b, m->prof.expert_popularity, w);
        for (uint32_t k = 0; k < n; k++) {
            plm_op_time t;
            char text[64];
            plm_op_cost_resident(m, r->cls, &w[k], resident, &t);
            add_to_row(&s, part_name(r, &w[k], text, sizeof text), r->count, &w[k], &t);
        }
    }
    plm_op_time host = {0};
    plm_work nothing = {0};
    double ops_s = 0.0;
    for (size_t i = 0; i < s.n; i++)
        ops_s += rows[i].time_s;
    host.time_s = host.part_s[PLM_BOUND_OVERHEAD] = step_overhead(p, m, b, sym, ops_s);
    if (host.time_s > 0)
        add_to_row(&s, "step", 1.0, &nothing, &host);
    for (size_t i = 0; i < s.n; i++)
        for (int k = 0; k < PLM_BOUND_COUNT; k++)
            if (part[i][k] > part[i][rows[i].bound])
                rows[i].bound = (plm_bound)k;
    return s.n;
}
