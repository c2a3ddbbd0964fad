/* dtype.h - every storage type in one table: plain numbers, GGUF blocks, planar formats.
**
** INTERLEAVED types (GGUF) store a row as blocks of `block` elements in `block_bytes` bytes, scales
** inside. PLANAR types (safetensors) keep the codes, scales and zero points of one tensor in several
** planes; their size depends on rows and columns (plm_dtype_bytes). core/ir/dtype.def is the table.
*/
#ifndef PLM_IR_DTYPE_H
#define PLM_IR_DTYPE_H
#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"

typedef enum plm_dtype {
#define PLM_DT(id, name, ...) PLM_DT_##id,
#include "core/ir/dtype.def"
#undef PLM_DT
    PLM_DT_COUNT
} plm_dtype;

typedef enum plm_dtype_family { PLM_FAMILY_PLAIN, PLM_FAMILY_INTERLEAVED, PLM_FAMILY_PLANAR }
    plm_dtype_family;

/* What the tensor units see after the weights are unpacked: the row of the device's peak table. */
typedef enum plm_math {
#define PLM_MATH_MAP(X)                                                                            \
    X(F32, "fp32")                                                                                 \
    X(TF32, "tf32")                                                                                \
    X(F16, "fp16")                                                                                 \
    X(BF16, "bf16")                                                                                \
    X(F8, "fp8")                                                                                   \
    X(I8, "int8")                                                                                  \
    X(F6, "fp6")                                                                                   \
    X(F4, "fp4")                                                                                   \
    X(I4, "int4")                                                                                  \
    X(F64, "fp64")                                                                                 \
    X(F16_ACC16, "fp16_acc16")                                                                     \
    X(F8_ACC16, "fp8_acc16")
#define PLM_MATH_ENUM(id, name) PLM_MATH_##id,
    PLM_MATH_MAP(PLM_MATH_ENUM)
#undef PLM_MATH_ENUM
    PLM_MATH_COUNT
} plm_math;

typedef struct plm_dtype_info {
    const char *name;          /* "q4_k", lower case, unique */
    plm_dtype_family family;
    int32_t gguf_id;           /* ggml type id, -1 = not in GGUF */
    const char *safetensors;   /* "BF16", NULL = none */
    uint32_t block;            /* elements of a block (1 for plain, more where bytes hold several) */
    uint32_t block_bytes;      /* bytes of a block; planar: bytes of the codes of `block` elements */
    uint32_t group_cols;       /* planar: columns that share a scale, 0 = the whole row */
    uint32_t group_rows;       /* planar: rows that share a scale (128 for fp8_block); 0 = groups
                                * run on through the rows (NF4 stores the tensor flat) */
    uint32_t scale_bits;       /* planar: bits of a scale (+ zero point) per group */
    uint32_t super_group;      /* planar: scales that share a second-level scale (NF4: 256) */
    uint32_t super_bits;
    uint32_t tensor_bytes;     /* planar: once a tensor */
    plm_math math;             /* natural arithmetic of the format (codes decoded) */
} plm_dtype_info;

const plm_dtype_info *plm_dtype_get(plm_dtype t);
/* By name without regard to case, with aliases ("fp16" = "f16", "float8_e4m3fn" = "f8e4m3").
** PLM_DT_COUNT if unknown. */
plm_dtype plm_dtype_by_name(const char *name);
plm_dtype plm_dtype_by_gguf(int64_t gguf_id);
plm_dtype plm_dtype_by_safetensors(const char *name);

/* Bytes of a tensor of `rows` rows of `cols` elements (rows = product of the outer dims).
** PLM_E_INVALID when cols is not a multiple of the block of an interleaved type, when either is
** negative, or when the size does not fit int64. */
plm_status plm_dtype_bytes(plm_dtype t, int64_t rows, int64_t cols, int64_t *bytes,
                           plm_error *err) PLM_MUST_USE;
/* Mean bits per element of a large tensor, e.g. 4.126953125 for nf4_dq. */
double plm_dtype_bits(plm_dtype t);

#endif
