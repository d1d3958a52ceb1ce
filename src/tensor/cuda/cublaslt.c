/* Binds cuBLAS at run time. Linking it would add 80 ms to the start of every run, on CPUs too. The library is looked for
 * where the loader looks: the program's run path (the CUDA it was built with), LD_LIBRARY_PATH, the system's. */
#include "cuda.h"

#include <dlfcn.h>
#include <string.h>

Cublas cublas;

#define TEXT_(x)       #x
#define TEXT(x)        TEXT_(x)
#define CUBLAS_LIBRARY "libcublas.so." TEXT(CUBLAS_VER_MAJOR)

typedef struct Symbol {
    const char *name;
    size_t slot; /* offset in Cublas */
} Symbol;

static const Symbol symbols[] = {
    {"cublasCreate_v2", offsetof(Cublas, create)},
    {"cublasDestroy_v2", offsetof(Cublas, destroy)},
    {"cublasSetStream_v2", offsetof(Cublas, set_stream)},
    {"cublasSetWorkspace_v2", offsetof(Cublas, set_workspace)},
    {"cublasSetMathMode", offsetof(Cublas, set_math_mode)},
    {"cublasSgemm_v2", offsetof(Cublas, sgemm)},
    {"cublasGetVersion_v2", offsetof(Cublas, get_version)},
    {"cublasGetStatusString", offsetof(Cublas, status_string)},
};

Status cublas_load(void)
{
    if (cublas.create) return OK;
    void *library = dlopen(CUBLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail(
            ERR_CONFIG,
            "train.device: cuda needs cuBLAS: %s; put its directory into LD_LIBRARY_PATH, or "
            "use train.device=cpu",
            dlerror());
    Cublas found;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; ++i) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol) {
            Status st = fail(ERR_CONFIG, "%s has no %s: install the cuBLAS of CUDA %d",
                             CUBLAS_LIBRARY, symbols[i].name, CUDART_VERSION / 1000);
            dlclose(library);
            return st;
        }
        memcpy((char *)&found + symbols[i].slot, &symbol, sizeof symbol);
    }
    cublas = found; /* stays bound until the process ends */
    return OK;
}

void cublas_check(cublasStatus_t status, const char *call)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        die("%s: %s (cuBLAS status %d)", call, cublas.status_string(status), (int)status);
}
