/* The ranks of one node that sum in shared memory before messages leave it, and the progress that
 * each of them publishes to the others.
 *
 * A group is `size` consecutive ranks, a power of two, and begins at a multiple of it. Its sum is
 * therefore a subtree of the tree of all ranks, and the groups' sums are added by the rest of that
 * tree. */
#ifndef WEFT_PARALLEL_NODE_GROUP_H
#define WEFT_PARALLEL_NODE_GROUP_H

#include "../shm/shm_segments.h"

#include <stdalign.h>

/* Counters of one rank's progress, which only grow. A rank that reads MARK_FINISHED, and then the
 * two marks that follow it, finds those at least as far, because MARK_FINISHED is written last. */
typedef enum NodeMark {
    /* sums, pushes and all-gathers that the rank has begun */
    MARK_BEGUN,
    /* all of them up to this one are done on the rank */
    MARK_FINISHED,
    /* all pushes up to this one are done on the rank */
    MARK_PUSHED,
    /* all all-gathers up to this one are done on the rank */
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
    /* world of the group; owned; unused for one rank */
    World world;
    /* [0]: segments with the arenas and marks; [1]: with the parameters; owned; unused for one
     * rank */
    ShmSegments shared[2];
    /* marks of a group of one rank */
    NodeMarks single_marks;
} NodeGroup;

/* The widest groups that the placement of world's ranks on nodes allows. Collective. */
int node_group_width(const World *world);
/* Makes the groups, with an arena of arena_bytes for each of `width` ranks; for width 1 the caller
 * sets arena[0]. Errors as from shm_segments_init; only the ranks of one group are sure to return
 * the same Status. On an error there is nothing to release. group must not move. Collective on
 * world. */
Status node_group_init(NodeGroup *group, const World *world, int width, size_t arena_bytes);
/* Makes the memory of parameters for a group that has its arenas. Collective. */
Status node_group_params(NodeGroup *group, size_t bytes);
/* Collective. */
void node_group_fini(NodeGroup *group);
/* Sets a mark of this rank. A rank that reads the mark sees what this rank wrote before. */
void node_group_mark(NodeGroup *group, NodeMark mark, int64_t value);
/* Minimum of all ranks' marks. */
int64_t node_group_least(const NodeGroup *group, NodeMark mark);

#endif
