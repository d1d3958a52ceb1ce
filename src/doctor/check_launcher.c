/* Checks that a launcher started ranks on all nodes of the job, and the same number on each. Warns
 * if a single process without a launcher runs in a job of several tasks. If launcher and MPI count
 * ranks differently, MPI does not start; report_mpi_failure in doctor.c then prints a finding. */
#include "measurements.h"
#include "private.h"

#include <stdlib.h>
#include <string.h>

/* Returns the number in an environment variable, or 0 if it has no number from 1 to 2^30 - 1. */
static int read_env_count(const char *name)
{
    const char *text = getenv(name);
    long value = text ? strtol(text, NULL, 10) : 0;
    return value > 0 && value < 1 << 30 ? (int)value : 0;
}

static void measure(Doctor *d, void *mine)
{
    Launch *launch = mine;
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int ranks_on_node /* unused */, length = 0;
    (void)d;
    launch->launched = world_launched(&ranks_on_node);
    launch->tasks = read_env_count("SLURM_NTASKS");
    launch->nodes = read_env_count("SLURM_JOB_NUM_NODES");
    MPI_Get_library_version(version, &length);
    snprintf(launch->mpi_version, sizeof launch->mpi_version, "%.*s", (int)strcspn(version, ",\n"),
             version);
}

static void judge(const Check *check, const Allocation *a, const void *all, Report *report)
{
    /* only rank 0's struct is judged, because all ranks are started in the same way */
    const Launch *launch = all;
    int min = a->place[0].node_size, max = min;
    for (int r = 0; r < a->ranks; ++r) {
        min = a->place[r].node_size < min ? a->place[r].node_size : min;
        max = a->place[r].node_size > max ? a->place[r].node_size : max;
    }
    report_set_summary(report, "%d rank%s on %d node%s, %s%s", a->ranks, a->ranks == 1 ? "" : "s",
                       a->nodes, a->nodes == 1 ? "" : "s",
                       launch->launched ? "" : "without a launcher, ", launch->mpi_version);
    if (!launch->launched && launch->tasks > 1) {
        report_add_host(report, SEVERITY_WARN, 0, "srun weft doctor",
                        "one process alone in a job of %d tasks", launch->tasks);
        return;
    }
    if (launch->nodes > a->nodes)
        report_add_host(report, SEVERITY_WARN, WHOLE_ALLOCATION, "srun -N $SLURM_JOB_NUM_NODES",
                        "ranks on %d of the job's %d nodes", a->nodes, launch->nodes);
    if (max - min > (int)check->threshold)
        report_add_host(
            report, SEVERITY_WARN, WHOLE_ALLOCATION,
            "srun --ntasks-per-node, mpirun --map-by ppr:N:node",
            "%d ranks on one node, %d on another: the nodes with the most ranks slow down "
            "all others",
            max, min);
}

const Check check_launcher = {
    .name = "launcher",
    .threshold_meaning = "difference between nodes, in ranks",
    .threshold = 0,
    .limit_s = 2,
    .bytes = sizeof(Launch),
    .measure = measure,
    .judge = judge,
};
