/* Stands in for the CUDA backend in a build without CUDA: opening it fails with that message. The
 * Makefile links this file or cuda/, never both. */
#include "tensor.h"

static Status absent_open(Backend *backend, BackendOptions options)
{
    (void)backend;
    (void)options;
    return fail(
        ERR_CONFIG,
        "train.device: cuda, but weft was built without CUDA: use train.device=cpu, or build "
        "where nvcc is (`make info` says what was found)");
}

const BackendTable backend_cuda = {.name = "cuda", .open = absent_open};

void cuda_versions(FILE *out)
{
    fprintf(out, "CUDA: built without\n");
}

Status nvtx_start(void)
{
    return fail(ERR_CONFIG,
                "run.nvtx: true, but weft was built without CUDA, which NVTX is part of: leave it "
                "out (run.trace=true needs nothing), or build where nvcc is");
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
