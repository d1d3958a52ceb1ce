/* Checks that each thread that a run would start has a core of its own. Also checks that the ranks
 * of a node are bound to more than half of their launcher's cores, and that a rank may use as many
 * CPUs as the job requested for it. Rank 0 joins the affinity masks of all ranks of a node. A
 * single rank could not see that a launcher has bound two ranks to one core, or all ranks to few of
 * the node's cores. */
#include "measurements.h"
#include "private.h"

#include <stdlib.h>

static void measure(Doctor *d, void *mine)
{
    Cores *c = mine;
    const char *slurm_cpus = getenv("SLURM_CPUS_PER_TASK");
    char *core = mem_new(NODE_CPUS_MAX);
    c->threads = threads_share(d->world.node_size);
    c->limits = threads_limits(d->options->root, core);
    c->slurm_cpus = slurm_cpus ? (int)strtol(slurm_cpus, NULL, 10) : 0;
    for (int i = 0; i < NODE_CPUS_MAX; ++i)
        if (core[i]) c->core[i / 8] |= (unsigned char)(1 << i % 8);
    mem_free(&core);
}

/* Sums over the ranks of one node. */
typedef struct Node {
    int ranks, threads;
    /* number of cores in the union of the ranks' affinity masks */
    int cores;
    /* number of cores in the launcher's affinity mask */
    int launcher_cores;
} Node;

static Node sum_node(const Allocation *a, const Cores *all, int leader)
{
    Node node = {0};
    unsigned char core[NODE_CPUS_MAX / 8] = {0};
    for (int r = leader; r < a->ranks; ++r) {
        if (a->place[r].leader != leader) continue;
        ++node.ranks;
        node.threads += all[r].threads;
        if (all[r].limits.launcher_cores > node.launcher_cores)
            node.launcher_cores = all[r].limits.launcher_cores;
        for (size_t i = 0; i < sizeof core; ++i) core[i] |= all[r].core[i];
    }
    for (int i = 0; i < NODE_CPUS_MAX; ++i) node.cores += core[i / 8] >> i % 8 & 1;
    return node;
}

static void judge(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Cores *c = all;
    for (int r = 0; r < a->ranks; ++r) {
        if (c[r].slurm_cpus > c[r].limits.cpus)
            report_add_rank(report, SEVERITY_WARN, r,
                            "srun -c $SLURM_CPUS_PER_TASK (or export SRUN_CPUS_PER_TASK)",
                            "the job asked for %d CPUs a task, and the rank may use %d",
                            c[r].slurm_cpus, c[r].limits.cpus);
        if (!is_node_leader(a, r)) continue;
        Node node = sum_node(a, c, r);
        if (r == 0)
            report_set_summary(report, "%d thread%s on %d core%s of %s", node.threads,
                               node.threads == 1 ? "" : "s", node.cores, node.cores == 1 ? "" : "s",
                               a->nodes > 1 ? "each node" : "this node");
        if (node.threads > check->threshold * node.cores)
            report_add_host(report, SEVERITY_WARN, r,
                            "fewer ranks a node, or mpirun --bind-to none, srun -c",
                            "%d ranks with %d threads share %d core%s and take turns", node.ranks,
                            node.threads, node.cores, node.cores == 1 ? "" : "s");
        else if (2 * node.cores <= node.launcher_cores)
            report_add_host(report, SEVERITY_WARN, r,
                            "mpirun --bind-to none, or --map-by slot:PE=CORES; srun -c CORES",
                            "the ranks are bound to %d of the %d cores that their launcher has",
                            node.cores, node.launcher_cores);
    }
}

const Check check_cores = {
    .name = "cores",
    .threshold_meaning = "threads per core",
    .threshold = 1,
    .limit_s = 2,
    .bytes = sizeof(Cores),
    .measure = measure,
    .judge = judge,
};
