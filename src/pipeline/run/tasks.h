/* A schedule's list of tasks, played on this stage. */
#ifndef WEFT_PIPELINE_TASKS_H
#define WEFT_PIPELINE_TASKS_H

#include "executor.h"

/* A list, and what its tasks work on. */
typedef struct Playing {
    const Schedule *schedule;
    const Moves *moves;
    const int *last_task;
    const BatchSource *source;
    double *wait_s;
    RunOf of;
    /* of an evaluation: see executor_evaluate */
    void (*take)(void *user, const Batch *batch, const float *columns);
    void *user;
} Playing;

/* All of the list's tasks. The source's errors come out here. Collective on the grid. */
Status tasks_play(Executor *e, const Playing *p);

#endif
