/* The tensors of a trainer's checkpoint, and which parts of them this rank stores where. */
#ifndef WEFT_TRAIN_TENSORS_H
#define WEFT_TRAIN_TENSORS_H

#include "../trainer.h"

/* Parameters and running statistics, then each optimizer slot of the trained ones. A tied parameter
 * is in the file under the name of the one that it is tied to. */
typedef struct Tensors {
    Trainer *trainer;
    /* plan of the trainer's stage, or of a dry run's; borrowed */
    const Plan *plan;
    /* count tensors; all arrays are owned */
    CheckpointTensor *tensor;
    /* slot -1: the value itself */
    int *param, *slot;
    int count;
} Tensors;

/* params_only: without optimizer slots. */
void tensors_init(Tensors *list, const Trainer *t, const Plan *plan, bool params_only);
void tensors_fini(Tensors *list);
/* Returns the parameter of this rank that stores the value of tensor i, itself or one that is tied
 * to it; -1: none. */
int tensors_param(const Tensors *list, int i);
/* Returns true if several replicas store parts of tensor i: sharded optimizer state, or a gathered
 * parameter. */
bool tensors_in_parts(const Tensors *list, int i);
/* Returns true if each rank of the tensor-parallel group has a slice of it. */
bool tensors_sliced(const Tensors *list, int i);
/* Returns true for optimizer state that this configuration does not use, such as SGD's without
 * momentum: zeros in the file, nothing in memory. */
bool tensors_zero(const Tensors *list, int i);
/* Returns the number of floats of tensor i that a replica stores; this stage must have it. */
int64_t tensors_part(const Tensors *list, int i, int dp_rank);
/* Returns the address of tensor i, or of this rank's part of it, in the backend's memory. */
float *tensors_memory(const Tensors *list, int i);
/* Returns the stage that has the node. */
int tensors_stage(const Trainer *t, int node);
/* Size of the largest parameter of this rank's graph, and of the model before it is sliced. */
size_t tensors_largest_bytes(const Trainer *t);
size_t tensors_largest_whole_bytes(const Trainer *t);

#endif
