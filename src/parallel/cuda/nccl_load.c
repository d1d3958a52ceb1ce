/* Binds NCCL at run time, from where the loader looks: the program's run path (the CUDA it was built with),
 * LD_LIBRARY_PATH, the system's directories. */
#include "nccl.h"

#include <dlfcn.h>
#include <string.h>

Nccl nccl;

#define TEXT_(x)     #x
#define TEXT(x)      TEXT_(x)
#define NCCL_LIBRARY "libnccl.so." TEXT(NCCL_MAJOR)

typedef struct Symbol {
    const char *name;
    size_t slot; /* offset in Nccl */
} Symbol;

static const Symbol symbols[] = {
    {"ncclGetUniqueId", offsetof(Nccl, get_unique_id)},
    {"ncclCommInitRankConfig", offsetof(Nccl, comm_init)},
    {"ncclCommGetAsyncError", offsetof(Nccl, comm_async_error)},
    {"ncclCommFinalize", offsetof(Nccl, comm_finalize)},
    {"ncclCommDestroy", offsetof(Nccl, comm_destroy)},
    {"ncclCommAbort", offsetof(Nccl, comm_abort)},
    {"ncclGroupStart", offsetof(Nccl, group_start)},
    {"ncclGroupEnd", offsetof(Nccl, group_end)},
    {"ncclSend", offsetof(Nccl, send)},
    {"ncclRecv", offsetof(Nccl, recv)},
    {"ncclGetErrorString", offsetof(Nccl, error_string)},
    {"ncclGetLastError", offsetof(Nccl, last_error)},
};

Status nccl_load(void)
{
    if (nccl.get_unique_id) return OK;
    void *library = dlopen(NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail(ERR_CONFIG,
                    "grid.transport: nccl needs NCCL: %s; put its directory into LD_LIBRARY_PATH",
                    dlerror());
    Nccl found;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; ++i) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol) {
            dlclose(library);
            return fail(ERR_CONFIG, "%s has no %s: install NCCL %d.%d or newer", NCCL_LIBRARY,
                        symbols[i].name, NCCL_MAJOR, NCCL_MINOR);
        }
        memcpy((char *)&found + symbols[i].slot, &symbol, sizeof symbol);
    }
    nccl = found; /* stays bound until the process ends */
    return OK;
}
