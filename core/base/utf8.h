/* utf8.h - is a run of bytes UTF-8? */
#ifndef PLM_BASE_UTF8_H
#define PLM_BASE_UTF8_H
#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character that text, of n bytes, begins with; 0 if it begins with none: Unicode scalar
** values in their shortest form, without NUL. */
size_t plm_utf8_char(const char *text, size_t n);
/* All of the text is such characters. */
bool plm_is_utf8(const char *text, size_t n);

#endif
