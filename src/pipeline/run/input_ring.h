/* The input ring: keeps each micro-batch of data from the first task that reads it to the last. */
#ifndef WEFT_PIPELINE_INPUT_RING_H
#define WEFT_PIPELINE_INPUT_RING_H

#include "slot_memory.h"

/* Values that are the same for all tasks of a step or an evaluation; see StepBatch. */
typedef struct StepValues {
    bool training;
    uint64_t step;
    float scale;
    int micro_batches;
} StepValues;

/* One place of the ring, for a micro-batch of data that has been acquired from its source. */
typedef struct Input {
    /* borrowed from the source */
    const MicroBatch *batch;
    /* Copies of the batch's arrays in the backend's memory; owned. The copies and the events are
     * used only if operations cannot read host memory. */
    void *data;
    int32_t *labels;
    float *targets;
    /* weights of each sample's targets; NULL if they do not vary */
    float *weights;
    int64_t *sample;
    int32_t *box_start;
    float *box_row;
    int64_t *matches;
    /* recorded when the copies are done; owned */
    Event *copied;
    /* recorded when the work that reads the copies is done; owned */
    Event *used;
    /* source to which batch is released once it has been copied */
    BatchSource source;
    /* true: a copied batch has not been released yet */
    bool acquired;
} Input;

typedef struct InputRing {
    const Context *context;
    /* the places, [size]; owned */
    Input *input;
    int size;
    /* micro-batches first .. next - 1 of the list are in use */
    int first, next;
    /* place in the ring of the list's micro-batch 0 */
    int base;
    /* stream that copies micro-batches to the device; NULL if operations read host memory; owned */
    Stream *copies;
    /* weights of targets that all samples share, in the memory of a device; owned; NULL if
     * operations read host memory */
    float *weights;
    /* array on the host from which `weights` were copied; borrowed */
    const float *weights_of;
} InputRing;

/* size: number of places. */
void input_ring_init(InputRing *ring, const Context *context, int size);
void input_ring_fini(InputRing *ring);
/* Starts a new list of tasks, whose micro-batches count from 0. */
void input_restart(InputRing *ring);
/* Gets micro-batches from the source, up to number `micro`. Work that is queued afterwards may read
 * them. wait_s: as in loader_next. */
Status input_take(InputRing *ring, const BatchSource *source, int micro, double *wait_s);
/* Frees the places of the oldest micro-batches whose last task, last_task[micro], is before task
 * `end`. If batches are not copied, this releases them to the source. */
void input_return(InputRing *ring, const BatchSource *source, const int *last_task, int end);
/* Starts a new list of tasks, and releases all copied batches to their sources. Batches that are
 * not copied have been released by input_return. */
void input_settle(InputRing *ring);
/* Returns the place of micro-batch `micro` of the list. */
const Input *input_of(const InputRing *ring, int micro);
/* Returns the index of the micro-batch's place in the ring. */
int input_place(const InputRing *ring, int micro);
/* Sets the input data and the step's values in the slot's runs for micro-batch `micro`. numbers:
 * the step's numbers in the backend's memory, which queued work reads. */
void input_bind(const InputRing *ring, ChunkRun *chunk, Slot *slot, int micro,
                const StepValues *values, const StepNumbers *numbers);

#endif
