/* tok_json.h - what tok_json.c and tok_json_steps.c share. Private to core/model. */
#ifndef PLM_MODEL_TOK_JSON_H
#define PLM_MODEL_TOK_JSON_H
#include <jansson.h>

#include "core/model/tok_parts.h"

typedef struct plm_tok_json {
    plm_tokenizer *t;
    const char *where;
    plm_error *err;
} plm_tok_json;

plm_status plm_tok_json_refuse(const plm_tok_json *r, const char *what, const char *name);
/* "normalizer", "pre_tokenizer", "post_processor", "decoder" of a tokenizer.json; NULL or null:
** none. */
plm_status plm_tok_json_normalizer(plm_tok_json *r, const json_t *n) PLM_MUST_USE;
plm_status plm_tok_json_pre(plm_tok_json *r, const json_t *p) PLM_MUST_USE;
plm_status plm_tok_json_post(plm_tok_json *r, const json_t *p) PLM_MUST_USE;
plm_status plm_tok_json_decoder(plm_tok_json *r, const json_t *d) PLM_MUST_USE;

#endif
