/* The state of a whole run, and functions that the files of the run call in each other:
 *
 *     run.c            begins and ends the run
 *     run_step.c       makes steps
 *     run_resume.c     chooses the checkpoint to begin from
 *     run_save.c       writes checkpoints
 *     run_time.c       decides when to stop
 *     run_evaluate.c   evaluates
 *     run_bad.c        handles bad steps
 *     run_hook.c       notifies the hook and carries out its requests
 *     run_refresh.c    lets the training set grow
 *     run_ledger.c     divides the run's time by activity
 *     run_waits.c      divides waiting by cause
 *     run_live.c       divides the time between two logged steps
 */
#ifndef WEFT_TRAIN_RUN_H
#define WEFT_TRAIN_RUN_H

#include "data_watch.h"
#include "hook.h"
#include "job_end.h"
#include "rundir.h"
#include "../trainer.h"

#include "observe/history.h"

/* The end of the batch job, and durations on this rank in seconds. From these the run computes how
 * long before the job's end it must stop. A duration is 0 if it has not been measured yet. */
typedef struct RunTime {
    /* end of the batch job; on rank 0 only */
    JobEnd job;
    /* the slowest of about the last hundred steps (run_time_step) */
    double step_s;
    /* the longest save */
    double save_s;
    /* the longest evaluation, without the save of best.h5 */
    double eval_s;
    /* true: the run must stop */
    bool over;
} RunTime;

/* Result of one step. It is compared with the result of the same step when the step is repeated. */
typedef struct StepMark {
    /* hash of the first values of each gradient that this rank adds to the sums; 0 on a device
     * (executor_step_hash) */
    uint64_t hash;
    /* StepResult.loss */
    float loss;
} StepMark;
/* State of the handling of bad steps. run_bad.c */
typedef struct RunBad {
    /* consecutive skipped steps */
    int in_a_row;
    /* with train.on_bad: rollback, results of the steps after step `first`, [marks]; owned */
    StepMark *mark;
    /* step before the first result; the run never rolls back to an earlier step */
    int64_t first;
    /* number of results */
    int64_t marks;
    /* number of results for which memory is allocated */
    int64_t marks_allocated;
    /* after a rollback, number of the last step that is repeated; 0: no steps are repeated */
    int64_t repeat_until;
    /* description of the fault that caused the rollback; owned */
    char *fault;
    /* true: a repeated step gave different bits */
    bool differed;
    /* step to which the last rollback went; -1: there was none */
    int64_t rollback_step;
} RunBad;

typedef struct Run {
    /* owned */
    Trainer *trainer;
    /* borrowed */
    const Config *config;
    /* the ranks that train; borrowed */
    const World *world;
    RunDir dir;
    /* nodes and ranks of this start of the run, without times of links; empty if there are more
     * than TOPO_RANKS_MAX ranks; owned */
    Topology topo;
    /* on rank 0; NULL on other ranks; owned */
    Observer *observer;
    /* watches the files of the data; owned */
    DataWatch *data_watch;
    /* results for the summary at the end of the run */
    RunSummary summary;
    /* on rank 0, checkpoints that this process has verified; owned */
    KnownFiles *verified;
    /* path of the run's newest checkpoint; before the run has written one, of the checkpoint from
     * which it began; NULL: there is none; owned */
    char *newest_path;
    /* step of the checkpoint newest_path */
    int64_t newest_step;
    /* metric of best.h5, in the form of Trainer.best_metric; NaN: there is none */
    double best_saved;
    /* true: newest_path was written by this run; false: by another run, from which this one began
     * (checkpoint.resume=FILE) */
    bool newest_by_this_run;
    /* true: the metric of the last evaluation was NaN, which was logged */
    bool metric_undefined;
    /* true: the last save of a checkpoint has failed, which was logged */
    bool save_failing;
    /* true: the last save of best.h5 has failed, which was logged */
    bool best_failing;
    /* true: the last removal of old checkpoints has failed, which was logged */
    bool prune_failing;
    /* true: the last sync of the metrics has failed, which was logged */
    bool sync_failing;
    /* time (clock_s) at which the run began */
    double start_s;
    /* time (clock_s) at which the last save of a checkpoint began, or the run began */
    double saved_s;
    /* the running save; NULL: no save is running; owned */
    TrainSave *save;
    /* path of the file that the running save writes; owned */
    char *saving_path;
    /* step whose state the running save writes */
    int64_t saving_step;
    /* step at which the current stage of the running save began */
    int64_t stage_step;
    /* best_saved before the running save of best.h5 */
    double best_before;
    /* true: the running save writes only best.h5 */
    bool saving_best;
    /* true: the running save writes a checkpoint, and best.h5 as a second name of it */
    bool saving_both;
    /* true: the next save of a checkpoint also gives it the name best.h5 */
    bool best_in_next;
    /* true: the next checkpoint is written even if there is already one of its step */
    bool save_again;
    /* speed of training in samples/s, or tokens/s for tokens, smoothed; 0: no step yet */
    double rate;
    /* number of samples, or of tokens, in all steps except the first */
    double steady_rows;
    /* seconds of all steps except the first, without evaluations and saves */
    double steady_s;
    /* time (clock_s) at which the next step's time begins: the end of the last step, evaluation or
     * save */
    double tick_s;
    /* time (clock_s) of rank 0's last check that the run's folder still belongs to this run */
    double folder_checked_s;
    /* state when the ledger of this start began */
    struct {
        /* seconds by phase */
        double phase_s[PHASE_COUNT];
        /* number of steps done */
        int64_t step;
    } ledger_from;
    /* end of metrics.jsonl before this start */
    MetricsEnd earlier;
    /* seconds by phase when this rank last sent its times (run_live_send) */
    double live_from_s[PHASE_COUNT];
    /* seconds of each part of the ledger between the last two logged steps, as the mean over the
     * ranks; all 0: not known */
    double live_s[LEDGER_LINE_COUNT];
    /* true: a stop request ends the run before its last step */
    bool stopped;
    /* the hook's process, on rank 0; NULL: there is no hook; owned */
    Hook *hook;
    /* hook's request that has not been carried out yet; the same on all ranks */
    HookRequest request;
    /* step after which new files were last looked for (data.refresh); 0: never */
    int64_t refreshed_step;
    /* files that did not join the training set (data.refresh), on rank 0; owned */
    DataLeftOut *left_out;
    /* learning rate of the last step; NaN: no step yet */
    double lr;
    /* true: the hook has requested a checkpoint after this step */
    bool save_requested;
    /* reason for which the run ends before its last step; NULL: it does not end early; owned */
    char *ended;
    RunTime time;
    RunBad bad;
} Run;

/* Work that is due after a step. */
typedef struct RunDue {
    /* true: an evaluation is due */
    bool evaluation;
    /* true: the save of a checkpoint is due */
    bool save;
    /* true: the run must wait for the hook, which may request a save */
    bool hook;
} RunDue;

/* seconds between a failed save and the next attempt */
enum { RETRY_S = 60 };

/* Makes one step and the work that is due after it, or rolls back (run_check_step). Collective; all
 * ranks return the same Status. */
Status run_step(Run *run);
/* Evaluates after a checkpoint has been loaded. If an evaluation is due because it failed or was
 * interrupted, makes it, and writes the checkpoint again with its result. Otherwise prints the
 * result of a run that was complete, and saves best.h5 again if it was lost. Collective; all ranks
 * return the same Status. */
Status run_evaluate_again(Run *run);
/* Returns ERR_CONFIG if data.refresh cannot be used with this configuration. Lists the files of the
 * training set for data.refresh. Not collective; all ranks return the same Status. */
Status run_refresh_begin(Run *run);
/* At the start of an epoch, adds files that have appeared since to the training set, if
 * data.refresh is set. Collective; all ranks return the same Status. */
Status run_refresh(Run *run);
/* Chooses the checkpoint from which the run begins, and loads it. Collective; all ranks return the
 * same Status. */
Status run_resume(Run *run);
/* Sets run->newest_path and run->newest_step. Takes ownership of `path`, which is NULL if there is
 * no checkpoint. If there is one, a later loss of a rank ends the job with the exit code of a run
 * that can resume. */
void run_set_newest(Run *run, char *path, int64_t step);
/* Loads the checkpoint `path`. If another run has written it, ignores the reason for which that run
 * ended. Collective; all ranks return the same Status. */
Status run_load(Run *run, const char *path);
/* Waits for the running save. Then begins to save a checkpoint, if there is none of this step yet
 * or save_again is set. When the file is written, old checkpoints are removed. A failed save is
 * logged and repeated later. last = true: this is the last save of the run; then waits until the
 * save has ended, and returns its error. Also waits if Trainer.saves_in_background is false.
 * Collective; all ranks return the same Status. */
Status run_save(Run *run, bool last);
/* Waits for the running save, and begins to save best.h5 with this metric. checkpoint_due = true: a
 * call of run_save follows for this step; then best.h5 becomes a second name of that checkpoint, if
 * possible. Collective; all ranks return the same Status. */
Status run_save_best(Run *run, double metric, bool checkpoint_due);
/* Continues the running save, if there is one, unless a rank is still busy with it in the
 * background. Call it between two steps. Collective; all ranks return the same Status. */
Status run_save_continue(Run *run, const StepResult *result);
/* Waits until the running save has ended. Collective; all ranks return the same Status. */
Status run_save_wait(Run *run);
/* Returns true if an evaluation is due after step number `step`. Without a test set, run_evaluate
 * then does nothing. */
bool run_eval_due(const Run *run, int64_t step);
/* Returns ERR_CONFIG if the configuration depends on evaluations that cannot be made. Not
 * collective. */
Status run_evaluations_check(const Run *run);
/* Evaluates the test set, and logs and writes the result; does nothing without a test set. counts:
 * true if the learning rate's curve and early stopping use the result. If best.h5 must be saved,
 * sets *better to its metric; otherwise *better does not change. A stop request interrupts the
 * evaluation and sets run->stopped; if the evaluation counts, the next start repeats it.
 * Collective; all ranks return the same Status. */
Status run_evaluate(Run *run, bool counts, double *better);
/* Returns true if the run had ended before this start, at its last step or early; an early end sets
 * run->ended. The same on all ranks; not collective. */
bool run_complete(Run *run);
/* run_time_init begins the queries for the job's end, run_time_fini ends them. No function of
 * run_time.c is collective. */
void run_time_init(Run *run);
void run_time_fini(Run *run);
/* run_time_step, run_time_save and run_time_evaluation record the time that the last step, save or
 * evaluation took. */
void run_time_step(Run *run, double seconds);
void run_time_save(Run *run, double seconds);
void run_time_evaluation(Run *run, double seconds);
/* Begins the ledger before the first step of this start. On rank 0 writes a line to
 * ledger.jsonl. */
void run_ledger_begin(Run *run);
/* Fills the ledger's forecast from the file run.machine, if that is set. Errors as in machine_read
 * and train_forecast. Not collective. */
Status run_forecast(Run *run);
/* Appends summary.ledger to ledger.jsonl in the run's folder and, if the run has had several
 * starts, fills summary.goodput; does nothing if this start made no step. A failure is only logged.
 * Call it on rank 0. */
void run_ledger_write(Run *run);
/* Fills summary.ledger on rank 0 from the times of all ranks, except the forecast. Collective. */
void run_ledger_end(Run *run);
/* Converts seconds by phase to seconds of each part of the ledger. Waiting is not divided by
 * cause. */
void run_lines_of(const Run *run, const double phase_s[PHASE_COUNT],
                  double line_s[LEDGER_LINE_COUNT]);
/* Sends this rank's times with the sums of the next step, if that step will be logged and is not
 * the first after the loader was opened. The times are those since the last call that sent them.
 * Call it on every rank before a step. */
void run_live_send(Run *run);
/* Stores the times that have arrived with a step in run->live_s; sets them to 0 if a logged step
 * has none. Call it after a step. */
void run_live_take(Run *run, const StepResult *result);
/* On rank 0, returns true if the run must stop now, and logs the reason once. On other ranks,
 * returns false. Call it before each step. */
bool run_time_over(Run *run);
/* Makes the run end after this step, with a reason, unless it already ends early. Call it on every
 * rank. */
void run_end_early(Run *run, const char *fmt, ...) BASE_PRINTF(2, 3);
/* run_hook_begin creates the hook. run_hook_end sends the last event and waits until the hook has
 * ended. */
void run_hook_begin(Run *run);
void run_hook_end(Run *run);
/* Returns true if the hook is configured to run at this event. The same on all ranks. */
bool run_hook_wants(const Run *run, HookEvent event);
/* Runs the hook for an event if run_hook_wants it. Does nothing on ranks other than 0. */
void run_hook_notify(Run *run, HookEvent event);
/* Polls the hook. Returns true on rank 0 if the hook has a request; false on other ranks. */
bool run_hook_has_request(Run *run);
/* If the step's result has hook_requested, broadcasts the hook's request. Returns true if the
 * request has an effect after this step. Call it between two steps. Collective. */
bool run_hook_receive(Run *run, const StepResult *result);
/* Carries out the hook's request, or leaves it for later while steps are repeated. Call it after
 * the step has been checked. Not collective. */
void run_hook_carry_out(Run *run);
/* Waits for the hook, broadcasts its request and carries it out. Collective. */
void run_hook_wait(Run *run);
/* Checks whether a step is bad. due: work after the step; if there is any, the trainer's state is
 * checked as well. A bad step ends the run, is skipped, or causes a rollback (train.on_bad).
 * *rolled_back: true if the trainer was set back to an earlier step. Collective; all ranks return
 * the same Status. */
Status run_check_step(Run *run, StepResult *result, RunDue due, bool *rolled_back);
/* Returns true while steps are repeated after a rollback, until the last of them is done. Repeated
 * steps must give the same bits as before. */
bool run_repeats(const Run *run);
/* run_bad_begin initialises the state of the handling of bad steps, run_bad_end frees it. */
void run_bad_begin(Run *run);
void run_bad_end(Run *run);
/* Adds advice for a bad step to the message of the last fail(). Returns status. */
Status run_bad_advice(Status status);

#endif
