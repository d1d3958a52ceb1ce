/* Binds cuBLASLt at run time. Linking it would add 80 ms to the start of every run, on CPUs too. The library is looked for
 * where the loader looks: the program's run path (the CUDA it was built with), LD_LIBRARY_PATH, the system's. */
#include "cuda.h"

#include <dlfcn.h>
#include <string.h>

CublasLt cublaslt;

#define TEXT_(x)         #x
#define TEXT(x)          TEXT_(x)
#define CUBLASLT_LIBRARY "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR)

typedef struct Symbol {
    const char *name;
    size_t slot; /* offset in CublasLt */
} Symbol;

static const Symbol symbols[] = {
    {"cublasLtCreate", offsetof(CublasLt, create)},
    {"cublasLtDestroy", offsetof(CublasLt, destroy)},
    {"cublasLtMatmulDescCreate", offsetof(CublasLt, desc_create)},
    {"cublasLtMatmulDescDestroy", offsetof(CublasLt, desc_destroy)},
    {"cublasLtMatmulDescSetAttribute", offsetof(CublasLt, desc_set)},
    {"cublasLtMatrixLayoutCreate", offsetof(CublasLt, layout_create)},
    {"cublasLtMatrixLayoutDestroy", offsetof(CublasLt, layout_destroy)},
    {"cublasLtMatmulPreferenceCreate", offsetof(CublasLt, preference_create)},
    {"cublasLtMatmulPreferenceDestroy", offsetof(CublasLt, preference_destroy)},
    {"cublasLtMatmulPreferenceSetAttribute", offsetof(CublasLt, preference_set)},
    {"cublasLtMatmulAlgoGetHeuristic", offsetof(CublasLt, heuristic)},
    {"cublasLtMatmul", offsetof(CublasLt, matmul)},
    {"cublasLtGetVersion", offsetof(CublasLt, get_version)},
    {"cublasLtGetStatusString", offsetof(CublasLt, status_string)},
};

Status cublaslt_load(void)
{
    if (cublaslt.create) return OK;
    void *library = dlopen(CUBLASLT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail(
            ERR_CONFIG,
            "train.device: cuda needs cuBLASLt: %s; put its directory into LD_LIBRARY_PATH, or "
            "use train.device=cpu",
            dlerror());
    CublasLt found;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; ++i) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol) {
            Status st = fail(ERR_CONFIG, "%s has no %s: install the cuBLAS of CUDA %d",
                             CUBLASLT_LIBRARY, symbols[i].name, CUDART_VERSION / 1000);
            dlclose(library);
            return st;
        }
        memcpy((char *)&found + symbols[i].slot, &symbol, sizeof symbol);
    }
    cublaslt = found; /* stays bound until the process ends */
    return OK;
}

void cublas_check(cublasStatus_t status, const char *call)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        die("%s: %s (cuBLAS status %d)", call, cublaslt.status_string(status), (int)status);
}
