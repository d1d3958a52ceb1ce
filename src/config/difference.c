/* Finds the first difference of two resolved configurations: a key whose values differ, or that one
 * of them lacks. */
#include "config.h"

#include <string.h>

enum { NAME = 64, LINE = 512 };

/* Reads a text of config_text line by line. line is "section.key: value"; for an entry of a list
 * "section.key: - value", of a mapping "section.key.name: value". A line that is too long is
 * cut. */
typedef struct Lines {
    const char *rest;
    char section[NAME], key[NAME], line[LINE];
    /* line is an entry of a list */
    bool entry;
} Lines;

static int at_most(size_t length, int room)
{
    return length < (size_t)room ? (int)length : room - 1;
}

/* Reads the next line; at the end of the text it is empty. */
static void next_line(Lines *l)
{
    size_t indent = strspn(l->rest, " "), length = strcspn(l->rest, "\n");
    const char *text = l->rest + indent;
    l->entry = indent > 0 && *text == '-';
    if (l->entry) {
        snprintf(l->line, LINE, "%s.%s: %.*s", l->section, l->key,
                 at_most(length - indent, LINE - 2 * NAME - 3), text);
    } else if (indent == 0) {
        snprintf(l->section, NAME, "%.*s", at_most(strcspn(l->rest, ":\n"), NAME), l->rest);
        snprintf(l->line, LINE, "%.*s", at_most(length, LINE), l->rest);
    } else if (indent > 2) {
        snprintf(l->line, LINE, "%s.%s.%.*s", l->section, l->key,
                 at_most(length - indent, LINE - 2 * NAME - 2), text);
    } else {
        snprintf(l->key, NAME, "%.*s", at_most(strcspn(text, ":\n"), NAME), text);
        snprintf(l->line, LINE, "%s.%.*s", l->section, at_most(length - indent, LINE - NAME - 1),
                 text);
    }
    l->rest += length + (l->rest[length] != 0);
}

/* Finds the line of `text` for the key that `line` begins with; out: that line, or "no
 * section.key". */
static void counterpart(const char *text, const char *line, char *out, size_t room)
{
    Lines other = {.rest = text};
    int key = (int)strcspn(line, ":");
    do next_line(&other);
    while (*other.line && strncmp(other.line, line, (size_t)key + 1) != 0);
    if (*other.line)
        snprintf(out, room, "%s", other.line);
    else
        snprintf(out, room, "no %.*s", at_most((size_t)key, NAME), line);
}

/* Writes the first entries that differ in two lists, or that one list has no further entry. */
static void differ_entries(const Lines *x, const Lines *y, char *a, char *b, size_t room)
{
    const Lines *has = x->entry ? x : y;
    char none[LINE];
    snprintf(none, sizeof none, "no further entry of %s.%s", has->section, has->key);
    snprintf(a, room, "%s", x->entry ? x->line : none);
    snprintf(b, room, "%s", y->entry ? y->line : none);
}

bool config_difference(const char *x, const char *y, char *a, char *b, size_t room)
{
    Lines in_x = {.rest = x}, in_y = {.rest = y};
    do {
        next_line(&in_x);
        next_line(&in_y);
        if (!*in_x.line && !*in_y.line) return false;
    } while (strcmp(in_x.line, in_y.line) == 0);
    if (in_x.entry || in_y.entry) {
        differ_entries(&in_x, &in_y, a, b, room);
        return true;
    }
    snprintf(a, room, "%s", in_x.line);
    counterpart(y, in_x.line, b, room);
    if (*in_x.line && strcmp(a, b) != 0) return true;
    snprintf(b, room, "%s", in_y.line);
    counterpart(x, in_y.line, a, room);
    return true;
}
