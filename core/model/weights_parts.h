/* weights_parts.h - what the files of the weights module share. Private to core/model.
**
** weights_open.c: the files of a set. weights.c: its questions. weights_map.c: names of the
** graph -> tensors and rows of the file. weights_source.c: the planes of one tensor.
** weights_gather.c: view, pieces or copy. weights_decode.c: numbers of a weight as f32. */
#ifndef PLM_MODEL_WEIGHTS_PARTS_H
#define PLM_MODEL_WEIGHTS_PARTS_H
#include "core/base/file.h"
#include "core/model/weights.h"

#define PLM_RUNS_MAX 8

/* A tensor of the files and the file it lies in. */
typedef struct plm_weights_entry {
    const plm_tensor *t;
    uint32_t part;
} plm_weights_entry;

typedef struct plm_weights_part {
    plm_file map; /* data NULL where the caller holds the file */
    const unsigned char *data;
    size_t bytes;
    uint64_t start; /* of the tensors' data */
    plm_gguf *gguf;
    plm_safetensors *st;
    char *name; /* for errors */
} plm_weights_part;

struct plm_weights {
    const plm_arch *arch;
    bool gguf;
    plm_weights_part *part;
    size_t n_parts;
    plm_weights_entry *entry; /* in order of name */
    size_t n_entries;
    char prefix[48];    /* of the names of a safetensors model: "model." */
    const char *layers; /* "layers." or "h." */
};

/* Entry of a name, NULL if there is none. */
const plm_weights_entry *plm_weights_find(const plm_weights *w, const char *name);
static inline const unsigned char *plm_weights_data(const plm_weights *w,
                                                    const plm_weights_entry *e)
{
    return w->part[e->part].data + w->part[e->part].start + e->t->offset;
}

/* ---- a tensor with its planes (weights_source.c) ---- */

/* Rows of a tensor: all outer dims together. Flat ones (nf4) hold rows * cols numbers in one
** run. */
typedef struct plm_source {
    const plm_weights_entry *e;
    plm_dtype dtype;
    int64_t rows, cols;
    plm_plane plane[PLM_PLANES]; /* of all rows together; OFFSET has no data but `offset` */
    float offset;                /* nf4_dq */
} plm_source;
/* e: the tensor of the codes; its companions are found by its name. as_column: a vector as n
** rows of one number, else as one row. */
plm_status plm_source_open(const plm_weights *w, const plm_weights_entry *e, bool as_column,
                           plm_source *out, plm_error *err) PLM_MUST_USE;
/* Types and bytes of the planes of rows x cols numbers; PLM_E_INVALID where blocks do not divide
** them. */
plm_status plm_plane_sizes(plm_dtype t, int64_t rows, int64_t cols, plm_plane plane[PLM_PLANES],
                           plm_error *err) PLM_MUST_USE;
/* Bytes of the codes of one row; 0 where rows do not begin at a byte. */
uint64_t plm_source_row_bytes(const plm_source *s);

/* ---- where a wanted weight comes from (weights_map.c) ---- */

/* Rows of the target in order: for a < n[0], b < n[1], c < n[2]: row start + a step[0] + b
** step[1] + c step[2] of the source. */
typedef struct plm_run {
    uint32_t source; /* index into plm_origin.source */
    int64_t start;
    int64_t n[3], step[3];
} plm_run;

typedef enum plm_turn {
    PLM_TURN_NONE,
    PLM_TURN_ROWS,   /* the source is the target turned: runs count its columns, and the target's
                        columns   are its rows first .. first + cols */
    PLM_TURN_COLUMNS /* columns of the target in another order: groups of `group` columns, column
                        group i is group (i % n) * m + i / n of the source, with n * m groups */
} plm_turn;

typedef struct plm_origin {
    plm_source source[PLM_RUNS_MAX];
    uint32_t n_sources, n_runs;
    plm_run run[PLM_RUNS_MAX];
    plm_turn turn;
    int64_t first;             /* TURN_ROWS */
    int64_t group, fast, slow; /* TURN_COLUMNS: n, m */
    bool neg_exp;              /* -exp of each number */
} plm_origin;

/* What is wanted: a name of the graph and the shape as matrices. column: a vector, as rows of
** one. */
typedef struct plm_wanted {
    const char *name;
    const char *local; /* after "blk.N." */
    int32_t layer;     /* -1 outside layers */
    const plm_layer *l;
    int64_t matrices, rows, cols;
    bool column;
} plm_wanted;
/* Which rule of the map serves the weight: the first whose tensors are all there. *rule is for
** plm_map_origin. */
plm_status plm_map_rule(const plm_weights *w, const plm_wanted *q, size_t *rule,
                        plm_error *err) PLM_MUST_USE;
/* Origin of one matrix of the weight under that rule. */
plm_status plm_map_origin(const plm_weights *w, const plm_wanted *q, size_t rule, int64_t matrix,
                          plm_origin *out, plm_error *err) PLM_MUST_USE;

/* ---- view or copy (weights_gather.c) ---- */
/* fill false: storage type and sizes only. */
plm_status plm_gather(const plm_weights *w, const plm_wanted *q, bool fill, plm_weight *out,
                      plm_error *err) PLM_MUST_USE;

/* ---- numbers (weights_decode.c) ---- */
/* count rows from `row` of a source as doubles. */
plm_status plm_source_decode(const plm_source *s, int64_t row, int64_t count, double *out,
                             plm_error *err) PLM_MUST_USE;

#endif
