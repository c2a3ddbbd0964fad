#include "core/base/utf8.h"

#include <stdint.h>

size_t plm_utf8_char(const char *text, size_t n)
{
    static const uint32_t least[4] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    if (n == 0 || s[0] == 0 || (s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4)
        return 0;
    unsigned more = s[0] < 0x80 ? 0 : s[0] < 0xe0 ? 1 : s[0] < 0xf0 ? 2 : 3;
    if (more >= n)
        return 0;
    uint32_t v = more == 0 ? s[0] : s[0] & (0x3fu >> more);
    for (unsigned k = 1; k <= more; k++) {
        if ((s[k] & 0xc0) != 0x80)
            return 0;
        v = v << 6 | (s[k] & 0x3fu);
    }
    return v < least[more] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff) ? 0 : more + 1u;
}

bool plm_is_utf8(const char *text, size_t n)
{
    for (size_t i = 0, k; i < n; i += k) {
        k = plm_utf8_char(text + i, n - i);
        if (k == 0)
            return false;
    }
    return true;
}
