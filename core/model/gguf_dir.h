/* gguf_dir.h - the directory of a GGUF file as gguf.c fills it and gguf_meta.c reads it. */
#ifndef PLM_MODEL_GGUF_DIR_H
#define PLM_MODEL_GGUF_DIR_H
#include "core/model/load.h"

/* Types of metadata values, by the numbers of the file. */
enum {
    VALUE_U8,
    VALUE_I8,
    VALUE_U16,
    VALUE_I16,
    VALUE_U32,
    VALUE_I32,
    VALUE_F32,
    VALUE_BOOL,
    VALUE_STRING,
    VALUE_ARRAY,
    VALUE_U64,
    VALUE_I64,
    VALUE_F64,
    VALUE_COUNT
};
/* Bytes of each; 0 for text and lists. */
extern const unsigned char plm_gguf_value_bytes[VALUE_COUNT];

struct plm_gguf {
    const unsigned char *data;
    size_t bytes;
    uint64_t start; /* of the tensors' data, from the first byte of the file */
    uint64_t n_pairs, n_tensors;
    uint64_t *pair; /* offset of each pair's record, in order of key */
    plm_tensor *tensor;
    uint64_t *by_name; /* indices of the tensors in order of name */
    char *names;       /* NUL-terminated, end to end */
};

/* Little-endian number of n <= 8 bytes. */
uint64_t plm_gguf_le(const unsigned char *p, size_t n);
/* Key of the pair whose record starts at an offset; its length is checked to lie in the file. */
const char *plm_gguf_key_at(const plm_gguf *g, uint64_t offset, size_t *n);
/* Order of two texts by bytes, the shorter first where one begins the other. */
int plm_gguf_compare(const char *a, size_t na, const char *b, size_t nb);
/* Offset of the type of a key's value, 0 if there is no such key. The pairs must be in order. */
size_t plm_gguf_value(const plm_gguf *g, const char *key);

#endif
