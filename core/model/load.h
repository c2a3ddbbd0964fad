/* load.h - from a file or a catalog id to an arch record. Tensor data is never read. */
#ifndef PLM_MODEL_LOAD_H
#define PLM_MODEL_LOAD_H
#include "core/base/catalog.h"
#include "core/model/arch.h"

/* name: a catalog id, a config.json, a folder with one (and perhaps *.safetensors), a .gguf (single
** or first of a split), a .safetensors with a config.json beside it. PLM_E_NOT_FOUND names the
** nearest catalog id. */
plm_status plm_model_load(const plm_catalog *c, const char *name, plm_arch *out, plm_error *err)
    PLM_MUST_USE;

/* Hugging Face config.json. where: the file's name, for errors and for the id. */
plm_status plm_model_from_config(const char *json, size_t bytes, const char *where, plm_arch *out,
                                 plm_error *err) PLM_MUST_USE;
/* A record of catalog/models (docs/adding-a-model.md has the form). */
plm_status plm_model_from_record(const char *json, size_t bytes, const char *where, plm_arch *out,
                                 plm_error *err) PLM_MUST_USE;

/* ---- tensor directories ---- */
typedef struct plm_tensor {
    const char *name; /* into the directory's own memory */
    plm_dtype dtype;
    uint32_t rank;
    int64_t dim[4];   /* outermost first (GGUF's ne reversed) */
    uint64_t offset, bytes; /* in the file's data section */
} plm_tensor;

typedef struct plm_gguf plm_gguf; /* metadata and tensor records of one file, bounds checked */
/* data: the first `bytes` of the file; file_bytes: its whole length, against which ranges are
** checked. Rejects with a reason word first in the error text: short, magic, version, byte_order,
** count, length, key, dup_key, value_type, alignment, alignment_cap, ndims, dim, overflow,
** tensor_type, name, offset, range, dup_tensor, block (row not a multiple of the block), utf8.
** Allocates at most max(1 MiB, 2 x bytes). The data must outlive it. */
plm_status plm_gguf_open(const unsigned char *data, size_t bytes, uint64_t file_bytes,
                         const char *where, plm_gguf **out, plm_error *err) PLM_MUST_USE;
void plm_gguf_close(plm_gguf *g);
size_t plm_gguf_tensor_count(const plm_gguf *g);
const plm_tensor *plm_gguf_tensor(const plm_gguf *g, size_t i);
/* The tensor of a name, NULL if there is none. */
const plm_tensor *plm_gguf_find(const plm_gguf *g, const char *name);
/* Offset of the tensors' data from the first byte of the file; plm_tensor.offset counts from there. */
uint64_t plm_gguf_data_start(const plm_gguf *g);
/* Metadata by key. false: absent or of another type. Text is borrowed and not NUL-terminated. */
bool plm_gguf_int(const plm_gguf *g, const char *key, int64_t *out);
bool plm_gguf_real(const plm_gguf *g, const char *key, double *out);
bool plm_gguf_bool(const plm_gguf *g, const char *key, bool *out);
bool plm_gguf_text(const plm_gguf *g, const char *key, const char **text, size_t *bytes);
/* Element i of an integer/bool array (or the scalar itself for any i); false past the end. */
bool plm_gguf_int_at(const plm_gguf *g, const char *key, size_t i, int64_t *out);
size_t plm_gguf_array_len(const plm_gguf *g, const char *key);
/* Element i of a list of numbers of either kind, as a double; false past the end. */
bool plm_gguf_real_at(const plm_gguf *g, const char *key, size_t i, double *out);
/* A list of bytes (u8 or i8) as it lies in the file; false if the key is absent or no such list. */
bool plm_gguf_bytes(const plm_gguf *g, const char *key, const unsigned char **data, size_t *n);
/* A list of texts, in order: plm_gguf_texts finds it (false: absent or of another type), and each
** plm_gguf_text_next yields one, until false. Texts are borrowed and not NUL-terminated. */
typedef struct plm_gguf_list {
    const unsigned char *at;
    size_t left; /* texts still to come */
} plm_gguf_list;
bool plm_gguf_texts(const plm_gguf *g, const char *key, plm_gguf_list *out);
bool plm_gguf_text_next(plm_gguf_list *list, const char **text, size_t *bytes);
/* Arch record of the file; head_count 0 and the like are "zero_divisor" rejects. */
plm_status plm_model_from_gguf(const plm_gguf *g, const char *where, plm_arch *out, plm_error *err)
    PLM_MUST_USE;
/* The same of a split file: n parts, the first holds the metadata; plm_split_check is applied. */
plm_status plm_model_from_gguf_parts(const plm_gguf *const *parts, size_t n, const char *where,
                                     plm_arch *out, plm_error *err) PLM_MUST_USE;

typedef struct plm_safetensors plm_safetensors;
/* Reasons: header_small, header_large, header_start, header_utf8, header_json, dup_key, dtype,
** shape, overflow, offsets, incomplete_cover. */
plm_status plm_safetensors_open(const unsigned char *data, size_t bytes, uint64_t file_bytes,
                                const char *where, plm_safetensors **out, plm_error *err)
    PLM_MUST_USE;
void plm_safetensors_close(plm_safetensors *s);
size_t plm_safetensors_count(const plm_safetensors *s);
const plm_tensor *plm_safetensors_tensor(const plm_safetensors *s, size_t i);
/* Offset of the tensors' data from the first byte of a file that plm_safetensors_open has taken. */
uint64_t plm_safetensors_data_start(const unsigned char *data);

/* Split files: given each part's split.no (zero based), split.count, split.tensors.count and tensor
** count, are they one whole set? Error names the missing or foreign part. */
typedef struct plm_split_part {
    int64_t no, count, tensors_total, tensors;
} plm_split_part;
plm_status plm_split_check(const plm_split_part *parts, size_t n, plm_error *err) PLM_MUST_USE;

#endif
