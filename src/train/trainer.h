/* The state of a run. */
#ifndef WEFT_TRAIN_TRAINER_H
#define WEFT_TRAIN_TRAINER_H

#include "eval/best.h"
#include "step/loss_window.h"
#include "train.h"

/* Statistics of a step, known once the device has finished it. */
typedef struct StepStats {
    double loss, top1, top5, column[2];
} StepStats;

/* Loss scaling of fp16: the loss is multiplied by a power of two, and the update divides the
 * gradients by it. A step whose gradients overflow changes nothing but this factor. In other
 * precisions it is 1. */
typedef struct LossScale {
    /* the precision is fp16, so the factor is adapted after each step (dynamic loss scaling) */
    bool dynamic;
    /* factor of the next step */
    double now;
    /* factor of the last step */
    double used;
    /* steps without overflow since the factor changed */
    int64_t good;
} LossScale;

/* Position in the data: completed epochs, and completed steps and samples of the current epoch. */
typedef struct Position {
    int64_t epoch, step, sample;
} Position;

/* Everything that belongs to one run. */
struct Trainer {
    /* borrowed */
    const Config *config;
    /* the ranks that train; borrowed */
    const World *world;
    Backend *backend;
    /* record of algorithms of train.cuda_tune; NULL: the libraries' first choice; owned */
    AlgorithmRecord *algorithms;
    /* number of entries in that record before the graph was planned */
    int recorded;
    /* the trainer will make steps, so algorithms may be timed */
    bool tunes;
    DataSet train_set, test_set;
    /* Only during set-up: describes samples in place of data sets; NULL: data sets are opened.
     * Borrowed. */
    const DataSet *samples;
    /* Only during set-up: the checkpoint that train_load will get; NULL: the run's own, or none.
     * Borrowed. */
    const char *checkpoint;
    /* Only during set-up, on rank 0: a checkpoint of this run, whose statistics of fields it keeps;
     * NULL: none. Borrowed. */
    const char *earlier;
    /* fingerprints of the data sets; "": not computed; only a run computes them */
    char train_data[DATA_FINGERPRINT], test_data[DATA_FINGERPRINT];
    /* files of a set that grows (data.refresh), as data_set_list_files, on rank 0; NULL: it does
     * not; owned */
    char *data_files;
    /* ranges of the training set, on rank 0 of a run; values 0: not measured */
    DataRanges ranges;
    /* the parameters are averages, which train_load has taken from a checkpoint */
    bool loaded_averages;
    /* description of model.init_from's tensors, as in CheckpointMeta */
    char init_from[DATA_PATH + 64];
    /* names of the classes, as in CheckpointMeta; on rank 0; NULL: not known; owned */
    char *classes;
    Grid grid;
    Graph *graph;
    Schedule *schedule;
    /* entries of a channel between two stages, from the simulation of the schedule */
    int channel_depth;
    /* first node of each chunk of the model, then the node count; owned */
    int *first;
    /* blocks of nodes for recomputation, from graph_blocks; owned */
    int *block;
    Plan *plan;
    /* connects the replicas (grid.dp_world); in modes geo and async only this rank */
    Comm *comm;
    Executor *executor;
    /* watches the files of the data; borrowed from the run; NULL: there is no run */
    struct DataWatch *data_watch;
    Optim *optim;
    /* rule of each parameter, see optim_assign; owned */
    int *rule;
    /* factor on each parameter's learning rate; owned */
    double *lr_scale;
    /* memory that each parameter's update needs, for the planner; owned */
    ParamUpdate *updates;
    /* buffer for the slices of a tensor that an update needs whole; NULL: none does; owned */
    float *slices;
    size_t slices_bytes;
    /* parameter of each of the optimizer's ranges; owned */
    int *range_param;
    /* shards of this rank and exchange of partial norms; NULL: nothing is sharded or sliced;
     * owned */
    struct Shards *shards;
    /* rule of each sparse table, see optim_assign; tables of this rank's stage, NULL: it has none;
     * owned */
    int *table_rule;
    Tables *tables;
    /* With grid.servers: job is all ranks, of which the last `servers` are servers, and table_world
     * those that use the tables of this rank's stage. Without: NULL and 0. job is borrowed. */
    const World *job;
    int servers;
    World table_world;
    /* most bytes of rows that this rank may store */
    double table_limit;
    /* row of grid.mode; constant */
    const struct StepMode *mode;
    /* climatology, persistence and metrics of fields; NULL: none was made, or the set is none of
     * fields; owned */
    struct FieldScoring *field_scoring;
    /* metrics of the last evaluation of label fields; NULL: none was made; owned */
    struct LabelMetrics *label_metrics;
    /* pictures of the last evaluation of fields; NULL: none were made; owned */
    struct EvalPictures *eval_pictures;
    /* state of modes geo and stale; NULL in other modes; owned */
    struct GeoSteps *geo;
    struct DeferredUpdates *deferred;
    /* world of this rank alone, over which modes with local steps sum their steps */
    World alone;
    /* requests of this rank since the last sync point, in modes other than sync */
    bool stop_requested, save_requested, hook_requested;
    /* loader of the steps; NULL: not open; owned */
    Loader *loader;
    /* no step was made since the loader was opened */
    bool first_step;
    /* the loader's micro-batches, with the rows of sparse tables that they use */
    BatchSource source;
    /* the trainer is made for training, not for evaluation alone */
    bool trains;
    /* samples of a global batch */
    int64_t batch;
    /* samples of a micro-batch */
    int64_t micro_batch;
    /* micro-batches of a global batch */
    int micros;
    /* micro-batches of one replica in a step: ceil(micros / dp) */
    int micros_local;
    /* numbers of the micro-batches that this replica reads in a step, [micros_local]; owned; NULL
     * before the loader of the steps is opened */
    int *micro_number;
    /* rows of the loss in a sample: 1, its tokens, or its pixels; what reports count: 1, or its
     * tokens */
    int64_t rows_per_sample, counted_per_sample;
    /* activations of blocks are recomputed in backward */
    bool recompute;
    /* shape of the grid, also in a dry run, which has no grid */
    GridShape shape;
    /* grid has been created */
    bool grid_ready;
    /* steps of a whole epoch */
    int64_t steps_per_epoch;
    /* steps of the epoch that contains `begin`, from there on */
    int64_t first_epoch_steps;
    /* number of the run's last step */
    int64_t steps;
    /* steps completed */
    int64_t step;
    /* step and position after which every step has `batch` samples (position.h) */
    int64_t begin_step;
    Position begin;
    /* The learning rate's curve and warm-up count steps of this many samples (position.h). */
    int64_t schedule_batch;
    LossScale scale;
    /* steps so far without an update */
    int64_t skipped;
    /* the host waits for each step's loss before the update */
    bool waits_for_loss;
    /* the host checks each step's gradients before the update */
    bool checks_gradients;
    LossWindow losses;
    /* best value of checkpoint.best_metric so far, negated if less is better; NaN: no evaluation
     * yet */
    double best_metric;
    /* evaluations that have counted for the learning rate's curve and early stopping */
    int64_t evaluations;
    /* state of the curve and of early stopping */
    LrState lr;
    EarlyStop early;
    /* run.hook has requested the end of the run */
    bool hook_stop;
    /* The evaluation after the last step failed or was interrupted by a stop request; the next
     * start repeats it. */
    bool evaluation_due;
    /* Checkpoints are written in the background, from a copy for which there is memory. */
    bool saves_in_background;
    /* copy for checkpoints; NULL until it is needed; owned */
    struct SaveCopy *copy;
    /* the copy is of the current step */
    bool copied;
    /* a save is being written from the copy */
    bool copy_lent;
    /* growth of this process's memory during set-up, from opening the data sets to cutting the
     * graph into stages */
    size_t program_bytes;
    /* bytes free on the device at that time; not used if operations use host memory */
    double device_free;
    /* seconds spent waiting for the loader's next micro-batch */
    double data_wait_s;
    /* the optimizer's part of a step, if it can be captured */
    Capture update;
    /* The update clips gradients itself: this rank has all gradients and the optimizer computes
     * their norm on the device. With a moving loss scale the host clips. */
    bool update_clips;
    /* sums of the estimates since the last logged step (grad_noise.h), and the number of steps */
    GradNoise noise;
    int64_t noise_steps;
    /* step up to which statistics have been read; a device may be one step ahead */
    int64_t known;
    /* statistics of step `known` */
    StepStats step_stats;
};

/* Like trainer_new_to_load, for the ranks of a job that train. job: all ranks of the job, including
 * servers, which learn whether set-up worked (sparse_serve); NULL: there are no servers. earlier:
 * on rank 0 a checkpoint of this run, whose statistics of fields it keeps; NULL: none. */
Status trainer_new_with(Trainer **trainer, const Config *config, const World *world,
                        const World *job, const char *earlier);
/* Returns the largest divisor of the batch with which there is a micro-batch for each replica; 0:
 * the batch has fewer samples than there are replicas. */
int64_t train_fitting_micro_batch(const Trainer *t);
/* Draws initial parameters from run.seed. Collective. */
void train_draw_params(Trainer *t);
/* Clears the reasons to end before the last step, and an evaluation that is due. Not collective. */
void train_forget_end(Trainer *t);

/* trainer_data.c. Rank 0 opens and checks the data sets and broadcasts their description. only: the
 * dry run, which may describe its own data; NULL: a run follows. Collective; all ranks return the
 * same Status. */
Status trainer_open_data(Trainer *t, const DryRun *only);
/* grad_norm.c. Returns the sum of squares of the gradients in the arenas, times the square of the
 * loss scale; one_use: of the parameters for which graph_has_one_use holds. Collective. */
double train_grad_squares(Trainer *t, bool one_use);
/* Replaces the training set by `next` of rank 0, which has more files, at the end of an epoch;
 * other ranks give memory for it. Mean and deviation stay. Collective; all ranks return the same
 * Status. */
Status trainer_extend_data(Trainer *t, DataSet *next);
/* predict.c. Runs the model on one batch. Sets *logits to its outputs, one row after another,
 * borrowed until the next call. */
Status train_logits(Trainer *t, const Batch *batch, const float **logits);
/* predict.c. Returns ERR_DATA if one of count outputs is not finite. */
Status logits_check(const float *logits, int64_t count);
/* trainer_view.c. Returns the metric by which evaluations are compared for best.h5. */
const BestMetric *trainer_metric(const Trainer *t);
/* Returns the number of slices of the sums that a tensor group can divide; 0: each rank's part is
 * one sum, because only runs on one grid are to agree, or the backend has no kernels with slices
 * in this precision. */
int train_sum_slices(const Trainer *t);
/* Returns true if the next step, which has this number, is logged (StepResult.logged). The same on
 * all ranks. */
bool train_logs_step(const Trainer *t, int64_t number);

#endif
