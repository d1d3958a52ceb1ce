/* Groups of ranks of one node that sum in shared memory before they send messages to other nodes,
 * and the progress that each rank publishes to its group.
 *
 * A group is `size` consecutive ranks; size is a power of two, and the first rank is a multiple of
 * it. The sum of a group is therefore a subtree of the tree of all ranks, and the rest of the tree
 * adds the groups' sums. */
#ifndef WEFT_PARALLEL_NODE_GROUP_H
#define WEFT_PARALLEL_NODE_GROUP_H

#include "../shm/shm_segments.h"

#include <stdalign.h>

/* Counters of one rank's progress, which only grow. MARK_FINISHED is written last. A rank that
 * reads it first therefore finds MARK_PUSHED and MARK_GATHERED at least as far advanced. */
typedef enum NodeMark {
    /* number of the last operation (sum, push, all-gather) that the rank has begun */
    MARK_BEGUN,
    /* all operations up to this number are done on the rank */
    MARK_FINISHED,
    /* the rank has added all pushes up to this number; the last one may still spread its sum */
    MARK_PUSHED,
    /* all all-gathers up to this number are done on the rank */
    MARK_GATHERED,
    MARKS
} NodeMark;
typedef struct NodeMarks {
    alignas(64) _Atomic int64_t mark[MARKS];
} NodeMarks;

typedef struct NodeGroup {
    int size, rank;
    /* each rank's arena, [size]; the array is owned */
    float **arena;
    /* each rank's parameters, [size]; the array is owned; NULL before node_group_params */
    float **params;
    /* each rank's marks, [size]; the array is owned */
    NodeMarks **marks;
    /* world of the group; owned; unused for a group of one rank */
    World world;
    /* [0]: segments with the arenas and marks; [1]: segments with the parameters; owned; unused for
     * a group of one rank */
    ShmSegments shared[2];
    /* marks of a group of one rank */
    NodeMarks single_marks;
} NodeGroup;

/* The widest groups that the placement of world's ranks on nodes allows. Collective. */
int node_group_width(const World *world);
/* Makes the groups, with an arena of arena_bytes for each of `width` ranks; for width 1 the caller
 * sets arena[0]. Errors as from shm_segments_init; ranks of different groups may return different
 * Statuses. On an error there is nothing to release. The NodeGroup must stay at its address,
 * because marks[0] may point into it. Collective on world. */
Status node_group_init(NodeGroup *group, const World *world, int width, size_t arena_bytes);
/* Makes memory for `bytes` bytes of parameters of each rank of the group; for width 1 the caller
 * sets params[0]. Call it after node_group_init; errors as there. Collective on the group. */
Status node_group_params(NodeGroup *group, size_t bytes);
/* Collective on the group. */
void node_group_fini(NodeGroup *group);
/* Sets a mark of this rank. A rank that reads the mark sees what this rank wrote before. */
void node_group_mark(NodeGroup *group, NodeMark mark, int64_t value);
/* Minimum of a mark over the group's ranks. */
int64_t node_group_least(const NodeGroup *group, NodeMark mark);

#endif
