/* What transport.c says to the rest of the module. */
#ifndef WEFT_TRAIN_TRANSPORT_H
#define WEFT_TRAIN_TRANSPORT_H

#include "trainer.h"

/* A transport that is asked for and cannot serve is ERR_CONFIG. Once the grid's shape and the
 * backend are known, before ranks start. Not collective. */
Status transport_check(const Trainer *trainer);
/* How many ranks have one parameter arena in common, if replicas shard it. */
int transport_sharers(const Trainer *trainer);

#endif
