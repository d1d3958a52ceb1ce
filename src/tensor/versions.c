/* What the tensor module was built with and runs on. */
#include "tensor.h"
#include "cpu/dnnl.h"

void backend_versions(FILE *out)
{
    dnnl_versions(out);
#if defined(_OPENMP)
    fprintf(out, "OpenMP %d, compiler " __VERSION__ "\n", _OPENMP);
#else
    fprintf(out, "OpenMP in oneDNN only, compiler " __VERSION__ "\n");
#endif
    cuda_versions(out);
}
