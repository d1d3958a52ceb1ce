/* Mixes the images of a micro-batch in pairs: each image with the one before it, and the first with
 * the last. Does it as torchvision's MixUp (Zhang et al. 2017) and CutMix (Yun et al. 2019). The
 * loss is a weighted mean over both labels. All images of a micro-batch are mixed in the same way.
 * Random numbers are keyed by (seed, epoch, step, micro-batch), so results do not depend on the
 * grid. */
#include "../data_private.h"

#include <math.h>
#include <string.h>

bool data_mixes_images(const Config *config)
{
    return config && (config->data.mixup > 0 || config->data.cutmix > 0);
}

/* A sequence of random numbers from one key; `next` is the index of the next number. */
typedef struct Draws {
    RngKey key;
    uint64_t next;
} Draws;

static double draw_uniform(Draws *d)
{
    return ((double)rng_u32(d->key, d->next++) + 0.5) * 0x1p-32;
}

static double draw_normal(Draws *d)
{
    double radius = sqrt(-2 * log(draw_uniform(d)));
    return radius * cos(2 * 3.14159265358979323846 * draw_uniform(d));
}

/* Draws a gamma variate (Marsaglia & Tsang 2000) and returns its logarithm, because with a small
 * alpha the variate itself would underflow a double. If alpha is below 1, the variate is drawn for
 * alpha + 1 and multiplied by a uniform number to the power 1 / alpha. */
static double draw_log_gamma(Draws *d, double alpha)
{
    double boost = 0;
    if (alpha < 1) {
        boost = log(draw_uniform(d)) / alpha;
        alpha += 1;
    }
    double third = alpha - 1.0 / 3, c = 1 / sqrt(9 * third);
    for (;;) {
        double x = draw_normal(d), v = 1 + c * x;
        if (v <= 0) continue;
        v = v * v * v;
        if (log(draw_uniform(d)) < 0.5 * x * x + third * (1 - v + log(v)))
            return log(third * v) + boost;
    }
}

static double draw_beta(Draws *d, double alpha)
{
    double x = draw_log_gamma(d, alpha), y = draw_log_gamma(d, alpha);
    return 1 / (1 + exp(y - x));
}

static int clip(double v, int64_t high)
{
    return v < 0 ? 0 : v > (double)high ? (int)high : (int)v;
}

/* Chooses a box at a random place, whose area is the fraction 1 - share of the image. The image's
 * edge may cut the box, so the result's share is computed from the box that remains. */
static Mix choose_cut(const DataSet *set, Draws *d, double share)
{
    int64_t width = set->width, height = set->height;
    int64_t x = (int64_t)(draw_uniform(d) * (double)width);
    int64_t y = (int64_t)(draw_uniform(d) * (double)height);
    double half = 0.5 * sqrt(1 - share);
    double half_width = floor(half * (double)width), half_height = floor(half * (double)height);
    Mix m = {.is_cutmix = true};
    m.box.x = clip((double)x - half_width, width);
    m.box.y = clip((double)y - half_height, height);
    m.box.width = clip((double)x + half_width, width) - m.box.x;
    m.box.height = clip((double)y + half_height, height) - m.box.y;
    m.share = (float)(1 - (double)m.box.width * m.box.height / ((double)width * (double)height));
    return m;
}

Mix mix_choose(const DataSet *set, const Config *config, const MicroBatch *batch)
{
    double mixup = config->data.mixup, cutmix = config->data.cutmix;
    uint64_t micro = (uint64_t)batch->step << 24 | (uint64_t)batch->micro;
    Draws d = {rng_key((uint64_t)config->run.seed, RNG_MIX, (uint64_t)batch->epoch, micro), 0};
    bool cut = cutmix > 0 && (mixup <= 0 || draw_uniform(&d) < 0.5);
    double share = draw_beta(&d, cut ? cutmix : mixup);
    return cut ? choose_cut(set, &d, share) : (Mix){.share = (float)share};
}

static void blend(float *to, const float *other, int64_t n, float share)
{
    for (int64_t i = 0; i < n; ++i) to[i] = share * to[i] + (1 - share) * other[i];
}

static void paste(float *to, const float *other, const Mix *m, const DataSet *set)
{
    for (int64_t c = 0; c < set->channels; ++c)
        for (int64_t y = m->box.y; y < m->box.y + m->box.height; ++y) {
            int64_t at = (c * set->height + y) * set->width + m->box.x;
            memcpy(to + at, other + at, (size_t)m->box.width * sizeof *to);
        }
}

void mix_images(const Mix *mix, const DataSet *set, const MicroBatch *batch, float *spare)
{
    int64_t values = set->channels * set->height * set->width;
    if (batch->rows < 1 || !batch->x) return;
    /* Rows are mixed from the last to the first, so that row r - 1 is still unmixed when row r
     * needs it. Row 0 needs the last row, so that is copied before. */
    memcpy(spare, batch->x + (batch->rows - 1) * values, (size_t)values * sizeof *spare);
    for (int64_t r = batch->rows - 1; r >= 0; --r) {
        float *to = batch->x + r * values;
        const float *other = r > 0 ? to - values : spare;
        if (mix->is_cutmix)
            paste(to, other, mix, set);
        else
            blend(to, other, values, mix->share);
    }
}

void mix_labels(const MicroBatch *batch)
{
    if (batch->rows < 1 || !batch->labels) return;
    for (int r = 0; r < batch->rows; ++r)
        batch->labels_other[r] = batch->labels[r > 0 ? r - 1 : batch->rows - 1];
}
