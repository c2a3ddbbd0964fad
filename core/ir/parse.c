/* Parser of the text form. One pass, line by line, no recursion; everything a line names must have
** been defined by an earlier one, so the graph is built with the same calls as any other, and shapes
** are checked by the ops' shape rules. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/vec.h"
#include "core/ir/text.h"

typedef struct parser {
    plm_graph *g;
    const char *at, *end; /* the rest of the line being read */
    size_t line;
    PLM_VEC(plm_dim) dims;          /* by number: %3 in a shape */
    PLM_VEC(plm_value_id) values;   /* by number: %3 as an operand */
    plm_map names;                  /* of values that no node makes */
    plm_error *err;
} parser;

/* Longest word: a name. */
#define WORD_ROOM (PLM_NAME_MAX + 1)

static plm_status fail(parser *p, const char *what, const char *why)
{
    return plm_fail(p->err, PLM_E_INVALID, "graph text, line %zu: %.60s: %s", p->line, what, why);
}

/* The graph's own failure, with the line before it. */
static plm_status fail_graph(parser *p)
{
    return plm_fail(p->err, p->g->error.code, "graph text, line %zu: %s", p->line,
                    p->g->error.text);
}

/* ---- characters and words ---- */

static void skip_blank(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r'))
        p->at++;
}

static bool accept(parser *p, char c)
{
    skip_blank(p);
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

static plm_status expect(parser *p, char c)
{
    const char what[] = {'\'', c, '\'', '\0'};
    return accept(p, c) ? PLM_OK : fail(p, what, "missing");
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '.' || c == '_' || c == '-' || c == '/' || c == '+';
}

/* The next word: letters, digits and "._-/+". */
static plm_status read_word(parser *p, char word[WORD_ROOM], const char *what)
{
    size_t n = 0;
    skip_blank(p);
    while (p->at < p->end && is_word_char(*p->at)) {
        if (n == WORD_ROOM - 1)
            return fail(p, what, "the word is too long");
        word[n++] = *p->at++;
    }
    word[n] = '\0';
    return n > 0 ? PLM_OK : fail(p, what, "missing");
}

static plm_status to_int(parser *p, const char *word, int64_t lo, int64_t hi, int64_t *v)
{
    char *end;
    errno = 0;
    long long n = strtoll(word, &end, 10);
    if (errno != 0 || end == word || *end != '\0' || n < lo || n > hi)
        return fail(p, word, "no integer, or out of its range");
    *v = n;
    return PLM_OK;
}

static plm_status read_int(parser *p, const char *what, int64_t lo, int64_t hi, int64_t *v)
{
    char word[WORD_ROOM];
    PLM_TRY(read_word(p, word, what));
    return to_int(p, word, lo, hi, v);
}

/* "key=" when it is next; leaves the place alone otherwise. */
static bool accept_key(parser *p, const char *key)
{
    const char *start = p->at;
    size_t n = strlen(key);
    skip_blank(p);
    if ((size_t)(p->end - p->at) > n && memcmp(p->at, key, n) == 0 && p->at[n] == '=') {
        p->at += n + 1;
        return true;
    }
    p->at = start;
    return false;
}

/* ---- dims and types ---- */

static plm_status checked_dim(parser *p, plm_dim d, const char *what, plm_dim *out)
{
    *out = d;
    if (d != PLM_DIM_NONE)
        return PLM_OK;
    if (p->g->dims.no_memory)
        return plm_fail_memory(p->err, "the dims of a graph");
    return fail(p, what, "too large, divided by 0, or one dim too many");
}

/* A number, a symbol, or %n. */
static plm_status read_dim(parser *p, plm_dim *out)
{
    char word[WORD_ROOM];
    int64_t v;
    if (accept(p, '%')) {
        PLM_TRY(read_int(p, "number of a dim", 0, (int64_t)p->dims.count - 1, &v));
        *out = p->dims.items[v];
        return PLM_OK;
    }
    PLM_TRY(read_word(p, word, "a dim"));
    int64_t sym = plm_text_find(plm_text_sym, PLM_SYM_COUNT, word);
    if (sym >= 0)
        return checked_dim(p, plm_dim_sym(&p->g->dims, (plm_sym)sym), word, out);
    PLM_TRY(to_int(p, word, 0, INT64_MAX, &v));
    return checked_dim(p, plm_dim_const(&p->g->dims, v), word, out);
}

/* ":bf16[T,4096]" */
static plm_status read_type(parser *p, plm_value *v)
{
    char word[WORD_ROOM];
    PLM_TRY(expect(p, ':'));
    PLM_TRY(read_word(p, word, "a type"));
    v->dtype = plm_dtype_by_name(word);
    if (v->dtype == PLM_DT_COUNT)
        return fail(p, word, "no such storage type");
    PLM_TRY(expect(p, '['));
    v->rank = 0;
    if (accept(p, ']'))
        return PLM_OK;
    do {
        if (v->rank == PLM_RANK_MAX)
            return fail(p, word, "more than 4 dims");
        PLM_TRY(read_dim(p, &v->dim[v->rank]));
        v->rank++;
    } while (accept(p, ','));
    return expect(p, ']');
}

/* ---- lines ---- */

/* sym T = 0..8192 */
static plm_status read_sym(parser *p)
{
    char word[WORD_ROOM];
    PLM_TRY(read_word(p, word, "a symbol"));
    int64_t sym = plm_text_find(plm_text_sym, PLM_SYM_COUNT, word), lo, hi;
    if (sym < 0)
        return fail(p, word, "no such symbol");
    PLM_TRY(expect(p, '='));
    PLM_TRY(read_word(p, word, "bounds"));
    char *dots = strstr(word, "..");
    if (dots == NULL)
        return fail(p, word, "bounds are lo..hi");
    *dots = '\0';
    PLM_TRY(to_int(p, word, 0, INT64_MAX, &lo));
    PLM_TRY(to_int(p, dots + 2, lo, INT64_MAX, &hi));
    p->g->dims.lo[sym] = lo;
    p->g->dims.hi[sym] = hi;
    return PLM_OK;
}

/* dim %3 = mul T 8 */
static plm_status read_dim_line(parser *p)
{
    char word[WORD_ROOM];
    int64_t number;
    plm_dim a, b, d;
    PLM_TRY(expect(p, '%'));
    PLM_TRY(read_int(p, "number of a dim", 0, PLM_DIMS_MAX - 1, &number));
    if ((size_t)number != p->dims.count)
        return fail(p, "dim", "numbers run from 0 without a gap");
    PLM_TRY(expect(p, '='));
    PLM_TRY(read_word(p, word, "an operator"));
    int64_t op = plm_text_find(plm_text_dim_op, PLM_DIM_MAX + 1, word);
    if (op < 0)
        return fail(p, word, "no such operator of dims");
    PLM_TRY(read_dim(p, &a));
    PLM_TRY(read_dim(p, &b));
    PLM_TRY(checked_dim(p, plm_dim_make(&p->g->dims, (plm_dim_op)op, a, b), word, &d));
    if (!plm_vec_push(&p->dims, d, PLM_DIMS_MAX))
        return plm_fail_memory(p->err, "a graph text");
    return PLM_OK;
}

/* " layer=3", absent = -1 */
static plm_status read_layer(parser *p, int32_t *layer)
{
    int64_t v = -1;
    if (accept_key(p, "layer"))
        PLM_TRY(read_int(p, "layer", 0, INT32_MAX, &v));
    *layer = (int32_t)v;
    return PLM_OK;
}

/* weight @blk.0.q:bf16[4096,4096] role=q layer=0 */
static plm_status read_value(parser *p, plm_value_kind kind)
{
    char name[WORD_ROOM], word[WORD_ROOM];
    plm_value v = {.role = PLM_ROLE_NONE};
    PLM_TRY(expect(p, '@'));
    PLM_TRY(read_word(p, name, "a name"));
    PLM_TRY(read_type(p, &v));
    if (accept_key(p, "role")) {
        PLM_TRY(read_word(p, word, "role"));
        int64_t role = plm_text_find(plm_text_role, PLM_ROLE_COUNT, word);
        if (role < 0)
            return fail(p, word, "no such role");
        v.role = (plm_role)role;
    }
    PLM_TRY(read_layer(p, &p->g->layer));
    plm_value_id id = plm_graph_value(p->g, kind, v.role, v.dtype, name, v.rank, v.dim);
    if (id == PLM_NONE)
        return fail_graph(p);
    const char *kept = p->g->values[id].name;
    switch (plm_map_add(&p->names, kept, strlen(kept), &id)) {
    case PLM_PUT_NEW: return PLM_OK;
    case PLM_PUT_OLD: return fail(p, name, "two values have this name");
    default: return plm_fail_memory(p->err, "a graph text");
    }
}

/* %3, @name or _ */
static plm_status read_ref(parser *p, bool optional, plm_value_id *id)
{
    char word[WORD_ROOM];
    int64_t v;
    if (accept(p, '%')) {
        PLM_TRY(read_int(p, "number of a value", 0, (int64_t)p->values.count - 1, &v));
        *id = p->values.items[v];
        return PLM_OK;
    }
    if (accept(p, '@')) {
        PLM_TRY(read_word(p, word, "a name"));
        return plm_map_get(&p->names, word, strlen(word), id) ? PLM_OK
                                                               : fail(p, word, "no such value");
    }
    *id = PLM_NONE;
    return optional && accept(p, '_') ? PLM_OK : fail(p, "operand", "must be %number or @name");
}

/* output %12 logits */
static plm_status read_output(parser *p)
{
    char name[WORD_ROOM];
    plm_value_id id;
    PLM_TRY(read_ref(p, false, &id));
    skip_blank(p);
    bool named = p->at < p->end;
    if (named) {
        PLM_TRY(read_word(p, name, "a name"));
        const plm_value *v = &p->g->values[id];
        if (v->kind != PLM_VALUE_NODE || v->name != NULL)
            return fail(p, name, "the value has a name already");
    }
    plm_graph_output(p->g, id, named ? name : NULL);
    return p->g->error.code == PLM_OK ? PLM_OK : fail_graph(p);
}

/* ---- nodes ---- */

static plm_status read_attr(parser *p)
{
    char name[WORD_ROOM], word[WORD_ROOM];
    int64_t v = -1;
    int key = 0;
    PLM_TRY(read_word(p, name, "an attribute"));
    while (key < PLM_ATTR_KEYS && strcmp(name, plm_attr_name((plm_attr_key)key)) != 0)
        key++;
    if (key == PLM_ATTR_KEYS)
        return fail(p, name, "no such attribute");
    PLM_TRY(expect(p, '='));
    PLM_TRY(read_word(p, word, name));
    if (plm_attr_type((plm_attr_key)key) == 'F') {
        char *end;
        double real = strtod(word, &end);
        if (end == word || *end != '\0' || !(real - real == 0))
            return fail(p, word, "no finite number");
        plm_node_real(p->g, (plm_attr_key)key, real);
        return PLM_OK;
    }
    v = plm_text_find_enum((plm_attr_key)key, word);
    if (v < 0)
        PLM_TRY(to_int(p, word, INT64_MIN, INT64_MAX, &v));
    plm_node_int(p->g, (plm_attr_key)key, v);
    return PLM_OK;
}

/* "(%1, @w, _) {eps=1e-06}" of the node that was begun */
static plm_status read_operands(parser *p)
{
    PLM_TRY(expect(p, '('));
    if (!accept(p, ')')) {
        do {
            plm_value_id id;
            PLM_TRY(read_ref(p, true, &id));
            plm_node_in(p->g, id);
            if (p->g->error.code != PLM_OK)
                return fail_graph(p);
        } while (accept(p, ','));
        PLM_TRY(expect(p, ')'));
    }
    if (!accept(p, '{'))
        return PLM_OK;
    do {
        PLM_TRY(read_attr(p));
        if (p->g->error.code != PLM_OK)
            return fail_graph(p);
    } while (accept(p, ','));
    return expect(p, '}');
}

/* The node just ended against the types written before its '='. */
static plm_status check_outs(parser *p, const plm_value *want, uint32_t n_want)
{
    const plm_node *n = &p->g->nodes[p->g->n_nodes - 1];
    if (n->n_out != n_want)
        return fail(p, plm_op_get(n->op)->name, "another number of outputs");
    for (uint32_t i = 0; i < n_want; i++) {
        const plm_value *got = &p->g->values[n->out[i]];
        bool same = got->rank == want[i].rank && got->dtype == want[i].dtype;
        for (uint32_t d = 0; same && d < got->rank; d++)
            same = got->dim[d] == want[i].dim[d];
        if (!same)
            return fail(p, plm_op_get(n->op)->name, "output is not what the op's rule makes it");
        if (!plm_vec_push(&p->values, n->out[i], PLM_GRAPH_VALUES_MAX))
            return plm_fail_memory(p->err, "a graph text");
    }
    return PLM_OK;
}

/* "%12:bf16[T,8], %13:i32[T,8] =" */
static plm_status read_results(parser *p, plm_value want[PLM_OUT_MAX], uint32_t *n_want)
{
    *n_want = 0;
    do {
        int64_t number;
        if (*n_want == PLM_OUT_MAX)
            return fail(p, "outputs", "too many");
        PLM_TRY(expect(p, '%'));
        PLM_TRY(read_int(p, "number of a value", 0, PLM_GRAPH_VALUES_MAX - 1, &number));
        if ((size_t)number != p->values.count + *n_want)
            return fail(p, "value", "numbers run from 0 without a gap");
        PLM_TRY(read_type(p, &want[*n_want]));
        ++*n_want;
    } while (accept(p, ','));
    return expect(p, '=');
}

/* %12:bf16[T,4096] = rms_norm(%11, @blk.0.attn_norm) {eps=1e-06} layer=0 group=2
** The layer is stamped when the node is ended, so operands are read first. */
static plm_status read_node(parser *p)
{
    char word[WORD_ROOM];
    plm_value want[PLM_OUT_MAX];
    uint32_t n_want;
    int64_t group = 0;
    PLM_TRY(read_results(p, want, &n_want));
    PLM_TRY(read_word(p, word, "an op"));
    plm_op op = plm_op_by_name(word);
    if (op == PLM_OP_COUNT)
        return fail(p, word, "no such op");
    plm_node_begin(p->g, op);
    PLM_TRY(read_operands(p));
    PLM_TRY(read_layer(p, &p->g->pending.layer));
    if (accept_key(p, "group"))
        PLM_TRY(read_int(p, "group", 1, UINT32_MAX, &group));
    p->g->pending.group = (uint32_t)group;
    (void)plm_node_end(p->g, want[0].dtype);
    return p->g->error.code == PLM_OK ? check_outs(p, want, n_want) : fail_graph(p);
}

static plm_status read_line(parser *p)
{
    char word[WORD_ROOM];
    skip_blank(p);
    if (p->at == p->end || *p->at == '#')
        return PLM_OK;
    if (*p->at == '%') {
        PLM_TRY(read_node(p));
    } else {
        PLM_TRY(read_word(p, word, "line"));
        int64_t kind = plm_text_find(plm_text_kind, PLM_VALUE_NODE, word);
        if (kind >= 0)
            PLM_TRY(read_value(p, (plm_value_kind)kind));
        else if (strcmp(word, "sym") == 0)
            PLM_TRY(read_sym(p));
        else if (strcmp(word, "dim") == 0)
            PLM_TRY(read_dim_line(p));
        else if (strcmp(word, "output") == 0)
            PLM_TRY(read_output(p));
        else
            return fail(p, word, "a line starts with sym, dim, input, weight, state, output or %");
    }
    skip_blank(p);
    return p->at == p->end || *p->at == '#' ? PLM_OK : fail(p, "line", "more text than belongs");
}

plm_status plm_graph_parse(const char *text, size_t bytes, plm_graph *out, plm_error *err)
{
    plm_error own;
    parser p = {.g = out, .err = err != NULL ? err : &own};
    plm_status status = PLM_OK;
    plm_graph_init(out);
    if (bytes > PLM_GRAPH_TEXT_MAX)
        return plm_fail(err, PLM_E_LIMIT, "graph text, %zu bytes: more than %u", bytes,
                        PLM_GRAPH_TEXT_MAX);
    plm_map_init(&p.names, PLM_GRAPH_VALUES_MAX);
    const char *next = text, *stop = text + bytes;
    while (status == PLM_OK && next < stop) {
        const char *newline = memchr(next, '\n', (size_t)(stop - next));
        p.at = next;
        p.end = newline != NULL ? newline : stop;
        p.line++;
        status = read_line(&p);
        next = newline != NULL ? newline + 1 : stop;
    }
    out->layer = -1;
    if (status == PLM_OK)
        status = plm_graph_finish(out, p.err);
    plm_map_fini(&p.names);
    plm_vec_fini(&p.dims);
    plm_vec_fini(&p.values);
    if (status != PLM_OK)
        plm_graph_fini(out);
    return status;
}
