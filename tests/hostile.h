/* hostile.h - the type of tests/data/hostile.h's rows and their decoder. */
#ifndef PLM_TESTS_HOSTILE_H
#define PLM_TESTS_HOSTILE_H
#include <stdlib.h>

#include "tests/support.h"

typedef struct hostile_file {
    const char *name;
    size_t bytes;
    const char *hex, *reason;
} hostile_file;

static inline unsigned hex_digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* The bytes of a row, in a heap block of exactly that size so that a reader past the end is seen.
 */
static inline unsigned char *hostile_decode(const hostile_file *f)
{
    unsigned char *out = malloc(f->bytes ? f->bytes : 1);
    assert_non_null(out);
    size_t n = 0;
    for (const char *p = f->hex; *p != '\0';) {
        unsigned char b = (unsigned char)(hex_digit(p[0]) << 4 | hex_digit(p[1]));
        unsigned long count = 1;
        p += 2;
        if (*p == '(') {
            char *end;
            count = strtoul(p + 1, &end, 10);
            p = end + 1;
        }
        for (; count > 0; count--) {
            assert_true(n < f->bytes);
            out[n++] = b;
        }
    }
    assert_int_equal(n, f->bytes);
    return out;
}

#endif
