/* What the parts of the emulated CUDA share: the GPU's memory, and streams to which the libraries
 * hand their work. */
#ifndef WEFT_EMULATE_QUEUE_H
#define WEFT_EMULATE_QUEUE_H

#include <cuda_runtime_api.h>
#include <functional>

namespace emulate
{
/* Counts as one call of the host. The work runs when somebody waits for it, or becomes a graph's
 * node; the GPU's memory can be touched by it. What a call takes by value it must hold by value. */
void enqueue(cudaStream_t stream, std::function<void()> work);

/* A number that the environment gives, or another where it gives none. */
size_t environment(const char *name, size_t otherwise);
/* Within work: the stream has taken so long, as its timers say. Algorithm i of a library takes
 * 100 ms times digit i of EMULATE_TIMES. */
void spend_time_of(size_t algorithm);
bool on_device(const void *memory);
void window_open();
void window_close();
/* until nothing is queued */
void finish_all();
bool recording();
/* For a call that CUDA does not allow while a stream is captured: true, and the capture is lost. */
bool refused();
} // namespace emulate

#endif
