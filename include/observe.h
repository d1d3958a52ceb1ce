/* observe: writes the reports of a run: the progress line, metrics.jsonl, TensorBoard events,
 * log.txt, the final summary. Rank 0 owns an Observer; other ranks pass NULL, which every function
 * with an Observer argument accepts. Not collective. */
#ifndef WEFT_OBSERVE_H
#define WEFT_OBSERVE_H

#include "detect.h"
#include "observe/field_metrics.h"
#include "observe/history.h"
#include "observe/label_metrics.h"

typedef struct Observer Observer;
/* The parts that add up to a detector's loss. */
typedef enum LossPart { LOSS_PART_BOX, LOSS_PART_OBJECT, LOSS_PART_CLASS, LOSS_PARTS } LossPart;
/* Returns the name of a part, for example "box_loss". Static. */
const char *loss_part_name(LossPart part);
/* The report of a training step. */
typedef struct TrainLine {
    /* step: number of completed steps; steps: number of all steps of the run */
    int64_t step, steps;
    /* epoch: number of the current epoch, counted from 1; epochs: number of all epochs of the run,
     * 0: the configuration sets the number of steps instead */
    int64_t epoch, epochs;
    double loss, lr, samples_per_s, grad_norm;
    /* true: the gradient noise was measured (train.grad_noise), so grad_square, grad_variance and
     * noise_scale are set */
    bool has_grad_noise;
    /* grad_square: squared norm of the gradient; grad_variance: trace of the covariance of a
     * sample's gradient */
    double grad_square, grad_variance;
    /* gradient noise scale in samples; NaN: the noise is so large that the gradient cannot be
     * estimated */
    double noise_scale;
    /* top-1 and top-5 of the step's batch; NaN: not known */
    double top1, top5;
    /* estimated time left in seconds; NaN: not known */
    double left_s;
    /* number of steps so far that made no update */
    int64_t skipped;
    /* true: samples_per_s, top1 and top5 count tokens instead of samples */
    bool counts_tokens;
    /* true: the model has one logit, and top1 is the accuracy */
    bool has_one_logit;
    /* true: the model finds boxes, and `part` is set */
    bool has_boxes;
    /* parts of the loss */
    double part[LOSS_PARTS];
    /* seconds of each part of the ledger since the logged step before this one, mean over the
     * ranks; all 0: not known. Bubble and imbalance are 0, because they are only computed at the
     * end of a run. */
    double time_s[LEDGER_LINE_COUNT];
} TrainLine;
/* A picture for TensorBoard. */
typedef struct EvalPicture {
    /* name of the picture, with a final zero */
    char tag[200];
    int width, height;
    /* content of a PNG file, [bytes]; owned */
    uint8_t *png;
    size_t bytes;
} EvalPicture;
/* The result of an evaluation. */
typedef struct EvalLine {
    /* step, epoch: numbers of completed steps and epochs; samples: number of evaluated samples */
    int64_t step, epoch, samples;
    /* seconds: duration of the evaluation */
    double loss, seconds;
    /* top-1 and top-5; NaN for regression */
    double top1, top5;
    /* method of the AUC, "exact" or "buckets" (train.auc); NULL: the loss is not one of a single
     * logit, and auc, normalized_entropy and calibration are not set */
    const char *auc_kind;
    /* see BinaryFigures; NaN: not defined */
    double auc, normalized_entropy, calibration;
    /* true: the model finds boxes, and `coco` and `part` are set */
    bool has_boxes;
    /* COCO's twelve numbers; -1: not defined */
    double coco[COCO_NUMBERS];
    /* parts of the loss */
    double part[LOSS_PARTS];
    /* metrics of fields, borrowed from the trainer until its next evaluation; NULL: the data set
     * has no fields */
    const FieldMetrics *fields;
    /* metrics of label fields, borrowed in the same way; NULL: the data set has no label field */
    const LabelMetrics *labels;
    /* pictures of predicted fields, [pictures], borrowed in the same way; on rank 0 only */
    const EvalPicture *picture;
    int pictures;
    /* true: samples, loss, top1 and top5 count tokens instead of samples */
    bool counts_tokens;
} EvalLine;
/* A decision to stop, to save or to change the rate, made after a step by the run's hook or by
 * early stopping. */
typedef struct DecisionLine {
    int64_t step, epoch;
    /* "hook" or "early_stop" */
    const char *event;
    /* reason in words; NULL: no reason is given */
    const char *why;
    /* stop: true if the run ends after this step; save: true if a checkpoint is saved */
    bool stop, save;
    /* learning rate from this step on; 0: unchanged */
    double lr;
} DecisionLine;
/* Writes the metrics of an evaluation as keys of an open JSON object. Models with one logit have
 * four keys (AUC, its method, normalized entropy, calibration). Models that find boxes have COCO's
 * twelve numbers and the parts of the loss. Fields have three keys and a list of targets. Label
 * fields have three keys and a list of classes. */
void eval_put_metrics(const EvalLine *line, Json *json);
/* Returns "tokens" if `tokens` is true, else "samples". */
const char *row_unit(bool tokens);

/* Opens the files of a run's folder `dir`, which must exist. If the run is resumed, removes torn
 * lines of dir/metrics.jsonl and lines of steps above `step`. If the run is not resumed, renames an
 * existing metrics.jsonl to metrics.jsonl.1 (.2, ...). Always starts a new events.out.tfevents
 * file. lease: lease of the folder (base/lease.h), borrowed, which must be held whenever a file is
 * opened again; NULL if no other process writes in the folder. The caller owns *observer. ERR_IO: a
 * file cannot be read or written. */
Status observer_new(Observer **observer, const char *dir, const Lease *lease, int64_t step,
                    bool resumed);
void observer_free(Observer **observer);
/* Reports a training step. If stdout is a terminal, rewrites one line there, at most ten times a
 * second; if not, prints a line if log_now is true. If log_now is true, also writes a line to
 * log.txt, to metrics.jsonl and to the file of events. */
void observer_train(Observer *observer, const TrainLine *line, bool log_now);
/* Reports an evaluation. */
void observer_eval(Observer *observer, const EvalLine *line);
/* Writes a decision as a line of metrics.jsonl. The file of events does not get it. */
void observer_decision(Observer *observer, const DecisionLine *line);
/* Ends the progress line, so that other text can follow on the terminal. */
void observer_end_line(Observer *observer);
/* Writes the data that is in memory because an earlier write failed, and reports files that were
 * removed, replaced or cut short. observer_train does this, too, at most once a second and only if
 * log_now is true; observer_eval and observer_decision do it at each call. The three functions warn
 * once when writing begins to fail, and report when it works again. ERR_IO: a file cannot be
 * written; its data stays in memory. */
Status observer_flush(Observer *observer);
/* Waits until the data that was written so far is on the disk (fsync). Any thread may call it. */
Status observer_sync(Observer *observer);

/* Opens dir/log.txt and writes a line with the time and the step of this start. The file then gets
 * the messages that were kept since log_copy_begin, and all later messages of this process. At 16
 * MiB it is renamed to log.txt.1, and a new file is begun. If the file is removed or renamed
 * meanwhile, a copy of it is written to the path. lease: as in observer_new, borrowed until
 * log_file_pin. ERR_IO: the file cannot be opened. Only one log file is open at a time: each call
 * closes the file that was open before. */
Status log_file_open(const char *dir, const Lease *lease, int64_t step);
/* Makes all later messages go to the file that is open, even if its name is removed or leads to
 * another file. It is then not renamed at 16 MiB either. */
void log_file_pin(void);
/* Warns if the file was removed, replaced or cut short since the previous call, or could not be
 * opened again after such a change. Warns once about each change. */
void log_file_warn_of_changes(void);

/* Everything that the summary at the end of a run prints. */
typedef struct RunSummary {
    /* path of the run's folder */
    const char *dir;
    /* path of best.h5, or NULL */
    const char *best_path;
    /* path of the newest checkpoint, or NULL */
    const char *newest_path;
    /* duration of the run in seconds */
    double seconds;
    /* mean rate over all steps except the first one, without the time of evaluations and saves */
    double samples_per_s;
    /* true: samples_per_s counts tokens instead of samples */
    bool counts_tokens;
    /* time of the ranks; if its `ranks` is 0, the run made no step */
    Ledger ledger;
    /* time of all starts of the run; if its `starts` is 0, this is the run's first start */
    Goodput goodput;
    /* last evaluation; if its `samples` is 0, there was none */
    EvalLine eval;
    /* number of the rank whose measured memory is largest */
    int memory_rank;
    /* memory of this rank by its plan */
    double planned_bytes;
    /* growth of this rank's process since before its trainer was made or, with a device, memory
     * that is allocated on the device; 0: not known */
    double measured_bytes;
    /* largest memory of this rank's process, libraries included */
    double peak_bytes;
    /* true: the run was stopped, and the same command continues it */
    bool stopped;
    /* true: the run was started with run.fresh. The command that continues it must leave run.fresh
     * out, or it would start over. */
    bool fresh;
    /* reason why the run ended before its last step; NULL: it ran to the last step */
    const char *ended;
} RunSummary;
/* Prints the last evaluation, the ledger, memory, and paths of the files to `out` and to
 * log.txt. */
void observer_summary(const RunSummary *summary, FILE *out);

#endif
