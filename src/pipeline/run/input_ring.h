/* The input ring holds micro-batches of data from the first task that needs one to the last. */
#ifndef WEFT_PIPELINE_INPUT_RING_H
#define WEFT_PIPELINE_INPUT_RING_H

#include "slot_memory.h"

/* Values that are the same for all tasks of a step or an evaluation; see StepBatch. */
typedef struct StepValues {
    bool training;
    uint64_t step;
    float scale;
    int micros;
} StepValues;

/* One place of the ring: a micro-batch of data that is out of the loader. */
typedef struct Input {
    const Batch *batch;
    /* The copies and events are used only if operations cannot read host memory. */
    /* copies in the backend's memory; owned */
    void *data;
    int32_t *labels;
    float *targets;
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
    /* batch has not been released yet */
    bool acquired;
} Input;

typedef struct InputRing {
    const Context *context;
    /* `size` places; micro-batches first .. next-1 of the list are in use; owned */
    Input *input;
    int size, first, next;
    /* place in the ring of the list's micro-batch 0 */
    int base;
    /* stream that copies micro-batches to the device; NULL if operations read host memory; owned */
    Stream *copies;
    /* Weights of targets in the memory of a device, owned, and the array on the host that they
     * were copied from; NULL: the host's memory is used */
    float *weights;
    const float *weights_of;
} InputRing;

void input_ring_init(InputRing *ring, const Context *context, int size);
void input_ring_fini(InputRing *ring);
/* Starts a new list of tasks, whose micro-batches count from 0. */
void input_restart(InputRing *ring);
/* Takes micro-batches from the source up to number `micro`; work that is queued afterwards may read
 * it. wait_s: as in loader_next. */
Status input_take(InputRing *ring, const BatchSource *source, int micro, double *wait_s);
/* Frees the oldest places of the ring, as long as the last task of their micro-batch,
 * last_task[micro], comes before task `end`. Without copies this releases the batch to the
 * source. */
void input_return(InputRing *ring, const BatchSource *source, const int *last_task, int end);
/* Releases all batches to their sources. */
void input_settle(InputRing *ring);
/* Place of micro-batch `micro` of the list. */
const Input *input_of(const InputRing *ring, int micro);
/* Index of the micro-batch's place in the ring. */
int input_slot(const InputRing *ring, int micro);
/* Points the slot's runs to micro-batch `micro`. numbers: the step's numbers in the backend's
 * memory, for queued work. */
void input_bind(const InputRing *ring, ChunkRun *chunk, Slot *slot, int micro,
                const StepValues *values, const StepNumbers *numbers);

#endif
