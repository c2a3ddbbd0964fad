/* status.h - what a function of Plimsoll returns when it can fail, and the text that goes with it.
**
** Every function that can fail returns a plm_status (0 is success) and takes a caller-owned
** plm_error, which may be NULL. Nothing below cli/ prints, exits or aborts.
** C17 and C++17 clean; includes nothing but <stdint.h>.
*/
#ifndef PLIMSOLL_STATUS_H
#define PLIMSOLL_STATUS_H
#include <stdint.h>

/* code, number, exit status of the command line, name */
#define PLM_STATUS_MAP(X)                                                                          \
    X(OK, 0, 0, "ok")                                                                              \
    X(E_INVALID, 1, 2, "invalid input")                                                            \
    X(E_UNSUPPORTED, 2, 2, "unsupported")                                                          \
    X(E_NO_MEMORY, 3, 3, "out of memory")                                                          \
    X(E_NO_DEVICE, 4, 3, "no device")                                                              \
    X(E_DEVICE_LOST, 5, 3, "device lost")                                                          \
    X(E_VERSION, 6, 2, "version mismatch")                                                         \
    X(E_IO, 7, 3, "input/output error")                                                            \
    X(E_CANCELLED, 8, 3, "cancelled")                                                              \
    X(E_BUSY, 9, 3, "busy")                                                                        \
    X(E_INTERNAL, 10, 3, "internal error")                                                         \
    X(E_NOT_FOUND, 11, 2, "not found")                                                             \
    X(E_LIMIT, 12, 2, "limit exceeded")                                                            \
    X(E_INFEASIBLE, 13, 1, "infeasible")

typedef enum plm_status {
#define PLM_STATUS_ENUM(code, number, exit_status, name) PLM_##code = number,
    PLM_STATUS_MAP(PLM_STATUS_ENUM)
#undef PLM_STATUS_ENUM
} plm_status;

#if defined(__GNUC__)
#define PLM_MUST_USE __attribute__((warn_unused_result))
#define PLM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define PLM_MUST_USE
#define PLM_PRINTF(fmt, args)
#endif

/* Text of the last failure: "what, where: why; what to do", UTF-8, always NUL-terminated. */
typedef struct plm_error {
    plm_status code;
    char text[496];
} plm_error;

#endif
