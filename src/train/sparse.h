/* What a trainer does with sparse tables. */
#ifndef WEFT_TRAIN_SPARSE_H
#define WEFT_TRAIN_SPARSE_H

#include "trainer.h"

/* What the configuration may not ask of a model with tables: ERR_CONFIG. Once the graph is there. Not
 * collective. */
Status sparse_check(const Trainer *t);
/* Makes t->tables for the tables of this rank's stage; NULL where it has none. */
void sparse_make(Trainer *t);
/* Micro-batches that the loader has to have out at a time, beside data.prefetch. */
int sparse_held(const Trainer *t, const Plan *plan);
/* The loader's micro-batches, with their bags where there are tables. */
BatchSource sparse_source(Trainer *t);
/* Closes the loader: what is out of it goes back. */
void sparse_close_loader(Trainer *t);
/* Sums of squares of the gradients of all tables, in their order, over all ranks. Collective. */
double sparse_grad_squares(Trainer *t);

#endif
