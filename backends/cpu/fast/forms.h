/* forms.h - the packed layouts, private to this folder.
**
** A block is 32 columns of the 16 rows of a panel. Its codes lie in planes, a plane in "steps" of four
** columns: byte 4 r + i of step s belongs to row r, column 4 s + i. Sizes for a block:
**   8 bits  8 steps of 64 bytes
**   4 bits  4 x 64 bytes, byte j of vector s: low half step s, high half step s + 4
**   2 bits  2 x 64 bytes after the 4-bit plane, bits 2t of vector h: step 4 h + t, worth 16
**   1 bit   8 x 64 bits after the 4-bit plane, bit j of word s: byte j of step s, worth 16
** Scales, little-endian like the files:
**   F16      16 halves a block
**   F16_MIN  16 halves scale, 16 halves minimum a block: value = d q + m
**   K        a super-block of 256: 16 halves d, 16 halves dmin, then for each of its 8 blocks 16 bytes
**            scale, 16 bytes minimum: value = d scale q - dmin min
**   K16      a super-block: 16 halves d, then for each 16 columns 16 signed bytes: d scale (q - 2^z)
**   KS       a super-block: 16 halves d, then for each block 16 signed bytes
**   E8M0     16 bytes a block: 2^(e - 127) / 2, as the code book holds doubled numbers */
#ifndef PLM_CPU_FORMS_H
#define PLM_CPU_FORMS_H
#include "backends/cpu/fast/kernels.h"

/* Loops over constant bounds whose arrays are to stay in registers. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL
#endif

typedef enum plm_scale_form {
    PLM_SCALE_NONE, PLM_SCALE_F16, PLM_SCALE_F16_MIN, PLM_SCALE_K, PLM_SCALE_K16, PLM_SCALE_KS,
    PLM_SCALE_E8M0
} plm_scale_form;
typedef enum plm_book { PLM_BOOK_NONE, PLM_BOOK_IQ4, PLM_BOOK_E2M1 } plm_book;

/* X(type, file block, bytes of it, bits of a code, z: log2 of the zero point or -1, scales, book) */
#define PLM_FORM_MAP(X)                                                                           \
    X(Q8_0, 32, 34, 8, 7, F16, NONE)                                                              \
    X(Q4_0, 32, 18, 4, 3, F16, NONE)                                                              \
    X(Q4_1, 32, 20, 4, -1, F16_MIN, NONE)                                                         \
    X(Q5_0, 32, 22, 5, 4, F16, NONE)                                                              \
    X(Q5_1, 32, 24, 5, -1, F16_MIN, NONE)                                                         \
    X(Q4_K, 256, 144, 4, -1, K, NONE)                                                             \
    X(Q5_K, 256, 176, 5, -1, K, NONE)                                                             \
    X(Q6_K, 256, 210, 6, 5, K16, NONE)                                                            \
    X(IQ4_NL, 32, 18, 4, 7, F16, IQ4)                                                             \
    X(IQ4_XS, 256, 136, 4, 7, KS, IQ4)                                                            \
    X(MXFP4, 32, 17, 4, 4, E8M0, E2M1)
typedef struct plm_form {
    plm_backend_dtype type;
    int block, block_bytes, bits, z;
    plm_scale_form scale;
    plm_book book;
} plm_form;

/* NULL for types without codes (f32 f16 bf16) and those that are not packed. */
const plm_form *plm_form_of(plm_backend_dtype type);
/* Bytes of one number of a float type, 0 for the others. */
int plm_float_bytes(plm_backend_dtype type);
/* Bytes of the scales of a panel, rounded up to 64; of all of a panel. */
int64_t plm_head_bytes(const plm_form *f, int64_t k);
int64_t plm_panel_bytes(plm_backend_dtype type, int64_t k);

/* Code books by code, the zero point added. IQ4: fixed by the format. E2M1: twice the OCP values. */
extern const unsigned char plm_book_iq4[16], plm_book_e2m1[16];

float plm_half_to_float(uint16_t h);
uint16_t plm_float_to_half(float x); /* nearest, ties to even */
float plm_e8m0_half(unsigned char e); /* 2^(e - 128) */

static inline uint16_t plm_u16_at(const unsigned char *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline int64_t plm_round_up(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

/* 32 int8 activations, one line of the cache: codes, scale, scale * sum of codes, -sum of the codes and
** of each half of them. A row of them is k / 32 blocks. */
typedef struct plm_i8_block {
    signed char q[32];
    float d, dsum;
    int32_t nsum, nsum16[2], unused[3];
} plm_i8_block;
#endif
