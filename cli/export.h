/* export.h - a plan as files that a serving stack starts from. */
#ifndef PLM_CLI_EXPORT_H
#define PLM_CLI_EXPORT_H
#include "cli/cli.h"

/* --export and --out go together and the target is known, else PLM_E_INVALID. */
plm_status plm_export_check(const plm_args *a, plm_error *err) PLM_MUST_USE;
/* Writes the files of the target for the plan into --out (made if absent), naming each on log
** (NULL: nowhere). */
plm_status plm_export_write(const plm_args *a, const plm_plan_query *q, const plm_plan_row *r,
                            FILE *log, plm_error *err) PLM_MUST_USE;

#endif
