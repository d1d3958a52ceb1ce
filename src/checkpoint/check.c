/* `weft ckpt check`: verifies one checkpoint, or all in a folder. The folder is a run's folder or
 * its checkpoints/. Checkpoints are checked newest first, then best.h5, and the check continues
 * after a bad file. Files of a save that died (*.part) are only named: they are never loaded.
 * Tensors are read one at a time. */
#include "base/escape.h"
#include "folder.h"
#include "stored.h"

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

/* Verifies a file, and prints a line if it is good. each_tensor: true prints a line for every
 * damaged tensor; false reports only the first one, in the message. */
static Status check_file(const char *path, FILE *out, bool each_tensor)
{
    StoredFile file;
    CheckpointMeta meta = {0};
    Status status = stored_open(&file, path);
    if (status == OK) status = stored_list(&file);
    if (status == OK) status = stored_meta(&file, &meta);
    if (status == OK) status = stored_verify(&file, each_tensor ? out : NULL);
    if (status == OK) print_good(&file, &meta, out);
    checkpoint_meta_fini(&meta);
    stored_close(&file);
    return status;
}

/* ---- a folder ---- */

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* Returns the message of the last failure, without path if the message begins with it. */
static const char *reason_of(const char *path)
{
    const char *why = fail_message();
    size_t n = strlen(path);
    return strncmp(why, path, n) == 0 && strncmp(why + n, ": ", 2) == 0 ? why + n + 2 : why;
}

typedef struct Tally {
    int good, bad;
    /* path of the newest good step-*.h5, from which a run resumes; NULL if there is none, or if the
     * run would fail at `stop` first; borrowed */
    const char *next;
    /* path of the newest step-*.h5 that cannot be read at all, if it is newer than every good one:
     * a run would fail at this file and not resume; borrowed */
    const char *stop;
} Tally;

static Status check_listed(const char *path, Tally *tally, FILE *out)
{
    Status status = check_file(path, out, false);
    if (status != OK) text_escape_print(out, "%s: bad: %s\n", path, reason_of(path));
    ++*(status == OK ? &tally->good : &tally->bad);
    return status;
}

static Status conclude(const char *dir, const Tally *tally, FILE *out)
{
    if (tally->good + tally->bad == 0)
        return fail(
            ERR_NOINPUT,
            "%s: holds no checkpoint (step-*.h5 or best.h5); name a run's folder, or a file", dir);
    if (tally->next)
        fprintf(out, "%s: a run resumes from %s\n", dir, strrchr(tally->next, '/') + 1);
    else if (tally->stop)
        fprintf(out, "%s: a run does not resume: %s cannot be read\n", dir,
                strrchr(tally->stop, '/') + 1);
    else
        fprintf(out, "%s: nothing to resume from: no step-*.h5 is good\n", dir);
    if (tally->bad == 0) return OK;
    return fail(ERR_DATA, "%s: %d of %d checkpoints %s not good", dir, tally->bad,
                tally->good + tally->bad, tally->bad == 1 ? "is" : "are");
}

static Status check_all(const char *dir, FILE *out)
{
    FolderList list;
    Tally tally = {0};
    Status status = folder_list_init(&list, dir);
    for (int i = 0; i < list.part_count && status == OK; ++i)
        fprintf(out, "%s: unfinished, never loaded\n", list.part[i]);
    for (int i = 0; i < list.count && status == OK; ++i) {
        const char *path = list.entry[i].path;
        Status one = check_listed(path, &tally, out);
        if (tally.next || tally.stop) continue;
        if (one == OK) tally.next = path;
        if (one != OK && one != ERR_DATA && !folder_entry_special(path)) tally.stop = path;
    }
    if (list.best && status == OK) (void)check_listed(list.best, &tally, out);
    if (status == OK) status = conclude(dir, &tally, out);
    folder_list_fini(&list);
    return status;
}

Status checkpoint_check(const char *path, FILE *out)
{
    if (!is_folder(path)) return check_file(path, out, true);
    char *dir = mem_format("%s/checkpoints", path);
    Status status = check_all(is_folder(dir) ? dir : path, out);
    mem_free(&dir);
    return status;
}
