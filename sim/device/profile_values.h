/* profile_values.h - the values of an engine profile, for its loader (profile.c). */
#ifndef PLM_SIM_PROFILE_VALUES_H
#define PLM_SIM_PROFILE_VALUES_H
#include <jansson.h>

#include "sim/device/profile.h"

/* Every value at what it is when no record sets it. */
void plm_profile_neutral(plm_profile *p);
/* Reads every key of a set of values into p. Keys among `also` are left to the caller; any other
** that is no value is PLM_E_INVALID. `where` names the record in errors. */
plm_status plm_profile_read(json_t *obj, const char *const *also, size_t n_also, const char *where,
                            plm_profile *p, plm_error *err) PLM_MUST_USE;
/* Index of a name, n if it is not among them. */
size_t plm_profile_find(const char *const *names, size_t n, const char *name);
/* "unknown WHAT NAME" and "bad value of KEY: want WANT". */
plm_status plm_profile_unknown(const char *what, const char *name, const char *where,
                               plm_error *err);
plm_status plm_profile_wrong(const char *key, const char *want, const char *where, plm_error *err);

#endif
