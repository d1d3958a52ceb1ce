/* train: builds everything from a Config, and the step. Read train_step and you have read the program. */
#ifndef WEFT_TRAIN_H
#define WEFT_TRAIN_H

#include "checkpoint.h"
#include "observe.h"
#include "optim.h"
#include "pipeline.h"

/* Everything one run is made of. */
typedef struct Trainer {
    const Config *config; /* borrowed */
    const World *world;   /* borrowed */
    Backend *backend;
    DataSet train_set, test_set;
    Graph *graph;
    Plan *plan;
    Comm *comm;
    Executor *executor;
    Optim *optim;
    Loader *loader;
    int64_t batch, micro_batch; /* global samples; samples a micro-batch */
    int micros, micros_local;   /* M and M/dp */
    int64_t steps_per_epoch, steps;
    int64_t step;       /* done */
    double best_metric; /* of the evaluations so far: top-1, or minus the loss; NaN: none yet */
    double data_wait_s; /* for the loader's next micro-batch, so far */
} Trainer;

typedef struct StepResult {
    double loss, top1, lr; /* over the global batch, the same on every rank */
    double grad_norm; /* likewise; NaN, not known, where neither optim.clip nor `logged` asks */
    int64_t rows;
    bool logged; /* first, last, or train.log_every says so: the step has a line in metrics.jsonl */
    float signal; /* sum of what ranks gave to executor_signal before this step */
} StepResult;

/* Sets everything up to just before the first step: data sets, model, plan, memory, initial parameters. What is wrong with
 * the configuration or the data is found here. NULL on error. Owner: the caller. Collective; all ranks agree. */
Status trainer_new(Trainer **trainer, const Config *config, const World *world);
void trainer_free(Trainer **trainer); /* Collective. */
/* The next optimizer step; the first one opens the loader, which may fail. After that a sample that cannot be read ends
 * the job (die_as). Collective; all ranks agree. */
Status train_step(Trainer *trainer, StepResult *result);
/* One pass over set, every sample once, with running statistics. The same line on every rank, the same bits on every
 * number of ranks. confusion: classes x classes counts, [true][predicted], zeroed by the caller; NULL: not wanted.
 * Collective; all ranks agree. */
Status train_evaluate(Trainer *trainer, const DataSet *set, EvalLine *line, int64_t *confusion);
/* As checkpoint_save and checkpoint_load. After a load the next step is the one after the checkpoint's; params_only:
 * without the optimizer's state, for evaluation. Collective; all ranks agree. */
Status train_save(Trainer *trainer, const char *path);
Status train_load(Trainer *trainer, const char *path, bool params_only);
/* The whole run: resume, steps, evaluations, checkpoints, summary. ERR_STOPPED: a signal ended it early, with a checkpoint.
 * One at a time in a process, whose handlers of SIGTERM, SIGINT and SIGUSR1 it takes. Collective. */
Status train_run(const Config *config, const World *world);

#endif
