/* The gradient noise scale: the batch size at which the noise of the gradient equals the gradient
 * (McCandlish et al. 2018, "An empirical model of large-batch training", appendix A.1). */
#ifndef WEFT_TRAIN_GRAD_NOISE_H
#define WEFT_TRAIN_GRAD_NOISE_H

#include "../trainer.h"

/* Returns ERR_CONFIG if train.grad_noise is set and this run cannot measure it. Call it before the
 * executor is made. Not collective. */
Status grad_noise_check(const Trainer *t);
/* Begins the measurement if train.grad_noise is set. Call it after the executor is made. */
void grad_noise_start(Trainer *t);
/* Adds the estimates of the step whose gradients have been summed, if train.grad_noise is measured.
 * samples: number of samples of the step; a step with a short batch is left out. Call it before
 * decay or other terms are added to the gradients. Collective. */
void grad_noise_add(Trainer *t, int64_t samples);
/* Returns the means of the estimates over the steps since the last call; all are NaN if there were
 * no steps. The same on all ranks. */
GradNoise grad_noise_take(Trainer *t);

#endif
