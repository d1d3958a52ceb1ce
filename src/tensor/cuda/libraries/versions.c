/* Prints the versions of CUDA, cuBLASLt and cuDNN with which weft was built and with which it runs.
 * Loads the libraries to read their versions, and reports a missing library as not found. */
#include "../cuda.h"

static void print_cuda(FILE *out)
{
    int driver = 0;
    const char *reason = NULL;
    int count = cuda_device_count(&reason);
    if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
    fprintf(out, "CUDA built with %d.%d, driver for ", CUDART_VERSION / 1000,
            CUDART_VERSION % 1000 / 10);
    if (driver > 0)
        fprintf(out, "%d.%d, ", driver / 1000, driver % 1000 / 10);
    else
        fprintf(out, "none, ");
    if (count > 0)
        fprintf(out, "%d GPU%s\n", count, count == 1 ? "" : "s");
    else
        fprintf(out, "no GPU (%s)\n", reason);
}

/* Prints a line about a library. version: major * MAJOR_UNIT + minor * 100 + patch, read only if
 * `found` is OK. */
enum { MAJOR_UNIT = 10000 };
static void print_library(FILE *out, const char *name, const char *built, Status found,
                          size_t version)
{
    fprintf(out, "%s built against %s, ", name, built);
    if (found == OK)
        fprintf(out, "running %zu.%zu.%zu\n", version / MAJOR_UNIT, version % MAJOR_UNIT / 100,
                version % 100);
    else
        fprintf(out, "not found at run time\n");
}

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

void cuda_versions(FILE *out)
{
    print_cuda(out);
    Status found = cublaslt_load();
    print_library(out, "cuBLASLt",
                  TEXT(CUBLAS_VER_MAJOR) "." TEXT(CUBLAS_VER_MINOR) "." TEXT(CUBLAS_VER_PATCH),
                  found, found == OK ? cublaslt.get_version() : 0);
    found = cudnn_load();
    print_library(out, "cuDNN", TEXT(CUDNN_MAJOR) "." TEXT(CUDNN_MINOR) "." TEXT(CUDNN_PATCHLEVEL),
                  found, found == OK ? cudnn.get_version() : 0);
}
