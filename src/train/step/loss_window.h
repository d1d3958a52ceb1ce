/* The losses of the last good steps, by which spikes are detected. */
#ifndef WEFT_TRAIN_LOSS_WINDOW_H
#define WEFT_TRAIN_LOSS_WINDOW_H

#include "checkpoint.h"

typedef struct LossWindow {
    /* a ring: loss number i, counted from 0, is at i % CHECKPOINT_LOSSES */
    float loss[CHECKPOINT_LOSSES];
    /* losses added so far; the last CHECKPOINT_LOSSES are kept */
    int64_t count;
} LossWindow;

/* Empties the window, then adds `count` losses, oldest first. */
void loss_window_init(LossWindow *window, const float *loss, int count);
/* Copies the kept losses, oldest first, to loss[], which has space for CHECKPOINT_LOSSES; returns
 * their number. */
int loss_window_list(const LossWindow *window, float *loss);
void loss_window_add(LossWindow *window, double loss);
/* Returns true if this loss is a spike, and sets *most to the largest loss that would not have been
 * a spike. Returns false until the window is full, and if deviations (train.spike) is not above 0;
 * *most then has no meaning. Depends only on the losses, so all ranks get the same result. */
bool loss_window_spike(const LossWindow *window, double deviations, double loss, double *most);

#endif
