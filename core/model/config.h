/* config.h - the parts of the config.json reader: config.c (entry, top level), config_get.c
** (look-up), config_keys.c (keys that must not be passed over), config_family.c (what the name of a
** family implies), config_kind.c, config_attn.c, config_ffn.c, config_rope.c, config_quant.c.
**
** A value is looked for under several names at once ("num_hidden_layers|n_layer"), first among
** what holds for one layer alone, then in the language model's own object, then at the top of the
** file, then in the family's defaults.
*/
#ifndef PLM_MODEL_CONFIG_H
#define PLM_MODEL_CONFIG_H
#include <jansson.h>

#include "core/model/arch.h"

typedef struct plm_config {
    const json_t *text; /* text_config, or the whole */
    const json_t *root;
    json_t *defaults; /* of the family, owned */
    const char *type; /* model_type of the language model, "" if not said */
    bool known;       /* the family is in the table */
    const char *where;
    plm_arch *arch;
    plm_error *err;
    int32_t heads, kv_heads, head_dim;
    const json_t *layer; /* keys that hold for the layer being read alone, or NULL */
} plm_config;

/* ---- config_get.c ---- */
/* Value of one name in an object; NULL when absent, null, or obj is no object. */
const json_t *plm_config_member(const json_t *obj, const char *name);
/* NULL when none of the names is present with a value other than null. */
const json_t *plm_config_get(const plm_config *c, const char *names);
bool plm_config_has(const plm_config *c, const char *names);
#define PLM_CONFIG_NEEDED INT64_MIN
/* A whole number from 0 to hi; the default when absent, PLM_E_INVALID when absent and needed. */
plm_status plm_config_int(const plm_config *c, const char *names, int64_t fallback, int64_t hi,
                          int32_t *out) PLM_MUST_USE;
plm_status plm_config_long(const plm_config *c, const char *names, int64_t fallback, int64_t hi,
                           int64_t *out) PLM_MUST_USE;
plm_status plm_config_real(const plm_config *c, const char *names, double fallback,
                           double *out) PLM_MUST_USE;
/* true/false, or 0/1. */
plm_status plm_config_flag(const plm_config *c, const char *names, bool fallback,
                           bool *out) PLM_MUST_USE;
/* Borrowed text, fallback when absent. */
plm_status plm_config_text(const plm_config *c, const char *names, const char *fallback,
                           const char **out) PLM_MUST_USE;
/* A trait of the family ("plm_..." keys of the table), which a file cannot set. */
bool plm_config_trait(const plm_config *c, const char *name);
const char *plm_config_trait_text(const plm_config *c, const char *name, const char *fallback);
/* "bad value of "NAME", FILE: want WANT; ..." with the first of the names. */
plm_status plm_config_bad(const plm_config *c, const char *names, const char *want) PLM_MUST_USE;
/* "unsupported WHAT "VALUE", FILE: ..." */
plm_status plm_config_refuse(const plm_config *c, const char *what, const char *value) PLM_MUST_USE;
/* Same, for a named family: "unsupported model_type "TYPE", FILE: its WHAT cannot be modelled". */
plm_status plm_config_refuse_own(const plm_config *c, const char *what) PLM_MUST_USE;

/* ---- config_family.c ---- */
/* Defaults and traits of a family as JSON text, NULL if it is not in the table. */
const char *plm_config_family(const char *type);
/* The same by the name of its class ("Qwen3MoeForCausalLM"), for files whose model_type is missing
** or of their maker's own making. */
const char *plm_config_family_of_class(const char *name);
/* The i-th row, for tests; false past the end. */
bool plm_config_family_at(size_t i, const char **types, const char **json);

/* ---- config_kind.c ---- */
/* Kind of mixer of a layer; rope false when its place in the sequence says it does not rotate. */
plm_status plm_config_kind(const plm_config *c, int32_t layer, plm_attn *out,
                           bool *rope) PLM_MUST_USE;

/* ---- the halves of a layer ---- */
plm_status plm_config_attention(const plm_config *c, int32_t layer, plm_layer *k) PLM_MUST_USE;
plm_status plm_config_ffn(const plm_config *c, int32_t layer, plm_layer *k) PLM_MUST_USE;
/* dims: columns of the part of a head that may rotate. sliding: the layer is a windowed one. */
plm_status plm_config_rope(const plm_config *c, int32_t dims, bool sliding,
                           plm_rope *out) PLM_MUST_USE;
plm_status plm_config_fn(const plm_config *c, const char *name, plm_fn *out) PLM_MUST_USE;
plm_status plm_config_storage(const plm_config *c) PLM_MUST_USE;
/* Name of a layer's type from layer_types and its relatives; NULL when the file lists none. */
plm_status plm_config_layer_type(const plm_config *c, const char *names, int32_t layer,
                                 const char **out) PLM_MUST_USE;
/* Number i of a list, or the number itself if it is no list; -1 when absent. */
plm_status plm_config_int_at(const plm_config *c, const char *names, int32_t i,
                             int64_t *out) PLM_MUST_USE;

#endif
