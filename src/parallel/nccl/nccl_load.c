/* Loads NCCL at run time. The dynamic loader searches the program's run path (the CUDA of the
 * build), LD_LIBRARY_PATH and the system's directories. */
#include "nccl.h"
#include "parallel.h"

Nccl nccl;

#define TEXT_(x)     #x
#define TEXT(x)      TEXT_(x)
#define NCCL_LIBRARY "libnccl.so." TEXT(NCCL_MAJOR)

static const LibrarySymbol symbols[] = {
    {"ncclGetUniqueId", offsetof(Nccl, get_unique_id)},
    {"ncclCommInitRankConfig", offsetof(Nccl, comm_init)},
    {"ncclCommSplit", offsetof(Nccl, comm_split)},
    {"ncclCommGetAsyncError", offsetof(Nccl, comm_async_error)},
    {"ncclCommFinalize", offsetof(Nccl, comm_finalize)},
    {"ncclCommDestroy", offsetof(Nccl, comm_destroy)},
    {"ncclCommAbort", offsetof(Nccl, comm_abort)},
    {"ncclGroupStart", offsetof(Nccl, group_start)},
    {"ncclGroupEnd", offsetof(Nccl, group_end)},
    {"ncclSend", offsetof(Nccl, send)},
    {"ncclRecv", offsetof(Nccl, recv)},
    {"ncclAllReduce", offsetof(Nccl, all_reduce)},
    {"ncclGetErrorString", offsetof(Nccl, error_string)},
    {"ncclGetLastError", offsetof(Nccl, last_error)},
    {"ncclGetVersion", offsetof(Nccl, get_version)},
    {0},
};

static const Library library = {.file = NCCL_LIBRARY,
                                .name = "NCCL",
                                .user = "grid.transport: nccl",
                                .cure = "use one rank, or train.device=cpu",
                                .symbol = symbols};

Status nccl_load(void)
{
    return nccl.get_unique_id ? OK : library_bind(&library, &nccl);
}

void comm_versions(FILE *out)
{
    int running = 0;
    fprintf(out, "NCCL built against %d.%d.%d, ", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
    if (nccl_load() != OK || nccl.get_version(&running) != ncclSuccess)
        fprintf(out, "not found at run time\n");
    else
        fprintf(out, "running %d.%d.%d\n", running / 10000, running / 100 % 100, running % 100);
}
