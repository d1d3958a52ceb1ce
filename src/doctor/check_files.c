/* Checks the folder that runs will write to and its file system, on each node. The calls are made
 * in a separate process (probe.c), which is left behind if it does not answer in time. */
#include "measurements.h"
#include "private.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* time limit of a probe, that is, of a process `weft doctor --probe` */
static const double PROBE_LIMIT_S = 6;

/* Runs `weft doctor --probe TASK:NAME FOLDER`. out: receives as much of the probe's output as fits
 * into `bytes` bytes. Returns the probe's exit code, or COMMAND_TIMED_OUT or COMMAND_NONE
 * (command_output). */
static int run_probe(const Doctor *d, const char *task, const char *name, char *out, size_t bytes)
{
    char *words[] = {"/proc/self/exe", "doctor", "--probe", NULL, (char *)d->options->folder, NULL};
    words[3] = mem_format("%s:%s", task, name);
    int code = command_output(words, PROBE_LIMIT_S, out, bytes);
    mem_free(&words[3]);
    return code;
}

/* ---- measuring ---- */

/* Reads a line of the probe's output, "NAME VALUE", and sets the field of *f with that name. */
static void read_line(FolderTest *f, const char *line)
{
    static const struct {
        const char *name;
        size_t offset;
    } numbers[] = {{"free_bytes", offsetof(FolderTest, free_bytes)},
                   {"inodes", offsetof(FolderTest, inodes)},
                   {"free_inodes", offsetof(FolderTest, free_inodes)},
                   {"sync_s", offsetof(FolderTest, sync_s)},
                   {"write_bytes_per_s", offsetof(FolderTest, write_bytes_per_s)},
                   {"read_bytes_per_s", offsetof(FolderTest, read_bytes_per_s)}};
    static const struct {
        const char *name;
        size_t offset;
    } errors[] = {{"open_error", offsetof(FolderTest, open_error)},
                  {"write_error", offsetof(FolderTest, write_error)},
                  {"read_error", offsetof(FolderTest, read_error)},
                  {"flock_error", offsetof(FolderTest, flock_error)},
                  {"fcntl_error", offsetof(FolderTest, fcntl_error)},
                  {"space_error", offsetof(FolderTest, space_error)}};
    char name[NAME_BYTES], value[NAME_BYTES];
    /* the value of "above" is a path, which may contain blanks, so sscanf cannot read it */
    if (!strncmp(line, "above ", 6))
        snprintf(f->existing_parent, sizeof f->existing_parent, "%s", line + 6);
    if (sscanf(line, "%47s %47s", name, value) != 2) return;
    if (!strcmp(name, "at")) snprintf(f->last_call, sizeof f->last_call, "%s", value);
    if (!strcmp(name, "type")) snprintf(f->type, sizeof f->type, "%s", value);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        if (!strcmp(name, numbers[i].name))
            *(double *)(void *)((char *)f + numbers[i].offset) = strtod(value, NULL);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
        if (!strcmp(name, errors[i].name))
            *(int *)(void *)((char *)f + errors[i].offset) = (int)strtol(value, NULL, 10);
}

static void measure(Doctor *d, void *mine)
{
    FolderTest *f = mine;
    char text[2048], *rest = NULL;
    if (!d->is_leader) return;
    int code = run_probe(d, "folder", "all", text, sizeof text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        read_line(f, line);
    f->tested = true;
    f->not_started = code == COMMAND_NONE;
    f->answered = code == 0 && !strcmp(f->last_call, "end");
    d->folder_timed_out = code == COMMAND_TIMED_OUT;
}

/* ---- judging ---- */

static const char *error_remedy(int error)
{
    switch (error) {
    case ENOENT:
        return "mkdir -p, or another folder";
    case ENOTDIR:
        return "a folder";
    case EROFS:
        return "mount; another folder: file systems of compute nodes may be read-only";
    case EACCES:
    case EPERM:
        return "ls -ld; another folder";
    case EDQUOT:
        return "quota -s; lfs quota -h DIR; remove what is not needed";
    case ENOSPC:
        return "df -h DIR; df -i DIR; remove what is not needed";
    default:
        return "dmesg | tail; another folder";
    }
}

/* Returns the errno of the first call that failed, and sets *verb to the purpose of that call.
 * Returns 0 if no call failed. */
static int first_error(const FolderTest *f, const char **verb)
{
    *verb = f->open_error ? "make a file" : f->write_error ? "write" : "read";
    return f->open_error ? f->open_error : f->write_error ? f->write_error : f->read_error;
}

static void judge(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const FolderTest *f = all;
    report_set_summary(report, "%s", f[0].type);
    if (*f[0].existing_parent)
        report_set_summary(report,
                           "%s; the folder does not exist: checked %s, where train would create it",
                           f[0].type, f[0].existing_parent);
    for (int r = 0; r < a->ranks; ++r) {
        const char *verb;
        int error = first_error(&f[r], &verb);
        if (!f[r].tested) continue;
        if (f[r].not_started)
            report_add_host(report, SEVERITY_FATAL, r, "ulimit -a; free; /proc must be mounted",
                            "the process that tests the folder cannot be started");
        else if (!f[r].answered)
            report_add_host(report, SEVERITY_FATAL, r, "df DIR; dmesg | grep -i -e nfs -e lustre",
                            "no answer within %.0f s, at %s", check->threshold,
                            *f[r].last_call ? f[r].last_call : "its beginning");
        else if (f[r].open_error && *f[r].existing_parent)
            report_add_host(report, SEVERITY_FATAL, r, error_remedy(error),
                            "cannot make the folder in %s: %s", f[r].existing_parent,
                            strerror(error));
        else if (error)
            report_add_host(report, SEVERITY_FATAL, r, error_remedy(error), "cannot %s: %s", verb,
                            strerror(error));
        else if (f[r].space_error)
            report_add_host(report, SEVERITY_WARN, r, "df DIR",
                            "the free space is not known: statfs: %s", strerror(f[r].space_error));
        else if (!f[0].space_error && strcmp(f[r].type, f[0].type) != 0)
            report_add_host(report, SEVERITY_WARN, r, "one shared folder for all nodes",
                            "the folder is on %s, the first node's on %s", f[r].type, f[0].type);
    }
}

/* Returns whether the probe of this rank came to its end and could make its test file. */
static bool has_numbers(const FolderTest *f)
{
    return f->tested && f->answered && !f->open_error;
}

/* Returns whether free space and inodes are known, too. */
static bool has_space(const FolderTest *f)
{
    return has_numbers(f) && !f->space_error;
}

static void judge_space(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const FolderTest *f = all;
    double smallest = -1;
    char text[2][16];
    text_bytes(a->checkpoint_bytes, text[1]);
    for (int r = 0; r < a->ranks; ++r) {
        double checkpoints = f[r].free_bytes / a->checkpoint_bytes;
        if (!has_space(&f[r])) continue;
        if (smallest < 0 || f[r].free_bytes < smallest) smallest = f[r].free_bytes;
        if (checkpoints < check->threshold)
            report_add_host(
                report, checkpoints < 1 ? SEVERITY_FATAL : SEVERITY_WARN, r,
                "df -h DIR; checkpoint.keep=1; another folder",
                "%s free, less than %.0f checkpoint%s of %s", text_bytes(f[r].free_bytes, text[0]),
                checkpoints < 1 ? 1 : check->threshold, checkpoints < 1 ? "" : "s", text[1]);
    }
    if (smallest >= 0)
        report_set_summary(report, "%s free", text_bytes(smallest, text[0]));
    else
        report_skip(report, "not measured");
}

static void judge_inodes(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const FolderTest *f = all;
    if (!has_space(&f[0]))
        report_skip(report, "not measured");
    else if (f[0].inodes > 0)
        report_set_summary(report, "room for %.0f more files", f[0].free_inodes);
    else
        report_set_summary(report, "no limit");
    for (int r = 0; r < a->ranks; ++r)
        if (has_space(&f[r]) && f[r].inodes > 0 && f[r].free_inodes < check->threshold)
            report_add_host(report, SEVERITY_WARN, r, "df -i DIR; remove small files",
                            "room for %.0f more files, of %.0f", f[r].free_inodes, f[r].inodes);
}

/* Judges the locks of flock and fcntl. HDF5 uses flock to lock each file that it opens. The lease
 * of a run's folder needs no such locks. */
static void judge_locks(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const FolderTest *f = all;
    (void)check;
    /* the probe tries the locks after the syncs: without a sync time, it has not tried them */
    if (has_numbers(&f[0]) && f[0].sync_s > 0)
        report_set_summary(report, "flock and fcntl");
    else
        report_skip(report, "not measured");
    for (int r = 0; r < a->ranks; ++r) {
        if (!has_numbers(&f[r])) continue;
        if (f[r].flock_error)
            report_add_host(report, SEVERITY_WARN, r,
                            "export HDF5_USE_FILE_LOCKING=FALSE; mount option flock (Lustre)",
                            "flock: %s: HDF5 may refuse to open files", strerror(f[r].flock_error));
        if (f[r].fcntl_error)
            report_add_host(report, SEVERITY_WARN, r, "the NFS lock service (rpc.statd)",
                            "fcntl: %s: other programs that lock files may fail",
                            strerror(f[r].fcntl_error));
    }
}

static void judge_sync(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const FolderTest *f = all;
    double longest_s = 0;
    for (int r = 0; r < a->ranks; ++r) {
        if (f[r].sync_s > longest_s) longest_s = f[r].sync_s;
        if (f[r].sync_s > check->threshold)
            report_add_host(report, SEVERITY_WARN, r,
                            "checkpoint.every_s=600; a faster file system",
                            "%.0f ms for each sync: a checkpoint needs several", 1e3 * f[r].sync_s);
    }
    if (longest_s > 0)
        report_set_summary(report, "%.2g ms", 1e3 * longest_s);
    else
        report_skip(report, "not measured");
}

/* Judges a rate in bytes per second. Warns if the rate is below the threshold, or below half of the
 * nodes' median. offset: place of the rate in FolderTest. */
static void judge_rate(const Check *check, const Allocation *a, const void *all, size_t offset,
                       const char *remedy, Report *report)
{
    static const double MEDIAN_FRACTION = 0.5;
    const FolderTest *f = all;
    double median_rate = median_of_nodes(a, all, sizeof *f, offset);
    for (int r = 0; r < a->ranks; ++r) {
        double rate;
        memcpy(&rate, (const char *)&f[r] + offset, sizeof rate);
        if (rate == 0) continue;
        if (rate < check->threshold)
            report_add_host(report, SEVERITY_WARN, r, remedy, "%.1f MB/s", 1e-6 * rate);
        else if (rate < MEDIAN_FRACTION * median_rate)
            report_add_host(report, SEVERITY_WARN, r, remedy,
                            "%.0f MB/s, the median of nodes is %.0f", 1e-6 * rate,
                            1e-6 * median_rate);
    }
    if (median_rate > 0)
        report_set_summary(report, "%.0f MB/s a node%s", 1e-6 * median_rate,
                           a->nodes > 1 ? ", all at once" : "");
    else
        report_skip(report, "not measured");
}

static void judge_write(const Check *check, const Allocation *a, const void *all, Report *report)
{
    judge_rate(check, a, all, offsetof(FolderTest, write_bytes_per_s),
               "checkpoint.every_s=600; lfs setstripe -c 8 DIR; another folder", report);
}

static void judge_read(const Check *check, const Allocation *a, const void *all, Report *report)
{
    judge_rate(check, a, all, offsetof(FolderTest, read_bytes_per_s),
               "data on the node's own disk ($TMPDIR); another folder", report);
}

const Check check_files = {
    .name = "file system",
    .threshold_meaning = "seconds per response",
    .threshold = PROBE_LIMIT_S,
    .limit_s = 10,
    .bytes = sizeof(FolderTest),
    .measure = measure,
    .judge = judge,
};
const Check check_space = {.name = "space",
                           .threshold_meaning = "number of checkpoints",
                           .threshold = 3,
                           .bytes = sizeof(FolderTest),
                           .judge = judge_space};
const Check check_inodes = {.name = "inodes",
                            .threshold_meaning = "additional files",
                            .threshold = 1000,
                            .bytes = sizeof(FolderTest),
                            .judge = judge_inodes};
const Check check_locks = {.name = "file locks",
                           .threshold_meaning = "kinds of lock that fail",
                           .threshold = 0,
                           .bytes = sizeof(FolderTest),
                           .judge = judge_locks};
const Check check_sync = {.name = "sync time",
                          .threshold_meaning = "seconds",
                          .threshold = 0.05,
                          .bytes = sizeof(FolderTest),
                          .judge = judge_sync};
const Check check_write = {.name = "write rate",
                           .threshold_meaning = "bytes per second",
                           .threshold = 20e6,
                           .bytes = sizeof(FolderTest),
                           .judge = judge_write};
const Check check_read = {.name = "read rate",
                          .threshold_meaning = "bytes per second",
                          .threshold = 20e6,
                          .bytes = sizeof(FolderTest),
                          .judge = judge_read};

/* ---- whether all nodes see the same folder ---- */

/* Runs a task of the probe. Returns whether the task succeeded and its output contains `expected`.
 * If the test of the folder did not end in time, it returns false without running the task. */
static bool probe_prints(const Doctor *d, const char *task, const char *name, const char *expected)
{
    char text[256];
    return !d->folder_timed_out && run_probe(d, task, name, text, sizeof text) == 0 &&
           strstr(text, expected) != NULL;
}

/* The first node makes a file in the folder, the others look for it, and the first removes it. */
static void measure_shared(Doctor *d, void *mine)
{
    SharedFile *shared = mine;
    const World *leaders = &d->leaders;
    struct {
        char name[RANDOM_ID_BYTES];
        bool exists;
    } file = {{0}, false};
    if (!d->is_leader || leaders->size == 1) return;
    if (leaders->rank == 0) {
        random_id(file.name);
        file.exists = probe_prints(d, "make", file.name, "made 1");
    }
    world_bcast(leaders, &file, sizeof file, 0);
    shared->expected = file.exists;
    shared->found =
        file.exists && (leaders->rank == 0 || probe_prints(d, "find", file.name, "found 1"));
    world_barrier(leaders);
    if (leaders->rank == 0) probe_prints(d, "remove", file.name, "");
}

static void judge_shared(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const SharedFile *s = all;
    if (a->nodes == 1 || s->expected)
        report_set_summary(report, a->nodes == 1 ? "one node" : "by all nodes");
    else
        report_skip(report, "not measured");
    for (int r = 0; r < a->ranks; ++r)
        if (s[r].expected && !s[r].found)
            report_add_host(report, SEVERITY_FATAL, r,
                            "a folder that all nodes share, by the same path; on NFS actimeo=3",
                            "a file of the first node, %s, is not visible after %.0f s",
                            a->place[0].host, check->threshold);
}

const Check check_shared = {
    .name = "shared folder",
    .threshold_meaning = "seconds until other hosts see a file",
    .threshold = 5,
    .limit_s = 14,
    .bytes = sizeof(SharedFile),
    .measure = measure_shared,
    .judge = judge_shared,
};
