/* The process grid: replicas, pipeline stages, tensor-parallel ranks. */
#ifndef WEFT_PARALLEL_GRID_H
#define WEFT_PARALLEL_GRID_H

#include "config.h"
#include "parallel/world.h"
#include "tensor.h"

/* Sizes of the grid along its three axes: number of replicas, of pipeline stages, of
 * tensor-parallel ranks. The number of a rank is (pp_rank * dp + dp_rank) * tp + tp_rank (see
 * Grid): the ranks that exchange the most messages, of tensor parallelism and then of data
 * parallelism, are neighbours and therefore usually on the same node. */
typedef struct GridShape {
    int dp, pp, tp;
} GridShape;
/* The place of this rank in the grid, and the worlds along the axes. */
typedef struct Grid {
    GridShape shape;
    /* dp_rank: index of this rank's replica; pp_rank: index of its stage; tp_rank: its index in its
     * tensor-parallel group */
    int dp_rank, pp_rank, tp_rank;
    /* all ranks; borrowed */
    const World *world;
    /* worlds of the ranks that differ from this rank only in dp_rank, only in pp_rank, or only in
     * tp_rank; owned */
    World dp_world, pp_world, tp_world;
    /* [0]: NCCL communicator of the GPUs of all ranks; [1], [2], [3]: those of dp_world, pp_world
     * and tp_world, split from [0]; owned. NULL if grid_join_gpus has not made them. */
    struct NcclComm *nccl_comm[4];
} Grid;

/* Computes the grid that config requests for `ranks` ranks, servers excluded. ERR_CONFIG: the grid
 * does not use every rank; the message has shapes that would fit. A pure function. */
Status grid_shape(GridShape *shape, const Config *config, int ranks);
/* Makes the grid. Release with grid_fini. Both functions are collective on world; every rank
 * returns the same Status. */
Status grid_init(Grid *grid, const World *world, GridShape shape);
/* Makes NCCL communicators between the GPUs of all ranks, for the sums and messages of grid's
 * worlds; grid_fini releases them. Makes none for one rank, for host memory, or if transport is shm
 * or mpi: data is then copied through host memory. NCCL cannot connect ranks that share a GPU. If
 * ranks share one, transport auto prints a warning and all ranks use host memory; transport nccl is
 * ERR_CONFIG. Different models of GPU compute different bits: a mixture of models is ERR_CONFIG if
 * bits (train.reproducible) is REPRODUCIBLE_ANY_GRID, and a warning otherwise. Collective on
 * grid->world; every rank returns the same Status. */
Status grid_join_gpus(Grid *grid, Backend *backend, int transport, int bits);
void grid_fini(Grid *grid);

#endif
