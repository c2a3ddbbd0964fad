/* oracle.h - the oracles of ops.def, and what they share.
**
** An oracle is the definition of an op written out in double precision: scalar loops over the doc
** line of its row, independent of every kernel and of the work rules. It is the judge of kernels,
** so it is kept obvious rather than quick. Declared in rules.h, each with the signature
** plm_oracle_fn (op.h):
** - in[] holds the node's inputs in order; an absent optional one has data NULL, or lies past n_in;
** - out[] is allocated by the caller with the shapes of the shape rule; every element is written;
** - shapes of operands are checked against each other and PLM_E_INVALID names op and operand;
** - a dim may be 0; a sum over nothing is 0;
** - a state's next version may be the same array as its input, and output 0 of an in-place op the
**   same as input 0;
** - PLM_E_NO_MEMORY when scratch is short. Thread-safe, no state of their own. */
#ifndef PLM_IR_ORACLE_H
#define PLM_IR_ORACLE_H
#include "core/ir/fn.h"
#include "core/ir/rules.h"

/* ---- checks shared by the oracles (oracle_common.c) ---- */
#define PLM_ANY ((int64_t)-1)
/* A shape to hold an operand against: rank and dims, PLM_ANY where any length will do. */
/* clang-format off */
#define PLM_SHAPE(...)                                                                             \
    (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                          \
        (const int64_t[]){__VA_ARGS__}
/* clang-format on */

/* The optional input i, NULL when the node does not have it. */
const plm_array *plm_oracle_optional(const plm_oracle_ctx *c, const plm_array *in, uint32_t i);
/* PLM_E_INVALID unless a is present with this rank and these dims. `what` names the operand. */
plm_status plm_oracle_shape(const plm_oracle_ctx *c, const plm_array *a, const char *what,
                            uint32_t rank, const int64_t *dim, plm_error *err) PLM_MUST_USE;
/* PLM_E_INVALID unless a is present with at least one dim and b has the same shape. */
plm_status plm_oracle_like(const plm_oracle_ctx *c, const plm_array *a, const plm_array *b,
                           const char *what, plm_error *err) PLM_MUST_USE;
/* PLM_E_INVALID unless a is present with rank 1 .. PLM_RANK_MAX and no negative dim. */
plm_status plm_oracle_present(const plm_oracle_ctx *c, const plm_array *a, const char *what,
                              plm_error *err) PLM_MUST_USE;
/* The integer in v when it is one within [lo, hi), else PLM_E_INVALID. */
plm_status plm_oracle_integer(const plm_oracle_ctx *c, double v, const char *what, int64_t lo,
                              int64_t hi, int64_t *out, plm_error *err) PLM_MUST_USE;
/* The sequence of token t, in [0, n_seq); PLM_E_INVALID when the context does not say. */
plm_status plm_oracle_sequence(const plm_oracle_ctx *c, int64_t t, int64_t n_seq, int64_t *out,
                               plm_error *err) PLM_MUST_USE;
/* PLM_E_INVALID: "op, what: why". */
plm_status plm_oracle_refuse(const plm_oracle_ctx *c, plm_error *err, const char *what,
                             const char *why) PLM_MUST_USE;
/* Copies a state to the array of its next version unless they are one. */
void plm_oracle_carry(const plm_array *state, plm_array *next);

/* Elements of an array; elements of one row (last dim); rows (all dims but the last). */
int64_t plm_array_count(const plm_array *a);
int64_t plm_array_cols(const plm_array *a);
int64_t plm_array_rows(const plm_array *a);

/* fn(x) of the functions of one number (silu, gelu, ...); false for the others (softmax, ...).
** fn as it stands in the attribute. gelu_erf: x Phi(x); gelu_tanh: its tanh form (Hendrycks and
** Gimpel, arXiv 1606.08415); relu2: max(x, 0)^2; sqrt_softplus: sqrt(ln(1 + e^x)). */
bool plm_oracle_fn1(int64_t fn, double x, double *y);
/* softmax of n numbers, y may be x. All -inf (or n = 0): zeros, no finite stand-in for a mask. */
void plm_oracle_softmax_row(const double *x, int64_t n, double *y);

/* Angles of the rotary embedding: inverse frequencies (dims/2 of them) of a ROPE node after
** scaling, for a sequence of seq_len tokens (matters for dynamic alone). factors: NULL or dims/2
** divisors. */
plm_status plm_oracle_rope_freq(const plm_oracle_ctx *c, int64_t dims, int64_t seq_len,
                                const double *factors, double *inv_freq,
                                plm_error *err) PLM_MUST_USE;

#endif
