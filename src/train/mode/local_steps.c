/* Makes the steps of a replica that does not wait for other replicas, in modes geo and async, and
 * checks options and rules for such steps. */
#include "local_steps.h"

#include "sparse.h"

/* width of an example row, for which the state of a rule is examined. A slot of 7 floats has one
 * float for each float of the row, because no rule has a slot of 7 floats for another reason. */
enum { WIDTH = 7 };

bool local_rows_are_stateless(const OptimRule *rule)
{
    const OptimTable *table = rule->table;
    return table->row_state && table->row_state(rule->constants, WIDTH).slots == 0;
}

bool local_can_update_pieces(const OptimRule *rule)
{
    int slots = 0;
    if (!rule->table->row_state) return false;
    RowState state = rule->table->row_state(rule->constants, WIDTH);
    for (int s = 0; s < state.slots; ++s) slots += state.floats[s] == WIDTH;
    return slots == rule->slots;
}

const char *local_momentum_words(const OptimRule *rule)
{
    return local_rows_are_stateless(rule) && rule->slots > 0 ? " with momentum" : "";
}

Status local_steps_check(const Trainer *t)
{
    int64_t fit = train_fitting_micro_batch(t);
    if (fit == 0)
        return config_fail_key(t->config, "train.batch",
                               "is %lld, but each of %d ranks needs a sample of each batch: set it "
                               "to %d or more, or start %lld ranks that train",
                               (long long)t->batch, t->shape.dp, t->shape.dp, (long long)t->batch);
    if (t->micro_batches < t->shape.dp)
        return config_fail_key(t->config, "train.micro_batch",
                               "is %lld, so a batch of %lld has %d for %d ranks, each of which "
                               "needs one: set it to %lld",
                               (long long)t->micro_batch, (long long)t->batch, t->micro_batches,
                               t->shape.dp, (long long)fit);
    return OK;
}

StepBatch local_forward_backward(Trainer *t)
{
    int64_t share = t->micro_batches_local * t->micro_batch, first = t->grid.dp_rank * share;
    int64_t left = position_batch_samples(t, t->step) - first;
    return sparse_forward_backward(t, left < 0 ? 0 : left < share ? left : share);
}
