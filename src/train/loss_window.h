/* The losses of the last good steps, by which a spike is known. */
#ifndef WEFT_TRAIN_LOSS_WINDOW_H
#define WEFT_TRAIN_LOSS_WINDOW_H

#include "checkpoint.h"

typedef struct LossWindow {
    float loss[CHECKPOINT_LOSSES];
    /* that have come so far; the last ones are kept */
    int64_t count;
} LossWindow;

/* With so many losses, oldest first. */
void loss_window_init(LossWindow *window, const float *loss, int count);
/* Those that are kept, oldest first; returns how many. */
int loss_window_list(const LossWindow *window, float *loss);
void loss_window_add(LossWindow *window, double loss);
/* Is this loss a spike, and above what? Not while the window is not full, nor with 0 deviations. A
 * function of the losses alone. */
bool loss_window_spike(const LossWindow *window, double deviations, double loss, double *most);

#endif
