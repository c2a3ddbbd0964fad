/* row.c - the work of a row of a cost program: resolved once, evaluated for any batch.
**
** Work rules are products of the dims of a node's values, and nearly every value has one dim that is
** not constant. So a row's work is affine in those dims: it is asked for once at zero and once a step
** up each dim, checked at further points, and then a step costs a few multiplications. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/ir/work_common.h"
#include "sim/step/program.h"

_Static_assert(offsetof(plm_work, weight_dtype) == PLM_ROW_FIELDS * sizeof(double),
               "plm_work starts with its doubles");
_Static_assert(offsetof(plm_work, groups) == F_GROUPS * sizeof(double), "order of fields");

/* ---- units ---- */

static bool inside(const plm_node_id *member, uint32_t n, plm_node_id p)
{
    for (uint32_t i = 0; i < n; i++)
        if (member[i] == p)
            return true;
    return false;
}

/* Reads of value v by members. */
static uint32_t reads_inside(const plm_graph *g, const plm_node_id *member, uint32_t n,
                             plm_value_id v)
{
    uint32_t reads = 0;
    for (uint32_t i = 0; i < n; i++) {
        const plm_node *x = &g->nodes[member[i]];
        for (uint32_t j = 0; j < x->n_in; j++)
            reads += plm_fuse_source(g, x->in[j]) == v;
    }
    return reads;
}

/* Takes from w what member i reads from other members, and writes for nobody else. */
static void drop_inner(const plm_graph *g, const plm_fuse_uses *u, const plm_node_id *member,
                       uint32_t n, uint32_t i, const int64_t *dim_values, plm_work *w)
{
    const plm_node *x = &g->nodes[member[i]];
    for (uint32_t j = 0; j < x->n_in; j++) {
        plm_value_id v = plm_fuse_source(g, x->in[j]);
        if (v == PLM_NONE || plm_work_is_state(g, v))
            continue;
        plm_node_id p = g->values[v].producer;
        if (p != PLM_NONE && inside(member, n, p))
            w->act_read_bytes -= plm_work_bytes(g, x->in[j], dim_values);
    }
    for (uint32_t j = 0; j < x->n_out; j++) {
        plm_value_id v = x->out[j];
        uint32_t reads = plm_work_is_state(g, v) ? 0 : reads_inside(g, member, n, v);
        if (reads > 0 && reads == u->count[v])
            w->act_write_bytes -= plm_work_bytes(g, v, dim_values);
    }
    w->act_read_bytes = fmax(w->act_read_bytes, 0.0);
    w->act_write_bytes = fmax(w->act_write_bytes, 0.0);
}

static void add_work(plm_work *sum, const plm_work *w, bool leads)
{
    double a[PLM_ROW_FIELDS], b[PLM_ROW_FIELDS];
    memcpy(a, sum, sizeof a);
    memcpy(b, w, sizeof b);
    for (int i = 0; i < F_M; i++)
        a[i] += b[i];
    if (leads) {
        /* Matrices on the same rows run as one with more columns. */
        a[F_N] += b[F_N];
        a[F_M] = fmax(a[F_M], b[F_M]);
        a[F_K] = fmax(a[F_K], b[F_K]);
        a[F_GROUPS] = fmax(a[F_GROUPS], b[F_GROUPS]);
        sum->group_share = fmax(sum->group_share, w->group_share);
        sum->weight_dtype = w->weight_dtype;
        sum->act_dtype = w->act_dtype;
    }
    memcpy(sum, a, sizeof a);
    if (w->link != PLM_LINK_NONE) {
        sum->link = w->link;
        sum->ranks = w->ranks;
        sum->nodes = w->nodes;
    }
    sum->launches += w->launches;
}

/* Class of a unit: that of its first member that is not elementwise. */
static plm_class unit_class(const plm_graph *g, const plm_node_id *member, uint32_t n,
                            bool link_part)
{
    plm_class cls = PLM_CLASS_ELEMENTWISE;
    for (uint32_t i = 0; i < n && cls == PLM_CLASS_ELEMENTWISE; i++) {
        plm_class c = plm_op_get(g->nodes[member[i]].op)->cls;
        if ((c == PLM_CLASS_LINK) == link_part)
            cls = c;
    }
    return cls;
}

void plm_unit_work(const plm_graph *g, const plm_fuse_uses *u, const plm_node_id *member,
                   uint32_t n, bool link_part, const int64_t *dim_values, const plm_batch *b,
                   plm_work *w, plm_class *cls)
{
    bool has_link = false;
    *w = (plm_work){.weight_dtype = PLM_DT_COUNT, .act_dtype = PLM_DT_COUNT};
    *cls = unit_class(g, member, n, link_part);
    for (uint32_t i = 0; i < n; i++) {
        const plm_node *x = &g->nodes[member[i]];
        const plm_op_info *op = plm_op_get(x->op);
        bool is_link = op->cls == PLM_CLASS_LINK;
        has_link |= is_link;
        if (op->work == NULL || is_link != link_part)
            continue;
        plm_work part = {.weight_dtype = PLM_DT_COUNT, .act_dtype = PLM_DT_COUNT};
        op->work(g, x, dim_values, b, &part);
        if (n > 1)
            drop_inner(g, u, member, n, i, dim_values, &part);
        add_work(w, &part, op->cls == *cls);
    }
    /* A fused group is one kernel; where it has a link, the link's. */
    if (g->nodes[member[0]].group != 0 && w->launches > 0)
        w->launches = has_link && !link_part ? 0 : 1;
}

/* ---- resolving ---- */

/* The dims of the members' values that are not constant. False if there are too many. */
static bool find_vars(const plm_graph *g, plm_row *r)
{
    r->n_vars = 0;
    for (uint32_t i = 0; i < r->n_members; i++) {
        const plm_node *x = &g->nodes[r->member[i]];
        for (uint32_t j = 0; j < (uint32_t)x->n_in + x->n_out; j++) {
            plm_value_id v = j < x->n_in ? x->in[j] : x->out[j - x->n_in];
            if (v == PLM_NONE)
                continue;
            for (uint32_t k = 0; k < g->values[v].rank; k++) {
                plm_dim d = g->values[v].dim[k];
                bool known = plm_dim_value(&g->dims, d) >= 0;
                for (uint32_t q = 0; q < r->n_vars && !known; q++)
                    known = r->var[q] == d;
                if (known)
                    continue;
                if (r->n_vars == PLM_ROW_VARS)
                    return false;
                r->var[r->n_vars++] = d;
            }
        }
    }
    return true;
}

static double distinct(const plm_row *r, double rows, double popularity)
{
    if (!(rows > 0))
        return 0.0;
    double t = rows * r->experts / (r->top_k * r->local);
    double hit = plm_skewed_experts(r->experts, r->top_k, t, popularity) * r->local / r->experts;
    return fmin(hit, rows);
}

/* Fields at a point, with the experts hit divided out of a grouped row. */
static void probe(const plm_graph *g, const plm_fuse_uses *u, plm_row *r, const int64_t *dims,
                  double out[PLM_ROW_FIELDS])
{
    static const plm_batch none = {0};
    plm_work w;
    plm_unit_work(g, u, r->member, r->n_members, r->link_part, dims, &none, &w, &r->cls);
    memcpy(out, &w, PLM_ROW_FIELDS * sizeof *out);
    if (r->kind == PLM_ROW_GROUPED && w.groups > 0) {
        out[F_WEIGHT] /= w.groups;
        out[F_M] *= w.groups;
        out[F_GROUPS] = 1.0;
    }
    r->base = w;
}

static void eval(const plm_row *r, const int64_t *dims, double out[PLM_ROW_FIELDS])
{
    memcpy(out, &r->base, PLM_ROW_FIELDS * sizeof *out);
    for (uint32_t v = 0; v < r->n_vars; v++) {
        double x = (double)dims[r->var[v]];
        for (int i = 0; i < PLM_ROW_FIELDS; i++)
            out[i] += r->slope[v][i] * x;
    }
}

/* The form at the points must be what the rules say. */
static bool form_holds(const plm_graph *g, const plm_fuse_uses *u, const plm_row *r, int64_t *dims)
{
    static const int64_t points[3][PLM_ROW_VARS] = {{37, 5, 11}, {8192, 256, 3}, {1, 640, 65536}};
    plm_row copy = *r;
    for (int k = 0; k < 3; k++) {
        double want[PLM_ROW_FIELDS], got[PLM_ROW_FIELDS];
        for (uint32_t v = 0; v < r->n_vars; v++)
            dims[r->var[v]] = points[k][v];
        probe(g, u, &copy, dims, want);
        eval(r, dims, got);
        for (int i = 0; i < PLM_ROW_FIELDS; i++)
            if (!(fabs(got[i] - want[i]) <= 1e-9 * fabs(want[i]) + 1e-6))
                return false;
    }
    return true;
}

static void make_form(const plm_graph *g, const plm_fuse_uses *u, plm_row *r, int64_t *dims)
{
    double zero[PLM_ROW_FIELDS], at[PLM_ROW_FIELDS];
    /* A grouped row has no experts to divide by at zero, so both points are up from there. */
    int64_t low = r->kind == PLM_ROW_GROUPED ? 64 : 0, high = low + 64;
    for (size_t i = 0; i < g->dims.count; i++)
        dims[i] = plm_dim_value(&g->dims, (plm_dim)i);
    for (uint32_t v = 0; v < r->n_vars; v++)
        dims[r->var[v]] = low;
    probe(g, u, r, dims, zero);
    for (uint32_t v = 0; v < r->n_vars; v++) {
        dims[r->var[v]] = high;
        probe(g, u, r, dims, at);
        dims[r->var[v]] = low;
        for (int i = 0; i < PLM_ROW_FIELDS; i++)
            r->slope[v][i] = (at[i] - zero[i]) / (double)(high - low);
    }
    for (uint32_t v = 0; v < r->n_vars; v++)
        for (int i = 0; i < PLM_ROW_FIELDS; i++)
            zero[i] -= r->slope[v][i] * (double)low;
    memcpy(&r->base, zero, sizeof zero);
    if (!form_holds(g, u, r, dims)) {
        r->kind = PLM_ROW_RULE;
        return;
    }
    uint32_t kept = 0;
    for (uint32_t v = 0; v < r->n_vars; v++) {
        bool used = false;
        for (int i = 0; i < PLM_ROW_FIELDS; i++)
            used |= r->slope[v][i] != 0.0;
        if (!used)
            continue;
        r->var[kept] = r->var[v];
        memmove(r->slope[kept++], r->slope[v], sizeof r->slope[v]);
    }
    r->n_vars = kept;
}

static void append(char *name, const char *a, const char *b)
{
    size_t n = strlen(name);
    snprintf(name + n, 64 - n, "%s%s%s%s", n > 0 ? "+" : "", a, b[0] != '\0' ? " " : "", b);
}

/* "linear gate+linear up+glu": ops of the members, and what their matrices are for. */
static void name_row(const plm_graph *g, plm_row *r)
{
    static const char *const roles[PLM_ROLE_COUNT] = {
#define ROLE_NAME(id, text) [PLM_ROLE_##id] = text,
        PLM_ROLE_MAP(ROLE_NAME)
#undef ROLE_NAME
    };
    r->name[0] = '\0';
    for (uint32_t i = 0; i < r->n_members; i++) {
        const plm_node *x = &g->nodes[r->member[i]];
        const plm_op_info *op = plm_op_get(x->op);
        if ((op->cls == PLM_CLASS_LINK) != r->link_part)
            continue;
        const char *role = "";
        bool matrix = op->cls == PLM_CLASS_LINEAR || op->cls == PLM_CLASS_GROUPED;
        for (uint32_t j = 0; j < x->n_in && matrix && role[0] == '\0'; j++)
            if (x->in[j] != PLM_NONE && g->values[x->in[j]].kind == PLM_VALUE_WEIGHT)
                role = roles[g->values[x->in[j]].role];
        append(r->name, op->name, role);
    }
}

/* Attributes of the first grouped product among the members. */
static void resolve_grouped(const plm_graph *g, plm_row *r)
{
    for (uint32_t i = 0; i < r->n_members; i++) {
        const plm_node *x = &g->nodes[r->member[i]];
        if (x->op != PLM_OP_LINEAR_GROUPED)
            continue;
        r->local = (double)plm_dim_value(&g->dims, g->values[x->in[1]].dim[0]);
        double experts = (double)plm_attr_int(g, x, PLM_ATTR_EXPERTS, 0);
        double top_k = (double)plm_attr_int(g, x, PLM_ATTR_TOP_K, 0);
        r->experts = experts > 0 ? experts : r->local;
        r->top_k = fmin(top_k > 0 ? top_k : 1.0, r->experts);
        r->loaded = r->local < r->experts;
        r->kind = r->local > 0 ? PLM_ROW_GROUPED : PLM_ROW_RULE;
        return;
    }
}

void plm_row_resolve(const plm_graph *g, const plm_fuse_uses *u, plm_row *r, int64_t *dims)
{
    const plm_node *first = &g->nodes[r->member[0]];
    name_row(g, r);
    r->kind = PLM_ROW_FORM;
    if (r->n_members == 1 && (first->op == PLM_OP_ATTENTION || first->op == PLM_OP_INDEX)) {
        r->kind = PLM_ROW_ATTENTION;
        plm_attention_resolve(g, first, &r->attn);
    } else if (!r->link_part) {
        resolve_grouped(g, r);
    }
    for (uint32_t i = 0; i < r->n_members && r->kind != PLM_ROW_ATTENTION; i++) {
        const plm_node *x = &g->nodes[r->member[i]];
        if (plm_op_get(x->op)->flags & PLM_OPF_SEGMENTS)
            r->kind = PLM_ROW_RULE;
        if (r->link_part && x->op == PLM_OP_ALL_TO_ALL)
            r->loaded = true;
    }
    if (r->kind != PLM_ROW_RULE && !find_vars(g, r))
        r->kind = PLM_ROW_RULE;
    if (r->kind != PLM_ROW_RULE) {
        make_form(g, u, r, dims);
    } else {
        for (size_t i = 0; i < g->dims.count; i++)
            dims[i] = 1;
        double unused[PLM_ROW_FIELDS];
        probe(g, u, r, dims, unused);
    }
}

/* ---- evaluating ---- */

static const int scaled_by_load[] = {F_TENSOR, F_VECTOR, F_EXP, F_ACT_READ, F_ACT_WRITE, F_M,
                                     F_LINK};

static uint32_t attention_work(const plm_row *r, const double *traffic, const plm_batch *b,
                               plm_work out[2])
{
    double tokens[2] = {0, 0}, all = 0;
    uint32_t n = 0;
    for (int part = 0; part < 2; part++) {
        out[part] = r->base;
        memset(&out[part], 0, PLM_ROW_FIELDS * sizeof(double));
    }
    for (uint32_t i = 0; i < b->n_seg; i++) {
        int part = b->seg[i].q_len > 1;
        plm_attention_add(&r->attn, &b->seg[i], &out[part]);
        tokens[part] += (double)b->seg[i].q_len * (double)b->seg[i].count;
    }
    all = tokens[0] + tokens[1];
    for (int part = 0; part < 2; part++) {
        if (!(tokens[part] > 0))
            continue;
        plm_work *w = &out[part];
        double share = tokens[part] / all;
        w->m /= w->groups;
        w->k = r->attn.dk;
        w->act_read_bytes += traffic[F_ACT_READ] * share;
        w->act_write_bytes += traffic[F_ACT_WRITE] * share;
        w->weight_bytes += traffic[F_WEIGHT] * share;
        if (n != (uint32_t)part)
            out[n] = *w;
        n++;
    }
    return n;
}

uint32_t plm_row_work(const plm_program *p, const plm_row *r, const int64_t *dims,
                      const plm_batch *b, double popularity, plm_work out[2])
{
    double f[PLM_ROW_FIELDS];
    if (r->kind == PLM_ROW_RULE) {
        plm_class cls;
        plm_unit_work(&p->g, &p->uses, r->member, r->n_members, r->link_part, dims, b, &out[0], &cls);
        return 1;
    }
    eval(r, dims, f);
    if (r->kind == PLM_ROW_ATTENTION)
        return attention_work(r, f, b, out);
    if (r->loaded && b->imbalance > 1.0)
        for (size_t i = 0; i < sizeof scaled_by_load / sizeof scaled_by_load[0]; i++)
            f[scaled_by_load[i]] *= b->imbalance;
    out[0] = r->base;
    if (r->kind == PLM_ROW_GROUPED) {
        double hit = distinct(r, f[F_M], popularity);
        f[F_WEIGHT] *= hit;
        f[F_GROUPS] = hit;
        f[F_M] = hit > 0 ? f[F_M] / hit : 0.0;
        out[0].group_share = hit / r->local;
    }
    memcpy(&out[0], f, sizeof f);
    return 1;
}
