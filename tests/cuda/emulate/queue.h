/* Functions that the files of the emulated CUDA and its libraries share: access to the GPU's
 * memory, and streams on which work is queued. */
#ifndef WEFT_EMULATE_QUEUE_H
#define WEFT_EMULATE_QUEUE_H

#include <cuda_runtime_api.h>
#include <functional>

namespace emulate
{
/* Queues work on a stream, and counts one call by the host. The work runs at the latest when the
 * host waits for it. If the stream is being captured, the work becomes a node of the graph instead.
 * Only queued work can access the GPU's memory. `work` must have copies of the call's arguments,
 * because it may run after the call has returned. */
void enqueue(cudaStream_t stream, std::function<void()> work);

/* Returns the number in an environment variable, or `otherwise` if it is not set. */
size_t environment(const char *name, size_t otherwise);
/* Adds 100 ms times digit number `algorithm` of the environment variable EMULATE_TIMES to the time
 * that timed events measure. Queued work calls it. */
void spend_time(size_t algorithm);
/* Returns true if the address is in the GPU's memory. */
bool on_device(const void *memory);
/* The GPU's memory can be accessed between window_open and window_close. Calls may be nested. */
void window_open();
void window_close();
/* Runs the work of all streams. */
void finish_all();
/* Returns true while a stream is being captured. */
bool recording();
/* Returns true if a stream is being captured, and makes the capture invalid. The functions that
 * CUDA refuses during a capture call it. */
bool refused();
} // namespace emulate

#endif
