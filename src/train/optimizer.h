/* The optimizer of a run: rules of parameters, ranges, whole tensors. */
#ifndef WEFT_TRAIN_OPTIMIZER_H
#define WEFT_TRAIN_OPTIMIZER_H

#include "trainer.h"

/* Fills t->rule and t->updates from the configuration's groups and the graph, of the whole model,
 * alike on every rank. ERR_CONFIG where groups and parameters do not fit together. */
Status train_assign_rules(Trainer *t);
/* Makes t->optim for what the plan gives this rank. Not collective; the ranks agree afterwards. */
Status train_make_optimizer(Trainer *t);
void train_free_optimizer(Trainer *t);

#endif
