/* SGD with momentum, as PyTorch's. */
#include "rules.h"

static int held(const OptimConfig *is)
{
    return is->momentum == 0 ? 0 : 1;
}

static void update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    const OptimConfig *is = piece->rule->is;
    SgdArgs args = {
        .lr = a->lr,
        .momentum = (float)is->momentum,
        .weight_decay = optim_decay(piece),
        .grad_scale = a->grad_scale,
        .nesterov = is->nesterov,
        .first = optim->first,
        .now = optim_now(optim, piece),
    };
    Stream *s = optim->backend->table->stream(optim->backend);
    optim->backend->table->flat->sgd(s, &args, a->w, a->g, optim_slot(optim, 0, piece),
                                     piece->elements);
}

const OptimTable optim_sgd = {
    .word = {.word = "sgd", .help = "gradient descent with momentum", .uses = "momentum nesterov"},
    .slots = 1,
    .slot_name = {"momentum"},
    .held = held,
    .update = update,
};
