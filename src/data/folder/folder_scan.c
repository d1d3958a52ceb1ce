/* Lists the pictures in a folder. folder_scan takes each sub-folder as a class, to which all files
 * below it belong, at any depth; folder_scan_flat lists all files without classes. Names are sorted
 * by bytes, whatever the locale. Names that begin with a dot are skipped; folder_scan also skips
 * files outside the sub-folders. The log says how many names were skipped. Symbolic links are
 * followed, but a link to a folder above itself is refused. Whether a file is a picture is decided
 * later, by its content. */
#include "folder_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Sets the size and the modification time of *file from the file at `path`. */
static void read_stat(FolderFile *file, const char *path)
{
    struct stat st;
    file->bytes = -1;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return;
    file->bytes = (int64_t)st.st_size;
    file->modified_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

void files_add(FolderFiles *files, const char *path, int32_t label)
{
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
    *file = (FolderFile){.path = files->text_bytes, .label = label};
    read_stat(file, path);
    files->text_bytes += bytes;
}

bool files_changed(const FolderFiles *files, int64_t i)
{
    FolderFile now = {0};
    read_stat(&now, files_path(files, i));
    return now.bytes != files->file[i].bytes || now.modified_ns != files->file[i].modified_ns;
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

/* identity of the folder that is being read, or of a folder above it */
typedef struct Ancestor {
    const struct Ancestor *parent;
    dev_t dev;
    ino_t ino;
} Ancestor;

/* a path that a walk has collected */
typedef struct Found {
    /* owned */
    char *path;
    /* offset in `path` of its last component */
    size_t name;
} Found;
/* names that were skipped for the same reason */
typedef struct Skipped {
    int64_t count;
    /* the first name that was skipped, for the log */
    char first[64];
} Skipped;
/* a list of paths that grows, and what was skipped */
typedef struct Walk {
    /* [count], owned */
    Found *found;
    /* number of paths, and of entries for which `found` has memory */
    size_t count, room;
    /* names that begin with a dot */
    Skipped hidden;
    /* files directly in the folder of the classes */
    Skipped loose;
} Walk;

/* Orders paths by the folder that holds the file, then by the file's name, as torchvision's
 * ImageFolder does. Folders are compared without a slash at their end: `set` comes before `set-2`,
 * although the byte '-' comes before '/'. */
static int by_folder(const void *left, const void *right)
{
    const Found *a = left, *b = right;
    const size_t a_bytes = a->name - 1, b_bytes = b->name - 1;
    int order = memcmp(a->path, b->path, a_bytes < b_bytes ? a_bytes : b_bytes);
    if (order == 0 && a_bytes != b_bytes) order = a_bytes < b_bytes ? -1 : 1;
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

/* Removes all paths; the counts of skipped names stay. */
static void walk_clear(Walk *walk)
{
    for (size_t i = 0; i < walk->count; ++i) mem_free(&walk->found[i].path);
    mem_free(&walk->found);
    walk->count = walk->room = 0;
}

static void skip_name(Skipped *skipped, const char *name)
{
    if (skipped->count++ == 0) snprintf(skipped->first, sizeof skipped->first, "%.60s", name);
}

/* Returns whether the path is a folder or a link to one. type: d_type of the path's directory
 * entry. */
static bool is_folder(const char *path, int type)
{
    struct stat st;
    if (type == DT_DIR || type == DT_REG) return type == DT_DIR;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static Status collect_files(Walk *walk, const char *dir, const Ancestor *parent);

/* Collects, descends into or skips one entry of the folder dir. The parameters are those of
 * read_folder. */
static Status read_entry(Walk *walk, const char *dir, const struct dirent *entry, bool want_folders,
                         const Ancestor *here)
{
    const char *name = entry->d_name;
    if (name[0] == '.') {
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) skip_name(&walk->hidden, name);
        return OK;
    }
    char *path = mem_format("%s/%s", dir, name);
    bool folder = is_folder(path, entry->d_type);
    if (folder == want_folders) {
        walk_add(walk, path);
        return OK;
    }
    Status status = OK;
    if (folder)
        status = collect_files(walk, path, here);
    else
        skip_name(&walk->loose, name);
    mem_free(&path);
    return status;
}

/* Collects the sub-folders of dir if want_folders is true, else all files below dir. here: the
 * entry of dir in the list of ancestors; not used if want_folders is true. */
static Status read_folder(Walk *walk, const char *dir, bool want_folders, const Ancestor *here)
{
    DIR *open = opendir(dir);
    if (!open)
        return fail(ERR_NOINPUT, "%s: %s; check the path and its permissions", dir,
                    strerror(errno));
    Status status = OK;
    struct dirent *entry;
    for (errno = 0; status == OK && (entry = readdir(open)); errno = 0)
        status = read_entry(walk, dir, entry, want_folders, here);
    if (status == OK && errno) status = fail(ERR_IO, "%s: %s", dir, strerror(errno));
    closedir(open);
    return status;
}

/* Collects all files below dir. parent: the entry of the folder that contains dir in the list of
 * ancestors; NULL: dir is where the walk begins. */
static Status collect_files(Walk *walk, const char *dir, const Ancestor *parent)
{
    struct stat st;
    if (stat(dir, &st) != 0) return fail(ERR_NOINPUT, "%s: %s", dir, strerror(errno));
    for (const Ancestor *a = parent; a; a = a->parent)
        if (a->dev == st.st_dev && a->ino == st.st_ino)
            return fail(ERR_DATA, "%s: is a link to a folder above itself: remove the link", dir);
    Ancestor here = {parent, st.st_dev, st.st_ino};
    return read_folder(walk, dir, false, &here);
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

/* Logs how many names were skipped. one: noun for a single name; many: noun for several names. */
static void log_skipped(const char *dir, const Skipped *skipped, const char *one, const char *many)
{
    const bool more = skipped->count > 1;
    if (skipped->count > 0)
        log_info("%s: skipping %lld %s (%s%s)", dir, (long long)skipped->count, more ? many : one,
                 skipped->first, more ? ", ..." : "");
}

Status folder_scan(FolderFiles *files, const char *dir)
{
    Walk classes = {0}, inside = {0};
    Status status = read_folder(&classes, dir, true, NULL);
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
    if (classes.hidden.count == 0)
        memcpy(classes.hidden.first, inside.hidden.first, sizeof classes.hidden.first);
    classes.hidden.count += inside.hidden.count;
    if (status == OK) {
        log_skipped(dir, &classes.hidden, "hidden name", "hidden names");
        log_skipped(dir, &classes.loose, "file that is in no class", "files that are in no class");
    }
    walk_clear(&classes);
    return status;
}

Status folder_scan_flat(FolderFiles *files, const char *dir)
{
    Walk walk = {0};
    Status status = scan_class(files, &walk, dir, 0);
    if (status == OK) log_skipped(dir, &walk.hidden, "hidden name", "hidden names");
    return status;
}
