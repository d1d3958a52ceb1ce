/* Reads a list of pictures with their labels, one per line: path,label with quotes as in CSV; in a
 * line without a comma a tab or the last blank separates them, as in ImageNet's lists. Labels are
 * numbers from 0, or names, which are sorted by bytes and numbered. Several labels for a picture,
 * in one line or in several, are refused. */
#include "folder_files.h"

#include <stdlib.h>
#include <string.h>

enum { LIST_BYTES = 1 << 30, CLASSES_MOST = 1 << 24 };

typedef struct Line {
    int64_t number;
    /* borrowed from the list's text */
    const char *path, *label;
} Line;

typedef struct List {
    const char *name;
    Line *line;
    int64_t count, room;
} List;

/* Cuts a CSV field off *text, in place; *more: a comma follows. false: unbalanced quotes. */
static bool take_field(char **text, char **field, bool *more)
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

static bool number_of(const char *label, int64_t *number)
{
    return whole_read(&label, 0, CLASSES_MOST - 1, number) && !*label;
}

/* Is the label a number that is not a class, such as -1, which other programs use for "no
 * label"? */
static bool number_of_none(const char *label)
{
    const char *digits = label + (*label == '-' || *label == '+');
    int64_t value;
    return *digits && !digits[strspn(digits, "0123456789")] && !number_of(label, &value);
}

static Status read_line(List *list, char *text, int64_t number)
{
    static const char shape[] = "expected path,label (quotes as in CSV), or a blank between them";
    Line line = {.number = number};
    char *path, *label, *at = text = trim(text);
    bool more = false;
    if (!*text) return OK;
    if (strchr(text, ',')) {
        if (!take_field(&at, &path, &more) || !more || !take_field(&at, &label, &more))
            return line_fail(list, number, shape);
        if (more)
            return line_fail(list, number,
                             "a picture with several labels: give it one, or leave it out");
    } else {
        char *part = strchr(text, '\t');
        if (!part) part = strrchr(text, ' ');
        if (!part) return line_fail(list, number, shape);
        *part = 0;
        path = text, label = part + 1;
    }
    line.path = trim(path), line.label = trim(label);
    if (!*line.path || !*line.label) return line_fail(list, number, shape);
    if (strpbrk(line.label, "\t")) return line_fail(list, number, "a picture with several labels");
    if (number_of_none(line.label))
        return line_fail(list, number,
                         "the label is a number, but of no class: those count from 0");
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
        status = fail(ERR_DATA, "%s: names no picture: a line is path,label", list->name);
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

/* Returns sorted pointers to all lines; owned by the caller. */
static const Line **sorted(const List *list, int (*order)(const void *, const void *))
{
    const Line **line = mem_new((size_t)list->count * sizeof *line);
    for (int64_t i = 0; i < list->count; ++i) line[i] = &list->line[i];
    qsort(line, (size_t)list->count, sizeof *line, order);
    return line;
}

static Status check_single(const List *list)
{
    const Line **line = sorted(list, by_path);
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

/* Collects the class names, sorted and unique, and each line's class. */
static void name_classes(FolderFiles *files, const List *list, int32_t *label)
{
    const Line **line = sorted(list, by_label);
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

static void number_classes(FolderFiles *files, const List *list, int32_t *label)
{
    bool numbers = true;
    int64_t value, most = 0;
    for (int64_t i = 0; i < list->count && numbers; ++i) {
        numbers = number_of(list->line[i].label, &value);
        if (!numbers) break;
        label[i] = (int32_t)value;
        most = value > most ? value : most;
    }
    if (numbers)
        files->classes = most + 1;
    else
        name_classes(files, list, label);
}

Status folder_list_text(FolderFiles *files, const char *dir, const char *name, char *text)
{
    List list = {.name = name};
    Status status = read_lines(&list, text);
    if (status == OK) status = check_single(&list);
    if (status == OK) {
        int32_t *label = mem_new((size_t)list.count * sizeof *label);
        number_classes(files, &list, label);
        for (int64_t i = 0; i < list.count; ++i) {
            const char *path = list.line[i].path;
            char *whole = *path == '/' ? mem_text(path) : mem_format("%s/%s", dir, path);
            files_add(files, whole, label[i]);
            mem_free(&whole);
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
    TRY(file_text(name, LIST_BYTES, &text, &bytes));
    Status status = strlen(text) == bytes
                        ? folder_list_text(files, dir, name, text)
                        : fail(ERR_DATA, "%s: is no text: it holds zero bytes", name);
    mem_free(&text);
    return status;
}
