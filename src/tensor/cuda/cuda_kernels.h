/* Launchers of the CUDA kernels, as the C files call them. Each queues one kernel on `stream` and returns the launch's
 * error; n = 0 queues nothing. All pointers are device memory. Every kernel gives the same bits each time: no floating
 * point atomics, and sums in an order that depends on the shape alone. */
#ifndef WEFT_CUDA_KERNELS_H
#define WEFT_CUDA_KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
#define _Noreturn [[noreturn]] /* the doors are C17 */
#endif
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* flat.cu: see FlatTable */
cudaError_t cuda_fill(cudaStream_t stream, float *to, float value, int64_t n);
cudaError_t cuda_add(cudaStream_t stream, float *out, const float *a, const float *b, int64_t n);
cudaError_t cuda_scale_add(cudaStream_t stream, float *y, float alpha, const float *x, float beta,
                           int64_t n);
cudaError_t cuda_squares(cudaStream_t stream, double *out, const float *x, int64_t n);
cudaError_t cuda_sgd(cudaStream_t stream, SgdArgs a, float *w, const float *g, float *m, int64_t n);

typedef struct AdamRun {
    AdamArgs args;
    bool direction; /* false: out is w, updated; true: out takes LAMB's direction */
    float *out;
    const float *w, *g;
    float *m, *v;
    int64_t n;
} AdamRun;
cudaError_t cuda_adam(cudaStream_t stream, AdamRun run);

/* activation.cu: y = act(x); dx = dy * act'(.), where `at` is y for relu and relu6, and x for gelu and silu. In place
 * allowed. */
cudaError_t cuda_activation(cudaStream_t stream, Act act, float *y, const float *x, int64_t n);
cudaError_t cuda_activation_backward(cudaStream_t stream, Act act, float *dx, const float *dy,
                                     const float *at, int64_t n);

/* dense.cu: y[rows, columns] = act(y + bias), bias may be NULL; out[columns] = sum of dy over rows */
cudaError_t cuda_bias_act(cudaStream_t stream, Act act, float *y, const float *bias, int64_t rows,
                          int64_t columns);
cudaError_t cuda_column_sum(cudaStream_t stream, float *out, const float *dy, int64_t rows,
                            int64_t columns);

/* loss.cu: x (rows, width); rows beyond `real` get zero columns and zero gradients */
typedef struct LossRun {
    const float *x;
    const int32_t *labels;
    const float *targets;
    float *columns; /* forward: (rows, LOSS_COLUMNS) */
    float *
        log_sum; /* softmax: (rows), log of the sum of exponentials; forward writes, backward reads */
    float *dx;   /* backward: (rows, width) */
    float smoothing, scale;
    int64_t rows, real, width;
} LossRun;
cudaError_t cuda_softmax_loss(cudaStream_t stream, LossRun run);
cudaError_t cuda_softmax_loss_backward(cudaStream_t stream, LossRun run);
cudaError_t cuda_mse_loss(cudaStream_t stream, LossRun run);
cudaError_t cuda_mse_loss_backward(cudaStream_t stream, LossRun run);

#ifdef __cplusplus
}
#endif
#endif
