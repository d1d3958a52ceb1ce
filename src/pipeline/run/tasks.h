/* Runs a schedule's list of tasks on this stage. */
#ifndef WEFT_PIPELINE_TASKS_H
#define WEFT_PIPELINE_TASKS_H

#include "executor.h"

/* A list of tasks and their arguments. */
typedef struct Playing {
    const Schedule *schedule;
    const Moves *moves;
    const int *last_task;
    const BatchSource *source;
    double *wait_s;
    RunOf of;
    /* for evaluations, see executor_evaluate; NULL: results are not read */
    void (*visit)(void *user, const Batch *batch, const float *columns);
    void *user;
} Playing;

/* Runs all tasks of the list. Returns the source's errors. Collective on the grid. */
Status tasks_play(Executor *e, const Playing *p);

#endif
