/* The gradient noise scale: the batch size at which the noise of the gradient equals the gradient
 * (McCandlish et al. 2018, "An empirical model of large-batch training", appendix A.1). */
#ifndef WEFT_TRAIN_GRAD_NOISE_H
#define WEFT_TRAIN_GRAD_NOISE_H

#include "../trainer.h"

/* ERR_CONFIG: train.grad_noise is set, and this run cannot measure it. Call before the executor is
 * made. Not collective. */
Status grad_noise_check(const Trainer *t);
/* Begins to measure if train.grad_noise is set. Call after the executor is made. */
void grad_noise_start(Trainer *t);
/* Adds the step whose gradients have been summed, unless its batch is short. Call before anything
 * is added to the gradients. Collective. */
void grad_noise_add(Trainer *t, int64_t samples);
/* Returns the estimates from the steps since the last call: all NaN if there were none. The same on
 * all ranks. */
GradNoise grad_noise_take(Trainer *t);

#endif
