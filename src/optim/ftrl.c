/* FTRL-Proximal (McMahan et al. 2013, "Ad click prediction: a view from the trenches", algorithm
 * 1). Each element of a parameter has two numbers of state. n is the sum of its squared gradients,
 * and z determines its weight w:
 *
 *     w = 0 where |z| <= l1, else -(z - sign(z) l1) / ((beta + sqrt(n)) / lr + l2).
 *
 * In the paper weights begin at 0 and the rate is constant. Here weights may begin at other values
 * and the rate may change, so z is computed again from w if w is not 0. With a constant rate this
 * is the paper's z except for rounding. An element whose gradient, weight decay included, is 0 is
 * not changed. */
#include "rules.h"

#include <math.h>

typedef struct FtrlArgs {
    float lr, l1, l2, beta, weight_decay, grad_scale;
} FtrlArgs;

/* Updates `count` elements. array: parameters, gradient, z, n. */
static void ftrl_elements(const void *args, float *const array[FLAT_ARRAYS], int64_t count)
{
    const FtrlArgs a = *(const FtrlArgs *)args;
    float *restrict w = array[0], *restrict z = array[2], *restrict n = array[3];
    const float *restrict g = array[1];
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
        float grad = g[i] * a.grad_scale + a.weight_decay * w[i], square = grad * grad;
        float root_before = sqrtf(n[i]), root_after = sqrtf(n[i] + square);
        float divisor = (a.beta + root_before) / a.lr + a.l2;
        float z_before = w[i] != 0 ? -(w[i] * divisor + copysignf(a.l1, w[i])) : z[i];
        float z_after = z_before + grad - (root_after - root_before) / a.lr * w[i];
        float over = fabsf(z_after) - a.l1;
        float w_after =
            over > 0 ? -copysignf(over, z_after) / ((a.beta + root_after) / a.lr + a.l2) : 0;
        n[i] += square;
        z[i] = square > 0 ? z_after : z[i];
        w[i] = square > 0 ? w_after : w[i];
    }
}

static FtrlArgs make_args(const OptimRule *rule, float lr, float weight_decay, float grad_scale)
{
    const OptimConfig *constants = rule->constants;
    return (FtrlArgs){.lr = lr,
                      .l1 = (float)constants->l1,
                      .l2 = (float)constants->l2,
                      .beta = (float)constants->beta,
                      .weight_decay = weight_decay,
                      .grad_scale = grad_scale};
}

static void update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    FtrlArgs args = make_args(piece->rule, a->lr, optim_decay(piece), a->grad_scale);
    float *array[FLAT_ARRAYS] = {a->w, optim_read_only(a->g), optim_slot(optim, 0, piece),
                                 optim_slot(optim, 1, piece)};
    optim_each(optim, piece, ftrl_elements, &args, array);
}

static RowState row_state(const OptimConfig *constants, int width)
{
    (void)constants;
    return (RowState){.slots = 2, .floats = {width, width}, .name = {"ftrl_z", "ftrl_n"}};
}

static void row_update(const OptimRule *rule, const OptimRowArgs *a)
{
    FtrlArgs args = make_args(rule, a->lr, a->decay, a->grad_scale);
    float *array[FLAT_ARRAYS] = {a->w, optim_read_only(a->g), a->state, a->state + a->width};
    ftrl_elements(&args, array, a->width);
}

const OptimTable optim_ftrl = {
    .word = {.word = "ftrl",
             .help = "adagrad's learning rates, with zero weights by l1; for linear models",
             .uses = "l1 l2 beta"},
    .slots = 2,
    .slot_name = {"ftrl_z", "ftrl_n"},
    .scratch = SCRATCH_UNUSED,
    .devices = DEVICES_CPU,
    .update = update,
    .row_state = row_state,
    .row_update = row_update,
};
