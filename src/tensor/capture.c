/* Recording and replay of a step's queued work, and host memory for asynchronous copies. Backends
 * without record_begin call the work in every step. For backends without host_alloc, the memory is
 * ordinary pages. */
#include "tensor.h"

/* Records what `work` queues, without running it. If recording fails, warns, turns replay off for
 * the whole backend and returns NULL; the queued work is then not done. */
static Recording *record(Backend *backend, void (*work)(void *user), void *user)
{
    const BackendTable *t = backend->table;
    Stream *stream = t->stream(backend);
    const char *why = NULL;
    t->record_begin(stream);
    work(user);
    Recording *recording = t->record_end(stream, &why);
    if (!recording) {
        backend->options.replay = false;
        log_warn("%s: a step cannot be recorded as a graph (%s): its kernels are launched one by "
                 "one, as with train.cuda_graphs: off",
                 t->name, why);
    }
    return recording;
}

void capture_run(Capture *capture, Backend *backend, void (*work)(void *user), void *user)
{
    const BackendTable *t = backend->table;
    bool replays = backend->options.replay && t->record_begin;
    if (replays && capture->was_called && !capture->recording)
        capture->recording = record(backend, work, user);
    capture->was_called = true;
    if (capture->recording)
        t->replay(capture->recording, t->stream(backend));
    else
        work(user);
}

void capture_drop(Capture *capture, Backend *backend)
{
    if (capture->recording) backend->table->recording_free(&capture->recording);
    capture->was_called = false;
}

void *backend_host_new(Backend *backend, size_t bytes)
{
    bool allocates = backend && backend->table->host_alloc;
    return allocates ? backend->table->host_alloc(backend, bytes) : mem_pages_new(bytes);
}

void backend_host_free(Backend *backend, void *p, size_t bytes)
{
    if (backend && backend->table->host_alloc)
        backend->table->host_release(backend, p, bytes);
    else
        mem_pages_free(p, bytes);
}
