/* Exchanges slices in GPU memory through host memory, if NCCL does not connect the ranks: a slice
 * is copied to host memory, sent through the channels that ranks without GPUs use, and copied back.
 * The host waits for the copy to host memory, but not for the copy back. */
#include "slice_exchange.h"

struct StagedExchange {
    Exchange interface;
    /* borrowed */
    const Context *context;
    /* exchange in host memory; borrowed */
    const Exchange *host;
    /* host buffer for a slice, [bytes]; owned */
    char *mine;
    /* host buffer for a tensor of which every rank has a slice, [bytes]; owned */
    char *whole;
    size_t bytes;
};

static size_t bytes_of_mine(const Exchange *x, const Slices *s)
{
    const ExchangeBlock b = exchange_block(x, s);
    return (size_t)s->ranges * slices_range_bytes(s, b.size, b.rank);
}

static size_t bytes_of_whole(const Slices *s)
{
    return (size_t)s->ranges * slices_range_bytes(s, 1, 0);
}

/* Checks that the tensor, and with it each of its slices, fits into the host buffers. */
static void check_room(const StagedExchange *staged, const Slices *s)
{
    if (bytes_of_whole(s) > staged->bytes)
        die("the exchange of slices was planned for smaller tensors");
}

/* Copies to the host and waits. The wait also covers the previous exchange's copy back, which uses
 * the same buffers. */
static void copy_to_host(const StagedExchange *staged, void *to, const void *from, size_t bytes)
{
    const Context *c = staged->context;
    context_copy(c, to, from, bytes);
    c->backend->table->sync(c->stream);
}

static void gather(const Exchange *x, Slices s, const void *mine, void *whole)
{
    const StagedExchange *staged = x->user;
    const Context *c = staged->context;
    check_room(staged, &s);
    copy_to_host(staged, staged->mine, mine, bytes_of_mine(x, &s));
    staged->host->all_gather(staged->host, s, staged->mine, staged->whole);
    context_copy(c, whole, staged->whole, bytes_of_whole(&s));
}

static void reduce(const Exchange *x, Slices s, const void *whole, void *mine)
{
    const StagedExchange *staged = x->user;
    const Context *c = staged->context;
    check_room(staged, &s);
    copy_to_host(staged, staged->whole, whole, bytes_of_whole(&s));
    staged->host->reduce_scatter(staged->host, s, staged->whole, staged->mine);
    context_copy(c, mine, staged->mine, bytes_of_mine(x, &s));
}

StagedExchange *staged_exchange_new(const Context *context, const Exchange *host, size_t most)
{
    StagedExchange *staged = mem_new(sizeof *staged);
    *staged = (StagedExchange){.context = context, .host = host, .bytes = most};
    staged->interface = *host;
    staged->interface.user = staged;
    staged->interface.all_gather = gather;
    staged->interface.reduce_scatter = reduce;
    staged->mine = backend_host_new(context->backend, most);
    staged->whole = backend_host_new(context->backend, most);
    return staged;
}

void staged_exchange_free(StagedExchange **exchange)
{
    StagedExchange *s = *exchange;
    if (!s) return;
    const Context *c = s->context;
    c->backend->table->sync(c->stream);
    backend_host_free(c->backend, s->mine, s->bytes);
    backend_host_free(c->backend, s->whole, s->bytes);
    mem_free(exchange);
}

const Exchange *staged_exchange_interface(const StagedExchange *exchange)
{
    return &exchange->interface;
}
