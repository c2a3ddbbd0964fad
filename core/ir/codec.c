/* codec.c - small floats, plain numbers, NF4 and rounding through activation types.
** Formats of several numbers a byte or block are in codec_gguf.c. */
#include "core/ir/codec.h"

#include <math.h>
#include <stddef.h>

#include "core/ir/codec_gguf.h"

/* Sources: IEEE 754 binary16; bfloat16 = upper half of binary32; OCP 8-bit floating point 1.0
** (E4M3, E5M2); OCP MX v1.0 (E2M1). */
const plm_small_float plm_float_f16 = {5, 10, 15, true, true, 65504};
const plm_small_float plm_float_bf16 = {8, 7, 127, true, true, 0x1.FEp127};
const plm_small_float plm_float_f8e4m3 = {4, 3, 7, false, true, 448};
const plm_small_float plm_float_f8e5m2 = {5, 2, 15, true, true, 57344};
const plm_small_float plm_float_e2m1 = {2, 1, 1, false, false, 6};

double plm_small_decode(const plm_small_float *f, uint32_t code)
{
    uint32_t man = code & ((1u << f->man_bits) - 1);
    int exp = (int)((code >> f->man_bits) & ((1u << f->exp_bits) - 1));
    double sign = (code >> (f->exp_bits + f->man_bits)) & 1 ? -1.0 : 1.0;
    bool top = exp == (1 << f->exp_bits) - 1;
    if (f->ieee && top)
        return man == 0 ? sign * INFINITY : NAN;
    if (f->nan && top && man == (1u << f->man_bits) - 1)
        return NAN;
    if (exp == 0)
        return sign * ldexp((double)man, 1 - f->bias - f->man_bits);
    return sign * ldexp((double)(man + (1u << f->man_bits)), exp - f->bias - f->man_bits);
}

/* Magnitude of x in units of the last place it can have in the format, rounded to even, and that
** unit's exponent. x is finite and not 0. */
static double round_units(const plm_small_float *f, double x, int *unit)
{
    int least = 1 - f->bias, exp = ilogb(x);
    *unit = (exp < least ? least : exp) - f->man_bits;
    return nearbyint(ldexp(fabs(x), -*unit));
}

uint32_t plm_small_encode(const plm_small_float *f, double x, bool saturate)
{
    uint32_t sign = signbit(x) ? 1u << (f->exp_bits + f->man_bits) : 0;
    uint32_t ones = (1u << (f->exp_bits + f->man_bits)) - 1; /* all but the sign */
    uint32_t hidden = 1u << f->man_bits;
    uint32_t inf = ones - hidden + 1, most = f->ieee ? inf - 1 : f->nan ? ones - 1 : ones;
    if (isnan(x))
        return f->ieee ? inf | hidden >> 1 : f->nan ? ones : 0;
    if (x == 0)
        return sign;
    if (isinf(x))
        return sign | (f->ieee && !saturate ? inf : most);
    int unit;
    double units = round_units(f, x, &unit);
    if (ldexp(units, unit) > f->max)
        return sign | (f->ieee && !saturate ? inf : most);
    uint32_t u = (uint32_t)units;
    if (u < hidden) /* subnormal: exponent field 0 */
        return sign | u;
    if (u == hidden << 1) { /* rounded up to the next power of two */
        u = hidden;
        unit++;
    }
    return sign | ((uint32_t)(unit + f->man_bits + f->bias) << f->man_bits) | (u - hidden);
}

double plm_small_round(const plm_small_float *f, double x, bool saturate)
{
    return plm_small_decode(f, plm_small_encode(f, x, saturate));
}

double plm_half_decode(uint16_t h)
{
    return plm_small_decode(&plm_float_f16, h);
}
uint16_t plm_half_encode(double x)
{
    return (uint16_t)plm_small_encode(&plm_float_f16, x, false);
}
double plm_bf16_decode(uint16_t h)
{
    return plm_small_decode(&plm_float_bf16, h);
}
uint16_t plm_bf16_encode(double x)
{
    return (uint16_t)plm_small_encode(&plm_float_bf16, x, false);
}

static double round_integer(double x, double lo, double hi)
{
    if (isnan(x))
        return 0;
    x = nearbyint(x);
    return x < lo ? lo : x > hi ? hi : x;
}

plm_status plm_round_to(plm_dtype t, double x, double *y, plm_error *err)
{
    switch (t) {
    case PLM_DT_F64:
        *y = x;
        return PLM_OK;
    case PLM_DT_F32:
        *y = (double)(float)x;
        return PLM_OK;
    case PLM_DT_F16:
        *y = plm_small_round(&plm_float_f16, x, false);
        return PLM_OK;
    case PLM_DT_BF16:
        *y = plm_small_round(&plm_float_bf16, x, false);
        return PLM_OK;
    case PLM_DT_F8E4M3:
        *y = plm_small_round(&plm_float_f8e4m3, x, true);
        return PLM_OK;
    case PLM_DT_F8E5M2:
        *y = plm_small_round(&plm_float_f8e5m2, x, true);
        return PLM_OK;
    case PLM_DT_I8:
        *y = round_integer(x, -128, 127);
        return PLM_OK;
    case PLM_DT_I16:
        *y = round_integer(x, -32768, 32767);
        return PLM_OK;
    case PLM_DT_I32:
        *y = round_integer(x, -2147483648.0, 2147483647.0);
        return PLM_OK;
    /* Above 2^53 every double is an integer; 2^63 - 1024 is the greatest double below 2^63. */
    case PLM_DT_I64:
        *y = round_integer(x, -0x1p63, 0x1.fffffffffffffp62);
        return PLM_OK;
    default:
        break;
    }
    return plm_fail(err, PLM_E_UNSUPPORTED,
                    "round, %s: not a plain number type; use a quant node for it",
                    t < PLM_DT_COUNT ? plm_dtype_get(t)->name : "?");
}

const double plm_nf4_value[16] = {
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
};

void plm_nf4_decode(const unsigned char *codes, const double *absmax, int64_t n, int64_t block,
                    double *out)
{
    for (int64_t i = 0; i < n; i++) {
        unsigned byte = codes[i / 2];
        out[i] = plm_nf4_value[i % 2 == 0 ? byte >> 4 : byte & 15] * absmax[i / block];
    }
}

/* ---- activations ---- */

static double block_amax(const double *x, int64_t n)
{
    double amax = 0;
    for (int64_t i = 0; i < n; i++)
        if (fabs(x[i]) > amax)
            amax = fabs(x[i]);
    return amax;
}

static double round_half_away(double x, double limit)
{
    x = round(x);
    return x > limit ? limit : x < -limit ? -limit : x;
}

static void quant_i8(double *x, int64_t n, double tensor_scale)
{
    (void)tensor_scale;
    double d = (double)(float)(block_amax(x, n) / 127);
    for (int64_t i = 0; i < n; i++)
        x[i] = d > 0 ? d * round_half_away(x[i] / d, 127) : 0;
}

static void quant_q8_0(double *x, int64_t n, double tensor_scale)
{
    (void)tensor_scale;
    double d = block_amax(x, n) / 127, stored = plm_small_round(&plm_float_f16, d, false);
    for (int64_t i = 0; i < n; i++)
        x[i] = d > 0 ? stored * round_half_away(x[i] / d, 127) : 0;
}

static void quant_small(const plm_small_float *f, double d, double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = d > 0 ? d * plm_small_round(f, x[i] / d, true) : 0;
}

static void quant_f8e4m3(double *x, int64_t n, double tensor_scale)
{
    (void)tensor_scale;
    quant_small(&plm_float_f8e4m3, (double)(float)(block_amax(x, n) / 448), x, n);
}

static void quant_f8e5m2(double *x, int64_t n, double tensor_scale)
{
    (void)tensor_scale;
    quant_small(&plm_float_f8e5m2, (double)(float)(block_amax(x, n) / 57344), x, n);
}

/* Power-of-two scale of an MX block: emax is the exponent of the element format's greatest value.
** E8M0 reaches from 2^-127 to 2^127. */
static double mx_scale(double amax, int emax)
{
    if (!(amax > 0) || isinf(amax))
        return 0;
    int e = ilogb(amax) - emax;
    return ldexp(1, e < -127 ? -127 : e > 127 ? 127 : e);
}

static void quant_mxfp8(double *x, int64_t n, double tensor_scale)
{
    (void)tensor_scale;
    quant_small(&plm_float_f8e4m3, mx_scale(block_amax(x, n), 8), x, n);
}

static void quant_mxfp4(double *x, int64_t n, double tensor_scale)
{
    (void)tensor_scale;
    quant_small(&plm_float_e2m1, mx_scale(block_amax(x, n), 2), x, n);
}

static void quant_nvfp4(double *x, int64_t n, double tensor_scale)
{
    double d = tensor_scale > 0 ? block_amax(x, n) / 6 / tensor_scale : 0;
    quant_small(&plm_float_e2m1, plm_small_round(&plm_float_f8e4m3, d, true) * tensor_scale, x, n);
}

static const struct quantizer {
    plm_dtype dtype;
    int64_t block; /* 0 = as the node says, -1 = the whole row */
    void (*quant)(double *x, int64_t n, double tensor_scale);
    bool tensor_scale; /* else 1 */
} quantizers[] = {
    {PLM_DT_I8, 0, quant_i8, false},
    {PLM_DT_INT8_ROW, -1, quant_i8, false},
    {PLM_DT_Q8_0, 32, quant_q8_0, false},
    {PLM_DT_F8E4M3, 0, quant_f8e4m3, false},
    {PLM_DT_F8E5M2, 0, quant_f8e5m2, false},
    {PLM_DT_FP8_ROW, -1, quant_f8e4m3, false},
    {PLM_DT_FP8_BLOCK, 128, quant_f8e4m3, false},
    {PLM_DT_MXFP8, 32, quant_mxfp8, false},
    {PLM_DT_MXFP4, 32, quant_mxfp4, false},
    {PLM_DT_MXFP4_PLANAR, 32, quant_mxfp4, false},
    {PLM_DT_NVFP4, 16, quant_nvfp4, false},
    {PLM_DT_NVFP4_PLANAR, 16, quant_nvfp4, true},
};

plm_status plm_quant_row(plm_dtype t, double *x, int64_t n, int64_t block, double tensor_scale,
                         plm_error *err)
{
    if (n < 0 || block < 0)
        return plm_fail(err, PLM_E_INVALID, "quant, block: negative; give a positive length");
    for (size_t i = 0; i < sizeof quantizers / sizeof *quantizers; i++) {
        const struct quantizer *q = &quantizers[i];
        if (q->dtype != t)
            continue;
        int64_t step = q->block > 0 ? q->block : q->block == 0 && block > 0 ? block : n;
        for (int64_t at = 0; at < n; at += step)
            q->quant(x + at, n - at < step ? n - at : step, q->tensor_scale ? tensor_scale : 1);
        return PLM_OK;
    }
    return plm_fail(err, PLM_E_UNSUPPORTED,
                    "quant, %s: not a quantised activation type; use i8, q8_0, f8e4m3 or mxfp4",
                    t < PLM_DT_COUNT ? plm_dtype_get(t)->name : "?");
}

/* ---- stored weights ---- */

static uint32_t read_le(const unsigned char *p, int bytes)
{
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint32_t)p[i] << (8 * i);
    return v;
}

/* One number of a plain type; false if t is not plain. Safetensors and GGUF are little-endian. */
static bool decode_plain(plm_dtype t, const unsigned char *p, double *x)
{
    union {
        uint64_t u;
        double f;
        int64_t i;
    } wide;
    union {
        uint32_t u;
        float f;
        int32_t i;
    } word;
    switch (t) {
    case PLM_DT_F64:
    case PLM_DT_I64:
    case PLM_DT_U64:
        wide.u = read_le(p, 4) | (uint64_t)read_le(p + 4, 4) << 32;
        *x = t == PLM_DT_F64 ? wide.f : t == PLM_DT_I64 ? (double)wide.i : (double)wide.u;
        return true;
    case PLM_DT_F32:
    case PLM_DT_I32:
    case PLM_DT_U32:
        word.u = read_le(p, 4);
        *x = t == PLM_DT_F32 ? (double)word.f : t == PLM_DT_I32 ? (double)word.i : (double)word.u;
        return true;
    case PLM_DT_F16:
        *x = plm_half_decode((uint16_t)read_le(p, 2));
        return true;
    case PLM_DT_BF16:
        *x = plm_bf16_decode((uint16_t)read_le(p, 2));
        return true;
    case PLM_DT_F8E4M3:
        *x = plm_small_decode(&plm_float_f8e4m3, *p);
        return true;
    case PLM_DT_F8E5M2:
        *x = plm_small_decode(&plm_float_f8e5m2, *p);
        return true;
    case PLM_DT_E8M0:
        *x = *p == 255 ? NAN : ldexp(1, *p - 127);
        return true;
    case PLM_DT_I16:
        *x = (double)(read_le(p, 2) ^ 0x8000u) - 32768;
        return true;
    case PLM_DT_I8:
        *x = (double)(*p ^ 0x80u) - 128;
        return true;
    case PLM_DT_U16:
        *x = (double)read_le(p, 2);
        return true;
    case PLM_DT_U8:
        *x = (double)*p;
        return true;
    case PLM_DT_BOOL:
        *x = *p != 0;
        return true;
    default:
        return false;
    }
}

plm_status plm_decode(plm_dtype t, const unsigned char *data, int64_t n, double *out,
                      plm_error *err)
{
    if (t >= PLM_DT_COUNT)
        return plm_fail(err, PLM_E_INVALID, "decode, type: unknown; name a storage type");
    const plm_dtype_info *info = plm_dtype_get(t);
    if (info->family == PLM_FAMILY_PLANAR)
        return plm_fail(err, PLM_E_UNSUPPORTED,
                        "decode, %s: its codes and scales lie in planes apart; decode by plane",
                        info->name);
    if (n < 0 || n % info->block != 0)
        return plm_fail(err, PLM_E_INVALID,
                        "decode, %s: %lld elements are no multiple of the block of %u; pad the row",
                        info->name, (long long)n, (unsigned)info->block);
    plm_block_decoder decode = plm_block_decoder_of(t);
    double probe;
    static const unsigned char zeros[8] = {0};
    if (decode == NULL && !decode_plain(t, zeros, &probe))
        return plm_fail(
            err, PLM_E_UNSUPPORTED,
            "decode, %s: its codes are not known here; convert the file to another type",
            info->name);
    for (int64_t i = 0; i < n / info->block; i++) {
        const unsigned char *p = data + i * info->block_bytes;
        if (decode != NULL)
            decode(p, out + i * info->block);
        else
            decode_plain(t, p, &out[i]);
    }
    return PLM_OK;
}
