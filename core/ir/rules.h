/* rules.h - the functions that ops.def names: shape rules, work rules, oracles.
**
** A row whose shape column says `linear` uses plm_shape_linear (shape.c), and so on for work (work.c)
** and oracle (oracle_*.c). `none` stands for no function: op.c replaces it by NULL.
*/
#ifndef PLM_IR_RULES_H
#define PLM_IR_RULES_H
#include "core/ir/op.h"

/* Functions shared by several rows are declared once for each row, which C allows.
**
** plm_shape_*: checks the inputs of n (already in graph order; the node itself is not yet in the
** graph) and fills rank and dim of out[0 .. n_out). dtype and alias come preset by the caller
** (plm_node_end, plm_graph_verify): out[0] the wanted dtype or that of input 0, further outputs that
** of input 0; the rule changes them where it knows better. May add dims to g->dims. PLM_E_INVALID
** names the operand; the caller puts node and op before it.
** plm_work_*: adds to *w, which the caller has zeroed. plm_oracle_*: see op.h. */
#define PLM_OP(id, name, min_in, max_in, n_out, flags, cls, shape, work, oracle, inputs, attrs,    \
               doc)                                                                                \
    plm_status plm_shape_##shape(plm_graph *g, const plm_node *n, plm_value *out, plm_error *err); \
    void plm_work_##work(const plm_graph *g, const plm_node *n, const int64_t *dim_values,         \
                         const plm_batch *b, plm_work *w);                                         \
    plm_status plm_oracle_##oracle(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,   \
                                   plm_error *err);
#include "core/ir/ops.def"
#undef PLM_OP

/* ---- shared by graph.c, verify.c and parse.c ---- */
/* Letters, digits and "._-/", 1 .. PLM_NAME_MAX of them. */
bool plm_name_valid(const char *name);
/* What can be said of a node without its shape rule: arity, inputs present and in the graph, number,
** type and range of its attributes. verify.c. The error does not name the node. */
plm_status plm_node_check(const plm_graph *g, const plm_node *n, plm_error *err) PLM_MUST_USE;
/* plm_node_check and the shape rule: sets n->n_out and out[0 .. n_out) (producer PLM_NONE, name
** NULL). out_dtype as in plm_node_end. The error does not name the node. */
plm_status plm_node_infer(plm_graph *g, plm_node *n, plm_dtype out_dtype,
                          plm_value out[PLM_OUT_MAX], plm_error *err) PLM_MUST_USE;
/* Attributes of n in the graph, known to its op, each once and in its range. attr.c. */
plm_status plm_attrs_check(const plm_graph *g, const plm_node *n, plm_error *err) PLM_MUST_USE;
/* Name and type ('I' or 'F') of an attribute; key < PLM_ATTR_KEYS. */
const char *plm_attr_name(plm_attr_key key);
char plm_attr_type(plm_attr_key key);

#endif
