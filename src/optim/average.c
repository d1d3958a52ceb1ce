/* train.ema: the exponential moving average of parameters and running statistics. The average is
 * stored in an arena like that of a state slot, and sharded in the same way. Rules with
 * update_pieces move the average in their own pass over the parameters. For other rules, and for
 * running statistics, a second pass moves it (FlatTable.average). The average of a frozen
 * parameter is the parameter itself, so it is not stored. */
#include "rules.h"

#include <math.h>

void optim_average_start_update(Optim *optim)
{
    const Config *c = optim->config;
    double decay = c->train.ema;
    if (c->train.ema_ramp > 0) decay *= -expm1(-(double)optim->step / c->train.ema_ramp);
    optim->average_rate = (float)(1 - decay);
}

float *optim_average_of(const Optim *optim, const OptimPiece *piece)
{
    return optim->average ? optim->average + piece->average_offset : NULL;
}

void optim_average_piece(Optim *optim, const OptimPiece *piece, const float *params)
{
    const BackendTable *table = optim->backend->table;
    const Average average = {optim_average_of(optim, piece), optim->average_rate};
    if (average.to)
        table->flat->average(table->stream(optim->backend), average, optim->numbers,
                             params + piece->value_offset, piece->elements);
}

void optim_average_begin_piece(Optim *optim, int piece, const float *params)
{
    const BackendTable *table = optim->backend->table;
    const OptimPiece *p = &optim->piece[piece];
    if (optim->average && p->elements > 0)
        table->copy(table->stream(optim->backend), optim->average + p->average_offset,
                    params + p->value_offset, (size_t)p->elements * sizeof *params);
}

void optim_average_begin(Optim *optim, const float *params)
{
    for (int i = 0; i < optim->averaged_count; ++i) optim_average_begin_piece(optim, i, params);
}

void optim_average_swap(Optim *optim, float *params)
{
    const BackendTable *table = optim->backend->table;
    for (int i = 0; optim->average && i < optim->averaged_count; ++i) {
        const OptimPiece *p = &optim->piece[i];
        if (p->elements > 0)
            table->flat->swap(table->stream(optim->backend), params + p->value_offset,
                              optim->average + p->average_offset, p->elements);
    }
}
