/* How a rank ends the job: where it stands, and what it leaves for its peers to find. */
#ifndef WEFT_PARALLEL_ABORT_H
#define WEFT_PARALLEL_ABORT_H

#include "parallel.h"

#include <sys/types.h>

/* A word of memory where this rank leaves its exit code once it has said why it ends the job, so
 * that its peers need not complain of its death. There may be many: it leaves the code in all of
 * them. Both borrowed until removed. */
typedef struct Farewell {
    _Atomic uint32_t *code;
    struct Farewell *next;
} Farewell;
void world_farewell_add(Farewell *farewell);
void world_farewell_remove(Farewell *farewell);
/* Leaves the farewells and ends the whole job, whatever part of it this rank is working with. Where
 * MPI_Abort has not ended this process after five seconds, it ends by itself. */
void world_abort(int code);
/* And then kills this process of the node, too: one that is stopped, or waits for a rank that is
 * gone. */
void world_abort_kills(pid_t process);

/* nccl/gpus.c: releases what grid_join_gpus has made, if it has. Collective on the grid's world. */
void grid_part_gpus(Grid *grid);

/* Says in the messages of die where this rank stands: "rank 3 of 8 (dp 1, pp 0, tp 1) on node07";
 * coordinates: "" or " (dp 1, pp 0, tp 1)". */
void world_context(const World *world, const char *coordinates);

#endif
