/* Prints which CUDA, cuBLASLt and cuDNN weft was built with and which it runs on. Binds the
 * libraries in order to ask them; a missing one is reported as such. */
#include "cuda.h"

static void print_cuda(FILE *out)
{
    int driver = 0;
    const char *why = NULL;
    int count = cuda_device_count(&why);
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
        fprintf(out, "no GPU (%s)\n", why);
}

static void print_library(FILE *out, const char *name, const char *built, Status found,
                          size_t running, size_t unit)
{
    fprintf(out, "%s built against %s, ", name, built);
    if (found == OK)
        fprintf(out, "running %zu.%zu.%zu\n", running / unit, running % unit / 100, running % 100);
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
                  found, found == OK ? cublaslt.get_version() : 0, 10000);
    found = cudnn_load();
    print_library(out, "cuDNN", TEXT(CUDNN_MAJOR) "." TEXT(CUDNN_MINOR) "." TEXT(CUDNN_PATCHLEVEL),
                  found, found == OK ? cudnn.get_version() : 0, 10000);
}
