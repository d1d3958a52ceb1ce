/* Replaces the CUDA backend in a build without CUDA: opening the backend fails. The Makefile links
 * either this file or those of cuda/. */
#include "tensor.h"

static Status absent_open(Backend *backend, BackendOptions options)
{
    (void)backend;
    (void)options;
    return fail(
        ERR_CONFIG,
        "train.device: cuda, but weft was built without CUDA: use train.device=cpu, or build "
        "weft on a machine with nvcc (`make info` lists what was found)");
}

/* The table claims all precisions, so that absent_open fails, with its message, for any
 * train.precision. */
const BackendTable backend_cuda = {.name = "cuda",
                                   .absent = true,
                                   .open = absent_open,
                                   .bf16 = SUPPORTED,
                                   .f16 = SUPPORTED,
                                   .tf32 = SUPPORTED};

void cuda_versions(FILE *out)
{
    fprintf(out, "CUDA: built without\n");
}

Status nvtx_start(void)
{
    return fail(
        ERR_CONFIG,
        "run.nvtx: true needs CUDA, without which weft was built: remove it (run.trace=true "
        "works without CUDA), or build weft on a machine with nvcc");
}

int cuda_device_count(const char **why)
{
    if (why) *why = "built without CUDA";
    return 0;
}

bool cuda_device_facts(int number, GpuFacts *facts)
{
    (void)number;
    (void)facts;
    return false;
}
