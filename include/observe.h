/* observe: writes the reports of a run: the progress line, metrics.jsonl, TensorBoard events,
 * log.txt, the final summary. Rank 0 owns an Observer; other ranks pass NULL, which every function
 * accepts. Not collective. */
#ifndef WEFT_OBSERVE_H
#define WEFT_OBSERVE_H

#include "detect.h"
#include "observe/field_metrics.h"
#include "observe/history.h"
#include "observe/label_metrics.h"

typedef struct Observer Observer;
/* The parts that add up to a detector's loss. */
typedef enum LossPart { LOSS_PART_BOX, LOSS_PART_OBJECT, LOSS_PART_CLASS, LOSS_PARTS } LossPart;
/* Returns "box_loss". Static. */
const char *loss_part_name(LossPart part);
typedef struct TrainLine {
    /* number of completed steps, and of all steps of the run */
    int64_t step, steps;
    /* number of the current epoch, and of all epochs of the run (0: the configuration sets the
     * number of steps instead) */
    int64_t epoch, epochs;
    double loss, lr, samples_per_s, grad_norm;
    /* true: train.grad_noise is on, and the next three fields are set: squared norm of the
     * gradient, trace of its covariance, and gradient noise scale in samples (NaN: the noise hides
     * the gradient) */
    bool grad_noise;
    double grad_square, grad_variance, noise_scale;
    /* fractions of the training batch; NaN: not known */
    double top1, top5;
    /* estimated time left in seconds; NaN: not known */
    double left_s;
    /* number of steps so far that made no update */
    int64_t skipped;
    /* true: samples_per_s, top1 and top5 count tokens */
    bool tokens;
    /* true: the model has one logit, and top1 is the accuracy */
    bool has_one_logit;
    /* true: the model finds boxes, and `part` is set: the parts of the loss */
    bool boxes;
    double part[LOSS_PARTS];
    /* seconds of each part of the time between the last two logged steps, the mean over the ranks;
     * all 0: not known. During a run, waiting is not divided by its cause: bubble and imbalance are
     * 0. */
    double time_s[LEDGER_LINE_COUNT];
} TrainLine;
/* A picture for TensorBoard. */
typedef struct EvalPicture {
    /* text of at most 199 bytes */
    char tag[200];
    int width, height;
    /* bytes of a PNG file; owned */
    uint8_t *png;
    size_t bytes;
} EvalPicture;
typedef struct EvalLine {
    int64_t step, epoch, samples;
    double loss, seconds;
    /* fractions of the samples; NaN for regression */
    double top1, top5;
    /* method of the AUC, "exact" or "buckets" (train.auc); NULL: the model has no single logit, and
     * the next three are not set */
    const char *auc_kind;
    /* see BinaryFigures; NaN: not defined */
    double auc, normalized_entropy, calibration;
    /* true: the model finds boxes, and the next two fields are set: COCO's twelve numbers (-1: not
     * defined), and the parts of the loss */
    bool boxes;
    double coco[COCO_NUMBERS], part[LOSS_PARTS];
    /* metrics of fields; NULL: the data set has no fields. Borrowed from the trainer until its next
     * evaluation, like the next two pointers */
    const FieldMetrics *fields;
    /* metrics of label fields; NULL: the data set has none */
    const LabelMetrics *labels;
    /* pictures of predicted fields, [pictures]; on rank 0 only */
    const EvalPicture *picture;
    int pictures;
    /* true: samples, loss, top1 and top5 count tokens */
    bool tokens;
} EvalLine;
/* A decision to stop, to save or to change the rate, made after a step by the run's hook or by
 * early stopping. */
typedef struct DecisionLine {
    int64_t step, epoch;
    /* "hook" or "early_stop" */
    const char *event;
    /* reason in words; NULL: none is given */
    const char *why;
    /* stop: true if the run ends after this step; save: true if a checkpoint is saved */
    bool stop, save;
    /* learning rate from this step on; 0: unchanged */
    double lr;
} DecisionLine;
/* Writes the metrics that the evaluation has, as keys of an open JSON object. One logit: four keys
 * (AUC, its method, normalized entropy, calibration). Boxes: COCO's twelve numbers and the parts of
 * the loss. Fields: three keys and a list of targets. Label fields: three keys and a list of
 * classes. */
void eval_put_metrics(const EvalLine *line, Json *json);
/* Returns "tokens" or "samples". */
const char *row_unit(bool tokens);

/* Opens the files of a run's folder `dir`, which must exist. If the run is resumed, the call
 * removes torn lines of dir/metrics.jsonl and those with steps > step. If it is not, the call
 * renames an existing metrics.jsonl to metrics.jsonl.1 (.2, ...). A new events.out.tfevents file is
 * always started. lease: the folder's lease (base/lease.h), borrowed, checked before a file is
 * opened again; NULL if no other process writes in the folder. The caller owns *observer. ERR_IO: a
 * file cannot be read or written. */
Status observer_new(Observer **observer, const char *dir, const Lease *lease, int64_t step,
                    bool resumed);
void observer_free(Observer **observer);
/* Reports a training step. On a terminal it rewrites one line, at most ten times a second. If
 * stdout is not a terminal, it prints a line if log_now is set. If log_now is set, it also writes a
 * line of log.txt, of metrics.jsonl and of events. */
void observer_train(Observer *observer, const TrainLine *line, bool log_now);
void observer_eval(Observer *observer, const EvalLine *line);
/* Writes a decision as a line of metrics.jsonl. TensorBoard's events have no decisions. */
void observer_decision(Observer *observer, const DecisionLine *line);
/* Ends the progress line so that other text can follow. */
void observer_end_line(Observer *observer);
/* Writes the data that an earlier failed write has left in memory, and reports files that were
 * removed, replaced or cut short. observer_train does the same with log_now, but at most once a
 * second; observer_eval and observer_decision do it at each call. These three functions warn once
 * when writing begins to fail, and report when it works again. ERR_IO: a file cannot be written;
 * its data stays in memory. */
Status observer_flush(Observer *observer);
/* Waits until the data written so far is on the disk (fsync). Any thread may call it. */
Status observer_sync(Observer *observer);

/* Opens dir/log.txt and writes a line with the time and the step of this start. The file then gets
 * a copy of the messages kept since log_copy_begin, and of all later messages of this process. At
 * 16 MiB it is renamed to log.txt.1. A file that is removed or renamed meanwhile is written again.
 * lease: as in observer_new, borrowed until log_file_pin. ERR_IO: the file cannot be opened. Only
 * one log file is open at a time: the next call closes it. */
Status log_file_open(const char *dir, const Lease *lease, int64_t step);
/* Makes later messages go to the open file even if its name is removed or leads to another file. */
void log_file_pin(void);
/* Warns, once each, about what happened to the file since the last call: removed, replaced, cut
 * short, or impossible to write. */
void log_file_warn_of_changes(void);

typedef struct RunSummary {
    /* the run's folder */
    const char *dir;
    /* path of best.h5, or NULL */
    const char *best;
    /* path of the last checkpoint, or NULL */
    const char *last;
    /* duration of the run */
    double seconds;
    /* mean rate over all steps except the first, without the time of evaluations and saves */
    double samples_per_s;
    /* true: samples_per_s counts tokens */
    bool tokens;
    /* ranks 0: the run made no step */
    Ledger ledger;
    /* starts 0: this is the run's first start */
    Goodput goodput;
    /* last evaluation; samples 0: there was none */
    EvalLine eval;
    /* the rank that uses most memory; the next three fields are bytes of this rank */
    int memory_rank;
    double planned_bytes;
    /* growth since just before the plan was made; 0: not known */
    double measured_bytes;
    /* peak of the process, libraries included */
    double peak_bytes;
    /* true: the run was stopped, and the same command continues it */
    bool stopped;
    /* true: the run was started with run.fresh. The command that continues it must leave run.fresh
     * out, or it would start over. */
    bool fresh;
    /* reason for an end before the last step; NULL: it ran to the last step */
    const char *ended;
} RunSummary;
/* Prints the last evaluation, the ledger, memory, and paths of the files to `out` and to
 * log.txt. */
void observer_summary(const RunSummary *summary, FILE *out);

#endif
