/* Finds the fastest of a library's algorithms by timing them on this GPU. Each shape is timed once,
 * when it is planned (BackendOptions.times_algorithms). */
#ifndef WEFT_CUDA_TIMING_H
#define WEFT_CUDA_TIMING_H

#include "cuda.h"

enum { TIMED_BUFFERS = 48 };
/* Device buffers for the timed runs of one shape. */
typedef struct TimedMemory {
    /* the allocation that holds all buffers; owned; 256-byte aligned */
    void *allocation;
    void *buffer[TIMED_BUFFERS];
} TimedMemory;

/* Allocates `count` buffers of bytes[i] bytes and fills them with small numbers. Returns false if
 * the GPU lacks the memory. */
bool timed_memory_init(TimedMemory *memory, const CudaState *state, const size_t *bytes, int count);
void timed_memory_fini(TimedMemory *memory);

/* Returns the index of the fastest of `count` candidates. `run` queues candidate i once on the
 * compute stream and returns false if the library refuses it. Another candidate is preferred to the
 * first only if it takes less than 1 - TIMED_GAIN of the first one's time. Waits for the stream. */
#define TIMED_GAIN 0.02
int find_fastest(CudaState *state, int count, bool (*run)(void *user, int i), void *user);

/* True if shapes that are not in the record are timed; else the library's first choice is used. */
bool cuda_times_algorithms(const CudaState *state);
/* The algorithm record in the backend's options, or NULL. */
AlgorithmRecord *cuda_algorithm_record(const CudaState *state);

#endif
