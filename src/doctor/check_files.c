/* The file system that runs will write to, as each node sees it. The calls are made in a separate
 * process (probe.c), which is left behind if it does not answer in time. */
#include "figures.h"
#include "private.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const double COMMAND_LIMIT_S = 6;

/* Runs `weft doctor --probe TASK:NAME`. out: what it printed. Returns its exit code as
 * command_output does. */
static int run_probe(const Doctor *d, const char *task, const char *name, double limit_s, char *out,
                     size_t room)
{
    char *words[] = {"/proc/self/exe", "doctor", "--probe", NULL, (char *)d->options->folder, NULL};
    words[3] = mem_format("%s:%s", task, name);
    int code = command_output(words, limit_s, out, room);
    mem_free(&words[3]);
    return code;
}

/* ---- measuring ---- */

static void read_line(Files *f, const char *line)
{
    static const struct {
        const char *name;
        size_t at;
    } numbers[] = {{"free_bytes", offsetof(Files, free_bytes)},
                   {"inodes", offsetof(Files, inodes)},
                   {"free_inodes", offsetof(Files, free_inodes)},
                   {"sync_s", offsetof(Files, sync_s)},
                   {"write_bytes_per_s", offsetof(Files, write_bytes_per_s)},
                   {"read_bytes_per_s", offsetof(Files, read_bytes_per_s)}};
    static const struct {
        const char *name;
        size_t at;
    } errors[] = {{"open_error", offsetof(Files, open_error)},
                  {"write_error", offsetof(Files, write_error)},
                  {"flock_error", offsetof(Files, flock_error)},
                  {"fcntl_error", offsetof(Files, fcntl_error)}};
    char name[NAME_BYTES], value[NAME_BYTES];
    if (!strncmp(line, "above ", 6)) snprintf(f->above, sizeof f->above, "%s", line + 6);
    if (sscanf(line, "%47s %47s", name, value) != 2) return;
    if (!strcmp(name, "at")) snprintf(f->at, sizeof f->at, "%s", value);
    if (!strcmp(name, "type")) snprintf(f->type, sizeof f->type, "%s", value);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        if (!strcmp(name, numbers[i].name))
            *(double *)(void *)((char *)f + numbers[i].at) = strtod(value, NULL);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
        if (!strcmp(name, errors[i].name))
            *(int *)(void *)((char *)f + errors[i].at) = (int)strtol(value, NULL, 10);
}

static void measure(Doctor *d, void *mine)
{
    Files *f = mine;
    char text[2048], *rest = NULL;
    if (!d->leads) return;
    int code = run_probe(d, "files", "all", COMMAND_LIMIT_S, text, sizeof text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        read_line(f, line);
    f->measured = true;
    f->answered = code == 0 && !strcmp(f->at, "end");
    d->folder_silent = code == COMMAND_SILENT;
}

/* ---- judging ---- */

static const char *cure_of(int error)
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

static void judge(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Files *f = all;
    report_summary(report, "%s", f->type);
    if (*f->above)
        report_summary(report,
                       "%s; the folder does not exist: checked %s, where train would create it",
                       f->type, f->above);
    for (int r = 0; r < a->ranks; ++r) {
        int error = f[r].open_error ? f[r].open_error : f[r].write_error;
        if (!f[r].measured) continue;
        if (!f[r].answered)
            report_host(report, SEVERITY_FATAL, r, "df DIR; dmesg | grep -i -e nfs -e lustre",
                        "no answer within %.0f s, at %s", check->threshold,
                        *f[r].at ? f[r].at : "its beginning");
        else if (f[r].open_error && *f[r].above)
            report_host(report, SEVERITY_FATAL, r, cure_of(error),
                        "cannot make the folder in %s: %s", f[r].above, strerror(error));
        else if (error)
            report_host(report, SEVERITY_FATAL, r, cure_of(error), "cannot %s: %s",
                        f[r].open_error ? "make a file" : "write", strerror(error));
        else if (strcmp(f[r].type, f->type) != 0)
            report_host(report, SEVERITY_WARN, r, "one shared folder for all nodes",
                        "the folder is on %s, the first node's on %s", f[r].type, f->type);
    }
}

/* True if the probe of this rank has measured something. */
static bool has_numbers(const Files *f)
{
    return f->measured && f->answered && !f->open_error;
}

static void judge_space(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Files *f = all;
    double least = -1;
    char text[2][16];
    text_bytes(a->checkpoint_bytes, text[1]);
    for (int r = 0; r < a->ranks; ++r) {
        double room = f[r].free_bytes / a->checkpoint_bytes;
        if (!has_numbers(&f[r])) continue;
        if (least < 0 || f[r].free_bytes < least) least = f[r].free_bytes;
        if (room < check->threshold)
            report_host(report, room < 1 ? SEVERITY_FATAL : SEVERITY_WARN, r,
                        "df -h DIR; checkpoint.keep=1; another folder",
                        "%s free, less than %s of %s", text_bytes(f[r].free_bytes, text[0]),
                        room < 1 ? "one checkpoint" : "three checkpoints", text[1]);
    }
    if (least >= 0)
        report_summary(report, "%s free", text_bytes(least, text[0]));
    else
        report_skip(report, "not measured");
}

static void judge_inodes(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Files *f = all;
    if (!has_numbers(f))
        report_skip(report, "not measured");
    else if (f->inodes > 0)
        report_summary(report, "%.0f files more", f->free_inodes);
    else
        report_summary(report, "no limit");
    for (int r = 0; r < a->ranks; ++r)
        if (has_numbers(&f[r]) && f[r].inodes > 0 && f[r].free_inodes < check->threshold)
            report_host(report, SEVERITY_WARN, r, "df -i DIR; remove small files",
                        "%.0f files more, of %.0f", f[r].free_inodes, f[r].inodes);
}

/* HDF5 locks the files that it opens; a run's own lease needs no locks. */
static void judge_locks(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Files *f = all;
    (void)check;
    /* locks are tried after the syncs */
    if (has_numbers(f) && f->sync_s > 0)
        report_summary(report, "flock and fcntl");
    else
        report_skip(report, "not measured");
    for (int r = 0; r < a->ranks; ++r) {
        if (!has_numbers(&f[r])) continue;
        if (f[r].flock_error)
            report_host(report, SEVERITY_WARN, r,
                        "export HDF5_USE_FILE_LOCKING=FALSE; mount option flock (Lustre)",
                        "flock: %s: HDF5 may refuse to open files", strerror(f[r].flock_error));
        if (f[r].fcntl_error)
            report_host(report, SEVERITY_WARN, r, "the NFS lock service (rpc.statd)",
                        "fcntl: %s: other programs that lock files may fail",
                        strerror(f[r].fcntl_error));
    }
}

static void judge_sync(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Files *f = all;
    double most = 0;
    for (int r = 0; r < a->ranks; ++r) {
        if (f[r].sync_s > most) most = f[r].sync_s;
        if (f[r].sync_s > check->threshold)
            report_host(report, SEVERITY_WARN, r, "checkpoint.every_s=600; a faster file system",
                        "%.0f ms for each sync: a save has many", 1e3 * f[r].sync_s);
    }
    if (most > 0)
        report_summary(report, "%.2g ms", 1e3 * most);
    else
        report_skip(report, "not measured");
}

/* Judges the rate at `offset`: below the threshold, or far below the other nodes' median. */
static void judge_rate(const Check *check, const Allocation *a, const void *all, size_t offset,
                       const char *cure, Report *report)
{
    static const double SHARE = 0.5;
    const Files *f = all;
    double middle = median_of_nodes(a, all, sizeof *f, offset);
    for (int r = 0; r < a->ranks; ++r) {
        double rate;
        memcpy(&rate, (const char *)&f[r] + offset, sizeof rate);
        if (rate == 0) continue;
        if (rate < check->threshold)
            report_host(report, SEVERITY_WARN, r, cure, "%.1f MB/s", 1e-6 * rate);
        else if (rate < SHARE * middle)
            report_host(report, SEVERITY_WARN, r, cure, "%.0f MB/s, the median of nodes is %.0f",
                        1e-6 * rate, 1e-6 * middle);
    }
    if (middle > 0)
        report_summary(report, "%.0f MB/s a node%s", 1e-6 * middle,
                       a->nodes > 1 ? ", all at once" : "");
    else
        report_skip(report, "not measured");
}

static void judge_write(const Check *check, const Allocation *a, const void *all, Report *report)
{
    judge_rate(check, a, all, offsetof(Files, write_bytes_per_s),
               "checkpoint.every_s=600; lfs setstripe -c 8 DIR; another folder", report);
}

static void judge_read(const Check *check, const Allocation *a, const void *all, Report *report)
{
    judge_rate(check, a, all, offsetof(Files, read_bytes_per_s),
               "data on the node's own disk ($TMPDIR); another folder", report);
}

const Check check_files = {
    .name = "file system",
    .what = "seconds per response",
    .threshold = COMMAND_LIMIT_S,
    .limit_s = 10,
    .bytes = sizeof(Files),
    .measure = measure,
    .judge = judge,
};
const Check check_space = {.name = "space",
                           .what = "number of checkpoints",
                           .threshold = 3,
                           .bytes = sizeof(Files),
                           .judge = judge_space};
const Check check_inodes = {.name = "inodes",
                            .what = "additional files",
                            .threshold = 1000,
                            .bytes = sizeof(Files),
                            .judge = judge_inodes};
const Check check_locks = {.name = "file locks",
                           .what = "kinds of lock that fail",
                           .threshold = 0,
                           .bytes = sizeof(Files),
                           .judge = judge_locks};
const Check check_sync = {.name = "sync time",
                          .what = "seconds",
                          .threshold = 0.05,
                          .bytes = sizeof(Files),
                          .judge = judge_sync};
const Check check_write = {.name = "write rate",
                           .what = "bytes per second",
                           .threshold = 20e6,
                           .bytes = sizeof(Files),
                           .judge = judge_write};
const Check check_read = {.name = "read rate",
                          .what = "bytes per second",
                          .threshold = 20e6,
                          .bytes = sizeof(Files),
                          .judge = judge_read};

/* ---- whether all nodes see the same folder ---- */

static bool probe_prints(const Doctor *d, const char *task, const char *name, const char *expected)
{
    char text[256];
    return !d->folder_silent && run_probe(d, task, name, COMMAND_LIMIT_S, text, sizeof text) == 0 &&
           strstr(text, expected) != NULL;
}

static void measure_shared(Doctor *d, void *mine)
{
    Shared *shared = mine;
    const World *leaders = &d->leaders;
    struct {
        char name[RANDOM_ID_BYTES];
        bool left;
    } first = {{0}, false};
    if (!d->leads || leaders->size == 1) return;
    if (leaders->rank == 0) {
        random_id(first.name);
        first.left = probe_prints(d, "leave", first.name, "left 1");
    }
    world_bcast(leaders, &first, sizeof first, 0);
    shared->must_be_found = first.left;
    shared->found =
        first.left && (leaders->rank == 0 || probe_prints(d, "find", first.name, "found 1"));
    world_barrier(leaders);
    if (leaders->rank == 0) probe_prints(d, "remove", first.name, "");
}

static void judge_shared(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Shared *s = all;
    if (a->nodes == 1 || s->must_be_found)
        report_summary(report, a->nodes == 1 ? "one node" : "by all nodes");
    else
        report_skip(report, "not measured");
    for (int r = 0; r < a->ranks; ++r)
        if (s[r].must_be_found && !s[r].found)
            report_host(report, SEVERITY_FATAL, r,
                        "a folder that all nodes share, by the same path; on NFS actimeo=3",
                        "a file of the first node, %s, is not visible after %.0f s",
                        a->place[0].host, check->threshold);
}

const Check check_shared = {
    .name = "shared folder",
    .what = "seconds until other hosts see a file",
    .threshold = 5,
    .limit_s = 14,
    .bytes = sizeof(Shared),
    .measure = measure_shared,
    .judge = judge_shared,
};
