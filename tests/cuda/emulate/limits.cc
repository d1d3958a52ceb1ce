/* Kernels and launches that a GPU refuses, for tests/cuda/test_limits.c. */
#include "kernel.h"

struct alignas(16) Four {
    float x[4];
};

static __global__ void empty_kernel()
{
}

static __global__ void read_four_kernel(float *out, const float *from)
{
    Four four = *(const Four *)from;
    for (int i = 0; i < 4; ++i) out[i] = four.x[i];
}

extern "C" {
cudaError_t limits_launch(cudaStream_t stream, dim3 grid, dim3 threads, size_t shared_bytes);
cudaError_t limits_ask(int shared_bytes);
cudaError_t limits_read_four(cudaStream_t stream, float *out, const float *from);

cudaError_t limits_launch(cudaStream_t stream, dim3 grid, dim3 threads, size_t shared_bytes)
{
    emulate::launch(grid, threads, shared_bytes, stream).of(empty_kernel)();
    return cudaGetLastError();
}
cudaError_t limits_ask(int shared_bytes)
{
    return cudaFuncSetAttribute((const void *)empty_kernel,
                                cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
}
cudaError_t limits_read_four(cudaStream_t stream, float *out, const float *from)
{
    emulate::launch(1, 1, 0, stream).of(read_four_kernel)(out, from);
    return cudaGetLastError();
}
}
