/* What a trainer is made of. */
#ifndef WEFT_TRAIN_TRAINER_H
#define WEFT_TRAIN_TRAINER_H

#include "train.h"

/* What is known of a step once the device has done it. */
typedef struct StepStats {
    double loss, top1;
} StepStats;

/* fp16's gradients are those of the loss times a power of two, which the update divides by. A step whose gradients overflow all
 * the same changes nothing but this factor. Other precisions: 1. */
typedef struct LossScale {
    bool moves;
    double now, used; /* of the next step; of the last one */
    int64_t good;     /* steps without overflow since it changed */
    int64_t skipped;  /* of all steps so far */
} LossScale;

/* Everything one run is made of. */
struct Trainer {
    const Config *config; /* borrowed */
    const World *world;   /* borrowed */
    Backend *backend;
    DataSet train_set, test_set;
    char train_data[DATA_FINGERPRINT], test_data[DATA_FINGERPRINT]; /* "": a run has not asked */
    Grid grid;
    Graph *graph;
    Schedule *schedule;
    int channel_depth;
    int *first; /* owned: nodes where the chunks of the model begin, and the end */
    int *block; /* owned: graph_blocks */
    Plan *plan;
    Comm *comm; /* over grid.dp_world */
    Executor *executor;
    Optim *optim;
    /* owned: of each parameter, see optim_assign */
    int *rule;
    /* owned: likewise what its update needs */
    ParamUpdate *updates;
    /* owned: slices of a tensor that is put together; NULL: none is */
    float *slices;
    size_t slices_bytes;
    int *range_param;      /* owned: the parameter of each of the optimizer's ranges */
    struct Shards *shares; /* what the replicas shard (grid.zero); NULL: nothing */
    Loader *loader;
    int64_t batch, micro_batch; /* global samples; samples a micro-batch */
    int micros, micros_local;   /* M and ceil(M/dp) */
    int64_t rows_per_sample;    /* of the loss: 1, or the tokens of a sample */
    bool recompute;             /* activations of blocks are made again in backward */
    GridShape shape;            /* of grid, and of a design, which has none */
    bool grid_ready;            /* grid has been made */
    int64_t steps_per_epoch, steps;
    int64_t step; /* done */
    LossScale scale;
    double
        best_metric; /* of the evaluations so far: top-1; of tokens and numbers minus the loss; NaN: none yet */
    size_t program_bytes; /* by which this process has grown from data set to schedule */
    double data_wait_s;   /* for the loader's next micro-batch, so far */
    Capture update;       /* the optimizer's part of a step, where it can be replayed */
    int64_t known;        /* steps whose statistics have been read: those of the last one are */
    StepStats step_stats;
};

#endif
