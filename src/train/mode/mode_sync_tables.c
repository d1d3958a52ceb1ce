/* Mode sync for models with sparse tables: the ranks that own rows update them at each step. */
#include "sparse.h"
#include "step_mode.h"

/* Updates the rows and the parameters of this rank's stage; a stage may have no tables. */
static void update(Trainer *t, UpdateArgs args)
{
    if (t->tables) tables_update(t->tables, args.rates.lr, args.scale);
    step_update_params(t, args);
}

const StepMode mode_sync_tables = {.ranks = STEP_RANKS_TOGETHER,
                                   .forward_backward = sparse_forward_backward_batch,
                                   .row_grad_squares = sparse_grad_squares,
                                   .update = update};
