/* Lengths of UTF-8 characters in bytes, and widths of texts on a terminal in columns. */
#include "base.h"

#include "width_table.h"

#include <string.h>

int utf8_bytes(const unsigned char *c)
{
    if (c[0] < 0x80) return 1;
    int bytes = c[0] >= 0xf5 ? 0 : c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : c[0] >= 0xc2 ? 2 : 0;
    /* excludes overlong forms, surrogates, and characters above U+10FFFF */
    unsigned low = c[0] == 0xe0 ? 0xa0 : c[0] == 0xf0 ? 0x90 : 0x80;
    unsigned high = c[0] == 0xed ? 0x9f : c[0] == 0xf4 ? 0x8f : 0xbf;
    if (bytes && (c[1] < low || c[1] > high)) return 0;
    for (int i = 2; i < bytes; ++i)
        if ((c[i] & 0xc0) != 0x80) return 0;
    return bytes;
}

/* Returns the number of columns of a character. */
static int columns_of(uint32_t c)
{
    int low = 0, high = (int)(sizeof width_ranges / sizeof *width_ranges) - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        if (c < width_ranges[middle].first)
            high = middle - 1;
        else if (c > width_ranges[middle].last)
            low = middle + 1;
        else
            return width_ranges[middle].columns;
    }
    return 1;
}

/* Returns the number of bytes of the next character. *columns: its number of columns. *shown: false
 * for a control character and for a byte that is not UTF-8, which take one column. */
static int next_of(const unsigned char *text, int *columns, bool *shown)
{
    static const uint32_t lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    int bytes = utf8_bytes(text);
    *columns = 1;
    *shown = bytes > 0;
    if (bytes == 0) return 1;
    uint32_t c = text[0] & lead[bytes];
    for (int i = 1; i < bytes; ++i) c = c << 6 | (text[i] & 0x3f);
    *shown = c >= ' ' && c != 0x7f && !(c >= 0x80 && c < 0xa0);
    if (*shown) *columns = columns_of(c);
    return bytes;
}

int utf8_columns(const char *text)
{
    int all = 0, columns;
    bool shown;
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        at += next_of(at, &columns, &shown);
        all += columns;
    }
    return all;
}

char *utf8_fit(const char *text, int columns, char *out)
{
    char *to = out;
    int used = 0, more;
    bool shown;
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int bytes = next_of(at, &more, &shown);
        if (used + more > columns) break;
        used += more;
        if (shown)
            memcpy(to, at, (size_t)bytes);
        else
            *to = '?';
        to += shown ? bytes : 1;
        at += bytes;
    }
    for (; used < columns; ++used) *to++ = ' ';
    *to = 0;
    return out;
}
