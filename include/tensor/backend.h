/* Backends: the memory and the computation of one kind of device, as a const table of functions
 * (BackendTable). Also what depends on the machine: facts about GPUs, versions of libraries, time
 * on a compute stream, and the number of threads of a rank. */
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
    /* true: every run has the same number of threads, so the bits of sums may depend on it; false:
     * no result depends on `threads` */
    bool same_threads;
    /* type of activations and their gradients: DTYPE_F32, DTYPE_BF16 or DTYPE_F16 */
    DType precision;
    /* true: fp32 matrix products and convolutions may round their factors to TF32 (10 bits of
     * fraction) */
    bool tf32;
    /* This rank's number on its node. A GPU backend's open replaces it by the GPU's ordinal, or by
     * -1 in a dry run that uses no GPU. */
    int device;
    /* true: the backend only plans operations, so a GPU backend opens without a GPU, too */
    bool dry_run;
    /* dry_run: GPU to plan for ("h100", "h200", "a100"; borrowed). NULL: this machine's GPU, or
     * "h100" if the machine has none. A GPU backend's open replaces it by the GPU's full name. */
    const char *gpu;
    /* true: captures (Capture) are recorded and replayed if the backend supports it */
    bool replay;
    /* Recorded algorithms of the vendor's libraries; an operation uses the entry of its shape.
     * Borrowed for the backend's life. NULL: the libraries' own first choice. */
    AlgorithmRecord *record;
    /* true: if the record has no entry for an operation's shape, the algorithms are timed when the
     * operation is planned, and the fastest one is added to the record */
    bool times_algorithms;
} BackendOptions;

typedef struct Recording Recording;

typedef struct BackendTable {
    /* "cpu", "cuda", "poison" */
    const char *name;
    /* true: the host can read and write the backend's memory */
    bool host_memory;
    /* true: some devices of this kind support bf16 (fp16, TF32); open fails on the others */
    bool has_bf16;
    bool has_f16, has_tf32;
    /* true: dense can apply gelu to its output, and then keeps gelu's input in `saved` */
    bool fuses_gelu;
    /* true: batch_norm can apply silu to its output */
    bool fuses_silu;
    /* true: dense can add a residual */
    bool adds_to_dense;
    Status (*open)(Backend *backend, BackendOptions options);
    void (*close)(Backend *backend);
    /* allocates one arena, zeroed */
    void *(*alloc)(Backend *b, size_t bytes);
    void (*release)(Backend *b, void *p, size_t bytes);
    /* Bytes of device memory that this process has allocated, without the allocations of libraries,
     * and bytes that are free (in a dry run without a GPU, all bytes of the planned GPU). NULL:
     * memory is the host's. */
    void (*memory)(Backend *b, double *taken_bytes, double *free_bytes);
    /* Describes for messages the memory that `memory` counts as free: its total size, the device
     * and the node; "" in a dry run without a GPU. Valid until the next call. NULL if `memory` is
     * NULL. */
    const char *(*memory_text)(Backend *b);
    /* the compute stream; borrowed */
    Stream *(*stream)(Backend *b);
    /* Makes another stream, for copies and messages next to the compute stream. NULL if the backend
     * has one stream only. */
    Stream *(*stream_new)(Backend *b);
    void (*stream_free)(Stream **s);
    /* the handle that the vendor's libraries take: a cudaStream_t */
    void *(*stream_handle)(Stream *s);
    /* Copies between host and device memory in any direction. */
    void (*copy)(Stream *s, void *to, const void *from, size_t bytes);
    /* Copies `rows` rows of `bytes` bytes within the backend's memory. Rows of `to` begin to_pitch
     * bytes apart, rows of `from` from_pitch bytes apart; pitches need no alignment. NULL if
     * host_memory. */
    void (*copy_rows)(Stream *s, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                      size_t bytes, size_t rows);
    /* the host waits until the stream is empty */
    void (*sync)(Stream *s);
    Event *(*event_new)(Backend *b);
    void (*event_record)(Event *e, Stream *s);
    /* the stream waits for the event, the host does not */
    void (*event_wait)(Event *e, Stream *s);
    void (*event_free)(Event **e);
    /* host_alloc: zeroed host memory, which a copy may still access after `copy` has returned.
     * event_sync: the host waits until the stream reaches the last record of the event, and does
     * not wait if the event was never recorded. NULL slots: a copy is complete when `copy`
     * returns. */
    void *(*host_alloc)(Backend *b, size_t bytes);
    void (*host_release)(Backend *b, void *p, size_t bytes);
    void (*event_sync)(Event *e);
    /* Work queued between record_begin and record_end does not run; it becomes a Recording, which
     * can be replayed any number of times on the same pointers. Between the two calls, only calls
     * that queue work may use the stream. If the work cannot be recorded, record_end returns NULL
     * with a reason in *why, and nothing was queued. NULL slots: the backend queues nothing. */
    void (*record_begin)(Stream *s);
    Recording *(*record_end)(Stream *s, const char **why);
    void (*replay)(Recording *r, Stream *s);
    void (*recording_free)(Recording **r);
    /* an event that also stores the time at which the stream reaches it */
    Event *(*timer_new)(Backend *b);
    /* seconds between two timers; the host waits for `to` */
    double (*event_s)(Event *from, Event *to);
    const FlatTable *flat;
    /* operations by OpKind; NULL: the backend lacks it, and op_new reports that at start-up */
    const OpTable *op[OP_MOST];
} BackendTable;

struct Backend {
    const BackendTable *table;
    BackendOptions options;
    void *impl;
};
/* backend_poison (tests) is the CPU backend, but fills every output, gradient and workspace with
 * NaN before an operation writes it. */
extern const BackendTable backend_cpu, backend_cuda, backend_poison;

/* Opens a backend. ERR_CONFIG: the device or a library is missing, or the device lacks the number
 * type. Operations of a CPU backend must run on the thread that opened it. Owner: the caller. */
Status backend_open(Backend **backend, const BackendTable *table, BackendOptions options);
void backend_close(Backend **backend);
/* A sequence of queued calls that is the same every step, except for the values that it reads from
 * the backend's memory. With options.replay, the first capture_run only calls `work`, because
 * libraries initialise themselves then. The second records what `work` queues; it and all later
 * ones replay the recording. `work` must queue on the compute stream alone and have no other
 * effect. If a recording fails, one warning says so, and from then on captures without a recording
 * call `work` in every step. */
typedef struct Capture {
    /* true: work has been called directly once */
    bool warm;
    /* owned; released by capture_drop */
    Recording *recording;
} Capture;
void capture_run(Capture *capture, Backend *backend, void (*work)(void *user), void *user);
void capture_drop(Capture *capture, Backend *backend);
/* Zeroed host memory for copies to and from the backend: from host_alloc, or ordinary pages. */
void *backend_host_new(Backend *backend, size_t bytes);
void backend_host_free(Backend *backend, void *p, size_t bytes);
/* Returns the number of GPUs that this process may use; 0 with a reason in *why ("built without
 * CUDA", "no driver", ...). *why is borrowed. */
int cuda_device_count(const char **why);
/* Facts about the GPU that the given rank of a node uses. The ranks of a node use its GPUs in the
 * order of their PCI bus addresses; if there are more ranks than GPUs, several ranks share a GPU.
 * cuda_device_facts returns false if there is no GPU or the GPU does not answer. */
typedef struct GpuFacts {
    /* name of the model; PCI bus address */
    char model[64], bus[32];
    /* device memory: free, and in total */
    double free_bytes, bytes;
} GpuFacts;
bool cuda_device_facts(int number, GpuFacts *facts);
/* From now on, marks the phases of a run as NVTX ranges, for NVIDIA's profilers. ERR_CONFIG if weft
 * was built without CUDA. */
Status nvtx_start(void);
/* Print the versions that weft was compiled with and those that run, one line per library.
 * cuda_versions: of the CUDA libraries, which it loads. backend_versions: of the CPU kernels,
 * oneDNN and OpenMP; with `gpus` set, also of the CUDA libraries. */
void cuda_versions(FILE *out);
void backend_versions(FILE *out, bool gpus);
/* Write the two texts on which the bits of a backend's results depend, besides shapes and code: the
 * instruction set ("" on a GPU, whose model grid_join_gpus compares), and the versions of the
 * libraries. Each text is one line of at most `room` bytes. Ranks with equal texts compute equal
 * bits. */
void backend_instructions(const Backend *backend, char *out, size_t room);
void backend_libraries(const Backend *backend, char *out, size_t room);

/* Measures laps of time on the backend's compute stream. A lap begins when the work that was queued
 * before stopwatch_start is done, and ends when the work that was queued before stopwatch_stop is
 * done. These two calls do not wait; the calls that return times do. */
typedef struct Stopwatch Stopwatch;
/* backend is borrowed. Owner: the caller. */
Stopwatch *stopwatch_new(Backend *backend);
void stopwatch_free(Stopwatch **watch);
void stopwatch_start(Stopwatch *watch);
void stopwatch_stop(Stopwatch *watch);
/* number of laps since the last stopwatch_clear */
int stopwatch_laps(const Stopwatch *watch);
double stopwatch_lap_s(Stopwatch *watch, int lap);
/* sum of all laps */
double stopwatch_sum_s(Stopwatch *watch);
/* seconds from the start of a lap to the start of the next lap, gap included; for the last lap, to
 * its own stop */
double stopwatch_period_s(Stopwatch *watch, int lap);
void stopwatch_clear(Stopwatch *watch);

/* Makes weft's own CPU kernels (not oneDNN's) use the given instruction set from now on. Returns
 * false if the set is not built in or this processor lacks it. For benchmarks and tests; not while
 * kernels run. */
bool cpu_kernels_use(CpuSet set);

/* Cores for this rank: those that the affinity mask and the cgroup allow, divided by the ranks that
 * share them; at least 1. */
int threads_share(int ranks_on_node);
/* Sets how many threads run the parallel regions of the calling thread; returns the previous
 * number. */
int threads_use(int threads);
/* The limits that threads_share is computed from. */
typedef struct ThreadsLimits {
    /* cores and hardware threads (cpus) in the affinity mask of this process; cores in the mask of
     * its parent process, the launcher (outer) */
    int cores, cpus, outer;
    /* quota: cores that the control groups allow, 0 without a limit. waited_s: seconds for which a
     * quota has stalled the processes of its group; the longest such time of all the groups. */
    double quota, waited_s;
} ThreadsLimits;
enum { MASK_CPUS = 8192 };
/* root: prefix of the paths /proc and /sys from which limits are read; "" outside tests. core:
 * NULL, or MASK_CPUS zeroed bytes; core[i] is set to 1 if this process may use core i. */
ThreadsLimits threads_limits(const char *root, char *core);
/* Binds this process to its own `threads` cores and returns true, if the node's ranks fill all
 * allowed cores exactly and no launcher has bound the ranks already; else does nothing and returns
 * false. Call before the first parallel region. */
bool threads_bind(int rank_on_node, int ranks_on_node, int threads);

#endif
