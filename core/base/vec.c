#include "core/base/vec.h"

#include <stdint.h>

#include "core/base/mem.h"

bool plm_vec_grow(void **items, size_t *room, size_t count, size_t each, size_t max)
{
    if (count >= max)
        return false;
    if (count < *room)
        return true;
    size_t want = *room < 8 ? 8 : *room * 2;
    want = want > max ? max : want;
    uint64_t bytes;
    if (!plm_mul_u64(want, each, &bytes))
        return false;
    void *p = plm_realloc(*items, (size_t)bytes);
    if (p == NULL)
        return false;
    *items = p;
    *room = want;
    return true;
}

void plm_vec_release(void **items, size_t *count, size_t *room)
{
    plm_free(*items);
    *items = NULL;
    *count = *room = 0;
}
