/* Declarations that the files of a replay of a schedule share: events, the network, the sums of
 * stages. Times are seconds since the begin of the step. */
#ifndef WEFT_MACHINE_REPLAY_H
#define WEFT_MACHINE_REPLAY_H

#include "private.h"

/* ---- events.c ---- */

typedef enum EventKind {
    /* a rank goes on with its tasks */
    EVENT_RANK,
    /* a parcel, or a part of it, has left its sender's node; a parcel has arrived */
    EVENT_LEFT,
    EVENT_ARRIVED
} EventKind;
typedef struct Event {
    double at;
    /* events of the same time happen in the order of their numbers */
    int64_t number;
    EventKind kind;
    /* index of the Runner (EVENT_RANK) or of the Parcel */
    int index;
} Event;
/* A heap of events: none is later than those at twice its index plus 1 and plus 2. */
typedef struct Events {
    /* [capacity]; owned; released with mem_free */
    Event *event;
    int count, capacity;
    /* number of all events that were ever added */
    int64_t added;
} Events;
void events_add(Events *events, double at, EventKind kind, int index);
/* Takes the first event. Returns false if there is none. */
bool events_take(Events *events, Event *first);

/* ---- network.c ---- */

/* Something that is sent from one node to another: a message of the pipeline, or what a rank sends
 * in one round of a sum. */
typedef struct Parcel {
    /* nodes; equal for a sum, of which a node receives as much as it sends */
    int from, to;
    /* size in bytes; seconds from the time at which the last byte has passed both connections to
     * the arrival */
    double bytes, latency_s;
    /* message: the message that arrives (index in Replay.arrived), and the Runner that receives it;
     * message is -1 for a sum, which has the stage instead */
    int64_t message;
    int receiver, stage;
    /* set by the network: seconds of a part; number of parts that have not left; true: the parcel
     * passes no connection, since it stays on its node; index of the next free parcel, -1: none */
    double part_s;
    int parts;
    bool inside;
    int next_free;
} Parcel;
/* The connection of a node. */
typedef struct Connection {
    /* time from which it is free for sending, and for receiving */
    double out_free, in_free;
    /* number of parcels that are on their way to or from the node, and time at which this number
     * last changed */
    int on_way;
    double since;
    /* time until `since` in which any parcel was on its way */
    double busy_s;
} Connection;
/* The connections of nodes. A node sends parcels in the order in which they were begun. A long
 * parcel goes in parts; after each part it waits until the parcels behind it have sent one. A node
 * receives in the order in which parts leave their senders. */
typedef struct Network {
    double s_per_byte;
    /* [nodes]; owned */
    Connection *node;
    /* parcels, owned; their number, which includes free ones, the room for them, and the index of
     * the first free one, -1: none */
    Parcel *parcel;
    int parcels, capacity, first_free;
} Network;
void network_init(Network *network, int nodes, double s_per_byte);
void network_fini(Network *network);
/* Returns the number of parts of a parcel. */
int network_parts(double bytes);
/* Begins to send a parcel. Adds the event of its first part. */
void network_send(Network *network, Events *events, double now, Parcel parcel);
/* Begins to send a parcel inside a node, where it arrives after its latency. */
void network_send_inside(Network *network, Events *events, double now, Parcel parcel);
/* Handles EVENT_LEFT. Adds the event of the next part, or of the arrival. */
void network_left(Network *network, Events *events, double now, int index);
/* Handles EVENT_ARRIVED. Returns the parcel, whose place becomes free. */
Parcel network_arrived(Network *network, double now, int index);
/* Returns the time until now in which a parcel was on its way to or from a node. */
double network_busy_s(const Network *network, double now, int node);

/* ---- stage_sums.c ---- */

/* A sum of a stage between nodes. */
typedef struct StageSum {
    /* number of played ranks whose part is not complete yet */
    int ranks_left;
    /* time in which the ranks of a node add their parts. The messages of the first round are begun
     * without waiting for it, and arrive later by this time. */
    double on_node_s;
    /* rounds of messages, one after the other; bytes that a played rank sends in each, and latency
     * of each */
    int rounds;
    double round_bytes, latency_s;
} StageSum;
/* The sums of a stage between nodes. One follows the other, in the order in which the tasks
 * complete the buckets. */
typedef struct StageSums {
    /* [count]; owned */
    StageSum *sum;
    int count;
    /* first and last node of the played ranks, and largest number of played ranks on a node */
    int first_node, last_node, node_ranks;
    /* number of the sum that is being made or comes next */
    int next;
    /* number of its rounds, and of the parcels of the present round, that are not over */
    int rounds_left, parcels_left;
    /* end of the last sum that is over */
    double end_s;
    /* For each chunk of the stage, the fraction of a pass after which each bucket is complete;
     * [chunks][buckets]; owned. chunks: their number */
    double **part;
    int chunks;
} StageSums;
/* Computes the sums of a stage. ranks: number of the stage's ranks that are played; they are those
 * from rank 0 on. ERR_CONFIG: the machine's file has no time of a sum. */
Status stage_sums_init(StageSums *sums, const Machine *machine, const ForecastOf *of, Level level,
                       int stage, int ranks);
void stage_sums_fini(StageSums *sums);
/* Returns the number of events that playing all sums takes. */
double stage_sums_events(const StageSums *sums);
/* Returns the number of buckets that a task completes for a sum. */
int stage_sums_buckets(const StageSums *sums, const ForecastOf *of, int stage, const Task *task);
/* Notes that a rank has completed its part of sum number `number` of the stage. Begins the sum if
 * this was the last rank. A rank calls it before it sends the gradients that the same task has
 * computed, as in a run. */
void stage_sums_complete(StageSums *sums, Network *network, Events *events, double now, int stage,
                         int number);
/* Notes that a parcel of the stage's sum has arrived. */
void stage_sums_arrived(StageSums *sums, Network *network, Events *events, double now, int stage);

#endif
