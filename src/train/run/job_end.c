/* Queries Slurm for the time that the job may still run. SLURM_JOB_END_TIME, which older versions
 * do not set, is the end that was planned when the job started. squeue reports the current end,
 * which an administrator may change (scontrol update). squeue is queried for the remaining time,
 * which does not depend on time zones or differences between clocks. squeue runs in the background
 * and is killed if it does not answer in time, so a busy controller does not delay steps. */
#include "job_end.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* longest time that squeue may need to answer, in seconds */
static const double ANSWER_S = 10;
/* shortest time between two queries */
static const double INTERVAL_MIN_S = 10;
/* longest time between two queries */
static const double INTERVAL_MAX_S = 1800;
/* time between two queries while the end is not known */
static const double INTERVAL_UNKNOWN_S = 60;

/* ---- squeue's answer ---- */

/* Parses a duration as squeue prints it, in which "5:03" means minutes and seconds. word: at most
 * 63 characters. *left_s: INFINITY for "UNLIMITED". Returns false if `word` is no duration. */
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

/* Logs, only the first time, that squeue has not given the end, and why. */
static void warn_once(JobEnd *e, const char *why)
{
    if (e->warned) return;
    e->warned = true;
    if (e->known)
        log_warn(
            "squeue does not say when job %s ends (%s): using the end that Slurm set at its start",
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
    e->next_s = e->query_s + INTERVAL_MAX_S;
    warn_once(e, strerror(error));
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

/* Stores the end of the job. Logs it if no end was known before, or if it has moved by more than
 * MOVED_S, which is more than rounding explains. */
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

/* Reaps squeue if it has ended. Does not wait, because squeue may survive SIGKILL if it hangs in a
 * file system. */
static void reap(JobEnd *e)
{
    int state;
    if (e->child && waitpid(e->child, &state, WNOHANG) != 0) e->child = 0;
}

/* Ends the query, whether it was answered or not. */
static void close_query(JobEnd *e)
{
    if (e->answer < 0) return;
    close(e->answer);
    e->answer = -1;
    kill(-e->child, SIGKILL);
    reap(e);
}

/* Parses squeue's complete answer. */
static void read_answer(JobEnd *e)
{
    double left;
    if (job_end_read(e->text, e->job, &left)) {
        set_end(e, e->query_s + left);
        return;
    }
    e->text[strcspn(e->text, "\n")] = 0;
    warn_once(e, *e->text ? e->text : "it prints nothing");
}

/* ---- interface for a run ---- */

/* Returns the end that Slurm set at the job's start, by the monotonic clock; 0 if it set none or
 * the end has passed. */
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
    close_query(e);
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
    if (!answered && now - e->query_s < ANSWER_S) return;
    if (answered) {
        read_answer(e);
    } else {
        char why[40];
        snprintf(why, sizeof why, "no answer within %.0f s", ANSWER_S);
        warn_once(e, why);
    }
    close_query(e);
    double interval_s = (e->end_s - margin_s - now) / 2;
    if (!e->known) interval_s = INTERVAL_UNKNOWN_S;
    e->next_s = now + fmin(fmax(interval_s, INTERVAL_MIN_S), INTERVAL_MAX_S);
}

bool job_end_near(const JobEnd *e, double margin_s)
{
    return e->job && e->answer < 0 && clock_s() + margin_s >= e->end_s;
}
