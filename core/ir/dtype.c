#include "core/ir/dtype.h"

#include <stddef.h>
#include <string.h>

#include "core/base/mem.h"

static const plm_dtype_info table[PLM_DT_COUNT] = {
#define PLM_DT(id, name, family, gguf_id, safetensors, block, block_bytes, group_cols, group_rows, \
               scale_bits, super_group, super_bits, tensor_bytes, math)                            \
    {name, PLM_FAMILY_##family, gguf_id, safetensors, block, block_bytes, group_cols, group_rows,  \
     scale_bits, super_group, super_bits, tensor_bytes, PLM_MATH_##math},
#include "core/ir/dtype.def"
#undef PLM_DT
};

/* Names that configs and other programs use for the plain types. */
static const struct {
    const char *name;
    plm_dtype dtype;
} alias[] = {
    {"fp32", PLM_DT_F32},           {"float32", PLM_DT_F32},
    {"float", PLM_DT_F32},          {"fp16", PLM_DT_F16},
    {"float16", PLM_DT_F16},        {"half", PLM_DT_F16},
    {"bfloat16", PLM_DT_BF16},      {"fp64", PLM_DT_F64},
    {"float64", PLM_DT_F64},        {"double", PLM_DT_F64},
    {"fp8_e4m3", PLM_DT_F8E4M3},    {"float8_e4m3", PLM_DT_F8E4M3},
    {"f8_e4m3", PLM_DT_F8E4M3},     {"float8_e4m3fn", PLM_DT_F8E4M3},
    {"e4m3", PLM_DT_F8E4M3},        {"fp8_e5m2", PLM_DT_F8E5M2},
    {"float8_e5m2", PLM_DT_F8E5M2}, {"f8_e5m2", PLM_DT_F8E5M2},
    {"e5m2", PLM_DT_F8E5M2},        {"f8_e8m0", PLM_DT_E8M0},
    {"float8_e8m0fnu", PLM_DT_E8M0}, {"ue8m0", PLM_DT_E8M0},
    {"int4", PLM_DT_I4},            {"int8", PLM_DT_I8},
    {"int16", PLM_DT_I16},          {"int32", PLM_DT_I32},
    {"int64", PLM_DT_I64},          {"uint8", PLM_DT_U8},
    {"uint16", PLM_DT_U16},         {"uint32", PLM_DT_U32},
    {"uint64", PLM_DT_U64},         {"boolean", PLM_DT_BOOL},
};

const plm_dtype_info *plm_dtype_get(plm_dtype t)
{
    static const plm_dtype_info none = {.name = "none", .gguf_id = -1, .block = 1};
    return (unsigned)t < PLM_DT_COUNT ? &table[t] : &none;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool equal_nocase(const char *a, const char *b)
{
    while (*a != '\0' && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return lower(*a) == lower(*b);
}

plm_dtype plm_dtype_by_name(const char *name)
{
    if (name == NULL)
        return PLM_DT_COUNT;
    static const char prefix[] = "torch.";
    if (strncmp(name, prefix, sizeof prefix - 1) == 0)
        name += sizeof prefix - 1;
    for (int i = 0; i < PLM_DT_COUNT; i++)
        if (equal_nocase(name, table[i].name))
            return (plm_dtype)i;
    for (size_t i = 0; i < sizeof alias / sizeof alias[0]; i++)
        if (equal_nocase(name, alias[i].name))
            return alias[i].dtype;
    return PLM_DT_COUNT;
}

plm_dtype plm_dtype_by_gguf(int64_t gguf_id)
{
    for (int i = 0; gguf_id >= 0 && i < PLM_DT_COUNT; i++)
        if (table[i].gguf_id == gguf_id)
            return (plm_dtype)i;
    return PLM_DT_COUNT;
}

plm_dtype plm_dtype_by_safetensors(const char *name)
{
    for (int i = 0; name != NULL && i < PLM_DT_COUNT; i++)
        if (table[i].safetensors != NULL && strcmp(name, table[i].safetensors) == 0)
            return (plm_dtype)i;
    return PLM_DT_COUNT;
}

/* Bytes that hold `count` things of `bits` bits. */
static bool packed_bytes(int64_t count, uint32_t bits, int64_t *bytes)
{
    int64_t all;
    if (!plm_mul_i64(count, bits, &all))
        return false;
    *bytes = plm_ceil_div(all, 8);
    return true;
}

/* Number of scales of a planar tensor; 0 when the format has none but the tensor's own. */
static bool count_scales(const plm_dtype_info *d, int64_t rows, int64_t cols, int64_t *scales)
{
    *scales = 0;
    if (d->scale_bits == 0)
        return true;
    int64_t across = d->group_cols == 0 ? 1 : plm_ceil_div(cols, d->group_cols);
    int64_t down = d->group_rows == 0 ? rows : plm_ceil_div(rows, d->group_rows);
    return plm_mul_i64(across, down, scales);
}

static bool planar_bytes(const plm_dtype_info *d, int64_t rows, int64_t cols, int64_t *bytes)
{
    int64_t codes, scales, scale_bytes, super_bytes = 0;
    if (d->group_cols > 0 && d->group_rows == 0) { /* flat: one row of all elements */
        if (!plm_mul_i64(rows, cols, &cols))
            return false;
        rows = 1;
    }
    if (!plm_mul_i64(plm_ceil_div(cols, d->block), d->block_bytes, &codes) ||
        !plm_mul_i64(codes, rows, &codes) || !count_scales(d, rows, cols, &scales) ||
        !packed_bytes(scales, d->scale_bits, &scale_bytes))
        return false;
    if (d->super_group > 0 &&
        !packed_bytes(plm_ceil_div(scales, d->super_group), d->super_bits, &super_bytes))
        return false;
    return plm_add_i64(codes, scale_bytes, bytes) && plm_add_i64(*bytes, super_bytes, bytes) &&
           plm_add_i64(*bytes, d->tensor_bytes, bytes);
}

plm_status plm_dtype_bytes(plm_dtype t, int64_t rows, int64_t cols, int64_t *bytes, plm_error *err)
{
    const plm_dtype_info *d = plm_dtype_get(t);
    *bytes = 0;
    if ((unsigned)t >= PLM_DT_COUNT)
        return plm_fail(err, PLM_E_INVALID, "storage type %d: not in the table", (int)t);
    if (rows < 0 || cols < 0)
        return plm_fail(err, PLM_E_INVALID, "%s, %lld x %lld: a tensor has no negative size",
                        d->name, (long long)rows, (long long)cols);
    if (d->family == PLM_FAMILY_INTERLEAVED && cols % d->block != 0)
        return plm_fail(err, PLM_E_INVALID,
                        "%s, row of %lld: not a multiple of the block of %u; choose another type",
                        d->name, (long long)cols, d->block);
    if (rows == 0 || cols == 0)
        return PLM_OK;
    bool fits;
    if (d->family == PLM_FAMILY_PLANAR)
        fits = planar_bytes(d, rows, cols, bytes);
    else
        fits = plm_mul_i64(plm_ceil_div(cols, d->block), d->block_bytes, bytes) &&
               plm_mul_i64(*bytes, rows, bytes);
    if (fits)
        return PLM_OK;
    *bytes = 0;
    return plm_fail(err, PLM_E_INVALID, "%s, %lld x %lld: the size passes 2^63 bytes", d->name,
                    (long long)rows, (long long)cols);
}

double plm_dtype_bits(plm_dtype t)
{
    const plm_dtype_info *d = plm_dtype_get(t);
    double bits = 8.0 * d->block_bytes / d->block;
    if (d->group_cols > 0) {
        double shared = (double)d->group_cols * (d->group_rows > 0 ? d->group_rows : 1);
        bits += d->scale_bits / shared;
        if (d->super_group > 0)
            bits += d->super_bits / (shared * d->super_group);
    }
    return bits;
}
