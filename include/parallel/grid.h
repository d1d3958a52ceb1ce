/* The process grid: replicas, pipeline stages, tensor-parallel ranks. */
#ifndef WEFT_PARALLEL_GRID_H
#define WEFT_PARALLEL_GRID_H

#include "config.h"
#include "parallel/world.h"
#include "tensor.h"

/* Where one rank stands. rank = (pp_rank * dp + dp_rank) * tp + tp_rank: the ranks that talk most
 * (tensor, then data parallel) are neighbours, so they are on the same node. */
typedef struct GridShape {
    int dp, pp, tp;
} GridShape;
typedef struct Grid {
    GridShape shape;
    int dp_rank, pp_rank, tp_rank;
    /* borrowed: all ranks */
    const World *world;
    /* owned: the ranks that differ from this one in that coordinate only */
    World dp_world, pp_world, tp_world;
    /* owned: all ranks', from which the others are split, dp_world's, pp_world's, tp_world's */
    struct Gpus *gpus[4];
} Grid;

/* What config asks for on `ranks` ranks; ERR_CONFIG says what would fit. A pure function. */
Status grid_shape(GridShape *shape, const Config *config, int ranks);
/* Collective on world; every rank returns the same Status. Release with grid_fini (collective). */
Status grid_init(Grid *grid, const World *world, GridShape shape);
/* Joins the GPUs of all ranks by NCCL, for the sums and messages of grid's worlds; nothing to do
 * for one rank or in host memory. With transport shm or mpi, and with auto where ranks use the same
 * GPU, which NCCL cannot serve (a warning says so), all goes through host memory instead. GPUs of
 * several models are ERR_CONFIG under REPRODUCIBLE_ANY_GRID, for their sums differ; else a warning.
 * Collective on grid->world; every rank returns the same Status. grid_fini releases it. */
Status grid_join_gpus(Grid *grid, Backend *backend, int transport, int bits);
void grid_fini(Grid *grid);

#endif
