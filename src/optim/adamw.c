/* AdamW (Loshchilov & Hutter 2019, "Decoupled weight decay regularization"), as in PyTorch. */
#include "rules.h"

static void update_pieces(Optim *optim, const OptimRule *rule, const UpdatePiece *piece, int count)
{
    adam_step(optim, rule, piece, count, /* decoupled */ true);
}

static void row_update(const OptimRule *rule, const OptimRowArgs *a)
{
    adam_row_step(rule, a, /* decoupled */ true);
}

const OptimTable optim_adamw = {
    .word = {.word = "adamw",
             .help = "adam with decoupled weight decay",
             .uses = "beta1 beta2 eps"},
    .slots = 2,
    .slot_name = {"m", "v"},
    .momentum_offset = offsetof(OptimConfig, beta1),
    .scratch = SCRATCH_UNUSED,
    .devices = DEVICES_ALL,
    .update_pieces = update_pieces,
    .row_state = adam_row_state,
    .row_update = row_update,
};
