/* Sums GPU memory through host memory (comm_staged), if NCCL cannot join the GPUs or another
 * transport is configured. Every range is copied to host memory, summed there by the transport that
 * ranks without GPUs would use, and copied back. In a push each leaf is copied to the host, and
 * only the complete sum is copied back. The host waits for the copies. */
#include "transport/comm_table.h"

/* Elements offset .. offset + count - 1 of the arenas. */
typedef struct Range {
    int64_t offset, count;
} Range;

typedef struct Staged {
    /* backend of the host; owned */
    Backend *host;
    /* communicator with an arena of the same size in host memory; owned */
    Comm *inner;
    /* ranges whose sums have been begun and not yet copied back, [range_count]; owned */
    Range *range;
    int range_count, range_capacity;
} Staged;

static void staged_close(Comm *comm)
{
    Staged *s = comm->impl;
    size_t bytes = (size_t)comm->arena_elements * sizeof(float);
    if (comm->arena) comm->backend->table->release(comm->backend, comm->arena, bytes);
    if (s->inner) comm_free(&s->inner);
    if (s->host) backend_close(&s->host);
    mem_free(&s->range);
    mem_free(&s);
    comm->impl = NULL;
}

static Status staged_open(Comm *comm, Backend *backend, size_t arena_bytes)
{
    Staged *s = comm->impl = mem_new(sizeof *s);
    BackendOptions options = {.threads = backend->options.threads};
    Status st = status_agree(comm->world, backend_open(&s->host, &backend_cpu, options));
    if (st == OK)
        st = comm_new(&s->inner, comm->world, s->host, comm->transport, comm->arena_elements);
    comm->partial_backend = s->host;
    if (st == OK)
        comm->arena = backend->table->alloc(backend, arena_bytes);
    else
        staged_close(comm);
    return st;
}

/* Copies a range from the GPU's arena to the host's (to_host = true) or back, and waits until it is
 * copied. */
static void copy(const Comm *comm, Range range, bool to_host)
{
    const Staged *s = comm->impl;
    const BackendTable *table = comm->backend->table;
    Stream *stream = table->stream(comm->backend);
    float *host = s->inner->arena + range.offset, *device = comm->arena + range.offset;
    size_t bytes = (size_t)range.count * sizeof(float);
    table->copy(stream, to_host ? host : device, to_host ? device : host, bytes);
    table->sync(stream);
}

/* Adds a range to the ranges that staged_wait copies back. */
static void add_range(Staged *s, Range range)
{
    if (s->range_count == s->range_capacity) {
        s->range_capacity = 2 * s->range_capacity + 8;
        s->range = mem_resize(s->range, (size_t)s->range_capacity * sizeof *s->range);
    }
    s->range[s->range_count++] = range;
}

static void staged_sum_begin(Comm *comm, int64_t offset, int64_t count)
{
    Staged *s = comm->impl;
    add_range(s, (Range){offset, count});
    copy(comm, (Range){offset, count}, true);
    comm_allreduce_begin(s->inner, offset, count);
}

/* Copies only the leaf, because the partial sums, push->partial, are in host memory. The caller has
 * waited for the previous push of this range, so the leaf's copy in the host's arena may be
 * overwritten. */
static void staged_push_begin(Comm *comm, const CommPush *push)
{
    Staged *s = comm->impl;
    const Bounds *b = push->bounds;
    Range leaf = {b->begin[0] + push->shift, b->begin[b->count] - b->begin[0]};
    copy(comm, leaf, true);
    /* after the last leaves the complete sum is in the host's arena, except with PUSH_TO_PARTIAL */
    if (push_is_last(comm, push) && push->to != PUSH_TO_PARTIAL) add_range(s, leaf);
    comm_push_begin(s->inner, push);
}

static bool staged_push_poll(Comm *comm, int64_t number)
{
    return comm_push_poll(((const Staged *)comm->impl)->inner, number);
}

static bool staged_progress(Comm *comm)
{
    Staged *s = comm->impl;
    comm_progress(s->inner);
    /* comm_progress ignores the result; comm_wait calls staged_wait */
    return s->range_count == 0;
}

static void staged_wait(Comm *comm)
{
    Staged *s = comm->impl;
    comm_wait(s->inner);
    for (int i = 0; i < s->range_count; ++i) copy(comm, s->range[i], false);
    s->range_count = 0;
}

const CommTable comm_staged = {
    .name = "host memory",
    .open = staged_open,
    .close = staged_close,
    .sum_begin = staged_sum_begin,
    .shards = SHARDS_NEVER,
    .push_begin = staged_push_begin,
    .push_poll = staged_push_poll,
    .progress = staged_progress,
    .wait = staged_wait,
};
