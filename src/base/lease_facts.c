/* Collects, writes and reads the facts about the owner of a folder. They show that the owner has
 * ended if it has recorded its end, if its process on this host does not exist, if its batch system
 * no longer lists its job, or if it was an earlier start of the same weft run or job. */
#include "lease_facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- this process ---- */

/* Writes the scope in which this process's number is unique; "": unknown. */
static void find_process_scope(char *out)
{
    char boot[64] = "", space[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file) {
        if (fscanf(file, "%63s", boot) != 1) *boot = 0;
        fclose(file);
    }
    ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    space[length > 0 ? length : 0] = 0;
    *out = 0;
    if (*boot && *space) snprintf(out, LEASE_WORD, "%s %s", boot, space);
}

/* Copies those characters of text that are printable and need no escape in a JSON string. */
static void copy_word(char *out, size_t room, const char *text)
{
    size_t n = 0;
    for (; text && *text && n + 1 < room; ++text)
        if (*text > ' ' && *text < 0x7f && *text != '"' && *text != '\\') out[n++] = *text;
    out[n] = 0;
}

void lease_facts_of_process(LeaseFacts *f, double beat_s)
{
    char host[LEASE_WORD];
    const char *slurm = getenv("SLURM_JOB_ID"), *requeues = getenv("SLURM_RESTART_COUNT"),
               *run = getenv(LEASE_RUN);
    time_t now = time(NULL);
    struct tm local;
    *f = (LeaseFacts){.process = getpid(), .began = process_began(getpid()), .beat_s = beat_s};
    random_id(f->id);
    host_name(host, sizeof host);
    copy_word(f->host, sizeof f->host, host);
    find_process_scope(f->process_scope);
    if (slurm) {
        copy_word(f->system, sizeof f->system, "slurm");
        copy_word(f->cluster, sizeof f->cluster, getenv("SLURM_CLUSTER_NAME"));
        copy_word(f->job, sizeof f->job, slurm);
        f->requeues = requeues ? strtoll(requeues, NULL, 10) : 0;
    }
    if (run && strlen(run) > RANDOM_ID_BYTES && run[RANDOM_ID_BYTES - 1] == ':') {
        snprintf(f->run, sizeof f->run, "%.*s", RANDOM_ID_BYTES - 1, run);
        f->start = strtoll(run + RANDOM_ID_BYTES, NULL, 10);
    }
    if (localtime_r(&now, &local)) strftime(f->since, sizeof f->since, "%Y-%m-%d %H:%M:%S", &local);
}

/* ---- as text ---- */

void lease_facts_write(const LeaseFacts *f, char *text)
{
    memset(text, ' ', LEASE_TEXT);
    int length = snprintf(
        text, LEASE_TEXT,
        "{\"id\":\"%s\",\"host\":\"%s\",\"place\":\"%s\",\"process\":%lld,\"began\":%lld,"
        "\"system\":\"%s\",\"cluster\":\"%s\",\"job\":\"%s\",\"turn\":%lld,\"run\":\"%s\","
        "\"start\":%lld,\"since\":\"%s\",\"beat_s\":%.6g,\"begun\":%s,\"ended\":%s,\"beat\":%lld}",
        f->id, f->host, f->process_scope, (long long)f->process, (long long)f->began, f->system,
        f->cluster, f->job, (long long)f->requeues, f->run, (long long)f->start, f->since,
        f->beat_s, f->begun ? "true" : "false", f->ended ? "true" : "false", (long long)f->beat);
    text[length] = ' ';
    text[LEASE_TEXT - 1] = '\n';
}

/* Returns a pointer to the text after "KEY":, or NULL. */
static const char *find(const char *text, const char *key)
{
    char name[32];
    snprintf(name, sizeof name, "\"%s\":", key);
    const char *at = strstr(text, name);
    return at ? at + strlen(name) : NULL;
}

static bool read_word(const char *text, const char *key, char *out, size_t room)
{
    const char *at = find(text, key);
    *out = 0;
    if (!at || *at != '"') return false;
    size_t length = strcspn(++at, "\"");
    if (length >= room || !at[length]) return false;
    snprintf(out, room, "%.*s", (int)length, at);
    return true;
}

static bool read_number(const char *text, const char *key, int64_t *out)
{
    const char *at = find(text, key);
    char *end;
    if (!at) return false;
    *out = strtoll(at, &end, 10);
    return end != at;
}

bool lease_facts_read(LeaseFacts *f, const char *text)
{
    *f = (LeaseFacts){0};
    const char *beat_s = find(text, "beat_s"), *ended = find(text, "ended"),
               *begun = find(text, "begun");
    if (!beat_s || !ended) return false;
    f->beat_s = strtod(beat_s, NULL);
    f->ended = !strncmp(ended, "true", 4);
    /* leases of versions without this fact count as begun */
    f->begun = !begun || !strncmp(begun, "true", 4);
    return f->beat_s > 0 && f->beat_s <= 3600 && read_word(text, "id", f->id, sizeof f->id) &&
           read_word(text, "host", f->host, sizeof f->host) &&
           read_word(text, "place", f->process_scope, sizeof f->process_scope) &&
           read_number(text, "process", &f->process) && read_number(text, "began", &f->began) &&
           read_word(text, "system", f->system, sizeof f->system) &&
           read_word(text, "cluster", f->cluster, sizeof f->cluster) &&
           read_word(text, "job", f->job, sizeof f->job) &&
           read_number(text, "turn", &f->requeues) &&
           read_word(text, "run", f->run, sizeof f->run) && read_number(text, "start", &f->start) &&
           read_word(text, "since", f->since, sizeof f->since) &&
           read_number(text, "beat", &f->beat);
}

void lease_facts_describe(const LeaseFacts *f, char *out)
{
    char job[64] = "";
    if (!*f->host) {
        snprintf(out, LEASE_OWNER_TEXT, "an unknown owner");
        return;
    }
    if (*f->job) snprintf(job, sizeof job, ", %s job %s", f->system, f->job);
    snprintf(out, LEASE_OWNER_TEXT, "process %lld on %s%s, since %s", (long long)f->process,
             f->host, job, f->since);
}

/* ---- whether the owner has ended ---- */

/* Returns true if squeue does not list the job, so that its processes have ended. Returns false if
 * squeue does not answer. */
static bool slurm_has_ended(const char *job)
{
    static const double LIMIT_S = 5;
    char *words[] = {"squeue", "--noheader", "--jobs", (char *)job, "--format", "%i %T", NULL};
    char text[512];
    int code = command_output(words, LIMIT_S, text, sizeof text);
    if (code == 0) return strspn(text, " \n") == strlen(text);
    return code > 0 && strstr(text, "Invalid job id") != NULL;
}

static bool is_same_system(const LeaseFacts *o, const LeaseFacts *me)
{
    return *o->job && !strcmp(o->system, me->system) && !strcmp(o->cluster, me->cluster);
}

static bool is_requeued_job(const LeaseFacts *o, const LeaseFacts *me)
{
    return is_same_system(o, me) && !strcmp(o->job, me->job) && o->requeues < me->requeues;
}

static bool is_earlier_start(const LeaseFacts *o, const LeaseFacts *me)
{
    return *o->run && !strcmp(o->run, me->run) && o->start < me->start;
}

bool lease_facts_is_same_run(const LeaseFacts *o, const LeaseFacts *me)
{
    return is_earlier_start(o, me) || is_requeued_job(o, me);
}

OwnerState lease_facts_owner_state(const LeaseFacts *o, const LeaseFacts *me)
{
    if (o->ended) return OWNER_ENDED;
    if (*o->process_scope && !strcmp(o->process_scope, me->process_scope)) {
        int64_t began = process_began((pid_t)o->process);
        /* a process with another start time has reused the process number */
        if (began >= 0) return began == o->began ? OWNER_ALIVE : OWNER_ENDED;
    }
    if (lease_facts_is_same_run(o, me)) return OWNER_ENDED;
    if (!is_same_system(o, me) || !strcmp(o->job, me->job)) return OWNER_UNKNOWN;
    return slurm_has_ended(o->job) ? OWNER_ENDED : OWNER_UNKNOWN;
}
