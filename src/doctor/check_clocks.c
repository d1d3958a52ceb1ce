/* Checks the clocks of hosts. A clock source that needs a system call costs microseconds for each
 * reading. If wall clocks differ, log lines of two hosts cannot be ordered and files have times in
 * the future. */
#include "measurements.h"
#include "private.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { TAG_CLOCK = 21, ROUNDS = 10 };

static double wall_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Runs on the first node. Measures by how many seconds the clock of another node is ahead, and
 * sends the result to that node. The method is that of Cristian (1989): in the fastest of ROUNDS
 * round trips, the other node is assumed to have read its clock in the middle. rank: rank of the
 * other node's leader in comm. */
static void measure_offset(MPI_Comm comm, int rank)
{
    double best_s = INFINITY, ahead_s = 0, theirs;
    for (int i = 0; i < ROUNDS; ++i) {
        double before = wall_s();
        MPI_Send(&before, 1, MPI_DOUBLE, rank, TAG_CLOCK, comm);
        MPI_Recv(&theirs, 1, MPI_DOUBLE, rank, TAG_CLOCK, comm, MPI_STATUS_IGNORE);
        double after = wall_s();
        if (after - before >= best_s) continue;
        best_s = after - before;
        ahead_s = theirs - 0.5 * (before + after);
    }
    MPI_Send(&ahead_s, 1, MPI_DOUBLE, rank, TAG_CLOCK, comm);
}

/* Answers measure_offset on the other node, and returns the result that the first node sends. */
static double answer_offset(MPI_Comm comm)
{
    double value;
    for (int i = 0; i < ROUNDS; ++i) {
        MPI_Recv(&value, 1, MPI_DOUBLE, 0, TAG_CLOCK, comm, MPI_STATUS_IGNORE);
        value = wall_s();
        MPI_Send(&value, 1, MPI_DOUBLE, 0, TAG_CLOCK, comm);
    }
    MPI_Recv(&value, 1, MPI_DOUBLE, 0, TAG_CLOCK, comm, MPI_STATUS_IGNORE);
    return value;
}

static void measure(Doctor *d, void *mine)
{
    Clock *clock = mine;
    proc_read_word(d->options->root,
                   "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                   clock->source, sizeof clock->source);
    if (!d->is_leader || d->leaders.size == 1) return;
    if (d->leaders.rank == 0)
        for (int r = 1; r < d->leaders.size; ++r) measure_offset(d->leaders.comm, r);
    else
        clock->ahead_s = answer_offset(d->leaders.comm);
}

/* Returns whether each reading of this clock source needs a system call. */
static bool is_slow(const char *source)
{
    static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", "pit", "refined-jiffies"};
    for (size_t i = 0; i < sizeof slow / sizeof *slow; ++i)
        if (!strcmp(source, slow[i])) return true;
    return false;
}

static void judge(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Clock *clock = all;
    double largest = 0, median_s = 0, *ahead = mem_new((size_t)a->nodes * sizeof *ahead);
    int nodes = 0;
    for (int r = 0; r < a->ranks; ++r)
        if (is_node_leader(a, r)) ahead[nodes++] = clock[r].ahead_s;
    /* Offsets are relative to the first node, whose clock may itself be wrong. With more than two
     * nodes, clocks are therefore compared with the median. */
    if (nodes > 2) median_s = median(ahead, nodes);
    for (int r = 0; r < a->ranks; ++r) {
        if (!is_node_leader(a, r)) continue;
        double off = clock[r].ahead_s - median_s;
        largest = fmax(largest, fabs(off));
        if (fabs(off) > check->threshold)
            report_add_host(report, SEVERITY_WARN, r, "chronyc tracking; chronyc makestep",
                            "its clock is %.1f s %s that of %s", fabs(off),
                            off > 0 ? "ahead of" : "behind",
                            nodes > 2 ? "the others" : "the first");
        if (is_slow(clock[r].source))
            report_add_host(report, SEVERITY_WARN, r,
                            "dmesg | grep -i clocksource; the kernel's option tsc=reliable",
                            "the kernel's clock is %s: each reading is a system call",
                            clock[r].source);
    }
    const char *source = *clock[0].source ? clock[0].source : "not known";
    if (nodes > 1)
        report_set_summary(report, "%s, largest offset %.3g ms", source, 1e3 * largest);
    else
        report_set_summary(report, "%s, one node", source);
    mem_free(&ahead);
}

const Check check_clocks = {
    .name = "clocks",
    .threshold_meaning = "seconds between hosts",
    .threshold = 1,
    .limit_s = 5,
    .bytes = sizeof(Clock),
    .measure = measure,
    .judge = judge,
};
