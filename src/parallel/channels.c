/* Channels: chooses the transport for each pair of ranks, makes the checks that all transports
 * share, and decides how a waiting rank yields and sleeps. The files in shm/, mpi/ and nccl/ move
 * the messages. These errors of a caller are reported as bugs: lists that differ between ranks, a
 * channel from a rank to itself, a call on the wrong end, a call without a free slot or without a
 * message, and channels that are freed while messages are in flight. */
#include "mpi/channel_mpi.h"
#include "nccl/channel_nccl.h"
#include "shm/channel_shm.h"
#include "world/mpi_check.h"

#include <sched.h>
#include <time.h>

/* A waiting rank spins for SPIN_S, then yields until it has waited for YIELD_S. After that each
 * sleep lasts an eighth of the time waited so far, at most NAP_S. If a channel of any rank uses
 * MPI, a sleep lasts at most MPI_NAP_S, because MPI moves messages only inside its calls. If ranks
 * of this node have channels in shared memory, a rank that has waited for CHECK_S checks every
 * CHECK_S that the ranks of the node are alive. */
static const double SPIN_S = 5e-6, YIELD_S = 50e-6, NAP_S = 1e-3, MPI_NAP_S = 1e-4, CHECK_S = 0.1;

struct Channels {
    /* borrowed */
    const World *world;
    int count;
    /* the channels, [count]; owned */
    Channel *channel;
    /* number in the job of each of world's ranks, [world->size]; owned */
    int *job_rank;
    /* shared memory of the channels inside this node */
    PipeNode pipes;
    /* duplicate of world's communicator, so that tags are not shared with other messages; owned;
     * MPI_COMM_NULL if no channel of any rank uses MPI */
    MPI_Comm comm;
    /* time (clock_s) of the last check that peers are alive */
    double checked_s;
};

static Status check_spec(const ChannelSpec *spec, int i, int ranks)
{
    if (spec->from < 0 || spec->from >= ranks || spec->to < 0 || spec->to >= ranks)
        return fail(ERR_BUG, "channel %d: from rank %d to rank %d of %d", i, spec->from, spec->to,
                    ranks);
    if (spec->from == spec->to)
        return fail(ERR_BUG, "channel %d: from rank %d to itself", i, spec->from);
    if (spec->depth < 1 || spec->bytes % 64 != 0)
        return fail(ERR_BUG, "channel %d: %d messages of %zu bytes", i, spec->depth, spec->bytes);
    return OK;
}

/* Returns ERR_BUG if the ranks pass different lists, or if an entry is invalid (check_spec).
 * Collective. */
static Status check_list(const World *world, const ChannelSpec *spec, int count)
{
    uint64_t mine[2] = {(uint64_t)count, 1}, first[2];
    for (int i = 0; i < count; ++i) {
        uint64_t field[5] = {mine[1], (uint64_t)spec[i].from, (uint64_t)spec[i].to,
                             (uint64_t)spec[i].depth, spec[i].bytes};
        mine[1] = hash_bytes(field, sizeof field);
    }
    first[0] = mine[0];
    first[1] = mine[1];
    world_bcast(world, first, sizeof first, 0);
    if (first[0] != mine[0] || first[1] != mine[1])
        return fail(ERR_BUG, "channels: the list of %d differs from rank 0's", count);
    for (int i = 0; i < count; ++i) TRY(check_spec(&spec[i], i, world->size));
    return OK;
}

static Status check_transport(const World *world, int transport)
{
    if (transport == TRANSPORT_NCCL && !world->nccl_comm && world->size > 1)
        return fail(ERR_CONFIG, "grid.transport: nccl sends messages only between GPUs; use auto");
    return transport == TRANSPORT_SHM ? shm_segments_check_one_node(world) : OK;
}

/* Location of a rank of the channels' world. */
typedef struct Location {
    /* number in the world of the first rank on the same node */
    int node;
    /* the rank's number on its node */
    int rank;
} Location;

static void fill_channel(Channel *channel, const ChannelSpec *spec, const World *world,
                         const Location *location, int transport)
{
    bool other_node = location[spec->from].node != location[spec->to].node;
    bool joined = world->nccl_comm && (transport == TRANSPORT_AUTO || transport == TRANSPORT_NCCL);
    channel->spec = *spec;
    channel->table = joined                                     ? &channel_nccl
                     : other_node || transport == TRANSPORT_MPI ? &channel_mpi
                                                                : &channel_pipe;
    channel->end = world->rank == spec->from ? END_SENDER
                   : world->rank == spec->to ? END_RECEIVER
                                             : END_ELSEWHERE;
}

/* Returns the number of channels before channel i that have the same sender and the same receiver.
 * The number distinguishes their MPI tags. */
static int count_same_ends(const Channel *channel, int i)
{
    int count = 0;
    for (int k = 0; k < i; ++k)
        count += channel[k].spec.from == channel[i].spec.from &&
                 channel[k].spec.to == channel[i].spec.to;
    return count;
}

/* Opens the channels that use MPI. Collective on world. */
static void open_mpi(Channels *c)
{
    bool any = false;
    for (int i = 0; i < c->count; ++i) any = any || c->channel[i].table == &channel_mpi;
    if (any) MPI_CHECK(MPI_Comm_dup(c->world->comm, &c->comm));
    for (int i = 0; i < c->count; ++i)
        if (c->channel[i].table == &channel_mpi && c->channel[i].end != END_ELSEWHERE)
            channel_mpi_open(&c->channel[i], c->comm, count_same_ends(c->channel, i));
}

static Status open_channels(Channels *c, const ChannelSpec *spec, int transport)
{
    const World *world = c->world;
    World node = {.rank = world->node_rank, .size = world->node_size, .one_node = true};
    node.comm = world->node_size > 1 ? world->node : MPI_COMM_NULL;
    Location *location = mem_new((size_t)world->size * sizeof *location);
    int *node_rank = mem_new((size_t)world->size * sizeof *node_rank);
    Location here = {.node = world->rank, .rank = node.rank};
    world_bcast(&node, &here.node, sizeof here.node, 0);
    world_allgather(world, &here, sizeof here, location);
    for (int r = 0; r < world->size; ++r)
        node_rank[r] = location[r].node == location[world->rank].node ? location[r].rank : -1;
    for (int i = 0; i < c->count; ++i)
        fill_channel(&c->channel[i], &spec[i], world, location, transport);
    Status mine = pipes_open(&c->pipes, &node, node_rank, c->channel, c->count);
    Status all = status_agree(world, mine);
    if (all == OK) open_mpi(c);
    for (int i = 0; i < c->count && all == OK; ++i)
        if (c->channel[i].table == &channel_nccl && c->channel[i].end != END_ELSEWHERE)
            channel_nccl_open(&c->channel[i], world->nccl_comm);
    mem_free(&location);
    mem_free(&node_rank);
    return all;
}

static void release(Channels **channels)
{
    Channels *c = *channels;
    for (int i = 0; i < c->count; ++i)
        if (c->channel[i].impl) c->channel[i].table->close(&c->channel[i]);
    pipes_close(&c->pipes);
    if (c->comm != MPI_COMM_NULL) MPI_CHECK(MPI_Comm_free(&c->comm));
    mem_free(&c->channel);
    mem_free(&c->job_rank);
    mem_free(channels);
}

Status channels_new(Channels **channels, const World *world, const ChannelSpec *spec, int count,
                    int transport)
{
    *channels = NULL;
    TRY(status_agree(world, check_list(world, spec, count)));
    TRY(status_agree(world, check_transport(world, transport)));
    Channels *c = mem_new(sizeof *c);
    *c = (Channels){.world = world, .count = count, .comm = MPI_COMM_NULL};
    c->channel = mem_new(((size_t)count + 1) * sizeof *c->channel);
    c->job_rank = world_job_ranks(world);
    Status status = open_channels(c, spec, transport);
    if (status == OK)
        *channels = c;
    else
        release(&c);
    return status;
}

void channels_free(Channels **channels)
{
    if (!*channels) return;
    Channels *c = *channels;
    int64_t mine = 0, all = 0;
    for (int i = 0; i < c->count; ++i) {
        ChannelEnd end = c->channel[i].end;
        if (end != END_ELSEWHERE)
            mine += end == END_SENDER ? c->channel[i].passed : -(int64_t)c->channel[i].passed;
    }
    if (c->world->comm != MPI_COMM_NULL)
        MPI_CHECK(MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, c->world->comm));
    if (all != 0) die("channels: freed with %lld messages in flight", (long long)all);
    release(channels);
}

/* Returns the channel with index `channel`. Dies if this rank is not at its end `end`. */
static Channel *end_of(Channels *c, int channel, ChannelEnd end)
{
    if (channel < 0 || channel >= c->count || c->channel[channel].end != end)
        die("channel %d of %d: this rank is not its %s", channel, c->count,
            end == END_SENDER ? "sender" : "receiver");
    return &c->channel[channel];
}

void *channel_slot(Channels *channels, int channel)
{
    Channel *c = end_of(channels, channel, END_SENDER);
    return c->table->slot(c);
}

void channel_send(Channels *channels, int channel)
{
    Channel *c = end_of(channels, channel, END_SENDER);
    if (!c->table->slot(c)) die("channel %d: sent without a slot", channel);
    c->table->send(c);
}

const void *channel_message(Channels *channels, int channel)
{
    Channel *c = end_of(channels, channel, END_RECEIVER);
    return c->table->message(c);
}

void channel_release(Channels *channels, int channel)
{
    Channel *c = end_of(channels, channel, END_RECEIVER);
    if (!c->table->message(c)) die("channel %d: released without a message", channel);
    c->table->release(c);
}

void channels_progress(Channels *channels)
{
    for (int i = 0; i < channels->count; ++i) {
        Channel *c = &channels->channel[i];
        if (c->impl && c->table->progress) c->table->progress(c);
    }
}

void channel_mark(const Channels *channels, int channel, const char *what)
{
    const Channel *c = &channels->channel[channel];
    bool out = c->end == END_SENDER;
    char doing[BEAT_TEXT];
    snprintf(doing, sizeof doing, "%s%s", out ? "room for " : "", what);
    beat_mark(doing, (BeatMark){.peer = channels->job_rank[out ? c->spec.to : c->spec.from],
                                .chunk = BEAT_NONE,
                                .micro = BEAT_NONE,
                                .number = (uint64_t)c->passed + 1,
                                .waits = true});
}

bool channels_on_device(const Channels *channels)
{
    return channels->count > 0 && channels->channel[0].table == &channel_nccl;
}

void channels_move(Channels *channels, const int *channel, int count)
{
    if (channels_on_device(channels)) channel_nccl_move(channels->channel, channel, count);
}

static void nap(Channels *c, double waited_s)
{
    double longest = c->comm == MPI_COMM_NULL ? NAP_S : MPI_NAP_S;
    double nap_s = waited_s / 8 < longest ? waited_s / 8 : longest;
    if (c->pipes.bell)
        pipes_sleep(&c->pipes, nap_s);
    else
        clock_sleep(nap_s);
}

void channels_wait(Channels *channels, double waited_s)
{
    channels_progress(channels);
    if (waited_s < SPIN_S) return;
    if (waited_s < YIELD_S) {
        sched_yield();
        return;
    }
    nap(channels, waited_s);
    double now = clock_s();
    if (waited_s < CHECK_S || now - channels->checked_s < CHECK_S || !channels->pipes.bell) return;
    channels->checked_s = now;
    shm_segments_abort_if_peer_ended(&channels->pipes.shared, "waiting for a message");
}
