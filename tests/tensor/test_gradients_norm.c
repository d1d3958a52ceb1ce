/* Gradients of the norms (gradient_rig.h). */
#include "gradient_rig.h"

static int64_t hw_of(Shape s)
{
    return s.dim[2] * s.dim[3];
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
            y[at] = act_reference(&c->spec, v + (c->spec.residual ? x[1][at] : 0));
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

static void rms_norm(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    int64_t n = s.dim[s.ndim - 1], rows = shape_count(s) / n;
    for (int64_t r = 0; r < rows; ++r) {
        const double *row = x[0] + r * n;
        bool real = r < rows / s.dim[0] * c->rows;
        double square = 0;
        for (int64_t i = 0; i < n; ++i) square += row[i] * row[i] / (double)n;
        for (int64_t i = 0; i < n; ++i)
            y[r * n + i] = real ? row[i] / sqrt(square + c->spec.eps) * w[0][i] : 0;
    }
}

static void group_norm(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    int64_t hw = hw_of(s), groups = c->spec.groups, count = s.dim[1] / groups * hw;
    for (int64_t g = 0; g < s.dim[0] * groups; ++g) {
        const double *in = x[0] + g * count;
        double *out = y + g * count, mean = 0, variance = 0;
        for (int64_t i = 0; i < count; ++i) mean += in[i] / (double)count;
        for (int64_t i = 0; i < count; ++i) variance += pow(in[i] - mean, 2) / (double)count;
        for (int64_t i = 0; i < count; ++i) {
            int64_t channel = (g * count + i) / hw % s.dim[1];
            double v = (in[i] - mean) / sqrt(variance + c->spec.eps);
            v = act_reference(&c->spec, v * w[0][channel] + w[1][channel]);
            out[i] = g / groups < c->rows ? v : 0;
        }
    }
}

/* Two replicas with the same micro-batch: statistics and gradients equal those of one. */
static void add_twin(const Replicas *r, double *sums, int64_t count)
{
    (void)r;
    for (int64_t i = 0; i < count; ++i) sums[i] *= 2;
}

static const Replicas twins = {.size = 2, .sum = add_twin};

static void bn_case(Desc x, Act act, bool residual, int rows)
{
    Case c = {.spec = {.kind = OP_BATCH_NORM,
                       .act = act,
                       .residual = residual,
                       .eps = 1e-5f,
                       .x_count = residual ? 2 : 1,
                       .w_count = 4,
                       .x = {x, x},
                       .y = x},
              .rows = rows,
              .reference = batch_norm};
    for (int i = 0; i < 4; ++i) c.spec.w[i] = shape_of(1, x.shape.dim[1], 1, 1, 1);
    check(c);
    c.spec.synced = true;
    c.replicas = &twins;
    check(c);
}

static void test_batch_norm(void)
{
    bn_case(plain(4, 4, 19, 5, 3), ACT_NONE, false, 4);
    bn_case(plain(4, 3, 5, 3, 7), ACT_RELU, true, 2);
    bn_case(plain(4, 3, 33, 2, 2), ACT_RELU6, false, 3);
    bn_case(plain(4, 2, 16, 4, 4), ACT_RELU6, true, 1);
    bn_case(plain(2, 6, 21, 1, 1), ACT_RELU, false, 5);
    bn_case(plain(4, 3, 5, 2, 2), ACT_NONE, true, 3);
}

static void test_layer_norm(void)
{
    Case c = {.spec = {.kind = OP_LAYER_NORM, .eps = 1e-5f, .x_count = 1, .w_count = 2},
              .rows = 2,
              .reference = layer_norm};
    c.spec.x[0] = c.spec.y = plain(3, 3, 5, 37, 1);
    c.spec.w[0] = c.spec.w[1] = shape_of(1, 37, 1, 1, 1);
    check(c);
    c.rows = 7;
    c.spec.x[0] = c.spec.y = plain(2, 7, 64, 1, 1);
    c.spec.w[0] = c.spec.w[1] = shape_of(1, 64, 1, 1, 1);
    check(c);
}

static void test_rms_norm(void)
{
    Case c = {.spec = {.kind = OP_RMS_NORM, .eps = 1e-5f, .x_count = 1, .w_count = 1},
              .rows = 2,
              .reference = rms_norm};
    c.spec.x[0] = c.spec.y = plain(3, 3, 5, 37, 1);
    c.spec.w[0] = shape_of(1, 37, 1, 1, 1);
    check(c);
    c.rows = 7;
    c.spec.eps = 0.5f;
    c.spec.x[0] = c.spec.y = plain(2, 7, 64, 1, 1);
    c.spec.w[0] = shape_of(1, 64, 1, 1, 1);
    check(c);
}

static void gn_case(Desc x, int groups, Act act, int rows)
{
    Case c = {.spec = {.kind = OP_GROUP_NORM,
                       .act = act,
                       .groups = groups,
                       .eps = 1e-3f,
                       .x_count = 1,
                       .w_count = 2,
                       .x = {x},
                       .y = x},
              .rows = rows,
              .reference = group_norm};
    c.spec.w[0] = c.spec.w[1] = shape_of(1, x.shape.dim[1], 1, 1, 1);
    check(c);
}

/* Groups smaller than a block, equal to one, across blocks, and of all channels; fewer samples than
 * threads, and more. */
static void test_group_norm(void)
{
    gn_case(plain(4, 3, 20, 3, 2), 5, ACT_NONE, 2);
    gn_case(plain(4, 1, 16, 5, 3), 2, ACT_RELU, 1);
    gn_case(plain(4, 4, 24, 2, 3), 2, ACT_RELU6, 4);
    gn_case(plain(4, 2, 19, 3, 7), 1, ACT_NONE, 1);
    gn_case(plain(4, 2, 7, 4, 4), 7, ACT_RELU, 2);
}

TEST_MAIN("gradients of norms", {"batch_norm", test_batch_norm}, {"layer_norm", test_layer_norm},
          {"rms_norm", test_rms_norm}, {"group_norm", test_group_norm})
