/* train.ema in a run: which models can have it, and the use of the average for an evaluation. The
 * optimizer moves it (src/optim/average.c). */
#include "average.h"

Status average_check(const Trainer *t)
{
    if (t->config->train.ema == 0 || t->graph->table_count == 0) return OK;
    return config_fail_key(t->config, "train.ema",
                           "the model has sparse tables, of whose rows there is no average: "
                           "remove it");
}

/* Replicas that share the memory of their parameters wait for each other first, because another
 * one may still copy them to a checkpoint. */
void average_swap(Trainer *t)
{
    if (t->config->train.ema == 0) return;
    if (t->comm->params_shared) world_barrier(&t->grid.dp_world);
    optim_average_swap(t->optim, executor_params(t->executor));
    executor_params_changed(t->executor);
}
