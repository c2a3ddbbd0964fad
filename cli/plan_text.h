/* plan_text.h - the plans of a search as text. */
#ifndef PLM_CLI_PLAN_TEXT_H
#define PLM_CLI_PLAN_TEXT_H
#include "cli/cli.h"

/* The best plan in words with its ranges and price, then the first `top` as a table. */
plm_status plm_plan_print(const plm_plan_query *q, const plm_plan *p, size_t top, FILE *out,
                          plm_error *err) PLM_MUST_USE;
/* The first `top`, every column. */
plm_status plm_plan_print_csv(const plm_plan *p, size_t top, FILE *out, plm_error *err) PLM_MUST_USE;

#endif
