/* How a rank ends the whole job, and how its peers learn why. */
#ifndef WEFT_PARALLEL_ABORT_H
#define WEFT_PARALLEL_ABORT_H

#include "parallel.h"

#include <sys/types.h>

/* A word of shared memory in which this rank leaves its exit code after it has printed why it ends
 * the job, so that its peers need not report its death. There may be several: the code is written
 * to all of them. ExitNotice and code are borrowed until removed. */
typedef struct ExitNotice {
    _Atomic uint32_t *code;
    struct ExitNotice *next;
} ExitNotice;
void exit_notice_add(ExitNotice *notice);
void exit_notice_remove(ExitNotice *notice);
/* Writes code to all exit notices and ends the whole job, whichever part of the world this rank
 * works with. If MPI_Abort has not ended this process after five seconds, it exits by itself. */
void world_abort(int code);
/* Makes world_abort also kill this process of the node at that point: one that is stopped, or that
 * waits for a dead rank. */
void world_abort_also_kill(pid_t process);

/* Releases what grid_join_gpus made, if anything (nccl/gpus.c). Collective on grid->world. */
void grid_release_gpus(Grid *grid);

/* Sets the place of this rank that die prints: "rank 3 of 8 (dp 1, pp 0, tp 1) on node07".
 * coordinates: "" or " (dp 1, pp 0, tp 1)". */
void world_context(const World *world, const char *coordinates);

#endif
