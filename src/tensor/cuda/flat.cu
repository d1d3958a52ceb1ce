/* Elementwise work on flat ranges: sums, update rules, partial norms. A partial norm covers FLAT_CHUNK elements, by one
 * block: thread t adds elements t, t + THREADS, ... in double, then a tree over the threads. */
#include "cuda_kernels.h"
#include "launch.cuh"

static __global__ void fill_kernel(float *to, float value, int64_t n)
{
    int64_t i = element();
    if (i < n) to[i] = value;
}

static __global__ void add_kernel(float *out, const float *a, const float *b, int64_t n)
{
    int64_t i = element();
    if (i < n) out[i] = a[i] + b[i];
}

static __global__ void scale_add_kernel(float *y, float alpha, const float *x, float beta,
                                        int64_t n)
{
    int64_t i = element();
    if (i < n) y[i] = alpha * x[i] + (beta != 0 ? beta * y[i] : 0);
}

static __global__ void squares_kernel(double *out, const float *x, int64_t n)
{
    __shared__ double part[THREADS];
    int64_t first = (int64_t)blockIdx.x * FLAT_CHUNK;
    int64_t last = first + FLAT_CHUNK < n ? first + FLAT_CHUNK : n;
    double sum = 0;
    for (int64_t i = first + threadIdx.x; i < last; i += THREADS) sum += (double)x[i] * x[i];
    part[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

static __global__ void sgd_kernel(SgdArgs a, float *w, const float *g, float *m, int64_t n)
{
    int64_t i = element();
    if (i >= n) return;
    float step = g[i] * a.grad_scale + a.weight_decay * w[i];
    if (a.momentum != 0) {
        float velocity = a.first ? step : a.momentum * m[i] + step;
        m[i] = velocity;
        step = a.nesterov ? step + a.momentum * velocity : velocity;
    }
    w[i] -= a.lr * step;
}

static __global__ void adam_kernel(AdamRun run)
{
    const AdamArgs a = run.args;
    int64_t i = element();
    if (i >= run.n) return;
    float w = run.w[i], g = run.g[i] * a.grad_scale;
    if (!run.direction && !a.decoupled) g += a.weight_decay * w;
    float m = a.beta1 * run.m[i] + (1 - a.beta1) * g;
    float v = a.beta2 * run.v[i] + (1 - a.beta2) * g * g;
    run.m[i] = m;
    run.v[i] = v;
    float u = (m / a.correct1) / (sqrtf(v / a.correct2) + a.eps);
    if (run.direction) {
        run.out[i] = u + a.weight_decay * w;
    } else {
        if (a.decoupled) w *= 1 - a.lr * a.weight_decay;
        run.out[i] = w - a.lr * u;
    }
}

cudaError_t cuda_fill(cudaStream_t stream, float *to, float value, int64_t n)
{
    if (n > 0) fill_kernel<<<blocks_for(n, THREADS), THREADS, 0, stream>>>(to, value, n);
    return cudaGetLastError();
}

cudaError_t cuda_add(cudaStream_t stream, float *out, const float *a, const float *b, int64_t n)
{
    if (n > 0) add_kernel<<<blocks_for(n, THREADS), THREADS, 0, stream>>>(out, a, b, n);
    return cudaGetLastError();
}

cudaError_t cuda_scale_add(cudaStream_t stream, float *y, float alpha, const float *x, float beta,
                           int64_t n)
{
    if (n > 0)
        scale_add_kernel<<<blocks_for(n, THREADS), THREADS, 0, stream>>>(y, alpha, x, beta, n);
    return cudaGetLastError();
}

cudaError_t cuda_squares(cudaStream_t stream, double *out, const float *x, int64_t n)
{
    if (n > 0) squares_kernel<<<blocks_for(n, FLAT_CHUNK), THREADS, 0, stream>>>(out, x, n);
    return cudaGetLastError();
}

cudaError_t cuda_sgd(cudaStream_t stream, SgdArgs a, float *w, const float *g, float *m, int64_t n)
{
    if (n > 0) sgd_kernel<<<blocks_for(n, THREADS), THREADS, 0, stream>>>(a, w, g, m, n);
    return cudaGetLastError();
}

cudaError_t cuda_adam(cudaStream_t stream, AdamRun run)
{
    if (run.n > 0) adam_kernel<<<blocks_for(run.n, THREADS), THREADS, 0, stream>>>(run);
    return cudaGetLastError();
}
