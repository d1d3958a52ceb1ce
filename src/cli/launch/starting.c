/* The launcher watches ranks between their start and their first step, because nothing else does:
 * MPI waits forever for a rank that is stopped, and the ranks' own watchdog begins later. The
 * launcher knows ranks by the messages they send (watch.h); ranks that have sent nothing yet it
 * finds as mpirun's children. It names and kills a rank that is stopped by a signal while others
 * run, and all ranks if they make no progress for train.hang_s; mpirun then ends the rest. A rank
 * makes progress when it reports a stage, reads, writes, or touches memory for the first time.
 * Ranks on other hosts connect and give signs of life: one that is silent while others are not is
 * named, and so are those that have not reported at all when the time is over. */
#include "starting.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* CHECK_S: seconds between two looks. STOPPED_S: seconds after which a stopped rank is reported.
 * SILENT_S: silence after which a rank on another host counts as stopped; a cable may be out for a
 * few seconds. ASLEEP_S: a longer pause between two looks means that this process itself was
 * suspended, as in the ranks' watchdog. */
static const double CHECK_S = 0.5, STOPPED_S = 4, SILENT_S = 8, ASLEEP_S = 3;
enum { NAMED = 8 };

void starting_name(Starting *s, const char *folder, const char *id, int number)
{
    char run[RANDOM_ID_BYTES + 16];
    s->folder = folder;
    s->number = number;
    snprintf(s->id, sizeof s->id, "%s", id);
    snprintf(run, sizeof run, "%s:%d", id, number);
    setenv(LEASE_RUN, run, 1);
    /* this may be the folder of an outer weft run */
    unsetenv("WEFT_LOG_DIR");
}

void starting_init(Starting *s, double hang_s, const char *phase)
{
    Starting named = *s;
    *s = (Starting){.hang_s = hang_s,
                    .phase = phase,
                    .looked_s = clock_s(),
                    .going_s = clock_s(),
                    .hosts = named.hosts,
                    .folder = named.folder,
                    .number = named.number};
    memcpy(s->id, named.id, sizeof s->id);
}

void starting_fini(Starting *s)
{
    mem_free(&s->rank);
}

bool starting_is_over(const Watch *watch)
{
    for (int i = 0; i < watch->connected; ++i)
        if (watch->rank[i].file >= 0 && watch->rank[i].stage != START_DONE) return false;
    return watch->connected > 0;
}

bool starting_has_stepped(const Watch *watch)
{
    for (int i = 0; i < watch->connected; ++i)
        if (watch->rank[i].stage == START_DONE) return true;
    return false;
}

/* ---- finding ranks ---- */

/* Reads a small file of /proc/PID, at most room - 1 bytes; returns the number of bytes, 0 on
 * failure. */
static size_t read_proc(pid_t process, const char *name, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    FILE *file = fopen(path, "re");
    size_t bytes = file ? fread(text, 1, room - 1, file) : 0;
    if (file) fclose(file);
    text[bytes] = 0;
    return bytes;
}

/* Returns the fields of /proc/PID/stat after the process name in brackets. */
static const char *stat_fields(pid_t process, char *text, size_t room)
{
    read_proc(process, "stat", text, room);
    const char *end = strrchr(text, ')');
    return end ? end + 1 : "";
}

static bool is_child(pid_t process, pid_t parent)
{
    char text[1024];
    int its_parent;
    return sscanf(stat_fields(process, text, sizeof text), " %*c %d", &its_parent) == 1 &&
           its_parent == (int)parent;
}

/* Returns the rank number that Open MPI puts into a process's environment; -1: none. */
static int number_of(pid_t process)
{
    static const char key[] = "OMPI_COMM_WORLD_RANK=";
    enum { ROOM = 128 << 10 };
    char *text = mem_new(ROOM);
    size_t bytes = read_proc(process, "environ", text, ROOM);
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

static void add(Starting *s, StartingRank rank)
{
    s->rank = mem_resize(s->rank, (size_t)(s->count + 1) * sizeof *s->rank);
    s->rank[s->count++] = rank;
}

/* Adds mpirun's children that have not connected yet. */
static void add_children(Starting *s, const Watch *watch, pid_t starter)
{
    DIR *folder = opendir("/proc");
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        pid_t process = (pid_t)atoi(entry->d_name);
        if (process <= 0 || is_connected(watch, process) || !is_child(process, starter)) continue;
        int number = number_of(process);
        if (number >= 0) add(s, (StartingRank){.process = process, .number = number});
    }
    if (folder) closedir(folder);
}

/* Lists the ranks that are alive, and keeps stopped_s from the list of the last look. */
static void find_ranks(Starting *s, const Watch *watch, pid_t starter)
{
    StartingRank *before = s->rank;
    int count = s->count;
    s->rank = NULL;
    s->count = 0;
    for (int i = 0; i < watch->connected; ++i) {
        const WatchedRank *r = &watch->rank[i];
        bool elsewhere = *r->host != 0;
        int number = r->number >= 0 || elsewhere ? r->number : number_of(r->process);
        if (r->file >= 0 && !r->left)
            add(s, (StartingRank){r->process, number, r->stage, 0, elsewhere ? r : NULL});
    }
    if (watch->connected < watch->ranks) add_children(s, watch, starter);
    for (int i = 0; i < s->count; ++i)
        for (int k = 0; k < count; ++k)
            if (before[k].process == s->rank[i].process && before[k].remote == s->rank[i].remote)
                s->rank[i].stopped_s = before[k].stopped_s;
    mem_free(&before);
}

/* ---- their state ---- */

double starting_work(pid_t process)
{
    char text[1024];
    unsigned long long read = 0, written = 0, from_disk = 0, minor = 0, major = 0;
    const char *at = read_proc(process, "io", text, sizeof text) ? text : NULL;
    const char *disk = at ? strstr(at, "read_bytes:") : NULL;
    if (!disk || sscanf(at, "rchar: %llu wchar: %llu", &read, &written) != 2 ||
        sscanf(disk, "read_bytes: %llu", &from_disk) != 1)
        return -1;
    at = stat_fields(process, text, sizeof text);
    if (sscanf(at, " %*c %*d %*d %*d %*d %*d %*u %llu %*u %llu", &minor, &major) != 2) return -1;
    return (double)read + (double)written + (double)from_disk + (double)minor + (double)major;
}

/* Tells whether a rank is stopped. A rank on another host is, if it has been silent for SILENT_S.
 * From the first step on ranks watch each other. */
static bool is_stopped(const Starting *s, const StartingRank *r, double now_s)
{
    if (!r->remote) return process_state(r->process) == 'T';
    double heard_s = r->remote->heard_s > s->awake_s ? r->remote->heard_s : s->awake_s;
    return r->stage != START_DONE && now_s - heard_s >= SILENT_S;
}

static bool gets_on(Starting *s, const Watch *watch, double now_s)
{
    double sum = 0;
    bool known = true;
    if (s->count == 0) return watch->message_s > s->going_s;
    for (int i = 0; s->computes && i < s->count; ++i)
        if (!is_stopped(s, &s->rank[i], now_s)) return true;
    if (s->computes) return false;
    for (int i = 0; i < s->count && known; ++i) {
        const StartingRank *r = &s->rank[i];
        double work = r->remote ? r->remote->work : starting_work(r->process);
        known = work >= 0;
        sum += work;
    }
    bool on = !known || sum != s->work || watch->message_s > s->going_s;
    s->work = sum;
    return on;
}

/* Notes since when ranks have been stopped. Returns whether one of them has been stopped for
 * STOPPED_S. If all ranks are stopped, the whole job is suspended, and the times begin anew. */
static bool any_stopped(Starting *s, double now_s)
{
    int stopped = 0;
    bool long_ago = false;
    for (int i = 0; i < s->count; ++i) {
        StartingRank *r = &s->rank[i];
        bool is = is_stopped(s, r, now_s);
        r->stopped_s = !is ? 0 : r->stopped_s > 0 ? r->stopped_s : now_s;
        stopped += is;
        long_ago = long_ago || (is && now_s - r->stopped_s >= STOPPED_S);
    }
    if (stopped < s->count) return long_ago;
    for (int i = 0; i < s->count; ++i) s->rank[i].stopped_s = 0;
    return false;
}

/* ---- messages and the end of ranks ---- */

static char *state_text(const StartingRank *r)
{
    static const char *const at[] = {
        [START_PROGRAM] = "has not come to MPI_Init",
        [START_MPI] = "is in MPI_Init",
        [START_NODE] = "looks for the other ranks of its host",
        [START_SET_UP] = "is past MPI_Init",
        [START_DONE] = "waits for its first step",
    };
    char host[256], rank[32] = "a rank", stopped[96] = "";
    host_name(host, sizeof host);
    if (r->number >= 0) snprintf(rank, sizeof rank, "rank %d", r->number);
    if (r->stopped_s > 0 && r->remote)
        snprintf(stopped, sizeof stopped, "is stopped, or its host, for %.0f s: it ",
                 clock_s() - r->remote->heard_s);
    else if (r->stopped_s > 0)
        snprintf(stopped, sizeof stopped, "is stopped by a signal: it ");
    return mem_format("%s on %s (process %d) %s%s", rank, r->remote ? r->remote->host : host,
                      (int)r->process, stopped, at[r->stage]);
}

/* Returns "text: more", or "text; more" if it is not the first, and frees both. */
static char *joined(char *text, int named, char *more)
{
    char *longer = mem_format("%s%s %s", text, named > 1 ? ";" : ":", more);
    mem_free(&more);
    mem_free(&text);
    return longer;
}

static char *name_missing(const Starting *s, int number)
{
    int first = 0, i = 0;
    while (s->hosts && i < s->hosts->count && number >= first + s->hosts->host[i].ranks)
        first += s->hosts->host[i++].ranks;
    bool known = s->hosts && i < s->hosts->count;
    return mem_format("rank %d%s%s has not reported", number, known ? " on " : "",
                      known ? s->hosts->host[i].name : "");
}

/* Kills the ranks of this host that are stopped (`stopped`), or all. Returns "what: rank 1 on n1
 * (process 17) is in MPI_Init; ...", owned by the caller. Without `stopped` it also names ranks
 * that have not reported. */
static char *kill_ranks(const Starting *s, const Watch *watch, const char *what, bool stopped)
{
    char *text = mem_text(what);
    bool *found = mem_new((size_t)watch->ranks * sizeof *found);
    int named = 0;
    for (int i = 0; i < s->count; ++i) {
        const StartingRank *r = &s->rank[i];
        if (r->number >= 0 && r->number < watch->ranks) found[r->number] = true;
        if (stopped && r->stopped_s == 0) continue;
        if (++named <= NAMED) text = joined(text, named, state_text(r));
        if (!r->remote) kill(r->process, SIGKILL);
    }
    for (int i = 0; !stopped && i < watch->ranks; ++i)
        if (!found[i] && ++named <= NAMED) text = joined(text, named, name_missing(s, i));
    mem_free(&found);
    if (named <= NAMED) return text;
    return joined(text, named, mem_format("and %d more", named - NAMED));
}

/* Tells whether a rank of this start owns the run's folder, as it does soon after MPI_Init. */
static bool has_owner(const Starting *s)
{
    return s->folder && lease_start_state(s->folder, s->id, s->number) != LEASE_START_NOT_OWNER;
}

char *starting_check(Starting *s, const Watch *watch, pid_t starter)
{
    double now_s = clock_s(), pause_s = now_s - s->looked_s;
    char what[128];
    if (pause_s < CHECK_S) return NULL;
    s->looked_s = now_s;
    find_ranks(s, watch, starter);
    if (pause_s > ASLEEP_S) {
        for (int i = 0; i < s->count; ++i) s->rank[i].stopped_s = 0;
        s->awake_s = now_s;
    }
    if (gets_on(s, watch, now_s) || pause_s > ASLEEP_S) s->going_s = now_s;
    if (any_stopped(s, now_s)) return kill_ranks(s, watch, s->phase, true);
    if (s->hang_s <= 0 || now_s - s->going_s < s->hang_s) return NULL;
    if (s->count == 0 && has_owner(s)) return NULL;
    snprintf(what, sizeof what, "%s %s for %.0f s (train.hang_s)%s",
             s->count == 0 ? "while ranks start" : s->phase,
             s->computes && s->count > 0 ? "all have been stopped" : "none has made progress",
             now_s - s->going_s, s->count == 0 ? ": no rank has reported" : "");
    return s->count == 0 && !s->hosts ? mem_text(what) : kill_ranks(s, watch, what, false);
}
