/* Lion (Chen et al. 2023, "Symbolic discovery of optimization algorithms", algorithm 2). After
 * weight decay, each element moves by the learning rate, against the sign of an average of its
 * momentum and its gradient. An element does not move if this average is 0. */
#include "rules.h"

typedef struct LionArgs {
    /* shrink: factor by which weight decay multiplies the parameters */
    float lr, beta1, beta2, shrink, grad_scale;
} LionArgs;

/* Updates n elements. array: parameters, gradient, momentum. */
static void lion_elements(const void *args, float *const array[FLAT_ARRAYS], int64_t n)
{
    const LionArgs a = *(const LionArgs *)args;
    float *restrict w = array[0], *restrict m = array[2];
    const float *restrict g = array[1];
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
        float gradient = g[i] * a.grad_scale;
        float c = a.beta1 * m[i] + (1 - a.beta1) * gradient;
        float sign = (float)(c > 0) - (float)(c < 0);
        w[i] = w[i] * a.shrink - a.lr * sign;
        m[i] = a.beta2 * m[i] + (1 - a.beta2) * gradient;
    }
}

static void update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    const OptimConfig *constants = piece->rule->constants;
    LionArgs args = {.lr = a->lr,
                     .beta1 = piece->rule->momentum,
                     .beta2 = (float)constants->beta2,
                     .shrink = 1 - a->lr * optim_decay(piece),
                     .grad_scale = a->grad_scale};
    float *array[FLAT_ARRAYS] = {a->w, optim_read_only(a->g), optim_slot(optim, 0, piece)};
    optim_each(optim, piece, lion_elements, &args, array);
}

const OptimTable optim_lion = {
    .word = {.word = "lion",
             .help = "sign of the momentum; use a tenth of adamw's learning rate",
             .uses = "beta1 beta2",
             .defaults = "beta2=0.99"},
    .slots = 1,
    .slot_name = {"lion_momentum"},
    .momentum_offset = offsetof(OptimConfig, beta1),
    .scratch = SCRATCH_UNUSED,
    .devices = DEVICES_CPU,
    .update = update,
};
