/* Declarations that the files of the replay share: events, the network, the sums of stages. A
 * replay is the simulation of a schedule on the ranks of several nodes (replay.c). Times are
 * seconds since the beginning of the step. */
#ifndef WEFT_MACHINE_REPLAY_H
#define WEFT_MACHINE_REPLAY_H

#include "private.h"

/* ---- events.c ---- */

typedef enum EventKind {
    /* a rank goes on with its tasks */
    EVENT_RANK,
    /* a parcel, or a part of it, has left its sender's node */
    EVENT_LEFT,
    /* a parcel has arrived */
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
/* A heap of events: event i is not later than events 2i + 1 and 2i + 2. */
typedef struct Events {
    /* events, [capacity]; owned; released with mem_free */
    Event *event;
    int count, capacity;
    /* number of all events that were ever added */
    int64_t added;
} Events;
void events_add(Events *events, double at, EventKind kind, int index);
/* Takes the first event. Returns false if there is none. */
bool events_take(Events *events, Event *first);

/* ---- network.c ---- */

/* Something that is sent from one node to another: a message of the pipeline, or the data that a
 * rank sends in one round of a sum. */
typedef struct Parcel {
    /* sending node */
    int from;
    /* receiving node; the sending node for a sum, of which a node receives as much as it sends */
    int to;
    double bytes;
    /* seconds from the time at which the last byte has passed both connections to the arrival */
    double latency_s;
    /* index in Replay.arrived of the message that arrives; -1: the parcel belongs to a sum */
    int64_t message;
    /* index of the Runner that receives the message */
    int receiver;
    /* stage of the sum */
    int stage;
    /* The next fields are set by the network. */
    /* seconds in which a part passes a connection */
    double part_s;
    /* number of parts that have not left */
    int parts;
    /* true: the parcel passes no connection, since it stays on its node */
    bool inside;
    /* index of the next parcel that is not in use, if this one is not in use; -1: there is none */
    int next_free;
} Parcel;
/* The connection of a node. */
typedef struct Connection {
    /* time from which the connection is free for sending */
    double out_free;
    /* time from which the connection is free for receiving */
    double in_free;
    /* number of parcels that are on their way to or from the node */
    int on_way;
    /* time at which on_way last changed */
    double since;
    /* seconds until `since` in which any parcel was on its way */
    double busy_s;
} Connection;
/* The connections of nodes. A node sends parcels in the order in which they were begun. A long
 * parcel goes in parts; after each part it waits until each parcel behind it has sent one part. A
 * node receives parts in the order in which they leave their senders. */
typedef struct Network {
    double s_per_byte;
    /* connection of each node, [nodes]; owned */
    Connection *node;
    /* parcels, [capacity]; owned */
    Parcel *parcel;
    /* number of parcels, including those that are not in use */
    int parcels;
    int capacity;
    /* index of the first parcel that is not in use; -1: there is none */
    int first_free;
} Network;
void network_init(Network *network, int nodes, double s_per_byte);
void network_fini(Network *network);
/* Returns the number of parts of a parcel of `bytes` bytes. */
int network_parts(double bytes);
/* Begins to send a parcel. Adds the event of its first part. */
void network_send(Network *network, Events *events, double now, Parcel parcel);
/* Begins to send a parcel inside a node, where it arrives after its latency. */
void network_send_inside(Network *network, Events *events, double now, Parcel parcel);
/* Handles EVENT_LEFT. Adds the event of the next part, or of the arrival. */
void network_left(Network *network, Events *events, double now, int index);
/* Handles EVENT_ARRIVED. Returns the parcel, whose place becomes free. */
Parcel network_arrived(Network *network, double now, int index);
/* Returns the seconds until `now` in which a parcel was on its way to or from a node. */
double network_busy_s(const Network *network, double now, int node);

/* ---- stage_sums.c ---- */

/* One sum over the replicas of a stage, which are on several nodes. */
typedef struct StageSum {
    /* number of simulated ranks whose part is not complete yet */
    int ranks_left;
    /* seconds in which the ranks of a node add their parts. In the simulation the messages of the
     * first round begin before the parts are added, and arrive later by this time. */
    double on_node_s;
    /* number of rounds of messages, which follow one another */
    int rounds;
    /* bytes that a simulated rank sends in each round */
    double round_bytes;
    /* latency of each round in seconds */
    double latency_s;
} StageSum;
/* All sums of a stage between nodes. They are made one after the other, in the order in which the
 * tasks complete the buckets. */
typedef struct StageSums {
    /* the sums in this order, [count]; owned */
    StageSum *sum;
    int count;
    /* first node of the simulated ranks */
    int first_node;
    /* last node of the simulated ranks */
    int last_node;
    /* largest number of simulated ranks on a node */
    int node_ranks;
    /* index of the sum that is being made or comes next */
    int next;
    /* number of rounds of this sum that are not over */
    int rounds_left;
    /* number of parcels of the current round that have not arrived */
    int parcels_left;
    /* end of the last sum that is over */
    double end_s;
    /* fraction of a pass after which each bucket is complete, [chunks][buckets]; owned */
    double **part;
    /* number of chunks of the stage */
    int chunks;
} StageSums;
/* Computes the sums of a stage. ranks: number of ranks of the stage that are simulated; these are
 * its first ranks. ERR_CONFIG: the machine's file has no time of a sum. */
Status stage_sums_init(StageSums *sums, const Machine *machine, const ForecastInput *input,
                       Level level, int stage, int ranks);
void stage_sums_fini(StageSums *sums);
/* Returns the number of events that the replay of all sums takes. */
double stage_sums_events(const StageSums *sums);
/* Returns the number of buckets that a task completes for sums between nodes. */
int stage_sums_buckets(const StageSums *sums, const ForecastInput *input, int stage,
                       const Task *task);
/* Notes that a rank has completed its part of sum number `number` of the stage. Begins the sum if
 * this was the last rank and all earlier sums are over. Call it for a rank before the rank sends
 * the gradients that the same task has computed, as in a training run. */
void stage_sums_complete(StageSums *sums, Network *network, Events *events, double now, int stage,
                         int number);
/* Notes that a parcel of the stage's sum has arrived. */
void stage_sums_arrived(StageSums *sums, Network *network, Events *events, double now, int stage);

#endif
