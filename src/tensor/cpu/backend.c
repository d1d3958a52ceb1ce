/* The CPU backend: memory from the operating system, one stream whose calls are executed at once,
 * operations by oneDNN and by weft's own kernels. OpenMP's number of threads belongs to the calling
 * thread, so operations must be called on the thread that opened the backend. */
#include "cpu.h"
#include "dnnl/dnnl.h"
#include "simd/simd.h"
#include "tensor/op_list.h"

#include <omp.h>
#include <string.h>

struct Stream {
    int threads;
};
struct Event {
    /* value of clock_s when the event was recorded */
    double at_s;
};
typedef struct CpuBackend {
    /* owned */
    Dnnl *dnnl;
    Stream stream;
} CpuBackend;

Dnnl *cpu_dnnl(const Backend *backend)
{
    return ((CpuBackend *)backend->impl)->dnnl;
}

static Status cpu_open(Backend *backend, BackendOptions options)
{
    if (options.precision == DTYPE_BF16) TRY(dnnl_bf16_check());
    CpuBackend *cpu = backend->impl = mem_new(sizeof *cpu);
    omp_set_dynamic(0);
    omp_set_num_threads(options.threads);
    cpu->stream.threads = options.threads;
    Status status = dnnl_new(&cpu->dnnl, options.same_threads);
    if (status != OK) mem_free(&backend->impl);
    return status;
}

static void cpu_close(Backend *backend)
{
    CpuBackend *cpu = backend->impl;
    dnnl_free(&cpu->dnnl);
    mem_free(&backend->impl);
}

static void *cpu_alloc(Backend *backend, size_t bytes)
{
    (void)backend;
    return mem_pages_new(bytes);
}

static void cpu_release(Backend *backend, void *p, size_t bytes)
{
    (void)backend;
    mem_pages_free(p, bytes);
}

static Stream *cpu_stream(Backend *backend)
{
    return &((CpuBackend *)backend->impl)->stream;
}

static void cpu_copy(Stream *s, void *to, const void *from, size_t bytes)
{
    (void)s;
    /* a stage without parameters has no arena */
    if (bytes > 0) memcpy(to, from, bytes);
}

static void cpu_sync(Stream *s)
{
    (void)s;
}

static Event *cpu_event_new(Backend *backend)
{
    (void)backend;
    return mem_new(sizeof(Event));
}

static void cpu_event_record(Event *e, Stream *s)
{
    (void)s;
    e->at_s = clock_s();
}

static void cpu_event_wait(Event *e, Stream *s)
{
    (void)e;
    (void)s;
}

static void cpu_event_free(Event **e)
{
    mem_free(e);
}

static double cpu_event_s(Event *from, Event *to)
{
    return to->at_s - from->at_s;
}

bool cpu_kernels_use(InstructionSet set)
{
    return simd_use(cpu_name(set));
}

#define DECLARE(OP, name, where) extern const OpTable cpu_##name;
#define ENTRY(OP, name, where)   [OP_##OP] = &cpu_##name,
OPERATIONS(DECLARE)

const BackendTable backend_cpu = {
    .name = "cpu",
    .host_memory = true,
    .bf16 = SUPPORTED,
    .f16 = UNSUPPORTED,
    .tf32 = UNSUPPORTED,
    .dense_gelu = UNSUPPORTED,
    .batch_norm_silu = SUPPORTED,
    .dense_residual = UNSUPPORTED,
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .stream = cpu_stream,
    .copy = cpu_copy,
    .sync = cpu_sync,
    .event_new = cpu_event_new,
    .event_record = cpu_event_record,
    .event_wait = cpu_event_wait,
    .event_free = cpu_event_free,
    .timer_new = cpu_event_new,
    .event_s = cpu_event_s,
    .flat = &cpu_flat,
    .op = {OPERATIONS(ENTRY)},
};
