/* weights_map.c - which tensors, and which of their rows, a weight of the graph is made of.
**
** weights.def names the tensors; here are the rows. Orders of rows in the files: qkv_proj of
** Phi-3, in_proj_qkvz and in_proj_ba of Qwen3-Next (fix_query_key_value_ordering), gate_up_proj
** of gpt-oss (even rows gate, odd rows up) in transformers; value heads of Qwen3.5 in GGUF
** (tiled: head j of each key head together, so that they follow one another as llama.cpp repeats
** the keys). */
#include <stdio.h>
#include <string.h>

#include "core/model/weights_parts.h"

typedef enum part {
    ALL,
    Q,
    K,
    V,       /* of q, k, v in one matrix */
    GATED_Q, /* a head's query and output gate side by side -> all queries, all gates */
    GATE,
    UP, /* first and second half */
    EVEN,
    ODD, /* every second row */
    K_B,
    V_B,     /* of kv_b: a head's nope rows of K, then its dv rows of V */
    HEADS_K, /* k_b by head, as the absorbed form multiplies it */
    HEADS_V,
    JOIN, /* one tensor after another */
    QKVZ,
    BA,          /* by key head: q, k, v of its value heads, z; b, a */
    DELTA_IN,    /* qkv and z, value heads perhaps tiled */
    DELTA_BA,    /* b and a, perhaps tiled */
    DELTA_CONV,  /* q, k and v channels, v perhaps tiled */
    DELTA_HEADS, /* one number a value head, perhaps tiled */
    DELTA_OUT    /* columns by value head, perhaps tiled */
} part;

enum {
    TURN = 1, /* stored [in, out] */
    OAI = 2,  /* only with gpt-oss's experts */
    NOT_OAI = 4,
    NEG_EXP = 8,   /* stored as A_log */
    IF_GATED = 16, /* only in layers whose q carries an output gate */
    IF_DELTA = 32,
    IF_MAMBA = 64
};

typedef struct rule {
    enum { FORMAT_G, FORMAT_H } format;
    const char *weight;
    part part;
    unsigned flags;
    const char *name[3];
} rule;

static const rule rules[] = {
#define PLM_RULE(format, weight, part, flags, ...)                                                 \
    {FORMAT_##format, weight, part, flags, {__VA_ARGS__}},
#include "core/model/weights.def"
#undef PLM_RULE
};
#define RULES (sizeof rules / sizeof *rules)

/* ---- names ---- */

/* Rule `index`, or past the table the weight's own name in a GGUF. */
static rule rule_at(const plm_wanted *q, size_t index, char own[PLM_NAME_MAX + 2])
{
    if (index < RULES)
        return rules[index];
    size_t n = strlen(q->local), bias = n > 5 && strcmp(q->local + n - 5, ".bias") == 0 ? 5 : 0;
    snprintf(own, PLM_NAME_MAX + 2, "%.*s.", (int)(n - bias), q->local);
    return (rule){FORMAT_G, q->local, ALL, 0, {own, NULL, NULL}};
}

/* "bias" or "weight" where the rule is of this weight or of the matrix it is the bias of; NULL
** where it is of another. */
static const char *ending(const rule *r, const plm_wanted *q)
{
    size_t n = strlen(r->weight);
    if (strncmp(r->weight, q->local, n) != 0)
        return NULL;
    if (q->local[n] == '\0')
        return n > 5 && strcmp(q->local + n - 5, ".bias") == 0 ? "bias" : "weight";
    size_t m = strlen(r->name[0]);
    return strcmp(q->local + n, ".bias") == 0 && r->name[0][m - 1] == '.' ? "bias" : NULL;
}

static bool flags_allow(unsigned flags, const plm_layer *l)
{
    bool oai = l != NULL && l->act == PLM_FN_SWIGLU_OAI && l->experts > 0;
    bool gated = l != NULL && l->out_gate && l->attn != PLM_ATTN_MLA;
    bool delta = l != NULL && l->attn == PLM_ATTN_GATED_DELTA;
    bool mamba = l != NULL && l->attn == PLM_ATTN_MAMBA2;
    return !((flags & OAI) != 0 && !oai) && !((flags & NOT_OAI) != 0 && oai) &&
           !((flags & IF_GATED) != 0 && !gated) && !((flags & IF_DELTA) != 0 && !delta) &&
           !((flags & IF_MAMBA) != 0 && !mamba);
}

/* Full name of a tensor of a rule in the file. */
static const plm_weights_entry *locate(const plm_weights *w, const plm_wanted *q, const char *name,
                                       const char *end, int64_t matrix)
{
    char full[512], number[24] = "";
    const char *star = strchr(name, '*');
    size_t head = star != NULL ? (size_t)(star - name) : strlen(name);
    const char *tail = star != NULL ? star + 1 : "";
    size_t n = strlen(name);
    if (name[n - 1] != '.')
        end = "";
    if (star != NULL)
        snprintf(number, sizeof number, "%lld", (long long)matrix);
    if (name[0] == '/')
        snprintf(full, sizeof full, "%s%s", name + 1, end);
    else if (q->layer < 0)
        snprintf(full, sizeof full, "%s%s%s", w->gguf ? "" : w->prefix, name, end);
    else
        snprintf(full, sizeof full, "%s%s%d.%.*s%s%s%s", w->gguf ? "" : w->prefix,
                 w->gguf ? "blk." : w->layers, q->layer, (int)head, name, number, tail, end);
    return plm_weights_find(w, full);
}

/* ---- rows ---- */

static plm_run *add_run(plm_origin *o, uint32_t source, int64_t start)
{
    plm_run *r = &o->run[o->n_runs++];
    *r = (plm_run){.source = source, .start = start, .n = {1, 1, 1}, .step = {0, 0, 1}};
    return r;
}

static void add_rows(plm_origin *o, uint32_t source, int64_t start, int64_t n)
{
    add_run(o, source, start)->n[2] = n;
}

/* n blocks of `len` rows, `step` apart. */
static void add_blocks(plm_origin *o, uint32_t source, int64_t start, int64_t n, int64_t step,
                       int64_t len)
{
    plm_run *r = add_run(o, source, start);
    r->n[1] = n;
    r->step[1] = step;
    r->n[2] = len;
}

/* Value heads of `len` rows in the order of the model, from that of the file. */
static void add_heads(plm_origin *o, uint32_t source, int64_t start, const plm_layer *l, bool tiled,
                      int64_t len)
{
    int64_t hk = l->lin_k_heads, r = l->lin_v_heads / hk;
    if (!tiled || r == 1) {
        add_rows(o, source, start, hk * r * len);
        return;
    }
    plm_run *run = add_run(o, source, start);
    run->n[0] = hk;
    run->step[0] = len;
    run->n[1] = r;
    run->step[1] = hk * len;
    run->n[2] = len;
}

/* Rows q and k of a delta-rule layer together. */
static int64_t delta_qk(const plm_layer *l)
{
    return 2 * (int64_t)l->lin_k_heads * l->lin_dk;
}

static void delta_runs(const plm_weights *w, const plm_wanted *q, part p, plm_origin *o)
{
    const plm_layer *l = q->l;
    bool tiled = w->gguf && strncmp(w->arch->family, "qwen35", 6) == 0;
    int64_t hk = l->lin_k_heads, r = l->lin_v_heads / hk, dk = l->lin_dk, rv = r * l->lin_dv;
    switch (p) {
    case QKVZ:
        add_blocks(o, 0, 0, hk, 2 * dk + 2 * rv, dk);
        add_blocks(o, 0, dk, hk, 2 * dk + 2 * rv, dk);
        add_blocks(o, 0, 2 * dk, hk, 2 * dk + 2 * rv, rv);
        add_blocks(o, 0, 2 * dk + rv, hk, 2 * dk + 2 * rv, rv);
        break;
    case BA:
        add_blocks(o, 0, 0, hk, 2 * r, r);
        add_blocks(o, 0, r, hk, 2 * r, r);
        break;
    case DELTA_IN:
    case DELTA_CONV:
        add_rows(o, 0, 0, delta_qk(l));
        add_heads(o, 0, delta_qk(l), l, tiled, l->lin_dv);
        if (p == DELTA_IN)
            add_heads(o, 1, 0, l, tiled, l->lin_dv);
        break;
    case DELTA_BA:
        add_heads(o, 0, 0, l, tiled, 1);
        add_heads(o, 1, 0, l, tiled, 1);
        break;
    case DELTA_HEADS:
        add_heads(o, 0, 0, l, tiled, 1);
        break;
    default: /* DELTA_OUT */
        add_rows(o, 0, 0, q->rows);
        if (tiled && r > 1) {
            o->turn = PLM_TURN_COLUMNS;
            o->group = l->lin_dv;
            o->fast = r;
            o->slow = hk;
        }
    }
}

/* Runs of one matrix, counted from the matrix's first row in the source, and the rows that the
** source has for one matrix (the first source, where there are several). */
static int64_t part_runs(const plm_weights *w, const plm_wanted *q, part p, plm_origin *o)
{
    const plm_layer *l = q->l;
    int64_t n = q->rows;
    int64_t qw = l != NULL ? (int64_t)l->heads * l->dk * (l->out_gate ? 2 : 1) : 0;
    int64_t kw = l != NULL ? (int64_t)l->kv_heads * l->dk : 0;
    int64_t vw = l != NULL ? (int64_t)l->kv_heads * l->dv : 0;
    int64_t head = l != NULL ? (int64_t)l->nope + l->dv : 0;
    switch (p) {
    case ALL:
    case HEADS_K:
    case HEADS_V:
        add_rows(o, 0, 0, n);
        return n;
    case Q:
        add_rows(o, 0, 0, n);
        return qw + kw + vw;
    case K:
        add_rows(o, 0, qw, n);
        return qw + kw + vw;
    case V:
        add_rows(o, 0, qw + kw, n);
        return qw + kw + vw;
    case GATED_Q: {
        plm_run *r = add_run(o, 0, 0);
        r->n[0] = 2;
        r->step[0] = l->dk;
        r->n[1] = l->heads;
        r->step[1] = 2 * (int64_t)l->dk;
        r->n[2] = l->dk;
        return n;
    }
    case GATE:
    case UP:
        add_rows(o, 0, p == UP ? n : 0, n);
        return 2 * n;
    case EVEN:
    case ODD:
        add_rows(o, 0, p == ODD, n);
        o->run[0].step[2] = 2;
        return 2 * n;
    case K_B:
    case V_B:
        add_rows(o, 0, p == V_B ? l->nope : 0, n);
        return head;
    case JOIN:
        for (uint32_t i = 0; i < o->n_sources; i++)
            add_rows(o, i, 0, o->source[i].rows);
        return o->source[0].rows;
    default:
        delta_runs(w, q, p, o);
        return o->n_sources > 1 ? o->source[0].rows : n;
    }
}

/* A matrix turned from the source: see PLM_TURN_ROWS. */
static void turn(plm_origin *o, int64_t first)
{
    o->turn = PLM_TURN_ROWS;
    o->first = first;
}

/* The absorbed form wants k_b of a head as [kv_lora, nope]; kv_b has it as [nope, kv_lora]. The
** expanded form wants [nope, kv_lora]; a GGUF's k_b is [kv_lora, nope]. */
static bool turns_heads(const plm_wanted *q, part p)
{
    bool expanded = q->l != NULL && q->rows == q->l->nope && q->cols == q->l->kv_lora;
    return (p == K_B && !expanded) || (p == HEADS_K && expanded);
}

/* Runs, checked against the shape of the sources; false where a shape is another. */
static bool lay_out(const plm_weights *w, const plm_wanted *q, const rule *r, int64_t matrix,
                    plm_origin *o)
{
    bool each = strchr(r->name[0], '*') != NULL; /* a tensor for each matrix */
    bool turned = !q->column && ((r->flags & TURN) != 0 || turns_heads(q, r->part));
    int64_t span, of = each ? 1 : q->matrices, at = each ? 0 : matrix, rows = 0;
    o->neg_exp = (r->flags & NEG_EXP) != 0;
    if (turned && r->part == K_B) {
        add_rows(o, 0, 0, q->rows);
        turn(o, at * ((int64_t)q->l->nope + q->l->dv));
        return o->source[0].cols == q->rows &&
               o->source[0].rows == of * ((int64_t)q->l->nope + q->l->dv);
    }
    span = part_runs(w, q, r->part, o);
    for (uint32_t i = 0; i < o->n_runs; i++)
        rows += o->run[i].n[0] * o->run[i].n[1] * o->run[i].n[2];
    if (rows != q->rows)
        return false;
    if (turned) {
        turn(o, at * q->cols);
        return o->source[0].rows == of * q->cols && o->source[0].cols == span;
    }
    if (o->n_sources > 1 && (!each && q->matrices > 1))
        return false;
    if (o->n_sources == 1 && o->source[0].rows != of * span)
        return false;
    for (uint32_t i = 0; i < o->n_runs; i++) {
        plm_run *run = &o->run[i];
        run->start += at * span;
        int64_t last = run->start;
        for (int k = 0; k < 3; k++)
            last += (run->n[k] - 1) * run->step[k];
        if (o->source[run->source].cols != q->cols || last >= o->source[run->source].rows)
            return false;
    }
    return true;
}

static plm_status open_sources(const plm_weights *w, const plm_wanted *q, const rule *r,
                               int64_t matrix, plm_origin *o, bool *there, plm_error *err)
{
    memset(o, 0, sizeof *o);
    const char *end = ending(r, q);
    *there = end != NULL;
    for (size_t i = 0; i < 3 && *there && r->name[i] != NULL; i++) {
        const plm_weights_entry *e = locate(w, q, r->name[i], end, matrix);
        *there = e != NULL;
        if (e != NULL)
            PLM_TRY(plm_source_open(w, e, q->column, &o->source[o->n_sources++], err));
    }
    return PLM_OK;
}

/* Layers of the graph may carry widths that no product here can hold; the arch record's check
** bounds them (2^24 and heads 2^16), so the products above fit. */
plm_status plm_map_origin(const plm_weights *w, const plm_wanted *q, size_t index, int64_t matrix,
                          plm_origin *out, plm_error *err)
{
    char own[PLM_NAME_MAX + 2];
    rule r = rule_at(q, index, own);
    bool there;
    PLM_TRY(open_sources(w, q, &r, matrix, out, &there, err));
    if (!there)
        return plm_fail(
            err, PLM_E_NOT_FOUND,
            "missing tensor, weight %s: the file lacks part %lld of it; download it again", q->name,
            (long long)matrix);
    if (!lay_out(w, q, &r, matrix, out))
        return plm_fail(err, PLM_E_INVALID,
                        "shape, weight %s: tensor %.80s does not have the shape that the model's "
                        "widths give; the file is damaged",
                        q->name, out->source[0].e->t->name);
    return PLM_OK;
}

plm_status plm_map_rule(const plm_weights *w, const plm_wanted *q, size_t *index, plm_error *err)
{
    char own[PLM_NAME_MAX + 2];
    plm_origin o;
    const char *misfit = NULL;
    for (*index = 0; *index <= RULES; (*index)++) {
        rule r = rule_at(q, *index, own);
        bool there = false;
        if (r.format != (w->gguf ? FORMAT_G : FORMAT_H) || !flags_allow(r.flags, q->l))
            continue;
        PLM_TRY(open_sources(w, q, &r, 0, &o, &there, err));
        if (there && lay_out(w, q, &r, 0, &o))
            return PLM_OK;
        if (there && misfit == NULL)
            misfit = o.source[0].e->t->name;
    }
    if (misfit != NULL)
        return plm_fail(err, PLM_E_INVALID,
                        "shape, weight %s: tensor %.80s does not have the shape that the model's "
                        "widths give; the file is damaged",
                        q->name, misfit);
    return plm_fail(
        err, PLM_E_NOT_FOUND,
        "missing tensor, weight %s: the files have none that could be it; download them "
        "again",
        q->name);
}
