/* observe: reports of a run: the progress line, metrics.jsonl, TensorBoard events, log.txt, the
 * final summary. Rank 0 owns an Observer; other ranks pass NULL, which every function accepts. Not
 * collective. */
#ifndef WEFT_OBSERVE_H
#define WEFT_OBSERVE_H

#include "detect.h"
#include "observe/field_metrics.h"
#include "observe/history.h"
#include "observe/label_metrics.h"

typedef struct Observer Observer;
/* Parts of a detector's loss, whose sum it is. */
typedef enum LossPart { LOSS_PART_BOX, LOSS_PART_OBJECT, LOSS_PART_CLASS, LOSS_PARTS } LossPart;
/* Returns "box_loss". Static. */
const char *loss_part_name(LossPart part);
typedef struct TrainLine {
    /* completed steps, and steps of the run */
    int64_t step, steps;
    /* epoch, and epochs of the run; epochs 0: the configuration sets only steps */
    int64_t epoch, epochs;
    double loss, lr, samples_per_s, grad_norm;
    /* train.grad_noise: the next three are set: squared norm of the gradient, trace of its
     * covariance, gradient noise scale in samples (NaN: the noise hides the gradient) */
    bool grad_noise;
    double grad_square, grad_variance, noise_scale;
    /* fractions of the training batch; NaN: not known */
    double top1, top5;
    /* estimated time left in seconds; NaN: not known */
    double left_s;
    /* number of steps so far that made no update */
    int64_t skipped;
    /* samples_per_s, top1 and top5 count tokens */
    bool tokens;
    /* the model has one logit, and top1 is the accuracy */
    bool logits;
    /* the model finds boxes, and the parts of the loss are set */
    bool boxes;
    double part[LOSS_PARTS];
    /* seconds by part before the last logged step, the mean over the ranks; waiting is not divided
     * by its cause, so there is neither bubble nor imbalance; all 0: not known */
    double time_s[LEDGER_LINE_COUNT];
} TrainLine;
/* A picture for TensorBoard. */
typedef struct EvalPicture {
    /* at most 200 characters */
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
    /* the model finds boxes; COCO's twelve numbers, -1: not defined; parts of the loss */
    bool boxes;
    double coco[COCO_NUMBERS], part[LOSS_PARTS];
    /* metrics of fields; NULL: the set is none of fields; borrowed from the trainer until its next
     * evaluation */
    const FieldMetrics *fields;
    /* metrics of label fields; NULL: the set has none; borrowed for as long */
    const LabelMetrics *labels;
    /* pictures of predicted fields, [pictures]; borrowed for as long; rank 0 has them */
    const EvalPicture *picture;
    int pictures;
    /* samples, loss, top1 and top5 count tokens */
    bool tokens;
} EvalLine;
/* A decision of a run after a step, by its hook or by early stopping. */
typedef struct DecisionLine {
    int64_t step, epoch;
    /* "hook" or "early_stop" */
    const char *event;
    /* reason in words, or NULL */
    const char *why;
    bool stop, save;
    /* learning rate from this step on; 0: unchanged */
    double lr;
} DecisionLine;
/* Writes the metrics of logits as four keys (auc, its method, normalized entropy, calibration),
 * those of boxes as twelve and the parts of the loss, those of fields as two and a list of targets,
 * and those of label fields as three and a list of classes; nothing where there are none. */
void eval_put_metrics(const EvalLine *line, Json *json);
/* Returns "tokens" or "samples". */
const char *rows_name(bool tokens);

/* Opens the files of a run's folder `dir`, which must exist. If the run is resumed, it
 * removes the lines of dir/metrics.jsonl with steps > step; else it renames an earlier file to
 * metrics.jsonl.1 (.2, ...). It starts a new events.out.tfevents file. lease: the folder's, checked
 * before a file is opened again; borrowed; NULL: no other process writes there. Owner: the
 * caller. */
Status observer_new(Observer **observer, const char *dir, const Lease *lease, int64_t step,
                    bool resumed);
void observer_free(Observer **observer);
/* Reports a training step. On a terminal it rewrites one line, at most ten times a second.
 * Otherwise it prints a line if log_now is set. If log_now is set it also writes a line of metrics
 * and events. */
void observer_train(Observer *observer, const TrainLine *line, bool log_now);
void observer_eval(Observer *observer, const EvalLine *line);
/* Writes a decision as a line of metrics; it does not go to TensorBoard's events. */
void observer_decision(Observer *observer, const DecisionLine *line);
/* Ends the progress line so that other text can follow. */
void observer_break(Observer *observer);
/* Writes what an earlier failed write has left in memory, and reports files that were removed,
 * replaced or cut short. The functions above do the same once a second and at evaluations, and warn
 * once where it fails. ERR_IO; the data stays in memory. */
Status observer_flush(Observer *observer);
/* Syncs what has been flushed to the disk. Any thread may call it. */
Status observer_sync(Observer *observer);

/* Opens dir/log.txt, which gets a copy of all messages of this process from now on and those kept
 * since log_copy_begin, after a line with the time and the step of this start. At 16 MB it is
 * renamed to log.txt.1. A file that is removed or renamed meanwhile is written again. lease: as in
 * observer_new, borrowed until log_file_pin. ERR_IO: the file cannot be opened. Only one file is
 * open at a time, until the next call. */
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
    /* over all steps except the first, without evaluations and saves */
    double samples_per_s;
    /* samples_per_s counts tokens */
    bool tokens;
    /* ranks 0: the run made no step */
    Ledger ledger;
    /* starts 0: this is the run's first start */
    Goodput goodput;
    /* last evaluation; samples 0: there was none */
    EvalLine eval;
    /* the rank that uses most memory, whose figures follow */
    int memory_rank;
    double planned_bytes;
    /* growth since just before the plan was made; 0: not known */
    double measured_bytes;
    /* peak of the process, libraries included */
    double peak_bytes;
    /* the run can be continued */
    bool stopped;
    /* the run was started with run.fresh, with which the same command would start over */
    bool fresh;
    /* reason for an end before the last step; NULL: it ran to the last step */
    const char *ended;
} RunSummary;
/* Prints the last evaluation, the ledger, memory, and paths of the files. */
void observer_summary(const RunSummary *summary, FILE *out);

#endif
