/* Finds out, before MPI is initialised, which launcher (mpirun, srun, ...) has started this
 * process. */
#ifndef WEFT_PARALLEL_LAUNCHER_H
#define WEFT_PARALLEL_LAUNCHER_H

#include <stdbool.h>

typedef struct Launcher {
    /* "mpirun", "srun", ...; a constant; NULL: no launcher started the process */
    const char *name;
    /* number of ranks; 0: a launcher started the process, but the number is unknown */
    int size;
    /* number of ranks on this node; 0: unknown */
    int local_size;
} Launcher;

/* Reads the environment variables that launchers set. */
Launcher launcher_find(void);
/* Sets environment variables of Open MPI, unless the user has set them. Does nothing with another
 * MPI. Call it before MPI_Init. With these variables waiting ranks yield their core, and two ranks
 * are joined by two TCP connections. If all ranks share a node, only transports inside a node are
 * enabled: otherwise MPI_Init probes every network library and takes 240 ms instead of 30 ms
 * (measured). */
void launcher_tune_mpi(const Launcher *launcher);

#endif
