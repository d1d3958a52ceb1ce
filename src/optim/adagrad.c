/* Adagrad (Duchi, Hazan & Singer 2011, "Adaptive subgradient methods", figure 1, diagonal), as in
 * PyTorch. */
#include "rules.h"

#include <math.h>

typedef struct AdagradArgs {
    float lr, eps, weight_decay, grad_scale;
} AdagradArgs;

/* range: w, g, sum of squares */
static void body(const void *args, float *const range[FLAT_RANGES], int64_t n)
{
    const AdagradArgs a = *(const AdagradArgs *)args;
    float *restrict w = range[0], *restrict sum = range[2];
    const float *restrict g = range[1];
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
        float d = g[i] * a.grad_scale + a.weight_decay * w[i];
        sum[i] += d * d;
        w[i] -= a.lr * d / (sqrtf(sum[i]) + a.eps);
    }
}

static void update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    AdagradArgs args = {.lr = a->lr,
                        .eps = (float)piece->rule->is->eps,
                        .weight_decay = optim_decay(piece),
                        .grad_scale = a->grad_scale};
    float *range[FLAT_RANGES] = {a->w, (float *)(uintptr_t)a->g, optim_slot(optim, 0, piece)};
    optim_each(optim, piece, body, &args, range);
}

static RowState row_state(const OptimConfig *is, int width)
{
    (void)is;
    return (RowState){1, {width}, {"sum_of_squares"}};
}

static void row_update(const OptimRule *rule, const OptimRowArgs *a)
{
    AdagradArgs args = {.lr = a->lr,
                        .eps = (float)rule->is->eps,
                        .weight_decay = a->decay,
                        .grad_scale = a->grad_scale};
    float *range[FLAT_RANGES] = {a->w, (float *)(uintptr_t)a->g, a->state};
    body(&args, range, a->width);
}

const OptimTable optim_adagrad = {
    .word = {.word = "adagrad",
             .help = "learning rates that fall with the sum of squared gradients",
             .uses = "eps",
             .defaults = "eps=1e-10"},
    .slots = 1,
    .slot_name = {"sum_of_squares"},
    .host = true,
    .update = update,
    .row_state = row_state,
    .row_update = row_update,
};
