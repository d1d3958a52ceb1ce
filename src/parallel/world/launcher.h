/* Finds the launcher of this process (mpirun, srun, ...) in the environment, before MPI is
 * initialised. */
#ifndef WEFT_PARALLEL_LAUNCHER_H
#define WEFT_PARALLEL_LAUNCHER_H

#include <stdbool.h>

typedef struct Launcher {
    /* "mpirun", "srun", ...; NULL: no launcher */
    const char *name;
    /* number of ranks; 0: a launcher started the process, but the number is unknown */
    int size;
    /* number of ranks on this node; 0: unknown */
    int local_size;
} Launcher;

/* Reads the environment. name points to a constant. */
Launcher launcher_find(void);
/* Sets variables of Open MPI that the user has not set, before MPI_Init. Waiting ranks then yield
 * their core, and TCP joins two ranks by two connections. Does nothing with another MPI. If all
 * ranks share a node, only transports inside a node are enabled: MPI_Init otherwise probes every
 * network library and takes 240 ms instead of 30 ms (measured). */
void launcher_tune_mpi(const Launcher *launcher);

#endif
