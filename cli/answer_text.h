/* answer_text.h - a prediction for people. */
#ifndef PLM_CLI_ANSWER_TEXT_H
#define PLM_CLI_ANSWER_TEXT_H
#include "cli/cli.h"

/* One sentence, the figures with their ranges, the memory part by part, the cost. */
plm_status plm_answer_print(const plm_query *q, const plm_answer *r, FILE *out, plm_error *err)
    PLM_MUST_USE;
/* "tp2 pp2": the ranks above 1, or "tp1" where there are none. */
void plm_text_ranks(const plm_parallel *p, char *buf, size_t cap);

#endif
