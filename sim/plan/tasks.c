/* tasks.c - independent numbered tasks over threads. */
#include "sim/plan/tasks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define THREADS_MAX 64

typedef struct pool {
    atomic_size_t next;
    size_t n;
    void (*run)(void *ctx, size_t i);
    void *ctx;
} pool;

static void *work(void *arg)
{
    pool *p = arg;
    size_t i;
    while ((i = atomic_fetch_add(&p->next, 1)) < p->n)
        p->run(p->ctx, i);
    return NULL;
}

static int threads_wanted(size_t n, int threads)
{
    long have = threads > 0 ? threads : sysconf(_SC_NPROCESSORS_ONLN);
    if (have < 1)
        have = 1;
    if (have > THREADS_MAX)
        have = THREADS_MAX;
    return (size_t)have < n ? (int)have : (int)n;
}

void plm_tasks_run(size_t n, int threads, void (*run)(void *ctx, size_t i), void *ctx,
                   void (*progress)(void *ctx, double share), void *progress_ctx)
{
    pool p = {.n = n, .run = run, .ctx = ctx};
    pthread_t id[THREADS_MAX];
    int made = 0, wanted = threads_wanted(n, threads);
    atomic_init(&p.next, 0);
    while (made < wanted - 1 && pthread_create(&id[made], NULL, work, &p) == 0)
        made++;
    size_t i;
    while ((i = atomic_fetch_add(&p.next, 1)) < n) {
        run(ctx, i);
        if (progress != NULL)
            progress(progress_ctx, (double)(i + 1) / (double)n);
    }
    for (int k = 0; k < made; k++)
        (void)pthread_join(id[k], NULL);
}
