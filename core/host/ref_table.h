/* ref_table.h - functions of the reference backend's table. Private to core/host. */
#ifndef PLM_HOST_REF_TABLE_H
#define PLM_HOST_REF_TABLE_H
#include "core/base/status.h"
#include "plimsoll/backend.h"

/* As in plm_backend. */
plm_status ref_supports(plm_backend_device *dev, const plm_backend_graph *view, uint32_t node,
                        plm_backend_support *out, plm_error *err);
plm_status ref_compile(plm_backend_device *dev, const plm_backend_graph *view,
                       plm_backend_exec **out, plm_error *err);
plm_status ref_execute(plm_backend_exec *x, plm_backend_stream *stream, const plm_backend_run *run,
                       plm_error *err);
plm_status ref_exec_info(plm_backend_exec *x, plm_backend_exec_info *out, plm_error *err);
void ref_exec_free(plm_backend_exec *x);
uint64_t ref_now_ns(void);

#endif
