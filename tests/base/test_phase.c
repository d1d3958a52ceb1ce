/* Time by phase, and its trace. */
#include "base.h"
#include "harness.h"

#include "base/beat.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

static const double ROUNDING_S = 1e-6;

static void spend(double seconds)
{
    double until_s = clock_s() + seconds;
    while (clock_s() < until_s) {
    }
}

/* All time belongs to a phase: the phases add up to the clock, which goes on while they are
 * read. */
static void test_times(void)
{
    double before[PHASE_COUNT], sum_s = 0;
    phase_enter(PHASE_OTHER);
    double first_s = clock_s();
    for (int i = 0; i < PHASE_COUNT; ++i) before[i] = phase_s((Phase)i);
    double begin_s = clock_s();
    phase_enter(PHASE_FORWARD);
    spend(0.02);
    CU_ASSERT_EQUAL(phase_enter(PHASE_CHECKPOINT), PHASE_FORWARD);
    spend(0.01);
    /* still open */
    CU_ASSERT(phase_s(PHASE_CHECKPOINT) - before[PHASE_CHECKPOINT] >= 0.01);
    CU_ASSERT_EQUAL(phase_enter(PHASE_FORWARD), PHASE_CHECKPOINT);
    spend(0.01);
    phase_enter(PHASE_OTHER);
    double took_s = clock_s() - begin_s;
    for (int i = 0; i < PHASE_COUNT; ++i) sum_s += phase_s((Phase)i) - before[i];
    CU_ASSERT(phase_s(PHASE_FORWARD) - before[PHASE_FORWARD] >= 0.03);
    CU_ASSERT(sum_s >= took_s - ROUNDING_S && sum_s <= clock_s() - first_s + ROUNDING_S);
    CU_ASSERT_EQUAL(phase_s(PHASE_DATA), before[PHASE_DATA]);
}

/* An evaluation counts as one phase with its forward passes; a watcher sees them. */
static void test_whole(void)
{
    double before[PHASE_COUNT];
    phase_enter(PHASE_OTHER);
    for (int i = 0; i < PHASE_COUNT; ++i) before[i] = phase_s((Phase)i);
    CU_ASSERT_EQUAL(phase_count_as_begin(PHASE_EVAL), PHASE_OTHER);
    spend(0.005);
    CU_ASSERT_EQUAL(phase_enter(PHASE_FORWARD), PHASE_EVAL);
    spend(0.02);
    CU_ASSERT_EQUAL(phase_enter(PHASE_DATA), PHASE_FORWARD);
    spend(0.005);
    /* still open */
    CU_ASSERT(phase_s(PHASE_EVAL) - before[PHASE_EVAL] >= 0.03);
    phase_enter(PHASE_EVAL);
    phase_count_as_end(PHASE_OTHER);
    double evaluated_s = phase_s(PHASE_EVAL) - before[PHASE_EVAL];
    CU_ASSERT(evaluated_s >= 0.03);
    CU_ASSERT_EQUAL(phase_s(PHASE_FORWARD), before[PHASE_FORWARD]);
    CU_ASSERT_EQUAL(phase_s(PHASE_DATA), before[PHASE_DATA]);
    phase_enter(PHASE_FORWARD);
    spend(0.005);
    phase_enter(PHASE_OTHER);
    CU_ASSERT(phase_s(PHASE_FORWARD) - before[PHASE_FORWARD] >= 0.005);
    CU_ASSERT_EQUAL(phase_s(PHASE_EVAL) - before[PHASE_EVAL], evaluated_s);
}

/* Waits for other ranks in the update and between steps count as sums, others as the phase around
 * them. */
static void test_waits(void)
{
    static const Phase outer[] = {PHASE_UPDATE, PHASE_OTHER, PHASE_CHECKPOINT, PHASE_MESSAGES};
    for (int i = 0; i < 4; ++i) {
        Phase counted = i < 2 ? PHASE_SUM : outer[i];
        phase_enter(outer[i]);
        double before = phase_s(counted);
        Phase wait = phase_wait_begin();
        spend(0.005);
        phase_wait_end(wait);
        CU_ASSERT_EQUAL(phase_enter(PHASE_OTHER), outer[i]);
        CU_ASSERT(phase_s(counted) - before >= 0.005);
    }
}

/* Returns the seconds of one of `count` changes of the phase, or marks alone: the best of 50
 * rounds. */
static double change_s(int count, bool marks)
{
    double best_s = INFINITY;
    for (int round = 0; round < 50; ++round) {
        double begin_s = clock_s();
        for (int i = 0; i < count; ++i)
            if (marks)
                beat_mark_plain(i % 2 ? "forward" : "other", false);
            else
                phase_enter(i % 2 ? PHASE_FORWARD : PHASE_OTHER);
        best_s = fmin(best_s, (clock_s() - begin_s) / count);
    }
    return best_s;
}

/* A change of the phase costs little more than the mark for the watchdog that belongs to it. */
static void test_cost(void)
{
    double change = change_s(20000, false), mark = change_s(20000, true);
    if (getenv("WEFT_TEST_VERBOSE"))
        printf("  a change of the phase takes %.1f ns, of which its mark %.1f ns\n", 1e9 * change,
               1e9 * mark);
    CU_ASSERT(change < 20e-6);
    phase_enter(PHASE_OTHER);
}

static Phase notified[8];
static int notified_count;

static void notify(Phase phase)
{
    notified[notified_count++] = phase;
}

static void test_watch(void)
{
    phase_enter(PHASE_OTHER);
    phase_watch(notify);
    phase_enter(phase_enter(PHASE_SUM));
    phase_watch(NULL);
    phase_enter(PHASE_DATA);
    CU_ASSERT_EQUAL(notified_count, 2);
    CU_ASSERT_EQUAL(notified[0], PHASE_SUM);
    CU_ASSERT_EQUAL(notified[1], PHASE_OTHER);
}

static char text[1 << 16];

static int trace_text(int rank)
{
    char path[] = "/tmp/weft-trace-XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    close(fd);
    CHECK_OK(trace_write(path, rank));
    FILE *in = fopen(path, "r");
    memset(text, 0, sizeof text);
    CU_ASSERT(fread(text, 1, sizeof text - 1, in) > 0);
    fclose(in);
    unlink(path);
    int events = 0;
    for (char *at = text; (at = strstr(at, "\"ph\":\"X\"")); ++at) ++events;
    return events;
}

static void test_trace(void)
{
    phase_enter(PHASE_OTHER);
    trace_start(10);
    phase_enter(PHASE_DATA);
    phase_enter(PHASE_UPDATE);
    /* two closed, one open */
    CU_ASSERT_EQUAL(trace_text(3), 3);
    CU_ASSERT_EQUAL(strncmp(text, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", 39), 0);
    CU_ASSERT_STRING_EQUAL(text + strlen(text) - 5, "}\n]}\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"name\":\"rank 3\""));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text, "\"name\":\"data\",\"cat\":\"phase\",\"ph\":\"X\",\"pid\":3"));
    for (int i = 0; i < 50; ++i) phase_enter(i % 2 ? PHASE_DATA : PHASE_FORWARD);
    /* the newest ten, one open */
    CU_ASSERT_EQUAL(trace_text(0), 11);
    CU_ASSERT_PTR_NULL(strstr(text, "update"));
    /* in order of time */
    double last = 0;
    for (char *at = text; (at = strstr(at, "\"ts\":")); ++at) {
        double ts = strtod(at + 5, NULL);
        CU_ASSERT(ts >= last);
        last = ts;
    }
    trace_start(0);
    phase_enter(PHASE_OTHER);
    CU_ASSERT_EQUAL(trace_text(0), 0);
}

static void test_check(void)
{
    char folder[] = "/tmp/weft-trace-XXXXXX", path[64], words[8] = "";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/trace.json", folder);
    CHECK_OK(trace_check(path));
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
    FILE *out = fopen(path, "w");
    fputs("words", out);
    fclose(out);
    CHECK_OK(trace_check(path));
    FILE *in = fopen(path, "r");
    CU_ASSERT_EQUAL(fread(words, 1, 7, in), 5);
    fclose(in);
    unlink(path);
    CU_ASSERT_EQUAL(symlink("elsewhere", path), 0);
    CHECK_FAILS(trace_check(path), ERR_IO, "cannot write the trace: it is a symbolic link");
    unlink(path);
    CU_ASSERT_EQUAL(mkdir(path, 0777), 0);
    CHECK_FAILS(trace_check(path), ERR_IO, "cannot write the trace: it is a folder");
    rmdir(path);
    CU_ASSERT_EQUAL(mkfifo(path, 0666), 0);
    CHECK_FAILS(trace_check(path), ERR_IO, "cannot write the trace: ");
    unlink(path);
    rmdir(folder);
}

static void test_errors(void)
{
    static const char nowhere[] = "/nowhere/trace.json: cannot write the trace: No such file";
    CHECK_FAILS(trace_write("/nowhere/trace.json", 0), ERR_IO, nowhere);
    CHECK_FAILS(trace_check("/nowhere/trace.json"), ERR_IO, nowhere);
    if (access("/dev/full", W_OK) != 0) TEST_SKIP("no /dev/full here");
    CHECK_FAILS(trace_write("/dev/full", 0), ERR_IO, "No space left");
}

TEST_MAIN("phase", {"times", test_times}, {"whole", test_whole}, {"waits", test_waits},
          {"cost", test_cost}, {"watch", test_watch}, {"trace", test_trace}, {"check", test_check},
          {"errors", test_errors})
