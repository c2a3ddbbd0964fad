/* build_parts.h - what the files of the graph builder share. Private to core/model.
**
** build.c: entry, embedding, head, pipeline stages. build_emit.c: weights and small ops.
** build_layer.c: residual streams and norms around the halves of a layer. build_attn.c,
** build_latent.c, build_linear.c, build_ffn.c: the halves.
*/
#ifndef PLM_MODEL_BUILD_PARTS_H
#define PLM_MODEL_BUILD_PARTS_H
#include "core/model/build.h"

#define PLM_BUILD_MTP_MAX 64
#define PLM_BUILD_LAYERS (PLM_LAYERS_MAX + PLM_BUILD_MTP_MAX)

/* What later layers may read of a layer; newest versions, PLM_NONE where there is none. */
typedef struct plm_layer_kv {
    plm_value_id k, v;  /* caches */
    plm_value_id keys;  /* cache of the indexer */
    plm_value_id index; /* positions the indexer chose in this step */
} plm_layer_kv;

/* An activation and its quantised form. */
typedef struct plm_quantised {
    plm_value_id from, to;
    int64_t block;
} plm_quantised;

/* State of one build. Failures stick in the graph (plm_graph.error), so the emitters return values
** and never check; plm_graph_finish reports. */
typedef struct plm_builder {
    plm_graph *g;
    const plm_arch *a;
    const plm_build *b;
    const plm_recipe *recipe;
    const plm_layer *l; /* layer being emitted */
    int32_t layer;      /* its index, -1 outside layers; MTP modules follow the layers */
    plm_dim t, s, r, c; /* T, S, R, C */
    plm_value_id ids, pos, rows, ones, factors; /* inputs, made when first asked for */
    plm_value_id table;                         /* embedding, PLM_NONE until this stage has it */
    plm_value_id head, head_bias;
    plm_quantised quantised[4]; /* ring of the newest */
    uint32_t n_quantised;
    char name[PLM_NAME_MAX + 1]; /* "blk.<layer>." and what is being named */
    size_t prefix;
    plm_layer_kv kv[PLM_BUILD_LAYERS];
} plm_builder;

/* ---- build_emit.c ---- */
/* Begins layer `index` (-1 = outside layers): prefix of names, stamp of nodes. */
void plm_emit_at(plm_builder *x, int32_t index, const plm_layer *l);
plm_dim plm_emit_const(plm_builder *x, int64_t n);

/* Weight "blk.<layer>.<name>" (or "<name>" outside layers) of rank 1 .. 3; its type is the
 * recipe's. */
plm_value_id plm_emit_vector(plm_builder *x, plm_role role, const char *name, int64_t n);
plm_value_id plm_emit_matrix(plm_builder *x, plm_role role, const char *name, int64_t rows,
                             int64_t cols);
plm_value_id plm_emit_stack(plm_builder *x, plm_role role, const char *name, int64_t count,
                            int64_t rows, int64_t cols);
/* Bias of the matrix `name`: "<name>.bias". experts 0 = one row of n. */
plm_value_id plm_emit_bias(plm_builder *x, const char *name, int64_t experts, int64_t n);
/* State of a layer: cache[ceil(C / ratio), heads, d], or one of rank 3 or 4 a sequence, d3 0 = 3.
 */
plm_value_id plm_emit_cache(plm_builder *x, const char *name, plm_dtype t, int64_t ratio,
                            int64_t heads, int64_t d);
plm_value_id plm_emit_state(plm_builder *x, const char *name, plm_dtype t, int64_t d1, int64_t d2,
                            int64_t d3);

/* Inputs of the step: token ids [T], positions [T], rows that want logits [R]. */
plm_value_id plm_emit_ids(plm_builder *x);
plm_value_id plm_emit_positions(plm_builder *x);
plm_value_id plm_emit_rows(plm_builder *x);

/* in, or its quantised form where the recipe multiplies in the narrow type of the weight (w). */
plm_value_id plm_emit_for_type(plm_builder *x, plm_value_id in, plm_dtype weight);
plm_value_id plm_emit_for_weight(plm_builder *x, plm_value_id in, plm_value_id w);
/* y = x w^T (+ bias) with a fresh weight [n, k]. */
plm_value_id plm_emit_linear(plm_builder *x, plm_value_id in, plm_role role, const char *name,
                             int64_t n, int64_t k, bool bias);
/* y[t,h] = w[h] x[t,h] with a fresh stack [heads, n, k]. */
plm_value_id plm_emit_per_head(plm_builder *x, plm_value_id in, plm_role role, const char *name,
                               int64_t heads, int64_t n, int64_t k);
/* The model's norm with fresh weights over the last dim of n columns. */
plm_value_id plm_emit_norm(plm_builder *x, plm_value_id in, const char *name, int64_t n);
/* RMS norm, whatever the model's norm is; name NULL = without weight. */
plm_value_id plm_emit_rms(plm_builder *x, plm_value_id in, const char *name, int64_t n);
/* Layer norm with or without a bias; name NULL = without weight, bias false then. */
plm_value_id plm_emit_layer_norm(plm_builder *x, plm_value_id in, const char *name, int64_t n,
                                 bool bias);
plm_value_id plm_emit_binary(plm_builder *x, plm_op op, plm_value_id a, plm_value_id b);
plm_value_id plm_emit_unary(plm_builder *x, plm_value_id in, plm_fn fn);
/* by * in; in itself when by is 0 (absent) or 1. */
plm_value_id plm_emit_scaled(plm_builder *x, plm_value_id in, double by);
/* start .. start + count of dim `axis`; in itself when that is all of it. */
plm_value_id plm_emit_slice(plm_builder *x, plm_value_id in, int64_t axis, int64_t start,
                            int64_t count);
plm_value_id plm_emit_concat(plm_builder *x, plm_value_id a, plm_value_id b, int64_t axis);
plm_value_id plm_emit_repeat(plm_builder *x, plm_value_id in, int64_t axis, int64_t count);
/* [T, d1, d2] of [T, d1 * d2]; [T, d1] when d2 is 0. */
plm_value_id plm_emit_heads(plm_builder *x, plm_value_id in, int64_t d1, int64_t d2);
/* Rotates the leading `dims` columns of [T, H, d]; in itself when the layer has no rotation. */
plm_value_id plm_emit_rope(plm_builder *x, plm_value_id in, const plm_rope *r, int64_t dims);
/* Link over a group of `ranks` ranks that lie `stride` devices apart; nothing for one rank. */
plm_value_id plm_emit_link(plm_builder *x, plm_op op, plm_value_id in, int64_t ranks,
                           int64_t stride, int64_t axis);
/* Sum over the tensor-parallel group. */
plm_value_id plm_emit_reduce(plm_builder *x, plm_value_id in);
/* Gate and up through the layer's function; up PLM_NONE = both in `gate`. */
plm_value_id plm_emit_glu(plm_builder *x, plm_value_id gate, plm_value_id up);

/* ---- the halves of a layer: [T, hidden] -> this rank's part of a sum over tp ---- */
plm_value_id plm_emit_attention(plm_builder *x, plm_value_id in); /* build_attn.c */
plm_value_id plm_emit_latent(plm_builder *x, plm_value_id in);    /* build_latent.c */
plm_value_id plm_emit_compressed(plm_builder *x, plm_value_id in);
plm_value_id plm_emit_recurrence(plm_builder *x, plm_value_id in); /* build_linear.c */
plm_value_id plm_emit_dense(plm_builder *x, plm_value_id in);      /* build_ffn.c */
plm_value_id plm_emit_moe(plm_builder *x, plm_value_id in);

/* ---- attention, shared by build_attn.c and build_latent.c ---- */
typedef struct plm_attention {
    plm_value_id q, k, v, sinks, index;
    int64_t heads, kv_heads, dk, dv, window, chunk, sparse_top_k, ratio;
    bool v_in_k;
    double scale;
} plm_attention;
plm_value_id plm_emit_attend(plm_builder *x, const plm_attention *a);
/* Writes k (and v) [T, G, d] to caches; returns their next versions in *kc, *vc. ratio: tokens an
** entry stands for, before context parallelism. */
void plm_emit_write(plm_builder *x, plm_value_id k, plm_value_id *kc, plm_value_id v,
                    plm_value_id *vc, int64_t ratio);
/* Softmax scale of heads of dk columns. */
double plm_softmax_scale(const plm_layer *l, int64_t dk);
/* Output projection of [T, H, dv], times sigmoid(gate[T, H dv]) when there is one. */
plm_value_id plm_emit_out(plm_builder *x, plm_value_id y, plm_value_id gate, int64_t width);
/* INDEX over a cache of keys of d columns: the positions (blocks) that each token attends. */
plm_value_id plm_emit_select(plm_builder *x, plm_value_id q, plm_value_id keys, plm_value_id w,
                             int64_t heads, int64_t d);

/* ---- build_layer.c ---- */
/* A layer on the residual stream, [T, hidden] or [T, hyper * hidden]. */
plm_value_id plm_emit_layer(plm_builder *x, plm_value_id in);
/* The stream as hyper-connections carry it, and back. Nothing for plain residuals. */
plm_value_id plm_emit_spread(plm_builder *x, plm_value_id in);
plm_value_id plm_emit_gather_streams(plm_builder *x, plm_value_id in);

#endif
