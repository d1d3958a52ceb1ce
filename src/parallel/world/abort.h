/* How a rank ends the whole job, and how its peers learn why. */
#ifndef WEFT_PARALLEL_ABORT_H
#define WEFT_PARALLEL_ABORT_H

#include "parallel.h"

#include <sys/types.h>

/* A word of shared memory to which this rank writes its exit code after it has printed why it ends
 * the job, so that its peers need not report its death. There may be several notices: the code is
 * written to all of them. An ExitNotice and its code are borrowed until it is removed. */
typedef struct ExitNotice {
    _Atomic uint32_t *code;
    struct ExitNotice *next;
} ExitNotice;
void exit_notice_add(ExitNotice *notice);
void exit_notice_remove(ExitNotice *notice);
/* Writes code to all exit notices and ends the whole job (MPI_COMM_WORLD). If MPI_Abort has not
 * ended this process after five seconds, it exits by itself. */
void world_abort(int code);
/* Makes world_abort kill this process of the same node just before it exits by itself, since a
 * process that is stopped, or that waits for a dead rank, would remain. */
void world_abort_also_kill(pid_t process);

/* Releases what grid_join_gpus made, if anything (nccl/gpus.c). Collective on grid->world. */
void grid_release_gpus(Grid *grid);

/* Sets the description of this rank that die prints: "rank 3 of 8 (dp 1, pp 0, tp 1) on node07".
 * coordinates: "" or " (dp 1, pp 0, tp 1)". */
void world_context(const World *world, const char *coordinates);

#endif
