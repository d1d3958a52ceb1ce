/* Files that dead jobs have left in /dev/shm: they take memory, and their names may collide with
 * those of a new job. They are reported and never removed, since a process in another container may
 * use them. */
#include "figures.h"
#include "private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MOST = 64 };

static bool is_of_mpi(const char *name)
{
    static const char *const begins[] = {"vader_segment.", "sm_segment.", "open_mpi.", "nccl-"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; ++i)
        if (!strncmp(name, begins[i], strlen(begins[i]))) return true;
    return false;
}

/* Files of this user that are older than a minute; used: a process has the file mapped. */
typedef struct Left {
    char *path[FILES_MOST];
    bool used[FILES_MOST];
    double bytes[FILES_MOST];
    int count;
} Left;

static void add_old_file(const char *root, const char *name, void *all)
{
    /* a file that is being created is not mapped yet */
    enum { YOUNG_S = 60 };
    Left *left = all;
    struct stat st;
    if (!is_of_mpi(name) || left->count == FILES_MOST) return;
    char *path = mem_format("%s/dev/shm/%s", root, name);
    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        time(NULL) - st.st_mtime > YOUNG_S) {
        left->bytes[left->count] = 512.0 * (double)st.st_blocks;
        left->path[left->count++] = path;
    } else {
        mem_free(&path);
    }
}

/* Marks the files that this process has mapped. */
static void find_mapped(const char *root, const char *process, void *all)
{
    if (process[0] < '1' || process[0] > '9') return;
    Left *left = all;
    char *name = mem_format("%s/proc/%s/maps", root, process), *line = NULL;
    size_t room = 0;
    FILE *file = fopen(name, "re");
    while (file && getline(&line, &room, file) > 0)
        for (int i = 0; i < left->count; ++i)
            if (strstr(line, left->path[i])) left->used[i] = true;
    if (file) fclose(file);
    free(line);
    mem_free(&name);
}

static void measure(Doctor *d, void *mine)
{
    if (!d->leads) return;
    Left left = {0};
    Stale *stale = mine;
    doctor_each(d->options->root, "/dev/shm", add_old_file, &left);
    if (left.count > 0) doctor_each(d->options->root, "/proc", find_mapped, &left);
    for (int i = 0; i < left.count; ++i) {
        if (!left.used[i]) {
            if (stale->count == 0) snprintf(stale->name, sizeof stale->name, "%s", left.path[i]);
            ++stale->count;
            stale->bytes += left.bytes[i];
        }
        mem_free(&left.path[i]);
    }
}

static void judge(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Stale *stale = all;
    char text[16];
    report_summary(report, "nothing left of earlier jobs");
    for (int r = 0; r < a->ranks; ++r)
        if (stale[r].count > (int)check->threshold)
            report_host(report, SEVERITY_WARN, r, "rm, once no job of yours is left there",
                        "%d file%s of earlier jobs, or more, %s, %s is one", stale[r].count,
                        stale[r].count == 1 ? "" : "s", text_bytes(stale[r].bytes, text),
                        stale[r].name);
}

const Check check_stale = {
    .name = "left in /dev/shm",
    .what = "files that no process uses",
    .threshold = 0,
    .limit_s = 4,
    .bytes = sizeof(Stale),
    .measure = measure,
    .judge = judge,
};
