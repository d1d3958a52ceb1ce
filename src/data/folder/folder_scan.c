/* Finds the pictures in a folder: each sub-folder is a class, and all files below it, at any depth,
 * belong to the class. Names are sorted by bytes, independently of the locale. Names that begin
 * with a dot are skipped, and the log says how many. Symbolic links are followed; a link to a
 * folder above itself is refused. Whether a file is a picture is found later, from its content. */
#include "folder_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void files_add(FolderFiles *files, const char *path, int32_t label)
{
    struct stat st;
    size_t bytes = strlen(path) + 1;
    if (files->count == files->room) {
        files->room = files->room ? 2 * files->room : 1024;
        files->file = mem_resize(files->file, (size_t)files->room * sizeof *files->file);
    }
    if (files->text_bytes + bytes > files->text_room) {
        files->text_room = 2 * files->text_room + bytes + 4096;
        files->text = mem_resize(files->text, files->text_room);
    }
    memcpy(files->text + files->text_bytes, path, bytes);
    FolderFile *file = &files->file[files->count++];
    *file = (FolderFile){.path = files->text_bytes, .bytes = -1, .label = label};
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        file->bytes = (int64_t)st.st_size;
        file->changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    }
    files->text_bytes += bytes;
}

void files_fini(FolderFiles *files)
{
    for (int64_t i = 0; files->class_name && i < files->classes; ++i)
        mem_free(&files->class_name[i]);
    mem_free(&files->class_name);
    mem_free(&files->file);
    mem_free(&files->text);
    *files = (FolderFiles){0};
}

Status files_check_classes(const FolderFiles *files, const uint8_t *left_out)
{
    int64_t *count = mem_new((size_t)(files->classes + 1) * sizeof *count), empty = 0, first = -1;
    for (int64_t i = 0; i < files->count; ++i)
        if (!left_out || !left_out[i]) ++count[files->file[i].label];
    for (int64_t c = 0; c < files->classes; ++c) {
        if (count[c]) continue;
        if (first < 0) first = c;
        ++empty;
    }
    mem_free(&count);
    if (empty == 0) return OK;
    char number[24], others[48] = "has";
    snprintf(number, sizeof number, "%lld", (long long)first);
    if (empty > 1) snprintf(others, sizeof others, "and %lld more have", (long long)empty - 1);
    return fail(ERR_DATA,
                "class %s %s no picture: add some, remove the class, or give --allow-empty",
                files->class_name ? files->class_name[first] : number, others);
}

/* the folder that is being read, or one above it */
typedef struct Ancestor {
    const struct Ancestor *parent;
    dev_t dev;
    ino_t ino;
} Ancestor;

/* one path found by a walk */
typedef struct Found {
    /* owned */
    char *path;
    /* offset of the last name in path */
    size_t name;
} Found;
typedef struct Walk {
    Found *found;
    size_t count, room;
    /* number of skipped names */
    int64_t hidden;
    char first_hidden[64];
} Walk;

/* Orders by folder, then by name, as torchvision's ImageFolder does. */
static int by_folder(const void *left, const void *right)
{
    const Found *a = left, *b = right;
    size_t shorter = a->name < b->name ? a->name : b->name;
    int order = memcmp(a->path, b->path, shorter);
    if (order == 0 && a->name != b->name) order = a->name < b->name ? -1 : 1;
    return order ? order : strcmp(a->path + a->name, b->path + b->name);
}

static void walk_add(Walk *walk, char *path)
{
    if (walk->count == walk->room) {
        walk->room = walk->room ? 2 * walk->room : 256;
        walk->found = mem_resize(walk->found, walk->room * sizeof *walk->found);
    }
    walk->found[walk->count++] = (Found){path, (size_t)(strrchr(path, '/') + 1 - path)};
}

/* Removes the paths found; the count of hidden names stays. */
static void walk_clear(Walk *walk)
{
    for (size_t i = 0; i < walk->count; ++i) mem_free(&walk->found[i].path);
    mem_free(&walk->found);
    walk->count = walk->room = 0;
}

/* Returns whether a name begins with a dot; counts it, except "." and "..". */
static bool skip_hidden(Walk *walk, const char *name)
{
    if (name[0] != '.') return false;
    if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && walk->hidden++ == 0)
        snprintf(walk->first_hidden, sizeof walk->first_hidden, "%.60s", name);
    return true;
}

/* Returns whether the path is a folder or a link to one. type: d_type of its entry. */
static bool is_folder(const char *path, int type)
{
    struct stat st;
    if (type == DT_DIR || type == DT_REG) return type == DT_DIR;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static Status collect_files(Walk *walk, const char *dir, const Ancestor *parent);

/* Handles one entry of the folder dir; here: see read_folder. */
static Status read_entry(Walk *walk, const char *dir, const struct dirent *entry,
                         const Ancestor *here)
{
    const bool folders_only = !here;
    if (skip_hidden(walk, entry->d_name)) return OK;
    char *path = mem_format("%s/%s", dir, entry->d_name);
    bool folder = is_folder(path, entry->d_type);
    if (folder == folders_only) {
        walk_add(walk, path);
        return OK;
    }
    Status status = folder ? collect_files(walk, path, here) : OK;
    mem_free(&path);
    return status;
}

/* Reads a folder. here: the folder itself; all files below it are collected. NULL: only its
 * sub-folders are collected. */
static Status read_folder(Walk *walk, const char *dir, const Ancestor *here)
{
    DIR *open = opendir(dir);
    if (!open)
        return fail(ERR_NOINPUT, "%s: %s; check the path and its permissions", dir,
                    strerror(errno));
    Status status = OK;
    struct dirent *entry;
    for (errno = 0; status == OK && (entry = readdir(open)); errno = 0)
        status = read_entry(walk, dir, entry, here);
    if (status == OK && errno) status = fail(ERR_IO, "%s: %s", dir, strerror(errno));
    closedir(open);
    return status;
}

/* Collects all files below dir. parent NULL: dir is the folder of a class. */
static Status collect_files(Walk *walk, const char *dir, const Ancestor *parent)
{
    struct stat st;
    if (stat(dir, &st) != 0) return fail(ERR_NOINPUT, "%s: %s", dir, strerror(errno));
    for (const Ancestor *a = parent; a; a = a->parent)
        if (a->dev == st.st_dev && a->ino == st.st_ino)
            return fail(ERR_DATA, "%s: is a link to a folder above itself: remove the link", dir);
    Ancestor here = {parent, st.st_dev, st.st_ino};
    return read_folder(walk, dir, &here);
}

static void walk_sort(Walk *walk)
{
    if (walk->count) qsort(walk->found, walk->count, sizeof *walk->found, by_folder);
}

static Status scan_class(FolderFiles *files, Walk *walk, const char *dir, int32_t label)
{
    Status status = collect_files(walk, dir, NULL);
    if (status == OK) {
        walk_sort(walk);
        for (size_t i = 0; i < walk->count; ++i) files_add(files, walk->found[i].path, label);
    }
    walk_clear(walk);
    return status;
}

Status folder_scan(FolderFiles *files, const char *dir)
{
    Walk classes = {0}, inside = {0};
    Status status = read_folder(&classes, dir, NULL);
    walk_sort(&classes);
    if (status == OK && classes.count == 0)
        status = fail(ERR_DATA,
                      "%s: has no folders; put the pictures of each class into a folder of its own "
                      "(or name them in a --list)",
                      dir);
    if (status == OK) {
        files->classes = (int64_t)classes.count;
        files->class_name = mem_new(classes.count * sizeof *files->class_name);
    }
    for (size_t c = 0; status == OK && c < classes.count; ++c) {
        const Found *found = &classes.found[c];
        files->class_name[c] = mem_text(found->path + found->name);
        status = scan_class(files, &inside, found->path, (int32_t)c);
    }
    if (classes.hidden == 0) memcpy(classes.first_hidden, inside.first_hidden, 64);
    int64_t hidden = classes.hidden + inside.hidden;
    if (status == OK && hidden)
        log_info("%s: skipping %lld hidden name%s (%s%s)", dir, (long long)hidden,
                 hidden == 1 ? "" : "s", classes.first_hidden, hidden == 1 ? "" : ", ...");
    walk_clear(&classes);
    return status;
}
