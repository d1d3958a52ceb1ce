/* Performs the updates of rules that work on whole tensors. The rule writes its direction to the
 * scratch memory, in the stored layout. The direction is converted to one tensor in plain order,
 * changed by the rule, and converted back. State, gradients and parameters keep their layout. This
 * file also computes, for plans, the memory that the update of a tensor needs, by any rule. */
#include "rules.h"

#include <string.h>

int64_t optim_whole_floats(const OptimTable *table, const OptimTensor *tensor)
{
    return arena_align(shape_count(tensor->shape)) + table->work_floats(tensor);
}

void optim_step_whole(Optim *optim, const OptimPiece *piece, const OptimArgs *args)
{
    const OptimTable *table = piece->rule->table;
    const OptimWhole *io = &optim->whole_io;
    int range = (int)(piece - optim->piece);
    float *stored = optim_scratch_of(optim, piece), *plain = optim->whole_buffer;
    size_t bytes = (size_t)piece->elements * sizeof *stored;
    table->direction(optim, piece, args);
    if (io->get)
        io->get(io->user, range, stored, plain);
    else
        memcpy(plain, stored, bytes);
    table->whole(optim, piece, plain, plain + arena_align(shape_count(piece->tensor->shape)));
    if (io->put)
        io->put(io->user, range, plain, stored);
    else
        memcpy(stored, plain, bytes);
    table->update(optim, piece, args);
}

OptimNeed optim_need(const Config *config, const OptimTensor *tensor, int rule)
{
    OptimRule r = optim_rule(config, rule);
    OptimNeed need = {.slots = r.slots,
                      .needs_scratch = r.table->scratch == SCRATCH_MEASURE,
                      .is_uncut = r.table->whole != NULL};
    if (need.is_uncut)
        need.whole_bytes = (size_t)optim_whole_floats(r.table, tensor) * sizeof(float);
    return need;
}
