/* Groups of ranks of one node. The ranks of a group sum in shared memory before they send messages
 * to other nodes, and each rank publishes its progress to its group.
 *
 * A group consists of consecutive ranks. Their number is a power of two, and the first rank's
 * number is a multiple of it. The sum of a group is therefore a subtree of the tree of all ranks,
 * and the rest of the tree adds the sums of the groups. */
#ifndef WEFT_PARALLEL_NODE_GROUP_H
#define WEFT_PARALLEL_NODE_GROUP_H

#include "../shm/shm_segments.h"

#include <stdalign.h>

/* Counters of one rank's progress, which only grow. A rank writes MARK_FINISHED after MARK_PUSHED
 * and MARK_GATHERED. Whoever reads MARK_FINISHED before the other two finds them at least as far
 * advanced. */
typedef enum NodeMark {
    /* number of the last operation (sum, push, all-gather) that the rank has begun */
    MARK_BEGUN,
    /* number up to which all operations are done on the rank */
    MARK_FINISHED,
    /* number up to which the rank has added all pushes; the last push may still spread its sum */
    MARK_PUSHED,
    /* number up to which all all-gathers are done on the rank */
    MARK_GATHERED,
    MARKS
} NodeMark;
typedef struct NodeMarks {
    alignas(64) _Atomic int64_t mark[MARKS];
} NodeMarks;

typedef struct NodeGroup {
    /* number of ranks in the group */
    int size;
    /* number of this rank in the group */
    int rank;
    /* arena of each rank, [size]; the array is owned */
    float **arena;
    /* parameters of each rank, [size]; the array is owned; NULL before node_group_params */
    float **params;
    /* marks of each rank, [size]; the array is owned */
    NodeMarks **marks;
    /* world of the group's ranks; owned; unused for a group of one rank */
    World world;
    /* [0]: segments with the arenas and the marks; [1]: segments with the parameters; owned; unused
     * for a group of one rank */
    ShmSegments shared[2];
    /* marks of this rank if the group has one rank */
    NodeMarks single_marks;
} NodeGroup;

/* Returns the number of ranks in the largest groups that the placement of world's ranks on nodes
 * allows. Collective. */
int node_group_width(const World *world);
/* Makes the groups. width: number of ranks in a group; arena_bytes: bytes of the arena of each
 * rank. With width 1 the caller sets group->arena[0]. Errors as from shm_segments_init; ranks of
 * different groups may return different Statuses. On an error there is nothing to release. The
 * NodeGroup must stay at its address, because marks[0] may point into it. Collective on world. */
Status node_group_init(NodeGroup *group, const World *world, int width, size_t arena_bytes);
/* Makes memory for the parameters of each rank of the group. bytes: bytes of this rank's
 * parameters. With a group of one rank the caller sets group->params[0]. Call it after
 * node_group_init; errors as from shm_segments_init. Collective on the group. */
Status node_group_params(NodeGroup *group, size_t bytes);
/* Collective on the group. */
void node_group_fini(NodeGroup *group);
/* Sets a mark of this rank. A rank that reads the mark sees everything that this rank wrote
 * before. */
void node_group_mark(NodeGroup *group, NodeMark mark, int64_t value);
/* Returns the minimum of a mark over the ranks of the group. */
int64_t node_group_least(const NodeGroup *group, NodeMark mark);

#endif
