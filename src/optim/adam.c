/* Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019), as PyTorch's, and LAMB (You et al. 2020, "Large batch
 * optimization for deep learning: training BERT in 76 minutes", algorithm 2). */
#include "rules.h"

#include <math.h>

/* Of the betas as the kernels have them: of 0.999, 1 - beta is off by 1e-5 in single precision, which must cancel. */
void adam_corrections(const Optim *optim, float *first, float *second)
{
    float beta1 = (float)optim->config->optim.beta1, beta2 = (float)optim->config->optim.beta2;
    *first = (float)(1 - pow((double)beta1, (double)optim->step));
    *second = (float)(1 - pow((double)beta2, (double)optim->step));
}

/* Adam's numbers for the step that has begun; decoupled: AdamW. */
static AdamArgs adam_args(const Optim *optim, const OptimPiece *piece, const OptimArgs *a,
                          bool decoupled)
{
    AdamArgs args = {
        .lr = a->lr,
        .beta1 = (float)optim->config->optim.beta1,
        .beta2 = (float)optim->config->optim.beta2,
        .eps = (float)optim->config->optim.eps,
        .weight_decay = optim_decay(optim, piece),
        .grad_scale = a->grad_scale,
        .decoupled = decoupled,
        .now = optim->now,
    };
    adam_corrections(optim, &args.correct1, &args.correct2);
    return args;
}

static void update(Optim *optim, const OptimPiece *piece, const OptimArgs *a, bool decoupled)
{
    AdamArgs args = adam_args(optim, piece, a, decoupled);
    Stream *s = optim->backend->table->stream(optim->backend);
    optim->backend->table->flat->adam(s, &args, a->w, a->g, optim_slot(optim, 0, piece),
                                      optim_slot(optim, 1, piece), piece->elements);
}

static void adam_update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    update(optim, piece, a, false);
}

static void adamw_update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    update(optim, piece, a, true);
}

/* u, Adam's direction plus weight decay, stays in the scratch. */
static void lamb_measure(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    Stream *s = optim->backend->table->stream(optim->backend);
    AdamArgs args = adam_args(optim, piece, a, true);
    float *u = optim_scratch_of(optim, piece);
    optim->backend->table->flat->adam_direction(s, &args, u, a->w, a->g,
                                                optim_slot(optim, 0, piece),
                                                optim_slot(optim, 1, piece), piece->elements);
    optim_squares(optim, 0, piece, a->w);
    optim_squares(optim, 1, piece, u);
}

/* w -= lr |w|/|u| u; the ratio is 1 where either norm is 0. */
static void lamb_update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    Stream *s = optim->backend->table->stream(optim->backend);
    double w_norm = a->norm[0], u_norm = a->norm[1];
    double ratio = w_norm > 0 && u_norm > 0 ? w_norm / u_norm : 1;
    optim->backend->table->flat->scale_add(s, a->w, (float)((double)-a->lr * ratio),
                                           optim_scratch_of(optim, piece), 1.0f, piece->elements);
}

const OptimTable optim_adam = {
    .name = "adam",
    .slots = 2,
    .slot_name = {"m", "v"},
    .update = adam_update,
};
const OptimTable optim_adamw = {
    .name = "adamw",
    .slots = 2,
    .slot_name = {"m", "v"},
    .update = adamw_update,
};
const OptimTable optim_lamb = {
    .name = "lamb",
    .slots = 2,
    .slot_name = {"m", "v"},
    .scratch = true,
    .norms = 2,
    .measure = lamb_measure,
    .update = lamb_update,
};
