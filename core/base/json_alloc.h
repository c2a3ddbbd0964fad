/* json_alloc.h - jansson's allocator. While a text is parsed a reserve stands behind it: the lexer of
** jansson (2.14, strbuffer_append_bytes) does not look whether its text buffer could grow, loses a
** character, and may then read past the end of the text. So a growth that fails is served from the
** reserve, any other failure is passed on, which ends the parse; and the caller drops the result. */
#ifndef PLM_BASE_JSON_ALLOC_H
#define PLM_BASE_JSON_ALLOC_H
#include <stdbool.h>
#include <stddef.h>

void *plm_json_alloc(size_t bytes);
void plm_json_free(void *ptr);
/* Sets the reserve of this thread for a text of n bytes; false when memory is short. */
bool plm_json_reserve(size_t n);
/* True when an allocation failed since plm_json_reserve. */
bool plm_json_reserve_failed(void);
/* Only after everything made since plm_json_reserve is freed, or when none failed. */
void plm_json_reserve_drop(void);

#endif
