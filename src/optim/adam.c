/* Adam (Kingma & Ba 2015), as PyTorch's, and what AdamW and LAMB have of it. */
#include "rules.h"

#include <math.h>

/* Of the betas as the kernels have them: of 0.999, 1 - beta is off by 1e-5 in single precision,
 * which must cancel. */
void adam_corrections(const Optim *optim, const OptimRule *rule, float *first, float *second)
{
    float beta1 = (float)rule->is->beta1, beta2 = (float)rule->is->beta2;
    *first = (float)(1 - pow((double)beta1, (double)optim->step));
    *second = (float)(1 - pow((double)beta2, (double)optim->step));
}

AdamArgs adam_args(const Optim *optim, const OptimPiece *piece, const OptimArgs *a, bool decoupled)
{
    const OptimConfig *is = piece->rule->is;
    AdamArgs args = {
        .lr = a->lr,
        .beta1 = (float)is->beta1,
        .beta2 = (float)is->beta2,
        .eps = (float)is->eps,
        .weight_decay = optim_decay(piece),
        .grad_scale = a->grad_scale,
        .decoupled = decoupled,
        .now = optim_now(optim, piece),
    };
    adam_corrections(optim, piece->rule, &args.correct1, &args.correct2);
    return args;
}

void adam_step(Optim *optim, const OptimPiece *piece, const OptimArgs *a, bool decoupled)
{
    AdamArgs args = adam_args(optim, piece, a, decoupled);
    Stream *s = optim->backend->table->stream(optim->backend);
    optim->backend->table->flat->adam(s, &args, a->w, a->g, optim_slot(optim, 0, piece),
                                      optim_slot(optim, 1, piece), piece->elements);
}

static void update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    adam_step(optim, piece, a, false);
}

const OptimTable optim_adam = {
    .word = {.word = "adam", .help = "moments of the gradient", .uses = "beta1 beta2 eps"},
    .slots = 2,
    .slot_name = {"m", "v"},
    .update = update,
};
