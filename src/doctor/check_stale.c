/* What jobs that died have left in /dev/shm: it takes memory, and a new job's name may be taken.
 * Named, never removed: a process of another container may use it. */
#include "figures.h"
#include "private.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_of_mpi(const char *name)
{
    static const char *const begins[] = {"vader_segment.", "sm_segment.", "open_mpi.", "nccl-"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; ++i)
        if (!strncmp(name, begins[i], strlen(begins[i]))) return true;
    return false;
}

/* Is a line of the process's maps about this file? */
static bool maps(const char *root, const char *process, const char *path)
{
    char *name = mem_format("%s/proc/%s/maps", root, process), *line = NULL;
    size_t room = 0;
    FILE *file = fopen(name, "re");
    bool found = false;
    while (file && !found && getline(&line, &room, file) > 0) found = strstr(line, path) != NULL;
    if (file) fclose(file);
    free(line);
    mem_free(&name);
    return found;
}

static bool in_use(const char *root, const char *path)
{
    char *name = mem_format("%s/proc", root);
    DIR *folder = opendir(name);
    struct dirent *entry;
    bool used = false;
    while (folder && !used && (entry = readdir(folder)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            used = maps(root, entry->d_name, path);
    if (folder) closedir(folder);
    mem_free(&name);
    return used;
}

static void look_at(const char *root, const char *name, Stale *stale)
{
    /* a file that is being made is not mapped yet */
    enum { YOUNG_S = 60, LOOKED_AT = 16 };
    struct stat st;
    char *path = mem_format("%s/dev/shm/%s", root, name);
    if (stale->count < LOOKED_AT && lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
        st.st_uid == geteuid() && time(NULL) - st.st_mtime > YOUNG_S && !in_use(root, path)) {
        if (stale->count == 0) snprintf(stale->name, sizeof stale->name, "%s", path);
        ++stale->count;
        stale->bytes += 512.0 * (double)st.st_blocks;
    }
    mem_free(&path);
}

static void measure(Doctor *d, void *mine)
{
    if (!d->leads) return;
    char *name = mem_format("%s/dev/shm", d->options->root);
    DIR *folder = opendir(name);
    struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (is_of_mpi(entry->d_name)) look_at(d->options->root, entry->d_name, mine);
    if (folder) closedir(folder);
    mem_free(&name);
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
