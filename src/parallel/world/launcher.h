/* What the environment says about the launcher around this process (mpirun, srun, ...), before MPI
 * is initialised. */
#ifndef WEFT_PARALLEL_LAUNCHER_H
#define WEFT_PARALLEL_LAUNCHER_H

#include <stdbool.h>

typedef struct Launcher {
    /* "mpirun", "srun", ...; NULL: started alone */
    const char *name;
    /* ranks in all; 0: launched, but it does not say */
    int size;
    /* ranks on this node; 0: it does not say */
    int local_size;
} Launcher;

Launcher launcher_find(void);
/* Settings of Open MPI, through variables the user has not set: two TCP connections between two
 * ranks; and where all ranks share a node, those that make MPI_Init quick, which would else probe
 * every network library there is (measured: 240 ms; with them 30 ms). Call before MPI_Init. */
void launcher_tune_mpi(const Launcher *launcher);

#endif
