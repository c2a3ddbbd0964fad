/* work.h - the work of attention in closed form, for the work rules and for cost programs that
** resolve a node's attributes once and evaluate it for many batches. */
#ifndef PLM_IR_WORK_H
#define PLM_IR_WORK_H
#include "core/ir/op.h"

/* What an ATTENTION or INDEX node's work depends on besides the segments. 0 = absent. */
typedef struct plm_attention_shape {
    double heads, dk, dv;
    double window, chunk, top_k, ratio;
    bool causal;
    double flop_per_pair, exp_per_pair; /* a pair: one query token, one key; all heads together */
    double vector_per_pair;
    double key_bytes;                   /* of one kept key, and its value, over the kv heads */
} plm_attention_shape;

/* Attributes and operand types of an ATTENTION or INDEX node. */
void plm_attention_resolve(const plm_graph *g, const plm_node *n, plm_attention_shape *s);
/* Query-key pairs of one sequence with q new tokens after c cached ones, exact:
**   causal      q c + q (q + 1) / 2
**   window w    sum over positions of min(position + 1, w); top_k alike
**   chunk       sum of position mod chunk + 1
**   ratio r     sum of min(floor((position + 1) / r), top_k); a window keeps the entries whose last
**               token is in it */
double plm_attention_pairs(const plm_attention_shape *s, double q, double c);
/* Distinct keys that the q tokens attend together: what is read once a sequence. */
double plm_attention_keys(const plm_attention_shape *s, double q, double c);
/* Adds the FLOP, exp and KV bytes of one segment to *w (not the traffic of q and output). */
void plm_attention_add(const plm_attention_shape *s, const plm_segment *seg, plm_work *w);

#endif
