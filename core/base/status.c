#include "core/base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"

/* Keeps the text one line of UTF-8 that a terminal and a JSON string can take: control characters
** (C0, DEL, C1) and bytes of no character become '?', a character cut at the end of the buffer is
** dropped. */
static void clean_line(char *text, size_t room)
{
    size_t n = strlen(text), out = 0;
    for (size_t i = 0, k; i < n; i += k) {
        const unsigned char *c = (const unsigned char *)text + i;
        k = plm_utf8_char(text + i, n - i);
        if (k == 0 && n + 1 == room && n - i < 4 && *c >= 0xc0)
            break;
        bool control = c[0] < 0x20 || c[0] == 0x7f || (k == 2 && c[0] == 0xc2 && c[1] < 0xa0);
        if (k == 0 || control) {
            k = k == 0 ? 1 : k;
            text[out++] = '?';
        } else {
            memmove(text + out, c, k);
            out += k;
        }
    }
    text[out] = '\0';
}

plm_status plm_fail_text(plm_error *err, plm_status code, const char *fmt, ...)
{
    if (err == NULL)
        return code;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    clean_line(err->text, sizeof err->text);
    err->code = code;
    return code;
}

plm_status plm_fail_in(plm_error *err, plm_status code, const char *prefix)
{
    if (err == NULL)
        return code;
    char old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    int head = snprintf(err->text, sizeof err->text, "%s: ", prefix);
    if (head > 0 && (size_t)head < sizeof err->text - 1) {
        size_t room = sizeof err->text - (size_t)head - 1, n = strlen(old);
        n = n < room ? n : room;
        memcpy(err->text + head, old, n);
        err->text[(size_t)head + n] = '\0';
    }
    clean_line(err->text, sizeof err->text);
    return err->code;
}

const char *plm_status_name(plm_status code)
{
    switch (code) {
#define PLM_STATUS_NAME(c, number, exit_status, name)                                              \
    case PLM_##c:                                                                                  \
        return name;
        PLM_STATUS_MAP(PLM_STATUS_NAME)
#undef PLM_STATUS_NAME
    }
    return "unknown status";
}

int plm_status_exit(plm_status code)
{
    switch (code) {
#define PLM_STATUS_EXIT(c, number, exit_status, name)                                              \
    case PLM_##c:                                                                                  \
        return exit_status;
        PLM_STATUS_MAP(PLM_STATUS_EXIT)
#undef PLM_STATUS_EXIT
    }
    return 3;
}
