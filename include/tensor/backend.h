/* A backend provides the memory and the computation of one kind of device. It is a const table of
 * functions (BackendTable). The header also declares functions that depend on the machine: facts
 * about GPUs, versions of libraries, times on a compute stream, and the number of threads of a
 * rank. No function is collective. */
#ifndef WEFT_TENSOR_BACKEND_H
#define WEFT_TENSOR_BACKEND_H

#include "tensor/algorithm_record.h"
#include "tensor/flat.h"
#include "tensor/op.h"
#include "tensor/op_info.h"

typedef struct Event Event;

/* Settings of a backend. */
typedef struct BackendOptions {
    /* number of CPU threads of this rank */
    int threads;
    /* true: every run has the same number of threads, so the bits of sums may depend on it; false:
     * no result depends on `threads` */
    bool same_threads;
    /* type of activations and their gradients: DTYPE_F32, DTYPE_BF16 or DTYPE_F16 */
    DType precision;
    /* true: fp32 matrix products and convolutions may round their factors to TF32 (10 bits of
     * fraction) */
    bool tf32;
    /* number of this rank on its node; the open function of a GPU backend replaces it by the number
     * of the GPU, or by -1 in a dry run that uses no GPU */
    int device;
    /* true: the backend only plans operations; a GPU backend then opens without a GPU, too */
    bool dry_run;
    /* in a dry run: the model of GPU to plan for ("h100", "h200", "a100"); borrowed. NULL: this
     * machine's GPU, or "h100" if the machine has none. The open function of a GPU backend replaces
     * it by the GPU's full name. */
    const char *gpu;
    /* true: captures (Capture) are recorded and replayed if the backend supports it */
    bool replay;
    /* recorded algorithms of the vendor's libraries; an operation uses the entry of its kind and
     * shape. Borrowed while the backend is open. NULL: the libraries' own first choice. */
    AlgorithmRecord *record;
    /* true: if the record has no entry for an operation, its algorithms are timed when it is
     * planned, and the fastest one is added to the record */
    bool times_algorithms;
} BackendOptions;

typedef struct Recording Recording;

/* Whether a backend supports something. Each backend says so for each Support of its table; an
 * absent one only for bf16, f16 and tf32. */
typedef enum Support { SUPPORT_NOT_GIVEN, SUPPORTED, UNSUPPORTED } Support;

/* The functions and properties of a backend. */
typedef struct BackendTable {
    /* "cpu", "cuda", "poison" */
    const char *name;
    /* true: this build lacks the backend: `open` fails, and all other functions are NULL */
    bool absent;
    /* true: the host can read and write the backend's memory, and each call is complete when it
     * returns */
    bool host_memory;
    /* SUPPORTED: some devices of this kind support bf16; on the others, `open` fails if
     * BackendOptions.precision is bf16 */
    Support bf16;
    /* the same for fp16 and for BackendOptions.tf32 */
    Support f16, tf32;
    /* whether dense can apply gelu to its output; it then keeps gelu's input in `saved` */
    Support dense_gelu;
    /* whether batch_norm can apply silu to its output */
    Support batch_norm_silu;
    /* whether dense can add a residual */
    Support dense_residual;
    Status (*open)(Backend *backend, BackendOptions options);
    void (*close)(Backend *backend);
    /* Allocates one arena, zeroed. */
    void *(*alloc)(Backend *b, size_t bytes);
    void (*release)(Backend *b, void *p, size_t bytes);
    /* Sets *taken_bytes to the bytes of device memory that this process has allocated, without the
     * allocations of libraries, and *free_bytes to the bytes that are free (in a dry run without a
     * GPU, to all bytes of the planned GPU). The member is NULL if host_memory is true. */
    void (*memory)(Backend *b, double *taken_bytes, double *free_bytes);
    /* Describes, for messages, the memory that `memory` counts as free: its total size, the device
     * and the node; returns "" in a dry run without a GPU. Valid until the next call. The member is
     * NULL if host_memory is true. */
    const char *(*memory_text)(Backend *b);
    /* Returns the compute stream; borrowed. */
    Stream *(*stream)(Backend *b);
    /* Makes another stream, for copies and messages that run at the same time as the compute
     * stream. stream_new and stream_free are NULL if host_memory is true. */
    Stream *(*stream_new)(Backend *b);
    void (*stream_free)(Stream **s);
    /* Returns the stream's handle for the vendor's libraries: a cudaStream_t. The member is NULL if
     * host_memory is true. */
    void *(*stream_handle)(Stream *s);
    /* Copies between host and device memory in any direction. */
    void (*copy)(Stream *s, void *to, const void *from, size_t bytes);
    /* Copies `rows` rows of `bytes` bytes within the backend's memory. The rows of `to` begin
     * to_pitch bytes apart, the rows of `from` begin from_pitch bytes apart; the pitches need no
     * alignment. The member is NULL if host_memory is true. */
    void (*copy_rows)(Stream *s, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                      size_t bytes, size_t rows);
    /* Makes the host wait until the stream is empty. */
    void (*sync)(Stream *s);
    Event *(*event_new)(Backend *b);
    void (*event_record)(Event *e, Stream *s);
    /* Makes the stream wait for the event; the host does not wait. */
    void (*event_wait)(Event *e, Stream *s);
    void (*event_free)(Event **e);
    /* host_alloc returns zeroed host memory, which a copy may still read or write after `copy` has
     * returned. event_sync makes the host wait until the stream reaches the last record of the
     * event; if the event was never recorded, it does not wait. The three members are NULL if
     * host_memory is true. */
    void *(*host_alloc)(Backend *b, size_t bytes);
    void (*host_release)(Backend *b, void *p, size_t bytes);
    void (*event_sync)(Event *e);
    /* Work that is queued between record_begin and record_end does not run. It becomes a Recording,
     * which can be replayed any number of times on the same pointers. Between the two calls, only
     * calls that queue work may use the stream. If the work cannot be recorded, record_end returns
     * NULL and sets *why to the reason, and nothing is queued. The four members are NULL if
     * host_memory is true. */
    void (*record_begin)(Stream *s);
    Recording *(*record_end)(Stream *s, const char **why);
    void (*replay)(Recording *r, Stream *s);
    void (*recording_free)(Recording **r);
    /* Makes an event that also stores the time at which the stream reaches it. */
    Event *(*timer_new)(Backend *b);
    /* Returns the seconds between two timers; the host waits for `to`. */
    double (*event_s)(Event *from, Event *to);
    const FlatTable *flat;
    /* operations by OpKind; NULL: the backend lacks the operation, and op_new fails */
    const OpTable *op[OP_MOST];
} BackendTable;

struct Backend {
    const BackendTable *table;
    BackendOptions options;
    /* private data of the backend */
    void *impl;
};
/* The backends. backend_poison, for tests, is the CPU backend, but fills every output, gradient and
 * workspace with NaN before an operation writes it. */
extern const BackendTable backend_cpu, backend_cuda, backend_poison;

/* Checks the table of a backend, and its tables of operations. ERR_BUG, naming the member: a table
 * lacks a function, or has one that contradicts a property of the backend or of the operation. */
Status backend_check(const BackendTable *table);
/* Opens a backend. ERR_CONFIG: the device or a library is missing, or the device lacks the number
 * type. Operations of a CPU backend must run on the thread that opened it. Release with
 * backend_close. */
Status backend_open(Backend **backend, const BackendTable *table, BackendOptions options);
void backend_close(Backend **backend);
/* A sequence of queued calls that is the same in every step, except for values that it reads from
 * the backend's memory. If options.replay is true, the first capture_run only calls `work`, because
 * libraries initialise themselves then. The second capture_run records the work that `work` queues.
 * The second and all later calls replay the recording. `work` must queue only on the compute stream
 * and have no other effect. If a recording fails, one warning says so, and from then on captures
 * without a recording call `work` in every step. */
typedef struct Capture {
    /* true: capture_run has been called, and has called `work` directly */
    bool was_called;
    /* recorded work; owned; capture_drop releases it; NULL: there is none */
    Recording *recording;
} Capture;
void capture_run(Capture *capture, Backend *backend, void (*work)(void *user), void *user);
void capture_drop(Capture *capture, Backend *backend);
/* Returns zeroed host memory for copies to and from the backend: from host_alloc, or ordinary
 * pages. Release with backend_host_free and the same number of bytes. */
void *backend_host_new(Backend *backend, size_t bytes);
void backend_host_free(Backend *backend, void *p, size_t bytes);
/* Returns the number of GPUs that this process may use; 0 with a reason in *why ("built without
 * CUDA", "no driver", ...). *why is borrowed. */
int cuda_device_count(const char **why);
/* Facts about a GPU. */
typedef struct GpuFacts {
    /* model: name of the model of GPU; bus: PCI bus address */
    char model[64], bus[32];
    /* free_bytes: device memory that is free; bytes: all device memory */
    double free_bytes, bytes;
} GpuFacts;
/* Sets *facts for the GPU that rank `number` of a node uses. The ranks of a node use its GPUs in
 * the order of their PCI bus addresses; if there are more ranks than GPUs, several ranks share a
 * GPU. Returns false if there is no GPU or the GPU does not answer. */
bool cuda_device_facts(int number, GpuFacts *facts);
/* From now on, marks the phases of a run as NVTX ranges, for NVIDIA's profilers. ERR_CONFIG: weft
 * was built without CUDA. */
Status nvtx_start(void);
/* Both print the versions with which weft was compiled and those that are loaded, one line for each
 * library. cuda_versions does so for the CUDA libraries, which it loads; backend_versions for the
 * CPU kernels, oneDNN and OpenMP and, if `gpus` is true, for the CUDA libraries. */
void cuda_versions(FILE *out);
void backend_versions(FILE *out, bool gpus);
/* Besides shapes and code, the bits of a backend's results depend on two things: the instruction
 * set, and the versions of the libraries. backend_instructions writes the instruction set, or "" on
 * a GPU, because grid_join_gpus compares the models of GPUs. backend_libraries writes the versions.
 * Each text is one line of at most `room` bytes. Ranks with equal texts compute equal bits. */
void backend_instructions(const Backend *backend, char *out, size_t room);
void backend_libraries(const Backend *backend, char *out, size_t room);

/* Measures laps of time on the backend's compute stream. A lap begins when the work that was queued
 * before stopwatch_start is done, and ends when the work that was queued before stopwatch_stop is
 * done. These two calls do not wait; calls that return times wait. */
typedef struct Stopwatch Stopwatch;
/* Makes a stopwatch. backend is borrowed. Release with stopwatch_free. */
Stopwatch *stopwatch_new(Backend *backend);
void stopwatch_free(Stopwatch **watch);
void stopwatch_start(Stopwatch *watch);
void stopwatch_stop(Stopwatch *watch);
/* Returns the number of laps since the last stopwatch_clear. */
int stopwatch_laps(const Stopwatch *watch);
/* Returns the seconds of lap number `lap`, counted from 0. */
double stopwatch_lap_s(Stopwatch *watch, int lap);
/* Returns the seconds of all laps together. */
double stopwatch_sum_s(Stopwatch *watch);
/* Returns the seconds from the start of a lap to the start of the next lap, with the gap between
 * the two laps. For the last lap, returns the seconds to its own end. */
double stopwatch_period_s(Stopwatch *watch, int lap);
void stopwatch_clear(Stopwatch *watch);

/* Makes weft's own CPU kernels, but not oneDNN's, use this instruction set from now on. Returns
 * false if the set is not built in or this processor lacks it. For benchmarks and tests; do not
 * call it while kernels run. */
bool cpu_kernels_use(InstructionSet set);

/* Returns the number of cores for this rank: the cores that the affinity mask and the control group
 * allow, divided by the number of ranks that share them; at least 1. */
int threads_share(int ranks_on_node);
/* Sets the number of threads in the parallel regions of the calling thread, and returns the
 * previous number. */
int threads_set(int threads);
/* The limits from which threads_share is computed. */
typedef struct ThreadsLimits {
    /* cores, cpus: number of cores and of hardware threads in the affinity mask of this process;
     * launcher_cores: number of cores in the mask of its parent process, the launcher */
    int cores, cpus, launcher_cores;
    /* quota: number of cores that the control groups allow, 0: no limit. waited_s: seconds for
     * which a quota has stalled the processes of its group, the longest time of all groups. */
    double quota, waited_s;
} ThreadsLimits;
/* largest number of hardware threads of a node */
enum { NODE_CPUS_MAX = 8192 };
/* Finds the limits. root: "", or in tests the path of a folder that is used in place of /. core:
 * NULL, or NODE_CPUS_MAX zeroed bytes, of which core[i] is set to 1 if this process may use core
 * i. */
ThreadsLimits threads_limits(const char *root, char *core);
/* Binds this process to `threads` cores of its own and returns true, if the node's ranks together
 * need exactly all allowed cores, and no launcher has bound the ranks already. Otherwise does
 * nothing and returns false. Call it before the first parallel region. */
bool threads_bind(int rank_on_node, int ranks_on_node, int threads);

#endif
