/* flat.h - a graph as backends see it, and back.
**
** plm_flat_make lays a planned graph out as include/plimsoll/backend.h says: numbers of the contract in
** place of enumerations, every value with its storage, strides and offset. plm_flat_graph makes a graph
** of such a view again, for a backend that is built on core/ir (the reference): nothing gets to it that
** a plugin would not see. */
#ifndef PLM_HOST_FLAT_H
#define PLM_HOST_FLAT_H
#include "core/ir/op.h"
#include "plimsoll/backend.h"

typedef struct plm_flat {
    plm_backend_graph view; /* points into the arrays below and to names of the graph */
    plm_backend_value *values;
    plm_backend_node *nodes;
    plm_backend_dim *dims;
    plm_backend_attr *attrs;
    uint32_t *edges;
    int64_t *sym_max;
} plm_flat;

/* How a weight will be bound: planes of a piece, and pieces (1 unless a stack lies in pieces). */
typedef struct plm_flat_binding {
    uint32_t planes, pieces;
} plm_flat_binding;

/* plan: of the same graph. binding: by value, NULL = one plane in one piece each. The graph must outlive
** the flat form. PLM_E_UNSUPPORTED names a value that cannot be laid out (a reshape that would have to
** move elements, a dim that depends on the step inside a row). Heap; fini also after a failure. */
plm_status plm_flat_make(const plm_graph *g, const plm_memory_plan *plan,
                         const plm_flat_binding *binding, uint32_t block_tokens, plm_flat *out,
                         plm_error *err) PLM_MUST_USE;
void plm_flat_fini(plm_flat *f);

/* The graph of a view: values, nodes, attributes and dims with the same indices; names are left out, and
** outputs. Numbers that this build does not know are PLM_E_UNSUPPORTED, indices out of range
** PLM_E_INVALID. out is initialised, and empty after a failure. */
plm_status plm_flat_graph(const plm_backend_graph *view, plm_graph *out, plm_error *err)
    PLM_MUST_USE;

/* Storage type of a number of the contract, PLM_DT_COUNT = unknown. */
plm_dtype plm_flat_dtype(uint32_t number);
/* PLM_BACKEND_NONE when the contract has no number for it yet. */
uint32_t plm_flat_dtype_number(plm_dtype t);
uint32_t plm_flat_op_number(plm_op op);
uint32_t plm_flat_attr_number(plm_attr_key key);

#endif
