/* Adagrad with one state value for each row of a sparse table: the sum, over the row's updates, of
 * the mean square of the row's gradient (torchrec's "row-wise Adagrad"; Mudigere et al. 2022,
 * "Software-hardware co-design for fast and scalable training of deep learning recommendation
 * models", section 4). The rule refuses parameters that are not sparse tables. */
#include "rules.h"

#include <math.h>

/* number of partial sums, one for each element of a vector register of 8 floats; with a constant
 * number the order of additions depends on the row's width alone */
enum { LANES = 8 };

/* Returns the mean square of a row's gradient with weight decay, scale g + decay w. */
static float mean_square(const float *restrict w, const float *restrict g, int width, float scale,
                         float decay)
{
    const int whole = width / LANES * LANES;
    float sum[LANES] = {0};
    for (int i = 0; i < whole; i += LANES)
#pragma omp simd
        for (int k = 0; k < LANES; ++k) {
            float grad = g[i + k] * scale + decay * w[i + k];
            sum[k] += grad * grad;
        }
    for (int k = 0; k < width - whole; ++k) {
        float grad = g[whole + k] * scale + decay * w[whole + k];
        sum[k] += grad * grad;
    }
    float low = (sum[0] + sum[4]) + (sum[2] + sum[6]), high = (sum[1] + sum[5]) + (sum[3] + sum[7]);
    return (low + high) / (float)width;
}

static Status check_tensor(const OptimConfig *constants, const OptimTensor *tensor)
{
    (void)constants;
    if (tensor->role == PARAM_SPARSE_TABLE) return OK;
    return fail(
        ERR_CONFIG,
        "adagrad_row is for the rows of sparse tables, which %s is not: use it in a group {roles: "
        "table, name: adagrad_row}, and choose another rule for the other parameters, such as "
        "adagrad",
        tensor->name);
}

static RowState row_state(const OptimConfig *constants, int width)
{
    (void)constants, (void)width;
    return (RowState){.slots = 1, .floats = {1}, .name = {"row_mean_of_squares"}};
}

static void row_update(const OptimRule *rule, const OptimRowArgs *a)
{
    float *restrict w = a->w;
    const float *restrict g = a->g;
    const float scale = a->grad_scale, decay = a->decay;
    float sum = a->state[0] += mean_square(w, g, a->width, scale, decay);
    const float step = a->lr / (sqrtf(sum) + (float)rule->constants->eps);
#pragma omp simd
    for (int i = 0; i < a->width; ++i) w[i] -= step * (g[i] * scale + decay * w[i]);
}

const OptimTable optim_adagrad_row = {
    .word = {.word = "adagrad_row",
             .help = "adagrad with one state value per row; only for sparse tables",
             .uses = "eps",
             .defaults = "eps=1e-10"},
    .scratch = SCRATCH_UNUSED,
    .devices = DEVICES_CPU,
    .check_tensor = check_tensor,
    .row_state = row_state,
    .row_update = row_update,
};
