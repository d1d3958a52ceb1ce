/* backend_cuda: one GPU with one compute stream. Work is queued and the host goes on. Copies are
 * ordered on the stream; with ordinary host memory the call returns once the host's side may be
 * used again. Products of fp32 round their factors only where TF32 is asked for. Open refuses a
 * machine without a driver, a GPU that is not there and one older than the kernels. */
#include "cuda.h"
#include "cudnn_attention.h"
#include "cuda_kernels.h"
#include "tensor/op_list.h"

#include <string.h>

enum { OLDEST_MAJOR = 8 };

/* Takes the GPU for the rank with this number on its node: ranks take GPUs in the order of the PCI
 * bus, and ranks beyond the number of GPUs share one. A launcher may show each rank only its own
 * GPU; then every number means GPU 0. */
static Status choose_device(CudaState *state, int number)
{
    const char *why;
    int count = cuda_device_count(&why);
    if (count == 0)
        return fail(ERR_CONFIG, "node %s: train.device: cuda, but %s; train.device=cpu needs none",
                    cuda_node(), why);
    int device = cuda_device_at(number % count, count);
    struct cudaDeviceProp properties;
    TRY(cuda_edge(cudaGetDeviceProperties(&properties, device), "reading its properties", device));
    if (properties.major < OLDEST_MAJOR)
        return fail(ERR_CONFIG,
                    "node %s: GPU %d (%s) has compute capability %d.%d, and weft's kernels need "
                    "%d.0: choose another GPU with CUDA_VISIBLE_DEVICES, or use train.device=cpu",
                    cuda_node(), device, properties.name, properties.major, properties.minor,
                    OLDEST_MAJOR);
    state->device = device;
    state->capability = properties.major;
    memcpy(state->name, properties.name, sizeof state->name);
    return cuda_edge(cudaSetDevice(device), "taking it", device);
}

static Status open_blas(CudaState *state)
{
    cublasStatus_t status = cublaslt.create(&state->blas);
    if (status != CUBLAS_STATUS_SUCCESS) {
        state->blas = NULL;
        return fail(ERR_CONFIG, "GPU %d (%s): cublasLtCreate: %s", state->device, state->name,
                    cublaslt.status_string(status));
    }
    state->taken_bytes += CUDA_BLAS_WORKSPACE_BYTES;
    return cuda_edge(cudaMalloc(&state->blas_workspace, CUDA_BLAS_WORKSPACE_BYTES),
                     "32 MB for cuBLAS", state->device);
}

static Status open_state(CudaState *state, BackendOptions options)
{
    state->device = -1;
    if (options.dry_run && (options.gpu || cuda_device_count(NULL) == 0)) {
        TRY(card_find(&state->card, options.gpu));
        snprintf(state->name, sizeof state->name, "%s", card_name(state->card));
        state->capability = card_capability(state->card);
        /* counts the workspace that a run would allocate */
        state->taken_bytes = CUDA_BLAS_WORKSPACE_BYTES;
        return OK;
    }
    TRY(choose_device(state, options.device));
    TRY(cublaslt_load());
    TRY(cuda_edge(cudaStreamCreateWithFlags(&state->compute.handle, cudaStreamNonBlocking),
                  "a stream", state->device));
    TRY(cuda_edge(cuda_softmax_room(state->device, &state->row_room), "its shared memory's size",
                  state->device));
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
    Status st = fused_read_scratch();
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
        die("node %s: GPU %d (%s) is out of memory: %s wanted, %s free of %s; nvidia-smi shows who "
            "fills it; else take a smaller train.micro_batch or more GPUs",
            cuda_node(), state->device, state->name, text_bytes((double)bytes, want),
            text_bytes((double)free_bytes, have), text_bytes((double)all_bytes, all));
    }
    cuda_check(error, "cudaMalloc");
    state->taken_bytes += bytes;
    CUDA_CALL(cudaMemsetAsync(memory, 0, bytes, state->compute.handle));
    /* Other streams may use the memory at once: it must be zero by then. */
    CUDA_CALL(cudaStreamSynchronize(state->compute.handle));
    return memory;
}

static void cuda_release(Backend *backend, void *memory, size_t bytes)
{
    CudaState *state = backend->impl;
    if (memory) state->taken_bytes -= bytes;
    CUDA_CALL(cudaFree(memory));
}

static void cuda_memory(Backend *backend, double *taken_bytes, double *free_bytes)
{
    const CudaState *state = backend->impl;
    size_t left = 0, all = 0;
    *taken_bytes = (double)state->taken_bytes;
    if (!cuda_has_gpu(state)) {
        *free_bytes = card_memory_bytes(state->card);
        return;
    }
    CUDA_CALL(cudaMemGetInfo(&left, &all));
    *free_bytes = (double)left;
}

static const char *cuda_memory_text(Backend *backend)
{
    static char text[512];
    const CudaState *state = backend->impl;
    size_t left = 0, all = 0;
    char all_text[16];
    *text = 0;
    if (!cuda_has_gpu(state)) return text;
    CUDA_CALL(cudaMemGetInfo(&left, &all));
    snprintf(text, sizeof text,
             "what is free of %s on GPU %d (%s) of node %s; nvidia-smi shows who has the rest",
             text_bytes((double)all, all_text), state->device, state->name, cuda_node());
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

/* Portable: copies on any stream and from any thread can use this memory. */
static void *cuda_host_alloc(Backend *backend, size_t bytes)
{
    char text[16];
    void *memory = NULL;
    (void)backend;
    if (bytes == 0) return NULL;
    cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
    if (error == cudaErrorMemoryAllocation)
        die("the host has no %s that can be locked for copies to the GPU; take a smaller "
            "data.prefetch or train.micro_batch",
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

bool cuda_inputs(const Op *op, Desc preferred[SPEC_INPUTS])
{
    bool granted = true;
    for (int i = 0; i < op->spec.x_count; ++i) {
        const Desc *x = &op->spec.x[i];
        preferred[i] =
            x->dtype == DTYPE_I32 ? desc_plain(x->shape, DTYPE_I32) : cuda_desc(op, x->shape);
        granted = granted && desc_equal(preferred[i], *x);
    }
    return granted;
}

/* Operations that the CUDA backend has; the others are on the CPU only, and their entries stay
 * NULL. */
#define DECLARE_EVERYWHERE(name) extern const OpTable cuda_##name;
#define DECLARE_CPU_ONLY(name)
#define ENTRY_EVERYWHERE(OP, name) [OP_##OP] = &cuda_##name,
#define ENTRY_CPU_ONLY(OP, name)
#define DECLARE(OP, name, where) DECLARE_##where(name)
#define ENTRY(OP, name, where)   ENTRY_##where(OP, name)
OPERATIONS(DECLARE)

const BackendTable backend_cuda = {
    .name = "cuda",
    .has_bf16 = true,
    .has_f16 = true,
    .has_tf32 = true,
    .fuses_gelu = true,
    .adds_to_dense = true,
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
