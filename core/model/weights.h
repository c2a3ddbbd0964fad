/* weights.h - the weights of a graph, found in the files people have.
**
** A set of weights is one GGUF file (single, or all parts of a split) or a folder of
** safetensors, mapped read-only. The names and shapes asked for are those of the graph (build.h:
** "blk.3.attn_q", "token_embd", ...); what the file calls them, how it fuses, stacks or
** transposes them, is the matter of this module (weights_map.c has the tables). Where the wanted
** matrix lies in the file as it stands, the answer points into the map; where rows must be
** gathered or turned, it is a copy of its own.
**
** Nothing is read when the set is opened but headers, and no answer points outside its map,
** whatever the file says. Files must not shrink while they are open (see plm_file_map).
**
** Numbers are little endian, as in both formats; so must be the machine. */
#ifndef PLM_MODEL_WEIGHTS_H
#define PLM_MODEL_WEIGHTS_H
#include "core/model/build.h"
#include "core/model/load.h"

/* ---- one weight ---- */

/* Planes of a weight. Plain numbers and GGUF blocks have CODES alone. Codes of four bits lie two a
** byte, the first in the low half; in nf4 and nf4_dq the first lies in the high half.
**   fp8_block            CODES f8e4m3 [rows, cols]; SCALES f32 [ceil(rows/128), ceil(cols/128)]
**   fp8_row, int8_row    CODES [rows, cols]; SCALES f32 [rows]
**   fp8                  CODES [rows, cols]; SCALES f32 [1]
**   mxfp4_planar         CODES e2m1 [rows, cols/2 bytes]; SCALES e8m0 [rows, cols/32]
**   nf4                  CODES flat over the tensor; SCALES f32 [n/64]; MAP f32 [16]
**   nf4_dq               CODES flat; SCALES u8 [n/64]; SUPER f32 [n/64/256]; MAP f32 [16];
**                        SUPER_MAP f32 [256]; OFFSET f32 [1]: scale i is
**                        SUPER_MAP[SCALES[i]] * SUPER[i/256] + OFFSET */
typedef enum plm_plane_id {
    PLM_PLANE_CODES,
    PLM_PLANE_SCALES,
    PLM_PLANE_SUPER,
    PLM_PLANE_MAP,
    PLM_PLANE_SUPER_MAP,
    PLM_PLANE_OFFSET,
    PLM_PLANES
} plm_plane_id;

typedef struct plm_plane {
    const unsigned char *data; /* of matrix 0; NULL: no such plane, or a weight in pieces */
    uint64_t bytes;            /* of one matrix */
    plm_dtype dtype;           /* of its elements */
} plm_plane;

/* A weight of rank 1 .. 3: `matrices` matrices of `rows` rows of `cols` elements, innermost
** contiguous, row after row without gaps. Rank 1 is one row; rank 3 is a stack (experts, heads).
** A stack may lie in pieces, one tensor of the file for each matrix: then plane[].data is NULL
** and plm_weight_plane gives the place of each. Data are aligned to their elements (f32 4, f16
** and GGUF blocks 2 bytes), no more. */
typedef struct plm_weight {
    plm_dtype dtype; /* plain, GGUF block, or planar */
    uint32_t rank;
    int64_t dim[PLM_RANK_MAX];
    int64_t matrices, rows, cols;
    plm_plane plane[PLM_PLANES];
    uint64_t bytes;              /* all planes of all matrices: plm_dtype_bytes of each, added */
    const unsigned char **piece; /* [matrices * PLM_PLANES], NULL unless in pieces */
    unsigned char *own;          /* the copy, NULL where every plane points into the map */
    uint64_t own_bytes;
} plm_weight;

/* Place of a plane of one matrix: plane[p].bytes bytes, valid until plm_weight_release (and, unless
** `own`, until the set is closed). NULL when the weight has no such plane or no such matrix. */
const unsigned char *plm_weight_plane(const plm_weight *v, int64_t matrix, plm_plane_id p);
/* Frees the copy and the list of pieces; v is zero afterwards. */
void plm_weight_release(plm_weight *v);
/* Puts a weight in pieces into one copy of its own, so that plane[].data is set; others stay. */
plm_status plm_weight_join(plm_weight *v, plm_error *err) PLM_MUST_USE;
/* Rows row .. row + count of one matrix as f32: out[count][cols]. Exact for every type whose values
** f32 holds; any type that plm_decode knows, and the planar ones above. Thread-safe. */
plm_status plm_weight_decode(const plm_weight *v, int64_t matrix, int64_t row, int64_t count,
                             float *out, plm_error *err) PLM_MUST_USE;

/* ---- the set ---- */

typedef struct plm_weights plm_weights;

/* path: a .gguf (of a split: any part), a .safetensors, or a folder (its
** model.safetensors.index.json where it has one, else all *.safetensors in it). arch: the record
** read from the same file, which says how fused matrices divide; it must outlive the set.
** Read-only afterwards: any number of threads may ask it at once. */
plm_status plm_weights_open(const char *path, const plm_arch *arch, plm_weights **out,
                            plm_error *err) PLM_MUST_USE;
/* The same of files that already lie in memory, which must outlive the set: all GGUF or all
** safetensors, told by their first bytes. */
typedef struct plm_weights_file {
    const unsigned char *data; /* 8-byte aligned */
    size_t bytes;
    const char *name; /* for errors */
} plm_weights_file;
plm_status plm_weights_open_memory(const plm_weights_file *files, size_t n, const plm_arch *arch,
                                   plm_weights **out, plm_error *err) PLM_MUST_USE;
void plm_weights_close(plm_weights *w);

/* The weight a graph names, in the graph's shape (rank 1 .. 3). PLM_E_NOT_FOUND names what the
** file lacks; PLM_E_INVALID the tensor whose shape or planes are not as they should be;
** PLM_E_UNSUPPORTED a gathering that its storage does not allow. *out is zero after a failure;
** release it after success. */
plm_status plm_weights_get(const plm_weights *w, const char *name, uint32_t rank,
                           const int64_t *dim, plm_weight *out, plm_error *err) PLM_MUST_USE;
/* Storage type of that weight, found and checked as by plm_weights_get, but nothing copied. */
plm_status plm_weights_dtype(const plm_weights *w, const char *name, uint32_t rank,
                             const int64_t *dim, plm_dtype *out, plm_error *err) PLM_MUST_USE;
/* A tensor by the file's own name, as it lies ("rope_freqs.weight"); rank above 3 is folded. */
plm_status plm_weights_tensor(const plm_weights *w, const char *name, plm_weight *out,
                              plm_error *err) PLM_MUST_USE;

/* Gives every weight of a graph the storage type that the files hold it in, so that the graph
** that is costed and run says the file's bytes; fails on the first weight that the files lack.
** The graph is verified again. (Build it with any recipe first; quantised activations are the
** recipe's matter.) */
plm_status plm_weights_stamp(const plm_weights *w, plm_graph *g, plm_error *err) PLM_MUST_USE;

/* The first part of a GGUF, with the metadata; NULL for safetensors. */
const plm_gguf *plm_weights_gguf(const plm_weights *w);

#endif
