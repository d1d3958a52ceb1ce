/* LAMB (You et al. 2020, "Large batch optimization for deep learning: training BERT in 76 minutes",
 * algorithm 2). */
#include "rules.h"

/* Writes u, Adam's direction plus weight decay, to the scratch memory, and adds up the squares of w
 * (norm 0) and u (norm 1). */
static void measure(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    Stream *s = optim->backend->table->stream(optim->backend);
    const AdamArgs args = adam_args(optim, piece->rule, /* decoupled */ true);
    const UpdatePiece part = {.w = a->w,
                              .g = a->g,
                              .m = optim_slot(optim, 0, piece),
                              .v = optim_slot(optim, 1, piece),
                              .n = piece->elements,
                              .weight_decay = optim_decay(piece)};
    float *u = optim_scratch_of(optim, piece);
    optim->backend->table->flat->adam_direction(s, &args, u, &part);
    optim_add_squares(optim, 0, piece, a->w);
    optim_add_squares(optim, 1, piece, u);
}

/* Computes w -= lr |w|/|u| u; the ratio of the norms counts as 1 if one of them is 0. */
static void update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    Stream *s = optim->backend->table->stream(optim->backend);
    double w_norm = a->norm[0], u_norm = a->norm[1];
    double ratio = w_norm > 0 && u_norm > 0 ? w_norm / u_norm : 1;
    float factor = (float)((double)-a->lr * ratio), *u = optim_scratch_of(optim, piece);
    /* w = factor u + 1 w */
    optim->backend->table->flat->scale_add(s, a->w, factor, u, 1.0f, piece->elements);
}

const OptimTable optim_lamb = {
    .word = {.word = "lamb",
             .help = "adam with a learning rate per tensor, for large batches",
             .uses = "beta1 beta2 eps"},
    .slots = 2,
    .slot_name = {"m", "v"},
    .momentum_offset = offsetof(OptimConfig, beta1),
    .scratch = SCRATCH_MEASURE,
    .devices = DEVICES_ALL,
    .norms = 2,
    .measure = measure,
    .update = update,
};
