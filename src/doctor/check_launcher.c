/* Checks that the ranks are those that the job requested from the batch system: launched at all, on
 * all nodes, equally many on each. If launcher and MPI count ranks differently, MPI does not start
 * (doctor.c, report_mpi_failure). */
#include "figures.h"
#include "private.h"

#include <stdlib.h>
#include <string.h>

static int count_of(const char *name)
{
    const char *text = getenv(name);
    long value = text ? strtol(text, NULL, 10) : 0;
    return value > 0 && value < 1 << 30 ? (int)value : 0;
}

static void measure(Doctor *d, void *mine)
{
    Started *s = mine;
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    (void)d;
    s->launched = world_launched(&length);
    s->tasks = count_of("SLURM_NTASKS");
    s->nodes = count_of("SLURM_JOB_NUM_NODES");
    MPI_Get_library_version(version, &length);
    snprintf(s->mpi, sizeof s->mpi, "%.*s", (int)strcspn(version, ",\n"), version);
}

static void judge(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Started *s = all;
    int least = a->place[0].node_size, most = least;
    for (int r = 0; r < a->ranks; ++r) {
        least = a->place[r].node_size < least ? a->place[r].node_size : least;
        most = a->place[r].node_size > most ? a->place[r].node_size : most;
    }
    report_summary(report, "%d rank%s on %d node%s, %s%s", a->ranks, a->ranks == 1 ? "" : "s",
                   a->nodes, a->nodes == 1 ? "" : "s", s->launched ? "" : "without a launcher, ",
                   s->mpi);
    if (!s->launched && s->tasks > 1) {
        report_host(report, SEVERITY_WARN, 0, "srun weft doctor",
                    "one process alone in a job of %d tasks", s->tasks);
        return;
    }
    if (s->nodes > a->nodes)
        report_host(report, SEVERITY_WARN, -1, "srun -N $SLURM_JOB_NUM_NODES",
                    "ranks on %d of the job's %d nodes", a->nodes, s->nodes);
    if (most - least > (int)check->threshold)
        report_host(report, SEVERITY_WARN, -1, "srun --ntasks-per-node, mpirun --map-by ppr:N:node",
                    "%d ranks on one node, %d on another: those with most decide the speed", most,
                    least);
}

const Check check_launcher = {
    .name = "launcher",
    .what = "difference between nodes, in ranks",
    .threshold = 0,
    .limit_s = 2,
    .bytes = sizeof(Started),
    .measure = measure,
    .judge = judge,
};
