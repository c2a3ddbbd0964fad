#include "core/base/arena.h"

#include <stdint.h>
#include <string.h>

#include "core/base/mem.h"

#define ARENA_ALIGN 16u
#define CHUNK_MIN 4096u

struct plm_arena_chunk {
    plm_arena_chunk *next;
    size_t used, size;
    _Alignas(16) unsigned char data[];
};

void plm_arena_init(plm_arena *a, size_t max_bytes)
{
    a->head = NULL;
    a->used_bytes = 0;
    a->max_bytes = max_bytes;
}

void plm_arena_fini(plm_arena *a)
{
    plm_arena_chunk *c = a->head;
    while (c != NULL) {
        plm_arena_chunk *next = c->next;
        plm_free(c);
        c = next;
    }
    a->head = NULL;
    a->used_bytes = 0;
}

void *plm_arena_alloc(plm_arena *a, size_t bytes)
{
    if (bytes > a->max_bytes)
        return NULL;
    size_t need = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    need = need ? need : ARENA_ALIGN;
    if (need > a->max_bytes - a->used_bytes)
        return NULL;
    plm_arena_chunk *c = a->head;
    if (c == NULL || c->size - c->used < need) {
        /* Doubling keeps the number of chunks logarithmic. */
        size_t size = c == NULL ? CHUNK_MIN : c->size < (1u << 20) ? c->size * 2 : c->size;
        size = size < need ? need : size;
        plm_arena_chunk *fresh = plm_malloc(sizeof *fresh + size);
        if (fresh == NULL)
            return NULL;
        fresh->next = c;
        fresh->used = 0;
        fresh->size = size;
        a->head = c = fresh;
    }
    void *p = c->data + c->used;
    c->used += need;
    a->used_bytes += need;
    memset(p, 0, need);
    return p;
}

void *plm_arena_array(plm_arena *a, size_t count, size_t each)
{
    uint64_t bytes;
    if (!plm_mul_u64(count, each, &bytes))
        return NULL;
    return plm_arena_alloc(a, (size_t)bytes);
}

char *plm_arena_text(plm_arena *a, const char *text, size_t n)
{
    if (n == SIZE_MAX)
        return NULL;
    char *p = plm_arena_alloc(a, n + 1);
    if (p != NULL && n > 0)
        memcpy(p, text, n);
    return p;
}
