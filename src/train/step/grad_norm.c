/* Computes the norm of the whole model's gradient (train_grad_norm), and the sum of squares of the
 * gradients in the arenas (train_grad_squares). The arenas do not contain the gradients of rows of
 * sparse tables. Parameters that have several uses can be left out of the sum. */
#include "../mode/step_mode.h"

#include <math.h>

/* Replaces mine[i], for each sliced parameter i, by the sum over the ranks of the tensor-parallel
 * group, added in the order of ranks. Collective on this group. */
static void add_slices(const Trainer *t, double *mine)
{
    const World *world = &t->grid.tp_world;
    int params = t->graph->param_count;
    double *all = mem_new((size_t)params * (size_t)world->size * sizeof *all);
    world_allgather(world, mine, (size_t)params * sizeof *mine, all);
    for (int i = 0; i < params; ++i) {
        if (t->graph->param[i].split.parts == 0) continue;
        mine[i] = 0;
        for (int r = 0; r < world->size; ++r) mine[i] += all[r * params + i];
    }
    mem_free(&all);
}

/* Adds the sums of squares tensor by tensor, in the same order on every grid. */
double train_grad_squares(Trainer *t, bool one_use)
{
    int params = t->graph->param_count, stages = t->shape.pp;
    double *part = mem_new((size_t)(params + 1) * sizeof *part), sum = 0;
    double *mine = mem_new((size_t)(params + 1) * sizeof *mine);
    double *all = mem_new((size_t)(params * stages + 1) * sizeof *all);
    optim_grad_squares(t->optim, executor_grads(t->executor), part);
    for (int i = 0; i < t->optim->range_count; ++i)
        if (t->graph->param[t->range_param[i]].tied_param < 0) mine[t->range_param[i]] = part[i];
    if (t->shape.tp > 1 && !t->optim->exact) add_slices(t, mine);
    world_allgather(&t->grid.pp_world, mine, (size_t)params * sizeof *mine, all);
    for (int i = 0; i < params; ++i)
        for (int s = 0; s < stages && (!one_use || graph_has_one_use(t->graph, i)); ++s)
            sum += all[s * params + i];
    mem_free(&part);
    mem_free(&mine);
    mem_free(&all);
    return sum;
}

double train_grad_norm(Trainer *t)
{
    double sum = train_grad_squares(t, false);
    if (t->mode->row_grad_squares) sum += t->mode->row_grad_squares(t);
    return sqrt(sum) / t->loss_scale.last;
}
