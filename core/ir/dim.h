/* dim.h - symbolic dimensions: an interned pool of expressions over the symbols of a step.
**
** Shapes, FLOP, bytes and memory are expressions of one pool; evaluating the pool once for a step
** (plm_dims_eval, some 50 entries) gives every shape of the graph. An index is smaller than those of
** the expressions made from it, so the pool evaluates in one pass.
*/
#ifndef PLM_IR_DIM_H
#define PLM_IR_DIM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

typedef uint32_t plm_dim; /* index in the pool; PLM_DIM_NONE = failed */
#define PLM_DIM_NONE UINT32_MAX
#define PLM_DIMS_MAX 65536u

typedef enum plm_sym {
#define PLM_SYM_MAP(X)                                                                             \
    X(T, "T", "tokens of this step")                                                               \
    X(S, "S", "sequences of this step")                                                            \
    X(R, "R", "rows whose logits are wanted")                                                      \
    X(E, "E", "(token, expert) pairs that this rank computes")                                     \
    X(C, "C", "token slots of the KV cache, all sequences together")
#define PLM_SYM_ENUM(id, name, doc) PLM_SYM_##id,
    PLM_SYM_MAP(PLM_SYM_ENUM)
#undef PLM_SYM_ENUM
    PLM_SYM_COUNT
} plm_sym;

typedef enum plm_dim_op {
    PLM_DIM_CONST, PLM_DIM_SYM, PLM_DIM_ADD, PLM_DIM_MUL, PLM_DIM_CEILDIV, PLM_DIM_MIN, PLM_DIM_MAX
} plm_dim_op;

typedef struct plm_dim_node {
    plm_dim_op op;
    plm_dim a, b;
    int64_t k; /* CONST: value; SYM: plm_sym */
} plm_dim_node;

typedef struct plm_dims {
    plm_dim_node *items;
    size_t count, room;
    uint32_t *table; /* interning: open addressing, UINT32_MAX = free */
    size_t table_room;
    int64_t lo[PLM_SYM_COUNT], hi[PLM_SYM_COUNT]; /* bounds of the symbols, 0 <= lo <= hi */
    bool no_memory; /* an expression failed because memory was short */
} plm_dims;

void plm_dims_init(plm_dims *p); /* bounds start as 0 .. 2^31 - 1 */
void plm_dims_fini(plm_dims *p);
/* Interned expression, folded where both sides are constant (x*1, x+0, min(x,x), ...).
** PLM_DIM_NONE when memory is short, a fold overflows, a constant is negative, a divisor is the
** constant 0, PLM_DIMS_MAX is reached, or an argument is PLM_DIM_NONE. */
plm_dim plm_dim_const(plm_dims *p, int64_t value);
plm_dim plm_dim_sym(plm_dims *p, plm_sym sym);
plm_dim plm_dim_make(plm_dims *p, plm_dim_op op, plm_dim a, plm_dim b);
/* out[0 .. p->count): value of each expression; sym: value of each symbol (below 0
** counts as 0). Saturates at INT64_MAX; ceil(0/0) is 0, ceil(x/0) INT64_MAX. */
void plm_dims_eval(const plm_dims *p, const int64_t sym[PLM_SYM_COUNT], int64_t *out);
/* Value of one expression at the upper bounds of the symbols; INT64_MAX also when d is PLM_DIM_NONE
** or a pool of more than 512 expressions leaves no memory for their values. */
int64_t plm_dim_upper(const plm_dims *p, plm_dim d);
/* The constant, or -1 when d is not a constant. */
int64_t plm_dim_value(const plm_dims *p, plm_dim d);

#endif
