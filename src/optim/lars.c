/* LARS (You, Gitman & Ginsburg 2017, "Large batch training of convolutional networks", algorithm
 * 1). */
#include "rules.h"

/* Adds up the squares of w (norm 0) and g (norm 1) of tensors to which weight decay applies. */
static void measure(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    if (!piece->decay) return;
    optim_add_squares(optim, 0, piece, a->w);
    optim_add_squares(optim, 1, piece, a->g);
}

/* Returns trust |w| / (|g| + wd |w|) for tensors to which weight decay applies; 1 for other
 * tensors, and if a norm is 0. */
static double local_rate(const OptimPiece *piece, const OptimArgs *a)
{
    const OptimConfig *constants = piece->rule->constants;
    if (!piece->decay) return 1;
    double w_norm = a->norm[0], g_norm = a->norm[1] * (double)a->grad_scale;
    if (w_norm == 0 || g_norm == 0) return 1;
    return constants->trust * w_norm / (g_norm + constants->weight_decay * w_norm);
}

/* Computes m = momentum m + lr local_rate (g + wd w), then w -= m: the paper's momentum includes
 * the rates. This is SGD with rate 1 whose gradient is multiplied by lr local_rate. */
static void update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    const OptimConfig *constants = piece->rule->constants;
    double rate = (double)a->lr * local_rate(piece, a);
    const SgdArgs args = {
        .lr = 1.0f,
        .momentum = piece->rule->momentum,
        .grad_scale = (float)(rate * (double)a->grad_scale),
        .nesterov = constants->nesterov,
        .m_is_empty = optim->is_first_update,
    };
    const UpdatePiece part = {.w = a->w,
                              .g = a->g,
                              .m = optim_slot(optim, 0, piece),
                              .n = piece->elements,
                              .weight_decay = (float)(rate * (double)optim_decay(piece))};
    Stream *s = optim->backend->table->stream(optim->backend);
    optim->backend->table->flat->sgd(s, &args, &part, 1);
}

const OptimTable optim_lars = {
    .word = {.word = "lars",
             .help = "sgd with a learning rate per tensor, for large batches",
             .uses = "momentum trust"},
    .slots = 1,
    .slot_name = {"momentum"},
    .momentum_offset = offsetof(OptimConfig, momentum),
    .scratch = SCRATCH_UNUSED,
    .devices = DEVICES_ALL,
    .norms = 2,
    .measure = measure,
    .update = update,
};
