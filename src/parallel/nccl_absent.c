/* Replaces src/parallel/nccl in a build without CUDA. Opening comm_nccl fails with a message. The
 * Makefile links either this file or that folder. */
#include "nccl/channel_nccl.h"
#include "transport/comm_table.h"
#include "world/abort.h"

static Status absent_open(Comm *comm, Backend *backend, size_t arena_bytes)
{
    (void)comm;
    (void)backend;
    (void)arena_bytes;
    return fail(
        ERR_CONFIG,
        "grid.transport: nccl, but weft was built without CUDA: use auto, or build with nvcc "
        "(`make info` says what was found)");
}

Status grid_join_gpus(Grid *grid, Backend *backend, int transport, int bits)
{
    (void)grid;
    (void)backend;
    (void)transport;
    (void)bits;
    /* without CUDA all memory is host memory, so there are no GPUs to join */
    return OK;
}

void grid_release_gpus(Grid *grid)
{
    (void)grid;
}

size_t comm_nccl_scratch(int ranks, int64_t elements)
{
    (void)ranks;
    (void)elements;
    return 0;
}

Exchange *gpu_exchange_new(const World *world, size_t most, bool tree)
{
    (void)world;
    (void)most;
    (void)tree;
    return NULL;
}

void gpu_exchange_free(Exchange **exchange)
{
    (void)exchange;
}

size_t gpu_exchange_bytes(int ranks, size_t most)
{
    (void)ranks;
    (void)most;
    return 0;
}

void channel_nccl_open(Channel *channel, const struct NcclComm *nccl_comm)
{
    (void)channel;
    (void)nccl_comm;
}

void channel_nccl_move(Channel *channel, const int *which, int count)
{
    (void)channel;
    (void)which;
    (void)count;
}

void comm_versions(FILE *out)
{
    fprintf(out, "NCCL: built without\n");
}

const ChannelTable channel_nccl = {.absent = true};
const CommTable comm_nccl = {.name = "nccl", .absent = true, .open = absent_open};
