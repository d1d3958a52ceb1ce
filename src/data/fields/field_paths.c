/* Finds the files of a set. They are in the order of the list of paths; the files that match one
 * pattern are in the order of their names. */
#include "fields_private.h"

#include <glob.h>
#include <string.h>
#include <unistd.h>

static Status add_path(FieldPaths *list, const char *path)
{
    if (list->count == FIELD_FILES)
        return fail(ERR_CONFIG, "a set of fields can have %d files, there are more", FIELD_FILES);
    if (strlen(path) >= DATA_PATH) return fail(ERR_NOINPUT, "the path %.60s... is too long", path);
    if (list->count == list->room) {
        list->room = 2 * list->room + 64;
        list->path = mem_resize(list->path, (size_t)list->room * sizeof *list->path);
    }
    list->path[list->count++] = mem_text(path);
    return OK;
}

bool data_paths_have_pattern(const char *paths)
{
    return strpbrk(paths, "*?[") != NULL;
}

/* Adds a path, or all files that match a pattern. */
static Status add_matches(FieldPaths *list, const char *path, const char *key)
{
    glob_t found;
    Status st = OK;
    if (!data_paths_have_pattern(path) || access(path, F_OK) == 0) return add_path(list, path);
    if (glob(path, 0, NULL, &found) != 0)
        return fail(ERR_NOINPUT,
                    "%s%sno file matches the pattern %s: correct it, or write the files first",
                    key ? key : "", key ? ": " : "", path);
    for (size_t i = 0; st == OK && i < found.gl_pathc; ++i) st = add_path(list, found.gl_pathv[i]);
    globfree(&found);
    return st;
}

Status field_paths_find(FieldPaths *list, const char *paths, const char *key)
{
    char *copy = mem_text(paths), *rest = copy, *path;
    Status st = OK;
    *list = (FieldPaths){0};
    while (st == OK && (path = strsep(&rest, "\n"))) st = add_matches(list, path, key);
    mem_free(&copy);
    return st;
}

void field_paths_free(FieldPaths *list)
{
    for (int i = 0; i < list->count; ++i) mem_free(&list->path[i]);
    mem_free(&list->path);
    *list = (FieldPaths){0};
}
