/* Slices of a GPU's memory by way of the host's, where NCCL does not join the ranks: what operations give is copied to
 * host memory, goes through the pipes that ranks without GPUs would use, and is copied back. The host waits for it. */
#include "executor.h"

struct Staged {
    Exchange face;
    Executor *executor;   /* borrowed */
    const Exchange *host; /* borrowed: exchanges in host memory */
    char *mine, *whole;   /* owned: room for a tensor each */
    size_t bytes;
};

static size_t bytes_of_mine(const Exchange *x, const Slices *s)
{
    return (size_t)s->runs * slices_run(s, x->size, x->rank);
}

static size_t bytes_of_whole(const Slices *s)
{
    return (size_t)s->runs * slices_run(s, 1, 0);
}

/* The copy back from before has gone, too. */
static void bring(const Staged *staged, void *to, const void *from, size_t bytes)
{
    const Executor *e = staged->executor;
    if (bytes > staged->bytes) die("a tensor is exchanged that is larger than was planned");
    e->backend->table->copy(e->stream, to, from, bytes);
    e->backend->table->sync(e->stream);
}

static void gather(const Exchange *x, Slices s, const void *mine, void *whole)
{
    const Staged *staged = x->user;
    const Executor *e = staged->executor;
    bring(staged, staged->mine, mine, bytes_of_mine(x, &s));
    staged->host->gather(staged->host, s, staged->mine, staged->whole);
    e->backend->table->copy(e->stream, whole, staged->whole, bytes_of_whole(&s));
}

static void reduce(const Exchange *x, Slices s, const void *whole, void *mine)
{
    const Staged *staged = x->user;
    const Executor *e = staged->executor;
    bring(staged, staged->whole, whole, bytes_of_whole(&s));
    staged->host->reduce(staged->host, s, staged->whole, staged->mine);
    e->backend->table->copy(e->stream, mine, staged->mine, bytes_of_mine(x, &s));
}

Staged *staged_new(Executor *e, const Exchange *host, size_t most)
{
    Staged *staged = mem_new(sizeof *staged);
    *staged = (Staged){.executor = e, .host = host, .bytes = most};
    staged->face = *host;
    staged->face.user = staged;
    staged->face.gather = gather;
    staged->face.reduce = reduce;
    staged->mine = backend_host_new(e->backend, most);
    staged->whole = backend_host_new(e->backend, most);
    return staged;
}

void staged_free(Staged **staged)
{
    Staged *s = *staged;
    if (!s) return;
    Executor *e = s->executor;
    e->backend->table->sync(e->stream);
    backend_host_free(e->backend, s->mine, s->bytes);
    backend_host_free(e->backend, s->whole, s->bytes);
    mem_free(staged);
}

const Exchange *staged_exchange(const Staged *staged)
{
    return &staged->face;
}
