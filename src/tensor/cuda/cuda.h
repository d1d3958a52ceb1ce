/* The private header of the CUDA backend: its state, its error checks and the helpers that its
 * operations share. One thread makes every call; only OpTable.unpack, which uses no GPU, may be
 * called by other threads. Images are stored channels last. All other activations are in plain
 * order (tensor/shape.h), some with padded rows (cuda_rows_padded). Every array in an OpRun is
 * device memory. */
#ifndef WEFT_TENSOR_CUDA_H
#define WEFT_TENSOR_CUDA_H

#include "cuda_kernels.h"
#include "tensor.h"

#include <cublasLt.h>
#include <cudnn.h>

struct Stream {
    cudaStream_t handle;
};
struct Event {
    cudaEvent_t handle;
};

/* A model of GPU for which a run can be planned on a machine without such a GPU
 * (libraries/gpu_model.c). */
typedef struct GpuModel GpuModel;
/* An entry of the list of cuDNN's plans: a graph of operations and its execution plan
 * (libraries/cudnn_plans.c). */
typedef struct SharedPlan SharedPlan;

typedef struct CudaState {
    /* options of the backend; borrowed */
    const BackendOptions *options;
    /* CUDA's ordinal of the GPU; -1 in a run without a GPU, which only plans operations, for
     * gpu_model */
    int device;
    /* model of GPU for which operations are planned; NULL if `device` is a GPU */
    const GpuModel *gpu_model;
    /* name of the GPU's model, for example "NVIDIA A100-SXM4-80GB" */
    char name[256];
    /* major number of the GPU's compute capability: 8 for 8.0 */
    int capability;
    /* true: products and convolutions of fp32 may use TF32 */
    bool tf32;
    /* the compute stream, on which the launches of operations are queued */
    Stream compute;
    /* bytes of device memory allocated by BackendTable.alloc and for cuBLASLt's workspace */
    size_t allocated_bytes;
    /* bytes of shared memory in which a thread block of softmax_loss may keep a row of logits; 0 if
     * `device` is -1 */
    int64_t softmax_shared_bytes;
    /* cuBLASLt's handle; owned */
    cublasLtHandle_t blas;
    /* workspace of cuBLASLt, CUDA_BLAS_WORKSPACE_BYTES bytes; owned */
    void *blas_workspace;
    /* cuDNN's handle, bound to the compute stream; owned; NULL until the first operation that needs
     * cuDNN, and in a run without a GPU */
    cudnnHandle_t dnn;
    /* description of gpu_model for cuDNN, used in place of `dnn`; owned; NULL if `device` is a GPU,
     * and until the first operation that needs cuDNN */
    cudnnBackendDescriptor_t gpu_description;
    /* first entry of the list of attention's plans (attention/cudnn_attention.h); owned */
    struct CudnnAttention *attention;
    /* first entry of the list of cuDNN's plans, one for each graph; owned */
    SharedPlan *plans;
} CudaState;

/* The functions of cuBLASLt that weft uses. cublaslt_load binds them at run time, so that a run on
 * CPUs does not wait until the library's 600 MB are mapped. */
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
    __typeof__(cublasLtMatmulAlgoCapGetAttribute) *algorithm_cap;
    __typeof__(cublasLtMatmulAlgoConfigGetAttribute) *algorithm_config;
    __typeof__(cublasLtMatmulAlgoCheck) *algorithm_check;
    __typeof__(cublasLtMatmul) *matmul;
    __typeof__(cublasLtGetVersion) *get_version;
    __typeof__(cublasLtGetStatusString) *status_string;
} CublasLt;
extern CublasLt cublaslt;
enum { CUDA_BLAS_WORKSPACE_BYTES = 32 << 20 };
/* Loads the library on the first call. ERR_CONFIG: it is not found or lacks a function. */
Status cublaslt_load(void);

/* The functions of cuDNN that weft uses. cudnn_load binds them, at the latest when an operation
 * that needs cuDNN is planned. */
typedef struct Cudnn {
    __typeof__(cudnnCreate) *create;
    __typeof__(cudnnDestroy) *destroy;
    __typeof__(cudnnSetStream) *set_stream;
    __typeof__(cudnnGetVersion) *get_version;
    __typeof__(cudnnGetErrorString) *error_string;
    __typeof__(cudnnBackendCreateDescriptor) *descriptor_create;
    __typeof__(cudnnBackendDestroyDescriptor) *descriptor_destroy;
    __typeof__(cudnnBackendSetAttribute) *descriptor_set;
    __typeof__(cudnnBackendGetAttribute) *descriptor_get;
    __typeof__(cudnnBackendFinalize) *descriptor_finalize;
    __typeof__(cudnnBackendExecute) *execute;
    __typeof__(cudnnGetLastErrorString) *last_error;
} Cudnn;
extern Cudnn cudnn;
/* Loads the library on the first call. ERR_CONFIG: it is not found or lacks a function. */
Status cudnn_load(void);
/* On the first call creates state->dnn or, without a GPU, state->gpu_description; later calls do
 * nothing. ERR_CONFIG: cuDNN is missing or fails, or cannot describe the model. */
Status cudnn_open(CudaState *state);
/* Frees all plans of cuDNN, the handle and the description. */
void cudnn_close(CudaState *state);
/* Dies with the text of the call and cuDNN's message if `status` is an error. */
void cudnn_check(cudnnStatus_t status, const char *call);
#define CUDNN_CALL(call) cudnn_check((call), #call)

/* Sets *model to the GPU model with the name `word`, for example "h100"; for NULL, to the first
 * model. ERR_USAGE: the name is not known; the message lists the known names. */
Status gpu_model_find(const GpuModel **model, const char *word);
const char *gpu_model_name(const GpuModel *model);
double gpu_model_memory_bytes(const GpuModel *model);
/* Returns the major number of the compute capability. */
int gpu_model_capability(const GpuModel *model);
/* Makes the descriptor that cuDNN's heuristics accept in place of a GPU. The caller owns *device.
 * ERR_CONFIG if cuDNN is missing, or if its version has no such descriptors. */
Status gpu_model_describe(const GpuModel *model, cudnnBackendDescriptor_t *device);

/* Rows in device memory. */
typedef struct CudaRows {
    /* address of the first row */
    char *first;
    /* bytes from the start of one row to the start of the next */
    size_t pitch;
} CudaRows;
/* Copies `rows` rows of `bytes` bytes each. Any pitch is allowed, even a pitch above CUDA's limit
 * (copy_rows.c). */
void cuda_copy_rows(cudaStream_t stream, CudaRows to, CudaRows from, size_t bytes, size_t rows);
/* Returns a text for the end of an error message. While a CUDA graph is recorded, the text says so
 * and how to run without recording, because some calls fail only then. At other times it is "". */
const char *cuda_recording_note(void);
/* The functions of BackendTable that record a CUDA graph and replay it (recording.c). */
void cuda_record_begin(Stream *stream);
Recording *cuda_record_end(Stream *stream, const char **why);
void cuda_replay(Recording *recording, Stream *stream);
void cuda_recording_free(Recording **recording);

/* Sorts the `count` GPUs of this process by their addresses on the PCI bus, and returns CUDA's
 * ordinal of the GPU at position `number`, counted from 0. */
int cuda_device_by_bus(int number, int count);
/* Checks a call inside a step: dies with the text of the call and CUDA's message if `error` is an
 * error. */
void cuda_check(cudaError_t error, const char *call);
/* Checks a call at set-up: if `error` is an error, returns ERR_CONFIG. The message has the host's
 * name, the GPU `device`, the action `what` that failed, CUDA's message and a remedy. */
Status cuda_check_setup(cudaError_t error, const char *what, int device);
/* Returns the name of this host, a static buffer. */
const char *cuda_host_name(void);
/* Dies with the text of the call and cuBLAS's message if `status` is an error. */
void cublas_check(cublasStatus_t status, const char *call);
#define CUDA_CALL(call)   cuda_check((call), #call)
#define CUBLAS_CALL(call) cublas_check((call), #call)

static inline CudaState *cuda_state(const Op *op)
{
    return op->backend->impl;
}
static inline bool cuda_has_gpu(const CudaState *state)
{
    return state->device >= 0;
}
static inline cudaStream_t cuda_stream(const Op *op)
{
    return cuda_state(op)->compute.handle;
}

/* Returns the layout of an activation in the backend's precision: channels last for an image
 * (N,C,H,W), plain order for any other shape. */
static inline Desc cuda_desc(const Op *op, Shape shape)
{
    Desc d = desc_plain(shape, op->backend->options.precision);
    if (shape.ndim == 4) d.block = (int)shape.dim[1];
    return d;
}
enum { ROW_BLOCK = 64, WIDE_ROW = 1024 };
/* Returns whether dense pads the rows of its output to a multiple of ROW_BLOCK elements. It does so
 * for 16-bit rows whose width is at least WIDE_ROW and not a multiple of 8, because tensor cores
 * are faster on aligned rows, and for wide rows the padding costs little. */
static inline bool cuda_rows_padded(DType type, int64_t width)
{
    return dtype_bytes(type) == 2 && width % 8 != 0 && width >= WIDE_ROW;
}

/* Sets preferred[i] to the layout that the operation requires of input i: plain order if the input
 * has integers, else the layout that cuda_desc returns. Returns true if every input has its layout.
 * If it returns false, the calling plan function returns, too; the planner then inserts reorders
 * and calls the plan function again. */
bool cuda_inputs_fit(const Op *op, Desc preferred[SPEC_INPUTS]);
/* Copies host memory from the order (samples, channels, pixels) to channels last (to_last = true),
 * or back. */
void cuda_permute(float *to, const float *from, int64_t samples, int64_t channels, int64_t pixels,
                  bool to_last);

extern const FlatTable cuda_flat;

#endif
