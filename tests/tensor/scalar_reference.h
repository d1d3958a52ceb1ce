/* Every operation that is not a matrix product, element by element in double, for test_gradients.c. All tensors are in plain
 * order, and only the first `rows` samples count. */
#ifndef WEFT_TESTS_SCALAR_REFERENCE_H
#define WEFT_TESTS_SCALAR_REFERENCE_H

#include "kernel_rig.h"

typedef struct Case Case;
struct Case {
    OpSpec spec; /* x shapes, parameters and y shape in plain order */
    int rows;
    void (*reference)(const Case *c, double *const x[], double *const w[], double *y);
};

static int64_t hw_of(Shape s)
{
    return s.dim[2] * s.dim[3];
}

static double act_reference(Act act, double v)
{
    switch (act) {
    case ACT_RELU:
        return v > 0 ? v : 0;
    case ACT_RELU6:
        return v < 0 ? 0 : v > 6 ? 6 : v;
    case ACT_GELU:
        return 0.5 * v * (1 + tanh(sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    case ACT_SILU:
        return v / (1 + exp(-v));
    case ACT_NONE:
        break;
    }
    return v;
}

static void batch_norm(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    int64_t hw = hw_of(s), channels = s.dim[1], count = c->rows * hw;
    for (int64_t i = 0; i < shape_count(s); ++i) y[i] = 0;
    for (int64_t ch = 0; ch < channels; ++ch) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < count; ++i) mean += x[0][(i / hw * channels + ch) * hw + i % hw];
        mean /= (double)count;
        for (int64_t i = 0; i < count; ++i)
            variance += pow(x[0][(i / hw * channels + ch) * hw + i % hw] - mean, 2);
        variance /= (double)count;
        for (int64_t i = 0; i < count; ++i) {
            int64_t at = (i / hw * channels + ch) * hw + i % hw;
            double v = (x[0][at] - mean) / sqrt(variance + c->spec.eps) * w[0][ch] + w[1][ch];
            y[at] = act_reference(c->spec.act, v + (c->spec.residual ? x[1][at] : 0));
        }
    }
}

static void layer_norm(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    int64_t n = s.dim[s.ndim - 1], rows = shape_count(s) / n;
    for (int64_t r = 0; r < rows; ++r) {
        const double *row = x[0] + r * n;
        bool real = r < rows / s.dim[0] * c->rows;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < n; ++i) mean += row[i] / (double)n;
        for (int64_t i = 0; i < n; ++i) variance += pow(row[i] - mean, 2) / (double)n;
        for (int64_t i = 0; i < n; ++i)
            y[r * n + i] =
                real ? (row[i] - mean) / sqrt(variance + c->spec.eps) * w[0][i] + w[1][i] : 0;
    }
}

static void activation(const Case *c, double *const x[], double *const w[], double *y)
{
    (void)w;
    for (int64_t i = 0; i < shape_count(c->spec.y.shape); ++i)
        y[i] = act_reference(c->spec.act, x[0][i]);
}

static void add(const Case *c, double *const x[], double *const w[], double *y)
{
    (void)w;
    for (int64_t i = 0; i < shape_count(c->spec.y.shape); ++i) {
        double sum = 0;
        for (int k = 0; k < c->spec.x_count; ++k) sum += x[k][i];
        y[i] = act_reference(c->spec.act, sum);
    }
}

static void flatten(const Case *c, double *const x[], double *const w[], double *y)
{
    (void)w;
    memcpy(y, x[0], (size_t)shape_count(c->spec.y.shape) * sizeof *y);
}

static void concat(const Case *c, double *const x[], double *const w[], double *y)
{
    (void)w;
    for (int64_t n = 0; n < c->spec.y.shape.dim[0]; ++n)
        for (int k = 0; k < c->spec.x_count; ++k) {
            int64_t part = shape_count(c->spec.x[k].shape) / c->spec.y.shape.dim[0];
            memcpy(y, x[k] + n * part, (size_t)part * sizeof *y);
            y += part;
        }
}

static void pool(const Case *c, double *const x[], double *const w[], double *y)
{
    const OpSpec *s = &c->spec;
    int64_t h = s->x[0].shape.dim[2], wide = s->x[0].shape.dim[3];
    bool global = s->pool == POOL_GLOBAL_AVG;
    (void)w;
    for (int64_t o = 0; o < shape_count(s->y.shape); ++o) {
        int64_t q = s->y.shape.dim[3], p = s->y.shape.dim[2], plane = o / (p * q);
        int64_t row = global ? 0 : o / q % p * s->stride[0] - s->pad[0];
        int64_t col = global ? 0 : o % q * s->stride[1] - s->pad[1];
        double sum = 0, best = -INFINITY, count = 0;
        for (int64_t i = row; i < row + (global ? h : s->kernel[0]); ++i)
            for (int64_t j = col; j < col + (global ? wide : s->kernel[1]); ++j) {
                if (i < 0 || j < 0 || i >= h || j >= wide) continue;
                double v = x[0][(plane * h + i) * wide + j];
                best = v > best ? v : best;
                sum += v;
                ++count;
            }
        y[o] = act_reference(s->act, s->pool == POOL_MAX ? best : sum / count);
    }
}

/* Drawn with the scalar generator, one element at a time. */
static const int64_t sample_ids[8] = {900, 3, 77, 12345678901, 5, 6, 7, 8};
static void dropout(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    int64_t per = shape_count(s) / s.dim[0];
    (void)w;
    for (int64_t i = 0; i < shape_count(s); ++i) {
        uint64_t name[2] = {c->spec.seed_name, (uint64_t)sample_ids[i / per]};
        RngKey key = rng_key(11, RNG_DROPOUT, hash_bytes(name, sizeof name), 5);
        bool keep = rng_uniform(key, (uint64_t)(i % per)) >= c->spec.drop;
        y[i] = keep ? x[0][i] / (1 - (double)c->spec.drop) : 0;
    }
}

static const int32_t labels[16] = {3, 0, 6, 2, 1, 5, 4, 6, 0, 3, 2, 1, 4, 5, 6, 0};
static void softmax_loss(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    int64_t k = s.dim[s.ndim - 1], rows = shape_count(s) / k;
    (void)w;
    for (int64_t r = 0; r < rows; ++r) {
        const double *row = x[0] + r * k, smooth = (double)c->spec.smoothing;
        double sum = 0, loss = 0, label_rank = 0, top = 0;
        for (int64_t i = 0; i < k; ++i) sum += exp(row[i]);
        for (int64_t i = 0; i < k; ++i) {
            double target = (i == labels[r] ? 1 - smooth : 0) + smooth / (double)k;
            loss -= target * (row[i] - log(sum));
            label_rank += row[i] > row[labels[r]];
            if (row[i] > row[(int64_t)top]) top = (double)i;
        }
        bool real = r < rows / s.dim[0] * c->rows;
        for (int i = 0; i < LOSS_COLUMNS; ++i)
            y[r * LOSS_COLUMNS + i] = real ? (double[]){loss, label_rank, top}[i] : 0;
    }
}

static float target_at(int64_t i)
{
    return (float)rig_random(99, i);
}
static void mse_loss(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    (void)w;
    for (int64_t r = 0; r < s.dim[0]; ++r) {
        y[r * LOSS_COLUMNS] = y[r * LOSS_COLUMNS + 1] = y[r * LOSS_COLUMNS + 2] = 0;
        for (int64_t i = 0; r < c->rows && i < s.dim[1]; ++i)
            y[r * LOSS_COLUMNS] +=
                pow(x[0][r * s.dim[1] + i] - target_at(r * s.dim[1] + i), 2) / (double)s.dim[1];
    }
}

static void positions(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    int64_t per = s.dim[1] * s.dim[2];
    for (int64_t i = 0; i < shape_count(s); ++i)
        y[i] = i / per < c->rows ? x[0][i] + w[0][i % per] : 0;
}

/* Value `i` of the query or key at place t of a head, turned if the case wants that. */
static double turned(const Case *c, const double *head, int64_t t, int64_t i)
{
    int64_t stride = c->spec.x[0].shape.dim[2], width = stride / 3 / c->spec.heads;
    if (!c->spec.rotary) return head[t * stride + i];
    int64_t half = width / 2, low = i % half;
    double a = head[t * stride + low], b = head[t * stride + low + half];
    double angle = (double)t * pow(10000, -2.0 * (double)low / (double)width);
    return i < half ? a * cos(angle) - b * sin(angle) : b * cos(angle) + a * sin(angle);
}

/* One query: q of the head, its keys from `key` on, values from `value` on. */
static void attend(const Case *c, const double *q, const double *key, const double *value,
                   int64_t t, double *y)
{
    int64_t stride = c->spec.x[0].shape.dim[2], width = stride / 3 / c->spec.heads;
    double weight[16], total = 0;
    for (int64_t s = 0; s <= t; ++s) {
        double score = 0;
        for (int64_t i = 0; i < width; ++i) score += turned(c, q, t, i) * turned(c, key, s, i);
        weight[s] = exp(score / sqrt((double)width));
        total += weight[s];
    }
    for (int64_t i = 0; i < width; ++i) {
        y[i] = 0;
        for (int64_t s = 0; s <= t; ++s) y[i] += weight[s] / total * value[s * stride + i];
    }
}

static void attention(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.y.shape;
    int64_t width = s.dim[2] / c->spec.heads;
    (void)w;
    memset(y, 0, (size_t)shape_count(s) * sizeof *y);
    for (int64_t n = 0; n < c->rows; ++n)
        for (int h = 0; h < c->spec.heads; ++h)
            for (int64_t t = 0; t < s.dim[1]; ++t) {
                const double *q = x[0] + n * s.dim[1] * 3 * s.dim[2] + h * width;
                attend(c, q, q + s.dim[2], q + 2 * s.dim[2], t,
                       y + (n * s.dim[1] + t) * s.dim[2] + h * width);
            }
}

#endif
