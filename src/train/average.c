/* train.ema in a run: refuses models that cannot have an average, and exchanges parameters and
 * average for an evaluation. The optimizer updates the average (src/optim/average.c). */
#include "average.h"

Status average_check(const Trainer *t)
{
    if (t->config->train.ema == 0 || t->graph->table_count == 0) return OK;
    return config_fail_key(t->config, "train.ema",
                           "the model has sparse tables, of whose rows there is no average: "
                           "remove it");
}

/* If replicas share the memory of parameters, they wait for each other before the exchange, because
 * one of them may still be copying the parameters for a checkpoint. */
void average_swap(Trainer *t)
{
    if (t->config->train.ema == 0) return;
    if (t->comm->params_shared) world_barrier(&t->grid.dp_world);
    optim_average_swap(t->optim, executor_params(t->executor));
    executor_params_changed(t->executor);
}
