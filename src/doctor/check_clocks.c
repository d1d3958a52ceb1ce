/* Clocks. A clock source that needs a system call costs microseconds for each reading. Hosts whose
 * wall clocks differ write logs that cannot be compared and file times that lie in the future. */
#include "figures.h"
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

/* Measures how far a node's clock is ahead of the first node's, in seconds: in the fastest round
 * trip, the answer was given at its middle (Cristian 1989). */
static double measure_offset(MPI_Comm comm, int rank)
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
    return ahead_s;
}

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
    doctor_word(d->options->root,
                "/sys/devices/system/clocksource/clocksource0/current_clocksource", clock->source,
                sizeof clock->source);
    if (!d->leads || d->leaders.size == 1) return;
    if (d->leaders.rank == 0)
        for (int r = 1; r < d->leaders.size; ++r) measure_offset(d->leaders.comm, r);
    else
        clock->ahead_s = answer_offset(d->leaders.comm);
}

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
    double most = 0, middle = 0, *ahead = mem_new((size_t)a->nodes * sizeof *ahead);
    int nodes = 0;
    for (int r = 0; r < a->ranks; ++r)
        if (place_leads(a, r)) ahead[nodes++] = clock[r].ahead_s;
    /* Compared with the median, deviating nodes are named even if the first node is one of them. */
    if (nodes > 2) middle = median(ahead, nodes);
    for (int r = 0; r < a->ranks; ++r) {
        if (!place_leads(a, r)) continue;
        double off = clock[r].ahead_s - middle;
        most = fmax(most, fabs(off));
        if (fabs(off) > check->threshold)
            report_host(report, SEVERITY_WARN, r, "chronyc tracking; chronyc makestep",
                        "its clock is %.1f s %s that of %s", fabs(off),
                        off > 0 ? "ahead of" : "behind", nodes > 2 ? "the others" : "the first");
        if (is_slow(clock[r].source))
            report_host(report, SEVERITY_WARN, r,
                        "dmesg | grep -i clocksource; the kernel's option tsc=reliable",
                        "the kernel's clock is %s: each reading is a system call", clock[r].source);
    }
    report_summary(report, "%s%s", *clock->source ? clock->source : "not known",
                   nodes > 1 ? "" : ", one node");
    if (nodes > 1) report_summary(report, "%s, %.3g ms apart at most", clock->source, 1e3 * most);
    mem_free(&ahead);
}

const Check check_clocks = {
    .name = "clocks",
    .what = "seconds between hosts",
    .threshold = 1,
    .limit_s = 5,
    .bytes = sizeof(Clock),
    .measure = measure,
    .judge = judge,
};
