/* The state of a run (Trainer), and functions of files without a header of their own that other
 * files of the module call. */
#ifndef WEFT_TRAIN_TRAINER_H
#define WEFT_TRAIN_TRAINER_H

#include "eval/best.h"
#include "step/loss_window.h"
#include "train.h"

/* Statistics of a step, known once the device has finished the step: means over the rows of the
 * step. */
typedef struct StepStats {
    double loss;
    /* fraction of rows whose label is the likeliest class */
    double top1;
    /* fraction of rows whose label is among the five likeliest classes */
    double top5;
    /* columns 1 and 2 of the loss's results (LossResults) */
    double column[2];
} StepStats;

/* Loss scaling of fp16: the loss is multiplied by a power of two, and the update divides the
 * gradients by the same factor. A step whose gradients overflow changes nothing but this factor. In
 * other precisions the factor is 1. */
typedef struct LossScale {
    /* true: the precision is fp16, so the factor is adapted after each step (dynamic loss
     * scaling) */
    bool dynamic;
    /* factor of the next step */
    double next;
    /* factor of the newest step */
    double last;
    /* steps without overflow since the factor changed */
    int64_t good_steps;
} LossScale;

/* Position in the data. */
typedef struct Position {
    /* number of completed epochs */
    int64_t epoch;
    /* number of completed steps of the current epoch */
    int64_t step;
    /* number of samples in the completed steps of the current epoch */
    int64_t sample;
} Position;

/* Everything that belongs to one run. Pointers whose comment names no owner are owned. */
struct Trainer {
    /* borrowed */
    const Config *config;
    /* the ranks that train; borrowed */
    const World *world;
    Backend *backend;
    /* record of the algorithms that this run uses (train.cuda_tune); NULL: the libraries' first
     * choice is used; owned */
    AlgorithmRecord *algorithms;
    /* number of entries in `algorithms` before the graph was planned */
    int recorded_count;
    /* true: the trainer will make steps, so algorithms may be timed */
    bool tunes;
    DataSet train_set, test_set;
    /* Only during set-up: a description of samples that replaces the data sets; NULL: data sets are
     * opened. Borrowed. */
    const DataSet *substitute_set;
    /* path of the checkpoint that train_load will load; NULL: the run's own checkpoint, or none.
     * Used only during set-up, for which it is borrowed. */
    const char *checkpoint;
    /* Only during set-up, on rank 0 of a run with a set of fields: path of the checkpoint from
     * which the run will continue or begin. The training set gets the checkpoint's mean and
     * deviation and, with data.refresh, its files. NULL: there is no checkpoint. Borrowed. */
    const char *earlier;
    /* fingerprint of the training set; "": not computed, because there is no run */
    char train_fingerprint[DATA_FINGERPRINT];
    /* fingerprint of the test set; "": not computed, or there is no test set */
    char test_fingerprint[DATA_FINGERPRINT];
    /* on rank 0, the files of a training set that grows (data.refresh), in the format of
     * data_set_list_files; NULL: the set does not grow; owned */
    char *data_files;
    /* on rank 0 of a run, statistics of the values in the training set; inputs.values is 0 if they
     * were not measured */
    DataRanges ranges;
    /* true: the parameters are averages that train_load has read from a checkpoint */
    bool loaded_averages;
    /* description of the tensors that were read from model.init_from, as in CheckpointMeta */
    char init_from[DATA_PATH + 64];
    /* on rank 0, names of the classes, as in CheckpointMeta; NULL: not known; owned */
    char *classes;
    Grid grid;
    Graph *graph;
    Schedule *schedule;
    /* number of slots of a channel between two stages, from the simulation of the schedule */
    int channel_depth;
    /* first node of each chunk of the model, and the node count as a last entry; [chunks + 1];
     * owned */
    int *chunk_begin;
    /* blocks of nodes for recomputation, from graph_blocks; [node_count]; owned */
    int *block;
    /* plan of this rank's stage; in a dry run, of stage 0 */
    Plan *plan;
    /* connects the replicas (grid.dp_world), for sums of gradients; in modes geo and async,
     * connects only this rank */
    Comm *comm;
    Executor *executor;
    /* watches the files of the data; borrowed from the run; NULL: there is no run */
    struct DataWatch *data_watch;
    Optim *optim;
    /* rule of each parameter, see optim_assign; [param_count]; owned */
    int *rule;
    /* factor on each parameter's learning rate; [param_count]; owned */
    double *lr_scale;
    /* memory that the update of each parameter needs, for the planner; [param_count]; owned */
    ParamUpdate *updates;
    /* buffer in which the slices of a tensor are assembled for an update that needs the whole
     * tensor; NULL: no update does; owned */
    float *slices;
    /* size of `slices` */
    size_t slices_bytes;
    /* parameter to which each of the optimizer's ranges belongs; owned */
    int *range_param;
    /* shards of this rank, with the exchange of sums of squares; NULL without ZeRO, unless a rule
     * needs norms of slices (grid.tp); owned */
    struct Shards *shards;
    /* rule of each sparse table, see optim_assign; owned */
    int *table_rule;

    /* sparse tables of this rank's stage; NULL: the stage has none; owned */
    Tables *tables;
    /* all ranks of the job, including servers; NULL: there are no servers, or this is a dry run;
     * borrowed */
    const World *job;
    /* number of servers: the last ranks of the job */
    int servers;
    /* With grid.servers: the servers and the ranks of the stage that has the tables; on a rank of
     * another stage, the ranks of all stages without tables. Not made without grid.servers. */
    World table_world;
    /* largest number of bytes that the rows of tables may occupy on a rank that owns rows; with
     * grid.servers, on a server */
    double table_limit;
    /* functions of grid.mode; borrowed */
    const struct StepMode *mode;
    /* climatology, persistence and metrics for evaluations of fields; NULL: not made yet, or the
     * data set has no fields; owned */
    struct FieldScoring *field_scoring;
    /* metrics of the newest evaluation of label fields; NULL: there was no such evaluation;
     * owned */
    struct LabelMetrics *label_metrics;
    /* pictures of the newest evaluation of fields; NULL: no pictures were drawn; owned */
    struct EvalPictures *eval_pictures;
    /* state of mode geo; NULL in other modes; owned */
    struct GeoSteps *geo;
    /* state of mode stale; NULL in other modes; owned */
    struct DeferredUpdates *deferred;
    /* a world with this rank only, over which `comm` sums in modes geo and async */
    World alone;
    /* The next three fields are used only in modes other than sync. true: since the last sync
     * point, a request to stop the run has arrived on this rank */
    bool stop_requested;
    /* true: since the last sync point, a request to save a checkpoint has arrived */
    bool save_requested;
    /* true: since the last sync point, a request of the hook has arrived */
    bool hook_requested;
    /* loader of the steps' batches; NULL: not open; owned */
    Loader *loader;
    /* memory in which this node's ranks share unpacked chunks for the loader (chunk_share.h); NULL:
     * each rank keeps chunks for itself; owned */
    NodeMemory *chunk_memory;
    /* number of chunks of fields that earlier loaders of the steps have unpacked */
    int64_t unpacked_chunks;
    /* true: no step was made since the loader was opened */
    bool is_first_step;
    /* source of the loader's micro-batches and, with sparse tables, of the rows for their ids */
    BatchSource source;
    /* true: the trainer was made for training, or for the plan of a training; false: only for
     * evaluation or prediction */
    bool trains;
    /* samples of a global batch */
    int64_t batch;
    /* samples of a micro-batch */
    int64_t micro_batch;
    /* micro-batches of a global batch */
    int micro_batches;
    /* micro-batches of one replica in a step: ceil(micro_batches / dp) */
    int micro_batches_local;
    /* numbers of the micro-batches that this replica reads in a step; [micro_batches_local]; NULL
     * before the loader of the steps is opened; owned */
    int *micro_number;
    /* number of rows of the loss that a sample has: 1, or the number of its tokens or pixels */
    int64_t rows_per_sample;
    /* number for which a sample counts in reports of throughput: 1, or the number of its tokens */
    int64_t counted_per_sample;
    /* true: activations of blocks are recomputed in the backward pass */
    bool recompute;
    /* shape of the grid; set also in a dry run, where `grid` is not created */
    GridShape shape;
    /* true: `grid` has been created */
    bool grid_ready;
    /* DryRun.node_ranks */
    int node_ranks;
    /* number of steps in an epoch that is run from its first sample on */
    int64_t steps_per_epoch;
    /* steps from `begin` to the end of the epoch that contains it */
    int64_t first_epoch_steps;
    /* number of the run's last step */
    int64_t steps;
    /* steps completed */
    int64_t step;
    /* step after which the run uses this batch size and this training set: 0, the step of the
     * loaded checkpoint, or the step after which new files joined the set */
    int64_t begin_step;
    /* position after step begin_step, from which all later positions are computed (position.c) */
    Position begin;
    /* batch size with which the run began; the learning rate's curve and warm-up are measured in
     * steps of this size, or with train.steps only the curve's milestones (position.c) */
    int64_t schedule_batch;
    LossScale loss_scale;
    /* number of skipped steps so far, which made no update */
    int64_t skipped;
    /* true: the host waits for each step's loss before the update */
    bool waits_for_loss;
    /* true: the host checks each step's gradients before the update */
    bool checks_gradients;
    /* losses of the last good steps */
    LossWindow losses;
    /* best value of checkpoint.best_metric so far, negated if smaller values are better; NaN: no
     * evaluation yet */
    double best_metric;
    /* number of evaluations so far that the learning rate's curve and early stopping have used */
    int64_t evaluations;
    /* state of the learning rate's curve */
    LrState lr;
    /* state of early stopping */
    EarlyStop early;
    /* true: run.hook has requested the end of the run */
    bool hook_stop;
    /* True: the evaluation after the newest step failed or was interrupted by a stop request; the
     * next start repeats the evaluation. */
    bool evaluation_due;
    /* True: checkpoints are written in the background from a copy of the state, for which there is
     * enough memory. */
    bool saves_in_background;
    /* copy of the state for checkpoints; NULL until the first is needed; owned */
    struct SaveCopy *copy;
    /* true: the copy has the state after the current step */
    bool copied;
    /* true: a checkpoint is being written from the copy */
    bool copy_lent;
    /* bytes of this process's memory before the trainer was made; -1: not known */
    double bytes_before;
    /* without a device: bytes by which this process's memory grew during set-up, from opening the
     * data sets to cutting the graph into stages; with a device: bytes of device memory that the
     * backend had allocated by then */
    size_t program_bytes;
    /* bytes free on the device after the graph was cut; not used if operations use host memory */
    double device_free;
    /* seconds spent waiting for the loader's next micro-batch */
    double data_wait_s;
    /* capture of the optimizer's part of a step, if that part can be captured */
    Capture update;
    /* True: the update clips gradients itself, because this rank has all gradients and the
     * optimizer computes their norm on the device. False: the host clips, for example if the loss
     * scale is dynamic. */
    bool update_clips;
    /* sums of the estimates of the gradient noise since the last logged step (grad_noise.h) */
    GradNoise noise;
    /* number of steps in these sums */
    int64_t noise_steps;
    /* last step whose statistics have been read; the device may already be one step further */
    int64_t stats_step;
    /* statistics of step stats_step */
    StepStats step_stats;
};

/* Makes a trainer as trainer_new does, but without initial parameters, on the ranks of a job that
 * train. job: all ranks of the job, including servers, to which the result of set-up is sent
 * (sparse_serve receives it); NULL: there are no servers. earlier: see Trainer.earlier. */
Status trainer_new_with(Trainer **trainer, const Config *config, const World *world,
                        const World *job, const char *earlier);
/* Returns the largest divisor of the batch up to 32. The divisor does not depend on the grid: the
 * micro-batch affects results, and results must be the same on every grid. In modes geo and async,
 * however, results depend on the grid in any case; there the divisor is small enough to give each
 * replica a micro-batch, if the batch has enough samples. */
int64_t train_default_micro_batch(const Trainer *trainer);
/* Returns the largest micro-batch that divides the batch and gives each replica at least one
 * micro-batch; 0: the batch has fewer samples than there are replicas. */
int64_t train_fitting_micro_batch(const Trainer *t);
/* Draws initial parameters from run.seed. Collective. */
void train_draw_params(Trainer *t);
/* Clears all reasons to end the run before its last step (early stopping, a request of the hook),
 * and evaluation_due. Not collective. */
void train_forget_end(Trainer *t);

/* trainer_data.c. Rank 0 opens and checks the data sets and broadcasts their description. only:
 * arguments of the dry run, whose `data` may replace the data sets; NULL: this is no dry run.
 * Collective; all ranks return the same Status. */
Status trainer_open_data(Trainer *t, const DryRun *only);
/* grad_norm.c. Returns the sum of squares of the gradients in the arenas, times the square of the
 * loss scale. one_use = true: includes only the parameters for which graph_has_one_use returns
 * true. Collective. */
double train_grad_squares(Trainer *t, bool one_use);
/* trainer_data.c. At the end of an epoch, replaces the training set by rank 0's *next, which has
 * more files; other ranks pass an empty set. Keeps mean and deviation, closes the loader, and
 * leaves *next empty. If *next does not fit the old set, returns an error and changes nothing.
 * Collective; all ranks return the same Status. */
Status trainer_extend_data(Trainer *t, DataSet *next);
/* predict.c. Runs the model on one batch. Sets *logits to the model's outputs, one row after
 * another, borrowed until the next call. */
Status train_logits(Trainer *t, const MicroBatch *batch, const float **logits);
/* predict.c. Returns ERR_DATA if one of the `count` outputs in logits is not finite. */
Status logits_check(const float *logits, int64_t count);
/* trainer_view.c. Returns the metric by which evaluations are compared for best.h5. */
const BestMetric *trainer_metric(const Trainer *t);
/* trainer_view.c. Returns the number of slices into which those sums are cut that a tensor-parallel
 * group can divide among its ranks. 0: sums are not cut, so results depend on the number of ranks
 * in the group. */
int train_sum_slices(const Trainer *t);
/* train_step.c. Returns true if the next step, whose number is `number`, is logged
 * (StepResult.logged). The same on all ranks. */
bool train_logs_step(const Trainer *t, int64_t number);

#endif
