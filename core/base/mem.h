/* mem.h - allocation, one door for the whole program, and arithmetic on sizes that come from
** outside.
**
** Everything (jansson too, after plm_mem_init) allocates here, so that a test can make the n-th
** allocation fail (torture, see tests/test_torture.c). Thread-safe.
*/
#ifndef PLM_BASE_MEM_H
#define PLM_BASE_MEM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As malloc/realloc/free; bytes == 0 gives a unique pointer. NULL when memory is short. */
void *plm_malloc(size_t bytes);
void *plm_realloc(void *old, size_t bytes);
void plm_free(void *ptr);
/* count * each bytes, zeroed; NULL also when the product does not fit. */
void *plm_calloc(size_t count, size_t each);
/* Copy of a string on the heap, NULL when memory is short. */
char *plm_strdup(const char *text);

/* Points jansson at this allocator. Call once before any JSON work; idempotent. */
void plm_mem_init(void);

/* Torture: the n-th allocation from now fails (0 = never), and, if `all_after`, every later one.
** plm_mem_count returns the number of allocations asked for since the last call of plm_mem_fail_at;
** plm_mem_live the number of blocks now held. Not for use while other threads allocate. */
void plm_mem_fail_at(uint64_t n, bool all_after);
uint64_t plm_mem_count(void);
int64_t plm_mem_live(void);
/* Sum of the bytes asked for since the last call of plm_mem_fail_at (no peak exceeds it), and the
** number of allocations that were refused since the start of the process. */
uint64_t plm_mem_asked_bytes(void);
uint64_t plm_mem_refused(void);

/* *out = a op b; false (and *out unspecified) when the result does not fit. */
static inline bool plm_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool plm_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool plm_add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool plm_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
/* ceil(a / b), b > 0, a >= 0, without overflow. */
static inline int64_t plm_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}
static inline int64_t plm_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t plm_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
