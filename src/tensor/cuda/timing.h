/* Finds the fastest of a library's algorithms on this GPU: each shape is timed once, when it is
 * planned (BackendOptions.times_algorithms). */
#ifndef WEFT_CUDA_TIMING_H
#define WEFT_CUDA_TIMING_H

#include "cuda.h"

enum { TIMED_BUFFERS = 48 };
/* Memory for one shape's runs. */
typedef struct TimedMemory {
    /* owned; 256 bytes aligned */
    void *all;
    void *at[TIMED_BUFFERS];
} TimedMemory;

/* Takes `count` buffers of so many bytes, filled with small numbers. False where the GPU has no
 * memory for them. */
bool timed_memory_init(TimedMemory *memory, const CudaState *state, const size_t *bytes, int count);
void timed_memory_fini(TimedMemory *memory);

/* Number of the fastest of `count` candidates. run queues candidate i once on the compute stream,
 * and says whether the library took it. Another one than the first is taken where it needs
 * TIMED_GAIN less time. Waits for the stream. */
#define TIMED_GAIN 0.02
int timed_fastest(CudaState *state, int count, bool (*run)(void *user, int i), void *user);

/* Are missing shapes timed? Else they take the library's first choice. */
bool cuda_times(const CudaState *state);
/* The record of the backend's options, or NULL. */
AlgorithmRecord *cuda_record(const CudaState *state);

#endif
