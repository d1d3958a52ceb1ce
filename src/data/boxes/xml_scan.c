/* Scans XML 1.0, for annotations. Reads elements with text and XML's five entities, and skips
 * attributes, comments and <?...?>. DOCTYPE and CDATA are errors. Depth, names and texts have
 * limits. */
#include "xml_scan.h"

#include <string.h>

static Status scan_fail(const XmlScan *s, const char *why)
{
    return fail(ERR_DATA, "%s: byte %lld: %s", s->name, (long long)(s->at - s->text), why);
}

/* Moves behind the next occurrence of `end`. Returns false if there is none. */
static bool skip_to(XmlScan *s, const char *end)
{
    const char *found = strstr(s->at, end);
    if (found) s->at = found + strlen(end);
    return found != NULL;
}

static void pop_path(XmlScan *s)
{
    char *last = strrchr(s->path, '/');
    *(last ? last : s->path) = 0;
    s->pop = false;
}

/* Appends a byte of the text, or the character that an entity means, to s->value. *used: length of
 * s->value. */
static Status read_char(XmlScan *s, size_t *used)
{
    static const char *const entity[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
    static const char meaning[] = "&<>\"'";
    char c = *s->at;
    size_t bytes = 1;
    for (size_t i = 0; c == '&' && i < sizeof entity / sizeof *entity; ++i)
        if (strncmp(s->at, entity[i], strlen(entity[i])) == 0)
            c = meaning[i], bytes = strlen(entity[i]);
    if (c == '&' && bytes == 1) return scan_fail(s, "an entity that is not one of XML's five");
    if (*used == XML_TEXT - 1) return scan_fail(s, "a text is too long");
    s->value[(*used)++] = c;
    s->at += bytes;
    return OK;
}

/* Reads "<name attributes>", of which "<" has been read. *empty: true if it ends with "/>". */
static Status read_begin(XmlScan *s, bool *empty)
{
    size_t length = strcspn(s->at, " \t\r\n/>"), used = strlen(s->path);
    if (length == 0 || used + length + 2 > XML_PATH)
        return scan_fail(s, "an element without a name, or elements too deep");
    snprintf(s->path + used, XML_PATH - used, "%s%.*s", used ? "/" : "", (int)length, s->at);
    s->at += length;
    while (*s->at && *s->at != '>') {
        if (*s->at == '"' || *s->at == '\'') {
            const char *close = strchr(s->at + 1, *s->at);
            if (!close) return scan_fail(s, "an attribute does not end");
            s->at = close;
        }
        ++s->at;
    }
    if (!*s->at) return scan_fail(s, "an element does not end");
    *empty = s->at[-1] == '/';
    ++s->at;
    return OK;
}

/* Reads the "name>" of an end tag. It must be the name of the innermost open element. */
static Status read_end(XmlScan *s)
{
    const char *last = strrchr(s->path, '/');
    const char *name = last ? last + 1 : s->path;
    size_t length = strlen(name);
    if (length == 0 || strncmp(s->at, name, length) != 0)
        return scan_fail(s, "the end of an element that is not open");
    s->at += length;
    s->at += strspn(s->at, " \t\r\n");
    if (*s->at != '>') return scan_fail(s, "expected '>'");
    ++s->at;
    s->pop = true;
    return OK;
}

static void trim(char *text, size_t used)
{
    while (used && strchr(" \t\r\n", text[used - 1])) --used;
    text[used] = 0;
    size_t blanks = strspn(text, " \t\r\n");
    memmove(text, text + blanks, used - blanks + 1);
}

Status xml_scan_next(XmlScan *s, bool *more)
{
    size_t used = 0;
    *more = false;
    if (s->at == s->text && strncmp(s->at, "\xef\xbb\xbf", 3) == 0) s->at += 3;
    if (s->pop) pop_path(s);
    while (*s->at) {
        bool empty = false;
        if (*s->at != '<') {
            if (s->path[0])
                TRY(read_char(s, &used));
            else if (strchr(" \t\r\n", *s->at))
                ++s->at;
            else
                return scan_fail(s, "expected an element");
            continue;
        }
        ++s->at;
        if (strncmp(s->at, "!--", 3) == 0 || *s->at == '?') {
            if (!skip_to(s, *s->at == '?' ? "?>" : "-->"))
                return scan_fail(s, "a comment does not end");
            continue;
        }
        if (*s->at == '!') return scan_fail(s, "declarations and CDATA are not read");
        *more = *s->at == '/';
        if (*more) {
            ++s->at;
            trim(s->value, used);
            return read_end(s);
        }
        TRY(read_begin(s, &empty));
        used = 0;
        if (!empty) continue;
        s->value[0] = 0;
        s->pop = *more = true;
        return OK;
    }
    return s->path[0] ? scan_fail(s, "the file ends inside of an element") : OK;
}
