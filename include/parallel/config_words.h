/* Values of the configuration keys grid.transport, grid.sums and train.reproducible. */
#ifndef WEFT_PARALLEL_CONFIG_WORDS_H
#define WEFT_PARALLEL_CONFIG_WORDS_H

#include "config.h"
#include "parallel/sums.h"

/* values of grid.transport */
#define TRANSPORT_WORDS(W)                                                                         \
    W(TRANSPORT_AUTO, "auto")                                                                      \
    W(TRANSPORT_SHM, "shm") W(TRANSPORT_MPI, "mpi") W(TRANSPORT_NCCL, "nccl")
typedef enum Transport { TRANSPORT_WORDS(LIST_CONSTANT) } Transport;
/* values of train.reproducible: on which grids sums have the same bits */
#define REPRODUCIBLE_WORDS(W)                                                                      \
    W(REPRODUCIBLE_ANY_GRID, "any_grid") W(REPRODUCIBLE_SAME_GRID, "same_grid")
typedef enum Reproducible { REPRODUCIBLE_WORDS(LIST_CONSTANT) } Reproducible;

enum { PARALLEL_WORDS = 3 };
extern const ConfigWords parallel_words[PARALLEL_WORDS];

#endif
