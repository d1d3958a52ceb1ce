/* Finds the launcher of this process (mpirun, srun, ...) in the environment, before MPI is
 * initialised. */
#ifndef WEFT_PARALLEL_LAUNCHER_H
#define WEFT_PARALLEL_LAUNCHER_H

#include <stdbool.h>

typedef struct Launcher {
    /* "mpirun", "srun", ...; NULL: no launcher */
    const char *name;
    /* number of ranks; 0: launched, number unknown */
    int size;
    /* number of ranks on this node; 0: unknown */
    int local_size;
} Launcher;

Launcher launcher_find(void);
/* Sets variables of Open MPI that the user has not set, before MPI_Init. Waiting ranks yield their
 * core, and there are two TCP connections between two ranks. If all ranks share a node, only the
 * transports inside a node are chosen, since MPI_Init otherwise probes every network library
 * (measured: 240 ms instead of 30 ms). */
void launcher_tune_mpi(const Launcher *launcher);

#endif
