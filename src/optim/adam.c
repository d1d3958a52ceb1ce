/* Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019), as PyTorch's, and LAMB (You et al. 2020, "Large batch
 * optimization for deep learning: training BERT in 76 minutes", algorithm 2). */
#include "rules.h"

#include <math.h>

/* Adam's numbers for the coming step; decoupled: AdamW. */
static AdamArgs adam_args(const Optim *optim, const OptimRange *range, float lr, float grad_scale,
                          bool decoupled)
{
    double beta1 = optim->config->optim.beta1, beta2 = optim->config->optim.beta2;
    double t = (double)(optim->step + 1);
    return (AdamArgs){
        .lr = lr,
        .beta1 = (float)beta1,
        .beta2 = (float)beta2,
        .eps = (float)optim->config->optim.eps,
        .weight_decay = optim_decay(optim, range),
        .grad_scale = grad_scale,
        .correct1 = (float)(1 - pow(beta1, t)),
        .correct2 = (float)(1 - pow(beta2, t)),
        .decoupled = decoupled,
    };
}

static void update(Optim *optim, const OptimRange *range, float *w, const float *g,
                   const AdamArgs *args)
{
    Stream *s = optim->backend->table->stream(optim->backend);
    optim->backend->table->flat->adam(s, args, w, g, optim_slot(optim, 0, range),
                                      optim_slot(optim, 1, range), range->elements);
}

static void adam_update(Optim *optim, const OptimRange *range, float *w, const float *g, float lr,
                        float grad_scale)
{
    AdamArgs args = adam_args(optim, range, lr, grad_scale, false);
    update(optim, range, w, g, &args);
}

static void adamw_update(Optim *optim, const OptimRange *range, float *w, const float *g, float lr,
                         float grad_scale)
{
    AdamArgs args = adam_args(optim, range, lr, grad_scale, true);
    update(optim, range, w, g, &args);
}

/* w -= lr |w|/|u| u, with u Adam's direction plus weight decay; the ratio is 1 where either norm is 0. */
static void lamb_update(Optim *optim, const OptimRange *range, float *w, const float *g, float lr,
                        float grad_scale)
{
    const FlatTable *flat = optim->backend->table->flat;
    Stream *s = optim->backend->table->stream(optim->backend);
    AdamArgs args = adam_args(optim, range, lr, grad_scale, true);
    flat->adam_direction(s, &args, optim->scratch, w, g, optim_slot(optim, 0, range),
                         optim_slot(optim, 1, range), range->elements);
    double w_norm = optim_norm(optim, w, range->elements);
    double u_norm = optim_norm(optim, optim->scratch, range->elements);
    double ratio = w_norm > 0 && u_norm > 0 ? w_norm / u_norm : 1;
    flat->scale_add(s, w, (float)(-lr * ratio), optim->scratch, 1.0f, range->elements);
}

const OptimTable optim_adam = {
    .name = "adam",
    .slots = 2,
    .slot_name = {"m", "v"},
    .elementwise = true,
    .update = adam_update,
};
const OptimTable optim_adamw = {
    .name = "adamw",
    .slots = 2,
    .slot_name = {"m", "v"},
    .elementwise = true,
    .update = adamw_update,
};
const OptimTable optim_lamb = {
    .name = "lamb",
    .slots = 2,
    .slot_name = {"m", "v"},
    .scratch = true,
    .update = lamb_update,
};
