/* Communicators: chooses the transport, and does the work that all transports share: checks,
 * counting operations, measuring waits. Also contains comm_self, the transport of a world of one
 * rank. */
#include "mpi/node_group.h"
#include "order/tree_sum.h"
#include "shm/shm_segments.h"
#include "transport/comm_table.h"

static Status self_open(Comm *comm, Backend *backend, size_t arena_bytes)
{
    comm->arena = backend->table->alloc(backend, arena_bytes);
    return OK;
}

static void self_close(Comm *comm)
{
    comm_params_release(comm);
    comm->backend->table->release(comm->backend, comm->arena,
                                  (size_t)comm->arena_elements * sizeof(float));
}

static void self_sum_begin(Comm *comm, int64_t offset, int64_t count)
{
    (void)comm, (void)offset, (void)count;
}

static void self_cut_begin(Comm *comm, const Bounds *bounds)
{
    (void)comm, (void)bounds;
}

static void self_gather_begin(Comm *comm, const Bounds *bounds, int64_t shift)
{
    (void)comm, (void)bounds, (void)shift;
}

static void self_push_begin(Comm *comm, const CommPush *push)
{
    const float *in = comm->arena;
    TreePush leaf = {.level = push->partial,
                     .level_at = push->partial_at,
                     .in = &in,
                     .in_at = bounds_at(push->bounds, 0) + push->shift,
                     .ins = 1,
                     .first = push->first,
                     .leaves = push->leaves,
                     .out = &comm->arena,
                     .outs = push->to != PUSH_TO_PARTIAL};
    tree_push(&leaf, bounds_length(push->bounds, 0), comm->backend->options.threads);
}

static bool self_collective_wait(Comm *comm, int64_t number)
{
    (void)comm, (void)number;
    return true;
}

static bool self_progress(Comm *comm)
{
    (void)comm;
    return true;
}

const CommTable comm_self = {
    .name = "self",
    .open = self_open,
    .close = self_close,
    .sum_begin = self_sum_begin,
    .shards = SHARDS_ALWAYS,
    .params_open = comm_params_alloc,
    .reduce_begin = self_cut_begin,
    .gather_begin = self_gather_begin,
    .gather_poll = self_collective_wait,
    .push_begin = self_push_begin,
    .push_poll = self_collective_wait,
    .progress = self_progress,
};

/* algorithm of sums by messages (grid.sums) for communicators that are made from now on */
static SumAlgorithm default_way;

void comm_set_sum_algorithm(SumAlgorithm algorithm)
{
    default_way = algorithm;
}

int comm_group_width(const World *world, int transport)
{
    bool mixed = transport == TRANSPORT_AUTO && !world->one_node;
    return mixed ? node_group_width(world) : 1;
}

int comm_transport(int transport, bool one_node, bool host_memory)
{
    /* Shared segments never contain GPU memory. NCCL sums GPU memory, or comm_staged copies it to
     * the host and makes a second communicator, for which this function is called with host_memory
     * = true. */
    if (!host_memory) return TRANSPORT_NCCL;
    if (transport != TRANSPORT_AUTO) return transport;
    return one_node ? TRANSPORT_SHM : TRANSPORT_MPI;
}

/* Chooses the transport for GPU memory. It is NCCL with transport nccl, and with auto if the GPUs
 * are joined; otherwise it is staging through host memory. ERR_BUG: transport nccl, but the GPUs
 * are not joined. */
static Status choose_device(Comm *comm)
{
    bool joined = comm->world->nccl_comm != NULL;
    bool nccl = comm->transport == TRANSPORT_NCCL || (comm->transport == TRANSPORT_AUTO && joined);
    comm->table = nccl ? &comm_nccl : &comm_staged;
    return nccl && !joined ? fail(ERR_BUG, "a communicator of GPUs that were not joined") : OK;
}

/* Sets comm->table, and for host memory comm->group_width. Collective. */
static Status choose(Comm *comm)
{
    const World *world = comm->world;
    const CommTable **table = &comm->table;
    bool host = comm->backend->table->host_memory;
    if (world->size > 1 && !host) return choose_device(comm);
    comm->group_width = comm_group_width(world, comm->transport);
    int transport = comm_transport(comm->transport, world->one_node, host);
    switch (world->size == 1 ? TRANSPORT_AUTO : transport) {
    case TRANSPORT_SHM:
        TRY(shm_segments_check_one_node(world));
        *table = &comm_shm;
        return OK;
    case TRANSPORT_MPI:
        *table = comm->group_width > 1 ? &comm_nodes : &comm_mpi;
        return OK;
    case TRANSPORT_NCCL:
        return fail(ERR_CONFIG, "grid.transport: nccl needs train.device: cuda, not %s; use auto",
                    comm->backend->table->name);
    default:
        *table = &comm_self;
        return OK;
    }
}

Status comm_new(Comm **comm, const World *world, Backend *backend, int transport,
                int64_t arena_elements)
{
    *comm = NULL;
    Comm chosen = {.world = world,
                   .backend = backend,
                   .rank = world->rank,
                   .size = world->size,
                   .transport = transport,
                   .sum_algorithm = default_way,
                   .group_width = 1,
                   .arena_elements = arena_elements};
    TRY(status_agree(world, choose(&chosen)));
    chosen.partial_backend = backend;
    Comm *c = mem_new(sizeof *c);
    *c = chosen;
    Status mine = c->table->open(c, backend, (size_t)arena_elements * sizeof(float));
    Status all = status_agree(world, mine);
    if (all == OK) {
        *comm = c;
        return OK;
    }
    if (mine == OK) c->table->close(c);
    mem_free(&c);
    return all;
}

Status comm_params_new(Comm *comm, int64_t elements)
{
    if (!comm->table->params_open)
        return fail(ERR_CONFIG,
                    "grid.zero: sums of GPU memory through %s cannot be sharded: start one rank "
                    "per GPU, with grid.transport=auto, or use grid.zero: 0",
                    comm->table->name);
    comm->param_elements = elements;
    return comm->table->params_open(comm, (size_t)elements * sizeof(float));
}

const char *comm_name(const Comm *comm)
{
    return comm->table->name;
}

void comm_free(Comm **comm)
{
    if (!*comm) return;
    (*comm)->table->close(*comm);
    mem_free(comm);
}

void comm_allreduce_begin(Comm *comm, int64_t offset, int64_t count)
{
    if (offset < 0 || count < 0 || offset + count > comm->arena_elements)
        die("sum of [%lld, %lld + %lld) outside the arena of %lld", (long long)offset,
            (long long)offset, (long long)count, (long long)comm->arena_elements);
    if (count == 0) return;
    ++comm->sums;
    comm->table->sum_begin(comm, offset, count);
}

/* Dies if the bounds are for another number of ranks, do not ascend, or leave the arena: a sum
 * would overwrite other memory. what: name of the operation, for the message; end: number of
 * elements of the arena or the parameters. */
static void check_bounds(const Comm *comm, const char *what, const Bounds *b, int64_t shift,
                         int64_t end)
{
    bool good =
        b->ranks == comm->size && b->begin[0] + shift >= 0 && b->begin[b->count] + shift <= end;
    for (int i = 0; i < b->count; ++i) good = good && b->begin[i] < b->begin[i + 1];
    if (!good)
        die("%s of [%lld, %lld): outside the arena of %lld, or its bounds descend, or are for %d "
            "ranks",
            what, (long long)(b->begin[0] + shift), (long long)(b->begin[b->count] + shift),
            (long long)end, b->ranks);
}

void comm_reduce_scatter_begin(Comm *comm, const Bounds *bounds)
{
    check_bounds(comm, "sum", bounds, 0, comm->arena_elements);
    if (bounds->count == 0) return;
    ++comm->sums;
    comm->table->reduce_begin(comm, bounds);
}

int64_t comm_allgather_begin(Comm *comm, const Bounds *bounds, int64_t shift)
{
    check_bounds(comm, "all-gather", bounds, shift, comm->param_elements);
    if (bounds->count == 0) return comm->gathers;
    ++comm->gathers;
    comm->table->gather_begin(comm, bounds, shift);
    return comm->gathers;
}

int64_t comm_push_begin(Comm *comm, const CommPush *push)
{
    check_bounds(comm, "push", push->bounds, push->shift, comm->arena_elements);
    if (push->first % comm->size || push->leaves % comm->size)
        die("push of leaves from %d on, of %d: both must be multiples of %d, the number of ranks",
            push->first, push->leaves, comm->size);
    ++comm->pushes;
    comm->table->push_begin(comm, push);
    return comm->pushes;
}

static bool wait_for(Comm *comm, bool (*wait)(Comm *, int64_t), int64_t number)
{
    /* for number 0 no operation has been begun, and `wait` may be NULL */
    if (number == 0) return true;
    if (comm->waits) stopwatch_start(comm->waits);
    bool done = wait(comm, number);
    if (comm->waits) stopwatch_stop(comm->waits);
    return done;
}

bool comm_allgather_poll(Comm *comm, int64_t number)
{
    return wait_for(comm, comm->table->gather_poll, number);
}

bool comm_push_poll(Comm *comm, int64_t number)
{
    return wait_for(comm, comm->table->push_poll, number);
}

void comm_progress(Comm *comm)
{
    if (comm->table->progress) comm->table->progress(comm);
}

void comm_wait(Comm *comm)
{
    if (comm->size > 1)
        beat_mark("sums over replicas", (BeatMark){.peer = BEAT_NONE,
                                                   .chunk = BEAT_NONE,
                                                   .micro = BEAT_NONE,
                                                   .number = (uint64_t)comm->sums,
                                                   .waits = true});
    if (comm->waits) stopwatch_start(comm->waits);
    if (comm->table->wait) comm->table->wait(comm);
    if (comm->waits) stopwatch_stop(comm->waits);
}
