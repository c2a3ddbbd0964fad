/* open.h - opening a backend: the table, checked, one of its devices, and a stream.
**
** Those linked in are a table in open.c; the first is the usual one. Services that the contract lends to
** backends are made here; memory comes from core/base/mem.h, so that a test can make it short. */
#ifndef PLM_HOST_OPEN_H
#define PLM_HOST_OPEN_H
#include "core/base/status.h"
#include "plimsoll/backend.h"

typedef struct plm_opened {
    const plm_backend *be;
    plm_backend_device *dev;
    plm_backend_stream *stream;
    plm_backend_device_info info;
} plm_opened;

/* Services and what a backend may use. option: text of a key or NULL; may be NULL. */
typedef struct plm_open_options {
    uint32_t threads; /* 0 = as many as there are cores */
    const char *(*option)(void *ctx, const char *key);
    void *ctx;
} plm_open_options;

/* name: of a backend that is linked in; NULL = the usual one. index: of its devices.
** PLM_E_NOT_FOUND names those there are; PLM_E_NO_DEVICE says why there is none. `host` is filled in and
** must outlive *out. */
plm_status plm_open(const char *name, uint32_t index, const plm_open_options *o,
                    plm_backend_host *host, plm_opened *out, plm_error *err) PLM_MUST_USE;
/* The same of a table from elsewhere. */
plm_status plm_open_table(const plm_backend *be, uint32_t index, plm_opened *out,
                          plm_error *err) PLM_MUST_USE;
void plm_close(plm_opened *o);

/* PLM_E_VERSION or PLM_E_INVALID with the reason unless the table can be used: major, size, functions. */
plm_status plm_open_check(const plm_backend *be, plm_error *err) PLM_MUST_USE;
/* Names of those linked in, the usual one first; NULL past the last. */
const char *plm_open_name(size_t i);

#endif
