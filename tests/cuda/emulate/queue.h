/* Functions that the files of the emulated CUDA and its libraries share: access to the GPU's
 * memory, and streams on which work is queued. */
#ifndef WEFT_EMULATE_QUEUE_H
#define WEFT_EMULATE_QUEUE_H

#include <cuda_runtime_api.h>
#include <functional>

namespace emulate
{
/* Queues work on a stream; counts as one call by the host. The work runs when the host waits for
 * it; if the stream is being captured, it becomes a node of the graph. The GPU's memory can be
 * accessed only by such work. `work` must hold the arguments of the call by value. */
void enqueue(cudaStream_t stream, std::function<void()> work);

/* Returns the number in an environment variable, or `otherwise` if it is not set. */
size_t environment(const char *name, size_t otherwise);
/* Called by queued work: adds to the time that timed events measure. Algorithm i of a library takes
 * 100 ms times digit i of EMULATE_TIMES. */
void spend_time(size_t algorithm);
/* True if the address is in the GPU's memory. */
bool on_device(const void *memory);
/* The GPU's memory can be accessed from window_open to window_close. Calls may be nested. */
void window_open();
void window_close();
/* Runs the work of all streams. */
void finish_all();
/* True while a stream is being captured. */
bool recording();
/* Called by functions that CUDA refuses while a stream is captured. Returns true if one is; the
 * capture is then invalid. */
bool refused();
} // namespace emulate

#endif
