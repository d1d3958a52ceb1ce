/* Estimates the squared norm of the true gradient G and the trace tr of the covariance of a
 * sample's gradient. Let g_b be the gradient of a micro-batch with b samples, and g_B the gradient
 * of the whole batch with B samples. Both estimates follow from the mean of |g_b|^2 over the
 * micro-batches and from |g_B|^2:
 *
 *     E |g_b|^2 = |G|^2 + tr / b,  E |g_B|^2 = |G|^2 + tr / B
 *
 * Backward divides gradients by the rows of the batch, so g_b is B / b times the gradient that it
 * writes. Sums are in the order of micro-batches and parameters, so their bits do not depend on the
 * grid. Both estimates are averaged over steps before one is divided by the other, because the
 * quotient of one step is biased. */
#include "grad_noise.h"

#include "step_loader.h"

#include "../mode/step_mode.h"

#include <math.h>

/* Returns the number of trained parameters that are measured; with measured = false, the number of
 * those that are not. */
static int count_params(const Graph *g, bool measured)
{
    int count = 0;
    for (int i = 0; i < g->param_count; ++i)
        count += graph_has_one_use(g, i) == measured && !g->param[i].info.is_statistic &&
                 !g->param[i].frozen;
    return count;
}

Status grad_noise_check(const Trainer *t)
{
    static const char key[] = "train.grad_noise";
    const Config *c = t->config;
    if (!c->train.grad_noise || !t->trains) return OK;
    if (!t->backend->table->host_memory)
        return config_fail_key(c, key, "is measured on CPUs only: remove it");
    if (t->shape.tp > 1)
        return config_fail_key(c, key,
                               "needs grid.tp: 1, because each rank of a tensor group has only "
                               "parts of the gradients of micro-batches");
    if (t->mode != &mode_sync)
        return config_fail_key(c, key, "needs grid.mode: sync and a model without sparse tables");
    if (t->micro_batches < 2)
        return config_fail_key(c, key,
                               "compares the gradients of micro-batches with that of the batch, "
                               "which is one micro-batch: set train.micro_batch to less than %lld",
                               (long long)t->batch);
    if (count_params(t->graph, true) == 0)
        return config_fail_key(c, key,
                               "all parameters have several uses, whose gradients are added at the "
                               "end of a step only: remove it");
    return OK;
}

void grad_noise_start(Trainer *t)
{
    if (!t->config->train.grad_noise || !t->trains) return;
    executor_measure_micro_batches(t->executor);
    const int left_out = count_params(t->graph, false);
    if (t->world->rank == 0 && left_out > 0)
        log_info("train.grad_noise leaves out %d tensors that have several uses", left_out);
}

/* Sets square[m] to the squared norm of the gradient of this replica's micro-batch number m, summed
 * over all stages, with the gradient as backward wrote it. Collective on the stages. */
static void join_stages(const Trainer *t, double *square)
{
    const int params = t->graph->param_count, stages = t->shape.pp;
    const int64_t each = (int64_t)t->micro_batches_local * params;
    double *all = mem_new((size_t)(each * stages) * sizeof *all);
    world_allgather(&t->grid.pp_world, executor_micro_squares(t->executor),
                    (size_t)each * sizeof *all, all);
    /* the values of a parameter are 0 except on its own stage */
    for (int m = 0; m < t->micro_batches_local; ++m) {
        square[m] = 0;
        for (int i = 0; i < params; ++i)
            for (int s = 0; s < stages; ++s) square[m] += all[s * each + (int64_t)m * params + i];
    }
    mem_free(&all);
}

/* Returns the sum over all micro-batches of the squared norms of their gradients, as backward wrote
 * them. Collective. */
static double micro_squares(const Trainer *t)
{
    const int dp = t->shape.dp, local = t->micro_batches_local;
    double *mine = mem_new((size_t)local * sizeof *mine), sum = 0;
    double *all = mem_new((size_t)(local * dp) * sizeof *all);
    double *ordered = mem_new((size_t)(local * dp) * sizeof *ordered);
    join_stages(t, mine);
    world_allgather(&t->grid.dp_world, mine, (size_t)local * sizeof *mine, all);
    const Deal deal = step_deal(t);
    for (int r = 0; r < dp; ++r)
        for (int m = 0; m < local; ++m)
            ordered[deal_number(deal, m, local, r, dp)] = all[r * local + m];
    for (int k = 0; k < t->micro_batches; ++k) sum += ordered[k];
    mem_free(&mine);
    mem_free(&all);
    mem_free(&ordered);
    return sum;
}

void grad_noise_add(Trainer *t, int64_t samples)
{
    if (!executor_micro_squares(t->executor) || samples < t->batch) return;
    const double large = (double)t->batch, small = (double)t->micro_batch;
    const double scale = t->loss_scale.last * t->loss_scale.last;
    const double of_small = micro_squares(t) * (double)t->micro_batches / scale;
    const double of_large = train_grad_squares(t, true) / scale;
    t->noise.square += (large * of_large - small * of_small) / (large - small);
    t->noise.variance += (of_small - of_large) / (1 / small - 1 / large);
    ++t->noise_steps;
}

GradNoise grad_noise_take(Trainer *t)
{
    const double steps = (double)t->noise_steps;
    GradNoise mean = {NAN, NAN, NAN};
    if (steps > 0) {
        mean.square = t->noise.square / steps;
        mean.variance = t->noise.variance / steps;
        if (mean.square > 0 && mean.variance > 0) mean.scale = mean.variance / mean.square;
    }
    t->noise = (GradNoise){0};
    t->noise_steps = 0;
    return mean;
}
