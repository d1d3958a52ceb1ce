/* The input ring: micro-batches of data while they are out of the loader, from the first task that
 * needs one to the last. */
#ifndef WEFT_PIPELINE_INPUT_RING_H
#define WEFT_PIPELINE_INPUT_RING_H

#include "slot_memory.h"

/* What all tasks of a step or an evaluation have in common. */
typedef struct RunOf {
    bool training;
    uint64_t step;
    float scale;
    int micros;
} RunOf;

/* A micro-batch of data that is out of the loader. */
typedef struct Input {
    const Batch *batch;
    /* where host memory does not serve: */
    /* owned copies in the backend's memory */
    void *data;
    int32_t *labels;
    float *targets;
    int64_t *sample;
    /* owned: the copies are there; the work that reads them is done */
    Event *copied, *used;
    /* of batch, where it must go back to once it has been copied */
    BatchSource source;
    /* it must */
    bool acquired;
} Input;

typedef struct InputRing {
    const Context *context;
    /* owned, `size` of them; out are micro-batches first .. next-1 */
    Input *input;
    int size, first, next;
    /* place in the ring of the list's micro-batch 0 */
    int base;
    /* owned; brings micro-batches to the device; NULL where host memory serves */
    Stream *copies;
} InputRing;

void input_ring_init(InputRing *ring, const Context *context, int size);
void input_ring_fini(InputRing *ring);
/* a new list begins with micro-batch 0 */
void input_restart(InputRing *ring);
/* Takes micro-batches from the source until number `micro` is there, for what is queued from now
 * on; wait_s as loader_next has it. */
Status input_take(InputRing *ring, const BatchSource *source, int micro, double *wait_s);
/* Those from the oldest on whose last task, last_task[micro], is before task `end` go back. */
void input_return(InputRing *ring, const BatchSource *source, const int *last_task, int end);
/* All go back to their sources. */
void input_settle(InputRing *ring);
const Input *input_of(const InputRing *ring, int micro);
/* in the ring */
int input_slot(const InputRing *ring, int micro);
/* Points the slot's runs to micro-batch `micro`; numbers: the step's, where queued work reads
 * them. */
void input_bind(const InputRing *ring, ChunkRun *chunk, Slot *slot, int micro, const RunOf *of,
                const StepNumbers *numbers);

#endif
