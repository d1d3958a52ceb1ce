/* Runs imports (data/import.h) on several ranks. */
#ifndef WEFT_CLI_IMPORT_RANKS_H
#define WEFT_CLI_IMPORT_RANKS_H

#include "../private.h"

#include "data/import.h"

/* Function that imports data on all ranks. threads: number of threads of this rank. user: the last
 * argument of import_on_ranks. */
typedef Status ImportOnRanks(const ImportRanks *ranks, int threads, const void *user);
/* Starts MPI, calls `import` on each rank, and ends MPI. Rank 0 prints a progress line. things:
 * name of the things that the line counts, such as "pictures". reads_names: true: rank 0 may read
 * names of classes from a data set. threads: number of threads of each rank; 0 or less: the rank's
 * share of the cores. Collective. */
Status import_on_ranks(ImportOnRanks *import, const char *things, bool reads_names, int64_t threads,
                       const void *user);

#endif
