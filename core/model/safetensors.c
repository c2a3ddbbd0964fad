/* safetensors.c - the header of a safetensors file, every bound checked.
**
** Layout (format description at github.com/huggingface/safetensors): u64 little-endian header
*length,
** a JSON object {name: {"dtype", "shape", "data_offsets": [begin, end)}, "__metadata__": {text:
** text}}, then the data, which the tensors cover exactly. The object is cut into its members here
*and
** each member goes to jansson on its own, so that memory stays within twice the header whatever it
** holds (parsed whole, a header takes ten times its size).
*/
#include <ctype.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_alloc.h"
#include "core/base/mem.h"
#include "core/model/load.h"
#include "core/base/utf8.h"

#define HEADER_MAX_BYTES 100000000u /* the reference reader's limit */
#define MEMBER_MAX_BYTES 4096u      /* text of one tensor's object */
#define MEMORY_FLOOR_BYTES (1u << 20)
#define RANK_MAX 16u

struct plm_safetensors {
    plm_tensor *tensor;
    size_t count, room;
    char *names;
    size_t name_bytes;
};

typedef struct scanner {
    const char *text; /* the header */
    size_t bytes, at;
    uint64_t data_bytes;
    const char *where;
    plm_error *err;
} scanner;

typedef struct span {
    const char *text;
    size_t bytes;
} span;

static plm_status reject(const scanner *s, const char *reason, const char *why)
{
    return plm_fail(s->err, PLM_E_INVALID, "%s, %s: %s; the file is damaged or hostile", reason,
                    s->where, why);
}

/* ---- cutting an object into members ---- */

static void skip_space(scanner *s)
{
    while (s->at < s->bytes && strchr(" \t\r\n", s->text[s->at]) != NULL)
        s->at++;
}

/* Past one character, spaces before it skipped. */
static bool take(scanner *s, char c)
{
    skip_space(s);
    if (s->at >= s->bytes || s->text[s->at] != c)
        return false;
    s->at++;
    return true;
}

static bool skip_string(scanner *s)
{
    for (s->at++; s->at < s->bytes; s->at++) {
        if (s->text[s->at] == '"') {
            s->at++;
            return true;
        }
        if (s->text[s->at] == '\\')
            s->at++;
    }
    return false;
}

/* The extent of the value that starts here; its inside is for jansson to judge. */
static bool take_value(scanner *s, span *out)
{
    skip_space(s);
    size_t start = s->at, depth = 0;
    while (s->at < s->bytes) {
        char c = s->text[s->at];
        if (depth == 0 && s->at > start && (c == ',' || c == '}' || c == ':' || c == ' '))
            break;
        if (c == '"') {
            if (!skip_string(s))
                return false;
        } else {
            if ((c == '}' || c == ']') && depth-- == 0)
                return false;
            if (c == '{' || c == '[')
                depth++;
            s->at++;
        }
        if (depth == 0 && (c == '"' || c == '}' || c == ']'))
            break;
    }
    *out = (span){s->text + start, s->at - start};
    return depth == 0 && s->at > start;
}

static plm_status parse(const scanner *s, span v, json_t **out)
{
    json_error_t e;
    *out = NULL;
    if (!plm_json_reserve(v.bytes)) /* see json_alloc.h */
        return plm_fail_memory(s->err, "safetensors header");
    *out = json_loadb(v.text, v.bytes, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &e);
    bool failed = plm_json_reserve_failed();
    if (failed) {
        json_decref(*out);
        *out = NULL;
    }
    plm_json_reserve_drop();
    if (*out != NULL)
        return PLM_OK;
    if (failed || json_error_code(&e) == json_error_out_of_memory)
        return plm_fail_memory(s->err, "safetensors header");
    if (json_error_code(&e) == json_error_duplicate_key)
        return reject(s, "dup_key", "a key occurs twice");
    return reject(s, "header_json", "the header is not JSON");
}

typedef plm_status (*member_fn)(scanner *s, span key, span value, void *user);

/* Calls fn for each member of the object that starts here. */
static plm_status each_member(scanner *s, member_fn fn, void *user)
{
    if (!take(s, '{'))
        return reject(s, "header_json", "not an object");
    if (take(s, '}'))
        return PLM_OK;
    do {
        span key, value;
        skip_space(s);
        if (s->at >= s->bytes || s->text[s->at] != '"' || !take_value(s, &key) || !take(s, ':') ||
            !take_value(s, &value))
            return reject(s, "header_json", "the header is not JSON");
        PLM_TRY(fn(s, key, value, user));
    } while (take(s, ','));
    return take(s, '}') ? PLM_OK : reject(s, "header_json", "the header is not JSON");
}

/* ---- tensors ---- */

static plm_status read_shape(const scanner *s, const json_t *shape, plm_tensor *t,
                             uint64_t *elements)
{
    size_t n = json_array_size(shape);
    if (!json_is_array(shape) || n > RANK_MAX)
        return reject(s, "shape", "a tensor's shape is no list of at most 16 numbers");
    bool empty = false;
    for (size_t i = 0; i < n; i++) {
        const json_t *d = json_array_get(shape, i);
        if (!json_is_integer(d) || json_integer_value(d) < 0)
            return reject(s, "shape", "a dimension is no whole number from 0");
        empty = empty || json_integer_value(d) == 0;
    }
    /* More than four dims: the outer ones are folded into the first, which keeps rows and columns.
     */
    t->rank = (uint32_t)(n < 4 ? n : 4);
    *elements = empty ? 0 : 1;
    int64_t outer = 1;
    for (size_t i = 0; i < n; i++) {
        int64_t d = json_integer_value(json_array_get(shape, i));
        if (!empty && (!plm_mul_u64(*elements, (uint64_t)d, elements) || *elements > INT64_MAX))
            return reject(s, "overflow", "a tensor has more than 2^63 elements");
        outer = empty ? 0 : outer * d; /* <= elements */
        size_t folded = n > 4 ? n - 4 : 0;
        t->dim[i > folded ? i - folded : 0] = i <= folded && n > 4 ? outer : d;
    }
    return PLM_OK;
}

static plm_status read_offsets(const scanner *s, const json_t *offsets, plm_tensor *t)
{
    const json_t *b = json_array_get(offsets, 0), *e = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(b) || !json_is_integer(e))
        return reject(s, "offsets", "data_offsets is not two numbers");
    int64_t begin = json_integer_value(b), end = json_integer_value(e);
    if (begin < 0 || end < begin)
        return reject(s, "offsets", "data_offsets is negative or ends before it begins");
    t->offset = (uint64_t)begin;
    t->bytes = (uint64_t)(end - begin);
    return PLM_OK;
}

static plm_status read_tensor(const scanner *s, const json_t *obj, plm_tensor *t)
{
    const char *key;
    json_t *v;
    if (!json_is_object(obj))
        return reject(s, "header_json", "a tensor's entry is not an object");
    json_object_foreach((json_t *)(uintptr_t)obj, key,
                        v) if (strcmp(key, "dtype") != 0 && strcmp(key, "shape") != 0 &&
                               strcmp(key, "data_offsets") !=
                                   0) return reject(s, "header_json",
                                                    "a tensor's entry has an unknown key");
    const char *dtype = json_string_value(json_object_get(obj, "dtype"));
    t->dtype = dtype != NULL ? plm_dtype_by_safetensors(dtype) : PLM_DT_COUNT;
    if (t->dtype >= PLM_DT_COUNT)
        return reject(s, "dtype", "a tensor's dtype is unknown");
    uint64_t elements = 0, bytes = 0;
    PLM_TRY(read_shape(s, json_object_get(obj, "shape"), t, &elements));
    PLM_TRY(read_offsets(s, json_object_get(obj, "data_offsets"), t));
    const plm_dtype_info *info = plm_dtype_get(t->dtype);
    if (elements % info->block != 0)
        return reject(s, "shape", "a tensor does not fill whole bytes");
    if (!plm_mul_u64(elements / info->block, info->block_bytes, &bytes) || bytes > INT64_MAX)
        return reject(s, "overflow", "a tensor has more than 2^63 bytes");
    return bytes == t->bytes ? PLM_OK
                             : reject(s, "offsets", "data_offsets and shape disagree on the size");
}

static plm_status check_metadata_pair(scanner *s, span key, span value, void *user)
{
    (void)user;
    json_t *v;
    if (value.bytes == 0 || value.text[0] != '"')
        return reject(s, "header_json", "metadata is not text");
    PLM_TRY(parse(s, key, &v));
    json_decref(v);
    PLM_TRY(parse(s, value, &v));
    json_decref(v);
    return PLM_OK;
}

static plm_status keep_name(plm_safetensors *d, const scanner *s, const json_t *name, plm_tensor *t)
{
    size_t n = json_string_length(name);
    /* d->names has the header's size: a name is never longer than its JSON text. */
    char *at = d->names + d->name_bytes;
    memcpy(at, json_string_value(name), n + 1);
    if (strlen(at) != n)
        return reject(s, "header_utf8", "a name holds a NUL");
    d->name_bytes += n + 1;
    t->name = at;
    return PLM_OK;
}

static plm_status add_tensor(scanner *s, span key, span value, void *user)
{
    plm_safetensors *d = user;
    json_t *name = NULL, *obj = NULL;
    plm_tensor t = {0};
    plm_status status;
    PLM_GOTO(parse(s, key, &name));
    if (strcmp(json_string_value(name), "__metadata__") == 0) {
        scanner inner = *s;
        inner.text = value.text;
        inner.bytes = value.bytes;
        inner.at = 0;
        PLM_GOTO(each_member(&inner, check_metadata_pair, NULL));
        goto done;
    }
    if (value.bytes > MEMBER_MAX_BYTES) {
        status = reject(s, "header_json", "a tensor's entry is longer than 4096 bytes");
        goto done;
    }
    PLM_GOTO(parse(s, value, &obj));
    PLM_GOTO(read_tensor(s, obj, &t));
    PLM_GOTO(keep_name(d, s, name, &t));
    if (d->count >= d->room) {
        status = reject(s, "header_json", "more tensors than the header has room for");
        goto done;
    }
    d->tensor[d->count++] = t;
done:
    json_decref(name);
    json_decref(obj);
    return status;
}

/* ---- the whole ---- */

static int by_name(const plm_tensor *a, const plm_tensor *b)
{
    return strcmp(a->name, b->name);
}

static int by_place(const plm_tensor *a, const plm_tensor *b)
{
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

typedef int (*compare_fn)(const plm_tensor *a, const plm_tensor *b);

static void sift_down(plm_tensor *v, size_t at, size_t n, compare_fn compare)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && compare(&v[child], &v[child + 1]) < 0)
            child++;
        if (compare(&v[at], &v[child]) >= 0)
            return;
        plm_tensor t = v[at];
        v[at] = v[child];
        v[child] = t;
    }
}

/* Heap sort, in place: the C library's may allocate past our door. */
static void sort_tensors(plm_tensor *v, size_t n, compare_fn compare)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(v, i, n, compare);
    for (size_t end = n; end-- > 1;) {
        plm_tensor t = v[0];
        v[0] = v[end];
        v[end] = t;
        sift_down(v, 0, end, compare);
    }
}

/* Names unique; in order of place, each tensor begins where the one before ends. Leaves the tensors
** in order of place. */
static plm_status check_cover(plm_safetensors *d, const scanner *s)
{
    sort_tensors(d->tensor, d->count, by_name);
    for (size_t i = 1; i < d->count; i++)
        if (by_name(&d->tensor[i - 1], &d->tensor[i]) == 0)
            return reject(s, "dup_key", "a tensor's name occurs twice");
    sort_tensors(d->tensor, d->count, by_place);
    uint64_t end = 0;
    for (size_t i = 0; i < d->count; i++) {
        if (d->tensor[i].offset != end)
            return plm_fail(s->err, PLM_E_INVALID,
                            "offsets, %s: tensor %.80s leaves a hole or overlaps; the file is "
                            "damaged or hostile",
                            s->where, d->tensor[i].name);
        end += d->tensor[i].bytes; /* each at most 2^63, and the next must start at the sum */
        if (end > INT64_MAX)
            return reject(s, "overflow", "the tensors have more than 2^63 bytes");
    }
    if (end != s->data_bytes)
        return reject(s, "incomplete_cover", "the tensors do not cover the data exactly");
    return PLM_OK;
}

/* Upper bound of the tensors of a header: each has three keys, and so this many of the word "dtype"
** with its quotes (which may be more, in names). */
static size_t count_tensors(const char *text, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i + 7 <= bytes; i++)
        if (text[i] == '"' && memcmp(text + i, "\"dtype\"", 7) == 0)
            n++;
    return n;
}

static plm_status read_all(plm_safetensors *d, scanner *s)
{
    if (!plm_is_utf8(s->text, s->bytes))
        return reject(s, "header_utf8", "the header is not UTF-8");
    if (s->text[0] != '{')
        return reject(s, "header_start", "the header does not start with {");
    d->room = count_tensors(s->text, s->bytes);
    if (d->room * sizeof *d->tensor + s->bytes > MEMORY_FLOOR_BYTES &&
        d->room * sizeof *d->tensor > s->bytes)
        return reject(s, "header_json", "too many tensors for so small a header");
    d->tensor = plm_calloc(d->room, sizeof *d->tensor);
    d->names = plm_malloc(s->bytes);
    if (d->tensor == NULL || d->names == NULL)
        return plm_fail_memory(s->err, "safetensors header");
    PLM_TRY(each_member(s, add_tensor, d));
    skip_space(s);
    if (s->at != s->bytes)
        return reject(s, "header_json", "text after the header's object");
    return check_cover(d, s);
}

plm_status plm_safetensors_open(const unsigned char *data, size_t bytes, uint64_t file_bytes,
                                const char *where, plm_safetensors **out, plm_error *err)
{
    *out = NULL;
    scanner s = {.where = where, .err = err};
    uint64_t n = 0;
    if (bytes < 8)
        return reject(&s, "header_small", "no room for a header");
    for (size_t i = 0; i < 8; i++)
        n |= (uint64_t)data[i] << (8 * i);
    if (n < 2)
        return reject(&s, "header_small", "the header is empty");
    if (n > HEADER_MAX_BYTES || n > bytes - 8 || file_bytes < bytes)
        return reject(&s, "header_large", "the header is longer than the file or than 100 MB");
    s.text = (const char *)data + 8;
    s.bytes = (size_t)n;
    s.data_bytes = file_bytes - 8 - n;
    plm_safetensors *d = plm_calloc(1, sizeof *d);
    if (d == NULL)
        return plm_fail_memory(err, "safetensors header");
    plm_status status = read_all(d, &s);
    if (status == PLM_OK)
        *out = d;
    else
        plm_safetensors_close(d);
    return status;
}

void plm_safetensors_close(plm_safetensors *s)
{
    if (s == NULL)
        return;
    plm_free(s->tensor);
    plm_free(s->names);
    plm_free(s);
}

size_t plm_safetensors_count(const plm_safetensors *s)
{
    return s->count;
}

const plm_tensor *plm_safetensors_tensor(const plm_safetensors *s, size_t i)
{
    return i < s->count ? &s->tensor[i] : NULL;
}

uint64_t plm_safetensors_data_start(const unsigned char *data)
{
    uint64_t n = 0;
    for (size_t i = 0; i < 8; i++)
        n |= (uint64_t)data[i] << (8 * i);
    return n + 8; /* n was checked to lie in the file */
}
