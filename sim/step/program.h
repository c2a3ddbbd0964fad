/* program.h - inside of a cost program; for sim/step alone. */
#ifndef PLM_SIM_PROGRAM_H
#define PLM_SIM_PROGRAM_H
#include "core/ir/fuse.h"
#include "core/ir/work.h"
#include "sim/step/step.h"

/* The first PLM_ROW_FIELDS members of plm_work are doubles, in this order. */
enum {
    F_TENSOR, F_VECTOR, F_EXP, F_WEIGHT, F_ACT_READ, F_ACT_WRITE, F_KV_READ, F_KV_WRITE, F_STATE,
    F_LINK, F_M, F_N, F_K, F_GROUPS, PLM_ROW_FIELDS
};
enum { PLM_ROW_VARS = 3, PLM_ROW_MEMBERS = 20, PLM_PROGRAM_DIMS = 4096 };

typedef enum plm_row_kind {
    PLM_ROW_FORM,      /* every field affine in at most PLM_ROW_VARS dims */
    PLM_ROW_ATTENTION, /* affine traffic of q and output, and a sum over segments */
    PLM_ROW_GROUPED,   /* affine but for the experts hit */
    PLM_ROW_RULE       /* the work rules are asked each time */
} plm_row_kind;

typedef struct plm_row {
    plm_row_kind kind;
    plm_class cls;
    double count;       /* equal units of the graph */
    bool link_part;     /* the link of a fused group (its other members are another row) */
    bool loaded;        /* work grows with the imbalance of expert ranks */
    plm_work base;      /* constant part; types, link and launches */
    uint32_t n_vars;
    plm_dim var[PLM_ROW_VARS];
    double slope[PLM_ROW_VARS][PLM_ROW_FIELDS];
    plm_attention_shape attn;
    double local, experts, top_k; /* GROUPED */
    uint32_t n_members;
    plm_node_id member[PLM_ROW_MEMBERS];
    char name[64];
} plm_row;

struct plm_program {
    plm_graph g;
    plm_fuse_uses uses;
    int32_t top_k;
    plm_row *rows;
    size_t n_rows, room;
    double layers;      /* distinct layers among the nodes */
    int64_t weight_bytes, embed_bytes, activation_bytes;
};

/* ---- row.c ---- */
/* Work of a unit: one node, or the members of a fusion group without the traffic between them.
** link_part: of its links alone, or of all other members alone. dim_values by dim of the pool. */
void plm_unit_work(const plm_graph *g, const plm_fuse_uses *u, const plm_node_id *member,
                   uint32_t n, bool link_part, const int64_t *dim_values, const plm_batch *b,
                   plm_work *w, plm_class *cls);
/* Fills kind, class, form, attention shape and name of a row whose members are set. dims: scratch of
** the pool's size. */
void plm_row_resolve(const plm_graph *g, const plm_fuse_uses *u, plm_row *r, int64_t *dims);
/* Work of the row for a batch: 0, 1 or 2 parts (attention: single tokens, and longer segments).
** popularity: of experts, as in plm_skewed_experts. */
uint32_t plm_row_work(const plm_program *p, const plm_row *r, const int64_t *dims,
                      const plm_batch *b, double popularity, plm_work out[2]);

#endif
