/* vec.h - growable arrays of one type, each with a maximum.
**
**   typedef PLM_VEC(int64_t) int_vec;
**   int_vec v = {0};
**   if (!plm_vec_push(&v, 42, 1000)) ...out of memory, or 1000 reached...
**   for (size_t i = 0; i < v.count; i++) use(v.items[i]);
**   plm_vec_fini(&v);
*/
#ifndef PLM_BASE_VEC_H
#define PLM_BASE_VEC_H
#include <stdbool.h>
#include <stddef.h>

#define PLM_VEC(type)                                                                              \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count, room;                                                                        \
    }

/* Makes room for one more of `each` bytes; false when memory is short or count == max. */
bool plm_vec_grow(void **items, size_t *room, size_t count, size_t each, size_t max);
void plm_vec_release(void **items, size_t *count, size_t *room);

#define plm_vec_push(v, value, max)                                                                \
    (plm_vec_grow((void **)&(v)->items, &(v)->room, (v)->count, sizeof *(v)->items, (max))         \
         ? ((v)->items[(v)->count++] = (value), true)                                              \
         : false)
#define plm_vec_fini(v) plm_vec_release((void **)&(v)->items, &(v)->count, &(v)->room)

#endif
