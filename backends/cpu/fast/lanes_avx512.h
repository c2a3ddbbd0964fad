/* lanes_avx512.h - sixteen lanes: one AVX-512 register. Contract of the names: lanes_generic.h. */
#ifndef PLM_CPU_LANES_AVX512_H
#define PLM_CPU_LANES_AVX512_H
#include <immintrin.h>
#include <math.h>

#include "backends/cpu/fast/forms.h"

#if !defined(__clang__) && !defined(__OPTIMIZE__)
/* Without optimisation GCC's intrinsics are macros, whose masks change their sign. */
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif

#define LANE static inline __attribute__((always_inline))
typedef __m512 vf;
typedef __m512i vi;
typedef __m512i vb;

/* Rows of a tile and panels beside each other: 32 registers hold 6 x 2 sums of int32, 6 x 2 of float,
** 2 vectors of codes, 2 of scales; or 6 x 4 sums of float, 4 of weights, 1 of x. */
#define I8_ROWS 6
#define I8_PANELS 2
#define F_ROWS 6
#define F_PANELS 4

LANE __mmask16 lane_mask(int n)
{
    return (__mmask16)(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
}
LANE vf vf_zero(void) { return _mm512_setzero_ps(); }
LANE vf vf_set1(float x) { return _mm512_set1_ps(x); }
LANE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
LANE vf vf_load_part(const float *p, int n) { return _mm512_maskz_loadu_ps(lane_mask(n), p); }
LANE void vf_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
LANE void vf_store_part(float *p, vf x, int n) { _mm512_mask_storeu_ps(p, lane_mask(n), x); }
LANE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
LANE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
LANE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
LANE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
LANE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
LANE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
LANE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
LANE vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
LANE float vf_sum(vf x) { return _mm512_reduce_add_ps(x); }
LANE float vf_greatest(vf x) { return _mm512_reduce_max_ps(x); }
LANE vf vf_from_i(vi x) { return _mm512_cvtepi32_ps(x); }
LANE vf vf_f16(const unsigned char *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
LANE vf vf_u8(const unsigned char *p)
{
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}
LANE vf vf_s8(const unsigned char *p)
{
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}
LANE vf vf_bf16(const unsigned char *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p)), 16));
}
LANE void vf_bf16_pairs(const unsigned char *p, vf *even, vf *odd)
{
    __m512i x = _mm512_loadu_si512(p);
    *even = _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
    *odd = _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32((int)0xffff0000u)));
}
LANE void vf_store_f16(unsigned char *p, vf x)
{
    _mm256_storeu_si256((__m256i *)(void *)p,
                        _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
LANE vf vf_round(vf x)
{
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* x * 2^n, n whole and within +-300 */
LANE vf vf_scale2(vf x, vf n) { return _mm512_scalef_ps(x, n); }

/* Lanes in [lo, hi) of x, -infinity in the others. */
LANE vf vf_within(vf x, int lo, int hi)
{
    __mmask16 m = (__mmask16)(lane_mask(hi) & ~lane_mask(lo));
    return _mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY), m, x);
}
/* v[i] lane j becomes v[j] lane i: pairs, fours, then the 128-bit parts. */
LANE void vf_transpose(vf v[16])
{
    vf t[16];
    UNROLL
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
#define LANE_PD(op, a, b)                                                                          \
    _mm512_castpd_ps(op(_mm512_castps_pd(a), _mm512_castps_pd(b)))
    UNROLL
    for (int i = 0; i < 16; i += 4) {
        v[i] = LANE_PD(_mm512_unpacklo_pd, t[i], t[i + 2]);
        v[i + 1] = LANE_PD(_mm512_unpackhi_pd, t[i], t[i + 2]);
        v[i + 2] = LANE_PD(_mm512_unpacklo_pd, t[i + 1], t[i + 3]);
        v[i + 3] = LANE_PD(_mm512_unpackhi_pd, t[i + 1], t[i + 3]);
    }
#undef LANE_PD
    UNROLL
    for (int j = 0; j < 4; j++) {
        vf a = _mm512_shuffle_f32x4(v[j], v[4 + j], 0x44), b = _mm512_shuffle_f32x4(v[j], v[4 + j], 0xee);
        vf c = _mm512_shuffle_f32x4(v[8 + j], v[12 + j], 0x44);
        vf d = _mm512_shuffle_f32x4(v[8 + j], v[12 + j], 0xee);
        t[j] = _mm512_shuffle_f32x4(a, c, 0x88);
        t[4 + j] = _mm512_shuffle_f32x4(a, c, 0xdd);
        t[8 + j] = _mm512_shuffle_f32x4(b, d, 0x88);
        t[12 + j] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
    UNROLL
    for (int i = 0; i < 16; i++)
        v[i] = t[i];
}

LANE vi vi_zero(void) { return _mm512_setzero_si512(); }
LANE vi vi_set1(int32_t x) { return _mm512_set1_epi32(x); }
LANE vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
LANE vi vi_shl(vi x, int n) { return _mm512_sll_epi32(x, _mm_cvtsi32_si128(n)); }
LANE int32_t vi_sum(vi x) { return _mm512_reduce_add_epi32(x); }
LANE vi vi_max(vi a, vi b) { return _mm512_max_epi32(a, b); }
LANE int32_t vi_greatest(vi x) { return _mm512_reduce_max_epi32(x); }
LANE vi vi_abs_bits(vf x)
{
    return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
}
LANE vi vi_nearest(vf x) { return _mm512_cvtps_epi32(x); }
LANE void vi_store_s8(signed char *p, vi x)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(x));
}
LANE vi vi_dot(vi acc, vb w, const signed char *x, bool wide)
{
    int32_t four;
    (void)wide;
    __builtin_memcpy(&four, x, 4);
    return _mm512_dpbusd_epi32(acc, w, _mm512_set1_epi32(four));
}

LANE vb vb_load(const unsigned char *p) { return _mm512_loadu_si512(p); }
LANE void vb_store(unsigned char *p, vb x) { _mm512_storeu_si512(p, x); }
LANE vb vb_and(vb a, int m) { return _mm512_and_si512(a, _mm512_set1_epi8((char)m)); }
LANE vb vb_or(vb a, vb b) { return _mm512_or_si512(a, b); }
LANE vb vb_left2(vb a) { return _mm512_slli_epi16(a, 2); }
LANE vb vb_left4(vb a) { return _mm512_slli_epi16(a, 4); }
LANE vb vb_right2(vb a) { return _mm512_srli_epi16(a, 2); }
LANE vb vb_right4(vb a) { return _mm512_srli_epi16(a, 4); }
LANE vb vb_add16_at(vb a, const unsigned char *bits)
{
    uint64_t m;
    __builtin_memcpy(&m, bits, 8);
    return _mm512_mask_add_epi8(a, (__mmask64)m, a, _mm512_set1_epi8(16));
}
LANE vb vb_book(const unsigned char *book, vb i)
{
    __m128i t = _mm_loadu_si128((const __m128i *)(const void *)book);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(t), i);
}
#endif
