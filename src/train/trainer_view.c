/* Functions with which other modules read a trainer: accessors, functions for measurements, and
 * texts for the log about equal bits and padding. */
#include "trainer.h"
#include "mode/step_mode.h"

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
    return t->chunk_begin;
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
    return best_metric(t->config, data_has_tokens(&t->train_set));
}

GridShape trainer_shape(const Trainer *t)
{
    return t->shape;
}

TrainSizes trainer_sizes(const Trainer *t)
{
    return (TrainSizes){.batch = t->batch,
                        .micro_batch = t->micro_batch,
                        .micro_batches = t->micro_batches,
                        .micro_batches_local = t->micro_batches_local,
                        .counted_units_per_sample = t->counted_per_sample,
                        .steps_per_epoch = t->steps_per_epoch,
                        .steps = t->steps};
}

double trainer_data_wait_s(const Trainer *t)
{
    return t->data_wait_s;
}

bool trainer_has_averages(const Trainer *t)
{
    return t->loaded_averages;
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

void trainer_time_operations(Trainer *t, OperationTimes *times)
{
    executor_time_operations(t->executor, times);
}

void trainer_pretend(Trainer *t, const PartSeconds *seconds)
{
    executor_pretend(t->executor, seconds);
}

void trainer_update_once(Trainer *t, double lr)
{
    optim_step(t->optim, executor_params(t->executor), executor_grads(t->executor), lr, 1);
}

int train_sum_slices(const Trainer *t)
{
    enum { CPU_SLICES = 8 };
    const Config *c = t->config;
    int slices = (int)c->train.sum_slices;
    if (slices == 0 && c->train.device != DEVICE_CUDA) slices = CPU_SLICES;
    return c->train.reproducible == REPRODUCIBLE_ANY_GRID && slices > 1 ? slices : 0;
}

bool train_same_bits(const Trainer *t)
{
    return !t->config->train.sync_batch_norm && !step_mode_is_local(t->mode) &&
           (t->shape.tp == 1 || train_sum_slices(t) > 0);
}

char *train_bits_limit(const Trainer *t)
{
    int dp = t->shape.dp;
    if (train_same_bits(t)) return NULL;
    if (t->mode->bits_limit) return t->mode->bits_limit(t);
    if (!t->config->train.sync_batch_norm)
        return mem_format("sums inside layers are divided among the ranks of a tensor group, so "
                          "these bits hold for tp=%d only; they do not depend on it with "
                          "train.reproducible: any_grid and train.sum_slices: 8",
                          t->shape.tp);
    /* grid.zero 2 and 3 add micro-batches in another order than 0 and 1 */
    const char *with = dp == 1 || t->micro_batches_local == 1 ? ""
                       : plan_shards_gradients(t->plan)       ? " with grid.zero 2 or 3"
                                                              : " with grid.zero 0 or 1";
    return mem_format("train.sync_batch_norm: statistics are over %d micro-batch%s at a time, so "
                      "these bits hold for dp=%d%s only",
                      dp, dp == 1 ? "" : "es", dp, with);
}

char *train_padding_text(const Trainer *t)
{
    int64_t all = (int64_t)t->micro_batches_local * t->shape.dp, fit = t->micro_batch;
    if (all == t->micro_batches) return NULL;
    while (fit > 0 && (t->batch % fit != 0 || t->batch / fit % t->shape.dp != 0)) --fit;
    char idle[64] = "";
    bool turns = t->config->train.sync_batch_norm;
    int first_micro_batches =
        deal_micro_run(turns ? DEAL_TURNS : t->plan->deal, 0, t->micro_batches_local).count;
    int without = t->shape.dp - (t->micro_batches + first_micro_batches - 1) / first_micro_batches;
    if (without > 0)
        snprintf(idle, sizeof idle, "; %d replica%s nothing to do", without,
                 without == 1 ? " has" : "s have");
    return mem_format(
        "%d micro-batch%s over %d replicas: each takes %d, so %lld of %lld are padding; %s=%lld "
        "would leave none%s",
        t->micro_batches, t->micro_batches == 1 ? "" : "es", t->shape.dp, t->micro_batches_local,
        (long long)(all - t->micro_batches), (long long)all,
        fit > 0 ? "train.micro_batch" : "train.batch",
        (long long)(fit > 0 ? fit : all * t->micro_batch), idle);
}
