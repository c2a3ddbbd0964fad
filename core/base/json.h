/* json.h - reading fields of a jansson object with an error that names the key.
**
** The get functions leave *out alone and return PLM_OK when the key is absent or null and `need` is
** false. A value of another type, out of [lo, hi] or not finite is PLM_E_INVALID. `where` names the
** file or record in the error.
*/
#ifndef PLM_BASE_JSON_H
#define PLM_BASE_JSON_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"

/* Parses text of n bytes: duplicate keys refused, nesting bounded by jansson (2048), a byte order mark
** before it ignored. */
plm_status plm_json_parse(const char *text, size_t n, const char *where, json_t **out,
                          plm_error *err) PLM_MUST_USE;
plm_status plm_json_int(const json_t *obj, const char *key, bool need, int64_t lo, int64_t hi,
                        const char *where, int64_t *out, plm_error *err) PLM_MUST_USE;
plm_status plm_json_double(const json_t *obj, const char *key, bool need, double lo, double hi,
                           const char *where, double *out, plm_error *err) PLM_MUST_USE;
plm_status plm_json_bool(const json_t *obj, const char *key, bool need, const char *where,
                         bool *out, plm_error *err) PLM_MUST_USE;
/* Borrowed from the object. */
plm_status plm_json_text(const json_t *obj, const char *key, bool need, const char *where,
                         const char **out, plm_error *err) PLM_MUST_USE;

#endif
