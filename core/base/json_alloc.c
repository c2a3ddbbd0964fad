#include "core/base/json_alloc.h"

#include <stdint.h>

#include "core/base/mem.h"

/* The buffer holds one token and doubles: growths sum to less than 4 bytes a byte of the text, and
** the few blocks that jansson asks for before it stops fit in 1 KiB. */
#define SMALL_TEXT ((size_t)16 << 10)
#define EXTRA 1024
#define MIN_GROWTH 32 /* the buffer starts with 16 bytes */

static _Thread_local _Alignas(16) char small[4 * SMALL_TEXT + EXTRA];
static _Thread_local struct {
    char *begin, *at, *end; /* begin NULL = none set */
    bool failed;
} reserve;

bool plm_json_reserve(size_t n)
{
    uint64_t bytes;
    reserve.failed = false;
    if (n <= SMALL_TEXT) {
        reserve.begin = small;
        reserve.end = small + sizeof small;
    } else {
        reserve.begin = plm_mul_u64(n, 4, &bytes) && plm_add_u64(bytes, EXTRA, &bytes)
                            ? plm_malloc((size_t)bytes)
                            : NULL;
        reserve.end = reserve.begin != NULL ? reserve.begin + bytes : NULL;
    }
    reserve.at = reserve.begin;
    return reserve.begin != NULL;
}

bool plm_json_reserve_failed(void)
{
    return reserve.failed;
}

void plm_json_reserve_drop(void)
{
    if (reserve.begin != small)
        plm_free(reserve.begin);
    reserve.begin = reserve.at = reserve.end = NULL;
}

void *plm_json_alloc(size_t bytes)
{
    void *p = plm_malloc(bytes);
    if (p != NULL || reserve.begin == NULL)
        return p;
    reserve.failed = true;
    bool growth = bytes >= MIN_GROWTH && (bytes & (bytes - 1)) == 0;
    if (!growth || bytes > (size_t)(reserve.end - reserve.at))
        return NULL;
    p = reserve.at;
    reserve.at += bytes;
    return p;
}

void plm_json_free(void *ptr)
{
    uintptr_t p = (uintptr_t)ptr;
    if (reserve.begin == NULL || p < (uintptr_t)reserve.begin || p >= (uintptr_t)reserve.end)
        plm_free(ptr);
}
