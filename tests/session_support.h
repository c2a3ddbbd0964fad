/* session_support.h - one session for all tests of a program: pass open_session and close_session to
** cmocka_run_group_tests. */
#ifndef PLM_TESTS_SESSION_SUPPORT_H
#define PLM_TESTS_SESSION_SUPPORT_H
#include "tests/support.h"

#include "sim/plan/session.h"

static plm_error err;
static plm_session *session;

static int open_session(void **state)
{
    (void)state;
    return plm_session_create(NULL, &session, &err) == PLM_OK ? 0 : -1;
}

static int close_session(void **state)
{
    (void)state;
    plm_session_destroy(session);
    return 0;
}

#endif
