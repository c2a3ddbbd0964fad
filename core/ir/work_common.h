/* work_common.h - what the work rules of work.c and work_seq.c share. */
#ifndef PLM_IR_WORK_COMMON_H
#define PLM_IR_WORK_COMMON_H
#include "core/base/mem.h"
#include "core/ir/work.h"

/* Elements, length of dim i (1 past the rank), and bytes of a value for evaluated dims. Bytes are
** exact; a shape that its storage type cannot hold is counted at the type's mean bits. */
double plm_work_elements(const plm_graph *g, plm_value_id v, const int64_t *dim_values);
double plm_work_dim(const plm_graph *g, plm_value_id v, uint32_t i, const int64_t *dim_values);
double plm_work_bytes(const plm_graph *g, plm_value_id v, const int64_t *dim_values);
/* Is v a state or a later version of one? */
bool plm_work_is_state(const plm_graph *g, plm_value_id v);
/* Input i, PLM_NONE when the node does not have it. */
plm_value_id plm_work_in(const plm_node *n, uint32_t i);
/* Adds input i to the weight or activation bytes read (a state to neither), and all outputs that are
** no state to the activation bytes written. */
void plm_work_read(const plm_graph *g, const plm_node *n, uint32_t i, const int64_t *dim_values,
                   plm_work *w);
void plm_work_write(const plm_graph *g, const plm_node *n, const int64_t *dim_values, plm_work *w);
/* Adds `elements` evaluations of a plm_fn. */
void plm_work_fn_add(int64_t fn, double elements, plm_work *w);

#endif
