/* Adam (Kingma & Ba 2015), as in PyTorch, and functions that AdamW and LAMB share with it. */
#include "rules.h"

#include <math.h>

/* Sets *first to 1 - beta1^step and *second to 1 - beta2^step. The betas are rounded to float, as
 * in the kernels, so that rounding errors cancel: for 0.999 the relative error of 1 - beta is 1e-5.
 * While beta1 warms up, its current value is used as if all earlier updates had used it, as with
 * PyTorch's OneCycleLR. */
static void corrections(const OptimRule *rule, float beta1, double step, float *first,
                        float *second)
{
    float beta2 = (float)rule->constants->beta2;
    *first = (float)(1 - pow((double)beta1, step));
    *second = (float)(1 - pow((double)beta2, step));
}

void adam_corrections(const Optim *optim, const OptimRule *rule, float *first, float *second)
{
    corrections(rule, rule->momentum, (double)optim->step, first, second);
}

/* Returns the kernel's arguments, with the constant beta1 and without corrections. */
static AdamArgs make_args(const OptimRule *rule, float lr, float weight_decay, float grad_scale,
                          bool decoupled)
{
    const OptimConfig *constants = rule->constants;
    return (AdamArgs){
        .lr = lr,
        .beta1 = (float)constants->beta1,
        .beta2 = (float)constants->beta2,
        .eps = (float)constants->eps,
        .weight_decay = weight_decay,
        .grad_scale = grad_scale,
        .decoupled = decoupled,
    };
}

AdamArgs adam_args(const Optim *optim, const OptimPiece *piece, const OptimArgs *a, bool decoupled)
{
    AdamArgs args = make_args(piece->rule, a->lr, optim_decay(piece), a->grad_scale, decoupled);
    args.beta1 = piece->rule->momentum;
    args.numbers = optim_numbers_of(optim, piece);
    adam_corrections(optim, piece->rule, &args.correct1, &args.correct2);
    return args;
}

void adam_step(Optim *optim, const OptimPiece *piece, const OptimArgs *a, bool decoupled)
{
    AdamArgs args = adam_args(optim, piece, a, decoupled);
    args.average = optim_average_of(optim, piece);
    Stream *s = optim->backend->table->stream(optim->backend);
    optim->backend->table->flat->adam(s, &args, a->w, a->g, optim_slot(optim, 0, piece),
                                      optim_slot(optim, 1, piece), piece->elements);
}

RowState adam_row_state(const OptimConfig *constants, int width)
{
    (void)constants;
    return (RowState){.slots = 3, .floats = {width, width, 1}, .name = {"m", "v", "updates"}};
}

/* The corrections depend on how often the row has been updated. This count is a float, which is
 * exact up to 2^24; the corrections are 1 long before that. */
void adam_row_step(const OptimRule *rule, const OptimRowArgs *a, bool decoupled)
{
    float *m = a->state, *v = m + a->width, *count = v + a->width;
    AdamArgs args = make_args(rule, a->lr, a->decay, a->grad_scale, decoupled);
    *count += 1;
    corrections(rule, args.beta1, (double)*count, &args.correct1, &args.correct2);
    backend_cpu.flat->adam(NULL, &args, a->w, a->g, m, v, a->width);
}

static void update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    adam_step(optim, piece, a, /* decoupled */ false);
}

static void row_update(const OptimRule *rule, const OptimRowArgs *a)
{
    adam_row_step(rule, a, /* decoupled */ false);
}

const OptimTable optim_adam = {
    .word = {.word = "adam",
             .help = "first and second moments of the gradient",
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
