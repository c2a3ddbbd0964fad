/* utf8.h - is a run of bytes UTF-8? */
#ifndef PLM_MODEL_UTF8_H
#define PLM_MODEL_UTF8_H
#include <stdbool.h>
#include <stddef.h>

/* UTF-8 of Unicode scalar values, shortest forms only, without NUL. */
bool plm_is_utf8(const char *text, size_t n);

#endif
