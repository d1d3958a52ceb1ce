/* Reads a list of pictures with their labels, one per line: `path,label`, with quotes as in CSV. In
 * a line without a comma, the first tab separates path and label, or if there is no tab, the last
 * blank, as in ImageNet's lists. If all labels are whole numbers from 0 to CLASSES_MAX - 1, they
 * are the classes. Otherwise the labels are names of classes, which are sorted by bytes and
 * numbered. A picture with several labels, in one line or in several, is refused. */
#include "folder_files.h"

#include <stdlib.h>
#include <string.h>

enum { LIST_BYTES_MAX = 1 << 30, CLASSES_MAX = 1 << 24 };

typedef struct Line {
    /* number of the line in the file */
    int64_t number;
    /* parts of the list's text; borrowed */
    const char *path, *label;
} Line;

typedef struct List {
    /* path of the list, for messages */
    const char *name;
    /* [count], owned */
    Line *line;
    /* number of lines, and of entries for which `line` has memory */
    int64_t count, room;
} List;

/* Reads a CSV field in place: sets *field to it, *text to the text after the field and its comma,
 * and *more to whether a comma follows the field. Returns false if the closing quote is missing, or
 * if it is followed by something other than a comma. */
static bool read_field(char **text, char **field, bool *more)
{
    char *at = *text, *to = at;
    *field = at;
    if (*at == '"') {
        for (++at; *at && (*at != '"' || at[1] == '"'); ++at) {
            at += *at == '"';
            *to++ = *at;
        }
        if (*at++ != '"') return false;
        if (*at && *at != ',') return false;
    } else {
        while (*at && *at != ',') *to++ = *at++;
    }
    *more = *at == ',';
    *text = at + *more;
    *to = 0;
    return true;
}

static char *trim(char *text)
{
    while (*text == ' ' || *text == '\t') ++text;
    size_t length = strlen(text);
    while (length && strchr(" \t\r", text[length - 1])) text[--length] = 0;
    return text;
}

static Status line_fail(const List *list, int64_t number, const char *why)
{
    return fail(ERR_DATA, "%s: line %lld: %s", list->name, (long long)number, why);
}

/* Parses a label that is the number of a class. Returns false if it is not. */
static bool parse_class(const char *label, int64_t *class)
{
    return whole_read(&label, 0, CLASSES_MAX - 1, class) && !*label;
}

/* Returns whether the label is a whole number, but not the number of a class: for example -1, which
 * other programs use for "no label". */
static bool is_other_number(const char *label)
{
    const char *digits = label + (*label == '-' || *label == '+');
    int64_t class;
    return *digits && !digits[strspn(digits, "0123456789")] && !parse_class(label, &class);
}

/* Parses a line and appends it to the list, unless it is blank. */
static Status read_line(List *list, char *text, int64_t number)
{
    static const char expected[] =
        "expected path,label (quotes as in CSV), or a blank between path and label";
    Line line = {.number = number};
    char *path, *label, *at = text = trim(text);
    bool more = false;
    if (!*text) return OK;
    if (strchr(text, ',')) {
        if (!read_field(&at, &path, &more) || !more || !read_field(&at, &label, &more))
            return line_fail(list, number, expected);
        if (more)
            return line_fail(list, number,
                             "a picture with several labels: give it one, or leave it out");
    } else {
        char *separator = strchr(text, '\t');
        if (!separator) separator = strrchr(text, ' ');
        if (!separator) return line_fail(list, number, expected);
        *separator = 0;
        path = text, label = separator + 1;
    }
    line.path = trim(path), line.label = trim(label);
    if (!*line.path || !*line.label) return line_fail(list, number, expected);
    if (strpbrk(line.label, "\t"))
        return line_fail(list, number,
                         "a picture with several labels: give it one, or leave it out");
    if (is_other_number(line.label))
        return line_fail(list, number,
                         "the label is a number that is not a class: classes are numbered from 0");
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 1024;
        list->line = mem_resize(list->line, (size_t)list->room * sizeof *list->line);
    }
    list->line[list->count++] = line;
    return OK;
}

static Status read_lines(List *list, char *text)
{
    Status status = OK;
    int64_t number = 0;
    if (strncmp(text, "\xef\xbb\xbf", 3) == 0) text += 3;
    while (status == OK && text) {
        char *end = strchr(text, '\n');
        if (end) *end = 0;
        status = read_line(list, text, ++number);
        text = end ? end + 1 : NULL;
    }
    if (status == OK && list->count == 0)
        status = fail(ERR_DATA, "%s: has no pictures: a line is path,label", list->name);
    return status;
}

static int by_path(const void *a, const void *b)
{
    const Line *left = *(const Line *const *)a, *right = *(const Line *const *)b;
    int order = strcmp(left->path, right->path);
    return order ? order : (left->number > right->number) - (left->number < right->number);
}

static int by_label(const void *a, const void *b)
{
    return strcmp((*(const Line *const *)a)->label, (*(const Line *const *)b)->label);
}

/* Returns pointers to all lines, [list->count], sorted by `order`; the caller owns the array. */
static const Line **sort_lines(const List *list, int (*order)(const void *, const void *))
{
    const Line **line = mem_new((size_t)list->count * sizeof *line);
    for (int64_t i = 0; i < list->count; ++i) line[i] = &list->line[i];
    qsort(line, (size_t)list->count, sizeof *line, order);
    return line;
}

/* Returns ERR_DATA if two lines give a picture different labels. */
static Status check_single_labels(const List *list)
{
    const Line **line = sort_lines(list, by_path);
    Status status = OK;
    for (int64_t i = 1; status == OK && i < list->count; ++i)
        if (!strcmp(line[i - 1]->path, line[i]->path) &&
            strcmp(line[i - 1]->label, line[i]->label) != 0)
            status =
                fail(ERR_DATA,
                     "%s: lines %lld and %lld: %s has several labels (%s, %s): give it one, or "
                     "leave it out",
                     list->name, (long long)line[i - 1]->number, (long long)line[i]->number,
                     line[i]->path, line[i - 1]->label, line[i]->label);
    mem_free(&line);
    return status;
}

/* Uses the distinct labels, sorted by bytes, as the names of classes. Sets label[i] to the class of
 * line i. */
static void name_classes(FolderFiles *files, const List *list, int32_t *label)
{
    const Line **line = sort_lines(list, by_label);
    int64_t classes = 0;
    files->class_name = mem_new((size_t)list->count * sizeof *files->class_name);
    for (int64_t i = 0; i < list->count; ++i) {
        if (i == 0 || strcmp(line[i]->label, line[i - 1]->label) != 0)
            files->class_name[classes++] = mem_text(line[i]->label);
        label[line[i] - list->line] = (int32_t)(classes - 1);
    }
    files->classes = classes;
    mem_free(&line);
}

/* Finds the classes and their number from the labels. Sets label[i] to the class of line i. */
static void find_classes(FolderFiles *files, const List *list, int32_t *label)
{
    int64_t class, largest = 0;
    for (int64_t i = 0; i < list->count; ++i) {
        if (!parse_class(list->line[i].label, &class)) {
            name_classes(files, list, label);
            return;
        }
        label[i] = (int32_t) class;
        largest = class > largest ? class : largest;
    }
    files->classes = largest + 1;
}

Status folder_list_text(FolderFiles *files, const char *dir, const char *name, char *text)
{
    List list = {.name = name};
    Status status = read_lines(&list, text);
    if (status == OK) status = check_single_labels(&list);
    if (status == OK) {
        int32_t *label = mem_new((size_t)list.count * sizeof *label);
        find_classes(files, &list, label);
        for (int64_t i = 0; i < list.count; ++i) {
            const char *path = list.line[i].path;
            char *full_path = *path == '/' ? mem_text(path) : mem_format("%s/%s", dir, path);
            files_add(files, full_path, label[i]);
            mem_free(&full_path);
        }
        mem_free(&label);
    }
    mem_free(&list.line);
    return status;
}

Status folder_list(FolderFiles *files, const char *dir, const char *name)
{
    char *text;
    size_t bytes;
    TRY(file_text(name, LIST_BYTES_MAX, &text, &bytes));
    Status status = strlen(text) == bytes
                        ? folder_list_text(files, dir, name, text)
                        : fail(ERR_DATA, "%s: is not a text file: it has zero bytes", name);
    mem_free(&text);
    return status;
}
