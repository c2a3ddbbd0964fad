/* codec_gguf.c - GGUF blocks, and plain types of several numbers a byte, as numbers.
**
** Layouts after the published description of the GGML block types (block_q4_0 ... block_nvfp4 of
** ggml-common.h); sizes in core/ir/dtype.def. All scales are little-endian. p is the block, y its
** elements. */
#include "core/ir/codec_gguf.h"

#include <math.h>
#include <stddef.h>

#include "core/ir/codec.h"

/* Code books. E2M1 stands as in OCP MX v1.0; IQ4's is fixed by the format. */
static const double e2m1[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6};
static const double iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                               1,    13,   25,  38,  53,  69,  89,  113};

static double half_at(const unsigned char *p)
{
    return plm_half_decode((uint16_t)(p[0] | p[1] << 8));
}

static int signed_byte(unsigned char b)
{
    return b < 128 ? b : b - 256;
}

/* 4-bit code i of 32 in 16 bytes: the low halves hold 0..15, the high ones 16..31. */
static int nibble(const unsigned char *qs, int i)
{
    return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
}

/* f16 d, 16 bytes: d (q - 8) */
static void decode_q4_0(const unsigned char *p, double *y)
{
    for (int i = 0; i < 32; i++)
        y[i] = half_at(p) * (nibble(p + 2, i) - 8);
}

/* f16 d, f16 m, 16 bytes: d q + m */
static void decode_q4_1(const unsigned char *p, double *y)
{
    for (int i = 0; i < 32; i++)
        y[i] = half_at(p) * nibble(p + 4, i) + half_at(p + 2);
}

/* Bit i of 32 in 4 bytes, as the fifth bit of a code. */
static int fifth_bit(const unsigned char *qh, int i)
{
    return (qh[i / 8] >> (i % 8) & 1) << 4;
}

/* f16 d, 4 bytes of fifth bits, 16 bytes: d (q - 16) */
static void decode_q5_0(const unsigned char *p, double *y)
{
    for (int i = 0; i < 32; i++)
        y[i] = half_at(p) * ((nibble(p + 6, i) | fifth_bit(p + 2, i)) - 16);
}

/* f16 d, f16 m, 4 bytes of fifth bits, 16 bytes: d q + m */
static void decode_q5_1(const unsigned char *p, double *y)
{
    for (int i = 0; i < 32; i++)
        y[i] = half_at(p) * (nibble(p + 8, i) | fifth_bit(p + 4, i)) + half_at(p + 2);
}

/* f16 d, 32 signed bytes */
static void decode_q8_0(const unsigned char *p, double *y)
{
    for (int i = 0; i < 32; i++)
        y[i] = half_at(p) * signed_byte(p[2 + i]);
}

/* f16 d, f16 sum (of d q, not needed), 32 signed bytes */
static void decode_q8_1(const unsigned char *p, double *y)
{
    for (int i = 0; i < 32; i++)
        y[i] = half_at(p) * signed_byte(p[4 + i]);
}

/* 2-bit code i of 128 in 32 bytes: byte i % 32, bits 2 (i / 32). */
static int two_bits(const unsigned char *qs, int i)
{
    return qs[i % 32] >> 2 * (i / 32) & 3;
}

/* 16 bytes scale (low half) and minimum (high half) of 16 elements each, 64 bytes of codes in two
** halves of 128 elements, f16 d, f16 dmin: d scale q - dmin min */
static void decode_q2_k(const unsigned char *p, double *y)
{
    double d = half_at(p + 80), dmin = half_at(p + 82);
    for (int i = 0; i < 256; i++) {
        unsigned char s = p[i / 16];
        int q = two_bits(p + 16 + 32 * (i / 128), i % 128);
        y[i] = d * (s & 15) * q - dmin * (s >> 4);
    }
}

/* 6-bit scale j of 16 in 12 bytes: low four bits in bytes 0..7 (halves), high two in 8..11. */
static int q3_scale(const unsigned char *s, int j)
{
    int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
    return low | (s[8 + j % 4] >> 2 * (j / 4) & 3) << 4;
}

/* 32 bytes of third bits (bit i / 32 of byte i % 32; clear means -4), 64 bytes of codes, 12 bytes
** of scales, f16 d: d (scale - 32) (q - 4 or q) */
static void decode_q3_k(const unsigned char *p, double *y)
{
    double d = half_at(p + 108);
    for (int i = 0; i < 256; i++) {
        int q = two_bits(p + 32 + 32 * (i / 128), i % 128);
        int high = p[i % 32] >> (i / 32) & 1;
        y[i] = d * (q3_scale(p + 96, i / 16) - 32) * (q - (high ? 0 : 4));
    }
}

/* 6-bit scale and minimum j of 8 in 12 bytes: the first four stand whole in bytes j and j + 4; the
** low four bits of the others share bytes 8..11, their high two are on top of bytes 0..7. */
static void k_scale(const unsigned char *s, int j, int *scale, int *min)
{
    if (j < 4) {
        *scale = s[j] & 63;
        *min = s[j + 4] & 63;
    } else {
        *scale = (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
        *min = s[j + 4] >> 4 | s[j] >> 6 << 4;
    }
}

/* f16 d, f16 dmin, 12 bytes of scales, 128 bytes: each 32 bytes hold 64 elements, low halves first:
** d scale q - dmin min */
static void decode_q4_k(const unsigned char *p, double *y)
{
    double d = half_at(p), dmin = half_at(p + 2);
    for (int i = 0; i < 256; i++) {
        int scale, min;
        k_scale(p + 4, i / 32, &scale, &min);
        unsigned char byte = p[16 + 32 * (i / 64) + i % 32];
        int q = i % 64 < 32 ? byte & 15 : byte >> 4;
        y[i] = d * scale * q - dmin * min;
    }
}

/* As q4_k with 32 bytes of fifth bits (bit i / 32 of byte i % 32) before the codes. */
static void decode_q5_k(const unsigned char *p, double *y)
{
    double d = half_at(p), dmin = half_at(p + 2);
    for (int i = 0; i < 256; i++) {
        int scale, min;
        k_scale(p + 4, i / 32, &scale, &min);
        unsigned char byte = p[48 + 32 * (i / 64) + i % 32];
        int q = i % 64 < 32 ? byte & 15 : byte >> 4;
        q |= (p[16 + i % 32] >> (i / 32) & 1) << 4;
        y[i] = d * scale * q - dmin * min;
    }
}

/* 128 bytes of low halves, 64 bytes of high pairs, 16 signed scales, f16 d; two halves of 128
** elements, in each the codes of 0..63 in the low, 64..127 in the high halves of 64 bytes:
** d scale (q - 32) */
static void decode_q6_k(const unsigned char *p, double *y)
{
    double d = half_at(p + 208);
    for (int i = 0; i < 256; i++) {
        int part = i / 128, j = i % 128;
        unsigned char byte = p[64 * part + j % 64];
        int low = j < 64 ? byte & 15 : byte >> 4;
        int high = p[128 + 32 * part + j % 32] >> 2 * (j / 32) & 3;
        y[i] = d * signed_byte(p[192 + i / 16]) * ((low | high << 4) - 32);
    }
}

/* float32 d, 256 signed bytes, 16 sums (not needed) */
static void decode_q8_k(const unsigned char *p, double *y)
{
    double d = 0;
    plm_error ignored;
    if (plm_decode(PLM_DT_F32, p, 1, &d, &ignored) != PLM_OK)
        d = NAN;
    for (int i = 0; i < 256; i++)
        y[i] = d * signed_byte(p[4 + i]);
}

/* f16 d, 16 bytes of codes into the book */
static void decode_iq4_nl(const unsigned char *p, double *y)
{
    for (int i = 0; i < 32; i++)
        y[i] = half_at(p) * iq4[nibble(p + 2, i)];
}

/* f16 d, 2 bytes of high pairs, 4 bytes of low halves of 8 scales, 128 bytes of codes:
** d (scale - 32) book[q] */
static void decode_iq4_xs(const unsigned char *p, double *y)
{
    for (int i = 0; i < 256; i++) {
        int b = i / 32;
        int low = p[4 + b / 2] >> 4 * (b % 2) & 15, high = (p[2] | p[3] << 8) >> 2 * b & 3;
        y[i] = half_at(p) * ((low | high << 4) - 32) * iq4[nibble(p + 8 + 16 * b, i % 32)];
    }
}

/* E8M0 scale, 16 bytes of E2M1 codes */
static void decode_mxfp4(const unsigned char *p, double *y)
{
    for (int i = 0; i < 32; i++)
        y[i] = ldexp(e2m1[nibble(p + 1, i)], p[0] - 127);
}

/* 4 unsigned E4M3 scales (7 bits; all ones counts as 0), 32 bytes of E2M1 codes, 4 groups of 16 */
static void decode_nvfp4(const unsigned char *p, double *y)
{
    for (int i = 0; i < 64; i++) {
        int group = i / 16, j = i % 16;
        unsigned char byte = p[4 + 8 * group + j % 8];
        unsigned scale = p[group] & 127u;
        double d = scale == 127 ? 0 : plm_small_decode(&plm_float_f8e4m3, scale);
        y[i] = d * e2m1[j < 8 ? byte & 15 : byte >> 4];
    }
}

/* f16 d, 16 bytes, one bit an element: d or -d */
static void decode_q1_0(const unsigned char *p, double *y)
{
    for (int i = 0; i < 128; i++)
        y[i] = half_at(p) * ((p[2 + i / 8] >> i % 8 & 1) ? 1 : -1);
}

/* f16 d, 16 bytes, two bits an element: d (q - 1) */
static void decode_q2_0(const unsigned char *p, double *y)
{
    for (int i = 0; i < 64; i++)
        y[i] = half_at(p) * ((p[2 + i / 4] >> 2 * (i % 4) & 3) - 1);
}

/* Digit n (0 = greatest) of the five ternary digits that a byte holds as a fraction of 256: the
** byte is ceil(256 v / 243), so 3^n b mod 256 keeps the digits after the n-th, and 3/256 of it the
** next one. */
static int trit(unsigned char b, int n)
{
    static const unsigned pow3[5] = {1, 3, 9, 27, 81};
    return (int)((b * pow3[n] & 255) * 3 >> 8);
}

/* 48 bytes of five trits, 4 bytes of four, f16 d: d (trit - 1). 32 bytes hold elements 0..159, 16
** bytes 160..239, 4 bytes 240..255; digit n of all bytes of a part before digit n + 1. */
static void decode_tq1_0(const unsigned char *p, double *y)
{
    double d = half_at(p + 52);
    for (int i = 0; i < 256; i++) {
        int t = i < 160   ? trit(p[i % 32], i / 32)
                : i < 240 ? trit(p[32 + i % 16], (i - 160) / 16)
                          : trit(p[48 + i % 4], (i - 240) / 4);
        y[i] = d * (t - 1);
    }
}

/* 64 bytes of 2-bit codes in two parts of 128 elements, f16 d: d (q - 1) */
static void decode_tq2_0(const unsigned char *p, double *y)
{
    for (int i = 0; i < 256; i++)
        y[i] = half_at(p + 64) * (two_bits(p + 32 * (i / 128), i % 128) - 1);
}

/* Two numbers a byte, the first in the low half. */
static void decode_f4e2m1(const unsigned char *p, double *y)
{
    y[0] = e2m1[*p & 15];
    y[1] = e2m1[*p >> 4];
}

/* As f4e2m1, two's complement. */
static void decode_i4(const unsigned char *p, double *y)
{
    y[0] = ((*p & 15) ^ 8) - 8;
    y[1] = ((*p >> 4) ^ 8) - 8;
}

static const struct decoder {
    plm_dtype dtype;
    plm_block_decoder decode;
} decoders[] = {
    {PLM_DT_Q4_0, decode_q4_0},     {PLM_DT_Q4_1, decode_q4_1},     {PLM_DT_Q5_0, decode_q5_0},
    {PLM_DT_Q5_1, decode_q5_1},     {PLM_DT_Q8_0, decode_q8_0},     {PLM_DT_Q8_1, decode_q8_1},
    {PLM_DT_Q2_K, decode_q2_k},     {PLM_DT_Q3_K, decode_q3_k},     {PLM_DT_Q4_K, decode_q4_k},
    {PLM_DT_Q5_K, decode_q5_k},     {PLM_DT_Q6_K, decode_q6_k},     {PLM_DT_Q8_K, decode_q8_k},
    {PLM_DT_IQ4_NL, decode_iq4_nl}, {PLM_DT_IQ4_XS, decode_iq4_xs}, {PLM_DT_MXFP4, decode_mxfp4},
    {PLM_DT_NVFP4, decode_nvfp4},   {PLM_DT_Q1_0, decode_q1_0},     {PLM_DT_Q2_0, decode_q2_0},
    {PLM_DT_TQ1_0, decode_tq1_0},   {PLM_DT_TQ2_0, decode_tq2_0},   {PLM_DT_F4E2M1, decode_f4e2m1},
    {PLM_DT_I4, decode_i4},
};

plm_block_decoder plm_block_decoder_of(plm_dtype t)
{
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++)
        if (decoders[i].dtype == t)
            return decoders[i].decode;
    return NULL;
}
