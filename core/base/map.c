#include "core/base/map.h"

#include <string.h>

#include "core/base/mem.h"

void plm_map_init(plm_map *m, size_t max_count)
{
    memset(m, 0, sizeof *m);
    m->max_count = max_count;
}

void plm_map_fini(plm_map *m)
{
    plm_free(m->slots);
    memset(m, 0, sizeof *m);
}

uint64_t plm_hash(const void *data, size_t n, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = seed ? seed : UINT64_C(14695981039346656037);
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(1099511628211);
    return h;
}

/* Slot that holds the key, or the free slot where it belongs. room is a power of two > count. */
static plm_map_slot *find(const plm_map *m, const char *key, size_t key_bytes, uint64_t hash)
{
    size_t mask = m->room - 1;
    for (size_t i = (size_t)(hash ^ hash >> 32) & mask;; i = (i + 1) & mask) {
        plm_map_slot *s = &m->slots[i];
        if (s->key == NULL || (s->hash == hash && s->key_bytes == key_bytes &&
                               memcmp(s->key, key, key_bytes) == 0))
            return s;
    }
}

static bool grow(plm_map *m)
{
    plm_map bigger = *m;
    bigger.room = m->room ? m->room * 2 : 16;
    bigger.slots = plm_calloc(bigger.room, sizeof *bigger.slots);
    if (bigger.slots == NULL)
        return false;
    for (size_t i = 0; i < m->room; i++) {
        const plm_map_slot *s = &m->slots[i];
        if (s->key != NULL)
            *find(&bigger, s->key, s->key_bytes, s->hash) = *s;
    }
    plm_free(m->slots);
    *m = bigger;
    return true;
}

plm_map_put plm_map_add(plm_map *m, const char *key, size_t key_bytes, uint32_t *value)
{
    uint64_t hash = plm_hash(key, key_bytes, 0);
    if (m->room > 0) {
        plm_map_slot *s = find(m, key, key_bytes, hash);
        if (s->key != NULL) {
            *value = s->value;
            return PLM_PUT_OLD;
        }
    }
    if (m->count >= m->max_count)
        return PLM_PUT_FULL;
    if (m->count * 4 >= m->room * 3 && !grow(m))
        return PLM_PUT_FULL;
    plm_map_slot *s = find(m, key, key_bytes, hash);
    s->key = key;
    s->key_bytes = key_bytes;
    s->hash = hash;
    s->value = *value;
    m->count++;
    return PLM_PUT_NEW;
}

bool plm_map_get(const plm_map *m, const char *key, size_t key_bytes, uint32_t *value)
{
    if (m->room == 0)
        return false;
    const plm_map_slot *s = find(m, key, key_bytes, plm_hash(key, key_bytes, 0));
    if (s->key == NULL)
        return false;
    *value = s->value;
    return true;
}
