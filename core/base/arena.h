/* arena.h - bump allocation with one release; every arena has a maximum. */
#ifndef PLM_BASE_ARENA_H
#define PLM_BASE_ARENA_H
#include <stddef.h>

typedef struct plm_arena_chunk plm_arena_chunk;
typedef struct plm_arena {
    plm_arena_chunk *head; /* newest chunk */
    size_t used_bytes;     /* over all chunks */
    size_t max_bytes;
} plm_arena;

/* An empty arena that will never hold more than max_bytes. Allocates nothing yet. */
void plm_arena_init(plm_arena *a, size_t max_bytes);
/* Releases every block; the arena may be used again. */
void plm_arena_fini(plm_arena *a);
/* Zeroed block aligned for any type; NULL when memory is short or max_bytes would be passed. */
void *plm_arena_alloc(plm_arena *a, size_t bytes);
/* count * each, checked. */
void *plm_arena_array(plm_arena *a, size_t count, size_t each);
/* Copy of n bytes of text, NUL added. */
char *plm_arena_text(plm_arena *a, const char *text, size_t n);

#endif
