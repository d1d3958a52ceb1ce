/* What a trainer is made of. */
#ifndef WEFT_TRAIN_TRAINER_H
#define WEFT_TRAIN_TRAINER_H

#include "best.h"
#include "loss_window.h"
#include "train.h"

/* What is known of a step once the device has done it. */
typedef struct StepStats {
    double loss, top1, top5;
} StepStats;

/* fp16's gradients are those of the loss times a power of two, which the update divides by. A step
 * whose gradients overflow all the same changes nothing but this factor. Other precisions: 1. */
typedef struct LossScale {
    bool moves;
    /* of the next step; of the last one */
    double now, used;
    /* steps without overflow since it changed */
    int64_t good;
} LossScale;

/* A place in the data: epochs done; steps and samples of the next one that are done. */
typedef struct Position {
    int64_t epoch, step, sample;
} Position;

/* Everything one run is made of. */
struct Trainer {
    /* borrowed */
    const Config *config;
    /* borrowed */
    const World *world;
    Backend *backend;
    /* owned: record of algorithms of train.cuda_tune; NULL: the libraries' own first choice.
     * recorded: number of entries that it had before the graph was planned. */
    AlgorithmRecord *algorithms;
    int recorded;
    /* true where steps follow, so that algorithms may be timed */
    bool tunes;
    DataSet train_set, test_set;
    /* Borrowed while it is made: what samples are, in place of data sets; NULL: they are opened. */
    const DataSet *samples;
    /* Borrowed while it is made: the checkpoint that train_load will be given; NULL: a run's own,
     * or none. */
    const char *checkpoint;
    /* "": a run has not asked */
    char train_data[DATA_FINGERPRINT], test_data[DATA_FINGERPRINT];
    /* as CheckpointMeta's; classes: owned, on rank 0, NULL: not known */
    char init_from[DATA_PATH + 64];
    char *classes;
    Grid grid;
    Graph *graph;
    Schedule *schedule;
    int channel_depth;
    /* owned: nodes where the chunks of the model begin, and the end */
    int *first;
    /* owned: graph_blocks */
    int *block;
    Plan *plan;
    /* over grid.dp_world */
    Comm *comm;
    Executor *executor;
    Optim *optim;
    /* owned: of each parameter, see optim_assign */
    int *rule;
    /* owned, likewise: on the rate that its rule gives it */
    double *lr_scale;
    /* owned: likewise what its update needs */
    ParamUpdate *updates;
    /* owned: slices of a tensor that is put together; NULL: none is */
    float *slices;
    size_t slices_bytes;
    /* owned: the parameter of each of the optimizer's ranges */
    int *range_param;
    /* what the replicas shard (grid.zero); NULL: nothing */
    struct Shards *shares;
    /* owned: of each sparse table, see optim_assign; the rows that this rank has, NULL: its stage
     * has no table */
    int *table_rule;
    Tables *tables;
    /* Of a run with grid.servers: all ranks of the job, of which the last ones are servers;
     * borrowed; NULL, 0: none are. And those that have to do with the tables of this rank's stage.
     */
    const World *job;
    int servers;
    World table_world;
    /* of this rank, for rows */
    double table_limit;
    /* Modes geo and async: owned, NULL in others; and a world of this rank alone, over which its
     * steps sum. */
    struct LocalSteps *local;
    World alone;
    /* mode stale: owned, NULL in others */
    struct LateUpdates *late;
    /* of modes with borders: what a rank was asked to do since the last one */
    bool stop_asked, save_asked, wish_asked;
    Loader *loader;
    /* true where the trainer is made for steps, not for evaluation alone */
    bool trains;
    /* global samples; samples a micro-batch */
    int64_t batch, micro_batch;
    /* M and ceil(M/dp) */
    int micros, micros_local;
    /* of the loss: 1, or the tokens of a sample */
    int64_t rows_per_sample;
    /* activations of blocks are made again in backward */
    bool recompute;
    /* of grid, and of a design, which has none */
    GridShape shape;
    /* grid has been made */
    bool grid_ready;
    int64_t steps_per_epoch, steps;
    /* done */
    int64_t step;
    /* step and place from which on each step has `batch` samples; batch size of which the learning
     * rate's curve and warm-up count steps. position.h */
    int64_t begin_step;
    Position begin;
    int64_t schedule_batch;
    LossScale scale;
    /* of all steps so far, those without an update */
    int64_t skipped;
    /* The host waits for each step's loss, and looks at its gradients, before it updates. */
    bool waits, looks;
    LossWindow losses;
    /* of the evaluations so far, by checkpoint.best_metric, of which less is better with a minus;
     * NaN: none yet */
    double best_metric;
    /* evaluations that curve and early stopping have counted, and what they have left */
    int64_t evaluations;
    LrState lr;
    EarlyStop early;
    /* run.hook has asked for the end */
    bool hook_stop;
    /* A stop has broken off the evaluation at this border: the next start makes it. */
    bool evaluation_due;
    /* Checkpoints are written beside training, from a copy: there is memory for it. */
    bool saves_beside;
    /* owned: the copy, once it is needed; NULL: not yet */
    struct SaveCopy *copy;
    /* it is of the present step; a save is written from it now */
    bool copied, copy_lent;
    /* by which this process has grown from data set to schedule */
    size_t program_bytes;
    /* free on the device at that time; unused where memory is the host's */
    double device_free;
    /* for the loader's next micro-batch, so far */
    double data_wait_s;
    /* the optimizer's part of a step, where it can be replayed */
    Capture update;
    /* steps whose statistics have been read: those of the last one are */
    int64_t known;
    StepStats step_stats;
};

/* As trainer_new_to_load, for the ranks of a job that compute; job: all of them, with servers
 * behind them, which learn whether it has worked (sparse_serve); NULL: there are none. */
Status trainer_new_with(Trainer **trainer, const Config *config, const World *world,
                        const World *job);
/* Do replicas' micro-batches take turns? Else each has a block of them. */
bool train_takes_turns(const Trainer *t);
/* The largest micro-batch of which the batch has one for each replica; 0: it has fewer samples. */
int64_t train_fitting_micro_batch(const Trainer *t);
/* Initial parameters, drawn by run.seed. Collective. */
void train_draw_params(Trainer *t);
/* What ended the run before its last step, and the evaluation that is due. Not collective. */
void train_forget_end(Trainer *t);

/* trainer_data.c. Rank 0 opens the sets, checks them, and tells the others. only: of a dry run,
 * whose data may be others; NULL: a run follows. Collective; all ranks agree. */
Status trainer_open_data(Trainer *t, const DryRun *only);
/* predict.c. The model's outputs for a batch that is all there is, one row after another; borrowed
 * until the next. ERR_DATA where one of count outputs is no number. */
Status train_logits(Trainer *t, const Batch *batch, const float **logits);
Status logits_check(const float *logits, int64_t count);
/* trainer_view.c. The figure of an evaluation that its run goes by. */
const BestMetric *trainer_metric(const Trainer *t);

#endif
