/* Runs a schedule's list of tasks on this stage. */
#ifndef WEFT_PIPELINE_TASKS_H
#define WEFT_PIPELINE_TASKS_H

#include "executor.h"

/* Arguments of tasks_run: a list of tasks, and the data and callbacks with which it runs. Pointers
 * are borrowed. */
typedef struct TaskRun {
    const Schedule *schedule;
    /* positions in the list at which messages move between GPUs */
    const Moves *moves;
    /* index of the last task of each micro-batch */
    const int *last_task;
    const BatchSource *source;
    /* gets the seconds waited for data, as in loader_next */
    double *wait_s;
    StepValues values;
    /* called with the results of an evaluation, as in executor_evaluate; NULL: results are not
     * read */
    void (*visit)(void *user, const MicroBatch *batch, const float *results);
    void *user;
} TaskRun;

/* Runs all tasks of the list. Returns the source's errors. Collective on the grid. */
Status tasks_run(Executor *e, const TaskRun *p);

#endif
