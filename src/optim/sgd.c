/* SGD with momentum, as PyTorch's, and LARS (You, Gitman & Ginsburg 2017, "Large batch training of convolutional
 * networks", algorithm 1). */
#include "rules.h"

static void sgd_update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    SgdArgs args = {
        .lr = a->lr,
        .momentum = (float)optim->config->optim.momentum,
        .weight_decay = optim_decay(optim, piece),
        .grad_scale = a->grad_scale,
        .nesterov = optim->config->optim.nesterov,
        .first = optim->first,
        .now = optim->now,
    };
    Stream *s = optim->backend->table->stream(optim->backend);
    optim->backend->table->flat->sgd(s, &args, a->w, a->g, optim_slot(optim, 0, piece),
                                     piece->elements);
}

static void lars_measure(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    if (!piece->decay) return;
    optim_squares(optim, 0, piece, a->w);
    optim_squares(optim, 1, piece, a->g);
}

/* trust |w| / (|g| + wd |w|) for tensors that decay, 1 where a norm is 0 and for biases and norms. */
static double lars_rate(const Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    if (!piece->decay) return 1;
    double w_norm = a->norm[0], g_norm = a->norm[1] * (double)a->grad_scale;
    if (w_norm == 0 || g_norm == 0) return 1;
    return optim->config->optim.trust * w_norm /
           (g_norm + optim->config->optim.weight_decay * w_norm);
}

/* The paper's momentum holds rates: m = momentum m + lr local (g + wd w); w -= m. That is SGD of rate 1 on a scaled
 * gradient. */
static void lars_update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    double rate = (double)a->lr * lars_rate(optim, piece, a);
    SgdArgs args = {
        .lr = 1.0f,
        .momentum = (float)optim->config->optim.momentum,
        .weight_decay = (float)(rate * (double)optim_decay(optim, piece)),
        .grad_scale = (float)(rate * (double)a->grad_scale),
        .nesterov = optim->config->optim.nesterov,
        .first = optim->first,
    };
    Stream *s = optim->backend->table->stream(optim->backend);
    optim->backend->table->flat->sgd(s, &args, a->w, a->g, optim_slot(optim, 0, piece),
                                     piece->elements);
}

const OptimTable optim_sgd = {
    .name = "sgd",
    .slots = 1,
    .slot_name = {"momentum"},
    .update = sgd_update,
};
const OptimTable optim_lars = {
    .name = "lars",
    .slots = 1,
    .slot_name = {"momentum"},
    .norms = 2,
    .measure = lars_measure,
    .update = lars_update,
};
