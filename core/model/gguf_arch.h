/* gguf_arch.h - what the parts of the GGUF front end share: gguf_arch.c (top level, layers),
** gguf_layer.c (one layer from its metadata and tensors). */
#ifndef PLM_MODEL_GGUF_ARCH_H
#define PLM_MODEL_GGUF_ARCH_H
#include "core/model/load.h"

/* What the name of an architecture implies and its files do not say. */
typedef struct plm_gguf_family {
    const char *name;
    unsigned flags; /* PLM_GF_* */
    plm_fn act, router;
    int32_t pattern; /* layers of a windowed period, the last one full; 0 = all windowed */
} plm_gguf_family;
enum {
    PLM_GF_INTERLEAVED = 1, /* rotary pairs are neighbours (ggml's NORM type) */
    PLM_GF_NO_ROPE = 2,
    PLM_GF_PARALLEL = 4,
    PLM_GF_EMBED_SQRT = 8,
    PLM_GF_ALIBI = 16,
    PLM_GF_OUT_GATE = 32,
    PLM_GF_NOPE_FULL = 64, /* full layers of a windowed model do not rotate */
    PLM_GF_RENORM = 128,   /* unless expert_weights_norm says otherwise */
    PLM_GF_QK_AFTER_ROPE = 256,
    PLM_GF_UNKNOWN = 512
};

typedef struct plm_gguf_model {
    const plm_gguf *const *part;
    size_t parts;
    const plm_gguf *meta; /* the part with the metadata */
    char prefix[48];      /* general.architecture */
    plm_gguf_family family;
    const char *where;
    plm_arch *arch;
    plm_error *err;
} plm_gguf_model;

/* PREFIX.key, the element of a layer where it is a list. false: absent. */
bool plm_gguf_model_int(const plm_gguf_model *m, const char *key, int32_t layer, int64_t *out);
bool plm_gguf_model_real(const plm_gguf_model *m, const char *key, double *out);
/* Tensor by name, and tensor blk.LAYER.name; NULL if there is none in any part. */
const plm_tensor *plm_gguf_model_tensor(const plm_gguf_model *m, const char *name);
const plm_tensor *plm_gguf_model_blk(const plm_gguf_model *m, int32_t layer, const char *name);
/* PREFIX.key within 1 .. hi; "zero_divisor" when it is 0, an error that names it when absent. */
plm_status plm_gguf_model_count(const plm_gguf_model *m, const char *key, int32_t layer, int64_t hi,
                                int32_t *out) PLM_MUST_USE;
plm_status plm_gguf_layer(const plm_gguf_model *m, int32_t layer, plm_layer *k) PLM_MUST_USE;

#endif
