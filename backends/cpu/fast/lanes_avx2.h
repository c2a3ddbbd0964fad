/* lanes_avx2.h - sixteen lanes: two AVX2 registers. Contract of the names: lanes_generic.h. */
#ifndef PLM_CPU_LANES_AVX2_H
#define PLM_CPU_LANES_AVX2_H
#include <immintrin.h>
#include <math.h>

#include "backends/cpu/fast/forms.h"

#define LANE static inline __attribute__((always_inline))
typedef struct vf { __m256 a, b; } vf;
typedef struct vi { __m256i a, b; } vi;
typedef vi vb;

/* 16 registers: 2 rows of int32 sums and float sums; or 6 rows of float sums, 2 of weights, 1 of x. */
#define I8_ROWS 2
#define I8_PANELS 1
#define F_ROWS 6
#define F_PANELS 1

LANE __m256i load256(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
LANE __m128i load128(const void *p) { return _mm_loadu_si128((const __m128i *)p); }
LANE vf vf_of(__m256 a, __m256 b) { return (vf){a, b}; }
LANE vi vi_of(__m256i a, __m256i b) { return (vi){a, b}; }
/* All ones in the lanes below n, of the eight from `first`. */
LANE __m256i lanes_below(int n, int first)
{
    __m256i i = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n - first), i);
}
LANE vf vf_zero(void) { return vf_of(_mm256_setzero_ps(), _mm256_setzero_ps()); }
LANE vf vf_set1(float x) { return vf_of(_mm256_set1_ps(x), _mm256_set1_ps(x)); }
LANE vf vf_load(const float *p) { return vf_of(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)); }
LANE vf vf_load_part(const float *p, int n)
{
    if (n <= 8)
        return vf_of(_mm256_maskload_ps(p, lanes_below(n, 0)), _mm256_setzero_ps());
    return vf_of(_mm256_loadu_ps(p), _mm256_maskload_ps(p + 8, lanes_below(n, 8)));
}
LANE void vf_store(float *p, vf x) { _mm256_storeu_ps(p, x.a), _mm256_storeu_ps(p + 8, x.b); }
LANE void vf_store_part(float *p, vf x, int n)
{
    _mm256_maskstore_ps(p, lanes_below(n, 0), x.a);
    if (n > 8)
        _mm256_maskstore_ps(p + 8, lanes_below(n, 8), x.b);
}
#define LANE_TWO(name, type, op)                                                                   \
    LANE type name(type x, type y) { return (type){op(x.a, y.a), op(x.b, y.b)}; }
LANE_TWO(vf_add, vf, _mm256_add_ps)
LANE_TWO(vf_sub, vf, _mm256_sub_ps)
LANE_TWO(vf_mul, vf, _mm256_mul_ps)
LANE_TWO(vf_div, vf, _mm256_div_ps)
LANE_TWO(vf_max, vf, _mm256_max_ps)
LANE_TWO(vf_min, vf, _mm256_min_ps)
LANE_TWO(vi_add, vi, _mm256_add_epi32)
LANE_TWO(vi_max, vi, _mm256_max_epi32)
LANE_TWO(vb_or, vb, _mm256_or_si256)
#undef LANE_TWO
LANE vf vf_fma(vf x, vf y, vf z)
{
    return vf_of(_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b));
}
LANE vf vf_fnma(vf x, vf y, vf z)
{
    return vf_of(_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b));
}
LANE float vf_sum(vf x)
{
    __m256 s = _mm256_add_ps(x.a, x.b);
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    h = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_add_ss(h, _mm_movehdup_ps(h)));
}
LANE float vf_greatest(vf x)
{
    __m256 s = _mm256_max_ps(x.a, x.b);
    __m128 h = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    h = _mm_max_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_max_ss(h, _mm_movehdup_ps(h)));
}
LANE vf vf_from_i(vi x) { return vf_of(_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)); }
LANE vf vf_f16(const unsigned char *p)
{
    return vf_of(_mm256_cvtph_ps(load128(p)), _mm256_cvtph_ps(load128(p + 16)));
}
LANE vf vf_u8(const unsigned char *p)
{
    __m128i x = load128(p);
    return vf_from_i(
        vi_of(_mm256_cvtepu8_epi32(x), _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(x, x))));
}
LANE vf vf_s8(const unsigned char *p)
{
    __m128i x = load128(p);
    return vf_from_i(
        vi_of(_mm256_cvtepi8_epi32(x), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(x, x))));
}
LANE __m256 widen_bf16(__m128i x)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}
LANE vf vf_bf16(const unsigned char *p)
{
    return vf_of(widen_bf16(load128(p)), widen_bf16(load128(p + 16)));
}
LANE void vf_bf16_pairs(const unsigned char *p, vf *even, vf *odd)
{
    __m256i a = load256(p), b = load256(p + 32), m = _mm256_set1_epi32((int)0xffff0000u);
    *even = vf_of(_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)),
                  _mm256_castsi256_ps(_mm256_slli_epi32(b, 16)));
    *odd = vf_of(_mm256_castsi256_ps(_mm256_and_si256(a, m)),
                 _mm256_castsi256_ps(_mm256_and_si256(b, m)));
}
LANE void vf_store_f16(unsigned char *p, vf x)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i *)(void *)(p + 16), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
}
LANE vf vf_round(vf x)
{
    return vf_of(_mm256_round_ps(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                 _mm256_round_ps(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/* In two steps, so that neither factor leaves the range of a float's exponent. */
LANE __m256 scale2_half(__m256 x, __m256 n)
{
    __m256i i = _mm256_cvtps_epi32(n), h = _mm256_srai_epi32(i, 1), bias = _mm256_set1_epi32(127);
    __m256i r = _mm256_sub_epi32(i, h);
    x = _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(h, bias), 23)));
    return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(r, bias), 23)));
}
LANE vf vf_scale2(vf x, vf n) { return vf_of(scale2_half(x.a, n.a), scale2_half(x.b, n.b)); }

LANE vf vf_within(vf x, int lo, int hi)
{
    __m256 none = _mm256_set1_ps(-INFINITY);
    __m256i a = _mm256_andnot_si256(lanes_below(lo, 0), lanes_below(hi, 0));
    __m256i b = _mm256_andnot_si256(lanes_below(lo, 8), lanes_below(hi, 8));
    return vf_of(_mm256_blendv_ps(none, x.a, _mm256_castsi256_ps(a)),
                 _mm256_blendv_ps(none, x.b, _mm256_castsi256_ps(b)));
}
LANE void vf_transpose(vf v[16])
{
    float t[16][16];
    for (int i = 0; i < 16; i++) {
        float row[16];
        vf_store(row, v[i]);
        for (int j = 0; j < 16; j++)
            t[j][i] = row[j];
    }
    for (int i = 0; i < 16; i++)
        v[i] = vf_load(t[i]);
}

LANE vi vi_zero(void) { return vi_of(_mm256_setzero_si256(), _mm256_setzero_si256()); }
LANE vi vi_set1(int32_t x) { return vi_of(_mm256_set1_epi32(x), _mm256_set1_epi32(x)); }
LANE vi vi_shl(vi x, int n)
{
    __m128i c = _mm_cvtsi32_si128(n);
    return vi_of(_mm256_sll_epi32(x.a, c), _mm256_sll_epi32(x.b, c));
}
LANE int32_t vi_sum(vi x)
{
    int32_t v[8], sum = 0;
    _mm256_storeu_si256((__m256i *)(void *)v, _mm256_add_epi32(x.a, x.b));
    for (int i = 0; i < 8; i++)
        sum += v[i];
    return sum;
}
LANE int32_t vi_greatest(vi x)
{
    int32_t v[8], most;
    _mm256_storeu_si256((__m256i *)(void *)v, _mm256_max_epi32(x.a, x.b));
    most = v[0];
    for (int i = 1; i < 8; i++)
        most = v[i] > most ? v[i] : most;
    return most;
}
LANE vi vi_abs_bits(vf x)
{
    __m256i m = _mm256_set1_epi32(0x7fffffff);
    return vi_of(_mm256_and_si256(_mm256_castps_si256(x.a), m),
                 _mm256_and_si256(_mm256_castps_si256(x.b), m));
}
LANE vi vi_nearest(vf x) { return vi_of(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)); }
LANE void vi_store_s8(signed char *p, vi x)
{
    __m256i w = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xd8);
    _mm_storeu_si128((__m128i *)(void *)p, _mm_packs_epi16(_mm256_castsi256_si128(w),
                                                           _mm256_extracti128_si256(w, 1)));
}
/* Eight sums of four products. The sum of two products of maddubs is held within 16 bits, which codes
** below 64 keep; wider codes go through two 16-bit products. */
LANE __m256i dot_half(__m256i acc, __m256i w, __m256i x, bool wide)
{
    if (!wide)
        return _mm256_add_epi32(
            acc, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)));
    __m256i even = _mm256_madd_epi16(_mm256_and_si256(w, _mm256_set1_epi16(255)),
                                     _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8));
    __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(w, 8), _mm256_srai_epi16(x, 8));
    return _mm256_add_epi32(acc, _mm256_add_epi32(even, odd));
}
LANE vi vi_dot(vi acc, vb w, const signed char *x, bool wide)
{
    int32_t four;
    __builtin_memcpy(&four, x, 4);
    __m256i b = _mm256_set1_epi32(four);
    return vi_of(dot_half(acc.a, w.a, b, wide), dot_half(acc.b, w.b, b, wide));
}

LANE vb vb_load(const unsigned char *p) { return vi_of(load256(p), load256(p + 32)); }
LANE void vb_store(unsigned char *p, vb x)
{
    _mm256_storeu_si256((__m256i *)(void *)p, x.a);
    _mm256_storeu_si256((__m256i *)(void *)(p + 32), x.b);
}
LANE vb vb_and(vb x, int m)
{
    __m256i v = _mm256_set1_epi8((char)m);
    return vi_of(_mm256_and_si256(x.a, v), _mm256_and_si256(x.b, v));
}
#define LANE_SHIFT(name, op, n)                                                                    \
    LANE vb name(vb x) { return vi_of(op(x.a, n), op(x.b, n)); }
LANE_SHIFT(vb_left2, _mm256_slli_epi16, 2)
LANE_SHIFT(vb_left4, _mm256_slli_epi16, 4)
LANE_SHIFT(vb_right2, _mm256_srli_epi16, 2)
LANE_SHIFT(vb_right4, _mm256_srli_epi16, 4)
#undef LANE_SHIFT
/* Bit i of 32 becomes 16 in byte i: each byte gets its byte of bits, then its own bit is picked. */
LANE __m256i spread_bits(const unsigned char *bits)
{
    int32_t four;
    __builtin_memcpy(&four, bits, 4);
    __m256i from = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2,
                                    2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    __m256i pick = _mm256_set1_epi64x((long long)0x8040201008040201ull);
    __m256i x = _mm256_shuffle_epi8(_mm256_set1_epi32(four), from);
    x = _mm256_cmpeq_epi8(_mm256_and_si256(x, pick), pick);
    return _mm256_and_si256(x, _mm256_set1_epi8(16));
}
LANE vb vb_add16_at(vb x, const unsigned char *bits)
{
    return vb_or(x, vi_of(spread_bits(bits), spread_bits(bits + 4)));
}
LANE vb vb_book(const unsigned char *book, vb i)
{
    __m256i t = _mm256_broadcastsi128_si256(load128(book));
    return vi_of(_mm256_shuffle_epi8(t, i.a), _mm256_shuffle_epi8(t, i.b));
}
#endif
