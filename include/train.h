/* train: builds everything from a Config, and the step. Read train_step and you have read the program. */
#ifndef WEFT_TRAIN_H
#define WEFT_TRAIN_H

#include "checkpoint.h"
#include "observe.h"
#include "optim.h"
#include "pipeline.h"

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
typedef struct Trainer {
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
    int *rule;            /* owned: of each parameter, see optim_assign */
    ParamUpdate *updates; /* owned: likewise what its update needs */
    float *slices;        /* owned: slices of a tensor that is put together; NULL: none is */
    size_t slices_bytes;
    int *range_param;      /* owned: the parameter of each of the optimizer's ranges */
    struct Shares *shares; /* what the replicas share out (grid.zero); NULL: nothing */
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
} Trainer;

typedef struct StepResult {
    /* Over the global batch, the same on every rank. On a device loss and top1 are those of the step before, so that the host
     * does not wait, but where the step is logged or in fp16. */
    double loss, top1, lr;
    double grad_norm; /* likewise; NaN where it is not known: nobody asked */
    bool skipped;     /* a gradient overflowed: nothing was updated */
    bool logged; /* first, last, or train.log_every says so: the step has a line in metrics.jsonl */
    /* of the steps that have become known by this one: none, one or two */
    int64_t rows;
    bool stop_asked, save_asked; /* any rank did, by executor_ask before them */
} StepResult;

/* Sets everything up to just before the first step: data sets, model, plan, memory, initial parameters. What is wrong with
 * the configuration or the data is found here. NULL on error. Owner: the caller. Collective; all ranks agree. */
Status trainer_new(Trainer **trainer, const Config *config, const World *world);
void trainer_free(Trainer **trainer); /* Collective. */
/* As trainer_new, but for ranks of which this process is none: everything that is decided before a step, and no memory,
 * communicator or executor. Where there is no GPU, a plan for one is made for a model of GPU that the backend knows. plan is stage
 * 0's; train_plan_stage makes any stage's. Not collective. */
typedef struct DryRun {
    int ranks;
    const char *gpu;     /* see BackendOptions */
    const DataSet *data; /* borrowed: instead of what the configuration's files hold; may be NULL */
} DryRun;
Status trainer_dry_run(Trainer **trainer, const Config *config, const World *world,
                       const DryRun *only);
/* Owner: the caller, who frees it before the trainer. */
Status train_plan_stage(const Trainer *trainer, int stage, Plan **plan);
/* What one rank that runs a plan holds, by kind, in bytes: the plan's own, the loader's micro-batches, what messages of sums
 * are kept in, and what is there before any of it: the graph with the code and objects of its kernels, as measured. */
typedef struct TrainBytes {
    size_t params, gradients, state, activations, cache, workspace, messages, data, program, all;
    size_t
        host; /* beside a device: the loader's micro-batches, slices and messages that go this way; else 0 */
} TrainBytes;
TrainBytes train_bytes(const Trainer *trainer, const Plan *plan);
bool train_sums_by_mpi(const Trainer *trainer); /* Do replicas' sums go by messages? */
/* Does NCCL join the ranks' GPUs? Before ranks know: would it, with a GPU for each. */
bool train_joined(const Trainer *trainer);
/* Micro-batches of data that the loader of a rank that runs this plan keeps. */
int train_data_slots(const Trainer *trainer, const Plan *plan);
/* Memory of this process that no file backs, shared memory divided by those who share it, and the most that it ever had,
 * libraries and shared pages included; -1 where the kernel does not say. Heap that is free is given back first. */
typedef struct MemoryUse {
    double own_bytes, peak_bytes;
} MemoryUse;
MemoryUse memory_use(void);
/* Has the sum of gradients the same bits on every grid? Else for this number of replicas only. */
bool train_bits_hold(const Trainer *trainer);
/* Where replicas cannot share micro-batches evenly: how many are padding, and what would be better. NULL: none are. Owner:
 * the caller. */
char *train_padding(const Trainer *trainer);
/* Does this rank hold a value of the parameter, as its own? A parameter tied to another one here is that one. */
bool train_holds(const Trainer *trainer, int param);
/* Does this rank write parameters that all replicas are to have? Of replicas that share their memory the first one does. */
bool train_sets_params(const Trainer *trainer);
/* Norm of the last step's gradient, the same bits on every grid. Collective. */
double train_grad_norm(Trainer *trainer);
/* The next optimizer step; the first one opens the loader, which may fail. After that a sample that cannot be read ends
 * the job (die_as). Collective; all ranks agree. */
Status train_step(Trainer *trainer, StepResult *result);
/* Waits for the statistics of the last step, where they are not in result yet. Collective. */
void train_step_stats(Trainer *trainer, StepResult *result);
/* What of a step is recorded and replayed, or why nothing is, in words. */
const char *train_graphs(const Trainer *trainer);
/* One pass over set, every sample once, with running statistics. The same line on every rank, the same bits on every
 * number of ranks. confusion: classes x classes counts, [true][predicted], zeroed by the caller; NULL: not wanted.
 * Collective; all ranks agree. */
Status train_evaluate(Trainer *trainer, const DataSet *set, EvalLine *line, int64_t *confusion);
/* A text that goes on: `tokens` new ones behind the prompt. */
typedef struct Sampling {
    const int32_t *prompt; /* borrowed; at least one token */
    int64_t prompt_count, tokens;
    double temperature; /* logits are divided by it; 0: always the likeliest token */
    int64_t top_k;      /* only the so many likeliest; 0: all */
    uint64_t seed;
    void (*take)(void *user, int32_t token); /* called with each new token */
    void *user;
} Sampling;
/* Draws each token from the model's softmax behind the last model.context ones; the same seed, the same tokens. The trainer
 * is alone, its data are tokens, its batch is one sample; its model has the prompt's tokens, and top_k of them. */
Status train_generate(Trainer *trainer, const Sampling *sampling);
/* As checkpoint_save and checkpoint_load. After a load the next step is the one after the checkpoint's; params_only:
 * without the optimizer's state, for evaluation. Collective; all ranks agree. */
Status train_save(Trainer *trainer, const char *path);
Status train_load(Trainer *trainer, const char *path, bool params_only);
/* The whole run: resume, steps, evaluations, checkpoints, summary. ERR_STOPPED: a rank was asked to stop (stop_wanted), and
 * it ended early, with a checkpoint of every step made. Collective. */
Status train_run(const Config *config, const World *world);

#endif
