/* observe: what a person sees and what stays behind: the progress line, metrics.jsonl, TensorBoard
 * events, traces. Rank 0 owns an Observer; other ranks pass NULL, and every function accepts NULL.
 * Not collective. */
#ifndef WEFT_OBSERVE_H
#define WEFT_OBSERVE_H

#include "base.h"

typedef struct Observer Observer;
typedef struct TrainLine {
    /* step: done so far; epochs 0 where only steps are set */
    int64_t step, steps, epoch, epochs;
    /* top1, top5 of the training batch; NaN: not known */
    double loss, lr, samples_per_s, grad_norm, top1, top5;
    /* time left; NaN: not known */
    double left_s;
    /* of all steps so far, those without an update */
    int64_t skipped;
    /* samples_per_s and shares are of tokens; of logits, so that top1 is the accuracy */
    bool tokens, logits;
} TrainLine;
typedef struct EvalLine {
    int64_t step, epoch, samples;
    /* top1, top5: shares, NaN for regression */
    double loss, top1, top5, seconds;
    /* how auc comes about: "exact", "buckets" (train.auc); NULL: not of logits, there are none of
     * the three */
    const char *auc_kind;
    /* as BinaryFigures; NaN: not defined */
    double auc, normalized_entropy, calibration;
    /* samples, loss and shares are of tokens */
    bool tokens;
} EvalLine;
/* Something that a run has decided after a step. */
typedef struct EventLine {
    int64_t step, epoch;
    /* "hook", "early_stop"; why: in words, NULL: it goes without saying */
    const char *event, *why;
    bool stop, save;
    /* from now on; 0: as before */
    double lr;
} EventLine;
/* The three figures of logits and what auc is, as four keys; none where there are no logits. */
void eval_put_logits(const EvalLine *line, Json *json);
/* "tokens" or "samples" */
const char *rows_name(bool tokens);

/* dir: the run's folder, must exist. Appends to dir/metrics.jsonl: where the run goes on, after
 * cutting the lines of steps > step, else to a new file, and an earlier one is kept as
 * metrics.jsonl.1 (.2, ...). Starts a new events.out.tfevents file there. lease: borrowed, the
 * folder's, asked before a file is opened again; NULL: nobody else writes there. Owner: the
 * caller. */
Status observer_new(Observer **observer, const char *dir, const Lease *lease, int64_t step,
                    bool goes_on);
void observer_free(Observer **observer);
/* A terminal: one line, rewritten at most ten times a second. Otherwise plain lines, one each time
 * log_now is set. A line of metrics and events each time log_now is set. */
void observer_train(Observer *observer, const TrainLine *line, bool log_now);
void observer_eval(Observer *observer, const EvalLine *line);
/* A line of metrics. */
void observer_event(Observer *observer, const EventLine *line);
/* Ends the progress line so that other text can follow. */
void observer_break(Observer *observer);
/* Writes what waits in memory, because a write before it failed, and looks for files that were
 * removed, replaced or cut short, which it reports. The functions above do it, too, once a second
 * and at evaluations, and warn once where it fails. ERR_IO, and nothing is lost. */
Status observer_flush(Observer *observer);
/* What has been flushed, to the disk; by any thread. */
Status observer_sync(Observer *observer);

/* dir/log.txt takes all that this process says from now on, and what log_copy_begin has kept,
 * behind a line that says when the start was, and after which step it begins. At most 16 MB; then
 * log.txt.1 is the older part. A file that is removed or renamed meanwhile is written again. lease:
 * as in observer_new, borrowed until log_file_pin. ERR_IO: it cannot be opened. One at a time;
 * open until the next one, or log_file_close. */
Status log_file_open(const char *dir, const Lease *lease, int64_t step);
/* From now on the file that is open is written to, whatever becomes of its name. */
void log_file_pin(void);
void log_file_close(void);
/* Warns, once each, of what happened to the file since the last call: removed, replaced, cut short,
 * or it cannot be written. */
void log_file_report(void);

typedef struct RunSummary {
    /* best: path of best.h5 or NULL */
    const char *dir, *best;
    /* path of the last checkpoint or NULL */
    const char *last;
    /* samples_per_s: over all steps but the first, without evaluations and saves */
    double seconds, samples_per_s;
    /* that is of tokens */
    bool tokens;
    /* samples 0: none */
    EvalLine eval;
    /* Of the rank that uses most: what the plan says, how much it grew since just before the plan
     * was made, and the most that the process ever had, libraries included. measured_bytes 0: not
     * known. */
    double planned_bytes, measured_bytes, peak_bytes;
    int memory_rank;
    /* fresh: by run.fresh, which would begin anew once more */
    bool stopped, fresh;
    /* why it ended before its last step, and is done all the same; NULL: it did not */
    const char *ended;
} RunSummary;
/* accuracy, time per phase, where the files are */
void observer_summary(const RunSummary *summary, FILE *out);

#endif
