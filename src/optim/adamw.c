/* AdamW (Loshchilov & Hutter 2019, "Decoupled weight decay regularization"), as in PyTorch. */
#include "rules.h"

static void update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    adam_step(optim, piece, a, /* decoupled */ true);
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
    .average = AVERAGE_IN_UPDATE,
    .scratch = SCRATCH_UNUSED,
    .devices = DEVICES_ALL,
    .update = update,
    .row_state = adam_row_state,
    .row_update = row_update,
};
