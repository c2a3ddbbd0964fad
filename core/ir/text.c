/* The words of the text form, and the printer. The parser is parse.c. */
#include "core/ir/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/ir/fn.h"

#define WORD(id, name) name,
#define WORD_DOC(id, name, doc) name,
static const char *const sym_word[] = {PLM_SYM_MAP(WORD_DOC)};
static const char *const role_word[] = {PLM_ROLE_MAP(WORD)};
static const char *const fn_word[] = {PLM_FN_MAP(WORD)};
#undef WORD
#undef WORD_DOC
static const char *const dim_op_word[] = {[PLM_DIM_ADD] = "add", [PLM_DIM_MUL] = "mul",
                                          [PLM_DIM_CEILDIV] = "ceildiv", [PLM_DIM_MIN] = "min",
                                          [PLM_DIM_MAX] = "max"};
static const char *const kind_word[] = {"input", "weight", "state", NULL};
static const char *const scaling_word[PLM_ROPE_SCALING_COUNT] = {"none", "linear",   "llama3",
                                                                 "yarn", "longrope", "dynamic"};

#define PICK(words, i)                                                                             \
    ((i) >= 0 && (i) < (int64_t)(sizeof(words) / sizeof((words)[0])) ? (words)[i] : NULL)

const char *plm_text_sym(int64_t sym)
{
    return PICK(sym_word, sym);
}

const char *plm_text_dim_op(int64_t op)
{
    return PICK(dim_op_word, op);
}

const char *plm_text_role(int64_t role)
{
    return PICK(role_word, role);
}

const char *plm_text_kind(int64_t kind)
{
    return PICK(kind_word, kind);
}

const char *plm_text_enum(plm_attr_key key, int64_t v)
{
    if (key == PLM_ATTR_FN)
        return PICK(fn_word, v);
    if (key == PLM_ATTR_ROPE_SCALING)
        return PICK(scaling_word, v);
    return NULL;
}

int64_t plm_text_find(const char *(*word)(int64_t), int64_t count, const char *text)
{
    for (int64_t i = 0; i < count; i++) {
        const char *w = word(i);
        if (w != NULL && strcmp(w, text) == 0)
            return i;
    }
    return -1;
}

int64_t plm_text_find_enum(plm_attr_key key, const char *text)
{
    for (int64_t i = 0; plm_text_enum(key, i) != NULL; i++)
        if (strcmp(plm_text_enum(key, i), text) == 0)
            return i;
    return -1;
}

/* ---- printing ---- */

typedef struct printer {
    const plm_graph *g;
    char *text;
    size_t used, room;
    bool failed;         /* memory was short, or the text too long */
    uint32_t *dim_no;    /* by dim: number of a composite expression */
    uint32_t *value_no;  /* by value: number of a node's output */
} printer;

PLM_PRINTF(2, 3) static void put(printer *p, const char *fmt, ...)
{
    if (p->failed)
        return;
    for (int again = 0; again < 2; again++) {
        va_list args;
        va_start(args, fmt);
        int n = vsnprintf(p->text + p->used, p->room - p->used, fmt, args);
        va_end(args);
        if (n >= 0 && (size_t)n < p->room - p->used) {
            p->used += (size_t)n;
            return;
        }
        size_t room = (p->room + (n < 0 ? 0 : (size_t)n) + 1) * 2;
        char *text = n < 0 || room > (size_t)PLM_GRAPH_TEXT_MAX * 4 ? NULL
                                                                   : plm_realloc(p->text, room);
        if (text == NULL)
            break;
        p->text = text;
        p->room = room;
    }
    p->failed = true;
}

/* The shortest decimal that reads back as the same number. */
static void put_real(printer *p, double v)
{
    char text[40] = "";
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    put(p, "%s", text);
}

static void put_dim(printer *p, plm_dim d)
{
    const plm_dim_node *n = &p->g->dims.items[d];
    if (n->op == PLM_DIM_CONST)
        put(p, "%lld", (long long)n->k);
    else if (n->op == PLM_DIM_SYM)
        put(p, "%s", plm_text_sym(n->k));
    else
        put(p, "%%%u", p->dim_no[d]);
}

static void put_type(printer *p, const plm_value *v)
{
    put(p, ":%s[", plm_dtype_get(v->dtype)->name);
    for (uint32_t i = 0; i < v->rank; i++) {
        if (i > 0)
            put(p, ",");
        put_dim(p, v->dim[i]);
    }
    put(p, "]");
}

static void put_ref(printer *p, plm_value_id id)
{
    if (id == PLM_NONE)
        put(p, "_");
    else if (p->g->values[id].kind == PLM_VALUE_NODE)
        put(p, "%%%u", p->value_no[id]);
    else
        put(p, "@%s", p->g->values[id].name);
}

static void put_dims(printer *p)
{
    const plm_dims *d = &p->g->dims;
    uint32_t number = 0;
    for (size_t i = 0; i < PLM_SYM_COUNT; i++)
        put(p, "sym %s = %lld..%lld\n", plm_text_sym((int64_t)i), (long long)d->lo[i],
            (long long)d->hi[i]);
    for (size_t i = 0; i < d->count; i++) {
        const plm_dim_node *n = &d->items[i];
        if (n->op == PLM_DIM_CONST || n->op == PLM_DIM_SYM)
            continue;
        p->dim_no[i] = number++;
        put(p, "dim %%%u = %s ", p->dim_no[i], plm_text_dim_op(n->op));
        put_dim(p, n->a);
        put(p, " ");
        put_dim(p, n->b);
        put(p, "\n");
    }
}

static void put_values(printer *p)
{
    for (size_t i = 0; i < p->g->n_values; i++) {
        const plm_value *v = &p->g->values[i];
        if (v->kind == PLM_VALUE_NODE)
            continue;
        put(p, "%s @%s", plm_text_kind(v->kind), v->name);
        put_type(p, v);
        if (v->role != PLM_ROLE_NONE)
            put(p, " role=%s", plm_text_role(v->role));
        if (v->layer >= 0)
            put(p, " layer=%d", v->layer);
        put(p, "\n");
    }
}

static void put_attrs(printer *p, const plm_node *n)
{
    for (uint32_t i = 0; i < n->n_attr; i++) {
        const plm_attr *a = &p->g->attrs[n->attr + i];
        put(p, "%s%s=", i > 0 ? ", " : " {", plm_attr_name(a->key));
        if (plm_attr_type(a->key) == 'F')
            put_real(p, a->v.f);
        else if (plm_text_enum(a->key, a->v.i) != NULL)
            put(p, "%s", plm_text_enum(a->key, a->v.i));
        else
            put(p, "%lld", (long long)a->v.i);
    }
    if (n->n_attr > 0)
        put(p, "}");
}

static void put_nodes(printer *p)
{
    uint32_t number = 0;
    for (size_t i = 0; i < p->g->n_nodes; i++) {
        const plm_node *n = &p->g->nodes[i];
        for (uint32_t j = 0; j < n->n_out; j++) {
            p->value_no[n->out[j]] = number;
            put(p, "%s%%%u", j > 0 ? ", " : "", number++);
            put_type(p, &p->g->values[n->out[j]]);
        }
        put(p, " = %s(", plm_op_get(n->op)->name);
        for (uint32_t j = 0; j < n->n_in; j++) {
            put(p, "%s", j > 0 ? ", " : "");
            put_ref(p, n->in[j]);
        }
        put(p, ")");
        put_attrs(p, n);
        if (n->layer >= 0)
            put(p, " layer=%d", n->layer);
        if (n->group > 0)
            put(p, " group=%u", n->group);
        put(p, "\n");
    }
}

static void put_outputs(printer *p)
{
    for (size_t i = 0; i < p->g->n_outputs; i++) {
        const plm_value *v = &p->g->values[p->g->outputs[i]];
        put(p, "output ");
        put_ref(p, p->g->outputs[i]);
        if (v->kind == PLM_VALUE_NODE && v->name != NULL)
            put(p, " %s", v->name);
        put(p, "\n");
    }
}

plm_status plm_graph_print(const plm_graph *g, char **text, plm_error *err)
{
    *text = NULL;
    PLM_TRY(plm_graph_verify(g, err)); /* the printer follows indices without a look */
    printer p = {.g = g, .room = 4096};
    p.text = plm_malloc(p.room);
    p.dim_no = plm_calloc(g->dims.count, sizeof *p.dim_no);
    p.value_no = plm_calloc(g->n_values, sizeof *p.value_no);
    p.failed = p.text == NULL || p.dim_no == NULL || p.value_no == NULL;
    if (!p.failed) {
        p.text[0] = '\0';
        put_dims(&p);
        put_values(&p);
        put_nodes(&p);
        put_outputs(&p);
    }
    plm_free(p.dim_no);
    plm_free(p.value_no);
    if (p.failed) {
        plm_free(p.text);
        return plm_fail_memory(err, "the text of a graph");
    }
    *text = p.text;
    return PLM_OK;
}
