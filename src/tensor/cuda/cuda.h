/* The CUDA backend's private header: its state, its error checks and the helpers that its
 * operations share. One thread makes every call. Images are stored channels last, all other
 * activations in plain order. Every pointer in an OpRun is device memory. */
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

/* A GPU that plans can be made for without having it: card.c */
typedef struct GpuCard GpuCard;
typedef struct SharedPlan SharedPlan;

typedef struct CudaState {
    /* options of the backend; borrowed */
    const BackendOptions *options;
    /* ordinal of the GPU; -1: operations are only planned, for `card` */
    int device;
    /* the GPU that operations are planned for; NULL where device is an ordinal */
    const GpuCard *card;
    /* model name of the GPU: "NVIDIA A100-SXM4-80GB" */
    char name[256];
    /* major number of the compute capability: 8 for 8.0 */
    int capability;
    /* products and convolutions of fp32 may use TF32 */
    bool tf32;
    Stream compute;
    /* device memory taken by alloc and by cuBLASLt's workspace */
    size_t taken_bytes;
    /* bytes of shared memory in which softmax_loss may keep a row */
    int64_t row_room;
    cublasLtHandle_t blas;
    /* workspace of cuBLASLt, CUDA_BLAS_WORKSPACE_BYTES; owned */
    void *blas_workspace;
    /* bound to the compute stream; NULL until the first operation that needs cuDNN */
    cudnnHandle_t dnn;
    /* description of `card` for cuDNN, in place of dnn; owned */
    cudnnBackendDescriptor_t described;
    /* list of attention's plans (cudnn_attention.h); owned */
    struct FusedAttention *attention;
    /* list of cuDNN's plans, one for each graph (cudnn_plans.c); owned */
    SharedPlan *plans;
} CudaState;

/* Functions of cuBLASLt, bound when the first backend opens: a run on CPUs does not wait until its
 * 600 MB are mapped. */
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
Status cublaslt_load(void);

/* Functions of cuDNN, bound when the first operation that needs it is planned. */
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
Status cudnn_load(void);
/* Makes the GPU's cuDNN handle or the card's description on the first call; later calls do
 * nothing. */
Status cudnn_open(CudaState *state);
void cudnn_close(CudaState *state);
void cudnn_check(cudnnStatus_t status, const char *call);
#define CUDNN_CALL(call) cudnn_check((call), #call)

/* Finds the card with this name ("h100"), or the first card for NULL. ERR_USAGE lists the known
 * names. */
Status card_find(const GpuCard **card, const char *word);
const char *card_name(const GpuCard *card);
double card_memory_bytes(const GpuCard *card);
int card_capability(const GpuCard *card);
/* Makes the descriptor that cuDNN's heuristics take in place of a GPU. Owner: the caller. */
Status card_describe(const GpuCard *card, cudnnBackendDescriptor_t *device);
/* Copies `rows` rows of `bytes` bytes; each begins `pitch` bytes behind the one before. Any pitch
 * is allowed, also one that CUDA's copies of rows refuse (copy_rows.c). */
typedef struct CudaRows {
    char *at;
    size_t pitch;
} CudaRows;
void cuda_copy_rows(cudaStream_t stream, CudaRows to, CudaRows from, size_t bytes, size_t rows);
/* Returns "", or text that a CUDA graph is being recorded and how to turn that off: some calls fail
 * during a recording. */
const char *cuda_recording(void);
void cuda_record_begin(Stream *stream);
Recording *cuda_record_end(Stream *stream, const char **why);
void cuda_replay(Recording *recording, Stream *stream);
void cuda_recording_free(Recording **recording);

/* Ordinal of GPU `number` of `count` in the order of the PCI bus. */
int cuda_device_at(int number, int count);
/* For calls inside a step: any error is die() with the call and CUDA's own words. */
void cuda_check(cudaError_t error, const char *call);
/* For calls at set-up: any error is ERR_CONFIG with the node's name, the GPU, `what` was tried and
 * a remedy. */
Status cuda_edge(cudaError_t error, const char *what, int device);
/* Name of this host. */
const char *cuda_node(void);
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

/* An activation in the backend's precision: images channels last, all others plain. */
static inline Desc cuda_desc(const Op *op, Shape shape)
{
    Desc d = desc_plain(shape, op->backend->options.precision);
    if (shape.ndim == 4) d.block = (int)shape.dim[1];
    return d;
}
/* Pads rows to whole blocks, as tensor cores prefer, in 16-bit types where the padding costs next
 * to nothing. */
enum { ROW_BLOCK = 64, WIDE_ROW = 1024 };
static inline bool cuda_rows_padded(DType type, int64_t width)
{
    return dtype_bytes(type) == 2 && width % 8 != 0 && width >= WIDE_ROW;
}

/* Called by every plan: returns true where all inputs have cuda_desc's layout or are plain
 * integers. Else it writes the wanted layouts to `preferred`, and the planner calls plan again. */
bool cuda_inputs(const Op *op, Desc preferred[SPEC_INPUTS]);
/* Reorders host memory from (samples, channels, pixels) to channels last, or back. */
void cuda_permute(float *to, const float *from, int64_t samples, int64_t channels, int64_t pixels,
                  bool to_last);

extern const FlatTable cuda_flat;

#endif
