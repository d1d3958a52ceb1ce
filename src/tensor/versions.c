/* What the tensor room was built with and runs on. */
#include "tensor.h"
#include "cpu/dnnl.h"

void backend_versions(FILE *out)
{
    const char *why = "";
    int count = cuda_device_count(&why);
    dnnl_versions(out);
#if defined(_OPENMP)
    fprintf(out, "OpenMP %d, compiler " __VERSION__ "\n", _OPENMP);
#else
    fprintf(out, "OpenMP in oneDNN only, compiler " __VERSION__ "\n");
#endif
    if (count > 0)
        fprintf(out, "CUDA: %d device%s\n", count, count == 1 ? "" : "s");
    else
        fprintf(out, "CUDA: none (%s)\n", why);
}
