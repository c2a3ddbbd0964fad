/* session.h - what a command holds while it answers: catalog, and caches of loaded models, bound
** machines and cost programs. One session a thread of jobs; a session is not thread-safe, but the
** machines and programs it hands out may be read by many threads while it lives. */
#ifndef PLM_SIM_SESSION_H
#define PLM_SIM_SESSION_H
#include "core/model/load.h"
#include "sim/step/step.h"

typedef struct plm_session plm_session;
plm_status plm_session_create(const char *catalog_dir, plm_session **out, plm_error *err)
    PLM_MUST_USE;
void plm_session_destroy(plm_session *s);
const plm_catalog *plm_session_catalog(const plm_session *s);
/* Borrowed from the session; loaded once. */
plm_status plm_session_model(plm_session *s, const char *name, const plm_arch **out,
                             plm_error *err) PLM_MUST_USE;
plm_status plm_session_machine(plm_session *s, const char *device, const char *engine,
                               const plm_machine **out, plm_error *err) PLM_MUST_USE;
plm_status plm_session_params(plm_session *s, const plm_arch *a, const plm_params **out,
                              plm_error *err) PLM_MUST_USE;
/* Cost program of a rank; cached by (arch, build, fuse mask). It lives until the session's next answer
** (plm_predict, plm_explain, plm_plan_search), which may drop programs not used for long. */
plm_status plm_session_program(plm_session *s, const plm_arch *a, const plm_build *b,
                               const plm_profile *p, const plm_program **out, plm_error *err)
    PLM_MUST_USE;
#endif
