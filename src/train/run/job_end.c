/* Queries Slurm how long the job may still run. SLURM_JOB_END_TIME is the end as of the job's
 * start, and older versions do not set it; squeue knows the present one, because a limit may be
 * changed (scontrol update). weft queries the remaining time, so that time zones and differences
 * between clocks do not matter. It runs in the background and is given up if it does not answer: a
 * busy controller delays no step. */
#include "job_end.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* seconds */
static const double GIVE_UP = 10, LEAST_GAP = 10, MOST_GAP = 1800, UNKNOWN_GAP = 60;

/* ---- squeue's answer ---- */

/* Parses a duration, in which "5:03" means minutes and seconds. word: at most 63 characters. */
static bool read_left(const char *word, double *left_s)
{
    if (!strcmp(word, "UNLIMITED")) {
        *left_s = INFINITY;
        return true;
    }
    const char *colon = strchr(word, ':');
    char hours[72];
    bool short_form = colon && !strchr(colon + 1, ':') && !strchr(word, '-');
    snprintf(hours, sizeof hours, "%s%s", short_form ? "0:" : "", word);
    return text_read_seconds(hours, left_s);
}

bool job_end_read(const char *text, const char *job, double *left_s)
{
    char number[64], left[64];
    for (; text; text = strchr(text, '\n')) {
        text += *text == '\n';
        if (sscanf(text, "%63s %63s", number, left) == 2 && !strcmp(number, job))
            return read_left(left, left_s);
        if (!*text) break;
    }
    return false;
}

/* ---- queries ---- */

/* Logs once that squeue has not answered, and why. */
static void complain(JobEnd *e, const char *why)
{
    if (e->complained) return;
    e->complained = true;
    if (e->known)
        log_warn("squeue does not say when job %s ends (%s): what Slurm said at its start counts",
                 e->job, why);
    else
        log_warn("squeue does not say when job %s ends (%s): this run stops before that only by "
                 "run.max_time or a signal",
                 e->job, why);
}

static void send_query(JobEnd *e)
{
    char *words[] = {"squeue", "--noheader", "--jobs", (char *)e->job, "--format", "%A %L", NULL};
    e->query_s = clock_s();
    e->length = 0;
    int error = command_open(&e->child, &e->answer, words);
    if (!error) return;
    e->next_s = e->query_s + MOST_GAP;
    complain(e, strerror(error));
}

static void log_end(const JobEnd *e)
{
    char text[64] = "";
    double left = e->end_s - clock_s();
    time_t at = time(NULL) + (time_t)left;
    struct tm local;
    if (localtime_r(&at, &local)) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
    log_info("job %s ends at %s, in %.0f s: this run stops before that, with a checkpoint", e->job,
             text, left);
}

/* Stores the end, and logs it if it is new or has moved by more than clocks and rounding
 * explain. */
static void set_end(JobEnd *e, double end_s)
{
    enum { MOVED_S = 30 };
    bool news = !e->known || isinf(e->end_s) != isinf(end_s) || fabs(e->end_s - end_s) > MOVED_S;
    bool had_end = e->known && isfinite(e->end_s);
    e->known = true;
    e->end_s = end_s;
    if (!news) return;
    if (isfinite(end_s))
        log_end(e);
    else if (had_end)
        log_info("job %s has no end any more", e->job);
}

/* Reaps squeue without waiting: if it hangs in a file system, it may not even die. */
static void reap(JobEnd *e)
{
    int state;
    if (e->child && waitpid(e->child, &state, WNOHANG) != 0) e->child = 0;
}

/* Ends the query, whether it was answered or not. */
static void settle(JobEnd *e)
{
    if (e->answer < 0) return;
    close(e->answer);
    e->answer = -1;
    kill(-e->child, SIGKILL);
    reap(e);
}

/* Parses squeue's whole answer. */
static void judge(JobEnd *e)
{
    double left;
    if (job_end_read(e->text, e->job, &left)) {
        set_end(e, e->query_s + left);
        return;
    }
    e->text[strcspn(e->text, "\n")] = 0;
    complain(e, *e->text ? e->text : "it says nothing");
}

/* ---- interface for a run ---- */

/* Returns the end as of the job's start, by the monotonic clock; 0 if Slurm does not say or it has
 * passed. */
static double end_in_environment(void)
{
    const char *text = getenv("SLURM_JOB_END_TIME");
    double now = (double)time(NULL), end = text ? strtod(text, NULL) : 0;
    return end > now ? clock_s() + end - now : 0;
}

void job_end_init(JobEnd *e)
{
    *e = (JobEnd){.job = getenv("SLURM_JOB_ID"), .end_s = INFINITY, .answer = -1};
    if (!e->job || !*e->job) e->job = NULL;
    if (!e->job) return;
    double end_s = end_in_environment();
    if (end_s > 0) set_end(e, end_s);
    send_query(e);
}

void job_end_fini(JobEnd *e)
{
    settle(e);
}

void job_end_poll(JobEnd *e, double margin_s)
{
    if (!e->job) return;
    double now = clock_s();
    if (e->answer < 0) {
        reap(e);
        if (!e->child && now >= e->next_s) send_query(e);
        return;
    }
    bool answered = command_read(e->answer, e->text, sizeof e->text, &e->length);
    if (!answered && now - e->query_s < GIVE_UP) return;
    if (answered)
        judge(e);
    else
        complain(e, "no answer within 10 s");
    settle(e);
    double gap = (e->end_s - margin_s - now) / 2;
    if (!e->known) gap = UNKNOWN_GAP;
    e->next_s = now + fmin(fmax(gap, LEAST_GAP), MOST_GAP);
}

bool job_end_near(const JobEnd *e, double margin_s)
{
    return e->job && e->answer < 0 && clock_s() + margin_s >= e->end_s;
}
