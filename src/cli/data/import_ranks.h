/* The ranks of an import (data/import.h) for the verbs that run on several ranks. */
#ifndef WEFT_CLI_IMPORT_RANKS_H
#define WEFT_CLI_IMPORT_RANKS_H

#include "../private.h"

#include "data/import.h"

/* Does an import on these ranks, with `threads` threads on each. */
typedef Status ImportOnRanks(const ImportRanks *ranks, int threads, const void *user);
/* Starts MPI, calls `import` on each rank, with a progress line that counts `things` ("pictures"),
 * and ends MPI. reads_names: rank 0 may read names of classes from a data set. threads: of each
 * rank; 0 or less: the rank's share of the cores. Collective. */
Status import_on_ranks(ImportOnRanks *import, const char *things, bool reads_names, int64_t threads,
                       const void *user);

#endif
