/* Memory that all ranks of a node share: the segment of the node's first rank. The segments of the
 * other ranks have one page each, for the exit code. */
#include "parallel/node_memory.h"

#include "shm_segments.h"

struct NodeMemory {
    ShmSegments shared;
};

Status node_memory_new(NodeMemory **memory, const World *world, size_t bytes, const char *what,
                       void (*init)(void *user, void *at), void *user)
{
    NodeMemory *m = *memory = mem_new(sizeof *m);
    World node;
    world_node(&node, world);
    Status st = shm_segments_init(&m->shared, &node, node.rank == 0 ? bytes : 0, what);
    const bool made = st == OK;
    if (made && node.rank == 0) init(user, node_memory_at(m));
    world_part_fini(&node);
    st = status_agree(world, st);
    if (st == OK) return OK;
    if (made) shm_segments_fini(&m->shared);
    mem_free(memory);
    return st;
}

void node_memory_free(NodeMemory **memory)
{
    if (!*memory) return;
    shm_segments_fini(&(*memory)->shared);
    mem_free(memory);
}

void *node_memory_at(const NodeMemory *memory)
{
    return memory->shared.segment[0];
}

void node_memory_check(void *memory)
{
    const NodeMemory *m = memory;
    shm_segments_abort_if_peer_ended(&m->shared, "waiting for node memory");
}
