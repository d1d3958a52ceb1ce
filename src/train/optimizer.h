/* Sets up a run's optimizer: assigns rules to parameters and tables, and creates the optimizer of
 * this rank. */
#ifndef WEFT_TRAIN_OPTIMIZER_H
#define WEFT_TRAIN_OPTIMIZER_H

#include "trainer.h"

/* Fills t->rule, t->table_rule, t->lr_scale and t->updates from the configuration's groups and the
 * whole model's graph, with the same result on every rank. Returns ERR_CONFIG if a group matches no
 * parameter, if a rule does not suit a parameter or this run, or if optim.slim is set and no batch
 * norm is trained. */
Status train_assign_rules(Trainer *t);
/* Creates t->optim for the parameters that the plan gives this rank. Not collective; the caller
 * lets the ranks agree on the Status. */
Status train_make_optimizer(Trainer *t);
/* Frees what train_assign_rules and train_make_optimizer have made. */
void train_free_optimizer(Trainer *t);

#endif
