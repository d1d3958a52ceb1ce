/* Reads the variables that launchers set in the environment of every process that they start: Open
 * MPI, Hydra (of MPICH and of Intel MPI), PMIx servers and Slurm. Slurm's variables of the complete
 * job (SLURM_NTASKS, SLURM_PROCID) are also set in a batch script that starts weft without srun, so
 * only the variables of a job step are used. */
#include "launcher.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* Returns the value of an environment variable if it is a positive number, otherwise 0. */
static int env_count(const char *name)
{
    const char *text = getenv(name);
    if (!text) return 0;
    char *end;
    long value = strtol(text, &end, 10);
    return end == text || value < 1 || value > INT_MAX ? 0 : (int)value;
}

/* Returns the number of tasks on the node with index `node` by Slurm's list of tasks per node
 * ("4(x2),3" means 4, 4, 3). Returns 0 if the list has no such node. */
static int slurm_tasks_on(const char *list, long node)
{
    while (list && *list) {
        char *end;
        long tasks = strtol(list, &end, 10), repeat = 1;
        if (end == list || tasks < 1 || tasks > INT_MAX) return 0;
        if (strncmp(end, "(x", 2) == 0) repeat = strtol(end + 2, &end, 10);
        if (*end == ')') ++end;
        if (node < repeat) return (int)tasks;
        node -= repeat;
        list = *end == ',' ? end + 1 : NULL;
    }
    return 0;
}

static Launcher find_slurm(void)
{
    Launcher found = {.name = "srun", .size = env_count("SLURM_STEP_NUM_TASKS")};
    const char *node = getenv("SLURM_NODEID");
    found.local_size =
        slurm_tasks_on(getenv("SLURM_STEP_TASKS_PER_NODE"), node ? strtol(node, NULL, 10) : 0);
    /* A job step of one task is a shell on a node (srun --pty) or a single rank. Both count as
     * started without a launcher. */
    if (found.size == 1) found.name = NULL;
    return found;
}

Launcher launcher_find(void)
{
    if (env_count("OMPI_COMM_WORLD_SIZE"))
        return (Launcher){.name = "mpirun",
                          .size = env_count("OMPI_COMM_WORLD_SIZE"),
                          .local_size = env_count("OMPI_COMM_WORLD_LOCAL_SIZE")};
    /* Hydra may start its daemons by srun. Then the number of tasks of the job step is the number
     * of nodes, and PMI_SIZE is the number of ranks. */
    int pmi_size = env_count("PMI_SIZE"), step_size = env_count("SLURM_STEP_NUM_TASKS");
    if (step_size && (!pmi_size || pmi_size == step_size)) return find_slurm();
    if (pmi_size)
        return (Launcher){
            .name = "mpiexec", .size = pmi_size, .local_size = env_count("MPI_LOCALNRANKS")};
    if (getenv("PMIX_RANK") && getenv("PMIX_NAMESPACE")) return (Launcher){.name = "prun"};
    return (Launcher){.name = NULL, .size = 1, .local_size = 1};
}

void launcher_tune_mpi(const Launcher *launcher)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    if (MPI_Get_library_version(version, &length) != MPI_SUCCESS) return;
    const char *number = strstr(version, "Open MPI v");
    if (!number) return;
    /* A waiting rank that polls without a pause would slow down the loader threads of its
     * neighbours. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    /* With one TCP connection between two ranks, the short messages that begin and end a transfer
     * wait behind the bytes of other transfers. */
    setenv("OMPI_MCA_btl_tcp_links", "2", 0);
    if (launcher->size == 0 || launcher->local_size != launcher->size) return;
    /* the transport through shared memory was called vader before Open MPI 5 */
    bool before_5 = strtol(number + strlen("Open MPI v"), NULL, 10) < 5;
    setenv("OMPI_MCA_pml", "ob1", 0);
    setenv("OMPI_MCA_btl", before_5 ? "self,vader" : "self,sm", 0);
}
