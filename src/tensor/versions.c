/* What the tensor module was built with and runs on. */
#include "tensor.h"
#include "cpu/dnnl.h"

void backend_versions(FILE *out)
{
    fprintf(out, "CPU kernels: %s (this processor has %s)\n", cpu_name(cpu_used()),
            cpu_name(cpu_best()));
    dnnl_versions(out);
#if defined(_OPENMP)
    fprintf(out, "OpenMP %d, compiler " __VERSION__ "\n", _OPENMP);
#else
    fprintf(out, "OpenMP in oneDNN only, compiler " __VERSION__ "\n");
#endif
    cuda_versions(out);
}
