/* Memory that all ranks of a node map. */
#ifndef WEFT_PARALLEL_NODE_MEMORY_H
#define WEFT_PARALLEL_NODE_MEMORY_H

#include "parallel/world.h"

/* Memory of one node. It has no name in any file system, so nothing is left of it after a crash. */
typedef struct NodeMemory NodeMemory;
/* Makes zeroed memory of `bytes` bytes on each node of the world; all pages are reserved. The first
 * rank of each node calls init(user, at), at = the memory's address, before any rank returns. what:
 * its purpose, for messages. ERR_CONFIG if the node's free memory is too small; ERR_CONFIG or
 * ERR_MEMORY, with its name, if a system call fails; *memory is then NULL. Collective on world;
 * every rank returns the same Status. */
Status node_memory_new(NodeMemory **memory, const World *world, size_t bytes, const char *what,
                       void (*init)(void *user, void *at), void *user);
/* Not collective: each rank unmaps the memory for itself. */
void node_memory_free(NodeMemory **memory);
/* Returns the address of the memory in this process; a multiple of 4096. */
void *node_memory_at(const NodeMemory *memory);
/* Ends the job if the process of a rank of this node has ended. memory: a NodeMemory. Any thread
 * may call it; meant for one that has waited for another rank for a long time. */
void node_memory_check(void *memory);

#endif
