/* Accessors to a trainer for the verbs of the program. */
#include "trainer.h"

#include <math.h>

const Config *trainer_config(const Trainer *t)
{
    return t->config;
}

const World *trainer_world(const Trainer *t)
{
    return t->world;
}

Backend *trainer_backend(const Trainer *t)
{
    return t->backend;
}

const Graph *trainer_graph(const Trainer *t)
{
    return t->graph;
}

const Schedule *trainer_schedule(const Trainer *t)
{
    return t->schedule;
}

const Plan *trainer_plan(const Trainer *t)
{
    return t->plan;
}

const int *trainer_cuts(const Trainer *t)
{
    return t->first;
}

const Optim *trainer_optim(const Trainer *t)
{
    return t->optim;
}

const double *trainer_lr_scales(const Trainer *t)
{
    return t->lr_scale;
}

const int *trainer_rules(const Trainer *t)
{
    return t->rule;
}

const ParamUpdate *trainer_updates(const Trainer *t)
{
    return t->updates;
}

const DataSet *trainer_train_set(const Trainer *t)
{
    return &t->train_set;
}

const DataSet *trainer_test_set(const Trainer *t)
{
    return &t->test_set;
}

const char *trainer_classes(const Trainer *t)
{
    return t->classes;
}

const BestMetric *trainer_metric(const Trainer *t)
{
    return best_metric(t->config, data_kind(&t->train_set)->next_token);
}

GridShape trainer_shape(const Trainer *t)
{
    return t->shape;
}

TrainSizes trainer_sizes(const Trainer *t)
{
    return (TrainSizes){.batch = t->batch,
                        .micro_batch = t->micro_batch,
                        .micros = t->micros,
                        .micros_local = t->micros_local,
                        .rows_per_sample = t->rows_per_sample,
                        .steps_per_epoch = t->steps_per_epoch,
                        .steps = t->steps};
}

double trainer_data_wait_s(const Trainer *t)
{
    return t->data_wait_s;
}

double trainer_device_unplanned(const Trainer *t)
{
    const BackendTable *table = t->backend->table;
    double used, left;
    if (!table->memory) return (double)NAN;
    table->memory(t->backend, &used, &left);
    return t->device_free - left - (used - (double)t->program_bytes);
}

bool trainer_watch_sums(Trainer *t, Stopwatch *waits)
{
    t->comm->waits = t->comm->size > 1 ? waits : NULL;
    return t->comm->waits != NULL;
}

void trainer_update_once(Trainer *t, double lr)
{
    optim_step(t->optim, executor_params(t->executor), executor_grads(t->executor), lr, 1);
}
