/* op.h - the op table: what ops.def expands to, and the work of a node for a batch. */
#ifndef PLM_IR_OP_H
#define PLM_IR_OP_H
#include <stdbool.h>

#include "core/ir/graph.h"

/* A run of sequences of equal shape in a step. */
typedef struct plm_segment {
    int64_t q_len;  /* new tokens of each sequence in this step, >= 1 */
    int64_t kv_len; /* tokens of each sequence already in the cache, >= 0 */
    int64_t count;  /* sequences, >= 1 */
} plm_segment;

typedef struct plm_batch {
    const plm_segment *seg;
    uint32_t n_seg;
    int64_t logit_rows; /* rows through the head; < 0 = one a sequence */
    double imbalance;   /* load of the busiest expert rank over the mean, >= 1; 0 = 1 */
} plm_batch;

/* Classes of ops that an engine serves with one kind of kernel; engine profiles go by class. */
typedef enum plm_class {
#define PLM_CLASS_MAP(X)                                                                           \
    X(LINEAR, "linear") X(GROUPED, "grouped") X(ATTENTION, "attention") X(RECURRENT, "recurrent")  \
    X(ELEMENTWISE, "elementwise") X(GATHER, "gather") X(ROUTING, "routing") X(LINK, "link")        \
    X(VIEW, "view")
#define PLM_CLASS_ENUM(id, name) PLM_CLASS_##id,
    PLM_CLASS_MAP(PLM_CLASS_ENUM)
#undef PLM_CLASS_ENUM
    PLM_CLASS_COUNT
} plm_class;

typedef enum plm_link_kind {
    PLM_LINK_NONE, PLM_LINK_ALL_REDUCE, PLM_LINK_ALL_GATHER, PLM_LINK_REDUCE_SCATTER,
    PLM_LINK_ALL_TO_ALL, PLM_LINK_SEND
} plm_link_kind;

/* The work of one node of one rank in one step. Bytes count each operand once (compulsory traffic);
** reals, since expected values (distinct experts) occur. */
typedef struct plm_work {
    double tensor_flop; /* multiply and add count 2 */
    double vector_flop;
    double exp;         /* transcendental evaluations */
    double weight_bytes, act_read_bytes, act_write_bytes;
    double kv_read_bytes, kv_write_bytes, state_bytes;
    double link_bytes;  /* message of this rank: size of the reduced / gathered / exchanged array */
    double m, n, k;     /* GEMM shape (per group for grouped), 0 = no GEMM */
    double groups;      /* grouped: experts hit; bmm: heads; else 1 */
    plm_dtype weight_dtype; /* PLM_DT_COUNT = no weight */
    plm_dtype act_dtype;
    plm_link_kind link;
    int32_t ranks;      /* of the link's group */
    int32_t nodes;      /* nodes the group spans; 0 or 1 = one */
    int32_t launches;   /* kernels of an engine that fuses nothing; 0 for views */
    double group_share; /* grouped: share of this rank's experts that is hit */
} plm_work;

enum {
    PLM_OPF_0 = 0,            /* so that a 0 in ops.def pastes */
    PLM_OPF_VIEW = 1,         /* no work; output may alias input 0 */
    PLM_OPF_ELEMENTWISE = 2,  /* output i depends on input i alone */
    PLM_OPF_INPLACE = 4,      /* output 0 may take the storage of input 0 when that dies here */
    PLM_OPF_STATE = 8,        /* consumes and yields state */
    PLM_OPF_LINK = 16,        /* collective */
    PLM_OPF_SEGMENTS = 32     /* work depends on the segments, not on T alone */
};

typedef plm_status (*plm_shape_fn)(plm_graph *g, const plm_node *n, plm_value *out,
                                   plm_error *err);
/* dim_values: plm_dims_eval of the graph's pool for the batch. */
typedef void (*plm_work_fn)(const plm_graph *g, const plm_node *n, const int64_t *dim_values,
                            const plm_batch *b, plm_work *w);

/* Operand of an oracle: row-major, dense, every element a double (integers exact below 2^53). */
typedef struct plm_array {
    double *data;
    uint32_t rank;
    int64_t dim[PLM_RANK_MAX];
} plm_array;
/* What an oracle needs to know of the batch: which sequence a token belongs to, where it stands. */
typedef struct plm_oracle_ctx {
    const plm_graph *g;
    const plm_node *n;
    const int64_t *token_seq;  /* [T] sequence of each token */
    const int64_t *token_pos;  /* [T] position in its sequence */
    const int64_t *slot_seq;   /* [C] sequence that owns each KV slot, -1 = free */
    const int64_t *slot_pos;   /* [C] position it holds */
    const int64_t *token_slot; /* [T] slot that kv_write fills */
    int64_t n_seq;
    const int64_t *slot_tokens; /* [C] tokens each slot stands for; NULL = the node's ratio */
} plm_oracle_ctx;
/* in[i].data == NULL marks an absent optional input. out[] is allocated by the caller with the
** shapes of the shape rule; a state's next version may be the same array as its input. */
typedef plm_status (*plm_oracle_fn)(const plm_oracle_ctx *c, const plm_array *in, plm_array *out,
                                    plm_error *err);

typedef struct plm_op_info {
    const char *name;
    uint8_t min_in, max_in, n_out;
    uint32_t flags;
    plm_class cls;
    plm_shape_fn shape;
    plm_work_fn work;
    plm_oracle_fn oracle; /* NULL only for links, whose oracle needs several ranks */
    const char *inputs;   /* "x[T,k] w[n,k] bias?[n]" */
    const char *attrs;    /* "eps weight_offset" */
    const char *doc;
} plm_op_info;

const plm_op_info *plm_op_get(plm_op op);
plm_op plm_op_by_name(const char *name); /* PLM_OP_COUNT if unknown */

/* T, S, R, E, C of a batch. top_k: experts a token is routed to (0 = none); E is then T * top_k, the
** pairs of all experts. A rank that holds some of them multiplies in its dims or its work rule. C is
** what the cache holds at the end of the step. Saturates at INT64_MAX. */
void plm_batch_symbols(const plm_batch *b, int64_t top_k, int64_t sym[PLM_SYM_COUNT]);

/* Expected number of distinct experts out of `experts` that t tokens with k choices each hit under
** uniform routing: experts * (1 - (1 - k/experts)^t). Source: serving_facts section 13, S13. */
double plm_distinct_experts(double experts, double k, double t);
/* The same when popularity of the experts is gamma distributed with that shape (1 = exponential; 0 or
** less = even): k + (E - k) (1 - (1 + (t - 1) k / (E shape))^-shape). */
double plm_skewed_experts(double experts, double k, double t, double shape);

/* ---- fusion groups (fuse.c): annotation, not rewrite ---- */
/* Patterns by name, a table in fuse.c ("norm_add", "rope_kv", "glu", "qk_norm_rope", ...). Groups
** the nodes of g that match any pattern whose bit is set; node->group > 0 marks membership. */
size_t plm_fusion_count(void);
const char *plm_fusion_name(size_t i);
plm_status plm_graph_fuse(plm_graph *g, uint64_t patterns, plm_error *err) PLM_MUST_USE;

/* ---- memory plan (memplan.c) ---- */
typedef struct plm_memory_plan {
    int64_t peak_bytes;     /* size of the activation arena at the symbols' upper bounds */
    plm_node_id peak_node;  /* first node at which it is reached */
    int64_t *offset;        /* by value; -1 = not in the arena (weights, states, inputs) */
    size_t n_values;
} plm_memory_plan;
/* Liveness in node order, in place where the op allows it, best fit, offsets multiples of 256 bytes.
** offset is heap (plm_memory_plan_fini). */
plm_status plm_memory_plan_make(const plm_graph *g, plm_memory_plan *out, plm_error *err)
    PLM_MUST_USE;
void plm_memory_plan_fini(plm_memory_plan *p);

#endif
