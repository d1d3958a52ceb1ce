/* The table backend_cuda: one GPU with one compute stream. Functions queue work and return before
 * it is done. Copies are ordered on their stream; a copy from or to pageable host memory returns
 * when this memory may be used again. fp32 products use TF32 only if the configuration allows it.
 * Opening fails on a machine without a driver or a GPU, except in a dry run, and for a GPU whose
 * compute capability is below 8.0. */
#include "cuda.h"
#include "attention/cudnn_attention.h"
#include "loss/cuda_loss_kernels.h"
#include "tensor/op_list.h"

#include <string.h>

/* smallest major number of the compute capability that weft's kernels need */
enum { CAPABILITY_MIN = 8 };

/* Chooses a GPU for the rank with number `number` on its node. The ranks use the GPUs in the order
 * of their addresses on the PCI bus. If there are more ranks than GPUs, several ranks share a GPU.
 * If a launcher makes only one GPU visible to each rank, every rank chooses that GPU. */
static Status choose_device(CudaState *state, int number)
{
    const char *reason;
    int count = cuda_device_count(&reason);
    if (count == 0)
        return fail(ERR_CONFIG,
                    "node %s: train.device: cuda, but %s; train.device=cpu needs no GPU",
                    cuda_host_name(), reason);
    int device = cuda_device_by_bus(number % count, count);
    struct cudaDeviceProp properties;
    TRY(cuda_check_setup(cudaGetDeviceProperties(&properties, device), "reading its properties",
                         device));
    if (properties.major < CAPABILITY_MIN)
        return fail(ERR_CONFIG,
                    "node %s: GPU %d (%s) has compute capability %d.%d, and weft's kernels need "
                    "%d.0: choose another GPU with CUDA_VISIBLE_DEVICES, or use train.device=cpu",
                    cuda_host_name(), device, properties.name, properties.major, properties.minor,
                    CAPABILITY_MIN);
    state->device = device;
    state->capability = properties.major;
    memcpy(state->name, properties.name, sizeof state->name);
    return cuda_check_setup(cudaSetDevice(device), "selecting it", device);
}

static Status open_blas(CudaState *state)
{
    cublasStatus_t status = cublaslt.create(&state->blas);
    if (status != CUBLAS_STATUS_SUCCESS) {
        state->blas = NULL;
        return fail(ERR_CONFIG, "GPU %d (%s): cublasLtCreate: %s", state->device, state->name,
                    cublaslt.status_string(status));
    }
    state->allocated_bytes += CUDA_BLAS_WORKSPACE_BYTES;
    return cuda_check_setup(cudaMalloc(&state->blas_workspace, CUDA_BLAS_WORKSPACE_BYTES),
                            "allocating 32 MB for cuBLAS", state->device);
}

/* Opens the GPU of this rank. In a dry run with options.gpu, or on a machine without a GPU, only
 * chooses the model of GPU for which operations are planned. */
static Status open_state(CudaState *state, BackendOptions options)
{
    state->device = -1;
    if (options.dry_run && (options.gpu || cuda_device_count(NULL) == 0)) {
        TRY(gpu_model_find(&state->gpu_model, options.gpu));
        snprintf(state->name, sizeof state->name, "%s", gpu_model_name(state->gpu_model));
        state->capability = gpu_model_capability(state->gpu_model);
        /* counts the workspace that a run would allocate */
        state->allocated_bytes = CUDA_BLAS_WORKSPACE_BYTES;
        return OK;
    }
    TRY(choose_device(state, options.device));
    TRY(cublaslt_load());
    TRY(cuda_check_setup(cudaStreamCreateWithFlags(&state->compute.handle, cudaStreamNonBlocking),
                         "creating a stream", state->device));
    TRY(cuda_check_setup(cuda_softmax_shared_bytes(state->device, &state->softmax_shared_bytes),
                         "reading the size of its shared memory", state->device));
    return open_blas(state);
}

static void cuda_close(Backend *backend)
{
    CudaState *state = backend->impl;
    if (!state) return;
    if (state->compute.handle) CUDA_CALL(cudaStreamSynchronize(state->compute.handle));
    cudnn_close(state);
    if (state->blas) CUBLAS_CALL(cublaslt.destroy(state->blas));
    if (state->blas_workspace) CUDA_CALL(cudaFree(state->blas_workspace));
    if (state->compute.handle) CUDA_CALL(cudaStreamDestroy(state->compute.handle));
    mem_free(&state);
    backend->impl = NULL;
}

static Status cuda_open(Backend *backend, BackendOptions options)
{
    CudaState *state = mem_new(sizeof *state);
    backend->impl = state;
    state->tf32 = options.tf32;
    state->options = &backend->options;
    Status st = cudnn_attention_read_workspace_limit();
    if (st == OK) st = open_state(state, options);
    if (st == OK) {
        backend->options.device = state->device;
        backend->options.gpu = state->name;
    } else
        cuda_close(backend);
    return st;
}

static void *cuda_alloc(Backend *backend, size_t bytes)
{
    CudaState *state = backend->impl;
    if (bytes == 0) return NULL;
    void *memory = NULL;
    cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaErrorMemoryAllocation) {
        size_t free_bytes = 0, all_bytes = 0;
        char want[16], have[16], all[16];
        CUDA_CALL(cudaMemGetInfo(&free_bytes, &all_bytes));
        die("node %s: GPU %d (%s) is out of memory: %s wanted, %s free of %s; nvidia-smi lists the "
            "processes that use it; or set a smaller train.micro_batch, or use more GPUs",
            cuda_host_name(), state->device, state->name, text_bytes((double)bytes, want),
            text_bytes((double)free_bytes, have), text_bytes((double)all_bytes, all));
    }
    cuda_check(error, "cudaMalloc");
    state->allocated_bytes += bytes;
    CUDA_CALL(cudaMemsetAsync(memory, 0, bytes, state->compute.handle));
    /* other streams may use the memory at once, so it must be zero when this function returns */
    CUDA_CALL(cudaStreamSynchronize(state->compute.handle));
    return memory;
}

static void cuda_release(Backend *backend, void *memory, size_t bytes)
{
    CudaState *state = backend->impl;
    if (memory) state->allocated_bytes -= bytes;
    CUDA_CALL(cudaFree(memory));
}

static void cuda_memory(Backend *backend, double *taken_bytes, double *free_bytes)
{
    const CudaState *state = backend->impl;
    size_t free_now = 0, all = 0;
    *taken_bytes = (double)state->allocated_bytes;
    if (!cuda_has_gpu(state)) {
        *free_bytes = gpu_model_memory_bytes(state->gpu_model);
        return;
    }
    CUDA_CALL(cudaMemGetInfo(&free_now, &all));
    *free_bytes = (double)free_now;
}

static const char *cuda_memory_text(Backend *backend)
{
    static char text[512];
    const CudaState *state = backend->impl;
    size_t free_now = 0, all = 0;
    char all_text[16];
    *text = 0;
    if (!cuda_has_gpu(state)) return text;
    CUDA_CALL(cudaMemGetInfo(&free_now, &all));
    snprintf(text, sizeof text,
             "the free part of the %s of GPU %d (%s) on node %s; nvidia-smi lists the processes "
             "that use the rest",
             text_bytes((double)all, all_text), state->device, state->name, cuda_host_name());
    return text;
}

static Stream *cuda_compute(Backend *backend)
{
    return &((CudaState *)backend->impl)->compute;
}

static Stream *cuda_stream_new(Backend *backend)
{
    (void)backend;
    Stream *stream = mem_new(sizeof *stream);
    CUDA_CALL(cudaStreamCreateWithFlags(&stream->handle, cudaStreamNonBlocking));
    return stream;
}

static void cuda_stream_free(Stream **stream)
{
    if (!*stream) return;
    CUDA_CALL(cudaStreamDestroy((*stream)->handle));
    mem_free(stream);
}

static void *cuda_stream_handle(Stream *stream)
{
    return stream->handle;
}

static void cuda_copy(Stream *stream, void *to, const void *from, size_t bytes)
{
    CUDA_CALL(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream->handle));
}

static void copy_rows(Stream *stream, void *to, size_t to_pitch, const void *from,
                      size_t from_pitch, size_t bytes, size_t rows)
{
    cuda_copy_rows(stream->handle, (CudaRows){to, to_pitch},
                   (CudaRows){(char *)(uintptr_t)from, from_pitch}, bytes, rows);
}

static void cuda_sync(Stream *stream)
{
    CUDA_CALL(cudaStreamSynchronize(stream->handle));
}

static Event *cuda_event_new(Backend *backend)
{
    (void)backend;
    Event *event = mem_new(sizeof *event);
    CUDA_CALL(cudaEventCreateWithFlags(&event->handle, cudaEventDisableTiming));
    return event;
}

static Event *cuda_timer_new(Backend *backend)
{
    (void)backend;
    Event *event = mem_new(sizeof *event);
    CUDA_CALL(cudaEventCreateWithFlags(&event->handle, cudaEventDefault));
    return event;
}

static double cuda_event_s(Event *from, Event *to)
{
    float ms = 0;
    CUDA_CALL(cudaEventSynchronize(to->handle));
    CUDA_CALL(cudaEventElapsedTime(&ms, from->handle, to->handle));
    return 1e-3 * (double)ms;
}

static void cuda_event_record(Event *event, Stream *stream)
{
    CUDA_CALL(cudaEventRecord(event->handle, stream->handle));
}

static void cuda_event_wait(Event *event, Stream *stream)
{
    CUDA_CALL(cudaStreamWaitEvent(stream->handle, event->handle, 0));
}

static void cuda_event_free(Event **event)
{
    if (!*event) return;
    CUDA_CALL(cudaEventDestroy((*event)->handle));
    mem_free(event);
}

/* Allocates page-locked memory that copies on any stream and from any thread can use. */
static void *cuda_host_alloc(Backend *backend, size_t bytes)
{
    char text[16];
    void *memory = NULL;
    (void)backend;
    if (bytes == 0) return NULL;
    cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
    if (error == cudaErrorMemoryAllocation)
        die("the host cannot lock %s of memory for copies to the GPU; set a smaller data.prefetch "
            "or train.micro_batch",
            text_bytes((double)bytes, text));
    cuda_check(error, "cudaHostAlloc");
    memset(memory, 0, bytes);
    return memory;
}

static void cuda_host_release(Backend *backend, void *memory, size_t bytes)
{
    (void)backend, (void)bytes;
    if (memory) CUDA_CALL(cudaFreeHost(memory));
}

static void cuda_event_sync(Event *event)
{
    CUDA_CALL(cudaEventSynchronize(event->handle));
}

bool cuda_inputs_fit(const Op *op, Desc preferred[SPEC_INPUTS])
{
    bool fit = true;
    for (int i = 0; i < op->spec.x_count; ++i) {
        const Desc *x = &op->spec.x[i];
        preferred[i] =
            x->dtype == DTYPE_I32 ? desc_plain(x->shape, DTYPE_I32) : cuda_desc(op, x->shape);
        fit = fit && desc_equal(preferred[i], *x);
    }
    return fit;
}

/* BackendTable.op has an entry for each operation that op_list.h marks EVERYWHERE. The entries of
 * operations that it marks CPU_ONLY stay NULL. */
#define DECLARE_EVERYWHERE(name) extern const OpTable cuda_##name;
#define DECLARE_CPU_ONLY(name)
#define ENTRY_EVERYWHERE(OP, name) [OP_##OP] = &cuda_##name,
#define ENTRY_CPU_ONLY(OP, name)
#define DECLARE(OP, name, where) DECLARE_##where(name)
#define ENTRY(OP, name, where)   ENTRY_##where(OP, name)
OPERATIONS(DECLARE)

const BackendTable backend_cuda = {
    .name = "cuda",
    .bf16 = SUPPORTED,
    .f16 = SUPPORTED,
    .tf32 = SUPPORTED,
    .dense_gelu = SUPPORTED,
    .batch_norm_silu = UNSUPPORTED,
    .dense_residual = SUPPORTED,
    .open = cuda_open,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .release = cuda_release,
    .memory = cuda_memory,
    .memory_text = cuda_memory_text,
    .stream = cuda_compute,
    .stream_new = cuda_stream_new,
    .stream_free = cuda_stream_free,
    .stream_handle = cuda_stream_handle,
    .copy = cuda_copy,
    .copy_rows = copy_rows,
    .sync = cuda_sync,
    .event_new = cuda_event_new,
    .event_record = cuda_event_record,
    .event_wait = cuda_event_wait,
    .event_free = cuda_event_free,
    .host_alloc = cuda_host_alloc,
    .host_release = cuda_host_release,
    .event_sync = cuda_event_sync,
    .record_begin = cuda_record_begin,
    .record_end = cuda_record_end,
    .replay = cuda_replay,
    .recording_free = cuda_recording_free,
    .timer_new = cuda_timer_new,
    .event_s = cuda_event_s,
    .flat = &cuda_flat,
    .op = {OPERATIONS(ENTRY)},
};
