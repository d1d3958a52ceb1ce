/* Groups of ranks of one node: computes their width, makes their shared memory, and writes and
 * reads the marks of progress in it. pieces.c makes the sums inside a group. */
#include "node_group.h"
#include "../world/mpi_check.h"

#include <stdatomic.h>

/* If the ranks of a node are consecutive and begin at rank `first`, its groups may have as many
 * ranks as the largest power of two that divides both `first` and the number of ranks. Otherwise
 * its groups have one rank. All nodes use the smallest width of any node. */
int node_group_width(const World *world)
{
    if (world->comm == MPI_COMM_NULL || world->node == MPI_COMM_NULL) return 1;
    int first = 0, last = 0, width = 0;
    MPI_CHECK(MPI_Allreduce(&world->rank, &first, 1, MPI_INT, MPI_MIN, world->node));
    MPI_CHECK(MPI_Allreduce(&world->rank, &last, 1, MPI_INT, MPI_MAX, world->node));
    int ranks = last - first + 1, both = first | ranks;
    /* the lowest bit that is set in `first` or in `ranks` */
    int mine = ranks == world->node_size ? both & -both : 1;
    MPI_CHECK(MPI_Allreduce(&mine, &width, 1, MPI_INT, MPI_MIN, world->comm));
    return width;
}

static size_t marks_at(size_t arena_bytes)
{
    return (arena_bytes + alignof(NodeMarks) - 1) / alignof(NodeMarks) * alignof(NodeMarks);
}

Status node_group_init(NodeGroup *group, const World *world, int width, size_t arena_bytes)
{
    *group = (NodeGroup){.size = width};
    if (width > 1) {
        TRY(world_split(&group->world, world, world->rank / width));
        group->rank = group->world.rank;
        Status status =
            shm_segments_init(&group->shared[0], &group->world,
                              marks_at(arena_bytes) + sizeof(NodeMarks), "the gradients");
        if (status != OK) {
            world_part_fini(&group->world);
            return status;
        }
    }
    group->arena = mem_new((size_t)width * sizeof *group->arena);
    group->marks = mem_new((size_t)width * sizeof *group->marks);
    group->marks[0] = &group->single_marks;
    for (int r = 0; r < width && width > 1; ++r) {
        char *segment = group->shared[0].segment[r];
        group->arena[r] = (float *)segment;
        group->marks[r] = (NodeMarks *)(segment + marks_at(arena_bytes));
    }
    return OK;
}

Status node_group_params(NodeGroup *group, size_t bytes)
{
    if (group->size > 1)
        TRY(shm_segments_init(&group->shared[1], &group->world, bytes, "the parameters"));
    group->params = mem_new((size_t)group->size * sizeof *group->params);
    for (int r = 0; r < group->size && group->size > 1; ++r)
        group->params[r] = (float *)group->shared[1].segment[r];
    return OK;
}

void node_group_fini(NodeGroup *group)
{
    for (int i = 0; i < 2; ++i)
        if (group->shared[i].count > 0) shm_segments_fini(&group->shared[i]);
    if (group->size > 1) world_part_fini(&group->world);
    mem_free(&group->arena);
    mem_free(&group->params);
    mem_free(&group->marks);
}

void node_group_mark(NodeGroup *group, NodeMark mark, int64_t value)
{
    atomic_store_explicit(&group->marks[group->rank]->mark[mark], value, memory_order_release);
}

int64_t node_group_least(const NodeGroup *group, NodeMark mark)
{
    int64_t least = INT64_MAX;
    for (int r = 0; r < group->size; ++r) {
        int64_t theirs = atomic_load_explicit(&group->marks[r]->mark[mark], memory_order_acquire);
        least = theirs < least ? theirs : least;
    }
    return least;
}
