/* Opens and closes the loader that a trainer's steps read from, and prepares the first step. */
#include "step_loader.h"

#include "position.h"
#include "../mode/sparse.h"
#include "../mode/step_mode.h"

/* Each replica reads a block of consecutive micro-batches. With sharded gradients or synchronised
 * batch norms the replicas read in turn (round-robin) instead; both do, so that the micro-batches
 * over which a batch norm averages do not depend on grid.zero. */
static Status open_loader(Trainer *t)
{
    bool in_turn = train_takes_turns(t);
    Position at = position_after(t, t->step);
    LoaderPlan plan = {.batch = t->batch,
                       .micro_batch = t->micro_batch,
                       .micro_first = t->grid.dp_rank * (in_turn ? 1 : t->micros_local),
                       .micro_count = t->micros_local,
                       .micro_gap = in_turn ? t->shape.dp - 1 : 0,
                       .no_x = !t->plan->reads_data,
                       .no_y = !t->plan->reads_labels,
                       .epoch = at.epoch,
                       .step = at.step,
                       .shift = at.sample - at.step * t->batch,
                       .training = true,
                       .slots = train_data_slots(t, t->plan) + sparse_batches_out(t, t->plan),
                       .workers = train_workers(t, &t->train_set),
                       .backend = t->backend};
    return loader_new(&t->loader, &t->train_set, t->config, plan);
}

Status step_loader_open(Trainer *t)
{
    TRY(status_agree(t->world, open_loader(t)));
    t->known = t->step;
    t->source = loader_source(t->loader);
    /* with sparse tables a micro-batch comes with the rows of its ids */
    if (t->tables) t->source = tables_source(t->tables, &t->source);
    return OK;
}

Status train_begin_steps(Trainer *t)
{
    if (t->loader) return OK;
    TRY(step_loader_open(t));
    if (t->mode->start) t->mode->start(t);
    t->first_step = true;
    return OK;
}

void step_loader_close(Trainer *t)
{
    if (t->tables) tables_forget(t->tables);
    loader_free(&t->loader);
}
