/* Checks of grid.transport, and which transport the replicas use. */
#ifndef WEFT_TRAIN_TRANSPORT_H
#define WEFT_TRAIN_TRANSPORT_H

#include "trainer.h"

/* Returns ERR_CONFIG if grid.transport names a transport that cannot be used with this grid and
 * backend. Call it when the grid's shape and the backend are known, before communicators are made.
 * Not collective. */
Status transport_check(const Trainer *trainer);
/* Returns the number of replicas that share one arena of parameters where grid.zero shards them; 1:
 * each replica has its own arena. */
int transport_sharers(const Trainer *trainer);

#endif
