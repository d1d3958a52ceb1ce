/* The CUDA backend's private header: its state, its checks, its operations. One thread makes every
 * call. Images lie channels last, all other activations plain; the memory of every pointer in an
 * OpRun is the device's. */
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

/* card.c */
typedef struct GpuCard GpuCard;
typedef struct KeptPlan KeptPlan;

typedef struct CudaState {
    /* the backend's; borrowed */
    const BackendOptions *options;
    /* -1: operations are planned for `card`, which is not here */
    int device;
    /* NULL where device is one */
    const GpuCard *card;
    /* "NVIDIA A100-SXM4-80GB" */
    char name[256];
    /* compute capability, 8 of 8.0 */
    int capability;
    /* in products and convolutions of fp32 */
    bool tf32;
    Stream compute;
    /* by alloc, and for cuBLAS */
    size_t taken_bytes;
    /* bytes of shared memory in which softmax_loss may keep a row */
    int64_t row_room;
    cublasLtHandle_t blas;
    /* owned */
    void *blas_workspace;
    /* bound to compute; NULL before the first operation that wants it */
    cudnnHandle_t dnn;
    /* instead, for cuDNN: the card; owned */
    cudnnBackendDescriptor_t described;
    /* cudnn_attention.h; owned */
    struct FusedAttention *attention;
    /* cudnn_kept.c; owned */
    KeptPlan *kept;
} CudaState;

/* cuBLASLt, bound when the first backend opens: a run on CPUs does not wait for its 600 MB to be
 * mapped. */
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

/* cuDNN, bound when the first operation that wants it is planned. */
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
/* The GPU's handle, or the card's description, made on the first call. */
Status cudnn_open(CudaState *state);
void cudnn_close(CudaState *state);
void cudnn_check(cudnnStatus_t status, const char *call);
#define CUDNN_CALL(call) cudnn_check((call), #call)

/* The card of that word ("h100"), by default the first; ERR_USAGE with those there are. */
Status card_find(const GpuCard **card, const char *word);
const char *card_name(const GpuCard *card);
double card_memory_bytes(const GpuCard *card);
int card_capability(const GpuCard *card);
/* As cuDNN takes it. Owner: the caller. */
Status card_describe(const GpuCard *card, cudnnBackendDescriptor_t *device);
/* copy_rows.c: `rows` rows of `bytes` bytes, of which each begins `pitch` bytes behind the one
 * before; any pitch, also where it is larger than CUDA's copies of rows take */
typedef struct CudaRows {
    char *at;
    size_t pitch;
} CudaRows;
void cuda_copy_rows(cudaStream_t stream, CudaRows to, CudaRows from, size_t bytes, size_t rows);
/* "", or that a graph is being recorded, which some calls do not allow, and the cure. */
const char *cuda_recording(void);
void cuda_record_begin(Stream *stream);
Recording *cuda_record_end(Stream *stream, const char **why);
void cuda_replay(Recording *recording, Stream *stream);
void cuda_recording_free(Recording **recording);

/* The GPU that is number `number` of `count` in the order of the PCI bus. */
int cuda_device_at(int number, int count);
/* Inside a step: anything but success is die() with the call and CUDA's own words. */
void cuda_check(cudaError_t error, const char *call);
/* The same at an edge: ERR_CONFIG, with this node's name, the GPU, what was tried and the cure. */
Status cuda_edge(cudaError_t error, const char *what, int device);
/* this host's name */
const char *cuda_node(void);
void cublas_check(cublasStatus_t status, const char *call);
#define CUDA_CALL(call)   cuda_check((call), #call)
#define CUBLAS_CALL(call) cublas_check((call), #call)

static inline CudaState *cuda_state(const Op *op)
{
    return op->backend->impl;
}
static inline bool cuda_is_there(const CudaState *state)
{
    return state->device >= 0;
}
static inline cudaStream_t cuda_stream(const Op *op)
{
    return cuda_state(op)->compute.handle;
}

/* An activation in the backend's precision: images channels last, all else plain. */
static inline Desc cuda_desc(const Op *op, Shape shape)
{
    Desc d = desc_plain(shape, op->backend->options.precision);
    if (shape.ndim == 4) d.block = (int)shape.dim[1];
    return d;
}
/* Rows begin where tensor cores like them to, in 16-bit types, where that costs next to nothing. */
enum { ROW_BLOCK = 64, WIDE_ROW = 1024 };
static inline bool cuda_rows_padded(DType type, int64_t width)
{
    return dtype_bytes(type) == 2 && width % 8 != 0 && width >= WIDE_ROW;
}

/* For every plan: true where all inputs are such, or plain integers; else *preferred asks for such,
 * and the planner comes again. */
bool cuda_inputs(const Op *op, Desc preferred[SPEC_INPUTS]);
/* Host memory: (samples, channels, pixels) to channels last, or back. */
void cuda_permute(float *to, const float *from, int64_t samples, int64_t channels, int64_t pixels,
                  bool to_last);

extern const FlatTable cuda_flat;

#endif
