/* sample.c - greedy, temperature, top-k, top-p. */
#include "core/host/sample.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"

plm_status plm_sampler_init(plm_sampler *s, const plm_sampling *how, plm_error *err)
{
    *s = (plm_sampler){.how = *how, .state = how->seed};
    if (!(how->temperature >= 0 && how->temperature <= 1e6))
        return plm_fail(err, PLM_E_INVALID, "out of range, --temp: %g; give 0 (greedy) or more",
                        how->temperature);
    if (!(how->top_p >= 0 && how->top_p <= 1) || how->top_k < 0)
        return plm_fail(err, PLM_E_INVALID, "out of range, --top-p %g or --top-k %lld: a share and a number "
                        "of tokens; give 0 to 1, and 0 or more", how->top_p, (long long)how->top_k);
    return PLM_OK;
}

void plm_sampler_fini(plm_sampler *s)
{
    plm_free(s->order);
    plm_free(s->weight);
    *s = (plm_sampler){0};
}

/* Uniform in [0, 1): splitmix64 (Steele, Lea and Flood, 2014), its 53 high bits. */
static double uniform(plm_sampler *s)
{
    uint64_t z = (s->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static int64_t greatest(const float *x, int64_t n)
{
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(x[i]) && (best < 0 || x[i] > x[best]))
            best = i;
    return best;
}

static plm_status make_room(plm_sampler *s, int64_t n, plm_error *err)
{
    if (n <= s->room)
        return PLM_OK;
    plm_free(s->order);
    plm_free(s->weight);
    s->order = plm_calloc((size_t)n, sizeof *s->order);
    s->weight = plm_calloc((size_t)n, sizeof *s->weight);
    s->room = s->order != NULL && s->weight != NULL ? n : 0;
    return s->room > 0 ? PLM_OK : plm_fail_memory(err, "sampling");
}

/* a before b: greater logit, lower id of equals. */
static bool before(const float *x, int32_t a, int32_t b)
{
    return x[a] > x[b] || (x[a] == x[b] && a < b);
}

static void sift(const float *x, int32_t *heap, int64_t i, int64_t n)
{
    for (;;) {
        int64_t c = 2 * i + 1;
        if (c >= n)
            return;
        if (c + 1 < n && before(x, heap[c + 1], heap[c]))
            c++;
        if (!before(x, heap[c], heap[i]))
            return;
        int32_t t = heap[i];
        heap[i] = heap[c];
        heap[c] = t;
        i = c;
    }
}

plm_status plm_sampler_pick(plm_sampler *s, const float *logits, int64_t n, int32_t *token,
                            plm_error *err)
{
    int64_t best = greatest(logits, n);
    if (best < 0 || !isfinite(logits[best]))
        return plm_fail(err, PLM_E_INVALID, "sampling: the greatest logit is no finite number; the "
                                            "weights or a kernel are wrong");
    *token = (int32_t)best;
    if (s->how.temperature <= 0)
        return PLM_OK;
    PLM_TRY(make_room(s, n, err));
    int64_t count = 0, keep;
    double total = 0, upto = 0;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(logits[i]))
            s->order[count++] = (int32_t)i;
    keep = s->how.top_k > 0 ? plm_min_i64(s->how.top_k, count) : count;
    for (int64_t i = count / 2; i-- > 0;)
        sift(logits, s->order, i, count);
    /* Taken off the heap, the greatest gather at its end in rising order: weight[j] is that of rank j. */
    for (int64_t j = 0, left = count; j < keep; j++, left--) {
        int32_t t = s->order[0];
        s->order[0] = s->order[left - 1];
        s->order[left - 1] = t;
        sift(logits, s->order, 0, left - 1);
        s->weight[j] = exp(((double)logits[t] - (double)logits[best]) / s->how.temperature);
        total += s->weight[j];
    }
    if (s->how.top_p > 0 && s->how.top_p < 1) {
        double enough = s->how.top_p * total, sum = 0;
        int64_t j = 0;
        while (j < keep && sum < enough)
            sum += s->weight[j++];
        keep = j;
        total = sum;
    }
    double u = uniform(s) * total;
    int64_t j = 0;
    for (; j + 1 < keep; j++) {
        upto += s->weight[j];
        if (u < upto)
            break;
    }
    *token = s->order[count - 1 - j];
    return PLM_OK;
}
