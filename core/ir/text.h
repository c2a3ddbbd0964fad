/* text.h - words of the text form that printer and parser share. Grammar: docs/graph-text.md. */
#ifndef PLM_IR_TEXT_H
#define PLM_IR_TEXT_H
#include "core/ir/rules.h"

/* The word of each number, NULL where there is none. */
const char *plm_text_sym(int64_t sym);        /* plm_sym: "T" */
const char *plm_text_dim_op(int64_t op);      /* plm_dim_op: "mul"; NULL for constants, symbols */
const char *plm_text_role(int64_t role);      /* plm_role: "q" */
const char *plm_text_kind(int64_t kind);      /* plm_value_kind: "weight"; NULL for NODE */
const char *plm_text_enum(plm_attr_key key, int64_t v); /* fn: "silu"; NULL: printed as a number */
/* The number whose word this is among 0 .. count - 1, or -1. */
int64_t plm_text_find(const char *(*word)(int64_t), int64_t count, const char *text);
int64_t plm_text_find_enum(plm_attr_key key, const char *text);

#endif
