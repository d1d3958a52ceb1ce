/* Activations, forward and backward, one thread an element. */
#include "act.cuh"
#include "launch.cuh"

template <Act ACT> static __global__ void forward_kernel(float *y, const float *x, int64_t n)
{
    int64_t i = element();
    if (i < n) y[i] = act_value<ACT>(x[i]);
}

template <Act ACT>
static __global__ void backward_kernel(float *dx, const float *dy, const float *at, int64_t n)
{
    int64_t i = element();
    if (i < n) dx[i] = dy[i] * act_slope<ACT>(at[i]);
}

cudaError_t cuda_activation(cudaStream_t stream, Act act, float *y, const float *x, int64_t n)
{
#define LAUNCH(A) forward_kernel<A><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(y, x, n)
    if (n > 0) ACT_SWITCH(act, LAUNCH)
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t cuda_activation_backward(cudaStream_t stream, Act act, float *dx, const float *dy,
                                     const float *at, int64_t n)
{
#define LAUNCH(A) backward_kernel<A><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(dx, dy, at, n)
    if (n > 0) ACT_SWITCH(act, LAUNCH)
#undef LAUNCH
    return cudaGetLastError();
}
