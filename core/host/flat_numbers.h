/* flat_numbers.h - enumerations of core/ir <-> numbers of the contract. Private to core/host.
**
** A number never changes; an enumeration may be put in another order. Functions and rope scalings travel
** as values of attributes and must therefore have the same numbers on both sides: asserted. */
#ifndef PLM_HOST_FLAT_NUMBERS_H
#define PLM_HOST_FLAT_NUMBERS_H
#include "core/ir/fn.h"
#include "core/ir/op.h"
#include "plimsoll/backend.h"

/* Number + 1. */
static const uint32_t op_number[PLM_OP_COUNT] = {
#define X(id, number, name) [PLM_OP_##id] = number + 1,
    PLM_BACKEND_OP_MAP(X)
#undef X
};
static const plm_op op_of_number[PLM_BACKEND_OPS] = {
#define X(id, number, name) [number] = PLM_OP_##id,
    PLM_BACKEND_OP_MAP(X)
#undef X
};
static const uint32_t attr_number[PLM_ATTR_KEYS] = {
#define X(id, number, name, type) [PLM_ATTR_##id] = number + 1,
    PLM_BACKEND_ATTR_MAP(X)
#undef X
};
static const plm_attr_key attr_of_number[PLM_BACKEND_ATTRS] = {
#define X(id, number, name, type) [number] = PLM_ATTR_##id,
    PLM_BACKEND_ATTR_MAP(X)
#undef X
};
static const char attr_kind[PLM_BACKEND_ATTRS] = {
#define X(id, number, name, type) [number] = type,
    PLM_BACKEND_ATTR_MAP(X)
#undef X
};
static const uint32_t dtype_number[PLM_DT_COUNT] = {
#define X(id, number, name, block, bytes) [PLM_DT_##id] = number + 1,
    PLM_BACKEND_DTYPE_MAP(X)
#undef X
};
static const plm_dtype dtype_of_number[PLM_BACKEND_DTYPES] = {
#define X(id, number, name, block, bytes) [number] = PLM_DT_##id,
    PLM_BACKEND_DTYPE_MAP(X)
#undef X
};

/* What core/ir gains and has no number yet has 0 above and cannot be laid out; a test asks for it. */
_Static_assert((int)PLM_BACKEND_SYMS == (int)PLM_SYM_COUNT, "append to PLM_BACKEND_SYM_MAP");
#define X(id, number, name) _Static_assert((int)PLM_FN_##id == (number), "function " name);
PLM_BACKEND_FN_MAP(X)
#undef X
#define X(id, number, name) _Static_assert((int)PLM_ROPE_##id == (number), "scaling " name);
PLM_BACKEND_ROPE_MAP(X)
#undef X
#define X(id, number, name) _Static_assert((int)PLM_SYM_##id == (number), "symbol " name);
PLM_BACKEND_SYM_MAP(X)
#undef X
_Static_assert((int)PLM_BACKEND_DIM_CONST == (int)PLM_DIM_CONST &&
                   (int)PLM_BACKEND_DIM_SYM == (int)PLM_DIM_SYM &&
                   (int)PLM_BACKEND_DIM_ADD == (int)PLM_DIM_ADD &&
                   (int)PLM_BACKEND_DIM_MUL == (int)PLM_DIM_MUL &&
                   (int)PLM_BACKEND_DIM_CEILDIV == (int)PLM_DIM_CEILDIV &&
                   (int)PLM_BACKEND_DIM_MIN == (int)PLM_DIM_MIN &&
                   (int)PLM_BACKEND_DIM_MAX == (int)PLM_DIM_MAX,
               "dim ops");
_Static_assert((int)PLM_BACKEND_INPUT == (int)PLM_VALUE_INPUT &&
                   (int)PLM_BACKEND_WEIGHT == (int)PLM_VALUE_WEIGHT &&
                   (int)PLM_BACKEND_STATE == (int)PLM_VALUE_STATE &&
                   (int)PLM_BACKEND_MADE == (int)PLM_VALUE_NODE,
               "kinds of value");

#endif
