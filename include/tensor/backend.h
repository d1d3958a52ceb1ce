/* Backends: who holds memory and computes. A backend is a const table of typed slots. */
#ifndef WEFT_TENSOR_BACKEND_H
#define WEFT_TENSOR_BACKEND_H

#include "tensor/algorithm_record.h"
#include "tensor/flat.h"
#include "tensor/op.h"
#include "tensor/op_info.h"

typedef struct Event Event;

typedef struct BackendOptions {
    /* CPU threads of this rank */
    int threads;
    /* of activations and their gradients: DTYPE_F32, DTYPE_BF16 or DTYPE_F16 */
    DType precision;
    /* fp32 matrix products and convolutions may round their factors to TF32 (10 bits) */
    bool tf32;
    /* in: this rank's number on its node; a GPU backend's open makes it the GPU's ordinal, or -1 */
    int device;
    /* To plan operations only: a GPU backend then opens where there is no GPU, too, */
    bool dry_run;
    /* for this one ("h100", "h200", "a100"; borrowed), or, if NULL, for this machine's or the first
     * of them. A GPU backend's open makes it the GPU's whole name. */
    const char *gpu;
    /* captures are recorded and replayed, where the backend can */
    bool replay;
    /* Recorded algorithms of the maker's libraries, which operations take where they have their
     * shape. Borrowed as long as the backend; NULL: the libraries' own first choice */
    AlgorithmRecord *record;
    /* Shapes that the record lacks are timed when they are planned, and added to it. */
    bool times_algorithms;
} BackendOptions;

typedef struct Recording Recording;

typedef struct BackendTable {
    /* "cpu", "cuda", "poison" */
    const char *name;
    /* pointers are the host's, too */
    bool host_memory;
    /* some processors of the kind have; open refuses others */
    bool has_bf16;
    bool has_f16, has_tf32;
    /* onto dense's output, which then keeps gelu's input in `saved` */
    bool fuses_gelu;
    /* dense may have a residual */
    bool adds_to_dense;
    Status (*open)(Backend *backend, BackendOptions options);
    void (*close)(Backend *backend);
    /* one arena; zeroed */
    void *(*alloc)(Backend *b, size_t bytes);
    void (*release)(Backend *b, void *p, size_t bytes);
    /* What this process has taken of the device's memory, libraries apart, and what is free there.
     * NULL: memory is the host's */
    void (*memory)(Backend *b, double *taken_bytes, double *free_bytes);
    /* Which device that is, for messages; until the next call. */
    const char *(*memory_text)(Backend *b);
    /* the compute stream; borrowed */
    Stream *(*stream)(Backend *b);
    /* More streams, for copies and messages beside the compute stream. NULL where a backend has one
     * stream only. */
    Stream *(*stream_new)(Backend *b);
    void (*stream_free)(Stream **s);
    /* as the maker's libraries take it: a cudaStream_t */
    void *(*stream_handle)(Stream *s);
    /* Host or device on either side. */
    void (*copy)(Stream *s, void *to, const void *from, size_t bytes);
    /* Copies `rows` rows of `bytes` bytes within the backend's memory; rows begin to_pitch and
     * from_pitch bytes apart, of any size. NULL in host memory */
    void (*copy_rows)(Stream *s, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                      size_t bytes, size_t rows);
    /* the host waits */
    void (*sync)(Stream *s);
    Event *(*event_new)(Backend *b);
    void (*event_record)(Event *e, Stream *s);
    /* the stream waits, not the host */
    void (*event_wait)(Event *e, Stream *s);
    void (*event_free)(Event **e);
    /* Host memory, zeroed, that copies reach while the host goes on, and the host's wait for an
     * event's last record, which may never have been. NULL: copies are done when the call
     * returns. */
    void *(*host_alloc)(Backend *b, size_t bytes);
    void (*host_release)(Backend *b, void *p, size_t bytes);
    void (*event_sync)(Event *e);
    /* Between the two nothing that is queued runs; it becomes a Recording, to be replayed any
     * number of times, on the same pointers. Nothing else may be asked of the stream meanwhile.
     * record_end gives NULL, and *why, where it could not be recorded: then it has not been queued
     * at all. NULL slots: the backend queues nothing. */
    void (*record_begin)(Stream *s);
    Recording *(*record_end)(Stream *s, const char **why);
    void (*replay)(Recording *r, Stream *s);
    void (*recording_free)(Recording **r);
    /* an event that knows when it was reached */
    Event *(*timer_new)(Backend *b);
    /* between two timers; the host waits for `to` */
    double (*event_s)(Event *from, Event *to);
    const FlatTable *flat;
    /* by OpKind. NULL: this backend lacks it, found at start-up by op_new */
    const OpTable *op[OP_MOST];
} BackendTable;

struct Backend {
    const BackendTable *table;
    BackendOptions options;
    void *impl;
};
extern const BackendTable backend_cpu, backend_cuda, backend_poison;
/* backend_poison (tests): the CPU backend, but every output, gradient and workspace is NaN before
 * an op may write it. */

Status backend_open(Backend **backend, const BackendTable *table, BackendOptions options);
void backend_close(Backend **backend);
/* A capture of queued work that is the same every time but for what it reads from the backend's
 * memory. With options.replay it is run plainly the first time, when libraries make what they make
 * on demand; recorded the second; replayed from then on, without a call of work. work queues on the
 * compute stream alone, and has no other effect. Where a recording fails, a warning says so once,
 * and all captures run plainly. */
typedef struct Capture {
    bool warm;
    /* owned; capture_drop */
    Recording *recording;
} Capture;
void capture_run(Capture *capture, Backend *backend, void (*work)(void *user), void *user);
void capture_drop(Capture *capture, Backend *backend);
/* Host memory for copies to and from the backend: host_alloc's, or ordinary pages. Zeroed. */
void *backend_host_new(Backend *backend, size_t bytes);
void backend_host_free(Backend *backend, void *p, size_t bytes);
/* GPUs this process may use; 0 with a reason in *why ("built without CUDA", "no driver", ...).
 * Borrowed. */
int cuda_device_count(const char **why);
/* The GPU that the rank with this number among those of its node takes: ranks take GPUs in the
 * order of the bus, and those beyond share one. False: it does not answer. */
typedef struct GpuFacts {
    char model[64], bus[32];
    double free_bytes, bytes;
} GpuFacts;
bool cuda_device_facts(int number, GpuFacts *facts);
/* Phases are NVTX ranges from now on, for NVIDIA's profilers. ERR_CONFIG where weft was built
 * without CUDA. */
Status nvtx_start(void);
/* Compiled-in and running versions, one line each: of the CUDA libraries, of all. */
void cuda_versions(FILE *out);
void backend_versions(FILE *out);
/* What decides the bits of a backend's results beside shapes and code: the instructions that it
 * computes with ("" on GPUs, whose models grid_join_gpus compares), and the libraries, each as one
 * line. Ranks with the same texts compute alike. */
void backend_instructions(const Backend *backend, char *out, size_t room);
void backend_libraries(const Backend *backend, char *out, size_t room);

/* Adds up laps of time on the backend's compute stream, from where its work has come to at start to
 * where it has at stop. Neither waits; reading does. */
typedef struct Stopwatch Stopwatch;
/* backend is borrowed. Owner: the caller */
Stopwatch *stopwatch_new(Backend *backend);
void stopwatch_free(Stopwatch **watch);
void stopwatch_start(Stopwatch *watch);
void stopwatch_stop(Stopwatch *watch);
/* since the last stopwatch_clear */
int stopwatch_laps(const Stopwatch *watch);
double stopwatch_lap_s(Stopwatch *watch, int lap);
/* of all laps */
double stopwatch_sum_s(Stopwatch *watch);
/* From a lap's start to the next one's, of the last to its stop: what lies between laps is
 * counted. */
double stopwatch_period_s(Stopwatch *watch, int lap);
void stopwatch_clear(Stopwatch *watch);

/* From now on the CPU's own kernels, not oneDNN's, are those of that set; false where they are not
 * built in or this processor lacks it. For benchmarks and tests; not while kernels run. */
bool cpu_kernels_use(CpuSet set);

/* This rank's cores: what the affinity mask and the cgroup allow, over the ranks that share them;
 * at least 1. */
int threads_share(int ranks_on_node);
/* How many threads work for the calling one from now on; returns how many did. */
int threads_use(int threads);
/* What it goes by. */
typedef struct ThreadsLimits {
    /* cores and hardware threads in this process's mask; cores in that of its parent, the
     * launcher */
    int cores, cpus, outer;
    /* cores that control groups allow, 0: no limit; seconds for which processes in one have waited
     * for that, at most */
    double quota, waited_s;
} ThreadsLimits;
enum { MASK_CPUS = 8192 };
/* root: "", or the folder below which groups are looked for. core: NULL, or MASK_CPUS bytes,
 * zeroed, of which those of this process's cores become 1. */
ThreadsLimits threads_limits(const char *root, char *core);
/* Binds this process to its own `threads` cores if the ranks of its node fill all cores it may use,
 * exactly, and no launcher has bound them before; else does nothing and returns false. Before the
 * first parallel region. */
bool threads_bind(int rank_on_node, int ranks_on_node, int threads);

#endif
