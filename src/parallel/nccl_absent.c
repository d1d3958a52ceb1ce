/* What stands in for NCCL in a build without CUDA: opening it says so. The Makefile links this file or cuda/, never both. */
#include "parallel.h"

static Status absent_open(Comm *comm, Backend *backend, size_t arena_bytes)
{
    (void)comm;
    (void)backend;
    (void)arena_bytes;
    return fail(
        ERR_CONFIG,
        "grid.transport: nccl, but weft was built without CUDA: use auto, or build where nvcc is "
        "(`make info` says what was found)");
}

void comm_versions(FILE *out)
{
    fprintf(out, "NCCL: built without\n");
}

const CommTable comm_nccl = {.name = "nccl", .open = absent_open};
