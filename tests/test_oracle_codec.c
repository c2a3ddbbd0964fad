/* test_oracle_codec.c - small floats both ways over all their codes, and stored blocks. */
#include "core/ir/codec.h"
#include "tests/oracle_support.h"

/* The double of a binary16 or bfloat16 code by moving bits: sign, exponent rebased, mantissa
 *shifted
 ** up; subnormals shifted until their leading one falls into the hidden place. */
static double double_of_bits(uint32_t code, int exp_bits, int man_bits)
{
    uint64_t sign = code >> (exp_bits + man_bits) & 1, man = code & ((1u << man_bits) - 1);
    int exp = (int)(code >> man_bits & ((1u << exp_bits) - 1)), bias = (1 << (exp_bits - 1)) - 1;
    uint64_t bits = sign << 63;
    if (exp == (1 << exp_bits) - 1) {
        bits |= UINT64_C(0x7ff) << 52 | man << (52 - man_bits);
    } else if (exp > 0 || man > 0) {
        int e = exp > 0 ? exp - bias : 1 - bias;
        for (; exp == 0 && (man >> man_bits & 1) == 0; e--)
            man <<= 1;
        man &= (UINT64_C(1) << man_bits) - 1;
        bits |= (uint64_t)(e + 1023) << 52 | man << (52 - man_bits);
    }
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void all_codes_of_a_16_bit_float(const plm_small_float *f)
{
    for (uint32_t code = 0; code < 65536; code++) {
        double want = double_of_bits(code, f->exp_bits, f->man_bits);
        double got = plm_small_decode(f, code);
        if (isnan(want)) {
            assert_true(isnan(got));
            assert_true(isnan(plm_small_decode(f, plm_small_encode(f, got, false))));
            continue;
        }
        assert_memory_equal(&got, &want, sizeof got); /* the sign of zero too */
        assert_int_equal(plm_small_encode(f, want, false), code);
    }
}

static void half_all_codes(void **state)
{
    (void)state;
    all_codes_of_a_16_bit_float(&plm_float_f16);
    assert_true(plm_half_decode(0x3c00) == 1 && plm_half_decode(0x7bff) == 65504);
    assert_true(plm_half_decode(1) == 0x1p-24 && plm_half_encode(-2) == 0xc000);
}

static void bf16_all_codes(void **state)
{
    (void)state;
    all_codes_of_a_16_bit_float(&plm_float_bf16);
    for (uint32_t code = 0; code < 65536; code++) {
        /* bfloat16 is the upper half of binary32. */
        uint32_t bits = code << 16;
        float f;
        memcpy(&f, &bits, sizeof f);
        double x = plm_bf16_decode((uint16_t)code);
        assert_true(isnan(f) ? isnan(x) : x == (double)f);
    }
    assert_int_equal(plm_bf16_encode(1), 0x3f80);
}

/* Between each two neighbours: the middle goes to the even code, a hair off it to the near one. */
static void check_ties(const plm_small_float *f, uint32_t last)
{
    for (uint32_t code = 0; code < last; code++) {
        double a = plm_small_decode(f, code), b = plm_small_decode(f, code + 1);
        double mid = a + (b - a) / 2;
        uint32_t even = code % 2 == 0 ? code : code + 1;
        uint32_t sign = 1u << (f->exp_bits + f->man_bits);
        assert_int_equal(plm_small_encode(f, mid, true), even);
        assert_int_equal(plm_small_encode(f, -mid, true), sign | even);
        assert_int_equal(plm_small_encode(f, nextafter(mid, a), true), code);
        assert_int_equal(plm_small_encode(f, nextafter(mid, b), true), code + 1);
    }
}

static void ties_go_to_even(void **state)
{
    (void)state;
    check_ties(&plm_float_f16, 0x7bff);
    check_ties(&plm_float_bf16, 0x7f7f);
    check_ties(&plm_float_f8e4m3, 0x7e);
    check_ties(&plm_float_f8e5m2, 0x7b);
    check_ties(&plm_float_e2m1, 7);
}

static void fp8_and_fp4_values(void **state)
{
    (void)state;
    /* OCP: greatest, least normal and least subnormal values; specials. */
    assert_true(plm_small_decode(&plm_float_f8e4m3, 0x7e) == 448);
    assert_true(plm_small_decode(&plm_float_f8e4m3, 0x08) == 0x1p-6);
    assert_true(plm_small_decode(&plm_float_f8e4m3, 0x01) == 0x1p-9);
    assert_true(isnan(plm_small_decode(&plm_float_f8e4m3, 0x7f)));
    assert_true(isnan(plm_small_decode(&plm_float_f8e4m3, 0xff)));
    assert_true(plm_small_decode(&plm_float_f8e5m2, 0x7b) == 57344);
    assert_true(isinf(plm_small_decode(&plm_float_f8e5m2, 0x7c)));
    assert_true(isnan(plm_small_decode(&plm_float_f8e5m2, 0x7d)));
    assert_true(plm_small_decode(&plm_float_f8e5m2, 0x01) == 0x1p-16);
    static const double fp4[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(plm_small_decode(&plm_float_e2m1, i) == fp4[i]);
        assert_true(plm_small_decode(&plm_float_e2m1, i + 8) == -fp4[i]);
    }
    for (uint32_t i = 0; i < 256; i++) {
        double a = plm_small_decode(&plm_float_f8e4m3, i),
               b = plm_small_decode(&plm_float_f8e5m2, i);
        assert_true(isnan(a) || plm_small_encode(&plm_float_f8e4m3, a, true) == i);
        assert_true(isnan(b) || isinf(b) || plm_small_encode(&plm_float_f8e5m2, b, true) == i);
    }
}

static void overflow_goes_where_the_format_says(void **state)
{
    (void)state;
    const double inf = (double)INFINITY, nan = (double)NAN;
    assert_int_equal(plm_half_encode(65519.99), 0x7bff);
    assert_int_equal(plm_half_encode(65520), 0x7c00);
    assert_int_equal(plm_half_encode(-inf), 0xfc00);
    assert_int_equal(plm_half_encode(nan), 0x7e00);
    assert_int_equal(plm_small_encode(&plm_float_f16, 1e300, true), 0x7bff);
    assert_int_equal(plm_small_encode(&plm_float_f8e4m3, 1e9, true), 0x7e);
    assert_int_equal(plm_small_encode(&plm_float_f8e4m3, -inf, true), 0xfe);
    assert_int_equal(plm_small_encode(&plm_float_f8e4m3, nan, true), 0x7f);
    assert_int_equal(plm_small_encode(&plm_float_f8e5m2, inf, false), 0x7c);
    assert_int_equal(plm_small_encode(&plm_float_e2m1, -100, true), 0xf);
    assert_int_equal(plm_small_encode(&plm_float_f16, 0x1p-1074, false), 0);
    double y;
    plm_error err;
    assert_ok(plm_round_to(PLM_DT_I8, 200, &y, &err), err);
    assert_true(y == 127);
    assert_ok(plm_round_to(PLM_DT_I32, -2.5, &y, &err), err);
    assert_true(y == -2);
}

static void nf4_code_book(void **state)
{
    (void)state;
    /* Decision points of the published kernels lie halfway between neighbours. */
    static const double middle[] = {-0.8480964,   -0.610632926, -0.45999527,  -0.339679435,
                                    -0.234607406, -0.137911733, -0.045525018, 0.03979015,
                                    0.12025525,   0.203521252,  0.292013772,  0.389312536,
                                    0.501663417,  0.64278692,   0.861478418};
    for (size_t i = 0; i < COUNT(middle); i++)
        assert_close((plm_nf4_value[i] + plm_nf4_value[i + 1]) / 2, middle[i], 0, 5e-9);
    static const unsigned char codes[] = {0x0f, 0x70};
    static const double absmax[] = {2, 10};
    double y[3];
    plm_nf4_decode(codes, absmax, 3, 2, y);
    assert_all_equal(y, (const double[]){-2, 2, 0}, 3);
}

static void decode(plm_dtype t, const unsigned char *data, int64_t n, double *y)
{
    plm_error err;
    assert_ok(plm_decode(t, data, n, y, &err), err);
}

static void plain_types(void **state)
{
    (void)state;
    double y[4];
    decode(PLM_DT_F32, (const unsigned char[]){0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc1}, 2, y);
    assert_all_equal(y, (const double[]){1, -10}, 2);
    decode(PLM_DT_F64, (const unsigned char[]){0, 0, 0, 0, 0, 0, 0x24, 0x40}, 1, y);
    assert_true(y[0] == 10);
    decode(PLM_DT_BF16, (const unsigned char[]){0x80, 0x3f, 0x20, 0xc1}, 2, y);
    assert_all_equal(y, (const double[]){1, -10}, 2);
    decode(PLM_DT_I8, (const unsigned char[]){0, 127, 128, 255}, 4, y);
    assert_all_equal(y, (const double[]){0, 127, -128, -1}, 4);
    decode(PLM_DT_I16, (const unsigned char[]){1, 0, 0, 0x80}, 2, y);
    assert_all_equal(y, (const double[]){1, -32768}, 2);
    decode(PLM_DT_I32, (const unsigned char[]){0xfe, 0xff, 0xff, 0xff}, 1, y);
    assert_true(y[0] == -2);
    decode(PLM_DT_I64, (const unsigned char[]){0xfe, 255, 255, 255, 255, 255, 255, 255}, 1, y);
    assert_true(y[0] == -2);
    decode(PLM_DT_E8M0, (const unsigned char[]){127, 130, 0}, 3, y);
    assert_all_equal(y, (const double[]){1, 8, 0x1p-127}, 3);
    decode(PLM_DT_F4E2M1, (const unsigned char[]){0xf1, 0x27}, 4, y);
    assert_all_equal(y, (const double[]){0.5, -6, 6, 1}, 4);
    decode(PLM_DT_I4, (const unsigned char[]){0x87, 0xf0}, 4, y);
    assert_all_equal(y, (const double[]){7, -8, 0, -1}, 4);
}

/* Packs elements into a block of each 32-wide type with the writer's formulas, the code of element
 *i
 ** being (7 i + 3) modulo the number of codes; d = 0.5, m = -3. */
static void blocks_of_32(void **state)
{
    (void)state;
    static const double iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};
    static const double fp4[16] = {0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6};
    for (int pass = 0; pass < 2; pass++) {
        unsigned char q4[16] = {0}, q5[16] = {0}, qh[4] = {0}, q8[32], b[36];
        double want[7][32], y[32];
        for (int i = 0; i < 32; i++) {
            int c4 = (7 * i + 3 + pass) % 16, c5 = (7 * i + 3 + pass) % 32,
                c8 = 11 * i - 128 - pass;
            c8 = c8 < -128 ? -128 : c8 > 127 ? 127 : c8;
            int shift = i < 16 ? 0 : 4;
            q4[i % 16] |= (unsigned char)(c4 << shift);
            q5[i % 16] |= (unsigned char)((c5 & 15) << shift);
            qh[i / 8] |= (unsigned char)((c5 >> 4) << (i % 8));
            q8[i] = (unsigned char)(c8 & 255);
            const double w[7] = {0.5 * (c4 - 8), 0.5 * c4 - 3,  0.5 * (c5 - 16), 0.5 * c5 - 3,
                                 0.5 * c8,       0.5 * iq4[c4], 4 * fp4[c4]};
            for (int f = 0; f < 7; f++)
                want[f][i] = w[f];
        }
        static const unsigned char half[] = {0x00, 0x38}, three[] = {0x00, 0xc2};
        memcpy(b, half, 2);
        memcpy(b + 2, q4, 16);
        decode(PLM_DT_Q4_0, b, 32, y);
        assert_all_equal(y, want[0], 32);
        decode(PLM_DT_IQ4_NL, b, 32, y);
        assert_all_equal(y, want[5], 32);
        memcpy(b + 2, three, 2);
        memcpy(b + 4, q4, 16);
        decode(PLM_DT_Q4_1, b, 32, y);
        assert_all_equal(y, want[1], 32);
        memcpy(b + 2, qh, 4);
        memcpy(b + 6, q5, 16);
        decode(PLM_DT_Q5_0, b, 32, y);
        assert_all_equal(y, want[2], 32);
        memcpy(b + 2, three, 2);
        memcpy(b + 4, qh, 4);
        memcpy(b + 8, q5, 16);
        decode(PLM_DT_Q5_1, b, 32, y);
        assert_all_equal(y, want[3], 32);
        memcpy(b + 2, q8, 32);
        decode(PLM_DT_Q8_0, b, 32, y);
        assert_all_equal(y, want[4], 32);
        memcpy(b + 4, q8, 32);
        decode(PLM_DT_Q8_1, b, 32, y);
        assert_all_equal(y, want[4], 32);
        b[0] = 129; /* 2^2 */
        memcpy(b + 1, q4, 16);
        decode(PLM_DT_MXFP4, b, 32, y);
        assert_all_equal(y, want[6], 32);
    }
}

/* Super-blocks: the writer walks the elements in the order that the format stores them (parts, then
** shifts, then bytes), which is not the order of the reader under test. */
static void super_blocks_q2_q3(void **state)
{
    (void)state;
    unsigned char b2[84] = {0}, b3[110] = {0};
    double want2[256], want3[256], y[256];
    for (int j = 0; j < 16; j++)
        b2[j] = (unsigned char)((j * 5 + 1) % 16 | (j * 3 + 2) % 16 << 4);
    int sc3[16];
    for (int j = 0; j < 16; j++)
        sc3[j] = (j * 13 + 7) % 64;
    /* ggml's quantize_row_q3_K packs scale j as: low nibble into byte j % 8, high pair into 8 + j
     * % 4. */
    for (int j = 0; j < 16; j++) {
        if (j < 8)
            b3[96 + j] = (unsigned char)(b3[96 + j] | (sc3[j] & 15));
        else
            b3[96 + j - 8] = (unsigned char)(b3[96 + j - 8] | (sc3[j] & 15) << 4);
        b3[96 + 8 + j % 4] = (unsigned char)(b3[96 + 8 + j % 4] | (sc3[j] >> 4) << 2 * (j / 4));
    }
    int e = 0;
    for (int part = 0; part < 2; part++)
        for (int shift = 0; shift < 8; shift += 2)
            for (int l = 0; l < 32; l++, e++) {
                int q2 = (e * 7 + e / 32) % 4, q3 = (e * 5 + e / 16) % 8, sub = e / 16;
                b2[16 + 32 * part + l] = (unsigned char)(b2[16 + 32 * part + l] | q2 << shift);
                b3[32 + 32 * part + l] =
                    (unsigned char)(b3[32 + 32 * part + l] | (q3 & 3) << shift);
                if (q3 >= 4)
                    b3[l] = (unsigned char)(b3[l] | 1 << (4 * part + shift / 2));
                want2[e] = 0.5 * ((sub * 5 + 1) % 16) * q2 - 2.0 * ((sub * 3 + 2) % 16);
                want3[e] = 0.5 * (sc3[sub] - 32) * (q3 - 4);
            }
    static const unsigned char d2[] = {0x00, 0x38, 0x00, 0x40};
    memcpy(b2 + 80, d2, 4);
    memcpy(b3 + 108, d2, 2);
    decode(PLM_DT_Q2_K, b2, 256, y);
    assert_all_equal(y, want2, 256);
    decode(PLM_DT_Q3_K, b3, 256, y);
    assert_all_equal(y, want3, 256);
}

static void super_blocks_q4_q5(void **state)
{
    (void)state;
    unsigned char b4[144] = {0}, b5[176] = {0}, s[12] = {0};
    double want4[256], want5[256], y[256];
    int sc[8], mn[8];
    for (int j = 0; j < 8; j++) {
        sc[j] = (j * 11 + 21) % 64;
        mn[j] = (j * 17 + 40) % 64;
    }
    for (int j = 0; j < 4; j++) {
        s[j] = (unsigned char)(sc[j] | (sc[j + 4] >> 4) << 6);
        s[j + 4] = (unsigned char)(mn[j] | (mn[j + 4] >> 4) << 6);
        s[j + 8] = (unsigned char)((sc[j + 4] & 15) | (mn[j + 4] & 15) << 4);
    }
    int e = 0;
    for (int group = 0; group < 4; group++)
        for (int half = 0; half < 2; half++)
            for (int l = 0; l < 32; l++, e++) {
                int q = (e * 13 + e / 32) % 32, byte = 32 * group + l;
                b4[16 + byte] = (unsigned char)(b4[16 + byte] | (q & 15) << 4 * half);
                b5[48 + byte] = (unsigned char)(b5[48 + byte] | (q & 15) << 4 * half);
                if (q >= 16)
                    b5[16 + l] = (unsigned char)(b5[16 + l] | 1 << (2 * group + half));
                want4[e] = 0.5 * sc[e / 32] * (q & 15) - 2.0 * mn[e / 32];
                want5[e] = 0.5 * sc[e / 32] * q - 2.0 * mn[e / 32];
            }
    static const unsigned char d[] = {0x00, 0x38, 0x00, 0x40};
    memcpy(b4, d, 4);
    memcpy(b5, d, 4);
    memcpy(b4 + 4, s, 12);
    memcpy(b5 + 4, s, 12);
    decode(PLM_DT_Q4_K, b4, 256, y);
    assert_all_equal(y, want4, 256);
    decode(PLM_DT_Q5_K, b5, 256, y);
    assert_all_equal(y, want5, 256);
}

static void super_blocks_q6_q8_iq4(void **state)
{
    (void)state;
    static const double iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};
    unsigned char b6[210] = {0}, b8[292] = {0}, bx[136] = {0};
    double want6[256], want8[256], wantx[256], y[256];
    for (int part = 0; part < 2; part++)
        for (int l = 0; l < 32; l++)
            for (int quarter = 0; quarter < 4; quarter++) {
                int e = 128 * part + 32 * quarter + l, q = (e * 19 + e / 64) % 64;
                int byte = 64 * part + l + (quarter % 2 ? 32 : 0);
                b6[byte] = (unsigned char)(b6[byte] | (q & 15) << (quarter >= 2 ? 4 : 0));
                b6[128 + 32 * part + l] =
                    (unsigned char)(b6[128 + 32 * part + l] | (q >> 4) << 2 * quarter);
                int scale = 8 * part + 2 * quarter + l / 16;
                b6[192 + scale] = (unsigned char)((scale * 37 - 128) & 255);
                want6[e] = 0.5 * ((scale * 37 - 128 + 128) % 256 - 128) * (q - 32);
            }
    b6[209] = 0x38;
    decode(PLM_DT_Q6_K, b6, 256, y);
    assert_all_equal(y, want6, 256);
    b8[2] = 0x80, b8[3] = 0x3e; /* float32 0.25 */
    for (int e = 0; e < 256; e++) {
        b8[4 + e] = (unsigned char)e;
        want8[e] = 0.25 * (e < 128 ? e : e - 256);
    }
    decode(PLM_DT_Q8_K, b8, 256, y);
    assert_all_equal(y, want8, 256);
    bx[1] = 0x38;
    for (int ib = 0; ib < 8; ib++) {
        int ls = (ib * 23 + 5) % 64;
        bx[4 + ib / 2] = (unsigned char)(bx[4 + ib / 2] | (ls & 15) << 4 * (ib % 2));
        bx[2 + ib / 4] = (unsigned char)(bx[2 + ib / 4] | (ls >> 4) << 2 * (ib % 4));
        for (int j = 0; j < 16; j++) {
            int lo = (ib + 3 * j) % 16, hi = (ib + 5 * j + 1) % 16;
            bx[8 + 16 * ib + j] = (unsigned char)(lo | hi << 4);
            wantx[32 * ib + j] = 0.5 * (ls - 32) * iq4[lo];
            wantx[32 * ib + 16 + j] = 0.5 * (ls - 32) * iq4[hi];
        }
    }
    decode(PLM_DT_IQ4_XS, bx, 256, y);
    assert_all_equal(y, wantx, 256);
}

static void blocks_nvfp4_and_ternary(void **state)
{
    (void)state;
    static const double fp4[16] = {0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6};
    unsigned char b[36] = {0x38, 0x40, 0x30, 0x7f}; /* 1, 2, 0.5, and all ones, which is 0 */
    static const double scale[] = {1, 2, 0.5, 0};
    double want[256], y[256];
    for (int g = 0; g < 4; g++)
        for (int j = 0; j < 8; j++) {
            int lo = (g + 3 * j) % 16, hi = (g + 7 * j + 1) % 16;
            b[4 + 8 * g + j] = (unsigned char)(lo | hi << 4);
            want[16 * g + j] = scale[g] * fp4[lo];
            want[16 * g + 8 + j] = scale[g] * fp4[hi];
        }
    decode(PLM_DT_NVFP4, b, 64, y);
    assert_all_equal(y, want, 64);

    unsigned char q1[18] = {0x00, 0x38, 0x05}, q2[18] = {0x00, 0x38, 0xe4};
    decode(PLM_DT_Q1_0, q1, 128, y);
    assert_all_equal(y, (const double[]){0.5, -0.5, 0.5, -0.5}, 4);
    decode(PLM_DT_Q2_0, q2, 64, y);
    assert_all_equal(y, (const double[]){-0.5, 0, 0.5, 1, -0.5}, 5);

    /* TQ1_0 packs five trits as ceil(256 v / 243), v their number in base 3, greatest first. */
    unsigned char t1[54] = {0}, t2[66] = {0};
    t1[53] = t2[65] = 0x38;
    static const struct {
        int first, bytes, step, digits;
    } parts[] = {{0, 32, 32, 5}, {160, 16, 16, 5}, {240, 4, 4, 4}};
    static const int at[] = {0, 32, 48};
    for (int p = 0; p < 3; p++)
        for (int m = 0; m < parts[p].bytes; m++) {
            int v = 0;
            for (int n = 0; n < 5; n++) {
                int e = parts[p].first + n * parts[p].step + m, t = (e * 5 + e / 7) % 3;
                v = 3 * v + (n < parts[p].digits ? t : 0);
                if (n < parts[p].digits)
                    want[e] = 0.5 * (t - 1);
            }
            t1[at[p] + m] = (unsigned char)((v * 256 + 242) / 243);
        }
    decode(PLM_DT_TQ1_0, t1, 256, y);
    assert_all_equal(y, want, 256);
    for (int e = 0; e < 256; e++) {
        int byte = 32 * (e / 128) + e % 32, t = (int)(want[e] * 2) + 1;
        t2[byte] = (unsigned char)(t2[byte] | t << 2 * (e % 128 / 32));
    }
    decode(PLM_DT_TQ2_0, t2, 256, y);
    assert_all_equal(y, want, 256);
}

static void several_blocks_and_refusals(void **state)
{
    (void)state;
    unsigned char b[36] = {0x00, 0x3c};
    b[19] = 0x40;
    double y[64];
    decode(PLM_DT_Q4_0, b, 64, y);
    assert_true(y[0] == -8 && y[31] == -8 && y[32] == -16 && y[63] == -16);
    plm_error err;
    assert_int_equal(plm_decode(PLM_DT_Q4_0, b, 33, y, &err), PLM_E_INVALID);
    assert_int_equal(plm_decode(PLM_DT_F32, b, -1, y, &err), PLM_E_INVALID);
    assert_int_equal(plm_decode(PLM_DT_IQ2_XXS, b, 256, y, &err), PLM_E_UNSUPPORTED);
    assert_int_equal(plm_decode(PLM_DT_NF4, b, 64, y, &err), PLM_E_UNSUPPORTED);
    assert_int_equal(plm_decode(PLM_DT_F6E2M3, b, 4, y, &err), PLM_E_UNSUPPORTED);
    assert_int_equal(plm_decode(PLM_DT_COUNT, b, 4, y, &err), PLM_E_INVALID);
    assert_ok(plm_decode(PLM_DT_Q4_K, b, 0, y, &err), err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_all_codes),
        cmocka_unit_test(bf16_all_codes),
        cmocka_unit_test(ties_go_to_even),
        cmocka_unit_test(fp8_and_fp4_values),
        cmocka_unit_test(overflow_goes_where_the_format_says),
        cmocka_unit_test(nf4_code_book),
        cmocka_unit_test(plain_types),
        cmocka_unit_test(blocks_of_32),
        cmocka_unit_test(super_blocks_q2_q3),
        cmocka_unit_test(super_blocks_q4_q5),
        cmocka_unit_test(super_blocks_q6_q8_iq4),
        cmocka_unit_test(blocks_nvfp4_and_ternary),
        cmocka_unit_test(several_blocks_and_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
