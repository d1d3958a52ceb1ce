/* The pieces that this rank updates, and their places in the memory of an optimizer. Elementwise
 * rules update adjacent pieces as one (Optim.joined). This is possible because the padding between
 * tensors is zero in parameters, gradients, state and average, and stays zero. */
#include "rules.h"

/* Returns the number of chunks of n elements. */
static int64_t chunks(int64_t n)
{
    return (n + FLAT_CHUNK - 1) / FLAT_CHUNK;
}

/* Returns whether one call of update could cover both pieces if they were adjacent. */
static bool updated_alike(const OptimPiece *a, const OptimPiece *b)
{
    const OptimRule *rule = a->rule;
    if (!rule || rule != b->rule) return rule == b->rule;
    if (a->copy || b->copy) return false;
    return rule->table->norms == 0 && !rule->table->whole &&
           (a->decay == b->decay || rule->constants->weight_decay == 0);
}

/* Returns whether one call of update can cover a and b: b follows a in every arena, with only
 * padding in between, and both are updated alike. */
static bool can_join(const OptimPiece *a, const OptimPiece *b)
{
    int64_t distance = b->offset - a->offset;
    bool adjacent = b->offset == arena_align(a->offset + a->elements) &&
                    b->value_offset - a->value_offset == distance &&
                    b->grad_arena_offset - a->grad_arena_offset == distance &&
                    b->average_offset - a->average_offset == distance;
    for (int s = 0; a->rule && s < a->rule->slots; ++s)
        adjacent = adjacent && b->state[s] - a->state[s] == distance;
    return adjacent && updated_alike(a, b);
}

/* Returns whether a piece should be updated together with its neighbours. On a CPU a large tensor
 * is updated faster alone: each thread then updates the part whose gradient it has computed and
 * still has in its cache. This saved 2 % of a step with two threads and 670,000 parameters. */
static bool joins_others(const Optim *optim, const OptimPiece *piece)
{
    enum { LARGE_ELEMENTS = 65536 };
    return !optim->backend->table->host_memory || piece->elements < LARGE_ELEMENTS;
}

/* Returns the pieces with indexes `first` to `last` - 1, joined where can_join and joins_others
 * permit it. Pieces without elements are left out. *count: number of pieces in the result. The
 * caller owns the array. */
static OptimPiece *join_pieces(const Optim *optim, int first, int last, int *count)
{
    OptimPiece *run = mem_new((size_t)(last - first + 1) * sizeof *run);
    *count = 0;
    for (int i = first; i < last; ++i) {
        const OptimPiece *piece = &optim->piece[i];
        OptimPiece *before = *count > 0 ? &run[*count - 1] : NULL;
        if (piece->elements == 0) continue;
        if (before && joins_others(optim, before) && joins_others(optim, piece) &&
            can_join(before, piece))
            before->elements = piece->offset + piece->elements - before->offset;
        else
            run[(*count)++] = *piece;
    }
    return run;
}

/* Sets the place of a piece in the scratch memory, and scratch_elements. With shards all pieces are
 * measured before the first one is updated, so a rule with SCRATCH_MEASURE needs separate memory
 * for each piece. Without shards, and for rules on whole tensors, pieces are updated one by one and
 * share the memory. *used: floats of scratch memory that earlier pieces have; raised by this
 * call. */
static void place_scratch(Optim *optim, OptimPiece *piece, int64_t *used)
{
    const OptimTable *table = piece->rule->table;
    int64_t end = piece->elements;
    if (table->scratch == SCRATCH_UNUSED || piece->elements == 0) return;
    if (optim->shard.gather && table->scratch == SCRATCH_MEASURE) {
        piece->scratch_offset = *used;
        end = *used += arena_align(piece->elements);
    }
    if (end > optim->scratch_elements) optim->scratch_elements = end;
}

/* Returns the entry of Optim.rule for a range: the configuration's rule with its rate multiplied by
 * the range's lr_scale (0 means 1) and, if optim.warmup_bias_lr is set, marked for biases or for
 * other parameters. Appends the entry if it is not there yet. */
static const OptimRule *rule_of_range(Optim *optim, const OptimRange *range)
{
    OptimRule own = optim->rule[range->rule];
    if (range->lr_scale != 0) own.lr_ratio *= range->lr_scale;
    own.for_biases = range->bias && optim->config->optim.warmup_bias_lr >= 0;
    for (int i = 0; i < optim->rule_count; ++i) {
        const OptimRule *rule = &optim->rule[i];
        if (rule->constants == own.constants && rule->lr_ratio == own.lr_ratio &&
            rule->for_biases == own.for_biases)
            return rule;
    }
    optim->rule[optim->rule_count] = own;
    return &optim->rule[optim->rule_count++];
}

void optim_make_pieces(Optim *optim, int64_t arena_elements)
{
    const OptimShard *shard = &optim->shard;
    const bool averages = optim->config->train.ema > 0;
    size_t room = (size_t)optim->averaged_count + 1;
    int64_t scratch = 0;
    bool packed = shard->gather || optim_state_is_packed(optim->config);
    optim->piece = mem_new(room * sizeof *optim->piece);
    optim->chunk = mem_new(room * sizeof *optim->chunk);
    for (int s = 0; s < optim->slots; ++s) optim->slot_elements[s] = packed ? 0 : arena_elements;
    if (averages && !packed) optim->average_elements = arena_elements;
    for (int i = 0; i < optim->averaged_count; ++i) {
        const OptimRange *range = &optim->range[i];
        int64_t first = shard->gather ? shard->first[i] : 0;
        OptimPiece *piece = &optim->piece[i];
        *piece = (OptimPiece){
            .offset = range->offset + first,
            .elements = shard->gather ? shard->count[i] : range->elements,
            .value_offset = shard->gather ? shard->value_offset[i] : range->offset,
            .grad_arena_offset = shard->gather ? shard->grad_arena_offset[i] : range->offset,
            .decay = range->decay,
            .rule = range->statistic ? NULL : rule_of_range(optim, range),
            .tensor = &range->tensor,
        };
        /* State and average are packed, one piece after the other, if there are shards, if there
         * are optim.groups, or if rule 0 works on whole tensors. Otherwise their offsets are those
         * of the parameters. */
        piece->average_offset = packed ? optim->average_elements : piece->offset;
        if (averages && packed) optim->average_elements += arena_align(piece->elements);
        if (range->statistic) continue;
        for (int s = 0; s < piece->rule->slots; ++s) {
            piece->state[s] = packed ? optim->slot_elements[s] : piece->offset;
            if (packed) optim->slot_elements[s] += arena_align(piece->elements);
        }
        place_scratch(optim, piece, &scratch);
        optim->chunk[i + 1] = optim->chunk[i] + chunks(range->elements);
    }
    optim->chunks = optim->chunk[optim->range_count];
}

void optim_join_pieces(Optim *o)
{
    mem_free(&o->joined);
    mem_free(&o->joined_statistic);
    mem_free(&o->update_piece);
    o->joined = join_pieces(o, 0, o->range_count, &o->joined_count);
    o->joined_statistic =
        join_pieces(o, o->range_count, o->averaged_count, &o->joined_statistic_count);
    o->update_piece = mem_new((size_t)(o->joined_count + 1) * sizeof *o->update_piece);
}
