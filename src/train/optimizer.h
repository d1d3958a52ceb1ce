/* Set-up of a run's optimizer: rules of parameters, ranges, whole tensors. */
#ifndef WEFT_TRAIN_OPTIMIZER_H
#define WEFT_TRAIN_OPTIMIZER_H

#include "trainer.h"

/* Fills t->rule, t->table_rule, t->lr_scale and t->updates from the configuration's groups and the
 * whole model's graph, with the same result on every rank. Returns ERR_CONFIG if a group matches no
 * parameter or a rule does not suit one. */
Status train_assign_rules(Trainer *t);
/* Creates t->optim for the parameters that the plan gives this rank. Not collective; the ranks
 * agree afterwards. */
Status train_make_optimizer(Trainer *t);
void train_free_optimizer(Trainer *t);

#endif
