/* A whole run, shared by its files: run.c makes steps, run_resume.c finds where to begin,
 * run_save.c writes checkpoints, run_time.c decides when to stop, run_evaluate.c evaluates,
 * run_bad.c handles bad steps, run_hook.c notifies the hook and carries out its requests. */
#ifndef WEFT_TRAIN_RUN_H
#define WEFT_TRAIN_RUN_H

#include "data_watch.h"
#include "hook.h"
#include "job_end.h"
#include "rundir.h"
#include "../trainer.h"

/* Durations in seconds on this rank, from which the run derives how long before a job's end it must
 * stop. */
typedef struct RunTime {
    /* end of the batch job; on rank 0 only */
    JobEnd job;
    /* the slowest of the last steps; the longest save; the longest evaluation without the save of
     * best.h5; 0: none yet */
    double step_s, save_s, eval_s;
    /* the run must stop */
    bool over;
} RunTime;

/* Result of one step, for comparison: its loss, and the hash of this rank's part
 * (executor_step_hash). */
typedef struct StepMark {
    uint64_t hash;
    float loss;
} StepMark;
/* State of the handling of bad steps. run_bad.c */
typedef struct RunBad {
    /* consecutive skipped steps */
    int in_a_row;
    /* For train.on_bad: rollback: results of the `marks` steps after step `first`, with room for
     * `room`; owned. No checkpoint to which the run may roll back is older than `first`. */
    StepMark *mark;
    int64_t first, marks, room;
    /* Steps up to this one are repeated after a rollback; 0: no repetition. what: description of
     * the fault; owned. */
    int64_t until;
    char *what;
    /* repeated steps gave different bits */
    bool differed;
    /* step of the last state that was rolled back to; -1: none */
    int64_t from;
} RunBad;

typedef struct Run {
    Trainer *trainer;
    const Config *config;
    const World *world;
    RunDir dir;
    /* on rank 0; NULL on other ranks */
    Observer *observer;
    DataWatch *data;
    RunSummary summary;
    /* checkpoints that this process has verified; on rank 0; owned */
    KnownFiles *good;
    /* newest checkpoint (owned; NULL: none) and its step */
    char *last;
    int64_t last_step;
    /* metric of best.h5, in the form of Trainer.best_metric; NaN: there is none */
    double best_saved;
    /* `last` was written by this run, not by another one from which it began
     * (checkpoint.resume=FILE) */
    bool last_by_this_run;
    /* the last attempt failed, which has been logged */
    bool save_failing, best_failing, prune_failing, sync_failing;
    /* clock at the beginning and at the last checkpoint */
    double start_s, saved_s;
    /* The running save (NULL: none), its path and the step that it saves. Both owned. */
    TrainSave *save;
    char *saving;
    int64_t saving_step;
    /* Step at which the save's current stage began. */
    int64_t stage_step;
    /* best_saved before the running save of best.h5; saving_best: the running save is of best.h5
     * alone */
    double best_before;
    bool saving_best;
    /* best_with: the next checkpoint is also best.h5; saving_both: the running one is */
    bool best_with, saving_both;
    /* write the next checkpoint even if there is one of its step */
    bool save_again;
    /* samples/s, smoothed */
    double rate;
    /* rows and seconds of all steps but the first, without evaluations and saves */
    double steady_rows, steady_s;
    /* clock at the end of the last step */
    double tick_s;
    /* time at which rank 0 last checked that the run's folder still belongs to it */
    double folder_checked_s;
    /* this process's memory before the trainer was made */
    double base_bytes;
    bool stopped;
    /* on rank 0; NULL: there is none */
    Hook *hook;
    /* hook's request that has not been carried out yet; the same on all ranks */
    HookRequest request;
    /* learning rate of the last step; 0: no step yet */
    double lr;
    /* the hook's request makes a checkpoint due after this step */
    bool save_requested;
    /* reason why the run ends before its last step; NULL: it does not; owned */
    char *ended;
    RunTime time;
    RunBad bad;
} Run;

/* Work that is due after a step. request: the hook runs and may request a save before the next
 * step. */
typedef struct RunDue {
    bool evaluation, save, request;
} RunDue;

/* seconds from a failed save to the next try */
enum { RETRY_S = 60 };

/* Makes one step and the work that is due after it, or rolls back (run_judge). Collective; all
 * ranks return the same Status. */
Status run_step(Run *run);
/* Chooses where the run begins, and loads it. Collective; all ranks return the same Status. */
Status run_resume(Run *run);
/* Sets the newest checkpoint; takes ownership of path; NULL: there is none. If a rank is lost
 * later, the run can resume from it. */
void run_set_last(Run *run, char *path, int64_t step);
/* Loads `path`, which is or becomes `last`. If it is another run's, its reason to end is dropped.
 * Collective; all ranks return the same Status. */
Status run_load(Run *run, const char *path);
/* Begins to save a checkpoint, after the running save has ended; then old checkpoints are removed.
 * A failure is logged and tried again later. last: waits for the save, and its failure is the
 * run's. Collective; all ranks return the same Status. */
Status run_save(Run *run, bool last);
/* Begins to save best.h5, which reached that metric. with: a checkpoint is due after this step;
 * then best.h5 becomes a second name for it if possible. Collective; all ranks return the same
 * Status. */
Status run_save_best(Run *run, double metric, bool with);
/* Call between two steps: continues the running save if no rank is busy with it. Collective; all
 * ranks return the same Status. */
Status run_save_continue(Run *run, const StepResult *result);
/* Waits for the running save, after which its copy is free. Collective; all ranks return the same
 * Status. */
Status run_save_wait(Run *run);
/* Returns true if the test set is evaluated after that step. */
bool run_eval_due(const Run *run, int64_t step);
/* Returns ERR_CONFIG if the configuration depends on evaluations that cannot be made. Not
 * collective. */
Status run_evaluations_check(const Run *run);
/* Evaluates the test set, logs and writes the result. counts: the learning rate's curve and early
 * stopping use it. Sets *better to the metric if best.h5 must be saved with it, else leaves it. On
 * a stop request the evaluation ends, and the next start repeats it. Collective; all ranks return
 * the same Status. */
Status run_evaluate(Run *run, bool counts, double *better);
/* Returns true if the run had ended before this start, at its last step or early. Collective. */
bool run_complete(Run *run);
/* Begin and end the measurement of time for a run. No function of run_time.c is collective. */
void run_time_begin(Run *run);
void run_time_end(Run *run);
/* Record how long the last one took. */
void run_time_step(Run *run, double seconds);
void run_time_save(Run *run, double seconds);
void run_time_evaluation(Run *run, double seconds);
/* Call on rank 0 before each step: returns true if the run must stop now, and logs why once.
 * Returns false on other ranks. */
bool run_time_over(Run *run);
/* Ends the run after this step, with a reason. Call on every rank. */
void run_end_early(Run *run, const char *fmt, ...) BASE_PRINTF(2, 3);
/* Begin and end the hook's part of a run. The end sends the last event and waits for the hook. */
void run_hook_begin(Run *run);
void run_hook_end(Run *run);
/* Returns true if the hook runs at that event. The same on all ranks. */
bool run_hook_wants(const Run *run, HookEvent event);
/* On rank 0: run_hook_notify runs the hook for an event; run_hook_has_request returns true if it
 * has a request. */
void run_hook_notify(Run *run, HookEvent event);
bool run_hook_has_request(Run *run);
/* Call between two steps: if the step's result says that the hook has a request, broadcasts it.
 * Returns true if the request changes anything after this step. Collective. */
bool run_hook_receive(Run *run, const StepResult *result);
/* Call after the step has been judged: carries the request out. While steps are repeated the
 * request waits. Not collective. */
void run_hook_carry_out(Run *run);
/* Waits for the hook, broadcasts its request and carries it out. Collective. */
void run_hook_wait(Run *run);
/* Judges a step, given its result and the work that is due after it. If it is bad, ends the run,
 * skips the step, or rolls back. *back: the trainer was set to an earlier step. Collective; all
 * ranks return the same Status. */
Status run_judge(Run *run, StepResult *result, RunDue due, bool *back);
/* Returns true while steps are repeated up to a later step than this one. They must give the same
 * bits as before. */
bool run_repeats(const Run *run);
void run_bad_begin(Run *run);
void run_bad_end(Run *run);
/* Adds advice to an ERR_DATA message. */
Status run_bad_advice(Status status);

#endif
