/* pareto.c - exact Pareto fronts. */
#include <assert.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "sim/plan/plan.h"

/* a is at least as good in all objectives and better in one. */
static bool dominates(const double *a, const double *b, size_t objectives)
{
    bool better = false;
    for (size_t i = 0; i < objectives; i++) {
        if (!(a[i] >= b[i]))
            return false;
        better = better || a[i] > b[i];
    }
    return better;
}

/* Without memory of its own: each point against all others, O(n^2). */
static void mark_by_pairs(const double *points, size_t n, size_t objectives, bool *front)
{
    for (size_t i = 0; i < n; i++) {
        front[i] = true;
        for (size_t j = 0; j < n && front[i]; j++)
            front[i] = !dominates(&points[j * objectives], &points[i * objectives], objectives);
    }
}

typedef struct ranked {
    const double *point;
    size_t index, objectives;
} ranked;

/* Best first: greater in the first objective, then in the second, and so on; then by index. */
static int by_objectives(const void *pa, const void *pb)
{
    const ranked *a = pa, *b = pb;
    for (size_t i = 0; i < a->objectives; i++)
        if (a->point[i] != b->point[i])
            return a->point[i] > b->point[i] ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Two objectives: in order of the first, a point is on the front when its second is above that of
** every point of a greater first, or equal to the point that set the mark. O(n log n). */
static void mark_sorted_two(const ranked *r, size_t n, bool *front)
{
    const double *mark = NULL;
    for (size_t i = 0; i < n; i++) {
        const double *p = r[i].point;
        bool on = mark == NULL || p[1] > mark[1] || (p[0] == mark[0] && p[1] == mark[1]);
        front[r[i].index] = on;
        if (on && (mark == NULL || p[1] > mark[1]))
            mark = p;
    }
}

/* In lexicographic order no point is dominated by a later one, and domination is transitive, so it
** is enough to compare with the front found so far. r is reused to hold that front. */
static void mark_sorted(ranked *r, size_t n, size_t objectives, bool *front)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        ranked p = r[i];
        bool on = true;
        for (size_t j = 0; j < kept && on; j++)
            on = !dominates(r[j].point, p.point, objectives);
        front[p.index] = on;
        if (on)
            r[kept++] = p;
    }
}

void plm_pareto(const double *points, size_t n, size_t objectives, bool *front)
{
    assert(objectives > 0);
    if (n == 0)
        return;
    ranked *r = plm_calloc(n, sizeof *r);
    if (r == NULL) { /* slower, but needs nothing */
        mark_by_pairs(points, n, objectives, front);
        return;
    }
    for (size_t i = 0; i < n; i++)
        r[i] = (ranked){&points[i * objectives], i, objectives};
    qsort(r, n, sizeof *r, by_objectives);
    if (objectives == 2)
        mark_sorted_two(r, n, front);
    else
        mark_sorted(r, n, objectives, front);
    plm_free(r);
}
