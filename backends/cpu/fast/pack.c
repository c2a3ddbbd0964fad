/* pack.c - weights from the layouts of files to panels, and back to numbers.
**
** Done once a weight, so it is plain C: codes of one row and block are taken out of the file's layout
** into 32 bytes, then spread over the planes of the panel. Layouts of files: core/ir/codec_gguf.c. */
#include <math.h>
#include <string.h>

#include "backends/cpu/fast/forms.h"

const unsigned char plm_book_iq4[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                        129, 141, 153, 166, 181, 197, 217, 241};
const unsigned char plm_book_e2m1[16] = {16, 17, 18, 19, 20, 22, 24, 28,
                                         16, 15, 14, 13, 12, 10, 8,  4};

static const plm_form forms[] = {
#define PLM_FORM_ROW(t, block, bytes, bits, z, scale, book)                                       \
    {PLM_BACKEND_DT_##t, block, bytes, bits, z, PLM_SCALE_##scale, PLM_BOOK_##book},
    PLM_FORM_MAP(PLM_FORM_ROW)
#undef PLM_FORM_ROW
};

const plm_form *plm_form_of(plm_backend_dtype type)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].type == type)
            return &forms[i];
    return NULL;
}

int plm_float_bytes(plm_backend_dtype type)
{
    return type == PLM_BACKEND_DT_F32                                     ? 4
           : type == PLM_BACKEND_DT_F16 || type == PLM_BACKEND_DT_BF16 ? 2
                                                                          : 0;
}

/* Bytes of scales for `unit` columns of a panel. */
static int scale_bytes(const plm_form *f, int *unit)
{
    *unit = f->block;
    switch (f->scale) {
    case PLM_SCALE_F16: return 32;
    case PLM_SCALE_F16_MIN: return 64;
    case PLM_SCALE_K: return 64 + 8 * 32;
    case PLM_SCALE_K16: return 32 + 16 * 16;
    case PLM_SCALE_KS: return 32 + 8 * 16;
    case PLM_SCALE_E8M0: return 16;
    case PLM_SCALE_NONE: break;
    }
    return 0;
}

int64_t plm_head_bytes(const plm_form *f, int64_t k)
{
    int unit, bytes = scale_bytes(f, &unit);
    return plm_round_up(k / unit * bytes, 64);
}

int64_t plm_panel_bytes(plm_backend_dtype type, int64_t k)
{
    const plm_form *f = plm_form_of(type);
    if (f != NULL)
        return plm_head_bytes(f, k) + k / 32 * 64 * f->bits;
    /* bf16 goes in pairs of columns, so that both floats of two bytes have an even number of them */
    return plm_round_up(k, 2) * PLM_CPU_PANEL * plm_float_bytes(type);
}

int64_t plm_cpu_panels(int64_t n)
{
    return (n + PLM_CPU_PANEL - 1) / PLM_CPU_PANEL;
}

int64_t plm_cpu_pack_bytes(plm_backend_dtype type, int64_t n, int64_t k)
{
    const plm_form *f = plm_form_of(type);
    if (n < 0 || k < 0 || n > INT64_MAX / 2 || k > INT64_C(1) << 48)
        return -1;
    if (f != NULL ? k % f->block != 0 : plm_float_bytes(type) == 0)
        return -1;
    int64_t panel = plm_panel_bytes(type, k), panels = plm_cpu_panels(n);
    return panel > 0 && panels > INT64_MAX / panel ? -1 : panels * panel;
}

/* ---- codes out of files: q[32] of block b (32 columns) of a row; a zero point as it is ---- */

static void nibbles_of(const unsigned char *p, unsigned char *q)
{
    for (int i = 0; i < 16; i++) {
        q[i] = p[i] & 15;
        q[16 + i] = p[i] >> 4;
    }
}

static void fifth_bits_of(const unsigned char *p, unsigned char *q)
{
    for (int i = 0; i < 32; i++)
        q[i] |= (unsigned char)((p[i / 8] >> (i % 8) & 1) << 4);
}

/* Half b % 2 of the 32 bytes that hold blocks b and b ^ 1 of a super-block. */
static void k_nibbles_of(const unsigned char *p, int b, unsigned char *q)
{
    for (int i = 0; i < 32; i++)
        q[i] = b % 2 == 0 ? p[i] & 15 : p[i] >> 4;
}

static void q6_codes_of(const unsigned char *p, int b, unsigned char *q)
{
    for (int i = 0; i < 32; i++) {
        int part = b / 4, j = b % 4 * 32 + i;
        unsigned char byte = p[64 * part + j % 64];
        int low = j < 64 ? byte & 15 : byte >> 4;
        int high = p[128 + 32 * part + j % 32] >> 2 * (j / 32) & 3;
        q[i] = (unsigned char)(low | high << 4);
    }
}

/* row: the file's row. b: block of 32 columns. */
static void codes_of(const plm_form *f, const unsigned char *row, int64_t b, unsigned char *q)
{
    int64_t per = f->block / 32;
    const unsigned char *p = row + b / per * f->block_bytes;
    int j = (int)(b % per);
    switch (f->type) {
    case PLM_BACKEND_DT_Q8_0:
        for (int i = 0; i < 32; i++)
            q[i] = (unsigned char)(p[2 + i] ^ 128); /* two's complement + 128 */
        return;
    case PLM_BACKEND_DT_Q4_1: nibbles_of(p + 4, q); return;
    case PLM_BACKEND_DT_Q5_0: nibbles_of(p + 6, q), fifth_bits_of(p + 2, q); return;
    case PLM_BACKEND_DT_Q5_1: nibbles_of(p + 8, q), fifth_bits_of(p + 4, q); return;
    case PLM_BACKEND_DT_Q4_K: k_nibbles_of(p + 16 + 32 * (j / 2), j, q); return;
    case PLM_BACKEND_DT_Q5_K:
        k_nibbles_of(p + 48 + 32 * (j / 2), j, q);
        for (int i = 0; i < 32; i++)
            q[i] |= (unsigned char)((p[16 + i] >> j & 1) << 4);
        return;
    case PLM_BACKEND_DT_Q6_K: q6_codes_of(p, j, q); return;
    case PLM_BACKEND_DT_IQ4_XS: nibbles_of(p + 8 + 16 * j, q); return;
    case PLM_BACKEND_DT_MXFP4: nibbles_of(p + 1, q); return;
    default: nibbles_of(p + 2, q); return; /* q4_0, iq4_nl */
    }
}

/* ---- planes ---- */

static unsigned char *plane(unsigned char *codes, const plm_form *f, int64_t b)
{
    return codes + b * 64 * f->bits;
}

/* codes: zeroed planes of the panel. */
static void put_codes(const plm_form *f, unsigned char *codes, int64_t b, int r,
                      const unsigned char *q)
{
    unsigned char *p = plane(codes, f, b), *high = p + 256;
    for (int i = 0; i < 32; i++) {
        int s = i / 4, byte = 4 * r + i % 4;
        if (f->bits == 8) {
            p[64 * s + byte] = q[i];
            continue;
        }
        p[64 * (s % 4) + byte] |= (unsigned char)((q[i] & 15) << (s / 4 * 4));
        if (f->bits == 5)
            high[8 * s + byte / 8] |= (unsigned char)((q[i] >> 4) << byte % 8);
        if (f->bits == 6)
            high[64 * (s / 4) + byte] |= (unsigned char)((q[i] >> 4) << 2 * (s % 4));
    }
}

static int get_code(const plm_form *f, const unsigned char *codes, int64_t b, int r, int i)
{
    const unsigned char *p = codes + b * 64 * f->bits, *high = p + 256;
    int s = i / 4, byte = 4 * r + i % 4;
    if (f->bits == 8)
        return p[64 * s + byte];
    int q = p[64 * (s % 4) + byte] >> (s / 4 * 4) & 15;
    if (f->bits == 5)
        q |= (high[8 * s + byte / 8] >> byte % 8 & 1) << 4;
    if (f->bits == 6)
        q |= (high[64 * (s / 4) + byte] >> 2 * (s % 4) & 3) << 4;
    return f->book == PLM_BOOK_IQ4 ? plm_book_iq4[q] : f->book == PLM_BOOK_E2M1 ? plm_book_e2m1[q] : q;
}

/* ---- scales ---- */

/* 6-bit scale and minimum j of 8 in the 12 bytes of q4_k and q5_k. */
static void k_scale(const unsigned char *s, int j, unsigned char *scale, unsigned char *min)
{
    if (j < 4) {
        *scale = s[j] & 63;
        *min = s[j + 4] & 63;
    } else {
        *scale = (unsigned char)((s[j + 4] & 15) | s[j - 4] >> 6 << 4);
        *min = (unsigned char)(s[j + 4] >> 4 | s[j] >> 6 << 4);
    }
}

/* Scales of file block u of a row, to lane r of the panel's head. */
static void put_scales(const plm_form *f, unsigned char *head, int64_t u, int r,
                       const unsigned char *row)
{
    int unit, bytes = scale_bytes(f, &unit);
    unsigned char *h = head + u * bytes;
    const unsigned char *p = row + u * f->block_bytes;
    switch (f->scale) {
    case PLM_SCALE_F16: memcpy(h + 2 * r, p, 2); return;
    case PLM_SCALE_F16_MIN:
        memcpy(h + 2 * r, p, 2);
        memcpy(h + 32 + 2 * r, p + 2, 2);
        return;
    case PLM_SCALE_K:
        memcpy(h + 2 * r, p, 2);
        memcpy(h + 32 + 2 * r, p + 2, 2);
        for (int j = 0; j < 8; j++)
            k_scale(p + 4, j, &h[64 + 32 * j + r], &h[64 + 32 * j + 16 + r]);
        return;
    case PLM_SCALE_K16:
        memcpy(h + 2 * r, p + 208, 2);
        for (int j = 0; j < 16; j++)
            h[32 + 16 * j + r] = p[192 + j];
        return;
    case PLM_SCALE_KS:
        memcpy(h + 2 * r, p, 2);
        for (int j = 0; j < 8; j++) {
            int low = p[4 + j / 2] >> 4 * (j % 2) & 15, high = plm_u16_at(p + 2) >> 2 * j & 3;
            h[32 + 16 * j + r] = (unsigned char)((low | high << 4) - 32);
        }
        return;
    case PLM_SCALE_E8M0: h[r] = p[0]; return;
    case PLM_SCALE_NONE: return;
    }
}

float plm_half_to_float(uint16_t h)
{
    int exp = h >> 10 & 31, man = h & 1023;
    float a = exp == 0    ? ldexpf((float)man, -24)
              : exp == 31 ? (man != 0 ? NAN : INFINITY)
                          : ldexpf((float)(man + 1024), exp - 25);
    return h >> 15 != 0 ? -a : a;
}

uint16_t plm_float_to_half(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    float a = fabsf(x);
    if (a != a)
        return (uint16_t)(sign | 0x7e00);
    if (a >= 65520) /* the tie above the greatest, 65504, and beyond */
        return (uint16_t)(sign | 0x7c00);
    int exp;
    (void)frexpf(a, &exp); /* a in [2^(exp-1), 2^exp) */
    int e = exp < -13 ? -13 : exp; /* a code is 2^(e - 11); below 2^-14 codes are 2^-24 */
    long code = lrintf(ldexpf(a, 11 - e));
    /* code counts from the bottom of the binade for normal numbers; a carry runs into the exponent */
    return (uint16_t)(sign | (uint16_t)(code + (exp < -13 ? 0 : (long)(e + 13) * 1024)));
}

float plm_e8m0_half(unsigned char e)
{
    return ldexpf(1, e - 128);
}

/* Scale and minimum of columns 32 b + 16 half .. of lane r: value = scale (q - zero) - min. */
static double scale_at(const plm_form *f, const unsigned char *head, int64_t b, int half, int r,
                       double *min)
{
    int unit, bytes = scale_bytes(f, &unit), j = (int)(b % (unit / 32));
    const unsigned char *h = head + b / (unit / 32) * bytes;
    double d = f->scale == PLM_SCALE_E8M0 ? (double)plm_e8m0_half(h[r])
                                          : (double)plm_half_to_float(plm_u16_at(h + 2 * r));
    *min = 0;
    switch (f->scale) {
    case PLM_SCALE_F16_MIN: *min = -(double)plm_half_to_float(plm_u16_at(h + 32 + 2 * r)); return d;
    case PLM_SCALE_K:
        *min = (double)plm_half_to_float(plm_u16_at(h + 32 + 2 * r)) * h[64 + 32 * j + 16 + r];
        return d * h[64 + 32 * j + r];
    case PLM_SCALE_K16: return d * (signed char)h[32 + 16 * (2 * j + half) + r];
    case PLM_SCALE_KS: return d * (signed char)h[32 + 16 * j + r];
    default: return d;
    }
}

/* ---- whole panels ---- */

static void pack_codes(const plm_form *f, int64_t k, const unsigned char *rows, int n_rows,
                       unsigned char *panel)
{
    int64_t row_bytes = k / f->block * f->block_bytes;
    unsigned char *codes = panel + plm_head_bytes(f, k), q[32];
    memset(panel, 0, (size_t)plm_panel_bytes(f->type, k));
    for (int r = 0; r < n_rows; r++) {
        const unsigned char *row = rows + r * row_bytes;
        for (int64_t u = 0; u < k / f->block; u++)
            put_scales(f, panel, u, r, row);
        for (int64_t b = 0; b < k / 32; b++) {
            codes_of(f, row, b, q);
            put_codes(f, codes, b, r, q);
        }
    }
}

/* f32, f16: number k of lane r at (16 k + r); bf16: pairs, number k at 2 (16 (k / 2) + r) + k % 2. */
static int64_t float_at(plm_backend_dtype type, int64_t c, int r)
{
    return type == PLM_BACKEND_DT_BF16 ? 2 * (16 * (c / 2) + r) + c % 2 : 16 * c + r;
}

static void pack_floats(plm_backend_dtype type, int64_t k, const unsigned char *rows, int n_rows,
                        unsigned char *panel)
{
    int64_t size = plm_float_bytes(type);
    memset(panel, 0, (size_t)plm_panel_bytes(type, k));
    for (int r = 0; r < n_rows; r++)
        for (int64_t c = 0; c < k; c++)
            memcpy(panel + float_at(type, c, r) * size, rows + (r * k + c) * size, (size_t)size);
}

void plm_cpu_pack(plm_backend_dtype type, int64_t n, int64_t k, const void *rows,
                  unsigned char *packed, int64_t from, int64_t to)
{
    const plm_form *f = plm_form_of(type);
    int64_t row_bytes = f != NULL ? k / f->block * f->block_bytes : k * plm_float_bytes(type);
    for (int64_t p = from; p < to; p++) {
        const unsigned char *first = (const unsigned char *)rows + p * PLM_CPU_PANEL * row_bytes;
        unsigned char *panel = packed + p * plm_panel_bytes(type, k);
        int64_t left = n - p * PLM_CPU_PANEL;
        int n_rows = left < PLM_CPU_PANEL ? (int)left : PLM_CPU_PANEL;
        if (f != NULL)
            pack_codes(f, k, first, n_rows, panel);
        else
            pack_floats(type, k, first, n_rows, panel);
    }
}

static float float_of(plm_backend_dtype type, const unsigned char *p)
{
    float y;
    uint32_t bits;
    if (type == PLM_BACKEND_DT_F16)
        return plm_half_to_float(plm_u16_at(p));
    if (type == PLM_BACKEND_DT_BF16)
        bits = (uint32_t)plm_u16_at(p) << 16;
    else
        memcpy(&bits, p, 4);
    memcpy(&y, &bits, 4);
    return y;
}

void plm_cpu_unpack_row(const plm_cpu_weight *w, int64_t row, float *y)
{
    const plm_form *f = plm_form_of(w->type);
    const unsigned char *panel = w->data + row / PLM_CPU_PANEL * plm_panel_bytes(w->type, w->k);
    int r = (int)(row % PLM_CPU_PANEL);
    if (f == NULL) {
        int size = plm_float_bytes(w->type);
        for (int64_t c = 0; c < w->k; c++)
            y[c] = float_of(w->type, panel + float_at(w->type, c, r) * size);
        return;
    }
    const unsigned char *codes = panel + plm_head_bytes(f, w->k);
    int zero = f->z < 0 ? 0 : 1 << f->z;
    for (int64_t b = 0; b < w->k / 32; b++)
        for (int half = 0; half < 2; half++) {
            double min, d = scale_at(f, panel, b, half, r, &min);
            for (int i = 16 * half; i < 16 * half + 16; i++)
                y[32 * b + i] = (float)(d * (get_code(f, codes, b, r, i) - zero) - min);
        }
}
