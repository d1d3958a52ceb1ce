/* Opens and closes the loader from which a trainer's steps read, and prepares the first step. */
#include "step_loader.h"

#include "position.h"
#include "../chunk_share.h"
#include "../mode/sparse.h"
#include "../mode/step_mode.h"

Deal step_deal(const Trainer *t)
{
    return t->config->train.sync_batch_norm ? DEAL_TURNS : t->plan->deal;
}

/* Opens a loader for the micro-batches whose gradients this replica adds. */
static Status open_loader(Trainer *t, FieldMemory chunks)
{
    const Deal deal = step_deal(t);
    int count = t->micro_batches_local;
    mem_free(&t->micro_number);
    t->micro_number = mem_new((size_t)count * sizeof *t->micro_number);
    for (int i = 0; i < count; ++i)
        t->micro_number[i] = deal_number(deal, i, count, t->grid.dp_rank, t->shape.dp);
    Position at = position_after(t, t->step);
    LoaderPlan plan = {.batch = t->batch,
                       .micro_batch = t->micro_batch,
                       .micro_count = count,
                       .micro = t->micro_number,
                       .skips_inputs = !t->plan->reads_data,
                       .skips_labels = !t->plan->reads_labels,
                       .epoch = at.epoch,
                       .step = at.step,
                       .shift = at.sample - at.step * t->batch,
                       .training = true,
                       .slots = train_data_slots(t, t->plan) + sparse_batches_out(t, t->plan),
                       .workers = train_workers(t, &t->train_set),
                       .backend = t->backend};
    plan.levels = train_box_grids(t, plan.grid);
    plan.chunks = chunks;
    return loader_new(&t->loader, &t->train_set, t->config, plan);
}

Status step_loader_open(Trainer *t)
{
    FieldMemory chunks;
    chunk_share_new(&t->chunk_memory, t, &t->train_set, &chunks);
    TRY(status_agree(t->world, open_loader(t, chunks)));
    t->stats_step = t->step;
    t->source = loader_source(t->loader);
    /* with sparse tables the source also fetches the rows of a micro-batch's ids */
    if (t->tables) t->source = tables_source(t->tables, &t->source);
    return OK;
}

Status train_begin_steps(Trainer *t)
{
    if (t->loader) return OK;
    TRY(step_loader_open(t));
    if (t->mode->start) t->mode->start(t);
    t->is_first_step = true;
    return OK;
}

void step_loader_close(Trainer *t)
{
    if (t->tables) tables_forget(t->tables);
    if (t->loader) t->unpacked_chunks += loader_unpacked_chunks(t->loader);
    loader_free(&t->loader);
    node_memory_free(&t->chunk_memory);
}
