/* SGD with momentum, as PyTorch's, and LARS (You, Gitman & Ginsburg 2017, "Large batch training of convolutional
 * networks", algorithm 1). */
#include "rules.h"

static void sgd_update(Optim *optim, const OptimRange *range, float *w, const float *g, float lr,
                       float grad_scale)
{
    SgdArgs args = {
        .lr = lr,
        .momentum = (float)optim->config->optim.momentum,
        .weight_decay = optim_decay(optim, range),
        .grad_scale = grad_scale,
        .nesterov = optim->config->optim.nesterov,
        .first = optim->step == 0,
    };
    Stream *s = optim->backend->table->stream(optim->backend);
    optim->backend->table->flat->sgd(s, &args, w, g, optim_slot(optim, 0, range), range->elements);
}

/* trust |w| / (|g| + wd |w|) for tensors that decay, 1 where a norm is 0 and for biases and norms. */
static double lars_rate(Optim *optim, const OptimRange *range, const float *w, const float *g,
                        double grad_scale)
{
    if (!range->decay) return 1;
    double w_norm = optim_norm(optim, w, range->elements);
    double g_norm = optim_norm(optim, g, range->elements) * grad_scale;
    if (w_norm == 0 || g_norm == 0) return 1;
    return optim->config->optim.trust * w_norm /
           (g_norm + optim->config->optim.weight_decay * w_norm);
}

/* The paper's momentum holds rates: m = momentum m + lr local (g + wd w); w -= m. That is SGD of rate 1 on a scaled
 * gradient. */
static void lars_update(Optim *optim, const OptimRange *range, float *w, const float *g, float lr,
                        float grad_scale)
{
    double rate = lr * lars_rate(optim, range, w, g, grad_scale);
    SgdArgs args = {
        .lr = 1.0f,
        .momentum = (float)optim->config->optim.momentum,
        .weight_decay = (float)(rate * optim_decay(optim, range)),
        .grad_scale = (float)(rate * grad_scale),
        .nesterov = optim->config->optim.nesterov,
        .first = optim->step == 0,
    };
    Stream *s = optim->backend->table->stream(optim->backend);
    optim->backend->table->flat->sgd(s, &args, w, g, optim_slot(optim, 0, range), range->elements);
}

const OptimTable optim_sgd = {
    .name = "sgd",
    .slots = 1,
    .slot_name = {"momentum"},
    .elementwise = true,
    .update = sgd_update,
};
const OptimTable optim_lars = {
    .name = "lars",
    .slots = 1,
    .slot_name = {"momentum"},
    .update = lars_update,
};
