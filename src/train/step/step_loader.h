/* The loader from which a trainer's steps read. */
#ifndef WEFT_TRAIN_STEP_LOADER_H
#define WEFT_TRAIN_STEP_LOADER_H

#include "../trainer.h"

/* Returns how micro-batches are dealt to the replicas. With synchronised batch norms replicas take
 * them in turns, even if Plan.deal is another deal. The micro-batches over which a batch norm
 * averages then do not depend on grid.zero. */
Deal step_deal(const Trainer *t);
/* Opens the loader, which must be closed, at the step after t->step. Collective; all ranks return
 * the same Status. */
Status step_loader_open(Trainer *t);
/* Closes the loader if it is open; its micro-batches become invalid. Collective if the model has
 * sparse tables. */
void step_loader_close(Trainer *t);

#endif
