/* The CUDA backend's private door: its state, its checks, its operations. One thread makes every call. Activations are
 * plain row-major; the memory of every pointer in an OpRun is the device's. */
#ifndef WEFT_TENSOR_CUDA_H
#define WEFT_TENSOR_CUDA_H

#include "cuda_kernels.h"
#include "tensor.h"

#include <cublasLt.h>

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
    cublasLtHandle_t blas;
    void *blas_workspace; /* owned */
} CudaState;

/* cuBLASLt, bound when the first backend opens: a run on CPUs does not wait for its 600 MB to be mapped. */
typedef struct CublasLt {
    __typeof__(cublasLtCreate) *create;
    __typeof__(cublasLtDestroy) *destroy;
    __typeof__(cublasLtMatmulDescCreate) *desc_create;
    __typeof__(cublasLtMatmulDescDestroy) *desc_destroy;
    __typeof__(cublasLtMatmulDescSetAttribute) *desc_set;
    __typeof__(cublasLtMatrixLayoutCreate) *layout_create;
    __typeof__(cublasLtMatrixLayoutDestroy) *layout_destroy;
    __typeof__(cublasLtMatmulPreferenceCreate) *preference_create;
    __typeof__(cublasLtMatmulPreferenceDestroy) *preference_destroy;
    __typeof__(cublasLtMatmulPreferenceSetAttribute) *preference_set;
    __typeof__(cublasLtMatmulAlgoGetHeuristic) *heuristic;
    __typeof__(cublasLtMatmul) *matmul;
    __typeof__(cublasLtGetVersion) *get_version;
    __typeof__(cublasLtGetStatusString) *status_string;
} CublasLt;
extern CublasLt cublaslt;
enum { CUDA_BLAS_WORKSPACE_BYTES = 32 << 20 };
Status cublaslt_load(void);

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

/* For every plan: true where all inputs are plain, and numbers of the backend's precision; else *wish asks for such, and the
 * planner comes again. */
bool cuda_inputs(const Op *op, Desc wish[OP_INPUTS]);
/* A plain activation in the backend's precision. */
static inline Desc cuda_desc(const Op *op, Shape shape)
{
    return desc_plain(shape, op->backend->options.precision);
}

extern const FlatTable cuda_flat;
extern const OpTable cuda_dense, cuda_act, cuda_plus, cuda_flatten, cuda_reorder, cuda_drop,
    cuda_embed, cuda_places, cuda_layernorm, cuda_attend, cuda_softmax, cuda_mse;

#endif
