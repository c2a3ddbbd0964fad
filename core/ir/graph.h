/* graph.h - the graph: values, nodes, dims and attributes in four arrays of one arena.
**
** References are uint32_t indices. Nodes are in topological order: a node reads only values that an
** earlier node (or nobody: input, weight, state) makes. State (KV pages, conv tail, delta-rule
** state) is a value; an op that writes it consumes version i and yields version i+1, which must
** alias it, so order follows from data alone.
**
** Build: plm_graph_init; plm_graph_value for inputs, weights, states; plm_node_begin / _in / _attr /
** plm_node_end, which runs the op's shape rule and makes the outputs. A failure is sticky: later
** calls do nothing and plm_graph_finish reports the first one, so a builder checks once.
** Not thread-safe while building; read-only afterwards.
*/
#ifndef PLM_IR_GRAPH_H
#define PLM_IR_GRAPH_H
#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/ir/dim.h"
#include "core/ir/dtype.h"

typedef uint32_t plm_value_id; /* PLM_NONE = none */
typedef uint32_t plm_node_id;
#define PLM_NONE UINT32_MAX
#define PLM_RANK_MAX 4
#define PLM_IN_MAX 10
#define PLM_OUT_MAX 3
#define PLM_NAME_MAX 255
#define PLM_GRAPH_VALUES_MAX 262144u
#define PLM_GRAPH_NODES_MAX 131072u

typedef enum plm_op {
#define PLM_OP(id, ...) PLM_OP_##id,
#include "core/ir/ops.def"
#undef PLM_OP
    PLM_OP_COUNT
} plm_op;

/* Attributes of nodes: name and type. Integers unless said; enumerations are integers with names. */
typedef enum plm_attr_key {
#define PLM_ATTR(id, name, type, doc) PLM_ATTR_##id,
#include "core/ir/attrs.def"
#undef PLM_ATTR
    PLM_ATTR_KEYS
} plm_attr_key;

typedef struct plm_attr {
    plm_attr_key key;
    union {
        int64_t i;
        double f;
    } v;
} plm_attr;

typedef enum plm_value_kind {
    PLM_VALUE_INPUT,  /* given each step (token ids, positions) */
    PLM_VALUE_WEIGHT, /* bound once */
    PLM_VALUE_STATE,  /* version 0 of a state: KV, conv tail, delta-rule state */
    PLM_VALUE_NODE    /* made by a node */
} plm_value_kind;

/* What a weight is for: rules of quantisation recipes and of sharding go by role. */
typedef enum plm_role {
#define PLM_ROLE_MAP(X)                                                                            \
    X(NONE, "none") X(EMBED, "embed") X(POS_EMBED, "pos_embed") X(HEAD, "head") X(NORM, "norm")    \
    X(BIAS, "bias") X(Q, "q") X(K, "k") X(V, "v") X(QKV, "qkv") X(O, "o") X(Q_A, "q_a")            \
    X(Q_B, "q_b") X(KV_A, "kv_a") X(K_B, "k_b") X(V_B, "v_b") X(GATE, "gate") X(UP, "up")          \
    X(GATE_UP, "gate_up") X(DOWN, "down") X(ROUTER, "router") X(EXPERT_GATE, "expert_gate")        \
    X(EXPERT_UP, "expert_up") X(EXPERT_GATE_UP, "expert_gate_up") X(EXPERT_DOWN, "expert_down")    \
    X(SHARED_GATE, "shared_gate") X(SHARED_UP, "shared_up") X(SHARED_DOWN, "shared_down")          \
    X(SSM_IN, "ssm_in") X(SSM_OUT, "ssm_out") X(SSM_SMALL, "ssm_small") X(CONV, "conv")            \
    X(INDEX, "index") X(SINK, "sink") X(LORA, "lora") X(MTP, "mtp") X(KV, "kv") X(STATE, "state")
#define PLM_ROLE_ENUM(id, name) PLM_ROLE_##id,
    PLM_ROLE_MAP(PLM_ROLE_ENUM)
#undef PLM_ROLE_ENUM
    PLM_ROLE_COUNT
} plm_role;

typedef struct plm_value {
    plm_value_kind kind;
    plm_dtype dtype;
    plm_role role;
    int32_t layer;             /* -1 = no layer */
    uint32_t rank;             /* 0 .. PLM_RANK_MAX */
    plm_dim dim[PLM_RANK_MAX]; /* row-major, innermost last */
    plm_node_id producer;      /* PLM_NONE unless kind is NODE */
    plm_value_id alias;        /* value whose storage this one must reuse; PLM_NONE = own storage */
    const char *name;          /* weights, states, inputs, outputs; NULL = anonymous */
} plm_value;

typedef struct plm_node {
    plm_op op;
    int32_t layer;
    uint32_t group; /* fusion group, 0 = none */
    uint8_t n_in, n_out;
    uint16_t n_attr;
    uint32_t attr; /* first of n_attr in graph->attrs */
    plm_value_id in[PLM_IN_MAX];
    plm_value_id out[PLM_OUT_MAX];
} plm_node;

typedef struct plm_graph {
    plm_arena arena; /* names */
    plm_dims dims;
    plm_value *values;
    plm_node *nodes;
    plm_attr *attrs;
    size_t n_values, n_nodes, n_attrs;
    size_t room_values, room_nodes, room_attrs;
    plm_value_id *outputs;
    size_t n_outputs, room_outputs;
    plm_error error; /* first failure while building, code PLM_OK = none */
    int32_t layer;   /* stamped on new nodes and weights; builder sets it */
    plm_node pending;
} plm_graph;

void plm_graph_init(plm_graph *g);
void plm_graph_fini(plm_graph *g);

/* A value that no node makes. name is copied: 1 .. PLM_NAME_MAX letters, digits and "._-/", unique
** among values that no node makes. rank dims follow as an array; those of weights are constants. */
plm_value_id plm_graph_value(plm_graph *g, plm_value_kind kind, plm_role role, plm_dtype dtype,
                             const char *name, uint32_t rank, const plm_dim *dim);
/* Node under construction: begin, any number of in/attr, end. plm_node_end checks arity, runs the
** shape rule, and returns output 0 (PLM_NONE after a failure); further outputs are
** plm_node_out(g, 1).. of the node ended last. out_dtype: dtype of output 0, PLM_DT_COUNT = that of
** input 0. Indices (argmax, index, further outputs of gate ...) become i32 whatever was asked unless
** an integer type was; the next version of a state has the state's dtype and role. A kv_write
** without v has one output. */
void plm_node_begin(plm_graph *g, plm_op op);
void plm_node_in(plm_graph *g, plm_value_id v); /* PLM_NONE marks an absent optional input */
void plm_node_int(plm_graph *g, plm_attr_key key, int64_t v);
void plm_node_real(plm_graph *g, plm_attr_key key, double v);
plm_value_id plm_node_end(plm_graph *g, plm_dtype out_dtype);
plm_value_id plm_node_out(const plm_graph *g, uint32_t index);
/* Marks a value as an output of the graph (logits, hidden state sent to the next stage). A value made
** by a node takes the name (unique among outputs, may be NULL), any other keeps its own. */
void plm_graph_output(plm_graph *g, plm_value_id v, const char *name);
/* Reports the first failure, then verifies the whole graph (plm_graph_verify). */
plm_status plm_graph_finish(plm_graph *g, plm_error *err) PLM_MUST_USE;

/* Attribute of a node, `otherwise` when it has none. */
int64_t plm_attr_int(const plm_graph *g, const plm_node *n, plm_attr_key key, int64_t otherwise);
double plm_attr_real(const plm_graph *g, const plm_node *n, plm_attr_key key, double otherwise);

/* Rules: order, arity, dtypes, shapes agree with the shape rule, states linear (each version read
** by at most one writer, and by nobody after it), attributes known to the op and in range, outputs
** exist, names, sizes of weights, dim pool. The error names node, op and rule. */
plm_status plm_graph_verify(const plm_graph *g, plm_error *err) PLM_MUST_USE;

/* Text form, one line a value or node, stable order, floats exact:
**   dim %3 = mul T 8 ; weight @blk.0.q:bf16[4096,4096] role=q layer=0 ;
**   %12:bf16[T,4096] = rms_norm(%11, @blk.0.attn_norm) {eps=1e-06} layer=0
** print returns heap text (plm_free). parse(print(g)) prints the same text (property test).
** parse initialises out, and leaves it empty after a failure; text of any bytes is safe, at most
** PLM_GRAPH_TEXT_MAX of them. Grammar: docs/graph-text.md. */
#define PLM_GRAPH_TEXT_MAX (64u << 20)
plm_status plm_graph_print(const plm_graph *g, char **text, plm_error *err) PLM_MUST_USE;
plm_status plm_graph_parse(const char *text, size_t bytes, plm_graph *out, plm_error *err)
    PLM_MUST_USE;

/* Bytes of a value at the upper bounds of the symbols (dim_values NULL), or with dims evaluated by
** plm_dims_eval. A planar value of rank 3 or 4 (experts) is so many matrices of their own. */
plm_status plm_value_bytes(const plm_graph *g, plm_value_id v, const int64_t *dim_values,
                           int64_t *bytes, plm_error *err) PLM_MUST_USE;

#endif
