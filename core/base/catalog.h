/* catalog.h - the records of catalog/, embedded in the binary, with a user's folder laid over them.
**
** A record is a file: catalog/devices/ID.json, catalog/models/ID.json, catalog/engines/ID.json,
** catalog/prices.csv. Ids match without regard to case, '-', '_', '.' and ' ' (plm_id_equal). Names
** are found without parsing any other record, so that a first answer stays quick.
*/
#ifndef PLM_BASE_CATALOG_H
#define PLM_BASE_CATALOG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

typedef struct plm_record {
    const char *kind; /* folder: "devices", "models", "engines"; "" for files at the top */
    const char *id;   /* file name without its extension */
    const char *text; /* the file, NUL-terminated */
    size_t bytes;
} plm_record;

typedef struct plm_catalog plm_catalog;

/* Opens the embedded catalog, and the files of overlay_dir (NULL = none) over it: a record there
** replaces the embedded one of equal id, or adds one; a folder without any is an error. Destroy after the last use of a record.
** Read-only afterwards, so any number of threads may read it. */
plm_status plm_catalog_create(const char *overlay_dir, plm_catalog **out, plm_error *err)
    PLM_MUST_USE;
void plm_catalog_destroy(plm_catalog *c);
/* NULL if there is none. */
const plm_record *plm_catalog_find(const plm_catalog *c, const char *kind, const char *id);
/* Records of a kind in order of id; index 0 .. plm_catalog_count - 1. */
size_t plm_catalog_count(const plm_catalog *c, const char *kind);
const plm_record *plm_catalog_at(const plm_catalog *c, const char *kind, size_t index);
/* The id of the kind nearest to a mistyped one, for "did you mean": of those that hold the text
** ("h100"), else by edit distance; NULL if none is near. */
const char *plm_catalog_nearest(const plm_catalog *c, const char *kind, const char *id);

/* Equal without regard to case and the characters '-', '_', '.', ' '. */
bool plm_id_equal(const char *a, const char *b);

#endif
