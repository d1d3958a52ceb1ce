/* The process grid: replicas, pipeline stages, tensor-parallel ranks. */
#ifndef WEFT_PARALLEL_GRID_H
#define WEFT_PARALLEL_GRID_H

#include "config.h"
#include "parallel/world.h"
#include "tensor.h"

/* Sizes of the grid along its three axes, and the place of one rank in it. rank = (pp_rank * dp +
 * dp_rank) * tp + tp_rank: the ranks that talk most (tensor, then data parallel) are neighbours and
 * therefore usually on the same node. */
typedef struct GridShape {
    int dp, pp, tp;
} GridShape;
typedef struct Grid {
    GridShape shape;
    int dp_rank, pp_rank, tp_rank;
    /* all ranks; borrowed */
    const World *world;
    /* worlds of the ranks that differ from this one only in dp_rank, pp_rank or tp_rank; owned */
    World dp_world, pp_world, tp_world;
    /* [0]: NCCL communicator of the GPUs of all ranks; [1], [2], [3]: those of dp_world, pp_world
     * and tp_world, split from [0]; owned. NULL if the GPUs are not joined, or if the world has one
     * rank. */
    struct Gpus *gpus[4];
} Grid;

/* The grid that config requests for `ranks` ranks. ERR_CONFIG, with shapes that would fit, if the
 * grid does not use every rank. A pure function. */
Status grid_shape(GridShape *shape, const Config *config, int ranks);
/* Collective on world; every rank returns the same Status. Release with grid_fini (collective). */
Status grid_init(Grid *grid, const World *world, GridShape shape);
/* Joins the GPUs of all ranks by NCCL, for the sums and messages of grid's worlds. Does nothing for
 * one rank or in host memory. With transport shm or mpi nothing is joined, and data are copied
 * through host memory. NCCL cannot join ranks that share a GPU: with transport auto these ranks get
 * a warning and use host memory, with nccl this is ERR_CONFIG. Different models of GPU compute
 * different results: a mixture is ERR_CONFIG if bits (train.reproducible) is REPRODUCIBLE_ANY_GRID,
 * and a warning otherwise. Collective on grid->world; every rank returns the same Status. grid_fini
 * releases it. */
Status grid_join_gpus(Grid *grid, Backend *backend, int transport, int bits);
void grid_fini(Grid *grid);

#endif
