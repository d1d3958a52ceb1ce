/* Mode sync for models with sparse tables: the ranks that own rows update them at each step. */
#include "sparse.h"
#include "step_mode.h"

static StepBatch forward_backward(Trainer *t)
{
    return sparse_forward_backward(t, position_batch_samples(t, t->step));
}

/* A stage without tables has parameters only. */
static void update(Trainer *t, UpdateArgs args)
{
    if (t->tables) tables_update(t->tables, args.lr, args.scale);
    step_update_params(t, args);
}

const StepMode mode_sync_tables = {.forward_backward = forward_backward,
                                   .row_grad_squares = sparse_grad_squares,
                                   .update = update};
