/* The ranks of this node, each with its marks in memory that all of them share. */
#ifndef WEFT_PARALLEL_NODE_RANKS_H
#define WEFT_PARALLEL_NODE_RANKS_H

#include "rank_state.h"

#include "../shm/shm_segment.h"

typedef struct RankTimes {
    /* clock_s when that was first seen, 0 where it is not so */
    double stopped_s, gone_s;
} RankTimes;

typedef struct NodeRanks {
    World world;
    /* of none where memory cannot be shared */
    ShmSegment shared;
    /* known here; which of them this one is */
    int count, mine;
    /* owned, all: of each */
    Beat **beat;
    RankState *state;
    RankTimes *times;
    /* nothing counts that was before: the process, or the job, was asleep, or another rank
     * looked */
    double awake_s;
} NodeRanks;

/* color: the same on a node's ranks, another on each node. From then on this rank marks in shared
 * memory. Where there is none (false: fail_message), it knows of itself alone. Collective on
 * world, both. */
bool node_ranks_init(NodeRanks *node, const World *world, int color);
void node_ranks_fini(NodeRanks *node);
/* Which rank looks at all the others: the first that is neither stopped nor gone. */
int node_ranks_first(const NodeRanks *node);
/* Fills state and times. */
void node_ranks_look(NodeRanks *node, double now_s);
/* What all of them did last. ERR_IO. */
Status node_ranks_write(const NodeRanks *node, const char *path);

#endif
