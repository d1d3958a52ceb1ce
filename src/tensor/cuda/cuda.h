/* The CUDA backend's private door: its state, its checks, its operations. One thread makes every call. Activations are
 * plain row-major; the memory of every pointer in an OpRun is the device's. */
#ifndef WEFT_TENSOR_CUDA_H
#define WEFT_TENSOR_CUDA_H

#include "cuda_kernels.h"
#include "tensor.h"

#include <cublas_v2.h>

struct Stream {
    cudaStream_t handle;
};
struct Event {
    cudaEvent_t handle;
};

typedef struct CudaState {
    int device;
    char name[256]; /* "NVIDIA A100-SXM4-80GB" */
    Stream compute;
    cublasHandle_t blas;  /* bound to compute */
    void *blas_workspace; /* owned: with memory of its own cuBLAS repeats its bits */
} CudaState;

/* cuBLAS, bound when the first backend opens: a run on CPUs does not wait for its 600 MB to be mapped. */
typedef struct Cublas {
    __typeof__(cublasCreate_v2) *create;
    __typeof__(cublasDestroy_v2) *destroy;
    __typeof__(cublasSetStream_v2) *set_stream;
    __typeof__(cublasSetWorkspace_v2) *set_workspace;
    __typeof__(cublasSetMathMode) *set_math_mode;
    __typeof__(cublasSgemm_v2) *sgemm;
    __typeof__(cublasGetVersion_v2) *get_version;
    __typeof__(cublasGetStatusString) *status_string;
} Cublas;
extern Cublas cublas;
Status cublas_load(void);

/* Inside a step: anything but success is die() with the call and CUDA's own words. */
void cuda_check(cudaError_t error, const char *call);
void cublas_check(cublasStatus_t status, const char *call);
#define CUDA_CALL(call)   cuda_check((call), #call)
#define CUBLAS_CALL(call) cublas_check((call), #call)

static inline CudaState *cuda_state(const Op *op)
{
    return op->backend->impl;
}
static inline cudaStream_t cuda_stream(const Op *op)
{
    return cuda_state(op)->compute.handle;
}

/* For every plan: true where all inputs are plain; else *wish asks for plain ones, and the planner comes again. */
bool cuda_inputs_plain(const Op *op, Desc wish[OP_INPUTS]);

extern const FlatTable cuda_flat;
extern const OpTable cuda_dense, cuda_act, cuda_sum, cuda_flatten, cuda_softmax, cuda_mse;

#endif
