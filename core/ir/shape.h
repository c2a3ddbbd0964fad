/* shape.h - patterns of shapes, which most shape rules are made of.
**
** A pattern has a word for each input, a letter for each dim: "Tk nk ?n" is x[T,k], w[n,k] and an
** optional bias[n]. A letter stands for one length in all words; a digit for that length; a `.` in
** front for any leading dims, the same in all words. `?` before a word marks an optional input, `#`
** one that holds integers. A result has a word for each output; `#` makes it i32 unless an integer
** type was asked, and `=2` makes it the next version of the state in input 2 (no output when that
** input is absent).
*/
#ifndef PLM_IR_SHAPE_H
#define PLM_IR_SHAPE_H
#include "core/ir/rules.h"

typedef struct plm_bind {
    plm_dim dim[128]; /* by letter; PLM_DIM_NONE = not yet bound */
    plm_dim lead[PLM_RANK_MAX];
    uint32_t n_lead;
    bool lead_bound;
} plm_bind;

void plm_bind_init(plm_bind *b);
/* Holds the inputs of n against the pattern; binds its letters. */
plm_status plm_bind_match(plm_bind *b, const plm_graph *g, const plm_node *n, const char *pattern,
                          plm_error *err) PLM_MUST_USE;
/* Binds a letter to a constant. */
plm_status plm_bind_const(plm_bind *b, plm_graph *g, char letter, int64_t value, plm_error *err)
    PLM_MUST_USE;
/* Fills out[] from the result's words. */
plm_status plm_bind_result(const plm_bind *b, const plm_graph *g, const plm_node *n,
                           const char *result, plm_value *out, plm_error *err) PLM_MUST_USE;

/* Value of input i, NULL when absent. */
const plm_value *plm_shape_input(const plm_graph *g, const plm_node *n, uint32_t i);
/* PLM_OK when d is an expression, else the reason there is none. */
plm_status plm_shape_dim(const plm_graph *g, plm_dim d, plm_error *err) PLM_MUST_USE;
/* PLM_E_INVALID unless the attribute, when the node has it, equals the constant d. */
plm_status plm_shape_agrees(const plm_graph *g, const plm_node *n, plm_attr_key key, plm_dim d,
                            plm_error *err) PLM_MUST_USE;
/* The attribute, which the node must have, in [lo, hi]. */
plm_status plm_shape_need(const plm_graph *g, const plm_node *n, plm_attr_key key, int64_t lo,
                          int64_t hi, int64_t *v, plm_error *err) PLM_MUST_USE;
/* "4096", "T" or "expression" for messages. */
const char *plm_shape_dim_text(const plm_graph *g, plm_dim d, char buf[24]);
bool plm_shape_is_index(plm_dtype t); /* a plain integer type of 16 bits or more */

#endif
