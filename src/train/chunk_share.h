/* Memory in which the ranks of a node share the unpacked chunks of a set of fields. */
#ifndef WEFT_TRAIN_CHUNK_SHARE_H
#define WEFT_TRAIN_CHUNK_SHARE_H

#include "trainer.h"

/* Makes the memory in which the ranks of each node share the unpacked chunks of `set`, and
 * describes it in *chunks for the set's readers. *memory and chunks->at are NULL if each rank keeps
 * chunks for itself. That is so if no node has several ranks, if grid.transport is mpi, if the set
 * has no chunks to unpack, or if the memory could not be made, which is logged. Free *memory with
 * node_memory_free after the readers. Collective. */
void chunk_share_new(NodeMemory **memory, const Trainer *t, const DataSet *set,
                     FieldMemory *chunks);
/* Returns whether the ranks of this node share the unpacked chunks of a set that has chunks: the
 * node has several ranks, and grid.transport is not mpi. */
bool chunk_share_possible(const Trainer *t);
/* Returns the bytes of unpacked chunks of `set` that count for this rank: the node's memory divided
 * by its number of ranks or, if each rank keeps chunks for itself, this rank's own memory. */
size_t chunk_share_bytes(const Trainer *t, const DataSet *set);
/* Logs the number of chunks that the steps' loaders on all ranks have unpacked since this start of
 * the run. Collective. */
void chunk_share_report(const Trainer *t);

#endif
