/* Prints the versions of the libraries and the compiler, and the processor's instruction sets, for
 * users. Also writes texts that ranks compare: the instruction set, and the versions of oneDNN or
 * of the CUDA libraries. These texts contain neither the compiler nor OpenMP. */
#include "tensor.h"
#include "cpu/dnnl/dnnl.h"

#include <stdlib.h>
#include <string.h>

void backend_versions(FILE *out, bool gpus)
{
    fprintf(out, "CPU kernels: %s (this processor has %s)\n",
            cpu_name(cpu_portable() ? CPU_PORTABLE : cpu_used()), cpu_name(cpu_best()));
    dnnl_versions(out);
#if defined(_OPENMP)
    fprintf(out, "OpenMP %d, compiler " __VERSION__ "\n", _OPENMP);
#else
    fprintf(out, "OpenMP in oneDNN only, compiler " __VERSION__ "\n");
#endif
    if (gpus) cuda_versions(out);
}

void backend_instructions(const Backend *backend, char *out, size_t room)
{
    const BackendOptions *o = &backend->options;
    *out = 0;
    if (backend->table->host_memory && cpu_portable())
        snprintf(out, room, "%s", cpu_name(CPU_PORTABLE));
    else if (backend->table->host_memory)
        snprintf(out, room, "%s, oneDNN's set 0x%x", cpu_name(cpu_used()),
                 dnnl_isa(o->precision == DTYPE_F32));
}

/* Writes the versions of the CUDA libraries on one line: all lines of cuda_versions except the
 * first, which has the versions of CUDA and the driver, and the number of GPUs. */
static void cuda_libraries(char *out, size_t room)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *lines = open_memstream(&text, &bytes);
    if (!lines) die("out of memory: versions of libraries");
    cuda_versions(lines);
    fclose(lines);
    const char *rest = strchr(text, '\n');
    snprintf(out, room, "%s", rest ? rest + 1 : "");
    for (char *c = out; *c; ++c)
        if (*c == '\n') *c = c[1] ? ';' : 0;
    free(text);
}

void backend_libraries(const Backend *backend, char *out, size_t room)
{
    if (backend->table->host_memory && cpu_portable())
        *out = 0; /* portable: oneDNN only copies memory, so its version changes no bits */
    else if (backend->table->host_memory)
        dnnl_version_text(out, room);
    else
        cuda_libraries(out, room);
}
