/* codec.h - numbers in and out of storage types, exactly.
**
** A double holds every value of the small formats and every product of two scales and a code, so
** decoding is exact except where a GGUF block multiplies more than 53 bits together (it does not).
** Thread-safe; nothing allocates. */
#ifndef PLM_IR_CODEC_H
#define PLM_IR_CODEC_H
#include "core/ir/dtype.h"

/* ---- small floats ---- */
/* A binary float of 1 sign, exp_bits and man_bits. IEEE: the greatest exponent holds infinities and
** NaN. Otherwise it holds numbers, and `nan` says whether all ones is NaN (OCP E4M3 "fn"). */
typedef struct plm_small_float {
    int exp_bits, man_bits, bias;
    bool ieee, nan;
    double max; /* greatest finite value */
} plm_small_float;
extern const plm_small_float plm_float_f16, plm_float_bf16, plm_float_f8e4m3, plm_float_f8e5m2,
    plm_float_e2m1;

/* The value of a code (its low 1 + exp_bits + man_bits bits). */
double plm_small_decode(const plm_small_float *f, uint32_t code);
/* The nearest code, ties to even. Past the greatest finite value: infinity if ieee and not
** `saturate`, else the greatest finite value of that sign. NaN: a NaN of the format, 0 if it has
** none. */
uint32_t plm_small_encode(const plm_small_float *f, double x, bool saturate);
/* decode(encode(x)) */
double plm_small_round(const plm_small_float *f, double x, bool saturate);

double plm_half_decode(uint16_t h);
uint16_t plm_half_encode(double x);
double plm_bf16_decode(uint16_t h);
uint16_t plm_bf16_encode(double x);

/* The value nearest to x of a plain number type: f16, bf16 and f32 round to even with overflow to
** infinity; f8 types to even with saturation, as converting kernels do; integers to even, held
** within their range (NaN gives 0). PLM_E_UNSUPPORTED for a type that is not plain. */
plm_status plm_round_to(plm_dtype t, double x, double *y, plm_error *err) PLM_MUST_USE;

/* Code book of NF4 in order of code. Source: bitsandbytes, arXiv 2305.14314 appendix E. */
extern const double plm_nf4_value[16];
/* n numbers from NF4 codes (two a byte, the first in the high four bits) with one absmax a block.
** `codes` holds (n+1)/2 bytes, absmax (n+block-1)/block numbers. */
void plm_nf4_decode(const unsigned char *codes, const double *absmax, int64_t n, int64_t block,
                    double *out);

/* ---- stored weights ---- */
/* n numbers of a plain or interleaved type from `data`, which holds n / block * block_bytes bytes.
** PLM_E_INVALID when n is negative or no multiple of the block; PLM_E_UNSUPPORTED for planar types
** (their planes lie apart) and for types whose code books are not here (iq1, iq2, iq3, 6-bit
** floats). */
plm_status plm_decode(plm_dtype t, const unsigned char *data, int64_t n, double *out,
                      plm_error *err) PLM_MUST_USE;

/* Rounds a row of n numbers through a quantised activation type, block by block (block 0 = the
** whole row), in place: each becomes what its code and scale decode to. Formats and scales:
**   i8, int8_row          scale = float32(amax / 127), code = nearest integer, halves away from 0
**   q8_0                  as i8 with a float16 scale; codes by the unrounded scale, as in GGUF
**   files
**   f8e4m3, fp8_row, fp8_block   scale = float32(amax / 448); f8e5m2: amax / 57344
**   mxfp8                 scale = 2^(floor(log2 amax) - 8), e4m3 codes, saturating (OCP MX v1.0,
**   6.3)
**   mxfp4, mxfp4_planar   scale = 2^(floor(log2 amax) - 2), e2m1 codes, saturating
**   nvfp4                 scale = e4m3(amax / 6), e2m1 codes
**   nvfp4_planar          scale = e4m3(amax / 6 / tensor_scale) * tensor_scale, e2m1 codes
** `block` counts for i8, f8e4m3 and f8e5m2; the others have their own: the row for *_row, 128 for
** fp8_block, 16 for nvfp4, else 32. tensor_scale is of nvfp4_planar alone: amax of the tensor /
** (448 * 6). The last block of a row may be short. PLM_E_UNSUPPORTED for other types. */
plm_status plm_quant_row(plm_dtype t, double *x, int64_t n, int64_t block, double tensor_scale,
                         plm_error *err) PLM_MUST_USE;

#endif
