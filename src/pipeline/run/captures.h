/* Captures of a step: work that is the same at every step and does not communicate with other ranks
 * is captured once and replayed (tensor.h, Capture). */
#ifndef WEFT_PIPELINE_CAPTURES_H
#define WEFT_PIPELINE_CAPTURES_H

#include "context.h"

typedef struct CaptureList {
    /* captures in the order in which they run; owned */
    Capture *capture;
    int count;
} CaptureList;

typedef struct Captures {
    const Context *context;
    /* number of tasks of the training list */
    int tasks;
    /* number of places in the input ring */
    int places;
    /* captures of the work that begins with each task, for each place of the ring, [tasks][places];
     * NULL: nothing is captured; owned */
    CaptureList *list;
    /* number of captures in all lists */
    int count;
    /* capture of the update of the running statistics after a full batch */
    Capture statistics;
} Captures;

void captures_init(Captures *captures, const Context *context, int places);
void captures_fini(Captures *captures);
/* Returns capture `number` of the work that begins with task `task` on a micro-batch in this place
 * of the ring. Captures use device memory, so their number is limited. Returns NULL if the limit is
 * reached. */
Capture *capture_at(Captures *captures, int task, int place, int number);

#endif
