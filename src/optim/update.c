/* Performs one update of all pieces, and computes sums of squares of the gradient, for clipping. A
 * norm is computed from a sum of squares for each FLAT_CHUNK elements of the tensor. Every rank
 * adds the sums of all ranks in the same order.
 *
 * All tensors whose rule needs norms are measured before the first of them is updated, so that the
 * host waits once and ranks exchange sums once. There is one exception: without shards, the scratch
 * memory (of lamb and of rules on whole tensors) has room for one tensor only. If a rule uses it,
 * each tensor is updated before the next one is measured. */
#include "rules.h"

#include <math.h>
#include <string.h>

/* ---- norms ---- */

/* Writes the sums to optim->partial or, if sums are exact, to optim->exact_chunk. */
void optim_add_squares(Optim *optim, int set, const OptimPiece *piece, const float *x)
{
    int range = (int)(piece - optim->piece);
    int64_t first = (piece->offset - optim->range[range].offset) / FLAT_CHUNK;
    int64_t at = set * optim->chunks + optim->chunk[range] + first;
    Stream *s = optim->backend->table->stream(optim->backend);
    const FlatTable *flat = optim->backend->table->flat;
    if (optim->exact)
        flat->exact_squares(s, optim->exact_chunk + at, x, piece->elements);
    else
        flat->squares(s, optim->partial + at, x, piece->elements);
}

/* For each range from `first` to `last` - 1, adds up the exact sums of its chunks, then over the
 * ranks, and writes the result to optim->range_squares. sets: number of norms. */
static void join_exact(Optim *optim, int sets, int first, int last)
{
    const BackendTable *table = optim->backend->table;
    Stream *s = table->stream(optim->backend);
    const int ranges = optim->range_count, count = last - first;
    for (int set = 0; set < sets; ++set) {
        const int at = set * ranges + first;
        table->flat->join_squares(s, optim->exact_range + at, optim->sums + first,
                                  optim->exact_chunk + set * optim->chunks,
                                  optim->first_chunk + first, count);
        table->copy(s, optim->exact_host + at, optim->exact_range + at,
                    (size_t)count * sizeof(SquareSum));
    }
    table->sync(s);
    for (int set = 0; optim->merge.merge && set < sets; ++set)
        optim->merge.merge(optim->merge.user, optim->exact_host + set * ranges + first, first,
                           count);
    for (int set = 0; set < sets; ++set)
        for (int i = first; i < last; ++i)
            optim->range_squares[set * ranges + i] =
                square_sum_value(&optim->exact_host[set * ranges + i]);
}

/* Copies the sums of the chunks of ranges `first` to `last` - 1 to the host and, with shards,
 * gathers the sums of the chunks of other ranks. sets: number of norms. */
static void gather_squares(Optim *optim, int sets, int first, int last)
{
    const BackendTable *table = optim->backend->table;
    Stream *s = table->stream(optim->backend);
    int64_t at = optim->chunk[first], count = optim->chunk[last] - at;
    for (int set = 0; set < sets; ++set, at += optim->chunks)
        table->copy(s, optim->chunk_squares + at, optim->partial + at,
                    (size_t)count * sizeof(double));
    table->sync(s);
    if (optim->shard.gather) optim->shard.gather(optim->shard.user, optim->chunk_squares, sets);
}

/* Returns the sum of a range's sums of squares, chunk by chunk. set: number of the norm. */
static double sum_squares(const Optim *optim, int set, int range)
{
    double sum = 0;
    for (int64_t c = optim->chunk[range]; c < optim->chunk[range + 1]; ++c)
        sum += optim->chunk_squares[set * optim->chunks + c];
    return sum;
}

/* Computes the sum of squares of each chunk of this rank's gradients. */
static void measure_gradients(Optim *optim, const float *grads)
{
    const BackendTable *table = optim->backend->table;
    Stream *s = table->stream(optim->backend);
    const int64_t count = optim->grad_chunk_count;
    if (count > 0 && optim->exact)
        table->flat->exact_chunk_squares(s, optim->exact_chunk, grads, optim->grad_chunk, count);
    else if (count > 0)
        table->flat->chunk_squares(s, optim->partial, grads, optim->grad_chunk, count);
}

/* Writes the sum of squares of each range's gradient to optim->sums, in the backend's memory. */
static void sum_gradients(Optim *optim, const float *grads)
{
    const BackendTable *table = optim->backend->table;
    Stream *s = table->stream(optim->backend);
    measure_gradients(optim, grads);
    if (optim->exact)
        table->flat->join_squares(s, optim->exact_range, optim->sums, optim->exact_chunk,
                                  optim->first_chunk, optim->range_count);
    else
        table->flat->range_sums(s, optim->sums, optim->partial, optim->first_chunk,
                                optim->range_count);
}

void optim_grad_squares(Optim *optim, const float *grads, double *out)
{
    const BackendTable *table = optim->backend->table;
    Stream *s = table->stream(optim->backend);
    if (optim->exact) {
        measure_gradients(optim, grads);
        join_exact(optim, 1, 0, optim->range_count);
        memcpy(out, optim->range_squares, (size_t)optim->range_count * sizeof *out);
        return;
    }
    if (optim->shard.gather) {
        measure_gradients(optim, grads);
        gather_squares(optim, 1, 0, optim->range_count);
        for (int i = 0; i < optim->range_count; ++i) out[i] = sum_squares(optim, 0, i);
        return;
    }
    sum_gradients(optim, grads);
    table->copy(s, out, optim->sums, (size_t)optim->range_count * sizeof *out);
    table->sync(s);
}

/* Returns whether every update reads its gradient scale from optim->numbers, which optim_clip
 * changes, and this rank has all gradients. */
bool optim_can_clip(const Optim *optim)
{
    return optim->numbers && optim->norm_count == 0 && !optim->needs_whole_tensors &&
           !optim->shard.gather;
}

void optim_clip(Optim *optim, const float *grads, double limit)
{
    const BackendTable *table = optim->backend->table;
    sum_gradients(optim, grads);
    for (int i = 0; i < optim->rule_count; ++i)
        table->flat->clip(table->stream(optim->backend), &optim->numbers[i].grad_scale, optim->sums,
                          optim->range_count, limit);
}

/* ---- an update ---- */

/* Arguments of an update that are the same for all pieces. */
typedef struct Step {
    Optim *optim;
    float *params;
    const float *grads;
} Step;

float optim_lr_of(const Optim *optim, const OptimRule *rule)
{
    return (float)((double)(rule->for_biases ? optim->bias_lr : optim->lr) * rule->lr_ratio);
}

static OptimArgs args_of(const Step *step, const OptimPiece *piece)
{
    return (OptimArgs){.w = step->params + piece->value_offset,
                       .g = step->grads + piece->grad_arena_offset,
                       .lr = optim_lr_of(step->optim, piece->rule),
                       .grad_scale = step->optim->scale};
}

/* Updates a piece of a rule with update, and moves its average. */
static void update_piece(const Step *step, const OptimPiece *piece, const OptimArgs *args)
{
    const OptimTable *table = piece->rule->table;
    if (table->whole)
        optim_step_whole(step->optim, piece, args);
    else
        table->update(step->optim, piece, args);
    optim_average_piece(step->optim, piece, step->params);
}

/* Returns whether the range's rule needs norms. */
static bool has_norms(const Optim *optim, int range)
{
    return optim->piece[range].rule->table->norms > 0;
}

/* For each range from `first` to `last` - 1, adds up the sums of its chunks over all ranks, and
 * writes the result to optim->range_squares. */
static void join_squares(Optim *optim, int first, int last)
{
    gather_squares(optim, optim->norm_count, first, last);
    for (int set = 0; set < optim->norm_count; ++set)
        for (int i = first; i < last; ++i)
            optim->range_squares[set * optim->range_count + i] =
                has_norms(optim, i) ? sum_squares(optim, set, i) : 0;
    if (optim->shard.join)
        optim->shard.join(optim->shard.user, optim->range_squares, optim->norm_count);
}

/* Updates those of the ranges `first` to `last` - 1 whose rule needs norms. With shards
 * (Optim.shard) the call must cover all ranges, because ranks exchange the sums of all ranges at
 * once. */
static void step_ranges(const Step *step, int first, int last)
{
    Optim *optim = step->optim;
    for (int i = first; i < last; ++i) {
        const OptimPiece *piece = &optim->piece[i];
        OptimArgs args = args_of(step, piece);
        if (has_norms(optim, i) && piece->elements > 0)
            piece->rule->table->measure(optim, piece, &args);
    }
    if (optim->exact)
        join_exact(optim, optim->norm_count, first, last);
    else
        join_squares(optim, first, last);
    for (int i = first; i < last; ++i) {
        double norm[OPTIM_NORMS];
        const OptimPiece *piece = &optim->piece[i];
        OptimArgs args = args_of(step, piece);
        args.norm = norm;
        for (int set = 0; set < optim->norm_count; ++set)
            norm[set] = sqrt(optim->range_squares[set * optim->range_count + i]);
        if (has_norms(optim, i) && piece->elements > 0) update_piece(step, piece, &args);
    }
}

/* Updates the pieces of a rule that has update_pieces. */
static void step_rule(const Step *step, const OptimRule *rule)
{
    Optim *optim = step->optim;
    int count = 0;
    for (int i = 0; i < optim->joined_count; ++i) {
        const OptimPiece *piece = &optim->joined[i];
        if (piece->rule != rule) continue;
        const int slots = rule->table->slots;
        optim->update_piece[count++] =
            (UpdatePiece){.w = step->params + piece->value_offset,
                          .g = step->grads + piece->grad_arena_offset,
                          .m = slots > 0 ? optim_slot(optim, 0, piece) : NULL,
                          .v = slots > 1 ? optim_slot(optim, 1, piece) : NULL,
                          .average = optim_average_of(optim, piece),
                          .copy = piece->copy,
                          .n = piece->elements,
                          .weight_decay = optim_decay(piece)};
    }
    if (count > 0) rule->table->update_pieces(optim, rule, optim->update_piece, count);
}

/* Updates the pieces whose rule needs neither norms nor whole tensors, and moves the averages of
 * running statistics. */
static void step_runs(const Step *step)
{
    Optim *optim = step->optim;
    for (int i = 0; i < optim->rule_count; ++i)
        if (optim->rule[i].table->update_pieces) step_rule(step, &optim->rule[i]);
    for (int i = 0; i < optim->joined_count; ++i) {
        const OptimTable *table = optim->joined[i].rule->table;
        if (table->update_pieces || table->norms > 0 || table->whole) continue;
        const OptimArgs args = args_of(step, &optim->joined[i]);
        update_piece(step, &optim->joined[i], &args);
    }
    for (int i = 0; i < optim->joined_statistic_count; ++i)
        optim_average_piece(optim, &optim->joined_statistic[i], step->params);
}

/* Updates the pieces whose rule works on whole tensors. */
static void step_whole(const Step *step)
{
    for (int i = 0; i < step->optim->range_count; ++i) {
        const OptimPiece *piece = &step->optim->piece[i];
        OptimArgs args = args_of(step, piece);
        if (piece->rule->table->whole && piece->elements > 0) update_piece(step, piece, &args);
    }
}

void optim_begin(Optim *optim, const UpdateRates *rates, double grad_scale)
{
    const BackendTable *table = optim->backend->table;
    optim->is_first_update = optim->step == 0;
    ++optim->step;
    optim->lr = (float)rates->lr;
    optim->bias_lr = (float)rates->bias_lr;
    optim->scale = (float)grad_scale;
    optim_average_start_update(optim);
    for (int i = 0; i < optim->rule_count; ++i) {
        OptimRule *rule = &optim->rule[i];
        rule->momentum = (float)optim_momentum_at(rule, rates->warm);
        if (!optim->numbers) continue;
        UpdateNumbers numbers = {.lr = optim_lr_of(optim, rule),
                                 .grad_scale = optim->scale,
                                 .momentum = rule->momentum,
                                 .average_rate = optim->average_rate};
        adam_corrections(optim, rule, &numbers.correct1, &numbers.correct2);
        table->flat->put(table->stream(optim->backend), &optim->numbers[i], &numbers,
                         sizeof numbers);
    }
}

bool optim_repeats(const Optim *optim)
{
    return optim->numbers && !optim->is_first_update && optim->norm_count == 0 &&
           !optim->needs_whole_tensors;
}

/* Updates all pieces with a rule that updates them together, and moves the averages. */
static void step_together(const Step *step)
{
    Optim *optim = step->optim;
    optim->table->update_all(optim, step->params, step->grads);
    for (int i = 0; i < optim->joined_count; ++i)
        optim_average_piece(optim, &optim->joined[i], step->params);
    for (int i = 0; i < optim->joined_statistic_count; ++i)
        optim_average_piece(optim, &optim->joined_statistic[i], step->params);
}

void optim_update(Optim *optim, float *params, const float *grads)
{
    Step step = {optim, params, grads};
    if (optim->table->update_all) {
        step_together(&step);
        return;
    }
    step_runs(&step);
    /* number of ranges of a call: all, or one (see the top of this file) */
    bool all = optim->shard.gather || optim->scratch_elements == 0;
    int per_call = all ? optim->range_count : 1;
    for (int i = 0; i < optim->range_count && optim->norm_count > 0; i += per_call)
        if (all || has_norms(optim, i)) step_ranges(&step, i, i + per_call);
    if (optim->needs_whole_tensors) step_whole(&step);
}

void optim_step(Optim *optim, float *params, const float *grads, double lr, double grad_scale)
{
    optim_begin(optim, &(UpdateRates){.lr = lr, .bias_lr = lr, .warm = 1}, grad_scale);
    optim_update(optim, params, grads);
}
