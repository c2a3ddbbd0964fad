/* status.h - setting and passing on errors. */
#ifndef PLM_BASE_STATUS_H
#define PLM_BASE_STATUS_H
#include "plimsoll/status.h"

/* Writes code and text to err (NULL allowed) and returns code, so a caller can
** `return plm_fail(err, PLM_E_INVALID, "--tp, 3: ...")`. Too long a text is cut at a character.
** Control characters and bytes that are no UTF-8 become '?', so that an error stays one line that
** JSON can hold. */
#define plm_fail(err, code, ...)                                                                   \
    plm_fail_code(plm_fail_text((err), (code), __VA_ARGS__), (code))
plm_status plm_fail_text(plm_error *err, plm_status code, const char *fmt, ...) PLM_PRINTF(3, 4);
/* Inline, so that the compiler sees that a failure is never PLM_OK. */
static inline plm_status plm_fail_code(plm_status same, plm_status code)
{
    (void)same;
    return code;
}

/* Puts "prefix: " before the text of err; returns err->code (or code if err is NULL). */
plm_status plm_fail_in(plm_error *err, plm_status code, const char *prefix);

/* Plain name of a status ("out of memory") and the exit status of a command that ends with it. */
const char *plm_status_name(plm_status code);
int plm_status_exit(plm_status code);

/* Shorthand for the commonest failure; `what` names the thing that could not be allocated. */
static inline plm_status plm_fail_memory(plm_error *err, const char *what)
{
    return plm_fail(err, PLM_E_NO_MEMORY,
                    "out of memory, %s: an allocation failed; free memory or ask for less", what);
}

/* PLM_TRY(f(...)): return the status of f unless it is PLM_OK. PLM_GOTO: jump to `done` instead,
** with the status in a local `status`. */
#define PLM_TRY(expr)                                                                              \
    do {                                                                                           \
        plm_status plm_try_ = (expr);                                                              \
        if (plm_try_ != PLM_OK)                                                                    \
            return plm_try_;                                                                       \
    } while (0)
#define PLM_GOTO(expr)                                                                             \
    do {                                                                                           \
        status = (expr);                                                                           \
        if (status != PLM_OK)                                                                      \
            goto done;                                                                             \
    } while (0)

#endif
