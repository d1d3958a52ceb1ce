/* Memory that all ranks of a node map. */
#ifndef WEFT_PARALLEL_NODE_MEMORY_H
#define WEFT_PARALLEL_NODE_MEMORY_H

#include "parallel/world.h"

/* Memory that all ranks of a node share. It has no name in any file system, so nothing of it
 * remains after a crash. */
typedef struct NodeMemory NodeMemory;
/* Makes zeroed memory of `bytes` bytes on each node of the world; all pages are reserved. Before
 * any rank returns, the first rank of each node calls init(user, at) with the address of the
 * memory. what: purpose of the memory, for messages. ERR_CONFIG: the node's free memory is too
 * small. ERR_CONFIG or ERR_MEMORY: a system call has failed, and the message names it. On error
 * *memory is NULL. Release with node_memory_free. Collective on world; every rank returns the same
 * Status. */
Status node_memory_new(NodeMemory **memory, const World *world, size_t bytes, const char *what,
                       void (*init)(void *user, void *at), void *user);
/* Not collective: each rank unmaps the memory for itself. */
void node_memory_free(NodeMemory **memory);
/* Returns the address of the memory in this process, a multiple of 4096. */
void *node_memory_at(const NodeMemory *memory);
/* Ends the job if the process of a rank of this node has ended. memory: a NodeMemory. Any thread
 * may call it; it is meant for a thread that has waited for another rank for a long time. */
void node_memory_check(void *memory);

#endif
