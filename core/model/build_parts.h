/* build_parts.h - what the files of the graph builder share. Private to core/model. */
#ifndef PLM_MODEL_BUILD_PARTS_H
#define PLM_MODEL_BUILD_PARTS_H
#include "core/model/build.h"

/* State of one build. Failures stick in the graph (plm_graph.error), so the emitters return values
** and never check; plm_graph_finish reports. */
typedef struct plm_builder {
    plm_graph *g;
    const plm_arch *a;
    const plm_build *b;
    const plm_recipe *recipe;
    const plm_layer *l;       /* layer being emitted */
    int32_t layer;            /* its index, -1 outside layers */
    plm_dim t, s, r, c;       /* T, S, R, C */
    plm_value_id pos;         /* positions of the tokens */
    plm_value_id kv[PLM_LAYERS_MAX][2]; /* newest version of each layer's caches */
} plm_builder;

/* Constant dim, and a product of a symbol's dim and a constant. */
plm_dim plm_emit_const(plm_builder *x, int64_t n);

/* Weight "blk.<layer>.<name>" (or "<name>" outside layers) of rank 1 .. 3; its type is the recipe's. */
plm_value_id plm_emit_vector(plm_builder *x, plm_role role, const char *name, int64_t n);
plm_value_id plm_emit_matrix(plm_builder *x, plm_role role, const char *name, int64_t rows,
                             int64_t cols);
plm_value_id plm_emit_stack(plm_builder *x, plm_role role, const char *name, int64_t count,
                            int64_t rows, int64_t cols);
/* State of a layer, f32 unless it is a cache. */
plm_value_id plm_emit_state(plm_builder *x, const char *name, plm_dtype t, uint32_t rank,
                            const plm_dim *dim);

/* y = x w^T (+ bias) with a fresh weight [n, k]. */
plm_value_id plm_emit_linear(plm_builder *x, plm_value_id in, plm_role role, const char *name,
                             int64_t n, int64_t k, bool bias);
/* The model's norm with fresh weights over the last dim of n columns. */
plm_value_id plm_emit_norm(plm_builder *x, plm_value_id in, const char *name, int64_t n);
/* RMS norm with a fresh weight, whatever the model's norm is. */
plm_value_id plm_emit_rms(plm_builder *x, plm_value_id in, const char *name, int64_t n);
plm_value_id plm_emit_binary(plm_builder *x, plm_op op, plm_value_id a, plm_value_id b);
plm_value_id plm_emit_unary(plm_builder *x, plm_value_id in, plm_fn fn);
/* Columns start .. start + count of a dim. */
plm_value_id plm_emit_slice(plm_builder *x, plm_value_id in, int64_t axis, int64_t start,
                            int64_t count);
/* [T, d1, d2] of [T, d1 * d2]; [T, d1] when d2 is 0. */
plm_value_id plm_emit_heads(plm_builder *x, plm_value_id in, int64_t d1, int64_t d2);
plm_value_id plm_emit_rope(plm_builder *x, plm_value_id in, const plm_rope *r, int64_t dims);
/* Links; nothing is emitted for one rank. */
plm_value_id plm_emit_link(plm_builder *x, plm_op op, plm_value_id in, int64_t ranks,
                           int64_t axis);
/* gate, up and down with the layer's function. width: of this rank; hidden: in and out. */
plm_value_id plm_emit_glu(plm_builder *x, plm_value_id gate, plm_value_id up);

/* The two halves of a layer: [T, hidden] -> [T, hidden], all-reduced over tp. */
plm_value_id plm_emit_attention(plm_builder *x, plm_value_id in);   /* build_attn.c */
plm_value_id plm_emit_recurrence(plm_builder *x, plm_value_id in);  /* build_linear.c */
plm_value_id plm_emit_dense(plm_builder *x, plm_value_id in);       /* build_ffn.c */
plm_value_id plm_emit_moe(plm_builder *x, plm_value_id in);

#endif
