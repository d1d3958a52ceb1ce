/* The ranks of one node that sum in shared memory before messages leave it, and what each of them
 * tells the others.
 *
 * A group is `size` ranks that follow each other, a power of two, and begins at a multiple of it:
 * their sum is then a subtree of the tree of all ranks, and the tree of the groups' sums is the
 * rest of it. */
#ifndef WEFT_PARALLEL_NODE_GROUP_H
#define WEFT_PARALLEL_NODE_GROUP_H

#include "../shm/shm_segment.h"

#include <stdalign.h>

/* How far a rank has come. Marks only grow. Whoever has seen that something is finished sees the
 * other marks at least as far: that mark is set last, and read before the two behind it. */
typedef enum NodeMark {
    /* sums, pushes and all-gathers that it has begun */
    MARK_BEGUN,
    /* all of them up to this one are done on this rank, */
    MARK_FINISHED,
    /* and so are all pushes, */
    MARK_PUSHED,
    /* and all all-gathers up to this one */
    MARK_GATHERED,
    MARKS
} NodeMark;
typedef struct NodeMarks {
    alignas(64) _Atomic int64_t mark[MARKS];
} NodeMarks;

typedef struct NodeGroup {
    int size, rank;
    /* owned arrays: each rank's; params NULL before node_group_params */
    float **arena, **params;
    /* owned array: each rank's */
    NodeMarks **marks;
    /* owned: the group, where it has more ranks than one */
    World world;
    /* owned: the arenas with the marks, and the parameters; of several ranks */
    ShmSegment shared[2];
    /* of one */
    NodeMarks own;
} NodeGroup;

/* The widest groups that world's ranks on nodes allow. Collective. */
int node_group_width(const World *world);
/* An arena of so many bytes for each of `width` ranks; where that is 1, arena[0] is the caller's to
 * set. ERR_CONFIG as shm_segment_init, the same on every rank of the group only, and then there is
 * nothing to release. group may not move. Collective on world. */
Status node_group_init(NodeGroup *group, const World *world, int width, size_t arena_bytes);
/* The same for parameters, of a group that has an arena. Collective. */
Status node_group_params(NodeGroup *group, size_t bytes);
/* Collective. */
void node_group_fini(NodeGroup *group);
/* Sets a mark of this rank: what it has written before, others see who see the mark. */
void node_group_mark(NodeGroup *group, NodeMark mark, int64_t value);
/* The least of all ranks' marks. */
int64_t node_group_least(const NodeGroup *group, NodeMark mark);

#endif
