#include "core/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Keeps the text one printable line: control characters become '?', a UTF-8 sequence cut at the
** end of the buffer is dropped. Bytes >= 0x80 pass: names in files are UTF-8. */
static void clean_line(char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            text[i] = '?';
    size_t tail = 0;
    while (tail < n && tail < 3 && ((unsigned char)text[n - 1 - tail] & 0xc0) == 0x80)
        tail++;
    if (n > tail && (unsigned char)text[n - 1 - tail] >= 0xc0) {
        unsigned char lead = (unsigned char)text[n - 1 - tail];
        size_t need = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
        if (tail < need)
            text[n - 1 - tail] = '\0';
    }
}

plm_status plm_fail_text(plm_error *err, plm_status code, const char *fmt, ...)
{
    if (err == NULL)
        return code;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    clean_line(err->text);
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
    clean_line(err->text);
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
