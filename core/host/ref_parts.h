/* ref_parts.h - what the files of the reference backend share. Private to core/host.
**
** ref.c: the table, memory, order. ref_load.c: operands as doubles, and back. ref_exec.c: compile, and a
** step node by node. ref_node.c: nodes that read a part of an operand. */
#ifndef PLM_HOST_REF_PARTS_H
#define PLM_HOST_REF_PARTS_H
#include "core/host/flat.h"
#include "core/ir/oracle.h"

struct plm_backend_buffer {
    unsigned char *data;
    uint64_t bytes;
    bool own;
};

struct plm_backend_exec {
    plm_graph g; /* made from the view; for the oracles, which ask it for attributes and types */
    plm_backend_value *values;
    uint32_t n_values, n_slots, block_tokens;
    /* By value: numbers of a quantised activation, whose scales have no place in the arena; NULL. */
    plm_array *side;
};

/* One step under way. */
typedef struct ref_step {
    plm_backend_exec *x;
    const plm_backend_run *run;
    const plm_backend_step *step;
    const plm_node *n; /* the node being run */
    int64_t *token_seq, *token_pos, *token_slot; /* [T], as the oracles want them */
} ref_step;

/* ---- ref_load.c ---- */
/* Shape of a value in this step, without data. */
plm_array ref_shape(const ref_step *s, plm_value_id v);
/* Room for an array of that shape, zeroed; PLM_E_NO_MEMORY. Freed by ref_drop. */
plm_status ref_room(plm_array *a, plm_error *err) PLM_MUST_USE;
void ref_drop(plm_array *a, size_t n);
/* Rows row[0 .. n) of the first dim of a value (row NULL: rows 0 .. n) as an array of its own. A negative
** row gives zeros. */
plm_status ref_load_rows(const ref_step *s, plm_value_id v, const int64_t *row, int64_t n,
                         plm_array *out, plm_error *err) PLM_MUST_USE;
/* All of it. PLM_NONE gives an array without data. */
plm_status ref_load(const ref_step *s, plm_value_id v, plm_array *out, plm_error *err) PLM_MUST_USE;
/* The reverse; rounds to the value's type. Negative rows are skipped. */
plm_status ref_store_rows(const ref_step *s, plm_value_id v, const int64_t *row, int64_t n,
                          const plm_array *a, plm_error *err) PLM_MUST_USE;
plm_status ref_store(const ref_step *s, plm_value_id v, const plm_array *a,
                     plm_error *err) PLM_MUST_USE;
/* Can values of this type be made by a node, or kept as a state? */
bool ref_can_store(plm_dtype t);
/* Rows row .. row + n of matrix m of a weight: [n, cols]. */
plm_status ref_weight_rows(const ref_step *s, plm_value_id v, int64_t m, int64_t row, int64_t n,
                           double *out, plm_error *err) PLM_MUST_USE;
bool ref_is_weight(const ref_step *s, plm_value_id v);

/* ---- ref_node.c ---- */
/* Context of the oracles for the step's tokens. */
plm_oracle_ctx ref_context(const ref_step *s);
plm_status ref_embed(const ref_step *s, plm_error *err) PLM_MUST_USE;
plm_status ref_linear(const ref_step *s, plm_error *err) PLM_MUST_USE;
plm_status ref_linear_grouped(const ref_step *s, plm_error *err) PLM_MUST_USE;
plm_status ref_kv_write(const ref_step *s, plm_error *err) PLM_MUST_USE;
plm_status ref_attend(const ref_step *s, plm_error *err) PLM_MUST_USE;
plm_status ref_recur(const ref_step *s, plm_error *err) PLM_MUST_USE;
plm_status ref_plain(const ref_step *s, plm_error *err) PLM_MUST_USE;

#endif
