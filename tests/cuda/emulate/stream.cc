/* Streams, events, graphs and page-locked memory. Work runs as late as CUDA allows: when the host
 * waits for it. On streams other than the first one, work sometimes runs at once. If a wait is
 * missing in weft, results are therefore incomplete or overwritten, and a test fails. Copies from
 * pageable memory read that memory during the call; copies to pageable memory make the host wait. A
 * capture records the work of its stream and refuses the calls that CUDA refuses; it does not
 * support forks to other streams. */
#include "queue.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

using Clock = std::chrono::steady_clock;
using Work = std::function<void()>;
using Nodes = std::vector<Work>;

namespace
{
struct Queue {
    std::deque<Work> work;
    uint64_t queued, done;
    bool first; /* true: the backend's compute stream */
};
using QueueAt = std::shared_ptr<Queue>;
std::vector<QueueAt> queues;

struct Host { /* page-locked */
    char *at;
    size_t bytes;
};
std::vector<Host> pinned;

cudaStream_t captured; /* the stream that is being captured; NULL: none */
bool invalid;          /* the capture is invalid */
Nodes nodes;           /* work that the capture has recorded */
Clock::duration simulated; /* time added by spend_time so far */
long calls, waits; /* number of calls by the host, and of calls that wait until a stream is empty */

/* Runs the queue's work until `count` items are done. */
void run_until(Queue &q, uint64_t count)
{
    if (q.done >= count) return; /* opening a window costs a system call for each block of memory */
    emulate::window_open();
    while (q.done < count) {
        Work work = std::move(q.work.front());
        q.work.pop_front();
        work();
        ++q.done;
    }
    emulate::window_close();
}

/* Decides pseudo-randomly whether work runs at once or later. */
bool runs_at_once()
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 31;
}

bool is_pinned(const void *memory)
{
    const char *at = static_cast<const char *>(memory);
    return std::any_of(pinned.begin(), pinned.end(),
                       [&](const Host &h) { return at >= h.at && at < h.at + h.bytes; });
}

bool is_pageable(const void *memory)
{
    return !emulate::on_device(memory) && !is_pinned(memory);
}
} // namespace

struct CUstream_st {
    QueueAt queue;
};
struct CUevent_st {
    QueueAt queue; /* queue in which the event was recorded; NULL: it was never recorded */
    uint64_t count; /* number of items that had been queued when the event was recorded */
    bool captured, timed;
    std::shared_ptr<Clock::time_point> at; /* time at which the event was reached; set if timed */
};
struct CUgraph_st {
    Nodes nodes;
};
struct CUgraphExec_st {
    std::shared_ptr<Nodes> nodes;
};

namespace emulate
{
void enqueue(cudaStream_t stream, Work work)
{
    ++calls;
    if (stream == captured) {
        nodes.push_back(std::move(work));
        return;
    }
    Queue &q = *stream->queue;
    q.work.push_back(std::move(work));
    ++q.queued;
    if (!q.first && runs_at_once()) run_until(q, q.queued);
}

void finish_all()
{
    for (QueueAt &q : queues) run_until(*q, q->queued);
}

void spend_time(size_t algorithm)
{
    const char *digits = getenv("EMULATE_TIMES");
    if (digits && algorithm < strlen(digits))
        simulated += std::chrono::milliseconds(100 * (digits[algorithm] - '0'));
}

bool recording()
{
    return captured != nullptr;
}

bool refused()
{
    invalid = invalid || captured;
    return captured;
}
} // namespace emulate

#define REFUSE_IN_CAPTURE()                                                                        \
    if (emulate::refused()) return cudaErrorStreamCaptureUnsupported

extern "C" {
/* For tests: *all: number of calls by the host that queue or wait; *empty: number of those that
 * waited until a stream was empty. */
void emulate_counts(long *all, long *empty)
{
    *all = calls;
    *empty = waits;
}

/* Prints the number of calls at the end if EMULATE_COUNTS is set. */
__attribute__((destructor)) static void print_counts()
{
    if (getenv("EMULATE_COUNTS")) fprintf(stderr, "%ld calls of the host\n", calls);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    REFUSE_IN_CAPTURE();
    queues.push_back(std::make_shared<Queue>());
    queues.back()->first = queues.size() == 1;
    *stream = new CUstream_st{queues.back()};
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    run_until(*stream->queue, stream->queue->queued);
    queues.erase(std::find(queues.begin(), queues.end(), stream->queue));
    delete stream;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    REFUSE_IN_CAPTURE();
    ++calls;
    ++waits;
    run_until(*stream->queue, stream->queue->queued);
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    *event = new CUevent_st{};
    (*event)->timed = !(flags & cudaEventDisableTiming);
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    ++calls;
    auto at = std::make_shared<Clock::time_point>();
    if (event->timed) emulate::enqueue(stream, [at] { *at = Clock::now() + simulated; });
    *event = {stream->queue, stream->queue->queued, stream == captured, event->timed, at};
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    if (captured && (stream == captured) != event->captured) {
        invalid = true;
        return stream == captured ? cudaErrorStreamCaptureIsolation
                                  : cudaErrorStreamCaptureUnsupported;
    }
    CUevent_st at = *event;
    emulate::enqueue(stream, [at] {
        if (at.queue) run_until(*at.queue, at.count);
    });
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    REFUSE_IN_CAPTURE();
    ++calls;
    if (event->captured) return cudaErrorCapturedEvent;
    if (event->queue) run_until(*event->queue, event->count);
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    REFUSE_IN_CAPTURE();
    if (from->captured || to->captured) return cudaErrorCapturedEvent;
    if (!from->timed || !to->timed || !from->queue || !to->queue)
        return cudaErrorInvalidResourceHandle;
    if (from->queue->done < from->count || to->queue->done < to->count) return cudaErrorNotReady;
    *ms = std::chrono::duration<float, std::milli>(*to->at - *from->at).count();
    return cudaSuccess;
}
/* Each query runs some of the work before the event, so that a host that polls makes progress. */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    REFUSE_IN_CAPTURE();
    ++calls;
    if (event->captured) return cudaErrorCapturedEvent;
    if (!event->queue || event->queue->done >= event->count) return cudaSuccess;
    run_until(*event->queue, event->queue->done + 1);
    return cudaErrorNotReady;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
    REFUSE_IN_CAPTURE();
    *memory = malloc(bytes);
    memset(*memory, 0xff, bytes);
    pinned.push_back({static_cast<char *>(*memory), bytes});
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void *memory)
{
    REFUSE_IN_CAPTURE();
    emulate::finish_all();
    for (size_t i = 0; i < pinned.size(); ++i)
        if (pinned[i].at == memory) {
            pinned.erase(pinned.begin() + long(i));
            free(memory);
            return cudaSuccess;
        }
    return cudaErrorInvalidValue;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream)
{
    bool from_pages = is_pageable(from), to_pages = is_pageable(to);
    if (stream == captured && (from_pages || to_pages)) REFUSE_IN_CAPTURE();
    if (from_pages) {
        const char *bytes_of = static_cast<const char *>(from);
        std::vector<char> staged(bytes_of, bytes_of + bytes);
        emulate::enqueue(stream, [=] { memcpy(to, staged.data(), bytes); });
    } else {
        emulate::enqueue(stream, [=] { memmove(to, from, bytes); });
    }
    if (!to_pages) return cudaSuccess;
    ++waits;
    run_until(*stream->queue, stream->queue->queued);
    return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream)
{
    size_t pitch = emulate::environment("EMULATE_PITCH", INT32_MAX);
    if (!emulate::on_device(to) || !emulate::on_device(from)) return cudaErrorNotSupported;
    if (to_pitch > pitch || from_pitch > pitch) return cudaErrorInvalidPitchValue;
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
    emulate::enqueue(stream, [=] {
        for (size_t i = 0; i < height; ++i)
            memmove(static_cast<char *>(to) + i * to_pitch,
                    static_cast<const char *>(from) + i * from_pitch, width);
    });
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    emulate::enqueue(stream, [=] { memset(to, value, bytes); });
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    if (captured) return cudaErrorIllegalState;
    captured = stream;
    invalid = false;
    nodes.clear();
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    *graph = nullptr;
    if (stream != captured) return cudaErrorIllegalState;
    captured = nullptr;
    if (invalid) return cudaErrorStreamCaptureInvalidated;
    *graph = new CUgraph_st{std::move(nodes)};
    return cudaSuccess;
}
/* EMULATE_GRAPH_BYTES: bytes of GPU memory for each instantiated graph. */
static size_t graphs;
size_t emulate_graph_bytes()
{
    const char *text = getenv("EMULATE_GRAPH_BYTES");
    return text ? graphs * strtoull(text, nullptr, 10) : 0;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    REFUSE_IN_CAPTURE();
    ++graphs;
    *exec = new CUgraphExec_st{std::make_shared<Nodes>(graph->nodes)};
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    REFUSE_IN_CAPTURE();
    std::shared_ptr<Nodes> all = exec->nodes;
    emulate::enqueue(stream, [all] {
        for (const Work &work : *all) work();
    });
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    --graphs;
    delete exec;
    return cudaSuccess;
}
}
