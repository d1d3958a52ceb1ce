/* weft ckpt check: is a checkpoint whole, or are all of a folder? A folder is a run's, or the checkpoints/ in it; its files are
 * listed from the newest, and one that is not good does not end the list. What a save that died left (*.h5.part) is only
 * named: it is never loaded. Tensors are read one at a time. */
#include "stored.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- one file ---- */

static void print_good(const StoredFile *file, const CheckpointMeta *meta, FILE *out)
{
    double bytes = 0;
    int bare = 0;
    char size[16];
    for (int i = 0; i < file->count; ++i) {
        bytes += (double)shape_count(file->tensor[i].shape) * sizeof(float);
        bare += !file->tensor[i].has_hash;
    }
    fprintf(out, "%s: good: step %lld, %d tensors, %s", file->path, (long long)meta->step,
            file->count, text_bytes(bytes, size));
    if (bare > 0) fprintf(out, "; %d of them have no checksum", bare);
    fputc('\n', out);
}

/* each: a line for every tensor that is damaged, else the first one alone is in the message. */
static Status check_file(const char *path, FILE *out, bool each)
{
    StoredFile file;
    CheckpointMeta meta = {0};
    Status status = stored_open(&file, path);
    if (status == OK) status = stored_list(&file);
    if (status == OK) status = stored_meta(&file, &meta);
    if (status == OK) status = stored_verify(&file, each ? out : NULL);
    if (status == OK) print_good(&file, &meta, out);
    checkpoint_meta_fini(&meta);
    stored_close(&file);
    return status;
}

/* ---- a folder ---- */

typedef struct Found {
    char *name;     /* owned */
    long long step; /* as the name says; -1: best.h5 and what else a save left */
    bool part;      /* a save that did not come to its end */
} Found;

typedef struct Folder {
    char *path;   /* owned */
    Found *found; /* owned, newest first */
    int count;
} Folder;

static bool ends_with(const char *name, const char *ending)
{
    size_t n = strlen(name), k = strlen(ending);
    return n >= k && strcmp(name + n - k, ending) == 0;
}

/* The step of "step-00001200.h5", also with .part behind; else -1. */
static long long step_of(const char *name)
{
    if (strncmp(name, "step-", 5) != 0) return -1;
    size_t digits = strspn(name + 5, "0123456789");
    const char *rest = name + 5 + digits;
    if (digits == 0 || digits > 18) return -1;
    return strcmp(rest, ".h5") == 0 || strcmp(rest, ".h5.part") == 0 ? atoll(name + 5) : -1;
}

static void folder_add(Folder *folder, const char *name)
{
    Found found = {.step = step_of(name), .part = ends_with(name, ".h5.part")};
    if (found.step < 0 && !found.part && strcmp(name, "best.h5") != 0) return;
    found.name = mem_text(name);
    folder->found = mem_resize(folder->found, (size_t)(folder->count + 1) * sizeof *folder->found);
    folder->found[folder->count++] = found;
}

static int newest_first(const void *a, const void *b)
{
    const Found *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? 1 : -1;
    return strcmp(x->name, y->name);
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static void folder_fini(Folder *folder)
{
    for (int i = 0; i < folder->count; ++i) mem_free(&folder->found[i].name);
    mem_free(&folder->found);
    mem_free(&folder->path);
}

/* Release with folder_fini in every case. */
static Status folder_list(Folder *folder, const char *path)
{
    *folder = (Folder){.path = mem_format("%s/checkpoints", path)};
    if (!is_folder(folder->path)) {
        mem_free(&folder->path);
        folder->path = mem_text(path);
    }
    DIR *stream = opendir(folder->path);
    if (!stream)
        return fail(errno == EACCES || errno == ENOENT ? ERR_NOINPUT : ERR_IO,
                    "%s: cannot list the checkpoints: %s", folder->path, strerror(errno));
    struct dirent *item;
    while ((errno = 0, item = readdir(stream))) folder_add(folder, item->d_name);
    int error = errno;
    closedir(stream);
    if (error)
        return fail(ERR_IO, "%s: cannot list all checkpoints: %s", folder->path, strerror(error));
    if (folder->count > 0)
        qsort(folder->found, (size_t)folder->count, sizeof *folder->found, newest_first);
    return OK;
}

/* The message of a file that is not good, without its name where that begins it. */
static const char *reason_of(const char *path)
{
    const char *why = fail_message();
    size_t n = strlen(path);
    return strncmp(why, path, n) == 0 && strncmp(why + n, ": ", 2) == 0 ? why + n + 2 : why;
}

typedef struct Tally {
    int good, bad;
    const char *next; /* the newest good step-*.h5, which a run goes on from; borrowed */
    const char
        *stop; /* one before it that cannot be read at all, where a run would end; borrowed */
} Tally;

static void check_found(const Folder *folder, const Found *found, Tally *tally, FILE *out)
{
    char *path = mem_format("%s/%s", folder->path, found->name);
    if (found->part) {
        fprintf(out, "%s: unfinished, never loaded\n", path);
    } else {
        Status status = check_file(path, out, false);
        if (status != OK) fprintf(out, "%s: bad: %s\n", path, reason_of(path));
        ++*(status == OK ? &tally->good : &tally->bad);
        bool open = found->step >= 0 && !tally->next && !tally->stop;
        if (open && status == OK) tally->next = found->name;
        if (open && status != OK && status != ERR_DATA) tally->stop = found->name;
    }
    mem_free(&path);
}

static Status check_listed(const Folder *folder, FILE *out)
{
    Tally tally = {0};
    for (int i = 0; i < folder->count; ++i) check_found(folder, &folder->found[i], &tally, out);
    if (tally.good + tally.bad == 0)
        return fail(
            ERR_NOINPUT,
            "%s: holds no checkpoint (step-*.h5 or best.h5); name a run's folder, or a file",
            folder->path);
    if (tally.next)
        fprintf(out, "%s: a run goes on from %s\n", folder->path, tally.next);
    else if (tally.stop)
        fprintf(out, "%s: a run does not go on: %s cannot be read\n", folder->path, tally.stop);
    else
        fprintf(out, "%s: nothing to go on from: no step-*.h5 is good\n", folder->path);
    if (tally.bad == 0) return OK;
    return fail(ERR_DATA, "%s: %d of %d checkpoints %s not good", folder->path, tally.bad,
                tally.good + tally.bad, tally.bad == 1 ? "is" : "are");
}

Status checkpoint_check(const char *path, FILE *out)
{
    if (!is_folder(path)) return check_file(path, out, true);
    Folder folder;
    Status status = folder_list(&folder, path);
    if (status == OK) status = check_listed(&folder, out);
    folder_fini(&folder);
    return status;
}
