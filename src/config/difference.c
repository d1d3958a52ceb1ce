/* Finds the first difference of two resolved configurations: a key whose values differ, or a key
 * that only one of the two has. */
#include "config.h"

#include <string.h>

enum { NAME_BYTES = 64, LINE_BYTES = 512 };

/* Reads a text of config_text line by line. */
typedef struct LineReader {
    /* the text after the current line */
    const char *rest;
    char section[NAME_BYTES], key[NAME_BYTES];
    /* the current line as "section.key: value"; an entry of a list as "section.key: - value", of a
     * mapping as "section.key.name: value". A line that is too long is cut. */
    char line[LINE_BYTES];
    /* true: the current line is an entry of a list */
    bool is_list_entry;
} LineReader;

/* Returns how many of `length` characters fit into `bytes` bytes together with a terminating 0. */
static int fitting(size_t length, int bytes)
{
    return length < (size_t)bytes ? (int)length : bytes - 1;
}

/* Reads the next line; at the end of the text reader->line is empty. */
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

/* Finds the line in `text` that has the same key as `line`. Writes it to out, or "no section.key"
 * if there is none. */
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

/* Writes the first entries in which two lists differ; if one of the lists has already ended, says
 * so. */
static void write_entries(const LineReader *x, const LineReader *y, char *from_x, char *from_y,
                          size_t bytes)
{
    const LineReader *longer = x->is_list_entry ? x : y;
    char none[LINE_BYTES];
    snprintf(none, sizeof none, "no further entry of %s.%s", longer->section, longer->key);
    snprintf(from_x, bytes, "%s", x->is_list_entry ? x->line : none);
    snprintf(from_y, bytes, "%s", y->is_list_entry ? y->line : none);
}

bool config_difference(const char *x, const char *y, char *from_x, char *from_y, size_t bytes)
{
    LineReader in_x = {.rest = x}, in_y = {.rest = y};
    do {
        next_line(&in_x);
        next_line(&in_y);
        if (!*in_x.line && !*in_y.line) return false;
    } while (strcmp(in_x.line, in_y.line) == 0);
    if (in_x.is_list_entry || in_y.is_list_entry) {
        write_entries(&in_x, &in_y, from_x, from_y, bytes);
        return true;
    }
    snprintf(from_x, bytes, "%s", in_x.line);
    find_counterpart(y, in_x.line, from_y, bytes);
    if (*in_x.line && strcmp(from_x, from_y) != 0) return true;
    /* the first text has no line left, or its line is in the second text, too: it lacks a line of
     * the second */
    snprintf(from_y, bytes, "%s", in_y.line);
    find_counterpart(x, in_y.line, from_x, bytes);
    return true;
}
