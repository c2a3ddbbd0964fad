#include "core/base/mem.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json_alloc.h"

static atomic_uint_fast64_t asked;
static atomic_uint_fast64_t fail_at;
static atomic_bool fail_after;
static atomic_int_fast64_t live;
static atomic_uint_fast64_t asked_bytes;
static atomic_uint_fast64_t refused;

static bool refuse(size_t bytes)
{
    atomic_fetch_add_explicit(&asked_bytes, bytes, memory_order_relaxed);
    uint64_t n = atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed) + 1;
    uint64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    if (at == 0)
        return false;
    return n == at || (n > at && atomic_load_explicit(&fail_after, memory_order_relaxed));
}

static void *refusal(void)
{
    atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
    return NULL;
}

void *plm_malloc(size_t bytes)
{
    void *p = refuse(bytes) ? NULL : malloc(bytes ? bytes : 1);
    if (p == NULL)
        return refusal();
    atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return p;
}

void *plm_realloc(void *old, size_t bytes)
{
    if (old == NULL)
        return plm_malloc(bytes);
    void *p = refuse(bytes) ? NULL : realloc(old, bytes ? bytes : 1);
    return p != NULL ? p : refusal();
}

void plm_free(void *ptr)
{
    if (ptr == NULL)
        return;
    atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    free(ptr);
}

void *plm_calloc(size_t count, size_t each)
{
    uint64_t bytes;
    if (!plm_mul_u64(count, each, &bytes))
        return NULL;
    void *p = plm_malloc((size_t)bytes);
    if (p != NULL)
        memset(p, 0, bytes ? (size_t)bytes : 1);
    return p;
}

char *plm_strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = plm_malloc(n);
    if (copy != NULL)
        memcpy(copy, text, n);
    return copy;
}

void plm_mem_init(void)
{
    json_set_alloc_funcs(plm_json_alloc, plm_json_free);
}

void plm_mem_fail_at(uint64_t n, bool all_after)
{
    atomic_store(&asked, 0);
    atomic_store(&asked_bytes, 0);
    atomic_store(&fail_after, all_after);
    atomic_store(&fail_at, n);
}

uint64_t plm_mem_count(void)
{
    return atomic_load(&asked);
}

uint64_t plm_mem_asked_bytes(void)
{
    return atomic_load(&asked_bytes);
}

uint64_t plm_mem_refused(void)
{
    return atomic_load(&refused);
}

int64_t plm_mem_live(void)
{
    return atomic_load(&live);
}
