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

/* Returns the kernel's arguments, with the constant beta1, without corrections, average and
 * copies. */
static AdamArgs make_args(const OptimRule *rule, float lr, float grad_scale, bool decoupled)
{
    const OptimConfig *constants = rule->constants;
    return (AdamArgs){
        .lr = lr,
        .beta1 = (float)constants->beta1,
        .beta2 = (float)constants->beta2,
        .eps = (float)constants->eps,
        .grad_scale = grad_scale,
        .decoupled = decoupled,
    };
}

AdamArgs adam_args(const Optim *optim, const OptimRule *rule, bool decoupled)
{
    AdamArgs args = make_args(rule, optim_lr_of(optim, rule), optim->scale, decoupled);
    args.beta1 = rule->momentum;
    args.average_rate = optim->average_rate;
    args.copy_type = optim->copy_type;
    args.numbers = optim_numbers_of(optim, rule);
    adam_corrections(optim, rule, &args.correct1, &args.correct2);
    return args;
}

void adam_step(Optim *optim, const OptimRule *rule, const UpdatePiece *piece, int count,
               bool decoupled)
{
    const AdamArgs args = adam_args(optim, rule, decoupled);
    Stream *s = optim->backend->table->stream(optim->backend);
    optim->backend->table->flat->adam(s, &args, piece, count);
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
    AdamArgs args = make_args(rule, a->lr, a->grad_scale, decoupled);
    const UpdatePiece row = {
        .w = a->w, .g = a->g, .m = m, .v = v, .n = a->width, .weight_decay = a->decay};
    *count += 1;
    corrections(rule, args.beta1, (double)*count, &args.correct1, &args.correct2);
    backend_cpu.flat->adam(NULL, &args, &row, 1);
}

static void update_pieces(Optim *optim, const OptimRule *rule, const UpdatePiece *piece, int count)
{
    adam_step(optim, rule, piece, count, /* decoupled */ false);
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
    .scratch = SCRATCH_UNUSED,
    .devices = DEVICES_ALL,
    .update_pieces = update_pieces,
    .row_state = adam_row_state,
    .row_update = row_update,
};
