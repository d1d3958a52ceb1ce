/* How a rank ends the job: where it stands, and what it leaves for its peers to find. */
#ifndef WEFT_PARALLEL_ABORT_H
#define WEFT_PARALLEL_ABORT_H

#include "parallel.h"

/* A word of memory where this rank leaves its exit code once it has said why it ends the job, so
 * that its peers need not complain of its death. There may be many: it leaves the code in all of
 * them. Both borrowed until removed. */
typedef struct Farewell {
    _Atomic uint32_t *code;
    struct Farewell *next;
} Farewell;
void world_farewell_add(Farewell *farewell);
void world_farewell_remove(Farewell *farewell);
/* Leaves the farewells and ends the whole job, whatever part of it this rank is working with. */
void world_abort(int code);

/* nccl/gpus.c: releases what grid_join_gpus has made, if it has. Collective on the grid's world. */
void grid_part_gpus(Grid *grid);

/* Says in the messages of die where this rank stands: "rank 3 of 8 (dp 1, pp 0, tp 1) on node07";
 * coordinates: "" or " (dp 1, pp 0, tp 1)". */
void world_context(const World *world, const char *coordinates);

#endif
