/* gguf.c - the directory of a GGUF file: metadata and tensor records, every bound checked.
**
** Layout (GGUF specification, versions 2 and 3; little endian): magic, u32 version, u64 tensors,
** u64 metadata pairs; pairs of {string key, u32 type, value}; tensor records of {string name,
** u32 rank, u64 dims[rank] innermost first, u32 type, u64 offset}; padding to general.alignment;
** tensor data. Memory is 8 bytes a pair and about 70 bytes a tensor plus its name: no array length
** of the file is ever allocated.
*/
#include <string.h>

#include "core/base/mem.h"
#include "core/model/gguf_dir.h"
#include "core/base/utf8.h"

#define HEADER_BYTES 24
#define PAIR_MIN_BYTES 13   /* length, empty key, type, one byte */
#define TENSOR_MIN_BYTES 24 /* length, empty name, rank 0, type, offset */
#define KEY_MAX_BYTES 65535 /* GGUF specification */
#define NAME_MAX_BYTES 63   /* ggml: GGML_MAX_NAME 64 with the NUL */
#define ALIGNMENT_MAX (1u << 20)
#define ALIGNMENT_DEFAULT 32u
#define MEMORY_FLOOR_BYTES (1u << 20)

typedef struct cursor {
    const unsigned char *data;
    size_t bytes, at;
    const char *where;
    plm_error *err;
} cursor;

static plm_status reject(const cursor *c, const char *reason, const char *why)
{
    return plm_fail(c->err, PLM_E_INVALID, "%s, %s: %s; the file is damaged or hostile", reason,
                    c->where, why);
}

static size_t left(const cursor *c)
{
    return c->bytes - c->at;
}

static plm_status read_u32(cursor *c, uint32_t *out)
{
    if (left(c) < 4)
        return reject(c, "short", "the header ends inside a number");
    *out = (uint32_t)plm_gguf_le(c->data + c->at, 4);
    c->at += 4;
    return PLM_OK;
}

static plm_status read_u64(cursor *c, uint64_t *out)
{
    if (left(c) < 8)
        return reject(c, "short", "the header ends inside a number");
    *out = plm_gguf_le(c->data + c->at, 8);
    c->at += 8;
    return PLM_OK;
}

/* A length and so many bytes; *text borrows. */
static plm_status read_string(cursor *c, const char **text, size_t *n)
{
    uint64_t length;
    PLM_TRY(read_u64(c, &length));
    if (length > left(c))
        return reject(c, "length", "a text is longer than the file");
    *text = (const char *)c->data + c->at;
    *n = (size_t)length;
    c->at += (size_t)length;
    return PLM_OK;
}

/* ---- metadata ---- */

static plm_status skip_array(cursor *c)
{
    uint32_t type;
    uint64_t count;
    PLM_TRY(read_u32(c, &type));
    PLM_TRY(read_u64(c, &count));
    if (type >= VALUE_COUNT || type == VALUE_ARRAY)
        return reject(c, "value_type", "an array of an unknown type, or of arrays");
    if (type != VALUE_STRING) {
        if (count > left(c) / plm_gguf_value_bytes[type])
            return reject(c, "length", "an array is longer than the file");
        c->at += (size_t)count * plm_gguf_value_bytes[type];
        return PLM_OK;
    }
    if (count > left(c) / 8)
        return reject(c, "length", "an array is longer than the file");
    for (uint64_t i = 0; i < count; i++) {
        const char *text;
        size_t n;
        PLM_TRY(read_string(c, &text, &n));
    }
    return PLM_OK;
}

static plm_status skip_pair(cursor *c)
{
    const char *text;
    size_t n;
    uint32_t type;
    PLM_TRY(read_string(c, &text, &n));
    if (n == 0)
        return reject(c, "key", "a metadata key is empty");
    if (n > KEY_MAX_BYTES)
        return reject(c, "length", "a metadata key is longer than 65535 bytes");
    if (!plm_is_utf8(text, n))
        return reject(c, "utf8", "a metadata key is not UTF-8");
    PLM_TRY(read_u32(c, &type));
    if (type >= VALUE_COUNT)
        return reject(c, "value_type", "a metadata value has an unknown type");
    if (type == VALUE_ARRAY)
        return skip_array(c);
    if (type == VALUE_STRING)
        return read_string(c, &text, &n);
    if (plm_gguf_value_bytes[type] > left(c))
        return reject(c, "short", "the header ends inside a value");
    c->at += plm_gguf_value_bytes[type];
    return PLM_OK;
}

static int compare_pairs(const plm_gguf *g, uint64_t a, uint64_t b)
{
    size_t na, nb;
    const char *ka = plm_gguf_key_at(g, a, &na), *kb = plm_gguf_key_at(g, b, &nb);
    return plm_gguf_compare(ka, na, kb, nb);
}

static int compare_tensors(const plm_gguf *g, uint64_t a, uint64_t b)
{
    return strcmp(g->tensor[a].name, g->tensor[b].name);
}

typedef int (*compare_fn)(const plm_gguf *g, uint64_t a, uint64_t b);

static void sift_down(const plm_gguf *g, compare_fn compare, uint64_t *v, size_t at, size_t n)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && compare(g, v[child], v[child + 1]) < 0)
            child++;
        if (compare(g, v[at], v[child]) >= 0)
            return;
        uint64_t t = v[at];
        v[at] = v[child];
        v[child] = t;
    }
}

/* Heap sort: no allocation, and no worse on hostile orders. True if two neighbours end up equal. */
static bool sort_finds_equal(const plm_gguf *g, compare_fn compare, uint64_t *v, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(g, compare, v, i, n);
    for (size_t end = n; end-- > 1;) {
        uint64_t t = v[0];
        v[0] = v[end];
        v[end] = t;
        sift_down(g, compare, v, 0, end);
    }
    for (size_t i = 1; i < n; i++)
        if (compare(g, v[i - 1], v[i]) == 0)
            return true;
    return false;
}

static plm_status read_pairs(plm_gguf *g, cursor *c)
{
    g->pair = plm_malloc((size_t)g->n_pairs * sizeof *g->pair);
    if (g->pair == NULL)
        return plm_fail_memory(c->err, "GGUF metadata");
    for (uint64_t i = 0; i < g->n_pairs; i++) {
        g->pair[i] = c->at;
        PLM_TRY(skip_pair(c));
    }
    if (sort_finds_equal(g, compare_pairs, g->pair, (size_t)g->n_pairs))
        return reject(c, "dup_key", "a metadata key occurs twice");
    return PLM_OK;
}

static plm_status read_alignment(const plm_gguf *g, const cursor *c, uint32_t *out)
{
    *out = ALIGNMENT_DEFAULT;
    size_t at = plm_gguf_value(g, "general.alignment");
    if (at == 0)
        return PLM_OK;
    if (plm_gguf_le(g->data + at, 4) != VALUE_U32)
        return reject(c, "alignment", "general.alignment is not an unsigned 32-bit number");
    uint32_t a = (uint32_t)plm_gguf_le(g->data + at + 4, 4);
    if (a == 0 || (a & (a - 1)) != 0)
        return reject(c, "alignment", "general.alignment is not a power of two");
    if (a > ALIGNMENT_MAX)
        return reject(c, "alignment_cap", "general.alignment is above 1 MiB");
    *out = a;
    return PLM_OK;
}

/* ---- tensors ---- */

/* Elements and bytes of a tensor whose dims are read. */
static plm_status size_tensor(const cursor *c, plm_tensor *t)
{
    uint64_t elements = 1;
    bool empty = false;
    for (uint32_t i = 0; i < t->rank; i++)
        empty = empty || t->dim[i] == 0;
    for (uint32_t i = 0; i < t->rank && !empty; i++)
        if (!plm_mul_u64(elements, (uint64_t)t->dim[i], &elements) || elements > INT64_MAX)
            return reject(c, "overflow", "a tensor has more than 2^63 elements");
    const plm_dtype_info *info = plm_dtype_get(t->dtype);
    uint64_t cols = t->rank > 0 ? (uint64_t)t->dim[t->rank - 1] : 1;
    if (cols % info->block != 0)
        return reject(c, "block", "a tensor's rows are no multiple of its type's block");
    t->bytes = 0;
    if (!empty && (!plm_mul_u64(elements / info->block, info->block_bytes, &t->bytes) ||
                   t->bytes > INT64_MAX))
        return reject(c, "overflow", "a tensor has more than 2^63 bytes");
    return PLM_OK;
}

static plm_status read_tensor(cursor *c, plm_tensor *t, char **names)
{
    const char *name;
    size_t n;
    uint32_t type;
    PLM_TRY(read_string(c, &name, &n));
    if (n == 0 || n > NAME_MAX_BYTES)
        return reject(c, "name", "a tensor's name is empty or longer than 63 bytes");
    if (!plm_is_utf8(name, n))
        return reject(c, "utf8", "a tensor's name is not UTF-8");
    memcpy(*names, name, n);
    (*names)[n] = '\0';
    t->name = *names;
    *names += n + 1;
    PLM_TRY(read_u32(c, &t->rank));
    if (t->rank > 4)
        return reject(c, "ndims", "a tensor has more than four dimensions");
    for (uint32_t i = t->rank; i-- > 0;) {
        uint64_t dim;
        PLM_TRY(read_u64(c, &dim));
        if (dim > INT64_MAX)
            return reject(c, "dim", "a dimension is negative");
        t->dim[i] = (int64_t)dim;
    }
    PLM_TRY(read_u32(c, &type));
    t->dtype = plm_dtype_by_gguf(type);
    if (t->dtype >= PLM_DT_COUNT || plm_dtype_get(t->dtype)->block == 0)
        return reject(c, "tensor_type", "a tensor's type is unknown or no longer in use");
    PLM_TRY(read_u64(c, &t->offset));
    return size_tensor(c, t);
}

/* Bytes of all names with their NULs: walks the records without keeping anything. */
static plm_status measure_names(cursor c, uint64_t count, size_t *bytes)
{
    *bytes = 0;
    for (uint64_t i = 0; i < count; i++) {
        const char *name;
        size_t n;
        uint32_t rank;
        PLM_TRY(read_string(&c, &name, &n));
        *bytes += n + 1;
        PLM_TRY(read_u32(&c, &rank));
        if (rank > 4)
            return reject(&c, "ndims", "a tensor has more than four dimensions");
        if (left(&c) < 8u * rank + 12u)
            return reject(&c, "short", "the header ends inside a tensor record");
        c.at += 8u * rank + 12u;
    }
    return PLM_OK;
}

static plm_status check_unique_names(plm_gguf *g, const cursor *c)
{
    g->by_name = plm_malloc((size_t)g->n_tensors * sizeof *g->by_name);
    if (g->by_name == NULL)
        return plm_fail_memory(c->err, "GGUF tensor names");
    for (uint64_t i = 0; i < g->n_tensors; i++)
        g->by_name[i] = i;
    if (sort_finds_equal(g, compare_tensors, g->by_name, (size_t)g->n_tensors))
        return reject(c, "dup_tensor", "a tensor's name occurs twice");
    return PLM_OK;
}

static plm_status check_ranges(plm_gguf *g, const cursor *c, uint64_t file_bytes)
{
    uint32_t alignment;
    PLM_TRY(read_alignment(g, c, &alignment));
    uint64_t start = (c->at + (uint64_t)alignment - 1) / alignment * alignment;
    g->start = start;
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        const plm_tensor *t = &g->tensor[i];
        uint64_t end;
        if (t->offset % alignment != 0)
            return reject(c, "offset", "a tensor's offset is no multiple of the alignment");
        if (!plm_add_u64(start, t->offset, &end) || !plm_add_u64(end, t->bytes, &end) ||
            end > file_bytes)
            return plm_fail(c->err, PLM_E_INVALID,
                            "range, %s: tensor %s lies past the end of the file; download it again",
                            c->where, t->name);
    }
    return PLM_OK;
}

static plm_status read_tensors(plm_gguf *g, cursor *c, uint64_t file_bytes)
{
    size_t name_bytes;
    PLM_TRY(measure_names(*c, g->n_tensors, &name_bytes));
    uint64_t need = g->n_pairs * sizeof *g->pair + name_bytes +
                    g->n_tensors * (sizeof *g->tensor + sizeof(uint64_t));
    if (need > MEMORY_FLOOR_BYTES && need / 2 > c->bytes)
        return reject(c, "count", "too many records for so small a file");
    g->tensor = plm_calloc((size_t)g->n_tensors, sizeof *g->tensor);
    g->names = plm_malloc(name_bytes);
    if (g->tensor == NULL || g->names == NULL)
        return plm_fail_memory(c->err, "GGUF tensor records");
    char *names = g->names;
    for (uint64_t i = 0; i < g->n_tensors; i++)
        PLM_TRY(read_tensor(c, &g->tensor[i], &names));
    PLM_TRY(check_unique_names(g, c));
    return check_ranges(g, c, file_bytes);
}

/* ---- opening ---- */

static plm_status read_header(plm_gguf *g, cursor *c)
{
    uint32_t version;
    if (c->bytes < 4)
        return reject(c, "short", "no room for a header");
    if (memcmp(c->data, "GGUF", 4) != 0)
        return reject(c, "magic", "not a GGUF file");
    c->at = 4;
    PLM_TRY(read_u32(c, &version));
    if (version != 0 && (version & 0xffff) == 0)
        return reject(c, "byte_order", "the file has the other byte order");
    if (version != 2 && version != 3)
        return plm_fail(c->err, PLM_E_INVALID, "version, %s: GGUF version %u; convert it to 3",
                        c->where, version);
    PLM_TRY(read_u64(c, &g->n_tensors));
    PLM_TRY(read_u64(c, &g->n_pairs));
    if (g->n_tensors > c->bytes / TENSOR_MIN_BYTES || g->n_pairs > c->bytes / PAIR_MIN_BYTES)
        return reject(c, "count", "more records than the file could hold");
    return PLM_OK;
}

plm_status plm_gguf_open(const unsigned char *data, size_t bytes, uint64_t file_bytes,
                         const char *where, plm_gguf **out, plm_error *err)
{
    *out = NULL;
    plm_gguf *g = plm_calloc(1, sizeof *g);
    if (g == NULL)
        return plm_fail_memory(err, "GGUF directory");
    g->data = data;
    g->bytes = bytes;
    cursor c = {.data = data, .bytes = bytes, .where = where, .err = err};
    plm_status status;
    PLM_GOTO(read_header(g, &c));
    PLM_GOTO(read_pairs(g, &c));
    PLM_GOTO(read_tensors(g, &c, file_bytes));
done:
    if (status == PLM_OK)
        *out = g;
    else
        plm_gguf_close(g);
    return status;
}

void plm_gguf_close(plm_gguf *g)
{
    if (g == NULL)
        return;
    plm_free(g->pair);
    plm_free(g->tensor);
    plm_free(g->by_name);
    plm_free(g->names);
    plm_free(g);
}

size_t plm_gguf_tensor_count(const plm_gguf *g)
{
    return (size_t)g->n_tensors;
}

const plm_tensor *plm_gguf_tensor(const plm_gguf *g, size_t i)
{
    return i < g->n_tensors ? &g->tensor[i] : NULL;
}

const plm_tensor *plm_gguf_find(const plm_gguf *g, const char *name)
{
    size_t lo = 0, hi = (size_t)g->n_tensors;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const plm_tensor *t = &g->tensor[g->by_name[mid]];
        int order = strcmp(name, t->name);
        if (order == 0)
            return t;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

uint64_t plm_gguf_data_start(const plm_gguf *g)
{
    return g->start;
}
