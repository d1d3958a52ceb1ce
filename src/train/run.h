/* A whole run, as its files know it: run.c makes the steps, run_resume.c finds where they begin,
 * run_save.c saves and keeps. */
#ifndef WEFT_TRAIN_RUN_H
#define WEFT_TRAIN_RUN_H

#include "rundir.h"
#include "trainer.h"

typedef struct Run {
    Trainer *trainer;
    const Config *config;
    const World *world;
    RunDir dir;
    /* NULL but on rank 0 */
    Observer *observer;
    RunSummary summary;
    /* owned: what has been read back here; on rank 0 */
    GoodFiles *good;
    /* newest checkpoint; owned */
    char *last;
    /* metric of best.h5, as t->best_metric; NaN: there is none */
    double best_saved;
    /* From a checkpoint of its own, and not from the beginning or from another run's; known on rank
     * 0. */
    bool goes_on;
    /* and said so */
    bool save_failing, best_failing, prune_failing, sync_failing;
    /* clock at the beginning, at the last checkpoint */
    double start_s, saved_s;
    /* samples/s, smoothed */
    double rate;
    /* clock at the last step's end */
    double tick_s;
    /* this process's memory before the trainer was made */
    double base_bytes;
    bool stopped;
} Run;

/* from a save that failed to the next try */
enum { RETRY_S = 60 };

/* Finds where to begin, and loads it. Collective; all ranks agree. */
Status run_resume(Run *run);
/* Saves a checkpoint, and removes old ones. A failure is said and tried again later; last: nothing
 * comes after it, so that its failure is the run's. Collective; all ranks agree. */
Status run_save(Run *run, bool last);
/* Saves best.h5, which reached that metric. Likewise. */
Status run_save_best(Run *run, double metric);
/* ERR_DATA: adds what to do where a model has run away. */
Status run_ran_away(Status status, int64_t step);

#endif
