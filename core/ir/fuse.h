/* fuse.h - who reads a value, with views looked through: shared by fusion, folding and planning. */
#ifndef PLM_IR_FUSE_H
#define PLM_IR_FUSE_H
#include "core/ir/graph.h"

/* The value that v is a view of (v itself when no view made it); PLM_NONE stays so. */
plm_value_id plm_fuse_source(const plm_graph *g, plm_value_id v);

/* Reads of each value by nodes that are no views, directly or through views; an output of the graph
** counts as one more read, at PLM_NONE. first and last: nodes of the first and last read. */
typedef struct plm_fuse_uses {
    uint32_t *count;
    plm_node_id *first, *last;
} plm_fuse_uses;
/* Heap arrays by value; fini also after a failure is harmless. */
plm_status plm_fuse_uses_make(const plm_graph *g, plm_fuse_uses *u, plm_error *err) PLM_MUST_USE;
void plm_fuse_uses_fini(plm_fuse_uses *u);

#endif
