/* Finds out what the environment says about the launcher of this process (mpirun, srun, ...),
 * before MPI is initialised. */
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
/* Sets variables of Open MPI that the user has not set. Two TCP connections between two ranks;
 * where all ranks share a node, those that make MPI_Init quick, which otherwise probes every
 * network library (measured: 240 ms; with them 30 ms). Call before MPI_Init. */
void launcher_tune_mpi(const Launcher *launcher);

#endif
