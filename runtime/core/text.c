#include "core/text.h"
#include <stdint.h>
#include <string.h>

/* The bytes of the UTF-8 character that begins here, and the character; 0 where none does. */
static size_t character_at(const unsigned char *text, size_t left, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = text[0];
    size_t bytes = first < 0x80             ? 1
                   : (first & 0xe0) == 0xc0 ? 2
                   : (first & 0xf0) == 0xe0 ? 3
                   : (first & 0xf8) == 0xf0 ? 4
                                            : 0;
    if (bytes == 0 || bytes > left)
        return 0;
    *code = bytes == 1 ? first : first & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (text[i] & 0x3fu);
    }
    bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return *code < least[bytes] || *code > 0x10ffff || surrogate ? 0 : bytes;
}

static bool obeyed(uint32_t code, bool lines)
{
    if (lines && (code == '\n' || code == '\t'))
        return false;
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || /* C0, DEL, C1 */
           code == 0x200e || code == 0x200f ||             /* marks of direction */
           (code >= 0x2028 && code <= 0x202e) ||           /* line ends, direction */
           (code >= 0x2066 && code <= 0x2069);             /* direction, isolated */
}

static size_t spell(unsigned char byte, char *out)
{
    static const char names[] = {'\n', 'n', '\r', 'r', '\t', 't'};
    for (size_t i = 0; i < sizeof names; i += 2)
        if (byte == (unsigned char)names[i]) {
            out[0] = '\\';
            out[1] = names[i + 1];
            return 2;
        }
    static const char digits[] = "0123456789abcdef";
    out[0] = '\\';
    out[1] = 'x';
    out[2] = digits[byte >> 4];
    out[3] = digits[byte & 15];
    return 4;
}

size_t mb_text_printable(const char *text, size_t length, bool lines, char *out)
{
    const unsigned char *from = (const unsigned char *)text;
    size_t written = 0;
    for (size_t at = 0; at < length;) {
        uint32_t code = 0;
        size_t bytes = character_at(from + at, length - at, &code);
        if (bytes > 0 && !obeyed(code, lines)) {
            memcpy(out + written, from + at, bytes);
            written += bytes;
            at += bytes;
            continue;
        }
        for (size_t i = 0; i < (bytes > 0 ? bytes : 1); i++)
            written += spell(from[at + i], out + written);
        at += bytes > 0 ? bytes : 1;
    }
    return written;
}
