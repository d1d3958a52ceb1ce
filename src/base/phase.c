/* Measures the time spent in each phase, and records a trace. The clock is read once per change of
 * phase: the time between two changes belongs to the phase that the first change entered. Counting
 * begins with the first phase_enter. If a trace is recorded, every span is also put into a ring of
 * the newest spans, which trace_write prints in Chrome's trace format (chrome://tracing, Perfetto).
 * Only one thread of a process may use this module. */
#include "base.h"
#include "base/beat.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *const phase_names[PHASE_COUNT] = {PHASES(LIST_NAME)};

/* A time in which the process was in one phase. */
typedef struct Span {
    double begin_s, end_s;
    Phase phase;
} Span;

static struct {
    /* true: phase_enter has been called */
    bool running;
    /* current phase */
    Phase now;
    /* true: time is added to the phase `whole` and not to `now` (phase_count_as_begin) */
    bool is_whole;
    Phase whole;
    /* time of the last phase_enter, by clock_s */
    double since_s;
    /* seconds in each phase up to the last phase_enter */
    double total_s[PHASE_COUNT];
    /* function of phase_watch; NULL: there is none */
    void (*entered)(Phase phase);
} phases;

/* The newest spans. */
static struct {
    /* [capacity]; owned; NULL: no trace is recorded */
    Span *span;
    /* capacity: length of the ring in spans; pushed: number of spans added since trace_start */
    int64_t capacity, pushed;
    /* wall clock minus clock_s; it is added to the times of a trace, so that traces of several
     * nodes have the same time axis */
    double to_wall_s;
} ring;

/* Returns the phase to which the current time is added. */
static Phase counted(void)
{
    return phases.is_whole ? phases.whole : phases.now;
}

Phase phase_enter(Phase phase)
{
    double now_s = clock_s();
    Phase before = phases.now;
    if (phases.running) {
        phases.total_s[counted()] += now_s - phases.since_s;
        if (ring.span)
            ring.span[ring.pushed++ % ring.capacity] = (Span){phases.since_s, now_s, before};
    }
    phases.running = true;
    phases.now = phase;
    phases.since_s = now_s;
    beat_mark_at(phase_names[phase], phase == PHASE_SUM, now_s);
    if (phases.entered) phases.entered(phase);
    return before;
}

Phase phase_count_as_begin(Phase phase)
{
    Phase before = phase_enter(phase);
    phases.is_whole = true;
    phases.whole = phase;
    return before;
}

void phase_count_as_end(Phase before)
{
    phase_enter(before);
    phases.is_whole = false;
}

Phase phase_wait_begin(void)
{
    Phase before = phases.now;
    bool counts = phases.running && (before == PHASE_UPDATE || before == PHASE_OTHER);
    return counts ? phase_enter(PHASE_SUM) : before;
}

void phase_wait_end(Phase before)
{
    if (phases.running && phases.now != before) phase_enter(before);
}

void phase_watch(void (*entered)(Phase phase))
{
    phases.entered = entered;
}

double phase_s(Phase phase)
{
    double open_s = phases.running && phase == counted() ? clock_s() - phases.since_s : 0;
    return phases.total_s[phase] + open_s;
}

static double wall_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double phase_ended_s(Phase phase)
{
    return phases.total_s[phase];
}

void trace_start(int events)
{
    mem_free(&ring.span);
    ring.pushed = 0;
    ring.capacity = events > 0 ? events : 0;
    if (ring.capacity) ring.span = mem_new((size_t)ring.capacity * sizeof *ring.span);
    ring.to_wall_s = wall_s() - clock_s();
}

static void write_span(Json *json, const Span *span, int rank)
{
    json_object(json, NULL);
    json_text(json, "name", phase_names[span->phase]);
    json_text(json, "cat", "phase");
    json_text(json, "ph", "X");
    json_int(json, "pid", rank);
    json_int(json, "tid", 0);
    json_fixed(json, "ts", 3, (span->begin_s + ring.to_wall_s) * 1e6);
    json_fixed(json, "dur", 3, (span->end_s - span->begin_s) * 1e6);
    json_end(json);
}

static void write_name(Json *json, int rank)
{
    json_object(json, NULL);
    json_text(json, "name", "process_name");
    json_text(json, "ph", "M");
    json_int(json, "pid", rank);
    json_int(json, "tid", 0);
    json_object(json, "args");
    json_format(json, "name", "rank %d", rank);
    json_end(json);
    json_end(json);
}

static void write_spans(FILE *out, int rank)
{
    Json json = json_to(out, false);
    json_object(&json, NULL);
    json_text(&json, "displayTimeUnit", "ms");
    json_array_by_line(&json, "traceEvents");
    write_name(&json, rank);
    int64_t first = ring.pushed > ring.capacity ? ring.pushed - ring.capacity : 0;
    for (int64_t i = first; i < ring.pushed; ++i)
        write_span(&json, &ring.span[i % ring.capacity], rank);
    if (ring.span && phases.running) {
        Span open = {phases.since_s, clock_s(), phases.now};
        write_span(&json, &open, rank);
    }
    json_end(&json);
    json_end(&json);
}

static Status cannot_write(const char *path)
{
    return fail(ERR_IO, "%s: cannot write the trace: %s", path, file_error(errno));
}

Status trace_check(const char *path)
{
    return file_can_create(path) ? OK : cannot_write(path);
}

Status trace_write(const char *path, int rank)
{
    FILE *out = file_create_stream(path);
    if (!out) return cannot_write(path);
    write_spans(out, rank);
    int error = file_finish_stream(out);
    if (error) return fail(ERR_IO, "%s: writing the trace failed: %s", path, strerror(error));
    return OK;
}
