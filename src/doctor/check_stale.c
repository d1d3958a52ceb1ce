/* Finds files that dead jobs have left in /dev/shm. Such files take memory, and their names may
 * collide with the names of a new job's files. They are reported and never removed, because a
 * process in another container may use them. */
#include "measurements.h"
#include "private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* maximum number of old files that are examined; further files are left out */
enum { FILES_MAX = 64 };

/* Returns whether the name begins as those of MPI's or NCCL's files. */
static bool is_mpi_file(const char *name)
{
    static const char *const prefixes[] = {"vader_segment.", "sm_segment.", "open_mpi.", "nccl-"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; ++i)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return true;
    return false;
}

/* Files of MPI and NCCL that belong to this user and are older than a minute. */
typedef struct OldFiles {
    /* owned */
    char *path[FILES_MAX];
    /* true: a process has the file mapped */
    bool mapped[FILES_MAX];
    double bytes[FILES_MAX];
    int count;
} OldFiles;

/* Adds the file if it is one of MPI or NCCL, belongs to this user and is old. Called for each name
 * in /dev/shm. */
static void add_old_file(const char *root, const char *name, void *old_files)
{
    /* a file that is being created is not mapped yet */
    enum { AGE_MIN_S = 60 };
    OldFiles *old = old_files;
    struct stat st;
    if (!is_mpi_file(name) || old->count == FILES_MAX) return;
    char *path = mem_format("%s/dev/shm/%s", root, name);
    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        time(NULL) - st.st_mtime > AGE_MIN_S) {
        /* stat counts in units of 512 bytes */
        old->bytes[old->count] = 512.0 * (double)st.st_blocks;
        old->path[old->count++] = path;
    } else {
        mem_free(&path);
    }
}

/* Marks the files that a process has mapped, if this user may read the process's list of mapped
 * files. entry: a name in /proc; it belongs to a process if it is a number. */
static void mark_mapped(const char *root, const char *entry, void *old_files)
{
    if (entry[0] < '1' || entry[0] > '9') return;
    OldFiles *old = old_files;
    char *name = mem_format("%s/proc/%s/maps", root, entry), *line = NULL;
    size_t line_bytes = 0;
    FILE *file = fopen(name, "re");
    while (file && getline(&line, &line_bytes, file) > 0)
        for (int i = 0; i < old->count; ++i)
            if (strstr(line, old->path[i])) old->mapped[i] = true;
    if (file) fclose(file);
    free(line);
    mem_free(&name);
}

static void measure(Doctor *d, void *mine)
{
    if (!d->is_leader) return;
    OldFiles old = {0};
    StaleFiles *stale = mine;
    proc_each_name(d->options->root, "/dev/shm", add_old_file, &old);
    if (old.count > 0) proc_each_name(d->options->root, "/proc", mark_mapped, &old);
    for (int i = 0; i < old.count; ++i) {
        if (!old.mapped[i]) {
            if (stale->count == 0)
                snprintf(stale->example, sizeof stale->example, "%s", old.path[i]);
            ++stale->count;
            stale->bytes += old.bytes[i];
        }
        mem_free(&old.path[i]);
    }
}

static void judge(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const StaleFiles *stale = all;
    char text[16];
    report_set_summary(report, "nothing left of earlier jobs");
    for (int r = 0; r < a->ranks; ++r)
        if (stale[r].count > (int)check->threshold)
            report_add_host(report, SEVERITY_WARN, r, "rm, once no job of yours is left there",
                            "at least %d file%s of earlier jobs, %s, for example %s",
                            stale[r].count, stale[r].count == 1 ? "" : "s",
                            text_bytes(stale[r].bytes, text), stale[r].example);
}

const Check check_stale = {
    .name = "left in /dev/shm",
    .threshold_meaning = "files that no process uses",
    .threshold = 0,
    .limit_s = 4,
    .bytes = sizeof(StaleFiles),
    .measure = measure,
    .judge = judge,
};
