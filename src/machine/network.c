/* The connections between nodes in a replay. A node's connection carries one part after the other
 * in each direction. */
#include "replay.h"

#include <math.h>

/* Bytes of a part. TCP hands at most 64 KiB at a time to a network card, and more only when these
 * have left. PARTS_MAX: parts of a parcel at most, so that a replay of long messages is short. */
static const double PART_BYTES = 65536;
enum { PARTS_MAX = 8 };

void network_init(Network *network, int nodes, double s_per_byte)
{
    *network = (Network){.s_per_byte = s_per_byte, .first_free = -1};
    network->out_free = mem_new((size_t)nodes * sizeof *network->out_free);
    network->in_free = mem_new((size_t)nodes * sizeof *network->in_free);
}

void network_fini(Network *network)
{
    mem_free(&network->out_free);
    mem_free(&network->in_free);
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

/* Lets the next part of a parcel wait for its sender's connection. */
static void send_part(Network *network, Events *events, double now, int index)
{
    const Parcel *parcel = &network->parcel[index];
    double *out_free = &network->out_free[parcel->from];
    *out_free = fmax(now, *out_free) + parcel->part_s;
    events_add(events, *out_free, EVENT_LEFT, index);
}

void network_send(Network *network, Events *events, double now, Parcel parcel)
{
    int index = new_parcel(network);
    parcel.parts = (int)fmin(fmax(ceil(parcel.bytes / PART_BYTES), 1), PARTS_MAX);
    parcel.part_s = parcel.bytes / parcel.parts * network->s_per_byte;
    network->parcel[index] = parcel;
    send_part(network, events, now, index);
}

void network_send_inside(Network *network, Events *events, double now, Parcel parcel)
{
    int index = new_parcel(network);
    network->parcel[index] = parcel;
    events_add(events, now + parcel.latency_s, EVENT_ARRIVED, index);
}

void network_left(Network *network, Events *events, double now, int index)
{
    Parcel *parcel = &network->parcel[index];
    double *in_free = &network->in_free[parcel->to];
    /* a part arrives while it leaves, unless the receiver's connection is in use */
    *in_free = fmax(now, *in_free + parcel->part_s);
    if (--parcel->parts > 0)
        send_part(network, events, now, index);
    else
        events_add(events, *in_free + parcel->latency_s, EVENT_ARRIVED, index);
}

Parcel network_arrived(Network *network, int index)
{
    Parcel parcel = network->parcel[index];
    network->parcel[index].next_free = network->first_free;
    network->first_free = index;
    return parcel;
}
