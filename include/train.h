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
    int64_t step; /* done */
    double best_metric;
    double data_wait_s;
} Trainer;

typedef struct StepResult {
    double loss, top1, lr, grad_norm; /* over the global batch, the same on every rank */
    int64_t rows;
    float signal; /* sum of what ranks gave to executor_signal before this step */
} StepResult;

/* Sets everything up to just before the first step: data sets, model, plan, memory, initial parameters. Collective. */
Status trainer_new(Trainer **trainer, const Config *config, const World *world);
void trainer_free(Trainer **trainer);                    /* Collective. */
Status train_step(Trainer *trainer, StepResult *result); /* Collective. */
Status train_evaluate(Trainer *trainer, const DataSet *set, EvalLine *line,
                      int64_t *confusion);                               /* Collective. */
Status train_save(Trainer *trainer, const char *path);                   /* Collective. */
Status train_load(Trainer *trainer, const char *path, bool params_only); /* Collective. */
/* The whole run: resume, steps, evaluations, checkpoints, summary. Collective. */
Status train_run(const Config *config, const World *world);

#endif
