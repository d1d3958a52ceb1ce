/* Ends the job, and leaves the exit code where the other ranks of the node read it. Also declares
 * two functions that other files of this module share: grid_release_gpus and world_context. */
#ifndef WEFT_PARALLEL_ABORT_H
#define WEFT_PARALLEL_ABORT_H

#include "parallel.h"

#include <sys/types.h>

/* A word of shared memory to which this rank writes its exit code after it has printed why it ends
 * the job. A peer that finds a code there does not report that this rank is dead. If there are
 * several notices, the code is written to all of them. The ExitNotice and *code are borrowed until
 * exit_notice_remove. */
typedef struct ExitNotice {
    /* the word of shared memory; set by the caller; borrowed */
    _Atomic uint32_t *code;
    /* next notice of the process; set by exit_notice_add */
    struct ExitNotice *next;
} ExitNotice;
void exit_notice_add(ExitNotice *notice);
void exit_notice_remove(ExitNotice *notice);
/* Writes `code` to all exit notices, and ends the job by MPI_Abort on MPI_COMM_WORLD. If MPI_Abort
 * has not ended this process after five seconds, the process exits by itself. */
void world_abort(int code);
/* Makes world_abort also kill `process`, a process of this node, just before this process exits by
 * itself. Otherwise a process that is stopped, or that waits for a dead rank, would remain. */
void world_abort_also_kill(pid_t process);

/* Releases the NCCL communicators that grid_join_gpus has made (nccl/gpus.c). Does nothing if there
 * are none. Collective on grid->world. */
void grid_release_gpus(Grid *grid);

/* Sets the description of this rank that die prints, for example "rank 3 of 8 (dp 1, pp 0, tp 1) on
 * node07". coordinates: "", or the place in the grid as in " (dp 1, pp 0, tp 1)". */
void world_context(const World *world, const char *coordinates);

#endif
