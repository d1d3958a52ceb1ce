/* Angular speeds of rotary embeddings (Su et al. 2021) and their scalings for longer contexts, in
 * double precision. The formulas are those of the papers and of Hugging Face's transformers, the
 * library for which the models are published. This file also has attention_pairs, for the cost of
 * attention. */
#include "tensor/op_spec.h"

#include <math.h>

static const double TWO_PI = 6.283185307179586476925;

/* Returns the base of dynamic NTK scaling. If `length` is beyond the original context, the base
 * grows with it, so that all pairs but the first turn more slowly. With factor 1, the slowest pair
 * then turns over `length` tokens by the same angle as over the original context without
 * scaling. */
static double dynamic_base(const OpSpec *spec, int64_t width, int64_t length)
{
    const RotaryScaling *r = &spec->rotary_scaling;
    const double base = attention_rotary_base(spec), factor = (double)r->factor;
    const double tokens = (double)(length > r->original ? length : r->original);
    if (width <= 2) return base;
    return base *
           pow(factor * tokens / r->original - (factor - 1), (double)width / (double)(width - 2));
}

/* Returns the speed of a pair in the scaling of Llama 3. Fast pairs keep their speed, the speed of
 * slow pairs is divided by the factor, and between the two bounds the speed is interpolated. */
static double llama3_speed(const RotaryScaling *r, double speed)
{
    const double low = (double)r->low_freq_factor, high = (double)r->high_freq_factor;
    const double turns = r->original * speed / TWO_PI;
    if (turns > high) return speed;
    if (turns < low) return speed / (double)r->factor;
    const double share = (turns - low) / (high - low);
    return (1 - share) * speed / (double)r->factor + share * speed;
}

/* Returns the index, a real number, of the pair that makes `turns` turns over the original
 * context. */
static double yarn_pair(const OpSpec *spec, int64_t width, double turns)
{
    return (double)width * log(spec->rotary_scaling.original / (turns * TWO_PI)) /
           (2 * log(attention_rotary_base(spec)));
}

/* Divides the speeds of slow pairs by the factor, keeps the speeds of fast pairs, and interpolates
 * between the two bounds, which are indices of pairs. */
static void yarn_speeds(const OpSpec *spec, int64_t width, double *speed)
{
    const RotaryScaling *r = &spec->rotary_scaling;
    double low = yarn_pair(spec, width, r->beta_fast > 0 ? (double)r->beta_fast : 32);
    double high = yarn_pair(spec, width, r->beta_slow > 0 ? (double)r->beta_slow : 1);
    if (r->truncate) low = floor(low), high = ceil(high);
    low = fmax(low, 0);
    high = fmin(high, (double)(width - 1));
    if (low == high) high += 0.001;
    for (int64_t i = 0; i < width / 2; ++i) {
        const double share = fmin(fmax(((double)i - low) / (high - low), 0), 1);
        speed[i] = speed[i] / (double)r->factor * share + speed[i] * (1 - share);
    }
}

static double yarn_gain(double factor, double scale)
{
    return factor <= 1 ? 1 : 0.1 * scale * log(factor) + 1;
}

/* Returns the factor by which cosines and sines are multiplied; it acts as a temperature of
 * attention (YaRN, Peng et al. 2023, section 3.4). */
static double yarn_attention(const RotaryScaling *r)
{
    const double factor = (double)r->factor;
    if (r->attention_factor > 0) return (double)r->attention_factor;
    if (r->mscale > 0 && r->mscale_all_dim > 0)
        return yarn_gain(factor, (double)r->mscale) / yarn_gain(factor, (double)r->mscale_all_dim);
    return yarn_gain(factor, 1);
}

double rotary_speeds(const OpSpec *spec, int64_t width, int64_t length, double *speed)
{
    const RotaryScaling *r = &spec->rotary_scaling;
    const double base =
        r->type == ROTARY_DYNAMIC ? dynamic_base(spec, width, length) : attention_rotary_base(spec);
    const int64_t pairs = width / 2;
    for (int64_t i = 0; i < pairs; ++i) speed[i] = pow(base, -2.0 * (double)i / (double)width);
    switch (r->type) {
    case ROTARY_DEFAULT:
    case ROTARY_DYNAMIC:
        break;
    case ROTARY_LINEAR:
        for (int64_t i = 0; i < pairs; ++i) speed[i] /= (double)r->factor;
        break;
    case ROTARY_LLAMA3:
        for (int64_t i = 0; i < pairs; ++i) speed[i] = llama3_speed(r, speed[i]);
        break;
    case ROTARY_YARN:
        yarn_speeds(spec, width, speed);
        return yarn_attention(r);
    }
    return 1;
}

double attention_pairs(const OpSpec *spec, int64_t length)
{
    const double tokens = (double)length, window = (double)spec->window;
    if (spec->bidirectional) return tokens * tokens;
    if (spec->window == 0 || spec->window >= length) return tokens * (tokens + 1) / 2;
    return window * (window + 1) / 2 + (tokens - window) * window;
}
