/* optim.slim: a penalty on channel scales, the sum of their absolute values times optim.slim. Adds
 * the penalty's subgradient to the gradient of each channel scale. The operation is elementwise, so
 * each rank does it for the channel scales that it has. */
#include "rules.h"

/* Adds the subgradient for n elements. array: gradient, parameters. */
static void add_slim(const void *args, float *const array[FLAT_ARRAYS], int64_t n)
{
    const float slim = *(const float *)args;
    float *restrict g = array[0];
    const float *restrict w = array[1];
    for (int64_t i = 0; i < n; ++i) g[i] += slim * ((float)(w[i] > 0) - (float)(w[i] < 0));
}

void optim_add_slim(Optim *optim, const float *params, float *grads, double factor)
{
    const float slim = (float)(optim->config->optim.slim * factor);
    if (slim == 0) return;
    for (int i = 0; i < optim->range_count; ++i) {
        const OptimPiece *piece = &optim->piece[i];
        if (!optim->range[i].channel_scale || piece->elements == 0) continue;
        float *array[FLAT_ARRAYS] = {grads + piece->grad_arena_offset,
                                     optim_read_only(params + piece->value_offset)};
        optim_each(optim, piece, add_slim, &slim, array);
    }
}
