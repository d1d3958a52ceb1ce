/* Adagrad (Duchi, Hazan & Singer 2011, "Adaptive subgradient methods", figure 1, diagonal form),
 * with PyTorch's formula. `update` is for parameters, `row_update` for rows of sparse tables. */
#include "rules.h"

#include <math.h>

typedef struct AdagradArgs {
    float lr, eps, weight_decay, grad_scale;
} AdagradArgs;

/* Updates n elements. array: parameters, gradient, sum of squared gradients. */
static void adagrad_elements(const void *args, float *const array[FLAT_ARRAYS], int64_t n)
{
    const AdagradArgs a = *(const AdagradArgs *)args;
    float *restrict w = array[0], *restrict sum = array[2];
    const float *restrict g = array[1];
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
        float grad = g[i] * a.grad_scale + a.weight_decay * w[i];
        sum[i] += grad * grad;
        w[i] -= a.lr * grad / (sqrtf(sum[i]) + a.eps);
    }
}

static void update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    AdagradArgs args = {.lr = a->lr,
                        .eps = (float)piece->rule->constants->eps,
                        .weight_decay = optim_decay(piece),
                        .grad_scale = a->grad_scale};
    float *array[FLAT_ARRAYS] = {a->w, optim_read_only(a->g), optim_slot(optim, 0, piece)};
    optim_each(optim, piece, adagrad_elements, &args, array);
}

static RowState row_state(const OptimConfig *constants, int width)
{
    (void)constants;
    return (RowState){.slots = 1, .floats = {width}, .name = {"sum_of_squares"}};
}

static void row_update(const OptimRule *rule, const OptimRowArgs *a)
{
    AdagradArgs args = {.lr = a->lr,
                        .eps = (float)rule->constants->eps,
                        .weight_decay = a->decay,
                        .grad_scale = a->grad_scale};
    float *array[FLAT_ARRAYS] = {a->w, optim_read_only(a->g), a->state};
    adagrad_elements(&args, array, a->width);
}

const OptimTable optim_adagrad = {
    .word =
        {.word = "adagrad",
         .help =
             "each parameter's learning rate falls with the root of its sum of squared gradients",
         .uses = "eps",
         .defaults = "eps=1e-10"},
    .slots = 1,
    .slot_name = {"sum_of_squares"},
    .scratch = SCRATCH_UNUSED,
    .devices = DEVICES_CPU,
    .update = update,
    .row_state = row_state,
    .row_update = row_update,
};
