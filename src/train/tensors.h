/* The tensors of a checkpoint, as a trainer has them: which there are, and what of each lies
 * where on this rank. */
#ifndef WEFT_TRAIN_TENSORS_H
#define WEFT_TRAIN_TENSORS_H

#include "trainer.h"

/* Parameters and running statistics, then each optimizer slot of the trained ones. A tied parameter
 * is in the file as the one it is tied to. */
typedef struct Tensors {
    Trainer *trainer;
    /* borrowed: of the trainer's stage, or of a design's */
    const Plan *plan;
    /* owned, all */
    CheckpointTensor *tensor;
    /* slot -1: the value itself */
    int *param, *slot;
    int count;
} Tensors;

/* params_only: without the optimizer's. */
void tensors_init(Tensors *list, const Trainer *t, const Plan *plan, bool params_only);
void tensors_fini(Tensors *list);
/* The parameter of this rank that has the value of tensor i: itself, or one that is tied to it; -1:
 * none. */
int tensors_param(const Tensors *list, int i);
/* Is tensor i in parts on several replicas: the optimizer's, or a value that is gathered? */
bool tensors_in_parts(const Tensors *list, int i);
/* Has the tensor group a slice of it each? */
bool tensors_sliced(const Tensors *list, int i);
/* State of the rule that this configuration has no use for, as SGD's without momentum: zeros in the
 * file, nothing in memory. */
bool tensors_zero(const Tensors *list, int i);
/* How many numbers of tensor i, which is here, a replica has. */
int64_t tensors_part(const Tensors *list, int i, int dp_rank);
/* Where tensor i lies in the backend's memory, or this rank's part of it. */
float *tensors_memory(const Tensors *list, int i);
/* Which has the node. */
int tensors_stage(const Trainer *t, int node);
/* Of this rank's graph; and of the model before it is divided. */
size_t tensors_largest_bytes(const Trainer *t);
size_t tensors_largest_whole_bytes(const Trainer *t);

#endif
