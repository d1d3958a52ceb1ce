/* Makes training steps of a model by the executor and an optimizer, without a trainer, for
 * comparisons with golden losses. */
#ifndef WEFT_TESTS_GOLDEN_RUN_H
#define WEFT_TESTS_GOLDEN_RUN_H

#include "golden.h"
#include "one_rank.h"

typedef struct Run {
    OneRank one;
    Optim *optim;
} Run;

static inline Status make_optimizer(Run *r)
{
    const Graph *g = r->one.graph;
    const Plan *plan = r->one.plan;
    OptimRange *range = mem_new((size_t)g->param_count * sizeof *range);
    int count = 0;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (!p->info.is_statistic && !p->frozen && p->tied_param < 0)
            range[count++] = (OptimRange){
                .offset = plan->param_offset[i], .elements = p->elements, .decay = p->info.decay};
    }
    Status status =
        optim_new(&r->optim, r->one.config, r->one.backend, range, count, plan->trained_elements);
    mem_free(&range);
    return status;
}

/* Makes the optimizer of a run whose field `one` is open, and sets the parameters to those of the
 * script (golden_params). */
static inline Status run_start(Run *r)
{
    TRY(make_optimizer(r));
    golden_params(r->one.graph, r->one.plan, executor_params(r->one.executor));
    executor_params_changed(r->one.executor);
    return OK;
}

static inline void run_close(Run *r)
{
    optim_free(&r->optim);
    one_rank_close(&r->one);
}

/* Makes a training step of one micro-batch, and returns its loss. */
static inline double train_once(Run *r, MicroBatch *batch, int step)
{
    Executor *e = r->one.executor;
    /* the loss has a row for each sample, or for each pixel of a sample */
    const Shape y = r->one.graph->node[r->one.graph->loss_node].spec.y.shape;
    const float rows = (float)(shape_count(y) / LOSS_COLUMNS);
    StepBatch of = {.step = (uint64_t)step, .scale = 1.0f / rows, .micro_batches = 1};
    const float *metrics = one_rank_step(&r->one, batch, of);
    double loss = (double)(metrics[METRIC_LOSS] / metrics[METRIC_ROWS]);
    optim_step(r->optim, executor_params(e), executor_grads(e), r->one.config->optim.lr, 1);
    executor_params_changed(e);
    return loss;
}

#endif
