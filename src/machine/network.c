/* Simulates the connections between nodes in a replay. A node's connection carries one part after
 * the other in each direction. */
#include "replay.h"

#include <math.h>

/* Bytes of a part. TCP gives a network card at most 64 KiB at a time, and gives it more only when
 * these have left. */
static const double PART_BYTES = 65536;
/* largest number of parts of a parcel; the limit keeps replays of long messages short */
enum { PARTS_MAX = 8 };

void network_init(Network *network, int nodes, double s_per_byte)
{
    *network = (Network){.s_per_byte = s_per_byte, .first_free = -1};
    network->node = mem_new((size_t)nodes * sizeof *network->node);
}

void network_fini(Network *network)
{
    mem_free(&network->node);
    mem_free(&network->parcel);
}

/* Returns the index of a parcel that is not in use. */
static int new_parcel(Network *network)
{
    int index = network->first_free;
    if (index >= 0) {
        network->first_free = network->parcel[index].next_free;
        return index;
    }
    if (network->parcels == network->capacity) {
        network->capacity = network->capacity ? 2 * network->capacity : 64;
        network->parcel =
            mem_resize(network->parcel, (size_t)network->capacity * sizeof *network->parcel);
    }
    return network->parcels++;
}

double network_busy_s(const Network *network, double now, int node)
{
    const Connection *c = &network->node[node];
    return c->busy_s + (c->on_way > 0 ? now - c->since : 0);
}

static void count_at(Network *network, double now, int node, int change)
{
    Connection *c = &network->node[node];
    c->busy_s = network_busy_s(network, now, node);
    c->since = now;
    c->on_way += change;
}

/* Adds `change` to the numbers of parcels that are on their way to or from the parcel's two
 * nodes. */
static void count_parcel(Network *network, double now, const Parcel *parcel, int change)
{
    count_at(network, now, parcel->from, change);
    if (parcel->to != parcel->from) count_at(network, now, parcel->to, change);
}

/* Lets the next part of a parcel wait for its sender's connection. */
static void send_part(Network *network, Events *events, double now, int index)
{
    const Parcel *parcel = &network->parcel[index];
    double *out_free = &network->node[parcel->from].out_free;
    *out_free = fmax(now, *out_free) + parcel->part_s;
    events_add(events, *out_free, EVENT_LEFT, index);
}

int network_parts(double bytes)
{
    return (int)fmin(fmax(ceil(bytes / PART_BYTES), 1), PARTS_MAX);
}

void network_send(Network *network, Events *events, double now, Parcel parcel)
{
    int index = new_parcel(network);
    parcel.parts = network_parts(parcel.bytes);
    parcel.part_s = parcel.bytes / parcel.parts * network->s_per_byte;
    network->parcel[index] = parcel;
    count_parcel(network, now, &parcel, 1);
    send_part(network, events, now, index);
}

void network_send_inside(Network *network, Events *events, double now, Parcel parcel)
{
    int index = new_parcel(network);
    parcel.inside = true;
    network->parcel[index] = parcel;
    events_add(events, now + parcel.latency_s, EVENT_ARRIVED, index);
}

void network_left(Network *network, Events *events, double now, int index)
{
    Parcel *parcel = &network->parcel[index];
    double *in_free = &network->node[parcel->to].in_free;
    /* a part arrives while it leaves, unless the receiver's connection is in use */
    *in_free = fmax(now, *in_free + parcel->part_s);
    if (--parcel->parts > 0)
        send_part(network, events, now, index);
    else
        events_add(events, *in_free + parcel->latency_s, EVENT_ARRIVED, index);
}

Parcel network_arrived(Network *network, double now, int index)
{
    Parcel parcel = network->parcel[index];
    if (!parcel.inside) count_parcel(network, now, &parcel, -1);
    network->parcel[index].next_free = network->first_free;
    network->first_free = index;
    return parcel;
}
