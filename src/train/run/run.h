/* The state of a whole run, and the functions that its files call of each other: run.c begins and
 * ends it, run_step.c makes steps, run_resume.c chooses where to begin, run_save.c writes
 * checkpoints, run_time.c decides when to stop, run_evaluate.c evaluates, run_bad.c handles bad
 * steps, run_hook.c notifies the hook and carries out its requests, run_refresh.c lets the training
 * set grow. */
#ifndef WEFT_TRAIN_RUN_H
#define WEFT_TRAIN_RUN_H

#include "data_watch.h"
#include "hook.h"
#include "job_end.h"
#include "rundir.h"
#include "../trainer.h"

#include "observe/history.h"

/* Durations on this rank, from which the run computes how long before a job's end it must stop. 0:
 * none yet. */
typedef struct RunTime {
    /* end of the batch job; on rank 0 only */
    JobEnd job;
    /* the slowest of the last steps */
    double step_s;
    /* the longest save */
    double save_s;
    /* the longest evaluation, without the save of best.h5 */
    double eval_s;
    /* the run must stop */
    bool over;
} RunTime;

/* Result of one step, to be compared with that of its repetition. */
typedef struct StepMark {
    /* hash of the gradients that this rank contributes (executor_step_hash) */
    uint64_t hash;
    float loss;
} StepMark;
/* State of the handling of bad steps. run_bad.c */
typedef struct RunBad {
    /* consecutive skipped steps */
    int in_a_row;
    /* For train.on_bad: rollback: results of the `marks` steps after step `first`; owned. No
     * checkpoint to which the run may roll back is older than `first`. */
    StepMark *mark;
    int64_t first, marks;
    /* number of results for which memory is allocated */
    int64_t marks_allocated;
    /* Steps up to this one are repeated after a rollback; 0: no repetition. */
    int64_t repeat_until;
    /* description of the fault that caused the rollback; owned */
    char *fault;
    /* repeated steps gave different bits */
    bool differed;
    /* step to which the last rollback went; -1: there was none */
    int64_t rollback_step;
} RunBad;

typedef struct Run {
    Trainer *trainer;
    const Config *config;
    const World *world;
    RunDir dir;
    /* nodes and ranks of this start, without links; owned */
    Topology topo;
    /* on rank 0; NULL on other ranks */
    Observer *observer;
    DataWatch *data;
    RunSummary summary;
    /* checkpoints that this process has verified; on rank 0; owned */
    KnownFiles *verified;
    /* path of the newest checkpoint; NULL: none; owned */
    char *last;
    /* step of that checkpoint */
    int64_t last_step;
    /* metric of best.h5, in the form of Trainer.best_metric; NaN: there is none */
    double best_saved;
    /* `last` was written by this run, not by another one from which it began
     * (checkpoint.resume=FILE) */
    bool last_by_this_run;
    /* the last attempt to save a checkpoint, save best.h5, remove old checkpoints, or sync metrics
     * failed, which has been logged */
    bool save_failing, best_failing, prune_failing, sync_failing;
    /* clock at the beginning of the run */
    double start_s;
    /* clock at the beginning of the last save of a checkpoint, or of the run */
    double saved_s;
    /* the running save; NULL: none; owned */
    TrainSave *save;
    /* path of the running save; owned */
    char *saving;
    /* step of the running save */
    int64_t saving_step;
    /* step at which the current stage of the running save began */
    int64_t stage_step;
    /* best_saved before the running save of best.h5 */
    double best_before;
    /* the running save writes best.h5 alone */
    bool saving_best;
    /* the running save writes a checkpoint for which best.h5 is a second name */
    bool saving_both;
    /* the next save of a checkpoint will also give it the name best.h5 */
    bool best_in_next;
    /* write the next checkpoint even if there is one of its step */
    bool save_again;
    /* rows/s, smoothed; 0: no step yet */
    double rate;
    /* rows and seconds of all steps but the first, without evaluations and saves */
    double steady_rows, steady_s;
    /* clock from which the next step's time counts: the end of the last step, evaluation or save */
    double tick_s;
    /* clock at the last check of rank 0 that the run's folder still belongs to it */
    double folder_checked_s;
    /* times by phase, and the step, at the beginning of the ledger, the first step of this start */
    struct {
        double phase_s[PHASE_COUNT];
        int64_t step;
    } ledger_from;
    /* end of metrics.jsonl before this start */
    MetricsEnd earlier;
    /* times by phase when this rank last sent its times (run_live_send) */
    double live_from_s[PHASE_COUNT];
    /* seconds by part before the last logged step, the mean over the ranks; all 0: not known */
    double live_s[LEDGER_LINE_COUNT];
    /* this process's memory before the trainer was made */
    double base_bytes;
    /* a stop request ends the run before its last step */
    bool stopped;
    /* on rank 0; NULL: there is none */
    Hook *hook;
    /* hook's request that has not been carried out yet; the same on all ranks */
    HookRequest request;
    /* step after which new files were last looked for (data.refresh); 0: never */
    int64_t refreshed_step;
    /* files that did not join the training set (data.refresh), on rank 0; owned */
    DataLeftOut *left_out;
    /* learning rate of the last step; 0: no step yet */
    double lr;
    /* a request of the hook makes a checkpoint due after this step */
    bool save_requested;
    /* reason why the run ends before its last step; NULL: it does not; owned */
    char *ended;
    RunTime time;
    RunBad bad;
} Run;

/* Work that is due after a step. */
typedef struct RunDue {
    bool evaluation, save;
    /* the run waits for the hook, which may request a save */
    bool hook;
} RunDue;

/* seconds from a failed save to the next try */
enum { RETRY_S = 60 };

/* Makes one step and the work that is due after it, or rolls back (run_check_step). Collective; all
 * ranks return the same Status. */
Status run_step(Run *run);
/* Evaluates after a checkpoint has been loaded: makes an evaluation that failed or was interrupted,
 * and writes the checkpoint again with its result; or prints the result of a run that was complete,
 * and saves best.h5 again if it was lost. Collective; all ranks return the same Status. */
Status run_evaluate_again(Run *run);
/* Checks data.refresh, and lists the files of the training set. Not collective; all ranks return
 * the same Status. */
Status run_refresh_begin(Run *run);
/* At the start of an epoch: takes files that have appeared, if data.refresh says so. Collective;
 * all ranks return the same Status. */
Status run_refresh(Run *run);
/* Chooses where the run begins, and loads it. Collective; all ranks return the same Status. */
Status run_resume(Run *run);
/* Sets the newest checkpoint; takes ownership of path; NULL: there is none. If there is one, a rank
 * that is lost later ends the job with the exit code of a run that can resume. */
void run_set_last(Run *run, char *path, int64_t step);
/* Loads the checkpoint `path`. If another run wrote it, that run's reason to end is dropped.
 * Collective; all ranks return the same Status. */
Status run_load(Run *run, const char *path);
/* Waits for the running save, then begins to save a checkpoint, after which old ones are removed. A
 * failure is logged and tried again later. last: this is the last save of the run: waits for it,
 * and returns its failure. Collective; all ranks return the same Status. */
Status run_save(Run *run, bool last);
/* Begins to save best.h5, which reached that metric. checkpoint_due: a checkpoint is due after this
 * step; then best.h5 becomes a second name for it if possible. Collective; all ranks return the
 * same Status. */
Status run_save_best(Run *run, double metric, bool checkpoint_due);
/* Call between two steps: continues the running save if no rank is busy with it. Collective; all
 * ranks return the same Status. */
Status run_save_continue(Run *run, const StepResult *result);
/* Waits until the running save has ended. Collective; all ranks return the same Status. */
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
/* Start and end the query of the job's end. No function of run_time.c is collective. */
void run_time_init(Run *run);
void run_time_fini(Run *run);
/* Record how long the last step, save or evaluation took. */
void run_time_step(Run *run, double seconds);
void run_time_save(Run *run, double seconds);
void run_time_evaluation(Run *run, double seconds);
/* Begins the ledger at the first step of this start, with a line in ledger.jsonl, and fills
 * summary.ledger on rank 0. The end is collective. */
void run_ledger_begin(Run *run);
/* Fills the ledger's forecast from run.machine, if that is set. Errors as in train_forecast. Not
 * collective. */
Status run_forecast(Run *run);
/* Appends summary.ledger to ledger.jsonl in the run's folder, and fills summary.goodput. A failure
 * is logged. Call on rank 0. */
void run_ledger_write(Run *run);
void run_ledger_end(Run *run);
/* Adds seconds by phase up to the ledger's parts, without the causes of waiting. */
void run_lines_of(const Run *run, const double phase_s[PHASE_COUNT],
                  double line_s[LEDGER_LINE_COUNT]);
/* Call before a step: if it is logged, sends this rank's times since the last call with its sums.
 * Every rank calls it. */
void run_live_send(Run *run);
/* Call after a step: takes the times that have arrived to live_s. */
void run_live_take(Run *run, const StepResult *result);
/* Call on rank 0 before each step: returns true if the run must stop now, and logs why once.
 * Returns false on other ranks. */
bool run_time_over(Run *run);
/* Ends the run after this step, with a reason. Call on every rank. */
void run_end_early(Run *run, const char *fmt, ...) BASE_PRINTF(2, 3);
/* Create the hook, and end it: sends the last event and waits for the hook. */
void run_hook_begin(Run *run);
void run_hook_end(Run *run);
/* Returns true if the hook runs at that event. The same on all ranks. */
bool run_hook_wants(const Run *run, HookEvent event);
/* Runs the hook for an event, if it runs at that event. Does nothing except on rank 0. */
void run_hook_notify(Run *run, HookEvent event);
/* Returns true if the hook has a request; false except on rank 0. */
bool run_hook_has_request(Run *run);
/* Call between two steps: if the step's result says that the hook has a request, broadcasts it.
 * Returns true if the request changes anything after this step. Collective. */
bool run_hook_receive(Run *run, const StepResult *result);
/* Call after the step has been checked: carries the request out. While steps are repeated the
 * request waits. Not collective. */
void run_hook_carry_out(Run *run);
/* Waits for the hook, broadcasts its request and carries it out. Collective. */
void run_hook_wait(Run *run);
/* Checks whether a step is bad, given its result and the work that is due after it. A bad step ends
 * the run, is skipped, or causes a rollback (train.on_bad). *rolled_back: the trainer was set to an
 * earlier step. Collective; all ranks return the same Status. */
Status run_check_step(Run *run, StepResult *result, RunDue due, bool *rolled_back);
/* Returns true while steps are repeated up to a later step than this one. They must give the same
 * bits as before. */
bool run_repeats(const Run *run);
/* Initialise and free the state of the handling of bad steps. */
void run_bad_begin(Run *run);
void run_bad_end(Run *run);
/* Adds advice to an ERR_DATA message. */
Status run_bad_advice(Status status);

#endif
