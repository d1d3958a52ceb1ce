/* Binds cuBLASLt at run time. If the program were linked with it, every start would take 80 ms
 * longer, even the start of a run on CPUs. */
#include "../cuda.h"

CublasLt cublaslt;

#define TEXT_(x)         #x
#define TEXT(x)          TEXT_(x)
#define CUBLASLT_LIBRARY "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR)

static const LibrarySymbol symbols[] = {
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
    {"cublasLtMatmulAlgoCapGetAttribute", offsetof(CublasLt, algorithm_cap)},
    {"cublasLtMatmulAlgoConfigGetAttribute", offsetof(CublasLt, algorithm_config)},
    {"cublasLtMatmulAlgoCheck", offsetof(CublasLt, algorithm_check)},
    {"cublasLtMatmul", offsetof(CublasLt, matmul)},
    {"cublasLtGetVersion", offsetof(CublasLt, get_version)},
    {"cublasLtGetStatusString", offsetof(CublasLt, status_string)},
    {0},
};

static const Library library = {.file = CUBLASLT_LIBRARY,
                                .name = "cuBLASLt",
                                .user = "train.device: cuda",
                                .cure = "use train.device=cpu",
                                .symbol = symbols};

Status cublaslt_load(void)
{
    return cublaslt.create ? OK : library_bind(&library, &cublaslt);
}

void cublas_check(cublasStatus_t status, const char *call)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        die("%s: %s (cuBLAS status %d)%s", call, cublaslt.status_string(status), (int)status,
            cuda_recording_note());
}
