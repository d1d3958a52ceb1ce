/* Recorded work of a step: what queues the same work at every step, and deals with no other rank,
 * is recorded once and replayed (tensor.h, Capture). */
#ifndef WEFT_PIPELINE_CAPTURES_H
#define WEFT_PIPELINE_CAPTURES_H

#include "context.h"

typedef struct CaptureList {
    /* owned */
    Capture *capture;
    int count;
} CaptureList;

typedef struct Captures {
    const Context *context;
    /* of the training list; of the input ring */
    int tasks, places;
    /* owned: [task][place in the ring]; NULL: nothing is replayed */
    CaptureList *list;
    /* of all */
    int count;
    /* that moves the running statistics after a whole batch */
    Capture statistics;
} Captures;

void captures_init(Captures *captures, const Context *context, int places);
void captures_fini(Captures *captures);
/* The one that begins the work with task `task` of the micro-batch in this place of the ring, or
 * follows `number` others there. NULL: there are enough, each with memory of the device's. */
Capture *capture_at(Captures *captures, int task, int place, int number);

#endif
