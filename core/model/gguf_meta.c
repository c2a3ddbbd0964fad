/* gguf_meta.c - looking up metadata of a GGUF directory; every value was checked when it was
 * opened. */
#include <string.h>

#include "core/model/gguf_dir.h"

const unsigned char plm_gguf_value_bytes[VALUE_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

uint64_t plm_gguf_le(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

const char *plm_gguf_key_at(const plm_gguf *g, uint64_t offset, size_t *n)
{
    *n = (size_t)plm_gguf_le(g->data + offset, 8);
    return (const char *)g->data + offset + 8;
}

int plm_gguf_compare(const char *a, size_t na, const char *b, size_t nb)
{
    int order = memcmp(a, b, na < nb ? na : nb);
    return order != 0 ? order : na < nb ? -1 : na > nb;
}

size_t plm_gguf_value(const plm_gguf *g, const char *key)
{
    size_t lo = 0, hi = (size_t)g->n_pairs, bytes = strlen(key);
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2, n;
        const char *k = plm_gguf_key_at(g, g->pair[mid], &n);
        int order = plm_gguf_compare(key, bytes, k, n);
        if (order == 0)
            return (size_t)g->pair[mid] + 8 + n;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return 0;
}

/* The integer of a value of one of the whole types, bools included. */
static bool whole_value(uint64_t type, const unsigned char *p, int64_t *out)
{
    uint64_t v = type < VALUE_COUNT ? plm_gguf_le(p, plm_gguf_value_bytes[type]) : 0;
    switch (type) {
    case VALUE_U8:
    case VALUE_U16:
    case VALUE_U32:
    case VALUE_BOOL:
        *out = (int64_t)v;
        return true;
    case VALUE_I8:
        *out = (int8_t)v;
        return true;
    case VALUE_I16:
        *out = (int16_t)v;
        return true;
    case VALUE_I32:
        *out = (int32_t)v;
        return true;
    case VALUE_I64:
        *out = (int64_t)v;
        return true;
    case VALUE_U64:
        *out = (int64_t)v;
        return v <= INT64_MAX;
    default:
        return false;
    }
}

bool plm_gguf_int(const plm_gguf *g, const char *key, int64_t *out)
{
    size_t at = plm_gguf_value(g, key);
    if (at == 0)
        return false;
    uint64_t type = plm_gguf_le(g->data + at, 4);
    return type != VALUE_BOOL && whole_value(type, g->data + at + 4, out);
}

/* The number of a value of one of the types of numbers. */
static bool real_value(uint64_t type, const unsigned char *p, double *out)
{
    uint64_t bits = type < VALUE_COUNT ? plm_gguf_le(p, plm_gguf_value_bytes[type]) : 0;
    uint32_t low = (uint32_t)bits;
    float single;
    int64_t whole;
    switch (type) {
    case VALUE_F32:
        memcpy(&single, &low, sizeof single);
        *out = (double)single;
        return true;
    case VALUE_F64:
        memcpy(out, &bits, sizeof *out);
        return true;
    default:
        if (type == VALUE_BOOL || !whole_value(type, p, &whole))
            return false;
        *out = (double)whole;
        return true;
    }
}

bool plm_gguf_real(const plm_gguf *g, const char *key, double *out)
{
    size_t at = plm_gguf_value(g, key);
    return at != 0 && real_value(plm_gguf_le(g->data + at, 4), g->data + at + 4, out);
}

bool plm_gguf_bool(const plm_gguf *g, const char *key, bool *out)
{
    size_t at = plm_gguf_value(g, key);
    if (at == 0 || plm_gguf_le(g->data + at, 4) != VALUE_BOOL)
        return false;
    *out = g->data[at + 4] != 0;
    return true;
}

bool plm_gguf_text(const plm_gguf *g, const char *key, const char **text, size_t *bytes)
{
    size_t at = plm_gguf_value(g, key);
    if (at == 0 || plm_gguf_le(g->data + at, 4) != VALUE_STRING)
        return false;
    *bytes = (size_t)plm_gguf_le(g->data + at + 4, 8);
    *text = (const char *)g->data + at + 12;
    return true;
}

bool plm_gguf_int_at(const plm_gguf *g, const char *key, size_t i, int64_t *out)
{
    size_t at = plm_gguf_value(g, key);
    if (at == 0)
        return false;
    uint64_t type = plm_gguf_le(g->data + at, 4);
    if (type != VALUE_ARRAY)
        return whole_value(type, g->data + at + 4, out);
    uint64_t item = plm_gguf_le(g->data + at + 4, 4), count = plm_gguf_le(g->data + at + 8, 8);
    return i < count && item != VALUE_STRING &&
           whole_value(item, g->data + at + 16 + i * plm_gguf_value_bytes[item], out);
}

size_t plm_gguf_array_len(const plm_gguf *g, const char *key)
{
    size_t at = plm_gguf_value(g, key);
    if (at == 0 || plm_gguf_le(g->data + at, 4) != VALUE_ARRAY)
        return 0;
    return (size_t)plm_gguf_le(g->data + at + 8, 8);
}

/* Type of the elements, their number and the first of them, of the list of a key. */
static bool find_list(const plm_gguf *g, const char *key, uint64_t *type, size_t *count,
                      const unsigned char **first)
{
    size_t at = plm_gguf_value(g, key);
    if (at == 0 || plm_gguf_le(g->data + at, 4) != VALUE_ARRAY)
        return false;
    *type = plm_gguf_le(g->data + at + 4, 4);
    *count = (size_t)plm_gguf_le(g->data + at + 8, 8);
    *first = g->data + at + 16;
    return true;
}

bool plm_gguf_real_at(const plm_gguf *g, const char *key, size_t i, double *out)
{
    uint64_t type;
    size_t count;
    const unsigned char *p;
    return find_list(g, key, &type, &count, &p) && i < count && type != VALUE_STRING &&
           real_value(type, p + i * plm_gguf_value_bytes[type], out);
}

bool plm_gguf_bytes(const plm_gguf *g, const char *key, const unsigned char **data, size_t *n)
{
    uint64_t type;
    return find_list(g, key, &type, n, data) && (type == VALUE_U8 || type == VALUE_I8);
}

bool plm_gguf_texts(const plm_gguf *g, const char *key, plm_gguf_list *out)
{
    uint64_t type;
    return find_list(g, key, &type, &out->left, &out->at) && type == VALUE_STRING;
}

bool plm_gguf_text_next(plm_gguf_list *list, const char **text, size_t *bytes)
{
    if (list->left == 0)
        return false;
    *bytes = (size_t)plm_gguf_le(list->at, 8);
    *text = (const char *)list->at + 8;
    list->at += 8 + *bytes;
    list->left--;
    return true;
}
