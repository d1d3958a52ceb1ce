/* Finds the fastest of a library's algorithms on this GPU by time. Each shape is timed once, when
 * it is planned (BackendOptions.times_algorithms). */
#ifndef WEFT_CUDA_TIMING_H
#define WEFT_CUDA_TIMING_H

#include "cuda.h"

enum { TIMED_BUFFERS = 48 };
/* Device buffers for the timed runs of one shape. */
typedef struct TimedMemory {
    /* the allocation that holds all buffers; owned; 256-byte aligned */
    void *all;
    void *at[TIMED_BUFFERS];
} TimedMemory;

/* Allocates `count` buffers of the given sizes and fills them with small numbers. Returns false
 * where the GPU lacks the memory. */
bool timed_memory_init(TimedMemory *memory, const CudaState *state, const size_t *bytes, int count);
void timed_memory_fini(TimedMemory *memory);

/* Returns the index of the fastest of `count` candidates. `run` queues candidate i once on the
 * compute stream and returns whether the library accepted it. A candidate replaces the first one
 * only if it takes at least TIMED_GAIN less time. Waits for the stream. */
#define TIMED_GAIN 0.02
int timed_fastest(CudaState *state, int count, bool (*run)(void *user, int i), void *user);

/* True where shapes that the record lacks are timed; else they take the library's first choice. */
bool cuda_times(const CudaState *state);
/* The algorithm record in the backend's options, or NULL. */
AlgorithmRecord *cuda_record(const CudaState *state);

#endif
