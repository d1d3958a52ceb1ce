/* Measures, for weft bench machine, messages and sums between the ranks of a node, and messages
 * between nodes. */
#include "bench.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { MESSAGE_REPEATS = 201, SUM_REPEATS = 41 };

/* Returns the latency and the time per byte of the straight line through two measurements: a
 * message of `small` bytes that took small_s, and one of `large` bytes that took large_s. If the
 * large message did not take longer, because other processes ran, both results are computed from
 * its time alone. */
static Link link_through(double small_s, double large_s, double small, double large)
{
    if (large_s <= small_s) return (Link){.latency_s = large_s, .s_per_byte = large_s / large};
    double s_per_byte = (large_s - small_s) / (large - small);
    return (Link){.latency_s = fmax(small_s - small * s_per_byte, 0), .s_per_byte = s_per_byte};
}

/* Sends a message through channel `to` as a stage does: waits for a free slot of the channel,
 * copies the message into the slot, and sends it. */
static void send_message(Channels *channels, int to, const char *from, size_t bytes)
{
    char *slot;
    for (double begin_s = clock_s(); !(slot = channel_slot(channels, to));) {
        channels_progress(channels);
        channels_wait(channels, clock_s() - begin_s);
    }
    memcpy(slot, from, bytes);
    channel_send(channels, to);
}

/* Waits for a message of channel `from`, copies it to `to`, and frees its slot. */
static void receive_message(Channels *channels, int from, char *to, size_t bytes)
{
    const char *message;
    for (double begin_s = clock_s(); !(message = channel_message(channels, from));) {
        channels_progress(channels);
        channels_wait(channels, clock_s() - begin_s);
    }
    memcpy(to, message, bytes);
    channel_release(channels, from);
}

/* Measures the time from the moment when a sender begins to write a message until its receiver has
 * read all of it: half of the round-trip time between ranks 0 and 1. *seconds: the median over
 * MESSAGE_REPEATS round trips; 0 on other ranks. Collective. */
static Status time_message(const World *world, size_t bytes, double *seconds)
{
    const ChannelSpec spec[] = {{.from = 0, .to = 1, .depth = 2, .bytes = bytes},
                                {.from = 1, .to = 0, .depth = 2, .bytes = bytes}};
    Channels *channels;
    TRY(channels_new(&channels, world, spec, 2, TRANSPORT_AUTO));
    char *from = mem_new(bytes), *to = mem_new(bytes);
    double *time = mem_new(MESSAGE_REPEATS * sizeof *time);
    memset(from, 1, bytes);
    world_barrier(world);
    for (int i = 0; i < MESSAGE_REPEATS && world->rank < 2; ++i) {
        double begin_s = clock_s();
        if (world->rank == 0) send_message(channels, 0, from, bytes);
        receive_message(channels, world->rank == 0 ? 1 : 0, to, bytes);
        if (world->rank == 1) send_message(channels, 1, from, bytes);
        time[i] = (clock_s() - begin_s) / 2;
    }
    *seconds = median(time, MESSAGE_REPEATS);
    world_barrier(world);
    mem_free(&time);
    mem_free(&to);
    mem_free(&from);
    channels_free(&channels);
    return OK;
}

static Status measure_messages(const World *world, Link *link)
{
    enum { SMALL = 4096, LARGE = 1 << 20 };
    double small_s, large_s;
    TRY(time_message(world, SMALL, &small_s));
    TRY(time_message(world, LARGE, &large_s));
    *link = link_through(small_s, large_s, SMALL, LARGE);
    return OK;
}

/* Returns the median time of a sum of `count` floats. Collective; the result is the same on all
 * ranks. */
static double time_sum(const World *world, Comm *comm, int64_t count)
{
    double time[SUM_REPEATS];
    for (int i = 0; i < SUM_REPEATS; ++i) {
        world_barrier(world);
        double begin_s = clock_s();
        comm_allreduce_begin(comm, 0, count);
        comm_wait(comm);
        time[i] = bench_max_ranks(world, clock_s() - begin_s);
    }
    return median(time, SUM_REPEATS);
}

static Status measure_sum(const World *world, Backend *backend, SumTime *sum)
{
    enum { SMALL = 16384, LARGE = 1 << 20 };
    Comm *comm;
    TRY(comm_new(&comm, world, backend, TRANSPORT_AUTO, LARGE));
    double small_s = time_sum(world, comm, SMALL), large_s = time_sum(world, comm, LARGE);
    comm_free(&comm);
    *sum = (SumTime){world->size,
                     link_through(small_s, large_s, SMALL * sizeof(float), LARGE * sizeof(float))};
    return OK;
}

/* Measures messages and sums between the ranks of a node. Collective on node. */
static Status measure_node(const World *node, Backend *backend, Machine *machine)
{
    if (node->size == 1) return OK;
    machine->sum_time = mem_new(sizeof *machine->sum_time);
    machine->sum_count = 1;
    machine->has_message = true;
    TRY(measure_messages(node, &machine->message_link));
    return measure_sum(node, backend, machine->sum_time);
}

/* Measures messages between rank 0 and the lowest rank that is on another node. node: the ranks of
 * this rank's node. Collective. */
static Status measure_network(const World *world, const World *node, Machine *machine)
{
    World pair;
    bool is_on_first_node = world_min(node, world->rank) == 0;
    int other = world_min(world, is_on_first_node ? INT_MAX : world->rank);
    bool is_in_pair = world->rank == 0 || world->rank == other;
    TRY(world_split(&pair, world, is_in_pair ? 0 : 1 + world->rank));
    Status st = is_in_pair ? measure_messages(&pair, &machine->network_link) : OK;
    machine->has_network = st == OK;
    world_part_fini(&pair);
    return status_agree(world, st);
}

Status bench_measure_links(const World *world, Backend *backend, Machine *machine)
{
    World node;
    world_node(&node, world);
    machine->nodes = (int)bench_sum_ranks(world, node.rank == 0);
    machine->ranks = node.size;
    Status st = OK;
    if (machine->nodes * node.size != world->size)
        st = fail(ERR_USAGE, "the nodes have different numbers of ranks: start as many on each");
    st = status_agree(world, st);
    if (st == OK) st = status_agree(world, measure_node(&node, backend, machine));
    if (st == OK && machine->nodes > 1) st = measure_network(world, &node, machine);
    world_part_fini(&node);
    return st;
}
