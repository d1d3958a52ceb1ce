/* The ranks of this node, with their marks of progress in memory that all of them map. */
#ifndef WEFT_PARALLEL_NODE_RANKS_H
#define WEFT_PARALLEL_NODE_RANKS_H

#include "rank_state.h"

#include "../shm/shm_segments.h"

typedef struct RankTimes {
    /* times (clock_s) at which the rank was first seen stopped, and first seen dead; 0 while it is
     * not */
    double stopped_s, dead_s;
} RankTimes;

typedef struct NodeRanks {
    /* world of the node's ranks; owned */
    World world;
    /* one segment per rank for its marks; owned; count is 0 if memory cannot be shared or the node
     * has one rank */
    ShmSegments shared;
    /* number of ranks whose state can be read, and index of this rank among them */
    int count, mine;
    /* marks, state and times of each rank, [count]; the arrays are owned */
    Beat **beat;
    RankState *state;
    RankTimes *times;
    /* Time (clock_s) at which this process began to watch, or resumed watching after an
     * interruption. Waiting times are counted only from this time on: before it, this process or
     * the whole job was suspended, or another rank watched. */
    double awake_s;
} NodeRanks;

/* Puts this rank's marks into shared memory. color: the same on the ranks of a node, different on
 * each node. job_rank: this process's number in the job. Returns false with a fail_message if
 * memory cannot be shared; then the watchdog can watch this rank only. node_ranks_init and
 * node_ranks_fini are collective on world. */
bool node_ranks_init(NodeRanks *node, const World *world, int color, int job_rank);
void node_ranks_fini(NodeRanks *node);
/* Index of the rank that watches the node: the first rank that is neither stopped nor dead. Ranks
 * after this one are not considered, because this rank is running. */
int node_ranks_first(const NodeRanks *node);
/* Fills state and times. now_s: by clock_s. */
void node_ranks_look(NodeRanks *node, double now_s);
/* Writes the last marks of all ranks of the node to the file `path`, which it overwrites.
 * ERR_IO. */
Status node_ranks_write(const NodeRanks *node, const char *path);

#endif
