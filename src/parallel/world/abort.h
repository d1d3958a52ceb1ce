/* How a rank ends the whole job, and how its peers learn why. */
#ifndef WEFT_PARALLEL_ABORT_H
#define WEFT_PARALLEL_ABORT_H

#include "parallel.h"

#include <sys/types.h>

/* A word of shared memory in which this rank leaves its exit code after it has printed why it ends
 * the job, so that its peers need not report its death. There may be several: the code is written
 * to all of them. Farewell and code are borrowed until removed. */
typedef struct Farewell {
    _Atomic uint32_t *code;
    struct Farewell *next;
} Farewell;
void world_farewell_add(Farewell *farewell);
void world_farewell_remove(Farewell *farewell);
/* Writes code to all farewells and ends the whole job, whichever part of the world this rank works
 * with. If MPI_Abort has not ended this process after five seconds, it exits by itself. */
void world_abort(int code);
/* Makes world_abort also kill this process of the node at that point: one that is stopped, or that
 * waits for a dead rank. */
void world_abort_kills(pid_t process);

/* Releases what grid_join_gpus made, if anything (nccl/gpus.c). Collective on grid->world. */
void grid_part_gpus(Grid *grid);

/* Sets the place of this rank that die prints: "rank 3 of 8 (dp 1, pp 0, tp 1) on node07".
 * coordinates: "" or " (dp 1, pp 0, tp 1)". */
void world_context(const World *world, const char *coordinates);

#endif
