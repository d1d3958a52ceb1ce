/* Memory in which the ranks of a node share the unpacked chunks of a set of fields. */
#ifndef WEFT_TRAIN_CHUNK_SHARE_H
#define WEFT_TRAIN_CHUNK_SHARE_H

#include "trainer.h"

/* Makes memory for the readers of a set on all ranks, and describes it in *chunks. *memory and
 * chunks->at are NULL if each rank keeps chunks for itself: no node has several ranks,
 * grid.transport is mpi, the set has no such chunks, or the memory could not be made, which is
 * logged. Free *memory with node_memory_free after the readers. Collective. */
void chunk_share_new(NodeMemory **memory, const Trainer *t, const DataSet *set,
                     FieldMemory *chunks);
/* True if the ranks of this node would share the chunks of a set that has any: there are several
 * ranks, and grid.transport is not mpi. */
bool chunk_share_possible(const Trainer *t);
/* Returns this rank's part of the bytes of the memory for the set's chunks: all of them if each
 * rank keeps chunks for itself. */
size_t chunk_share_bytes(const Trainer *t, const DataSet *set);
/* Logs how many chunks the loaders of the steps have unpacked since this start of the run, over all
 * ranks. Collective. */
void chunk_share_report(const Trainer *t);

#endif
