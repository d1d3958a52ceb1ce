/* The ranks of this node, whose marks lie in memory that all of them share. */
#ifndef WEFT_PARALLEL_NODE_RANKS_H
#define WEFT_PARALLEL_NODE_RANKS_H

#include "rank_state.h"

#include "../shm/shm_segments.h"

typedef struct RankTimes {
    /* clock_s when the condition was first seen; 0: it does not hold */
    double stopped_s, dead_s;
} RankTimes;

typedef struct NodeRanks {
    World world;
    /* has no segments where memory cannot be shared */
    ShmSegments shared;
    /* number of ranks known here, and the index of this one */
    int count, mine;
    /* for each rank, [count]; the arrays are owned */
    Beat **beat;
    RankState *state;
    RankTimes *times;
    /* Time (clock_s) from which on this process has watched without interruption. Waiting before it
     * does not count, because this process or the whole job was suspended, or because another rank
     * watched. */
    double awake_s;
} NodeRanks;

/* Puts this rank's marks into shared memory. color: the same on the ranks of a node, different on
 * each node. Returns false with a fail_message if memory cannot be shared; the watchdog then knows
 * this rank only. Both are collective on world. */
bool node_ranks_init(NodeRanks *node, const World *world, int color);
void node_ranks_fini(NodeRanks *node);
/* The rank that watches all the others: the first that is neither stopped nor dead. */
int node_ranks_first(const NodeRanks *node);
/* Fills state and times. now_s: by clock_s. */
void node_ranks_look(NodeRanks *node, double now_s);
/* Writes the last marks of all ranks to path. ERR_IO. */
Status node_ranks_write(const NodeRanks *node, const char *path);

#endif
