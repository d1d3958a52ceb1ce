/* Detects loss spikes. A spike lies a given number of standard deviations above the mean of the
 * window's losses, and also above that of their logarithms: losses near zero jump by large factors
 * without being bad. A deviation counts as at least 1/64 of the mean, because losses may have been
 * nearly constant. */
#include "loss_window.h"

#include <math.h>
#include <string.h>

static const double LEAST_SHARE = 1.0 / 64, LEAST_LOSS = 1e-30;

void loss_window_init(LossWindow *w, const float *loss, int count)
{
    *w = (LossWindow){0};
    for (int i = 0; i < count; ++i) loss_window_add(w, (double)loss[i]);
}

int loss_window_list(const LossWindow *w, float *loss)
{
    bool full = w->count >= CHECKPOINT_LOSSES;
    int64_t kept = full ? CHECKPOINT_LOSSES : w->count;
    int64_t oldest = full ? w->count % CHECKPOINT_LOSSES : 0;
    memcpy(loss, w->loss + oldest, (size_t)(kept - oldest) * sizeof *loss);
    memcpy(loss + kept - oldest, w->loss, (size_t)oldest * sizeof *loss);
    return (int)kept;
}

void loss_window_add(LossWindow *w, double loss)
{
    w->loss[w->count++ % CHECKPOINT_LOSSES] = (float)loss;
}

/* Returns the mean plus `deviations` standard deviations. Sums are in the given order, on which
 * their bits depend. */
static double above(const double *x, double deviations, double least_share)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < CHECKPOINT_LOSSES; ++i) sum += x[i];
    double mean = sum / CHECKPOINT_LOSSES;
    for (int i = 0; i < CHECKPOINT_LOSSES; ++i) squares += (x[i] - mean) * (x[i] - mean);
    double deviation = sqrt(squares / CHECKPOINT_LOSSES);
    return mean + deviations * fmax(deviation, fabs(mean) * least_share);
}

/* Logarithms are computed only for a loss that exceeds the first limit. */
bool loss_window_spike(const LossWindow *w, double deviations, double loss, double *most)
{
    float kept[CHECKPOINT_LOSSES];
    double x[CHECKPOINT_LOSSES];
    if (deviations <= 0 || w->count < CHECKPOINT_LOSSES) return false;
    loss_window_list(w, kept);
    for (int i = 0; i < CHECKPOINT_LOSSES; ++i) x[i] = (double)kept[i];
    *most = above(x, deviations, LEAST_SHARE);
    if (!(loss > *most)) return false;
    for (int i = 0; i < CHECKPOINT_LOSSES; ++i) x[i] = log(fmax(x[i], LEAST_LOSS));
    *most = fmax(*most, exp(above(x, deviations, 0)));
    return loss > *most;
}
