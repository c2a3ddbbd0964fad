/* lanes_generic.h - sixteen lanes in plain C, and what their names mean at every level.
**
** vf sixteen floats, vi sixteen int32, vb sixty-four bytes (four a lane). _part: the first n lanes alone
** are touched, the others read as 0. vi_dot adds to each lane its four unsigned bytes times the four
** signed ones at x; `wide` says that codes may pass 63. Multiply-adds round once at the vector levels,
** twice here. */
#ifndef PLM_CPU_LANES_GENERIC_H
#define PLM_CPU_LANES_GENERIC_H
#include <math.h>
#include <string.h>

#include "backends/cpu/fast/forms.h"

#define LANE static inline
#undef UNROLL
#define UNROLL /* left to the compiler */
typedef struct vf { float v[16]; } vf;
typedef struct vi { int32_t v[16]; } vi;
typedef struct vb { unsigned char v[64]; } vb;

#define I8_ROWS 1
#define I8_PANELS 1
#define F_ROWS 2
#define F_PANELS 1

#define LANE_EACH(type, out, expr)                                                                 \
    type out;                                                                                      \
    for (int i = 0; i < 16; i++)                                                                   \
        out.v[i] = (expr);                                                                         \
    return out
LANE vf vf_set1(float x) { LANE_EACH(vf, y, x); }
LANE vf vf_zero(void) { return vf_set1(0); }
LANE vf vf_load(const float *p) { LANE_EACH(vf, y, p[i]); }
LANE vf vf_load_part(const float *p, int n) { LANE_EACH(vf, y, i < n ? p[i] : 0); }
LANE void vf_store_part(float *p, vf x, int n)
{
    for (int i = 0; i < n && i < 16; i++)
        p[i] = x.v[i];
}
LANE void vf_store(float *p, vf x) { vf_store_part(p, x, 16); }
LANE vf vf_add(vf a, vf b) { LANE_EACH(vf, y, a.v[i] + b.v[i]); }
LANE vf vf_sub(vf a, vf b) { LANE_EACH(vf, y, a.v[i] - b.v[i]); }
LANE vf vf_mul(vf a, vf b) { LANE_EACH(vf, y, a.v[i] * b.v[i]); }
LANE vf vf_div(vf a, vf b) { LANE_EACH(vf, y, a.v[i] / b.v[i]); }
/* As the instructions: the second when either is NaN. */
LANE vf vf_max(vf a, vf b) { LANE_EACH(vf, y, a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
LANE vf vf_min(vf a, vf b) { LANE_EACH(vf, y, a.v[i] < b.v[i] ? a.v[i] : b.v[i]); }
LANE vf vf_fma(vf a, vf b, vf c) { LANE_EACH(vf, y, a.v[i] * b.v[i] + c.v[i]); }
LANE vf vf_fnma(vf a, vf b, vf c) { LANE_EACH(vf, y, c.v[i] - a.v[i] * b.v[i]); }
LANE float vf_sum(vf x)
{
    float sum = 0;
    for (int i = 0; i < 16; i++)
        sum += x.v[i];
    return sum;
}
LANE float vf_greatest(vf x)
{
    float most = x.v[0];
    for (int i = 1; i < 16; i++)
        most = x.v[i] > most ? x.v[i] : most;
    return most;
}
LANE vf vf_from_i(vi x) { LANE_EACH(vf, y, (float)x.v[i]); }
LANE vf vf_f16(const unsigned char *p) { LANE_EACH(vf, y, plm_half_to_float(plm_u16_at(p + 2 * i))); }
LANE vf vf_u8(const unsigned char *p) { LANE_EACH(vf, y, (float)p[i]); }
LANE vf vf_s8(const unsigned char *p) { LANE_EACH(vf, y, (float)(signed char)p[i]); }
LANE float bf16_at(const unsigned char *p)
{
    uint32_t bits = (uint32_t)plm_u16_at(p) << 16;
    float y;
    memcpy(&y, &bits, 4);
    return y;
}
LANE vf vf_bf16(const unsigned char *p) { LANE_EACH(vf, y, bf16_at(p + 2 * i)); }
/* Lane i of even and odd: numbers 2 i and 2 i + 1. */
LANE void vf_bf16_pairs(const unsigned char *p, vf *even, vf *odd)
{
    for (int i = 0; i < 16; i++) {
        even->v[i] = bf16_at(p + 4 * i);
        odd->v[i] = bf16_at(p + 4 * i + 2);
    }
}
/* Nearest, ties to even. */
LANE vf vf_round(vf x) { LANE_EACH(vf, y, rintf(x.v[i])); }
/* x 2^n, n whole and within +-300 */
LANE vf vf_scale2(vf x, vf n) { LANE_EACH(vf, y, ldexpf(x.v[i], (int)n.v[i])); }

LANE vf vf_within(vf x, int lo, int hi) { LANE_EACH(vf, y, i >= lo && i < hi ? x.v[i] : -INFINITY); }
LANE void vf_transpose(vf v[16])
{
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < i; j++) {
            float t = v[i].v[j];
            v[i].v[j] = v[j].v[i];
            v[j].v[i] = t;
        }
}
LANE void vf_store_f16(unsigned char *p, vf x)
{
    for (int i = 0; i < 16; i++) {
        uint16_t h = plm_float_to_half(x.v[i]);
        memcpy(p + 2 * i, &h, 2);
    }
}

LANE vi vi_set1(int32_t x) { LANE_EACH(vi, y, x); }
LANE vi vi_zero(void) { return vi_set1(0); }
LANE vi vi_add(vi a, vi b) { LANE_EACH(vi, y, a.v[i] + b.v[i]); }
LANE vi vi_shl(vi x, int n) { LANE_EACH(vi, y, x.v[i] * (1 << n)); }
LANE int32_t vi_sum(vi x)
{
    int32_t sum = 0;
    for (int i = 0; i < 16; i++)
        sum += x.v[i];
    return sum;
}
LANE vi vi_max(vi a, vi b) { LANE_EACH(vi, y, a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
LANE int32_t vi_greatest(vi x)
{
    int32_t most = x.v[0];
    for (int i = 1; i < 16; i++)
        most = x.v[i] > most ? x.v[i] : most;
    return most;
}
/* The bits of |x|: in order of size, NaN above infinity. */
LANE vi vi_abs_bits(vf x)
{
    vi y;
    memcpy(&y, &x, sizeof y);
    for (int i = 0; i < 16; i++)
        y.v[i] &= 0x7fffffff;
    return y;
}
/* Nearest integer, ties to even; anything out of range gives INT32_MIN. */
LANE vi vi_nearest(vf x)
{
    LANE_EACH(vi, y, fabsf(x.v[i]) < 0x1p31f ? (int32_t)rintf(x.v[i]) : INT32_MIN);
}
LANE void vi_store_s8(signed char *p, vi x)
{
    for (int i = 0; i < 16; i++)
        p[i] = (signed char)(x.v[i] < -128 ? -128 : x.v[i] > 127 ? 127 : x.v[i]);
}
LANE vi vi_dot(vi acc, vb w, const signed char *x, bool wide)
{
    (void)wide;
    for (int i = 0; i < 64; i++)
        acc.v[i / 4] += w.v[i] * x[i % 4];
    return acc;
}

LANE vb vb_load(const unsigned char *p)
{
    vb y;
    memcpy(&y, p, 64);
    return y;
}
LANE void vb_store(unsigned char *p, vb x) { memcpy(p, &x, 64); }
#define LANE_BYTES(expr)                                                                           \
    for (int i = 0; i < 64; i++)                                                                   \
        a.v[i] = (unsigned char)(expr);                                                            \
    return a
LANE vb vb_and(vb a, int m) { LANE_BYTES(a.v[i] & m); }
LANE vb vb_or(vb a, vb b) { LANE_BYTES(a.v[i] | b.v[i]); }
/* Bits that leave a byte may enter its neighbour: mask what comes out. */
LANE vb vb_left2(vb a) { LANE_BYTES(a.v[i] << 2); }
LANE vb vb_left4(vb a) { LANE_BYTES(a.v[i] << 4); }
LANE vb vb_right2(vb a) { LANE_BYTES(a.v[i] >> 2); }
LANE vb vb_right4(vb a) { LANE_BYTES(a.v[i] >> 4); }
/* Adds 16 to the bytes whose bit of 64 is set. */
LANE vb vb_add16_at(vb a, const unsigned char *bits)
{
    LANE_BYTES(a.v[i] + (bits[i / 8] >> i % 8 & 1) * 16);
}
LANE vb vb_book(const unsigned char *book, vb a) { LANE_BYTES(book[a.v[i]]); }
#undef LANE_BYTES
#undef LANE_EACH
#endif
