/* The tensors of a trainer's checkpoint, and their memory on this rank. A tensor may be cut in two
 * ways: grid.zero divides it into shards among the replicas, tensor parallelism into slices among
 * the ranks of a group. */
#ifndef WEFT_TRAIN_TENSORS_H
#define WEFT_TRAIN_TENSORS_H

#include "../trainer.h"

/* Values of Tensors.slot that are not slots of the optimizer. TENSOR_VALUE: the parameter's value.
 * TENSOR_AVERAGE: its average (train.ema). */
enum { TENSOR_VALUE = -1, TENSOR_AVERAGE = OPTIM_SLOTS };

/* The list of tensors: parameters and running statistics, then each optimizer slot of the trained
 * parameters, then with train.ema the averages of all parameters and running statistics that are
 * not frozen. A tied parameter is stored under the name of the parameter to which it is tied. */
typedef struct Tensors {
    /* borrowed */
    Trainer *trainer;
    /* plan of the trainer's stage, or of a dry run's; borrowed */
    const Plan *plan;
    /* the tensors, [count]; owned */
    CheckpointTensor *tensor;
    /* for each tensor, index of its parameter in the graph; owned */
    int *param;
    /* for each tensor, its optimizer slot, TENSOR_VALUE or TENSOR_AVERAGE; owned */
    int *slot;
    /* number of tensors */
    int count;
} Tensors;

/* Makes the list. params_only = true: leaves out optimizer slots and averages. Release with
 * tensors_fini. */
void tensors_init(Tensors *list, const Trainer *t, const Plan *plan, bool params_only);
void tensors_fini(Tensors *list);
/* Returns the path in checkpoints of a parameter's value, optimizer slot or average. slot: as in
 * Tensors.slot. Owner: the caller. */
char *tensor_path(const Trainer *t, int param, int slot);
/* Returns the index of the optimizer's piece of a parameter. The parameter must be trained, or be a
 * running statistic that has an average. */
int tensor_piece(const Trainer *t, int param);
/* Returns the parameter in which this rank stores tensor i: the tensor's parameter, or one that is
 * tied to it; -1: this rank does not store the tensor. */
int tensors_param(const Tensors *list, int i);
/* Returns true if each replica stores only a shard of tensor i. With grid.zero this is so for
 * optimizer state and averages, and, if replicas gather values (grid.zero 3 without shared memory),
 * for values that are not frozen. */
bool tensors_sharded(const Tensors *list, int i);
/* Returns true if each rank of the tensor-parallel group stores only a slice of tensor i. */
bool tensors_sliced(const Tensors *list, int i);
/* Returns true for optimizer state that this configuration does not use, for example that of SGD
 * without momentum. It is stored as zeros in the file and has no memory. */
bool tensors_unused(const Tensors *list, int i);
/* Returns the number of floats that replica dp_rank stores of tensor i or of a slice of it. The
 * tensor must belong to the stage of list->plan. */
int64_t tensors_replica_floats(const Tensors *list, int i, int dp_rank);
/* Returns the address of tensor i, or of this rank's shard or slice, in the backend's memory. */
float *tensors_memory(const Tensors *list, int i);
/* Returns the pipeline stage to which the node belongs. */
int tensors_stage(const Trainer *t, int node);
/* Returns the bytes of the largest parameter in this rank's graph, in stored form. */
size_t tensors_largest_bytes(const Trainer *t);
/* Returns the bytes, in plain order, of the largest parameter of the model before it is sliced. */
size_t tensors_largest_whole_bytes(const Trainer *t);

#endif
