/* Escapes characters that must not reach a terminal: control characters (C0, DEL, C1), line and
 * paragraph separators, and the marks, embeddings, overrides and isolates of the bidirectional
 * algorithm (UAX 9). */
#include "base/escape.h"
#include "base.h"

#include <stdarg.h>
#include <string.h>

/* Decodes a character of UTF-8 that has `bytes` bytes. */
static uint32_t character(const unsigned char *at, int bytes)
{
    static const uint32_t lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = at[0] & lead[bytes];
    for (int i = 1; i < bytes; ++i) c = c << 6 | (at[i] & 0x3f);
    return c;
}

/* Returns true for a character that is always escaped. */
static bool misleads(uint32_t c)
{
    if (c == '\n' || c == '\t') return false;
    return c < ' ' || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x206f);
}

/* bytes of memory for one character, unchanged or escaped, with a final zero */
enum { ESCAPED = 12 };
/* Writes one character, unchanged or escaped, to `out`, and returns the number of bytes written.
 * *bytes: number of bytes that the character has in the text. */
static int escape_one(const unsigned char *at, bool ascii, char out[ESCAPED], int *bytes)
{
    int size = utf8_bytes(at);
    uint32_t c = size > 0 ? character(at, size) : *at;
    *bytes = size > 0 ? size : 1;
    if (size == 0 && ascii) return snprintf(out, ESCAPED, "\\x%02x", c);
    if (size > 0 && (misleads(c) || (ascii && c > 0x7e)))
        return snprintf(out, ESCAPED, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
    memcpy(out, at, (size_t)*bytes);
    return *bytes;
}

char *text_escape(const char *text, bool ascii)
{
    char *out = mem_new(ESCAPED * strlen(text) + ESCAPED), *to = out;
    int bytes;
    for (const unsigned char *at = (const unsigned char *)text; *at; at += bytes)
        to += escape_one(at, ascii, to, &bytes);
    *to = 0;
    return out;
}

void text_escape_to(char *out, size_t room, const char *text)
{
    size_t used = 0;
    int bytes;
    for (const unsigned char *at = (const unsigned char *)text; *at; at += bytes) {
        char one[ESCAPED];
        size_t more = (size_t)escape_one(at, false, one, &bytes);
        if (used + more >= room) break;
        memcpy(out + used, one, more);
        used += more;
    }
    out[used] = 0;
}

void text_escape_print(FILE *out, const char *fmt, ...)
{
    char *text;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0) die_as(ERR_MEMORY, "out of memory");
    va_end(args);
    char *escaped = text_escape(text, false);
    fputs(escaped, out);
    mem_free(&escaped);
    mem_free(&text);
}

static bool beyond_ascii(const char *text)
{
    for (; *text; ++text)
        if ((unsigned char)*text > 0x7e) return true;
    return false;
}

void text_escape_pair(const char *a, const char *b, char **x, char **y)
{
    bool alike = (beyond_ascii(a) || beyond_ascii(b)) && utf8_columns(a) == utf8_columns(b);
    *x = text_escape(a, alike);
    *y = text_escape(b, alike);
}
