/* The ranks of this node. Their marks of progress (base/beat.h) are in memory that these ranks
 * share. */
#ifndef WEFT_PARALLEL_NODE_RANKS_H
#define WEFT_PARALLEL_NODE_RANKS_H

#include "rank_state.h"

#include "../shm/shm_segments.h"

typedef struct RankTimes {
    /* time (clock_s) at which the rank was first seen stopped; 0 while it is not stopped */
    double stopped_s;
    /* time (clock_s) at which the rank was first seen dead; 0 while it is not dead */
    double dead_s;
} RankTimes;

typedef struct NodeRanks {
    /* world of the node's ranks; owned */
    World world;
    /* one segment per rank, with the rank's marks; owned; shared.count is 0 if memory cannot be
     * shared, or if the node has one rank */
    ShmSegments shared;
    /* number of ranks whose state can be read */
    int count;
    /* index of this rank among these ranks */
    int mine;
    /* marks of each rank, in shared memory, [count]; the array is owned */
    Beat **beat;
    /* state of each rank at the last check, [count]; owned */
    RankState *state;
    /* times of each rank, [count]; owned */
    RankTimes *times;
    /* Time (clock_s) at which this process began to watch, or began again after an interruption.
     * Durations are counted only from this time on: before it, this process or the complete job was
     * suspended, or another rank watched the node. */
    double awake_s;
} NodeRanks;

/* Puts this rank's marks into shared memory. color: a number that all ranks of a node pass,
 * different on each node. job_rank: number of this process in the job. Returns false and sets
 * fail_message if memory cannot be shared; the watchdog can then watch only this rank.
 * node_ranks_init and node_ranks_fini are collective on world. */
bool node_ranks_init(NodeRanks *node, const World *world, int color, int job_rank);
void node_ranks_fini(NodeRanks *node);
/* Returns the index of the rank that watches the node: the first rank that is neither stopped nor
 * dead. The result is at most node->mine, because this rank is running. */
int node_ranks_first(const NodeRanks *node);
/* Reads the marks and the process of each rank, and fills node->state and node->times. now_s: time
 * by clock_s. */
void node_ranks_update(NodeRanks *node, double now_s);
/* Writes the last marks of each rank of the node to the file `path`, which it overwrites. ERR_IO if
 * the file cannot be written. */
Status node_ranks_write(const NodeRanks *node, const char *path);

#endif
