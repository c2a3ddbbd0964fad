/* backend.h - the whole contract between Plimsoll and a backend.
**
** A backend runs graphs on devices. One that is a plugin is a shared object that exports one symbol,
** plm_backend_open; those that are linked in hand over the same table. Beside <stddef.h> and
** plimsoll/status.h this header includes nothing, and a plugin includes no other header of the project.
** C17 and C++17 clean. docs/backends.md goes through it in reading order.
**
** RULES OF GROWTH, pinned by the assertions at the end:
**   - every struct that the other side may read starts with struct_size, filled in by whoever made it;
**   - fields are only ever appended; none is moved, retyped or removed, no number below changes;
**   - a reader asks PLM_HAS(p, type, field) before it touches a field newer than minor 0, and takes an
**     absent one for 0 or NULL; a function of the table marked "may be NULL" may be NULL;
**   - arrays carry the stride of their elements, so that an older reader can walk longer elements;
**   - anything else needs another PLM_BACKEND_MAJOR, and is then refused. A minor never is.
** plm_status and plm_error are fixed: they never grow.
**
** ERRORS: functions that can fail return a plm_status and take a caller-owned plm_error, which may be
** NULL; texts read "what, where: why; what to do". Nothing here aborts, exits or throws. A fault that a
** device reports late comes out of the next sync, and stays: the device is lost (PLM_E_DEVICE_LOST).
**
** OWNERSHIP: handles are made by the backend and given back by the host, to the function of that name;
** giving back NULL is harmless. Views and texts the host passes are valid during the call, unless said;
** texts of the backend as long as its table. Nothing is allocated on one side and freed on the other.
**
** THREADS: functions of the table and of the host may be called from any thread; one stream, and one
** exec, from one thread at a time.
*/
#ifndef PLIMSOLL_BACKEND_H
#define PLIMSOLL_BACKEND_H
#include <stddef.h>

#include "plimsoll/status.h"

#ifdef __cplusplus
#define PLM_BACKEND_ASSERT static_assert
extern "C" {
#else
#define PLM_BACKEND_ASSERT _Static_assert
#endif

#define PLM_BACKEND_MAJOR 1u
#define PLM_BACKEND_MINOR 0u
#define PLM_BACKEND_SYMBOL "plm_backend_open"
/* Is the field there in what the other side made? */
#define PLM_END(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))
#define PLM_HAS(p, type, field) ((p)->struct_size >= PLM_END(type, field))
/* Element i of an array with a stride. */
#define PLM_AT(type, base, stride, i)                                                              \
    ((const type *)(const void *)((const char *)(base) + (size_t)(stride) * (size_t)(i)))
#define PLM_BACKEND_NONE UINT32_MAX /* no value, no node, no group, no slot */

/* ---- numbers that both sides know ----
** What each op computes is in docs/ops.md; what an attribute means, there too. An op, a type or an
** attribute with a number past those a backend knows is one it does not support. */
/* X(ID, number, "name") */
#define PLM_BACKEND_OP_MAP(X)                                                                     \
    X(EMBED, 0, "embed") X(LINEAR, 1, "linear") X(BMM, 2, "bmm")                                  \
    X(LINEAR_GROUPED, 3, "linear_grouped") X(LORA_SHRINK, 4, "lora_shrink")                       \
    X(LORA_EXPAND, 5, "lora_expand") X(RMS_NORM, 6, "rms_norm") X(LAYER_NORM, 7, "layer_norm")    \
    X(RMS_NORM_GATED, 8, "rms_norm_gated") X(L2_NORM, 9, "l2_norm") X(ADD, 10, "add")             \
    X(MUL, 11, "mul") X(SCALE, 12, "scale") X(CAST, 13, "cast") X(UNARY, 14, "unary")             \
    X(GLU, 15, "glu") X(SOFTCAP, 16, "softcap") X(SOFTMAX, 17, "softmax") X(ROPE, 18, "rope")     \
    X(QUANT, 19, "quant") X(DEQUANT, 20, "dequant") X(KV_WRITE, 21, "kv_write")                   \
    X(KV_COPY, 22, "kv_copy") X(ATTENTION, 23, "attention") X(INDEX, 24, "index")                 \
    X(KV_POOL, 25, "kv_pool") X(GATE, 26, "gate") X(MOE_SORT, 27, "moe_sort")                     \
    X(MOE_COMBINE, 28, "moe_combine") X(CONV_CAUSAL, 29, "conv_causal")                           \
    X(GATED_DELTA, 30, "gated_delta") X(SSM_SCAN, 31, "ssm_scan") X(SLICE, 32, "slice")           \
    X(CONCAT, 33, "concat") X(RESHAPE, 34, "reshape") X(REPEAT, 35, "repeat")                     \
    X(GATHER, 36, "gather") X(ARGMAX, 37, "argmax") X(TOP_K, 38, "top_k")                         \
    X(ALL_REDUCE, 39, "all_reduce") X(ALL_GATHER, 40, "all_gather")                               \
    X(REDUCE_SCATTER, 41, "reduce_scatter") X(ALL_TO_ALL, 42, "all_to_all") X(SEND, 43, "send")   \
    X(RECV, 44, "recv") X(STREAM_SUM, 45, "stream_sum") X(STREAM_MIX, 46, "stream_mix")
/* X(ID, number, "name", type): I an integer, F a real */
#define PLM_BACKEND_ATTR_MAP(X)                                                                   \
    X(EPS, 0, "eps", 'F') X(WEIGHT_OFFSET, 1, "weight_offset", 'F') X(SCALE, 2, "scale", 'F')     \
    X(FN, 3, "fn", 'I') X(LIMIT, 4, "limit", 'F') X(ALPHA, 5, "alpha", 'F')                       \
    X(HEADS, 6, "heads", 'I') X(KV_HEADS, 7, "kv_heads", 'I') X(DK, 8, "dk", 'I')                 \
    X(DV, 9, "dv", 'I') X(WINDOW, 10, "window", 'I') X(CHUNK, 11, "chunk", 'I')                   \
    X(SOFTCAP, 12, "softcap", 'F') X(CAUSAL, 13, "causal", 'I') X(ALIBI, 14, "alibi", 'I')        \
    X(V_IN_K, 15, "v_in_k", 'I') X(SPARSE_TOP_K, 16, "sparse_top_k", 'I')                         \
    X(RATIO, 17, "ratio", 'I') X(ROPE_DIMS, 18, "rope_dims", 'I')                                 \
    X(ROPE_STYLE, 19, "rope_style", 'I') X(ROPE_SCALING, 20, "rope_scaling", 'I')                 \
    X(THETA, 21, "theta", 'F') X(FACTOR, 22, "factor", 'F') X(LOW_FREQ, 23, "low_freq", 'F')      \
    X(HIGH_FREQ, 24, "high_freq", 'F') X(ORIG_CTX, 25, "orig_ctx", 'F')                           \
    X(BETA_FAST, 26, "beta_fast", 'F') X(BETA_SLOW, 27, "beta_slow", 'F')                         \
    X(MSCALE, 28, "mscale", 'F') X(EXPERTS, 29, "experts", 'I')                                   \
    X(LOCAL_EXPERTS, 30, "local_experts", 'I') X(TOP_K, 31, "top_k", 'I')                         \
    X(N_GROUP, 32, "n_group", 'I') X(TOPK_GROUP, 33, "topk_group", 'I')                           \
    X(RENORM, 34, "renorm", 'I') X(AXIS, 35, "axis", 'I') X(START, 36, "start", 'I')              \
    X(COUNT, 37, "count", 'I') X(D0, 38, "d0", 'I') X(D1, 39, "d1", 'I') X(D2, 40, "d2", 'I')     \
    X(RANK, 41, "rank", 'I') X(RANKS, 42, "ranks", 'I') X(NODES, 43, "nodes", 'I')                \
    X(BLOCK, 44, "block", 'I') X(RAMP_EXACT, 45, "ramp_exact", 'I')
/* X(ID, number, "name", elements of a block, bytes of a block). Planar formats, which keep scales apart,
** say it of their codes. Layouts of blocks are those of GGUF; of planes, plm_backend_plane. */
#define PLM_BACKEND_DTYPE_MAP(X)                                                                  \
    X(F32, 0, "f32", 1, 4) X(F16, 1, "f16", 1, 2) X(BF16, 2, "bf16", 1, 2)                        \
    X(F64, 3, "f64", 1, 8) X(F8E4M3, 4, "f8e4m3", 1, 1) X(F8E5M2, 5, "f8e5m2", 1, 1)              \
    X(E8M0, 6, "e8m0", 1, 1) X(F6E2M3, 7, "f6e2m3", 4, 3) X(F6E3M2, 8, "f6e3m2", 4, 3)            \
    X(F4E2M1, 9, "f4e2m1", 2, 1) X(I4, 10, "i4", 2, 1) X(I8, 11, "i8", 1, 1)                      \
    X(I16, 12, "i16", 1, 2) X(I32, 13, "i32", 1, 4) X(I64, 14, "i64", 1, 8)                       \
    X(U8, 15, "u8", 1, 1) X(U16, 16, "u16", 1, 2) X(U32, 17, "u32", 1, 4)                         \
    X(U64, 18, "u64", 1, 8) X(BOOL, 19, "bool", 1, 1) X(Q4_0, 20, "q4_0", 32, 18)                 \
    X(Q4_1, 21, "q4_1", 32, 20) X(Q5_0, 22, "q5_0", 32, 22) X(Q5_1, 23, "q5_1", 32, 24)           \
    X(Q8_0, 24, "q8_0", 32, 34) X(Q8_1, 25, "q8_1", 32, 36) X(Q2_K, 26, "q2_k", 256, 84)          \
    X(Q3_K, 27, "q3_k", 256, 110) X(Q4_K, 28, "q4_k", 256, 144) X(Q5_K, 29, "q5_k", 256, 176)     \
    X(Q6_K, 30, "q6_k", 256, 210) X(Q8_K, 31, "q8_k", 256, 292)                                   \
    X(IQ2_XXS, 32, "iq2_xxs", 256, 66) X(IQ2_XS, 33, "iq2_xs", 256, 74)                           \
    X(IQ3_XXS, 34, "iq3_xxs", 256, 98) X(IQ1_S, 35, "iq1_s", 256, 50)                             \
    X(IQ4_NL, 36, "iq4_nl", 32, 18) X(IQ3_S, 37, "iq3_s", 256, 110)                               \
    X(IQ2_S, 38, "iq2_s", 256, 82) X(IQ4_XS, 39, "iq4_xs", 256, 136)                              \
    X(IQ1_M, 40, "iq1_m", 256, 56) X(TQ1_0, 41, "tq1_0", 256, 54) X(TQ2_0, 42, "tq2_0", 256, 66)  \
    X(MXFP4, 43, "mxfp4", 32, 17) X(NVFP4, 44, "nvfp4", 64, 36) X(Q1_0, 45, "q1_0", 128, 18)      \
    X(Q2_0, 46, "q2_0", 64, 18) X(NF4, 47, "nf4", 2, 1) X(NF4_DQ, 48, "nf4_dq", 2, 1)             \
    X(AWQ4, 49, "awq4", 2, 1) X(GPTQ4, 50, "gptq4", 2, 1) X(GPTQ8, 51, "gptq8", 1, 1)             \
    X(INT8_ROW, 52, "int8_row", 1, 1) X(INT4_G32, 53, "int4_g32", 2, 1)                           \
    X(INT4_G64, 54, "int4_g64", 2, 1) X(MLX8, 55, "mlx8", 1, 1) X(FP8, 56, "fp8", 1, 1)           \
    X(FP8_ROW, 57, "fp8_row", 1, 1) X(FP8_BLOCK, 58, "fp8_block", 1, 1)                           \
    X(MXFP8, 59, "mxfp8", 1, 1) X(MXFP6, 60, "mxfp6", 4, 3)                                       \
    X(MXFP4_PLANAR, 61, "mxfp4_planar", 2, 1) X(NVFP4_PLANAR, 62, "nvfp4_planar", 2, 1)
/* Functions of unary, glu, gate, conv_causal, rms_norm_gated. X(ID, number, "name") */
#define PLM_BACKEND_FN_MAP(X)                                                                     \
    X(NONE, 0, "none") X(SILU, 1, "silu") X(GELU_TANH, 2, "gelu_tanh")                            \
    X(GELU_ERF, 3, "gelu_erf") X(SIGMOID, 4, "sigmoid") X(SOFTPLUS, 5, "softplus")                \
    X(TANH, 6, "tanh") X(EXP, 7, "exp") X(RELU, 8, "relu") X(RELU2, 9, "relu2")                   \
    X(SOFTMAX, 10, "softmax") X(SQRT_SOFTPLUS, 11, "sqrt_softplus")                               \
    X(SWIGLU_OAI, 12, "swiglu_oai") X(SITU, 13, "situ") X(SOFTMAX_TOPK, 14, "softmax_topk")
/* Scaling of rotary embeddings, attribute rope_scaling. X(ID, number, "name") */
#define PLM_BACKEND_ROPE_MAP(X)                                                                    \
    X(NONE, 0, "none") X(LINEAR, 1, "linear") X(LLAMA3, 2, "llama3") X(YARN, 3, "yarn")            \
    X(LONGROPE, 4, "longrope") X(DYNAMIC, 5, "dynamic")
/* Symbols of dims. X(ID, number, "name") */
#define PLM_BACKEND_SYM_MAP(X)                                                                     \
    X(T, 0, "tokens of the step") X(S, 1, "sequences: rows of recurrent states")                   \
    X(R, 2, "rows whose logits are wanted") X(E, 3, "(token, expert) pairs of the step")           \
    X(C, 4, "token slots of the KV cache")

typedef enum plm_backend_op {
#define PLM_BACKEND_X(id, number, name) PLM_BACKEND_OP_##id = number,
    PLM_BACKEND_OP_MAP(PLM_BACKEND_X)
#undef PLM_BACKEND_X
    PLM_BACKEND_OPS
} plm_backend_op;
typedef enum plm_backend_attr_key {
#define PLM_BACKEND_X(id, number, name, type) PLM_BACKEND_ATTR_##id = number,
    PLM_BACKEND_ATTR_MAP(PLM_BACKEND_X)
#undef PLM_BACKEND_X
    PLM_BACKEND_ATTRS
} plm_backend_attr_key;
typedef enum plm_backend_dtype {
#define PLM_BACKEND_X(id, number, name, block, bytes) PLM_BACKEND_DT_##id = number,
    PLM_BACKEND_DTYPE_MAP(PLM_BACKEND_X)
#undef PLM_BACKEND_X
    PLM_BACKEND_DTYPES
} plm_backend_dtype;
typedef enum plm_backend_fn {
#define PLM_BACKEND_X(id, number, name) PLM_BACKEND_FN_##id = number,
    PLM_BACKEND_FN_MAP(PLM_BACKEND_X)
#undef PLM_BACKEND_X
    PLM_BACKEND_FNS
} plm_backend_fn;
typedef enum plm_backend_rope {
#define PLM_BACKEND_X(id, number, name) PLM_BACKEND_ROPE_##id = number,
    PLM_BACKEND_ROPE_MAP(PLM_BACKEND_X)
#undef PLM_BACKEND_X
    PLM_BACKEND_ROPES
} plm_backend_rope;
typedef enum plm_backend_sym {
#define PLM_BACKEND_X(id, number, name) PLM_BACKEND_SYM_##id = number,
    PLM_BACKEND_SYM_MAP(PLM_BACKEND_X)
#undef PLM_BACKEND_X
    PLM_BACKEND_SYMS
} plm_backend_sym;

/* How a node may be computed. A backend says in `support` which class it uses, and the tolerance of
** `plimsoll check` follows the class, never the backend's name. Limits are on the input-energy error
** sum(err^2) / sum_i sum_k (w_ik x_k)^2 of K-term sums. */
typedef enum plm_backend_numerics {
    PLM_BACKEND_NUM_F32 = 0,      /* float32 products and sums: 1e-14 K */
    PLM_BACKEND_NUM_F16_OUT = 1,  /* the same, rounded to f16: 1e-6 */
    PLM_BACKEND_NUM_BF16_OUT = 2, /* ... to bf16: 6e-5 */
    PLM_BACKEND_NUM_TF32 = 3,     /* operands rounded to tf32 */
    PLM_BACKEND_NUM_BF16 = 4,     /* operands rounded to bf16, sums in float32 */
    PLM_BACKEND_NUM_F16 = 5,      /* operands rounded to f16, sums in float32 */
    PLM_BACKEND_NUM_F16_ACC = 6,  /* sums in f16 too */
    PLM_BACKEND_NUM_I8_B32 = 7,   /* activations int8 in blocks of 32: 1e-4 */
    PLM_BACKEND_NUM_F8 = 8,       /* activations fp8 */
    PLM_BACKEND_NUM_F4 = 9,       /* activations fp4 */
    PLM_BACKEND_NUM_EXACT = 10    /* moves and integers: equal to the bit */
} plm_backend_numerics;

/* ---- handles, whose insides the backend alone knows ---- */
typedef struct plm_backend_device plm_backend_device;
typedef struct plm_backend_buffer plm_backend_buffer;
typedef struct plm_backend_stream plm_backend_stream;
typedef struct plm_backend_event plm_backend_event;
typedef struct plm_backend_exec plm_backend_exec;

/* ---- services lent to the backend; they outlive every handle it makes ---- */
typedef struct plm_backend_host {
    uint32_t struct_size, major, minor;
    uint32_t threads; /* worker threads the user allows; 0 = as many as there are cores */
    void *ctx;        /* first argument of all */
    /* align: a power of two, 0 = that of malloc. NULL when memory is short. */
    void *(*alloc)(void *ctx, size_t bytes, size_t align);
    void (*free)(void *ctx, void *ptr, size_t bytes);
    void (*log)(void *ctx, int32_t level, const char *text); /* level 0 error .. 3 debug */
    uint64_t (*now_ns)(void *ctx);                           /* monotonic */
    const char *(*option)(void *ctx, const char *key);       /* NULL = not set */
    /* A span of a trace; may be NULL. */
    void (*span)(void *ctx, const char *name, uint32_t lane, uint64_t start_ns, uint64_t end_ns);
    /* body(arg, from, to) over [0, n) in pieces of at least `grain`, from this and other threads of the
    ** host, all done on return; may be NULL: the backend then has its own threads, or one. */
    void (*parallel_for)(void *ctx, int64_t n, int64_t grain,
                         void (*body)(void *arg, int64_t from, int64_t to), void *arg);
} plm_backend_host;

/* ---- the graph: frozen, flat, read only, valid during the call ---- */

/* Expression i of the pool; a and b are smaller than i. */
typedef enum plm_backend_dim_op {
    PLM_BACKEND_DIM_CONST = 0, /* k */
    PLM_BACKEND_DIM_SYM = 1,   /* symbol k */
    PLM_BACKEND_DIM_ADD = 2,
    PLM_BACKEND_DIM_MUL = 3,
    PLM_BACKEND_DIM_CEILDIV = 4,
    PLM_BACKEND_DIM_MIN = 5,
    PLM_BACKEND_DIM_MAX = 6
} plm_backend_dim_op;
typedef struct plm_backend_dim {
    uint32_t op, a, b, reserved;
    int64_t k;
} plm_backend_dim;

typedef enum plm_backend_kind {
    PLM_BACKEND_INPUT = 0,  /* given each step */
    PLM_BACKEND_WEIGHT = 1, /* bound once, never written */
    PLM_BACKEND_STATE = 2,  /* kept from step to step: KV cache, conv tail, state of a recurrence */
    PLM_BACKEND_MADE = 3    /* made by a node */
} plm_backend_kind;

/* Planes of a weight, in the order of its bindings. Plain numbers and GGUF blocks have CODES alone;
** codes of four bits lie two a byte, the first in the low half (nf4, nf4_dq: in the high half).
**   fp8_block            CODES f8e4m3 [rows, cols]; SCALES f32 [ceil(rows/128), ceil(cols/128)]
**   fp8_row, int8_row    CODES [rows, cols]; SCALES f32 [rows]
**   fp8                  CODES [rows, cols]; SCALES f32 [1]
**   mxfp4_planar         CODES e2m1; SCALES e8m0 [rows, cols/32]
**   nf4                  CODES flat over the tensor; SCALES f32 [n/64]; MAP f32 [16]
**   nf4_dq               CODES flat; SCALES u8 [n/64]; SUPER f32 [n/64/256]; MAP f32 [16];
**                        SUPER_MAP f32 [256]; OFFSET f32 [1]: scale i is
**                        SUPER_MAP[SCALES[i]] * SUPER[i/256] + OFFSET
** A stack (rank 3: experts, heads) may lie in pieces, one for each matrix. */
typedef enum plm_backend_plane {
    PLM_BACKEND_CODES = 0,
    PLM_BACKEND_SCALES = 1,
    PLM_BACKEND_SUPER = 2,
    PLM_BACKEND_MAP = 3,
    PLM_BACKEND_SUPER_MAP = 4,
    PLM_BACKEND_OFFSET = 5,
    PLM_BACKEND_PLANES = 6
} plm_backend_plane;

/* Where the elements lie: in binding `slot`, from byte `offset` on, element (i, j, ..) at
** start + i stride[0] + j stride[1] + .. elements. The innermost stride of a value that a node computes
** is 1 and its rows have no gaps; views of other values (slice, reshape: nodes that do nothing) may have
** other strides. Types that hold several elements a block are never views. */
typedef struct plm_backend_value {
    uint32_t dtype, kind, rank, flags;
    uint32_t dim[4];   /* in the pool; row-major, innermost last */
    uint32_t producer; /* node, or NONE */
    uint32_t storage;  /* value whose storage it shares (a view's source, a state's version 0); itself */
    uint32_t slot;     /* slot 0 is the arena of activations; others: weights, inputs, states */
    uint32_t planes;   /* planes of each piece; bindings slot + piece * planes + plane. 1 but for weights */
    uint32_t pieces;   /* 1, or the matrices of a stack that lies in pieces */
    int32_t layer;     /* -1 = of no layer */
    int64_t stride[4]; /* in elements */
    int64_t start;     /* in elements */
    uint64_t offset;   /* in bytes, in the arena; 0 elsewhere */
    const char *name;  /* of weights, states, inputs, outputs; NULL */
} plm_backend_value;
#define PLM_BACKEND_VALUE_OUTPUT 1u /* flags: an output of the graph, alive after the step */

typedef struct plm_backend_node {
    uint32_t op;
    uint32_t in, n_in;     /* edges[in ..]: values, NONE = optional input left out */
    uint32_t out, n_out;   /* edges[out ..] */
    uint32_t attr, n_attr; /* attrs[attr ..] */
    uint32_t group;        /* fusion group, NONE = in none: a wish, which may be refused */
    uint32_t numerics;     /* the least exact class allowed; PLM_BACKEND_NONE = any */
    int32_t layer;
} plm_backend_node;

typedef struct plm_backend_attr {
    uint32_t key, reserved;
    int64_t i; /* type I */
    double f;  /* type F */
} plm_backend_attr;

typedef struct plm_backend_graph {
    uint32_t struct_size;
    uint32_t n_values, n_nodes, n_dims, n_edges, n_attrs;
    uint32_t value_stride, node_stride, dim_stride, attr_stride; /* bytes of an element */
    const plm_backend_value *values; /* walk with PLM_AT */
    const plm_backend_node *nodes;   /* in an order that may be run */
    const plm_backend_dim *dims;
    const uint32_t *edges;
    const plm_backend_attr *attrs;
    uint32_t n_slots, n_syms;
    const int64_t *sym_max; /* greatest value of each symbol; S and C are always that */
    uint64_t arena_bytes;
    uint32_t block_tokens; /* slots of a block of the KV cache */
    uint32_t reserved;
} plm_backend_graph;

/* ---- what a step runs on ---- */

typedef struct plm_backend_binding {
    plm_backend_buffer *buffer;
    uint64_t offset, bytes;
} plm_backend_binding;

/* The step's tokens and where they stand. Arrays lie in the host's memory and stay as they are until the
** stream is synced. Tokens of a sequence follow each other, in order of position; sequence s has tokens
** seq_token[s] .. seq_token[s+1] of the step. Its keys and values lie in slots
** block[s * block_stride + p / block_tokens] * block_tokens + p % block_tokens for positions p below
** seq_past[s] + its tokens. A cache that keeps an entry for `ratio` tokens has that entry at slot / ratio
** of the last of them. */
typedef struct plm_backend_step {
    uint32_t struct_size;
    uint32_t n_tokens, n_seqs, block_stride;
    const int32_t *token_seq;  /* [T] sequence of the step */
    const int32_t *token_pos;  /* [T] position in it */
    const int32_t *token_slot; /* [T] slot its key and value go to; -1 = none */
    const int32_t *seq_token;  /* [S+1] */
    const int32_t *seq_past;   /* [S] positions in the cache before the step */
    const int32_t *seq_row;    /* [S] its row of the recurrent states */
    const int32_t *block;      /* [S, block_stride] */
} plm_backend_step;

typedef struct plm_backend_run {
    uint32_t struct_size;
    uint32_t n_bind, bind_stride;
    uint32_t n_node_ns;
    const plm_backend_binding *bind; /* by slot; weights as they were at `prepare` */
    const plm_backend_step *step;
    const int64_t *dim;  /* [n_dims] value of each expression in this step */
    uint64_t *node_ns;   /* NULL, or [n_nodes]: time of each node, complete when the stream is synced;
                            the first node of a fused group has the group's, the others 0 */
} plm_backend_run;

/* ---- answers ---- */
typedef struct plm_backend_support {
    uint32_t struct_size;
    uint32_t ok; /* 1: compile takes this node and execute runs it. 0: `why` */
    uint32_t numerics, reserved;
    char why[112];
} plm_backend_support;

typedef enum plm_backend_device_kind {
    PLM_BACKEND_CPU = 0, PLM_BACKEND_GPU = 1, PLM_BACKEND_IGPU = 2, PLM_BACKEND_SIM = 3
} plm_backend_device_kind;
#define PLM_BACKEND_CAP_HOST_MEMORY 1u /* buffer_import takes any host memory, without a copy */
#define PLM_BACKEND_CAP_TIMESTAMPS 2u  /* node_ns and events have device time */
typedef struct plm_backend_device_info {
    uint32_t struct_size, kind;
    uint64_t caps;
    uint64_t memory_bytes, free_bytes;             /* at the time of asking; 0 = unknown */
    uint64_t buffer_align, buffer_max_bytes;
    uint32_t tick_ps; /* of the device's clock */
    uint32_t streams_max;
    char name[96], id[48], driver[64];
} plm_backend_device_info;

typedef struct plm_backend_exec_info {
    uint32_t struct_size, n_kernels;
    uint64_t code_bytes, packed_bytes, scratch_bytes; /* packed: weights in the backend's own layout */
    uint32_t groups_taken, groups_refused;
} plm_backend_exec_info;

typedef enum plm_backend_usage {
    PLM_BACKEND_USE_WEIGHT = 1, PLM_BACKEND_USE_STATE = 2, PLM_BACKEND_USE_ARENA = 4,
    PLM_BACKEND_USE_INPUT = 8
} plm_backend_usage;

/* ---- the table ---- */
typedef struct plm_backend {
    uint32_t struct_size, major, minor;
    uint32_t n_ops; /* ops it knows the numbers of: those below n_ops */
    const char *name, *version;

    /* Devices. A machine without any, or without the driver, has 0, and `err` says why in words
    ** ("libcuda.so.1 not found") though the status is PLM_OK. */
    plm_status (*device_count)(uint32_t *out, plm_error *err);
    plm_status (*device_open)(uint32_t index, plm_backend_device **out, plm_error *err);
    void (*device_close)(plm_backend_device *dev);
    plm_status (*device_info)(plm_backend_device *dev, plm_backend_device_info *out, plm_error *err);
    /* Would compile take this node of this graph, and in which class? A yes is a promise. */
    plm_status (*supports)(plm_backend_device *dev, const plm_backend_graph *g, uint32_t node,
                           plm_backend_support *out, plm_error *err);

    /* Memory. Contents of a new buffer are undefined. usage: plm_backend_usage, or'ed. */
    plm_status (*buffer_alloc)(plm_backend_device *dev, uint64_t bytes, uint32_t usage,
                               plm_backend_buffer **out, plm_error *err);
    /* A buffer that is the host's memory, which outlives it; read only if usage is WEIGHT. May be NULL. */
    plm_status (*buffer_import)(plm_backend_device *dev, const void *host, uint64_t bytes,
                                uint32_t usage, plm_backend_buffer **out, plm_error *err);
    void (*buffer_free)(plm_backend_buffer *buf);
    /* In order of the stream. src of upload and dst of download stay as they are until it is synced.
    ** Ranges outside a buffer are PLM_E_INVALID; those of one copy may not overlap. */
    plm_status (*upload)(plm_backend_stream *s, plm_backend_buffer *dst, uint64_t offset,
                         const void *src, uint64_t bytes, plm_error *err);
    plm_status (*download)(plm_backend_stream *s, void *dst, const plm_backend_buffer *src,
                           uint64_t offset, uint64_t bytes, plm_error *err);
    plm_status (*copy)(plm_backend_stream *s, plm_backend_buffer *dst, uint64_t dst_offset,
                       const plm_backend_buffer *src, uint64_t src_offset, uint64_t bytes,
                       plm_error *err);
    plm_status (*fill_zero)(plm_backend_stream *s, plm_backend_buffer *dst, uint64_t offset,
                            uint64_t bytes, plm_error *err);

    /* Order and time. Streams are independent; a stream must be idle when it is destroyed. */
    plm_status (*stream_create)(plm_backend_device *dev, plm_backend_stream **out, plm_error *err);
    void (*stream_destroy)(plm_backend_stream *s);
    plm_status (*stream_sync)(plm_backend_stream *s, plm_error *err);
    plm_status (*event_create)(plm_backend_device *dev, plm_backend_event **out, plm_error *err);
    void (*event_destroy)(plm_backend_event *ev);
    plm_status (*event_record)(plm_backend_stream *s, plm_backend_event *ev, plm_error *err);
    plm_status (*event_wait)(plm_backend_stream *s, plm_backend_event *ev, plm_error *err);
    /* Both must have been passed: sync first. */
    plm_status (*event_elapsed_ns)(plm_backend_event *from, plm_backend_event *to, uint64_t *out,
                                   plm_error *err);

    /* Work. An exec serves every step within the bounds of the graph's symbols; single ops are run as
    ** graphs of one node. compile refuses with PLM_E_UNSUPPORTED and names the node. */
    plm_status (*compile)(plm_backend_device *dev, const plm_backend_graph *g,
                          plm_backend_exec **out, plm_error *err);
    /* Once, when the weights are bound (other slots may have no buffer yet): the place to pack them.
    ** May be NULL. */
    plm_status (*prepare)(plm_backend_exec *x, plm_backend_stream *s,
                          const plm_backend_binding *bind, uint32_t n_bind, uint32_t bind_stride,
                          plm_error *err);
    plm_status (*execute)(plm_backend_exec *x, plm_backend_stream *s, const plm_backend_run *run,
                          plm_error *err);
    plm_status (*exec_info)(plm_backend_exec *x, plm_backend_exec_info *out, plm_error *err);
    void (*exec_free)(plm_backend_exec *x);
    void (*close)(void); /* the last call; handles are all given back by then */
} plm_backend;

/* The one symbol. NULL, with err filled, when it refuses. */
typedef const plm_backend *plm_backend_open_fn(const plm_backend_host *host, plm_error *err);

PLM_BACKEND_ASSERT(sizeof(plm_status) == 4, "plm_status is four bytes");
PLM_BACKEND_ASSERT(sizeof(plm_error) == 500, "plm_error is fixed");
PLM_BACKEND_ASSERT(offsetof(plm_backend_host, ctx) == 16, "host");
PLM_BACKEND_ASSERT(offsetof(plm_backend_host, parallel_for) == 24 + 6 * sizeof(void *), "host");
PLM_BACKEND_ASSERT(sizeof(plm_backend_dim) == 24, "dim");
PLM_BACKEND_ASSERT(offsetof(plm_backend_value, stride) == 56, "value");
PLM_BACKEND_ASSERT(offsetof(plm_backend_value, name) == 104, "value");
PLM_BACKEND_ASSERT(sizeof(plm_backend_node) == 40, "node");
PLM_BACKEND_ASSERT(sizeof(plm_backend_attr) == 24, "attr");
PLM_BACKEND_ASSERT(offsetof(plm_backend_graph, values) == 40, "graph");
PLM_BACKEND_ASSERT(offsetof(plm_backend_graph, arena_bytes) == 48 + 6 * sizeof(void *),
                   "graph");
PLM_BACKEND_ASSERT(offsetof(plm_backend_step, token_seq) == 16, "step");
PLM_BACKEND_ASSERT(offsetof(plm_backend_run, bind) == 16, "run");
PLM_BACKEND_ASSERT(offsetof(plm_backend_run, node_ns) == 16 + 3 * sizeof(void *), "run");
PLM_BACKEND_ASSERT(sizeof(plm_backend_support) == 128, "support");
PLM_BACKEND_ASSERT(offsetof(plm_backend_device_info, name) == 56, "device info");
PLM_BACKEND_ASSERT(sizeof(plm_backend_exec_info) == 40, "exec info");
PLM_BACKEND_ASSERT(offsetof(plm_backend, name) == 16, "table");
PLM_BACKEND_ASSERT(offsetof(plm_backend, device_count) == 16 + 2 * sizeof(void *), "table");
PLM_BACKEND_ASSERT(offsetof(plm_backend, stream_create) == 16 + 14 * sizeof(void *), "table");
PLM_BACKEND_ASSERT(offsetof(plm_backend, compile) == 16 + 22 * sizeof(void *), "table");
PLM_BACKEND_ASSERT(offsetof(plm_backend, close) == 16 + 27 * sizeof(void *), "table");

#ifdef __cplusplus
}
#endif
#endif
