#include "core/ir/dim.h"

#include <string.h>

#include "core/base/mem.h"

/* Values of a small pool fit the stack when one expression is evaluated. */
#define EVAL_ON_STACK 512

void plm_dims_init(plm_dims *p)
{
    memset(p, 0, sizeof *p);
    for (int i = 0; i < PLM_SYM_COUNT; i++)
        p->hi[i] = INT32_MAX;
}

void plm_dims_fini(plm_dims *p)
{
    plm_free(p->items);
    plm_free(p->table);
    plm_dims_init(p);
}

/* ---- interning ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

static uint64_t hash_node(const plm_dim_node *n)
{
    return mix(mix(mix((uint64_t)n->op + 1, n->a), n->b), (uint64_t)n->k);
}

/* Place of n in the table, or the free place where it belongs. Room is a power of two > count. */
static uint32_t *find(const plm_dims *p, const plm_dim_node *n)
{
    size_t mask = p->table_room - 1;
    for (size_t i = (size_t)hash_node(n) & mask;; i = (i + 1) & mask) {
        uint32_t at = p->table[i];
        if (at == UINT32_MAX)
            return &p->table[i];
        const plm_dim_node *m = &p->items[at];
        if (m->op == n->op && m->a == n->a && m->b == n->b && m->k == n->k)
            return &p->table[i];
    }
}

static bool grow_table(plm_dims *p)
{
    size_t room = p->table_room ? p->table_room * 2 : 64;
    uint32_t *table = plm_malloc(room * sizeof *table);
    if (table == NULL)
        return false;
    plm_free(p->table);
    p->table = table;
    p->table_room = room;
    for (size_t i = 0; i < room; i++)
        table[i] = UINT32_MAX;
    for (size_t i = 0; i < p->count; i++)
        *find(p, &p->items[i]) = (uint32_t)i;
    return true;
}

static bool grow_items(plm_dims *p)
{
    size_t room = p->room ? p->room * 2 : 32;
    plm_dim_node *items = plm_realloc(p->items, room * sizeof *items);
    if (items == NULL)
        return false;
    p->items = items;
    p->room = room;
    return true;
}

static plm_dim intern(plm_dims *p, plm_dim_node n)
{
    if (p->table_room > 0) {
        uint32_t at = *find(p, &n);
        if (at != UINT32_MAX)
            return at;
    }
    if (p->count >= PLM_DIMS_MAX)
        return PLM_DIM_NONE;
    if (((p->count + 1) * 4 > p->table_room * 3 && !grow_table(p)) ||
        (p->count == p->room && !grow_items(p))) {
        p->no_memory = true;
        return PLM_DIM_NONE;
    }
    p->items[p->count] = n;
    *find(p, &n) = (uint32_t)p->count;
    return (plm_dim)p->count++;
}

plm_dim plm_dim_const(plm_dims *p, int64_t value)
{
    if (value < 0)
        return PLM_DIM_NONE;
    return intern(p, (plm_dim_node){PLM_DIM_CONST, PLM_DIM_NONE, PLM_DIM_NONE, value});
}

plm_dim plm_dim_sym(plm_dims *p, plm_sym sym)
{
    if ((unsigned)sym >= PLM_SYM_COUNT)
        return PLM_DIM_NONE;
    return intern(p, (plm_dim_node){PLM_DIM_SYM, PLM_DIM_NONE, PLM_DIM_NONE, (int64_t)sym});
}

/* ---- folding ---- */

static bool is_const(const plm_dims *p, plm_dim d, int64_t *value)
{
    *value = p->items[d].k;
    return p->items[d].op == PLM_DIM_CONST;
}

/* a op b of numbers >= 0; false when it does not fit. x / 0 is refused, eval saturates instead. */
static bool fold(plm_dim_op op, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case PLM_DIM_ADD: return plm_add_i64(a, b, out);
    case PLM_DIM_MUL: return plm_mul_i64(a, b, out);
    case PLM_DIM_CEILDIV: *out = b > 0 ? plm_ceil_div(a, b) : 0; return b > 0;
    case PLM_DIM_MIN: *out = plm_min_i64(a, b); return true;
    case PLM_DIM_MAX: *out = plm_max_i64(a, b); return true;
    case PLM_DIM_CONST:
    case PLM_DIM_SYM: break;
    }
    return false;
}

/* Operands of commutative operators stand in one order that does not depend on when they entered
** the pool, so that a printed and parsed graph gets the same expressions: symbols by number, then
** expressions by age, then the constant. */
static int order_of(const plm_dim_node *n)
{
    return n->op == PLM_DIM_SYM ? 0 : n->op == PLM_DIM_CONST ? 2 : 1;
}

static bool out_of_order(const plm_dims *p, plm_dim a, plm_dim b)
{
    const plm_dim_node *na = &p->items[a], *nb = &p->items[b];
    int oa = order_of(na), ob = order_of(nb);
    if (oa != ob)
        return oa > ob;
    return oa == 0 ? na->k > nb->k : a > b;
}

/* x op c with constant c where that is x or a constant: x+0, x*1, x*0, max(x, 0), min(x, 0),
** ceil(x/1). False when nothing folds. */
static bool fold_right(plm_dims *p, plm_dim_op op, plm_dim x, int64_t c, plm_dim *out)
{
    bool keep = (op == PLM_DIM_ADD && c == 0) || (op == PLM_DIM_MUL && c == 1) ||
                (op == PLM_DIM_CEILDIV && c == 1) || (op == PLM_DIM_MAX && c == 0);
    bool zero = (op == PLM_DIM_MUL || op == PLM_DIM_MIN) && c == 0;
    if (keep)
        *out = x;
    else if (zero)
        *out = plm_dim_const(p, 0);
    return keep || zero;
}

plm_dim plm_dim_make(plm_dims *p, plm_dim_op op, plm_dim a, plm_dim b)
{
    if (a >= p->count || b >= p->count || op < PLM_DIM_ADD || op > PLM_DIM_MAX)
        return PLM_DIM_NONE;
    int64_t va, vb, v;
    if (op != PLM_DIM_CEILDIV && out_of_order(p, a, b)) {
        plm_dim swap = a;
        a = b;
        b = swap;
    }
    bool ca = is_const(p, a, &va), cb = is_const(p, b, &vb);
    if (ca && cb)
        return fold(op, va, vb, &v) ? plm_dim_const(p, v) : PLM_DIM_NONE;
    if (op == PLM_DIM_CEILDIV && cb && vb == 0)
        return PLM_DIM_NONE;
    if ((op == PLM_DIM_MIN || op == PLM_DIM_MAX) && a == b)
        return a;
    plm_dim out = PLM_DIM_NONE;
    if (cb && fold_right(p, op, a, vb, &out))
        return out;
    /* (x op c) op d = x op (c op d), so that T*8*16 and T*128 are one expression. For ceil the inner
    ** operator is a product of divisors: ceil(ceil(x/c)/d) = ceil(x/(c*d)). */
    const plm_dim_node *n = &p->items[a];
    /* ceil(x c / d) with d a divisor of c is x (c / d): a gathered dim scattered again is itself. */
    if (cb && op == PLM_DIM_CEILDIV && n->op == PLM_DIM_MUL && is_const(p, n->b, &va) &&
        va % vb == 0) {
        plm_dim x = n->a, c = plm_dim_const(p, va / vb);
        return c == PLM_DIM_NONE ? c : plm_dim_make(p, PLM_DIM_MUL, x, c);
    }
    if (cb && n->op == op && is_const(p, n->b, &va)) {
        plm_dim x = n->a;
        if (!fold(op == PLM_DIM_CEILDIV ? PLM_DIM_MUL : op, va, vb, &v))
            return PLM_DIM_NONE;
        plm_dim c = plm_dim_const(p, v);
        return c == PLM_DIM_NONE ? c : intern(p, (plm_dim_node){op, x, c, 0});
    }
    return intern(p, (plm_dim_node){op, a, b, 0});
}

/* ---- values ---- */

static int64_t eval_node(const plm_dim_node *n, const int64_t sym[PLM_SYM_COUNT],
                         const int64_t *done)
{
    int64_t v;
    if (n->op == PLM_DIM_CONST)
        return n->k;
    if (n->op == PLM_DIM_SYM)
        return plm_max_i64(sym[n->k], 0);
    int64_t a = done[n->a], b = done[n->b];
    if (n->op == PLM_DIM_CEILDIV && a == 0)
        return 0;
    return fold(n->op, a, b, &v) ? v : INT64_MAX;
}

void plm_dims_eval(const plm_dims *p, const int64_t sym[PLM_SYM_COUNT], int64_t *out)
{
    for (size_t i = 0; i < p->count; i++)
        out[i] = eval_node(&p->items[i], sym, out);
}

int64_t plm_dim_upper(const plm_dims *p, plm_dim d)
{
    if (d >= p->count)
        return INT64_MAX;
    if (p->items[d].op <= PLM_DIM_SYM)
        return eval_node(&p->items[d], p->hi, NULL);
    int64_t small[EVAL_ON_STACK], *v = small;
    if (d >= EVAL_ON_STACK && (v = plm_malloc(((size_t)d + 1) * sizeof *v)) == NULL)
        return INT64_MAX;
    for (size_t i = 0; i <= d; i++)
        v[i] = eval_node(&p->items[i], p->hi, v);
    int64_t upper = v[d];
    if (v != small)
        plm_free(v);
    return upper;
}

int64_t plm_dim_value(const plm_dims *p, plm_dim d)
{
    return d < p->count && p->items[d].op == PLM_DIM_CONST ? p->items[d].k : -1;
}
