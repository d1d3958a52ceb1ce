/* Adagrad with one sum for each row of a sparse table: of the mean of its gradient's squares (as
 * torchrec's "row-wise Adagrad"; Mudigere et al. 2022, "Software-hardware co-design for fast and
 * scalable training of deep learning recommendation models", section 4). Refuses all else. */
#include "rules.h"

#include <math.h>

/* Sums side by side: their order is the width's alone. */
enum { LANES = 8 };

static float mean_square(const OptimRowArgs *a)
{
    float sum[LANES] = {0};
    for (int i = 0; i < a->width; ++i) {
        float d = a->g[i] * a->grad_scale + a->decay * a->w[i];
        sum[i % LANES] += d * d;
    }
    float low = (sum[0] + sum[4]) + (sum[2] + sum[6]), high = (sum[1] + sum[5]) + (sum[3] + sum[7]);
    return (low + high) / (float)a->width;
}

static Status takes(const OptimConfig *is, const OptimTensor *tensor)
{
    (void)is;
    if (tensor->role == PARAM_TABLE) return OK;
    return fail(ERR_CONFIG,
                "adagrad_row is for the rows of sparse tables, which %s is not: give it to them "
                "alone, by a group {roles: table, name: adagrad_row}, and another rule to the "
                "rest, such as adagrad",
                tensor->name);
}

static RowState row_state(const OptimConfig *is, int width)
{
    (void)is, (void)width;
    return (RowState){1, {1}, {"row_mean_of_squares"}};
}

static void row_update(const OptimRule *rule, const OptimRowArgs *a)
{
    a->state[0] += mean_square(a);
    float step = a->lr / (sqrtf(a->state[0]) + (float)rule->is->eps);
    for (int i = 0; i < a->width; ++i)
        a->w[i] -= step * (a->g[i] * a->grad_scale + a->decay * a->w[i]);
}

const OptimTable optim_adagrad_row = {
    .word = {.word = "adagrad_row",
             .help = "adagrad with one number for a row, of tables alone",
             .uses = "eps",
             .defaults = "eps=1e-10"},
    .takes = takes,
    .row_state = row_state,
    .row_update = row_update,
};
