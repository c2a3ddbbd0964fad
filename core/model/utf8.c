#include "core/model/utf8.h"

#include <stdint.h>

bool plm_is_utf8(const char *text, size_t n)
{
    static const uint32_t least[4] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    for (size_t i = 0; i < n;) {
        unsigned b = s[i++], more = b < 0x80 ? 0 : b < 0xe0 ? 1 : b < 0xf0 ? 2 : 3;
        if (b == 0 || (b >= 0x80 && b < 0xc2) || b > 0xf4 || more > n - i)
            return false;
        uint32_t v = more == 0 ? b : b & (0x3fu >> more);
        for (unsigned k = 0; k < more; k++, i++) {
            if ((s[i] & 0xc0) != 0x80)
                return false;
            v = v << 6 | (s[i] & 0x3fu);
        }
        if (v < least[more] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
            return false;
    }
    return true;
}
