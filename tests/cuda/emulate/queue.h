/* Shared parts of the emulated CUDA: the GPU's memory, and streams to which the emulated libraries
 * submit work. */
#ifndef WEFT_EMULATE_QUEUE_H
#define WEFT_EMULATE_QUEUE_H

#include <cuda_runtime_api.h>
#include <functional>

namespace emulate
{
/* Queues work on a stream; counts as one call by the host. The work runs when the host waits for
 * it, or becomes a node of the graph that is being captured. Only work can access the GPU's memory.
 * It must capture a call's arguments by value. */
void enqueue(cudaStream_t stream, std::function<void()> work);

/* Returns the number in an environment variable, or `otherwise` if it is not set. */
size_t environment(const char *name, size_t otherwise);
/* Called within work: adds to the time that the stream's timers show. Algorithm i of a library
 * takes 100 ms times digit i of EMULATE_TIMES. */
void spend_time_of(size_t algorithm);
bool on_device(const void *memory);
void window_open();
void window_close();
/* waits for all streams */
void finish_all();
bool recording();
/* For a call that CUDA refuses while a stream is captured: returns true, and the capture becomes
 * invalid. */
bool refused();
} // namespace emulate

#endif
