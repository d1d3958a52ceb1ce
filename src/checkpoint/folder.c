/* Lists, verifies and prunes a folder of checkpoints. Its files are step-<number>.h5; the largest
 * number is the newest. Other files in the folder (best.h5, .part files of a save that died) are
 * never loaded when a run resumes. A folder that cannot be read is an error, not an empty folder,
 * and old files are only removed once newer files have been read back as good. */
#include "folder.h"
#include "stored.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- listing ---- */

/* Returns the step of "step-00001200.h5", or -1. */
static long long step_of(const char *name)
{
    if (strncmp(name, "step-", 5) != 0) return -1;
    size_t digits = strspn(name + 5, "0123456789");
    if (digits == 0 || digits > 18 || strcmp(name + 5 + digits, ".h5") != 0) return -1;
    return strtoll(name + 5, NULL, 10);
}

/* Returns true for names like step-00001200.h5.part and best.h5.1a2b3c4d.part. */
static bool is_part(const char *name)
{
    size_t length = strlen(name);
    return (!strncmp(name, "step-", 5) || !strncmp(name, "best.h5", 7)) && length > 5 &&
           !strcmp(name + length - 5, ".part");
}

static int newest_first(const void *a, const void *b)
{
    const FolderEntry *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? 1 : -1;
    return strcmp(x->path, y->path);
}

static void list_add(FolderList *list, const char *dir, const char *name)
{
    long long step = step_of(name);
    if (step >= 0) {
        size_t bytes = (size_t)(list->count + 1) * sizeof *list->entry;
        list->entry = mem_resize(list->entry, bytes);
        list->entry[list->count++] = (FolderEntry){step, mem_format("%s/%s", dir, name)};
    } else if (is_part(name)) {
        size_t bytes = (size_t)(list->part_count + 1) * sizeof *list->part;
        list->part = mem_resize(list->part, bytes);
        list->part[list->part_count++] = mem_format("%s/%s", dir, name);
    } else if (!strcmp(name, "best.h5")) {
        list->best = mem_format("%s/%s", dir, name);
    }
}

Status folder_list_init(FolderList *list, const char *dir)
{
    *list = (FolderList){0};
    DIR *stream = opendir(dir);
    if (!stream && errno == ENOENT) return OK;
    int error = stream ? 0 : errno;
    while (!error) {
        errno = 0;
        struct dirent *item = readdir(stream);
        error = item ? 0 : errno;
        if (!item) break;
        list_add(list, dir, item->d_name);
    }
    if (stream) closedir(stream);
    if (list->count > 0) qsort(list->entry, (size_t)list->count, sizeof *list->entry, newest_first);
    if (!error) return OK;
    return fail(ERR_IO, "%s: the checkpoints cannot be listed: %s", dir, strerror(error));
}

void folder_list_fini(FolderList *list)
{
    for (int i = 0; i < list->count; ++i) mem_free(&list->entry[i].path);
    for (int i = 0; i < list->part_count; ++i) mem_free(&list->part[i]);
    mem_free(&list->entry);
    mem_free(&list->part);
    mem_free(&list->best);
}

/* ---- which files are good ---- */

Status checkpoint_verify(const char *path, CheckpointMeta *meta)
{
    StoredFile file;
    CheckpointMeta read = {0};
    Status status = stored_open(&file, path);
    if (status == OK) status = stored_list(&file);
    if (status == OK) status = stored_meta(&file, &read);
    if (status == OK) status = stored_verify(&file, NULL);
    stored_close(&file);
    if (status == OK && meta)
        *meta = read;
    else
        checkpoint_meta_fini(&read);
    return status;
}

/* Device, inode, size and time of modification (`changed`) of a file when it was added. */
typedef struct KnownFile {
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec changed;
} KnownFile;
struct KnownFiles {
    int count;
    /* owned */
    KnownFile *file;
};

KnownFiles *known_files_new(void)
{
    return mem_new(sizeof(KnownFiles));
}

void known_files_free(KnownFiles **known)
{
    if (*known) mem_free(&(*known)->file);
    mem_free(known);
}

static bool known_file_of(const char *path, KnownFile *file)
{
    struct stat st;
    if (stat(path, &st) != 0) return false;
    *file = (KnownFile){st.st_dev, st.st_ino, st.st_size, st.st_mtim};
    return true;
}

static bool is_known(const KnownFiles *known, const KnownFile *file)
{
    for (int i = 0; i < known->count; ++i) {
        const KnownFile *k = &known->file[i];
        if (k->device == file->device && k->inode == file->inode && k->bytes == file->bytes &&
            k->changed.tv_sec == file->changed.tv_sec &&
            k->changed.tv_nsec == file->changed.tv_nsec)
            return true;
    }
    return false;
}

void known_files_add(KnownFiles *known, const char *path)
{
    KnownFile file;
    if (!known_file_of(path, &file) || is_known(known, &file)) return;
    known->file = mem_resize(known->file, (size_t)(known->count + 1) * sizeof *known->file);
    known->file[known->count++] = file;
}

bool known_files_have(const KnownFiles *known, const char *path)
{
    KnownFile file;
    return known_file_of(path, &file) && is_known(known, &file);
}

/* Verifies a file unless it is known as good. */
static Status verify_once(KnownFiles *good, const char *path)
{
    if (known_files_have(good, path)) return OK;
    TRY(checkpoint_verify(path, NULL));
    known_files_add(good, path);
    return OK;
}

/* ---- the newest ---- */

/* Returns "; PATH is good" for the newest good file from entry `first` on, or for best.h5; "" if
 * there is none. Owner: the caller. */
static char *other_good(const FolderList *list, int first)
{
    for (int i = first; i < list->count; ++i)
        if (checkpoint_verify(list->entry[i].path, NULL) == OK)
            return mem_format("; %s is good", list->entry[i].path);
    if (list->best && checkpoint_verify(list->best, NULL) == OK)
        return mem_format("; %s is good: checkpoint.resume=%s with another run.name begins there",
                          list->best, list->best);
    return mem_text("");
}

/* Fails with the message of the last failure. If one of the entries from `next` on, or best.h5, is
 * good, its path is appended to the message. */
static Status name_good(const FolderList *list, Status status, int next)
{
    char *why = mem_text(fail_message()), *others = other_good(list, next);
    status = fail(status, "%s%s", why, others);
    mem_free(&others);
    mem_free(&why);
    return status;
}

bool folder_entry_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static Status newest_of(const FolderList *list, const char *dir, KnownFiles *good, char **path)
{
    for (int i = 0; i < list->count; ++i) {
        Status status = verify_once(good, list->entry[i].path);
        if (status == OK) {
            *path = mem_text(list->entry[i].path);
            return OK;
        }
        if (status != ERR_DATA && !folder_entry_special(list->entry[i].path))
            return name_good(list, status, i + 1);
        log_warn("%s; skipping it", fail_message());
    }
    if (list->count == 0) return OK;
    return name_good(list,
                     fail(ERR_DATA, "%s: none of %d checkpoint%s loads", dir, list->count,
                          list->count == 1 ? "" : "s"),
                     list->count);
}

Status checkpoint_newest(const char *dir, KnownFiles *good, char **path)
{
    FolderList list;
    KnownFiles *known = good ? NULL : known_files_new();
    *path = NULL;
    Status status = folder_list_init(&list, dir);
    if (status != OK)
        status = name_good(&list, status, 0);
    else
        status = newest_of(&list, dir, good ? good : known, path);
    folder_list_fini(&list);
    known_files_free(&known);
    return status;
}

Status checkpoint_check_best(const char *dir, const char *path)
{
    FolderList list;
    CheckpointMeta meta = {0};
    (void)folder_list_init(&list, dir);
    Status status = checkpoint_read_meta(path, &meta);
    mem_free(&list.best);
    if (status != OK) status = name_good(&list, status, 0);
    checkpoint_meta_fini(&meta);
    folder_list_fini(&list);
    return status;
}

/* Returns true if the file's table and attributes are undamaged. */
static bool opens(const char *path)
{
    CheckpointMeta meta = {0};
    StoredFile file;
    Status status = stored_open(&file, path);
    if (status == OK) status = stored_list(&file);
    if (status == OK) status = stored_meta(&file, &meta);
    checkpoint_meta_fini(&meta);
    stored_close(&file);
    return status == OK;
}

char *checkpoint_newest_unverified(const char *dir)
{
    FolderList list;
    bool good = folder_list_init(&list, dir) == OK && list.count > 0 && opens(list.entry[0].path);
    char *path = good ? mem_text(list.entry[0].path) : NULL;
    folder_list_fini(&list);
    return path;
}

Status checkpoint_find_unseen(const char *dir, KnownFiles *seen, int64_t *step)
{
    FolderList list;
    Status status = folder_list_init(&list, dir);
    *step = -1;
    for (int i = 0; i < list.count; ++i) {
        const FolderEntry *entry = &list.entry[i];
        if (*step < 0 && !known_files_have(seen, entry->path) && opens(entry->path))
            *step = entry->step;
        known_files_add(seen, entry->path);
    }
    folder_list_fini(&list);
    return status;
}

/* ---- pruning ---- */

static Status remove_old(const char *path)
{
    if (unlink(path) == 0 || errno == ENOENT) return OK;
    return fail(ERR_IO, "%s: cannot remove the old checkpoint: %s", path, strerror(errno));
}

Status checkpoint_prune(const char *dir, int64_t keep, KnownFiles *good, const char *saved)
{
    FolderList list;
    int64_t kept = saved != NULL;
    Status status = folder_list_init(&list, dir);
    for (int i = 0; i < list.part_count && status == OK; ++i) status = remove_old(list.part[i]);
    for (int i = 0; i < list.count && status == OK && keep > 0; ++i) {
        const char *path = list.entry[i].path;
        if (saved && !strcmp(path, saved)) continue;
        if (kept == keep)
            status = remove_old(path);
        else
            kept += verify_once(good, path) == OK;
    }
    folder_list_fini(&list);
    return status;
}
