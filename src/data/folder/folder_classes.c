/* Replaces the classes of an import by an ordered list of names from another data set, a YAML file
 * or a text. Thus the labels of a test set mean the same as those of its training set. A class of
 * the list may have no pictures; a folder or a label that is not in the list is an error. */
#include "folder_files.h"
#include "../data_private.h"
#include "../set/name_index.h"

#include <string.h>

enum { TEXT_BYTES_MAX = 64 << 20 };

/* Reads a text with one name per line; blank lines are skipped. */
static Status read_text(ClassNames *names, const char *path)
{
    char *text = NULL, *rest, *line;
    size_t bytes, kept = 0;
    TRY(file_text(path, TEXT_BYTES_MAX, &text, &bytes));
    if (strlen(text) != bytes) {
        mem_free(&text);
        return fail(ERR_DATA, "%s: is not a text file: it has zero bytes", path);
    }
    rest = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
    while ((line = strsep(&rest, "\n"))) {
        size_t length = strlen(line);
        while (length && strchr(" \t\r", line[length - 1])) --length;
        if (length == 0) continue;
        memmove(text + kept, line, length);
        kept += length;
        text[kept++] = 0;
    }
    class_names_split(names, text, kept, 0);
    return OK;
}

static bool is_yaml(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

Status folder_read_classes(ClassNames *names, const char *path)
{
    TRY(data_is_hdf5(path) ? class_names_read(names, path)
        : is_yaml(path)    ? yaml_classes_read(names, path)
                           : read_text(names, path));
    Status st = names->count > 0 ? class_names_check(names, path)
                                 : fail(ERR_DATA, "%s: names no classes", path);
    if (st != OK) class_names_free(names);
    return st;
}

/* Sets new_class[c] to the index in `names` of class c of the pictures. A class without a name
 * keeps its number. ERR_DATA: the class is not in `names`. path: path of the list, for messages. */
static Status find_classes(const FolderFiles *files, const ClassNames *names, const char *path,
                           int32_t *new_class)
{
    NameIndex index = {0};
    Status st = OK;
    for (int64_t i = 0; i < names->count; ++i)
        name_index_add(&index, names->name[i], strlen(names->name[i]), i);
    for (int64_t c = 0; st == OK && c < files->classes; ++c) {
        int64_t i = c;
        char number[24];
        const char *name = files->class_name ? files->class_name[c] : NULL;
        snprintf(number, sizeof number, "%lld", (long long)c);
        if (name) i = name_index_find(&index, name, strlen(name));
        if (i < 0 || i >= names->count)
            st = fail(ERR_DATA,
                      "class '%s' is not among the %lld classes of %s: remove the class, or add "
                      "its name there",
                      name ? name : number, (long long)names->count, path);
        new_class[c] = (int32_t)i;
    }
    name_index_fini(&index);
    return st;
}

Status folder_set_classes(FolderFiles *files, const char *path)
{
    ClassNames names;
    TRY(folder_read_classes(&names, path));
    int32_t *new_class = mem_new((size_t)(files->classes + 1) * sizeof *new_class);
    Status st = find_classes(files, &names, path, new_class);
    for (int64_t i = 0; st == OK && i < files->count; ++i)
        files->file[i].label = new_class[files->file[i].label];
    if (st == OK) {
        for (int64_t c = 0; files->class_name && c < files->classes; ++c)
            mem_free(&files->class_name[c]);
        mem_free(&files->class_name);
        files->classes = names.count;
        files->class_name = mem_new((size_t)names.count * sizeof *files->class_name);
        for (int64_t c = 0; c < names.count; ++c) files->class_name[c] = mem_text(names.name[c]);
    }
    mem_free(&new_class);
    class_names_free(&names);
    return st;
}
