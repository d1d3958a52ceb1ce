/* Detects loss spikes. A loss is a spike if two conditions hold. First, it is more than
 * `deviations` standard deviations above the mean of the window's losses. Second, the same is true
 * of its logarithm and the logarithms of the window's losses. The second condition is needed
 * because losses near zero may grow by large factors without a fault. In the first condition the
 * standard deviation counts as at least 1/64 of the mean, because losses may be nearly constant. */
#include "loss_window.h"

#include <math.h>
#include <string.h>

/* smallest standard deviation of the losses, as a fraction of their mean */
static const double DEVIATION_MIN = 1.0 / 64;
/* smallest loss whose logarithm is computed */
static const double LOSS_MIN = 1e-30;

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

/* Returns the mean of x plus `deviations` standard deviations of x; a standard deviation counts as
 * at least deviation_min times the absolute mean. Adds in the order of the array, so that the bits
 * of the sums are always the same. */
static double spike_limit(const double *x, double deviations, double deviation_min)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < CHECKPOINT_LOSSES; ++i) sum += x[i];
    double mean = sum / CHECKPOINT_LOSSES;
    for (int i = 0; i < CHECKPOINT_LOSSES; ++i) squares += (x[i] - mean) * (x[i] - mean);
    double deviation = sqrt(squares / CHECKPOINT_LOSSES);
    return mean + deviations * fmax(deviation, fabs(mean) * deviation_min);
}

/* Computes logarithms only for a loss that exceeds the limit of the first condition. */
bool loss_window_spike(const LossWindow *w, double deviations, double loss, double *most)
{
    float kept[CHECKPOINT_LOSSES];
    double x[CHECKPOINT_LOSSES];
    if (deviations <= 0 || w->count < CHECKPOINT_LOSSES) return false;
    loss_window_list(w, kept);
    for (int i = 0; i < CHECKPOINT_LOSSES; ++i) x[i] = (double)kept[i];
    *most = spike_limit(x, deviations, DEVIATION_MIN);
    if (!(loss > *most)) return false;
    for (int i = 0; i < CHECKPOINT_LOSSES; ++i) x[i] = log(fmax(x[i], LOSS_MIN));
    *most = fmax(*most, exp(spike_limit(x, deviations, 0)));
    return loss > *most;
}
