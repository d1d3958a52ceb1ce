/* Finds the first difference of two resolved configurations: a key whose values differ, or a key
 * that only one of the two has. */
#include "config.h"

#include <string.h>

enum { NAME_BYTES = 64, LINE_BYTES = 512 };

/* Reads a text of config_text line by line. */
typedef struct LineReader {
    /* the text after the current line */
    const char *rest;
    /* section and key of the current line */
    char section[NAME_BYTES], key[NAME_BYTES];
    /* The current line, cut if it is too long; "" at the end of the text. Its form is "section:" or
     * "section.key: value". An entry of a list becomes "section.key: - value", and a pair of a
     * mapping "section.key.name: value". */
    char line[LINE_BYTES];
    /* true: the current line is an entry of a list */
    bool is_list_entry;
} LineReader;

/* Returns how many of `length` characters fit into `bytes` bytes with a terminating zero byte. */
static int fitting(size_t length, int bytes)
{
    return length < (size_t)bytes ? (int)length : bytes - 1;
}

/* Reads the next line; at the end of the text, sets reader->line to "". */
static void next_line(LineReader *reader)
{
    size_t indent = strspn(reader->rest, " "), length = strcspn(reader->rest, "\n");
    const char *text = reader->rest + indent;
    reader->is_list_entry = indent > 0 && *text == '-';
    if (reader->is_list_entry) {
        snprintf(reader->line, LINE_BYTES, "%s.%s: %.*s", reader->section, reader->key,
                 fitting(length - indent, LINE_BYTES - 2 * NAME_BYTES - 3), text);
    } else if (indent == 0) {
        snprintf(reader->section, NAME_BYTES, "%.*s",
                 fitting(strcspn(reader->rest, ":\n"), NAME_BYTES), reader->rest);
        snprintf(reader->line, LINE_BYTES, "%.*s", fitting(length, LINE_BYTES), reader->rest);
    } else if (indent > 2) {
        snprintf(reader->line, LINE_BYTES, "%s.%s.%.*s", reader->section, reader->key,
                 fitting(length - indent, LINE_BYTES - 2 * NAME_BYTES - 2), text);
    } else {
        snprintf(reader->key, NAME_BYTES, "%.*s", fitting(strcspn(text, ":\n"), NAME_BYTES), text);
        snprintf(reader->line, LINE_BYTES, "%s.%.*s", reader->section,
                 fitting(length - indent, LINE_BYTES - NAME_BYTES - 1), text);
    }
    reader->rest += length + (reader->rest[length] != 0);
}

/* Finds the line in `text` that has the same key as `line`, and writes it to `out`. If there is
 * none, writes "no section.key". */
static void find_counterpart(const char *text, const char *line, char *out, size_t out_bytes)
{
    LineReader other = {.rest = text};
    int key = (int)strcspn(line, ":");
    do next_line(&other);
    while (*other.line && strncmp(other.line, line, (size_t)key + 1) != 0);
    if (*other.line)
        snprintf(out, out_bytes, "%s", other.line);
    else
        snprintf(out, out_bytes, "no %.*s", fitting((size_t)key, NAME_BYTES), line);
}

/* Writes the first entries in which two lists differ, which are the current lines. For a list that
 * has already ended, writes that it has no further entry. */
static void write_entries(const LineReader *x, const LineReader *y, char *from_x, char *from_y,
                          size_t bytes)
{
    const LineReader *longer = x->is_list_entry ? x : y;
    char none[LINE_BYTES];
    snprintf(none, sizeof none, "no further entry of %s.%s", longer->section, longer->key);
    snprintf(from_x, bytes, "%s", x->is_list_entry ? x->line : none);
    snprintf(from_y, bytes, "%s", y->is_list_entry ? y->line : none);
}

bool config_difference(const char *x, const char *y, char *from_x, char *from_y, size_t room)
{
    LineReader in_x = {.rest = x}, in_y = {.rest = y};
    do {
        next_line(&in_x);
        next_line(&in_y);
        if (!*in_x.line && !*in_y.line) return false;
    } while (strcmp(in_x.line, in_y.line) == 0);
    if (in_x.is_list_entry || in_y.is_list_entry) {
        write_entries(&in_x, &in_y, from_x, from_y, room);
        return true;
    }
    snprintf(from_x, room, "%s", in_x.line);
    find_counterpart(y, in_x.line, from_y, room);
    if (*in_x.line && strcmp(from_x, from_y) != 0) return true;
    /* x has no line left, or its line is in y, too: x lacks a line that y has */
    snprintf(from_y, room, "%s", in_y.line);
    find_counterpart(x, in_y.line, from_x, room);
    return true;
}
