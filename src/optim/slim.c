/* optim.slim: adds the subgradient of the sum of the channel scales' absolute values to their
 * gradient. The operation is elementwise, so each rank does it for the scales that it has. */
#include "rules.h"

/* arrays: gradient, parameters */
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
        float *array[FLAT_ARRAYS] = {grads + piece->gradient,
                                     optim_read_only(params + piece->value)};
        optim_each(optim, piece, add_slim, &slim, array);
    }
}
