/* The ranks of an import (data/import.h) for the verbs that run on several. */
#ifndef WEFT_CLI_IMPORT_HOST_H
#define WEFT_CLI_IMPORT_HOST_H

#include "../private.h"

#include "data/import.h"
#include "parallel.h"

/* Progress line of rank 0. Rank 0 knows only its own progress, and assumes that the other ranks
 * have made as much. */
typedef struct ImportProgress {
    World *world;
    /* stdout is a terminal, on which the line is overwritten */
    bool terminal;
    /* an incomplete line has been printed last */
    bool drawn;
    /* times of the first call and of the last line */
    double begin_s, last_s;
    /* pictures done by an earlier, interrupted import; -1: not known yet */
    int64_t before;
} ImportProgress;
/* Returns the host of an import on the world's ranks; it borrows both. */
ImportHost import_host(World *world, ImportProgress *progress);

#endif
