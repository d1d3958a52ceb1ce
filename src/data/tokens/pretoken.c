/* Finds the end of a word by GPT-2's pattern (pretoken.h) without a regular expression: decodes
 * UTF-8 and looks up the kind of each character in a table of ranges (unicode_table.h). Bytes that
 * are not UTF-8 count as characters of kind CHAR_OTHER. */
#include "pretoken.h"

#include <stdint.h>
#include <string.h>

/* Kinds of characters. CHAR_CUT: the character continues after the bytes that are available. */
typedef enum CharKind { CHAR_OTHER, CHAR_SPACE, CHAR_LETTER, CHAR_NUMBER, CHAR_CUT } CharKind;
#include "unicode_table.h"

/* Returns the kind of the character with code point c, which is above ASCII. */
static CharKind kind_of(uint32_t c)
{
    size_t low = 0, high = sizeof unicode_ranges / sizeof *unicode_ranges;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c > unicode_ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    bool found =
        low < sizeof unicode_ranges / sizeof *unicode_ranges && c >= unicode_ranges[low].first;
    return found ? unicode_ranges[low].kind : CHAR_OTHER;
}

/* Returns the kind of the first character of n bytes of UTF-8 (RFC 3629), and sets *bytes to its
 * length. An invalid byte is a character by itself. final: true if the text ends after these bytes;
 * the first byte of a character that is cut off there is then a character by itself, too. */
static CharKind first_char(const unsigned char *p, size_t n, bool final, size_t *bytes)
{
    const unsigned char c = p[0];
    *bytes = 1;
    if (c < 0x80) {
        unsigned char lower = c | 0x20;
        if (lower >= 'a' && lower <= 'z') return CHAR_LETTER;
        if (c >= '0' && c <= '9') return CHAR_NUMBER;
        return c == ' ' || (c >= 9 && c <= 13) ? CHAR_SPACE : CHAR_OTHER;
    }
    const size_t length = c >= 0xf5 ? 0 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;
    /* range of the second byte; it excludes overlong forms and surrogates */
    const unsigned char min = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    const unsigned char max = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    uint32_t value = length ? c & (0xffu >> (length + 1)) : 0;
    for (size_t i = 1; i < length; ++i) {
        if (i == n) return final ? CHAR_OTHER : CHAR_CUT;
        if (p[i] < (i == 1 ? min : 0x80) || p[i] > (i == 1 ? max : 0xbf)) return CHAR_OTHER;
        value = value << 6 | (p[i] & 0x3f);
    }
    if (length == 0) return CHAR_OTHER;
    *bytes = length;
    return kind_of(value);
}

/* Returns the offset after the consecutive characters of this kind that begin at byte `at`; 0: more
 * text is needed. *last: offset of the last of them; unchanged if there are none. */
static size_t run_end(const unsigned char *p, size_t n, bool final, CharKind kind, size_t at,
                      size_t *last)
{
    while (at < n) {
        size_t bytes;
        CharKind next = first_char(p + at, n - at, final, &bytes);
        if (next == CHAR_CUT) return 0;
        if (next != kind) return at;
        *last = at;
        at += bytes;
    }
    return final ? at : 0;
}

/* Returns the length of a contraction such as 's, with the apostrophe, at the beginning of the
 * text; 0: there is none. */
static size_t contraction_length(const unsigned char *p, size_t n)
{
    if (n > 1 && p[1] && strchr("stmd", p[1])) return 2;
    bool two = n > 2 && ((p[1] == 'r' && p[2] == 'e') || (p[1] == 'v' && p[2] == 'e') ||
                         (p[1] == 'l' && p[2] == 'l'));
    return two ? 3 : 0;
}

size_t first_word_bytes(const unsigned char *p, size_t n, bool final)
{
    size_t bytes, last = 0, begin = 0;
    if (p[0] == '\'') {
        size_t length = contraction_length(p, n);
        if (length) return length;
        if (!final && n < 3) return 0;
    }
    CharKind kind = first_char(p, n, final, &bytes);
    if (kind == CHAR_CUT) return 0;
    /* A space before a character of another kind belongs to the word of that character. */
    if (p[0] == ' ' && n > 1) {
        CharKind next = first_char(p + 1, n - 1, final, &bytes);
        if (next == CHAR_CUT) return 0;
        if (next != CHAR_SPACE) kind = next, begin = 1;
    }
    size_t end = run_end(p, n, final, kind, begin, &last);
    /* The last of several white-space characters is left to the next word. */
    return kind == CHAR_SPACE && end && end < n && last > 0 ? last : end;
}
