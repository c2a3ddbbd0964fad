/* map.h - string -> uint32_t, open addressing, with a maximum. Keys are borrowed, not copied. */
#ifndef PLM_BASE_MAP_H
#define PLM_BASE_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct plm_map_slot {
    const char *key; /* NULL = free */
    size_t key_bytes;
    uint64_t hash;
    uint32_t value;
} plm_map_slot;
typedef struct plm_map {
    plm_map_slot *slots;
    size_t count, room, max_count;
} plm_map;

void plm_map_init(plm_map *m, size_t max_count);
void plm_map_fini(plm_map *m);
/* 64-bit FNV-1a of n bytes, started from seed (0 for the standard offset basis). */
uint64_t plm_hash(const void *data, size_t n, uint64_t seed);
/* PUT_NEW: added. PUT_OLD: the key was there, its value is left alone and stored in *value.
** PUT_FULL: memory is short or max_count reached. key must outlive the map. */
typedef enum plm_map_put { PLM_PUT_NEW, PLM_PUT_OLD, PLM_PUT_FULL } plm_map_put;
plm_map_put plm_map_add(plm_map *m, const char *key, size_t key_bytes, uint32_t *value);
bool plm_map_get(const plm_map *m, const char *key, size_t key_bytes, uint32_t *value);

#endif
