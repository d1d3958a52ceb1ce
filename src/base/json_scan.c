/* Parses JSON (RFC 8259) from untrusted memory, one value at a time. Only json_scan_skip recurses,
 * to a limited depth. Texts and numbers that are read have a maximum length; skipped ones may have
 * any length. */
#include "base.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Limits. TEXT_BYTES, LONG_TEXT_BYTES: bytes of a text that is read; DEPTH: nesting of a skipped
 * value; NUMBER_CHARS: characters of a number that json_scan_real reads. */
enum { TEXT_BYTES = 1024, LONG_TEXT_BYTES = 64 << 10, DEPTH = 16, NUMBER_CHARS = 127 };

JsonScan json_scan(const char *path, const char *text, size_t bytes)
{
    static const char mark[] = "\xef\xbb\xbf";
    const size_t chars = sizeof mark - 1;
    /* skip UTF-8's byte order mark */
    const bool marked = bytes >= chars && memcmp(text, mark, chars) == 0;
    return (JsonScan){path, text, text + (marked ? chars : 0), text + bytes};
}

Status json_scan_fail(const JsonScan *s, const char *fmt, ...)
{
    char what[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return fail(ERR_DATA, "%s: byte %lld: %s", s->path, (long long)(s->at - s->begin), what);
}

static void skip_blanks(JsonScan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
        ++s->at;
}

char json_scan_peek(JsonScan *s)
{
    skip_blanks(s);
    return s->at < s->end ? *s->at : 0;
}

/* Skips blanks and reads the byte c. */
static Status want(JsonScan *s, char c)
{
    if (json_scan_peek(s) != c) return json_scan_fail(s, "expected '%c'", c);
    ++s->at;
    return OK;
}

Status json_scan_open(JsonScan *s, char opening, bool *more)
{
    char close = opening == '{' ? '}' : ']';
    *more = false;
    TRY(want(s, opening));
    *more = json_scan_peek(s) != close;
    if (!*more) ++s->at;
    return OK;
}

Status json_scan_more(JsonScan *s, char closing, bool *more)
{
    *more = json_scan_peek(s) == ',';
    if (!*more) return want(s, closing);
    ++s->at;
    return OK;
}

/* Returns the value of a hexadecimal digit; -1: c is no such digit. */
static int hex_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads four hexadecimal digits, and returns their value; -1: there are fewer. */
static int scan_hex(JsonScan *s)
{
    int value = 0;
    for (int i = 0; i < 4; ++i) {
        int digit = s->at < s->end ? hex_of(*s->at++) : -1;
        if (digit < 0) return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* result of scan_char for the escape \u0000; texts end with a zero byte and cannot contain one */
enum { CHAR_IS_ZERO = -1 };

/* Decodes the escape \uXXXX of a character, or two of them for a surrogate pair, to UTF-8 in `out`;
 * the first \u has been read. Returns the number of bytes; 0: the escape is malformed; or
 * CHAR_IS_ZERO. */
static int scan_unicode(JsonScan *s, char *out)
{
    int c = scan_hex(s);
    if (c >= 0xd800 && c < 0xdc00) {
        if (s->end - s->at < 2 || s->at[0] != '\\' || s->at[1] != 'u') return 0;
        s->at += 2;
        int low = scan_hex(s);
        if (low < 0xdc00 || low > 0xdfff) return 0;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    } else if (c >= 0xdc00 && c <= 0xdfff) {
        return 0;
    }
    if (c <= 0) return c == 0 ? CHAR_IS_ZERO : 0;
    if (c < 0x80) return out[0] = (char)c, 1;
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const int lead[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[more] | c >> (6 * more));
    for (int i = 1; i <= more; ++i) out[i] = (char)(0x80 | (c >> (6 * (more - i)) & 63));
    return more + 1;
}

/* Decodes an escaped character of a text, or copies one byte of the text, to `out`, which has 4
 * bytes. Returns the number of bytes written; 0: a control character that is not escaped, or a bad
 * escape; or CHAR_IS_ZERO. */
static int scan_char(JsonScan *s, char *out)
{
    static const char escape[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    unsigned char c = (unsigned char)*s->at++;
    if (c < ' ') return 0;
    if (c != '\\') return out[0] = (char)c, 1;
    if (s->at == s->end) return 0;
    char kind = *s->at++;
    if (kind == 'u') return scan_unicode(s, out);
    const char *known = kind ? strchr(escape, kind) : NULL;
    if (!known) return 0;
    out[0] = meaning[known - escape];
    return 1;
}

/* Fails after scan_char has returned `bytes`, which is 0 or CHAR_IS_ZERO. */
static Status char_fail(const JsonScan *s, int bytes)
{
    return json_scan_fail(s, bytes == CHAR_IS_ZERO
                                 ? "a text has \\u0000, which texts must not contain here"
                                 : "a text has a control character that is not escaped, or a bad "
                                   "escape");
}

/* Reads a text of at most `most` bytes to `out`, which has most + 8 bytes. */
static Status scan_text(JsonScan *s, int most, char *out)
{
    int used = 0;
    TRY(want(s, '"'));
    while (s->at < s->end && *s->at != '"') {
        int bytes = scan_char(s, out + used);
        if (bytes <= 0) return char_fail(s, bytes);
        used += bytes;
        if (used > most) return json_scan_fail(s, "a text is longer than %d bytes", most);
    }
    if (s->at == s->end) return json_scan_fail(s, "a text does not end");
    ++s->at;
    out[used] = 0;
    for (const unsigned char *c = (const unsigned char *)out; *c; c += utf8_bytes(c))
        if (utf8_bytes(c) == 0) return json_scan_fail(s, "a text is not UTF-8");
    return OK;
}

Status json_scan_text(JsonScan *s, char **text)
{
    char buffer[TEXT_BYTES + 8];
    TRY(scan_text(s, TEXT_BYTES, buffer));
    *text = mem_text(buffer);
    return OK;
}

Status json_scan_long_text(JsonScan *s, char **text)
{
    char *buffer = mem_new(LONG_TEXT_BYTES + 8);
    Status status = scan_text(s, LONG_TEXT_BYTES, buffer);
    if (status == OK) *text = mem_text(buffer);
    mem_free(&buffer);
    return status;
}

Status json_scan_key(JsonScan *s, char **key)
{
    TRY(json_scan_text(s, key));
    Status st = want(s, ':');
    if (st != OK) mem_free(key);
    return st;
}

Status json_scan_count(JsonScan *s, int64_t *value)
{
    char first = json_scan_peek(s);
    const char *begin = s->at;
    *value = 0;
    if (first < '0' || first > '9') return json_scan_fail(s, "expected a whole number");
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; ++s->at)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, *s->at - '0', value))
            return json_scan_fail(s, "a number is too large");
    bool fraction = s->at < s->end && (*s->at == '.' || *s->at == 'e' || *s->at == 'E');
    if (fraction || (first == '0' && s->at - begin > 1))
        return json_scan_fail(s, "expected a whole number");
    return OK;
}

/* Returns true if c may be in a number or in true, false or null. */
static bool is_of_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '+' || c == '-' || c == '.' ||
           c == 'E';
}

/* Skips blanks and returns the length of the word after them, which should be a number, true, false
 * or null; 0: there is none. The word is not checked. */
static size_t word_length(JsonScan *s)
{
    (void)json_scan_peek(s);
    const char *end = s->at;
    while (end < s->end && is_of_word(*end)) ++end;
    return (size_t)(end - s->at);
}

/* Skips a word without interpreting it. */
static Status skip_word(JsonScan *s)
{
    size_t length = word_length(s);
    s->at += length;
    return length ? OK : json_scan_fail(s, "expected a value");
}

Status json_scan_bool(JsonScan *s, bool *value)
{
    size_t length = word_length(s);
    *value = length == 4 && !memcmp(s->at, "true", 4);
    if (!*value && (length != 5 || memcmp(s->at, "false", 5) != 0))
        return json_scan_fail(s, "expected true or false");
    s->at += length;
    return OK;
}

static const char digits[] = "0123456789";

/* Returns true if the text is a number by JSON's rules. strtod alone would accept more: hexadecimal
 * numbers, infinities, a leading +, a dot without digits. */
static bool is_number(const char *at)
{
    at += *at == '-';
    size_t whole = strspn(at, digits), part;
    if (whole == 0 || (whole > 1 && *at == '0')) return false;
    at += whole;
    if (*at == '.') {
        if ((part = strspn(at + 1, digits)) == 0) return false;
        at += 1 + part;
    }
    if (*at == 'e' || *at == 'E') {
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        if ((part = strspn(at, digits)) == 0) return false;
        at += part;
    }
    return *at == 0;
}

Status json_scan_real(JsonScan *s, double *value)
{
    char text[NUMBER_CHARS + 1] = "";
    size_t length = word_length(s);
    *value = 0;
    if (length <= NUMBER_CHARS) memcpy(text, s->at, length);
    if (!is_number(text)) return json_scan_fail(s, "expected a number of at most 127 characters");
    *value = strtod(text, NULL);
    if (!isfinite(*value)) return json_scan_fail(s, "a number is too large");
    s->at += length;
    return OK;
}

/* Skips a text of any length. Its bytes are discarded, so they need not be UTF-8. */
static Status skip_text(JsonScan *s)
{
    char bytes[8];
    TRY(want(s, '"'));
    while (s->at < s->end && *s->at != '"') {
        int count = scan_char(s, bytes);
        if (count <= 0) return char_fail(s, count);
    }
    if (s->at == s->end) return json_scan_fail(s, "a text does not end");
    ++s->at;
    return OK;
}

/* Skips a value inside `depth` open brackets. */
static Status skip(JsonScan *s, int depth)
{
    char c = json_scan_peek(s);
    bool more;
    if (depth == DEPTH) return json_scan_fail(s, "nested more than %d deep", DEPTH);
    if (c == '"') return skip_text(s);
    if (c != '{' && c != '[') return skip_word(s);
    TRY(json_scan_open(s, c, &more));
    while (more) {
        if (c == '{') TRY(skip_text(s));
        if (c == '{') TRY(want(s, ':'));
        TRY(skip(s, depth + 1));
        TRY(json_scan_more(s, c == '{' ? '}' : ']', &more));
    }
    return OK;
}

Status json_scan_skip(JsonScan *s)
{
    return skip(s, 0);
}

Status json_scan_end(JsonScan *s)
{
    skip_blanks(s);
    return s->at == s->end ? OK : json_scan_fail(s, "text follows the end of the value");
}
