/* Ends the whole job, and leaves the exit code where the node's other ranks read it. Also declares
 * two functions that other files of this module share: grid_release_gpus and world_context. */
#ifndef WEFT_PARALLEL_ABORT_H
#define WEFT_PARALLEL_ABORT_H

#include "parallel.h"

#include <sys/types.h>

/* A word of shared memory to which this rank writes its exit code after it has printed why it ends
 * the job. Peers that find a code there do not report this rank's death. If there are several
 * notices, the code is written to all of them. The ExitNotice and *code are borrowed until
 * exit_notice_remove. */
typedef struct ExitNotice {
    _Atomic uint32_t *code;
    struct ExitNotice *next;
} ExitNotice;
void exit_notice_add(ExitNotice *notice);
void exit_notice_remove(ExitNotice *notice);
/* Writes code to all exit notices and ends the whole job (MPI_COMM_WORLD). If MPI_Abort has not
 * ended this process after five seconds, the process exits by itself. */
void world_abort(int code);
/* Makes world_abort also kill `process`, on the same node, just before this process exits by
 * itself: a process that is stopped, or that waits for a dead rank, would otherwise remain. */
void world_abort_also_kill(pid_t process);

/* Releases the communicators of GPUs that grid_join_gpus has made (nccl/gpus.c); does nothing if
 * there are none. Collective on grid->world. */
void grid_release_gpus(Grid *grid);

/* Sets the description of this rank that die prints: "rank 3 of 8 (dp 1, pp 0, tp 1) on node07".
 * coordinates: "" or " (dp 1, pp 0, tp 1)". */
void world_context(const World *world, const char *coordinates);

#endif
