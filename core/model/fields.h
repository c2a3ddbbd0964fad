/* fields.h - the fields of an arch record as tables: name, type, place and bounds.
**
** One table serves the record reader (record.c), the bounds check (arch.c) and the comparison of
*two
** records (plm_arch_same). A field added to plm_arch is added to fields.def too.
*/
#ifndef PLM_MODEL_FIELDS_H
#define PLM_MODEL_FIELDS_H
#include <stddef.h>

#include "core/model/arch.h"

typedef enum plm_field_type {
    PLM_FIELD_INT,  /* int32_t */
    PLM_FIELD_LONG, /* int64_t */
    PLM_FIELD_BOOL,
    PLM_FIELD_REAL, /* double */
    PLM_FIELD_ATTN,
    PLM_FIELD_FN,
    PLM_FIELD_QK,
    PLM_FIELD_NORM,
    PLM_FIELD_SCALING
} plm_field_type;

typedef struct plm_field {
    const char *name; /* key in a catalog record, equal to the member's name */
    plm_field_type type;
    size_t offset;
    double lo, hi; /* numbers only; both ends allowed */
} plm_field;

typedef struct plm_field_table {
    const plm_field *field;
    size_t count;
} plm_field_table;

plm_field_table plm_fields_arch(void);  /* of plm_arch */
plm_field_table plm_fields_layer(void); /* of plm_layer, without rope */
plm_field_table plm_fields_rope(void);  /* of plm_rope */

/* The field of a name, NULL if none. */
const plm_field *plm_field_find(plm_field_table t, const char *name);
/* Value of a numeric or bool field of the object at `base`, as a real number. */
double plm_field_value(const plm_field *f, const void *base);
/* Sets an enumerated field by its name; false if the name is unknown or the field is none. */
bool plm_field_set_name(const plm_field *f, void *base, const char *name);
/* Name of the value of an enumerated field. */
const char *plm_field_name(const plm_field *f, const void *base);

/* PLM_OK when both describe the same model: every field of the record, and of each layer, is equal
** (reals to 1e-9 of their value). Ids, families, storage, published counts and the numbering of the
** kinds are not compared. Otherwise PLM_E_INVALID; the error names layer and field. */
plm_status plm_arch_same(const plm_arch *a, const plm_arch *b, plm_error *err) PLM_MUST_USE;

#endif
