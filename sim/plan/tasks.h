/* tasks.h - independent numbered tasks over threads. Internal to sim/plan. */
#ifndef PLM_SIM_TASKS_H
#define PLM_SIM_TASKS_H
#include <stddef.h>

/* Runs run(ctx, i) once for each i below n, on up to `threads` threads (0 = as many as the machine
** has processors, at most 64); the caller's thread is one of them and alone calls progress (may be
** NULL) with the share done. Tasks must not depend on each other's order. When no thread can be
*made
** the caller does all of it, so this cannot fail. */
void plm_tasks_run(size_t n, int threads, void (*run)(void *ctx, size_t i), void *ctx,
                   void (*progress)(void *ctx, double share), void *progress_ctx);

#endif
