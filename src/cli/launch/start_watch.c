/* Detects ranks that hang between their start and their first step. Nothing else detects them: MPI
 * waits for ever for a rank that is stopped, and the ranks' own watchdog begins later.
 *
 * The launcher knows ranks by their messages (watch.h). It finds ranks that have not sent a message
 * yet among mpirun's children. Ranks on other hosts send heartbeats. A rank makes progress when it
 * reports a stage, reads, writes, or touches memory for the first time. The launcher acts in two
 * cases:
 *   - A rank is stopped by a signal, or a rank on another host is silent, while other ranks run.
 *     The launcher names the rank, and kills it if it is on this host.
 *   - No rank makes progress for train.hang_s. The launcher kills all ranks of this host, and names
 *     all ranks, also those that have never reported. mpirun then ends the remaining ranks. */
#include "start_watch.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* shortest time between two checks */
static const double CHECK_S = 0.5;
/* time after which a stopped rank is reported */
static const double STOPPED_S = 4;
/* time without messages after which a rank on another host counts as stopped; long enough to unplug
 * and replug a cable */
static const double SILENT_S = 8;
/* longest time between two checks of a process that runs; after a longer one, this process must
 * have been suspended (the ranks' watchdog assumes the same) */
static const double CHECK_GAP_MAX_S = 3;
/* largest number of ranks that a message names */
enum { NAMED_MAX = 8 };

void start_watch_set_id(StartWatch *s, const char *folder, const char *id, int number)
{
    char run[RANDOM_ID_BYTES + 16];
    s->folder = folder;
    s->number = number;
    snprintf(s->id, sizeof s->id, "%s", id);
    snprintf(run, sizeof run, "%s:%d", id, number);
    setenv(LEASE_RUN, run, 1);
    /* may have been set by a weft run that started this process */
    unsetenv("WEFT_LOG_DIR");
}

void start_watch_init(StartWatch *s, double hang_s, const char *phase)
{
    StartWatch former = *s;
    *s = (StartWatch){.hang_s = hang_s,
                      .phase = phase,
                      .checked_s = clock_s(),
                      .progress_s = clock_s(),
                      .hosts = former.hosts,
                      .folder = former.folder,
                      .number = former.number};
    memcpy(s->id, former.id, sizeof s->id);
}

void start_watch_fini(StartWatch *s)
{
    mem_free(&s->rank);
}

bool start_is_over(const Watch *watch)
{
    for (int i = 0; i < watch->connected; ++i)
        if (watch->rank[i].fd >= 0 && watch->rank[i].stage != START_DONE) return false;
    return watch->connected > 0;
}

bool start_any_stepped(const Watch *watch)
{
    for (int i = 0; i < watch->connected; ++i)
        if (watch->rank[i].stage == START_DONE) return true;
    return false;
}

/* ---- finding ranks ---- */

/* Reads at most room - 1 bytes of the file /proc/PROCESS/NAME into text and adds a zero byte.
 * Returns the number of bytes read, 0 on failure. */
static size_t read_proc_file(pid_t process, const char *name, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    FILE *file = fopen(path, "re");
    size_t bytes = file ? fread(text, 1, room - 1, file) : 0;
    if (file) fclose(file);
    text[bytes] = 0;
    return bytes;
}

/* Reads /proc/PROCESS/stat. Returns the fields after the process name in brackets, borrowed from
 * text, or "". */
static const char *stat_fields(pid_t process, char *text, size_t room)
{
    read_proc_file(process, "stat", text, room);
    const char *end = strrchr(text, ')');
    return end ? end + 1 : "";
}

static bool is_child(pid_t process, pid_t parent)
{
    char text[1024];
    int parent_found;
    return sscanf(stat_fields(process, text, sizeof text), " %*c %d", &parent_found) == 1 &&
           parent_found == (int)parent;
}

/* Returns the rank that Open MPI has set in a process's environment, or -1 if there is none. */
static int rank_in_environment(pid_t process)
{
    static const char key[] = "OMPI_COMM_WORLD_RANK=";
    enum { ROOM = 128 << 10 };
    char *text = mem_new(ROOM);
    size_t bytes = read_proc_file(process, "environ", text, ROOM);
    int number = -1;
    for (const char *at = text; at < text + bytes; at += strlen(at) + 1)
        if (!strncmp(at, key, sizeof key - 1)) number = atoi(at + sizeof key - 1);
    mem_free(&text);
    return number;
}

static bool is_connected(const Watch *watch, pid_t process)
{
    for (int i = 0; i < watch->connected; ++i)
        if (watch->rank[i].process == process && !*watch->rank[i].host) return true;
    return false;
}

static void add(StartWatch *s, StartingRank rank)
{
    s->rank = mem_resize(s->rank, (size_t)(s->count + 1) * sizeof *s->rank);
    s->rank[s->count++] = rank;
}

/* Adds the ranks among the starter's children that have not connected yet. */
static void add_children(StartWatch *s, const Watch *watch, pid_t starter)
{
    DIR *folder = opendir("/proc");
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        pid_t process = (pid_t)atoi(entry->d_name);
        if (process <= 0 || is_connected(watch, process) || !is_child(process, starter)) continue;
        int number = rank_in_environment(process);
        if (number >= 0) add(s, (StartingRank){.process = process, .number = number});
    }
    if (folder) closedir(folder);
}

/* Makes a new list, s->rank, of the ranks that are alive. A rank that was in the old list keeps its
 * stopped_s. */
static void find_ranks(StartWatch *s, const Watch *watch, pid_t starter)
{
    StartingRank *before = s->rank;
    int count = s->count;
    s->rank = NULL;
    s->count = 0;
    for (int i = 0; i < watch->connected; ++i) {
        const WatchedRank *r = &watch->rank[i];
        bool is_remote = *r->host != 0;
        int number = r->number >= 0 || is_remote ? r->number : rank_in_environment(r->process);
        if (r->fd >= 0 && !r->ended)
            add(s, (StartingRank){.process = r->process,
                                  .number = number,
                                  .stage = r->stage,
                                  .remote = is_remote ? r : NULL});
    }
    if (watch->connected < watch->ranks) add_children(s, watch, starter);
    for (int i = 0; i < s->count; ++i)
        for (int k = 0; k < count; ++k)
            if (before[k].process == s->rank[i].process && before[k].remote == s->rank[i].remote)
                s->rank[i].stopped_s = before[k].stopped_s;
    mem_free(&before);
}

/* ---- the state of ranks ---- */

double process_work(pid_t process)
{
    char text[1024];
    unsigned long long read = 0, written = 0, from_disk = 0, minor = 0, major = 0;
    const char *at = read_proc_file(process, "io", text, sizeof text) ? text : NULL;
    const char *disk = at ? strstr(at, "read_bytes:") : NULL;
    if (!disk || sscanf(at, "rchar: %llu wchar: %llu", &read, &written) != 2 ||
        sscanf(disk, "read_bytes: %llu", &from_disk) != 1)
        return -1;
    at = stat_fields(process, text, sizeof text);
    if (sscanf(at, " %*c %*d %*d %*d %*d %*d %*u %llu %*u %llu", &minor, &major) != 2) return -1;
    return (double)read + (double)written + (double)from_disk + (double)minor + (double)major;
}

/* Returns whether a rank is stopped by a signal. A rank on another host counts as stopped if it has
 * not begun its first step and has been silent for SILENT_S. From the first step on, ranks watch
 * each other. */
static bool is_stopped(const StartWatch *s, const StartingRank *r, double now_s)
{
    if (!r->remote) return process_state(r->process) == 'T';
    double silent_from_s =
        r->remote->received_s > s->resumed_s ? r->remote->received_s : s->resumed_s;
    return r->stage != START_DONE && now_s - silent_from_s >= SILENT_S;
}

/* Returns whether any rank has made progress since the last check, or whether this is not known. */
static bool any_progress(StartWatch *s, const Watch *watch, double now_s)
{
    double sum = 0;
    bool known = true;
    if (s->count == 0) return watch->last_message_s > s->progress_s;
    for (int i = 0; s->computes && i < s->count; ++i)
        if (!is_stopped(s, &s->rank[i], now_s)) return true;
    if (s->computes) return false;
    for (int i = 0; i < s->count && known; ++i) {
        const StartingRank *r = &s->rank[i];
        double work = r->remote ? r->remote->work : process_work(r->process);
        known = work >= 0;
        sum += work;
    }
    bool progress = !known || sum != s->work || watch->last_message_s > s->progress_s;
    s->work = sum;
    return progress;
}

/* Sets stopped_s of all ranks. Returns whether a rank has been stopped for STOPPED_S while another
 * rank runs. If all ranks are stopped, the user has suspended the job, and the times are reset. */
static bool any_stopped(StartWatch *s, double now_s)
{
    int count = 0;
    bool any_long = false;
    for (int i = 0; i < s->count; ++i) {
        StartingRank *r = &s->rank[i];
        bool stopped = is_stopped(s, r, now_s);
        r->stopped_s = !stopped ? 0 : r->stopped_s > 0 ? r->stopped_s : now_s;
        count += stopped;
        any_long = any_long || (stopped && now_s - r->stopped_s >= STOPPED_S);
    }
    if (count < s->count) return any_long;
    for (int i = 0; i < s->count; ++i) s->rank[i].stopped_s = 0;
    return false;
}

/* ---- messages and the end of ranks ---- */

/* Returns text such as "rank 1 on n1 (process 17) is in MPI_Init". The caller owns it. */
static char *state_text(const StartingRank *r)
{
    static const char *const at[] = {
        [START_PROGRAM] = "has not reached MPI_Init",
        [START_MPI] = "is in MPI_Init",
        [START_NODE] = "is finding the other ranks of its host",
        [START_SET_UP] = "has passed MPI_Init",
        [START_DONE] = "has begun its first step",
    };
    char host[256], rank[32] = "a rank", stopped[96] = "";
    host_name(host, sizeof host);
    if (r->number >= 0) snprintf(rank, sizeof rank, "rank %d", r->number);
    if (r->stopped_s > 0 && r->remote)
        snprintf(stopped, sizeof stopped, "is stopped, or its host is (silent for %.0f s): it ",
                 clock_s() - r->remote->received_s);
    else if (r->stopped_s > 0)
        snprintf(stopped, sizeof stopped, "is stopped by a signal: it ");
    return mem_format("%s on %s (process %d) %s%s", rank, r->remote ? r->remote->host : host,
                      (int)r->process, stopped, at[r->stage]);
}

/* Returns "TEXT: MORE" or, if `named` is above 1, "TEXT; MORE". named: number of ranks named in the
 * result. The caller owns the result. Frees `text` and `more`. */
static char *join(char *text, int named, char *more)
{
    char *longer = mem_format("%s%s %s", text, named > 1 ? ";" : ":", more);
    mem_free(&more);
    mem_free(&text);
    return longer;
}

/* Returns text such as "rank 1 on n2 has not reported". The caller owns it. */
static char *missing_text(const StartWatch *s, int number)
{
    int first = 0, i = 0;
    while (s->hosts && i < s->hosts->count && number >= first + s->hosts->host[i].ranks)
        first += s->hosts->host[i++].ranks;
    bool known = s->hosts && i < s->hosts->count;
    return mem_format("rank %d%s%s has not reported", number, known ? " on " : "",
                      known ? s->hosts->host[i].name : "");
}

/* Kills all ranks of this host, or only the stopped ones (only_stopped). Returns text such as
 * "PROBLEM: rank 1 on n1 (process 17) is in MPI_Init; ...", which the caller owns. It names all
 * known ranks, or only the stopped ones, also those on other hosts. If only_stopped is false, it
 * also names the ranks that have not reported. At most NAMED_MAX ranks are named. */
static char *kill_ranks(const StartWatch *s, const Watch *watch, const char *problem,
                        bool only_stopped)
{
    char *text = mem_text(problem);
    bool *found = mem_new((size_t)watch->ranks * sizeof *found);
    int named = 0;
    for (int i = 0; i < s->count; ++i) {
        const StartingRank *r = &s->rank[i];
        if (r->number >= 0 && r->number < watch->ranks) found[r->number] = true;
        if (only_stopped && r->stopped_s == 0) continue;
        if (++named <= NAMED_MAX) text = join(text, named, state_text(r));
        if (!r->remote) kill(r->process, SIGKILL);
    }
    for (int i = 0; !only_stopped && i < watch->ranks; ++i)
        if (!found[i] && ++named <= NAMED_MAX) text = join(text, named, missing_text(s, i));
    mem_free(&found);
    if (named <= NAMED_MAX) return text;
    return join(text, named, mem_format("and %d more", named - NAMED_MAX));
}

/* Returns whether a rank of this start has taken the run's folder, which rank 0 does soon after
 * MPI_Init. The result is also true if the folder's lease cannot be read. */
static bool has_owner(const StartWatch *s)
{
    return s->folder && lease_start_state(s->folder, s->id, s->number) != LEASE_START_NOT_OWNER;
}

char *start_watch_check(StartWatch *s, const Watch *watch, pid_t starter)
{
    double now_s = clock_s(), gap_s = now_s - s->checked_s;
    char problem[128];
    if (gap_s < CHECK_S) return NULL;
    s->checked_s = now_s;
    find_ranks(s, watch, starter);
    if (gap_s > CHECK_GAP_MAX_S) {
        for (int i = 0; i < s->count; ++i) s->rank[i].stopped_s = 0;
        s->resumed_s = now_s;
    }
    if (any_progress(s, watch, now_s) || gap_s > CHECK_GAP_MAX_S) s->progress_s = now_s;
    if (any_stopped(s, now_s)) return kill_ranks(s, watch, s->phase, true);
    if (s->hang_s <= 0 || now_s - s->progress_s < s->hang_s) return NULL;
    if (s->count == 0 && has_owner(s)) return NULL;
    snprintf(problem, sizeof problem, "%s %s for %.0f s (train.hang_s)%s",
             s->count == 0 ? "while ranks start" : s->phase,
             s->computes && s->count > 0 ? "all have been stopped" : "none has made progress",
             now_s - s->progress_s, s->count == 0 ? ": no rank has reported" : "");
    return s->count == 0 && !s->hosts ? mem_text(problem) : kill_ranks(s, watch, problem, false);
}
