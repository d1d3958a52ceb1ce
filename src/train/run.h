/* A whole run, as its files know it: run.c makes the steps, run_resume.c finds where they begin,
 * run_save.c saves and keeps, run_time.c knows when it has to stop. */
#ifndef WEFT_TRAIN_RUN_H
#define WEFT_TRAIN_RUN_H

#include "data_watch.h"
#include "hook.h"
#include "job_end.h"
#include "rundir.h"
#include "trainer.h"

/* What a run takes, in seconds by this rank's clock: how long before an end it must stop. */
typedef struct RunTime {
    /* rank 0's */
    JobEnd job;
    /* a step, the slowest of the last ones; the longest save; the longest evaluation, without
     * the save of best.h5; 0: none yet */
    double step_s, save_s, eval_s;
    /* it stops */
    bool over;
} RunTime;

/* What one step gave: its loss, and what of this rank went into it (executor_step_hash). */
typedef struct StepMark {
    uint64_t hash;
    float loss;
} StepMark;
/* What a run knows of bad steps. run_bad.c */
typedef struct RunBad {
    /* steps skipped in turn */
    int in_a_row;
    /* Of train.on_bad: rollback: owned: what the steps after `first` gave, which no checkpoint that
     * may be gone back to is older than */
    StepMark *mark;
    int64_t first, marks, room;
    /* Steps are made again up to this one; 0: none are. Owned: what was bad. */
    int64_t until;
    char *what;
    /* they gave other bits */
    bool differed;
    /* step of the state that was gone back to; -1: none has been */
    int64_t from;
} RunBad;

typedef struct Run {
    Trainer *trainer;
    const Config *config;
    const World *world;
    RunDir dir;
    /* NULL but on rank 0 */
    Observer *observer;
    DataWatch *data;
    RunSummary summary;
    /* owned: what has been read back here; on rank 0 */
    KnownFiles *good;
    /* newest checkpoint; owned; of which step */
    char *last;
    int64_t last_step;
    /* metric of best.h5, as t->best_metric; NaN: there is none */
    double best_saved;
    /* it is one of this run, not another's that this one has begun from (checkpoint.resume=FILE) */
    bool last_own;
    /* and said so */
    bool save_failing, best_failing, prune_failing, sync_failing;
    /* clock at the beginning, at the last checkpoint */
    double start_s, saved_s;
    /* The save under way, owned, NULL: none; where it goes, owned; and of which step it is. */
    TrainSave *save;
    char *saving;
    int64_t saving_step;
    /* Where its stage began. */
    int64_t stage_step;
    /* of best.h5 before it; of another save NaN */
    double best_before;
    bool saving_best;
    /* the next checkpoint is best.h5, too; so is the one under way */
    bool best_with, saving_both;
    /* the next checkpoint is written although there is one of its step */
    bool save_again;
    /* samples/s, smoothed */
    double rate;
    /* of all steps but the first, without evaluations and saves */
    double steady_rows, steady_s;
    /* clock at the last step's end */
    double tick_s;
    /* time at which rank 0 last checked that the run's folder is still its own */
    double held_s;
    /* this process's memory before the trainer was made */
    double base_bytes;
    bool stopped;
    /* On rank 0; NULL: there is none. */
    Hook *hook;
    /* asked for and not yet followed; the same on all ranks */
    Wish wish;
    /* the last step's learning rate; 0: none was made */
    double lr;
    /* a checkpoint is due at this border as somebody has asked for it */
    bool save_wished;
    /* owned: why the run is done before its last step; NULL: it is not */
    char *ended;
    RunTime time;
    RunBad bad;
} Run;

/* What is due after a step; wish: the hook may ask for a save there, before the next one. */
typedef struct RunDue {
    bool evaluation, save, wish;
} RunDue;

/* from a save that failed to the next try */
enum { RETRY_S = 60 };

/* One step and what is due after it; or back to an earlier one (run_judge). Collective; all ranks
 * agree. */
Status run_step(Run *run);
/* Finds where to begin, and loads it. Collective; all ranks agree. */
Status run_resume(Run *run);
/* The newest checkpoint is that one, taken over; NULL: there is none. Where a rank is lost from now
 * on the run goes on from it. */
void run_set_last(Run *run, char *path, int64_t step);
/* Loads what is, or becomes, `last`: what has ended another run is no end of this one. Likewise. */
Status run_load(Run *run, const char *path);
/* Begins to save a checkpoint, and to remove old ones, once the save before it has ended. A failure
 * is said and tried again later; last: it ends here, and as nothing comes after it, its failure is
 * the run's. Collective; all ranks agree. */
Status run_save(Run *run, bool last);
/* Before the step is judged, where a checkpoint is due: the save before it ends, so that its copy
 * is free. Likewise. */
Status run_save_prepare(Run *run);
/* Begins to save best.h5, which reached that metric; with: not before the checkpoint that is due at
 * this border, too, whose file it is where the two are the same. Likewise. */
Status run_save_best(Run *run, double metric, bool with);
/* Between two steps: the save under way goes on where no rank is busy with it. Likewise. */
Status run_save_go_on(Run *run, const StepResult *result);
/* Waits for the save under way. Likewise. */
Status run_save_wait(Run *run);
/* Is the test set evaluated after that step? */
bool run_eval_due(const Run *run, int64_t step);
/* ERR_CONFIG where the configuration goes by evaluations that there are none of. Not collective. */
Status run_evaluations_check(const Run *run);
/* Evaluates, says and writes it. counts: for early stopping and the curve, too. *better: the value,
 * as t->best_metric, where best.h5 is to be of it, else it stays. Where a stop breaks it off the
 * run is stopped, and the next start makes it. Collective; all ranks agree. */
Status run_evaluate(Run *run, bool counts, double *better);
/* Has the run ended before, at its last step or early? Collective; all ranks agree. */
bool run_complete(Run *run);
/* From a run's first line to its last. Not collective, all of run_time. */
void run_time_begin(Run *run);
void run_time_end(Run *run);
/* How long the last one took. */
void run_time_step(Run *run, double seconds);
void run_time_save(Run *run, double seconds);
void run_time_evaluation(Run *run, double seconds);
/* On rank 0, before each step: is it time to stop? It says why, once; false on other ranks. */
bool run_time_over(Run *run);
/* The run is done after this step, and says why. On every rank. */
void run_end_early(Run *run, const char *fmt, ...) BASE_PRINTF(2, 3);
/* From a run's first line to its last, which the hook is told and which waits for it. */
void run_hook_begin(Run *run);
void run_hook_end(Run *run);
/* Is the hook run at that moment? The same on all ranks. */
bool run_hook_wants(const Run *run, HookMoment moment);
/* On rank 0: runs it. Does it ask for something? */
void run_hook_tell(Run *run, HookMoment moment);
bool run_hook_asks(Run *run);
/* Between two steps, collective: all ranks hear what it has asked for, where the step says that
 * there is something. Does what they have heard change anything at this border? */
bool run_hook_hear(Run *run, const StepResult *result);
/* Then, once the step is judged, it is done. What is not followed as the run goes back, or while
 * steps are made again, stays for a later border. Not collective. */
void run_hook_follow(Run *run);
/* Waits for it, hears and follows. Collective. */
void run_hook_wait(Run *run);
/* After a step, with what is known of it and what is due. Stops, says that the
 * step was skipped, or goes back: *back, the trainer stands at an earlier step. Collective; all
 * ranks agree. */
Status run_judge(Run *run, StepResult *result, RunDue due, bool *back);
/* Are steps made again, this border's and some behind it? They must give the same bits. */
bool run_repeats(const Run *run);
void run_bad_begin(Run *run);
void run_bad_end(Run *run);
/* ERR_DATA: adds what to do. */
Status run_bad_advice(Status status);

#endif
