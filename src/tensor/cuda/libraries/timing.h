/* Finds the fastest of several algorithms of a library by timing them on this GPU. Each shape is
 * timed once, when it is planned (BackendOptions.times_algorithms). */
#ifndef WEFT_CUDA_TIMING_H
#define WEFT_CUDA_TIMING_H

#include "../cuda.h"

/* largest number of buffers */
enum { TIMED_BUFFERS = 48 };
/* Buffers in device memory for the timed runs of one shape. */
typedef struct TimedMemory {
    /* the allocation that holds all buffers; owned; 256-byte aligned */
    void *allocation;
    /* addresses of the buffers, in `allocation` */
    void *buffer[TIMED_BUFFERS];
} TimedMemory;

/* Allocates `count` buffers, buffer i of bytes[i] bytes, and fills them with small numbers. Returns
 * false if the GPU has too little memory. */
bool timed_memory_init(TimedMemory *memory, const CudaState *state, const size_t *bytes, int count);
void timed_memory_fini(TimedMemory *memory);

/* Returns the index of the fastest of `count` candidates. run: queues candidate i once on the
 * compute stream, and returns false if the library refuses it. Another candidate is preferred to
 * candidate 0 only if its time is at most 1 - TIMED_GAIN times the time of candidate 0. Waits for
 * the stream. */
#define TIMED_GAIN 0.02
int find_fastest(CudaState *state, int count, bool (*run)(void *user, int i), void *user);

/* Returns whether shapes that are not in the record of algorithms are timed. If not, the library's
 * first choice is used. */
bool cuda_times_algorithms(const CudaState *state);
/* Returns the record of algorithms in the backend's options, or NULL if there is none. */
AlgorithmRecord *cuda_algorithm_record(const CudaState *state);

#endif
