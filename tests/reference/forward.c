/* Computes the losses of forward.h. Every function takes arrays and returns a new array; all arrays
 * are freed when the loss has been computed. Letters: B samples, T tokens, C channels, H heads, V
 * vocabulary; for images N samples, C channels, H height, W width. */
#include "forward.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* eps of layer norm and batch norm */
static const double EPSILON = 1e-5;

enum { NAME_CHARS = 64 };

/* ---- memory and parameters ---- */

/* an array, linked to the previously allocated array */
typedef struct Block {
    struct Block *before;
    double number[];
} Block;

typedef struct Run {
    ReferenceParams params;
    Block *newest;
    /* 1 if a requested parameter does not exist */
    int missing;
} Run;

/* Allocates an array of `count` zeros, which is freed with the run. */
static double *array(Run *run, int count)
{
    Block *block = calloc(1, sizeof *block + (size_t)count * sizeof(double));
    if (!block) abort();
    block->before = run->newest;
    run->newest = block;
    return block->number;
}

static double finish(Run *run, double loss)
{
    while (run->newest) {
        Block *before = run->newest->before;
        free(run->newest);
        run->newest = before;
    }
    return run->missing ? NAN : loss;
}

/* Returns the parameter "layer.part", `count` numbers; zeros if it is missing. */
static const double *param(Run *run, const char *layer, const char *part, int count)
{
    char name[2 * NAME_CHARS];
    snprintf(name, sizeof name, "%s.%s", layer, part);
    for (int i = 0; i < run->params.count; ++i)
        if (strcmp(run->params.list[i].name, name) == 0) return run->params.list[i].value;
    fprintf(stderr, "reference: no parameter %s\n", name);
    run->missing = 1;
    return array(run, count);
}

/* ---- layers of both models ---- */

/* y = x w^T + bias: (rows, in) -> (rows, out). w is (out, in); bias may be NULL. */
static double *dense(Run *run, const double *x, const double *w, const double *bias, int rows,
                     int in, int out)
{
    double *y = array(run, rows * out);
    for (int r = 0; r < rows; ++r)
        for (int o = 0; o < out; ++o) {
            double sum = bias ? bias[o] : 0;
            for (int i = 0; i < in; ++i) sum += x[r * in + i] * w[o * in + i];
            y[r * out + o] = sum;
        }
    return y;
}

static double *add(Run *run, const double *a, const double *b, int count)
{
    double *y = array(run, count);
    for (int i = 0; i < count; ++i) y[i] = a[i] + b[i];
    return y;
}

/* Returns the mean over rows of -log softmax(logits)[label]. */
static double cross_entropy(const double *logits, const int *label, int rows, int classes)
{
    double loss = 0;
    for (int r = 0; r < rows; ++r) {
        const double *z = logits + r * classes;
        double most = z[0], sum = 0;
        for (int k = 1; k < classes; ++k) most = fmax(most, z[k]);
        for (int k = 0; k < classes; ++k) sum += exp(z[k] - most);
        loss += log(sum) + most - z[label[r]];
    }
    return loss / rows;
}

/* ---- GPT-2 ---- */

/* Adds the token's row of wte and the position's row of wpe: (B,T) -> (B,T,C). */
static double *embed(Run *run, const ReferenceGpt2 *m, const int *token)
{
    const double *wte = param(run, "wte", "weight", m->V * m->C);
    const double *wpe = param(run, "wpe", "weight", m->T * m->C);
    double *x = array(run, m->B * m->T * m->C);
    for (int i = 0; i < m->B * m->T; ++i)
        for (int c = 0; c < m->C; ++c)
            x[i * m->C + c] = wte[token[i] * m->C + c] + wpe[i % m->T * m->C + c];
    return x;
}

/* Layer norm (Ba et al. 2016): normalises each row of C numbers to mean 0 and variance 1, then
 * scales and shifts. */
static double *layer_norm(Run *run, const char *layer, const double *x, int rows, int C)
{
    const double *scale = param(run, layer, "weight", C), *shift = param(run, layer, "bias", C);
    double *y = array(run, rows * C);
    for (int r = 0; r < rows; ++r) {
        double mean = 0, variance = 0;
        for (int c = 0; c < C; ++c) mean += x[r * C + c] / C;
        for (int c = 0; c < C; ++c) variance += pow(x[r * C + c] - mean, 2) / C;
        for (int c = 0; c < C; ++c)
            y[r * C + c] = (x[r * C + c] - mean) / sqrt(variance + EPSILON) * scale[c] + shift[c];
    }
    return y;
}

/* Computes the attention of one query to the keys at positions 0 to t: y = softmax(q k^T /
 * sqrt(width)) v. Rows of k and v begin 3C numbers apart. */
static void attend(const double *q, const double *k, const double *v, int t, int C, int width,
                   double *score, double *y)
{
    double most = -INFINITY, sum = 0;
    for (int s = 0; s <= t; ++s) {
        score[s] = 0;
        for (int i = 0; i < width; ++i) score[s] += q[i] * k[s * 3 * C + i] / sqrt(width);
        most = fmax(most, score[s]);
    }
    for (int s = 0; s <= t; ++s) sum += exp(score[s] - most);
    for (int s = 0; s <= t; ++s)
        for (int i = 0; i < width; ++i) y[i] += exp(score[s] - most) / sum * v[s * 3 * C + i];
}

/* Causal attention with H heads (Vaswani et al. 2017): (B,T,3C), with queries, keys and values next
 * to each other, -> (B,T,C). */
static double *attention(Run *run, const ReferenceGpt2 *m, const double *qkv)
{
    int T = m->T, C = m->C, width = C / m->H;
    double *y = array(run, m->B * T * C), *score = array(run, T);
    for (int b = 0; b < m->B; ++b)
        for (int h = 0; h < m->H; ++h)
            for (int t = 0; t < T; ++t) {
                const double *sample = qkv + b * T * 3 * C + h * width;
                attend(sample + t * 3 * C, sample + C, sample + 2 * C, t, C, width, score,
                       y + (b * T + t) * C + h * width);
            }
    return y;
}

/* gelu in the form with tanh (Hendrycks & Gimpel 2016). */
static double *gelu(Run *run, const double *x, int count)
{
    double *y = array(run, count), root = sqrt(2 / acos(-1.0));
    for (int i = 0; i < count; ++i)
        y[i] = x[i] / 2 * (1 + tanh(root * (x[i] + 0.044715 * pow(x[i], 3))));
    return y;
}

/* Applies the dense layer `layer` to each token. */
static double *project(Run *run, const ReferenceGpt2 *m, const char *layer, const double *x, int in,
                       int out)
{
    const double *w = param(run, layer, "weight", in * out), *bias = param(run, layer, "bias", out);
    return dense(run, x, w, bias, m->B * m->T, in, out);
}

/* Makes a name such as "h.3.mlp.c_fc". */
static const char *in_block(int block, const char *part, char name[NAME_CHARS])
{
    snprintf(name, NAME_CHARS, "h.%d.%s", block, part);
    return name;
}

double reference_gpt2(ReferenceParams params, ReferenceGpt2 model, const int *tokens,
                      const int *next)
{
    Run all = {.params = params}, *run = &all;
    const ReferenceGpt2 *m = &model;
    int rows = m->B * m->T, C = m->C;
    char name[NAME_CHARS];

    double *x = embed(run, m, tokens);
    for (int l = 0; l < m->L; ++l) {
        double *y = layer_norm(run, in_block(l, "ln_1", name), x, rows, C);
        y = project(run, m, in_block(l, "attn.c_attn", name), y, C, 3 * C);
        y = attention(run, m, y);
        y = project(run, m, in_block(l, "attn.c_proj", name), y, C, C);
        x = add(run, x, y, rows * C);

        y = layer_norm(run, in_block(l, "ln_2", name), x, rows, C);
        y = project(run, m, in_block(l, "mlp.c_fc", name), y, C, 4 * C);
        y = gelu(run, y, rows * 4 * C);
        y = project(run, m, in_block(l, "mlp.c_proj", name), y, 4 * C, C);
        x = add(run, x, y, rows * C);
    }
    x = layer_norm(run, "ln_f", x, rows, C);
    /* The head's weight is the embedding's matrix (Press & Wolf 2017). */
    double *logits = dense(run, x, param(run, "wte", "weight", m->V * C), NULL, rows, C, m->V);
    return finish(run, cross_entropy(logits, next, rows, m->V));
}

/* ---- ResNet ---- */

/* array of shape (N,C,H,W) */
typedef struct Image {
    int N, C, H, W;
    double *at;
} Image;

static Image image(Run *run, int N, int C, int H, int W)
{
    return (Image){N, C, H, W, array(run, N * C * H * W)};
}

static int place(const Image *x, int n, int c, int h, int w)
{
    return ((n * x->C + c) * x->H + h) * x->W + w;
}

static int inside(const Image *x, int h, int w)
{
    return h >= 0 && h < x->H && w >= 0 && w < x->W;
}

/* y[n,o,h,w] = sum over c, i, j of x[n, c, h*stride + i - pad, w*stride + j - pad] w[o,c,i,j], pad
 * = kernel / 2; beyond the edge x is 0. */
static double conv_sum(const Image *x, const double *kernel, int size, int n, int h, int w)
{
    double sum = 0;
    for (int c = 0; c < x->C; ++c)
        for (int i = 0; i < size; ++i)
            for (int j = 0; j < size; ++j)
                if (inside(x, h + i, w + j))
                    sum += x->at[place(x, n, c, h + i, w + j)] * kernel[(c * size + i) * size + j];
    return sum;
}

static Image conv(Run *run, const char *layer, Image x, int channels, int size, int stride)
{
    const double *weight = param(run, layer, "weight", channels * x.C * size * size);
    int pad = size / 2;
    Image y = image(run, x.N, channels, (x.H + 2 * pad - size) / stride + 1,
                    (x.W + 2 * pad - size) / stride + 1);
    for (int n = 0; n < y.N; ++n)
        for (int o = 0; o < y.C; ++o)
            for (int h = 0; h < y.H; ++h)
                for (int w = 0; w < y.W; ++w)
                    y.at[place(&y, n, o, h, w)] = conv_sum(&x, weight + o * x.C * size * size, size,
                                                           n, h * stride - pad, w * stride - pad);
    return y;
}

/* Normalises one channel to mean 0 and variance 1 over the batch, then scales and shifts. */
static void normalize(Image x, int c, double scale, double shift, Image y)
{
    int area = x.H * x.W, count = x.N * area;
    double mean = 0, variance = 0;
    for (int n = 0; n < x.N; ++n)
        for (int i = 0; i < area; ++i) mean += x.at[place(&x, n, c, 0, 0) + i] / count;
    for (int n = 0; n < x.N; ++n)
        for (int i = 0; i < area; ++i)
            variance += pow(x.at[place(&x, n, c, 0, 0) + i] - mean, 2) / count;
    for (int n = 0; n < x.N; ++n)
        for (int i = 0; i < area; ++i) {
            int at = place(&x, n, c, 0, 0) + i;
            y.at[at] = (x.at[at] - mean) / sqrt(variance + EPSILON) * scale + shift;
        }
}

/* Batch norm (Ioffe & Szegedy 2015) with the statistics of the batch. */
static Image batch_norm(Run *run, const char *layer, Image x)
{
    const double *scale = param(run, layer, "weight", x.C), *shift = param(run, layer, "bias", x.C);
    Image y = image(run, x.N, x.C, x.H, x.W);
    for (int c = 0; c < x.C; ++c) normalize(x, c, scale[c], shift[c], y);
    return y;
}

static Image relu(Run *run, Image x)
{
    Image y = image(run, x.N, x.C, x.H, x.W);
    for (int i = 0; i < x.N * x.C * x.H * x.W; ++i) y.at[i] = fmax(x.at[i], 0);
    return y;
}

/* Computes the maximum over 3x3 pixels with stride 2. The padding of one pixel is never the
 * maximum. */
static Image max_pool(Run *run, Image x)
{
    Image y = image(run, x.N, x.C, (x.H - 1) / 2 + 1, (x.W - 1) / 2 + 1);
    for (int n = 0; n < y.N; ++n)
        for (int c = 0; c < y.C; ++c)
            for (int h = 0; h < y.H; ++h)
                for (int w = 0; w < y.W; ++w) {
                    double most = -INFINITY;
                    for (int i = 2 * h - 1; i <= 2 * h + 1; ++i)
                        for (int j = 2 * w - 1; j <= 2 * w + 1; ++j)
                            if (inside(&x, i, j)) most = fmax(most, x.at[place(&x, n, c, i, j)]);
                    y.at[place(&y, n, c, h, w)] = most;
                }
    return y;
}

/* Computes the mean of each channel: (N,C,H,W) -> (N,C). */
static double *global_pool(Run *run, Image x)
{
    double *y = array(run, x.N * x.C);
    int area = x.H * x.W;
    for (int i = 0; i < x.N * x.C; ++i)
        for (int k = 0; k < area; ++k) y[i] += x.at[i * area + k] / area;
    return y;
}

/* Applies the convolution "PREFIXconvN" and the batch norm "PREFIXbnN", N: number. */
static Image conv_norm(Run *run, const char *prefix, int number, Image x, int channels, int size,
                       int stride)
{
    char name[NAME_CHARS];
    snprintf(name, sizeof name, "%sconv%d", prefix, number);
    x = conv(run, name, x, channels, size, stride);
    snprintf(name, sizeof name, "%sbn%d", prefix, number);
    return batch_norm(run, name, x);
}

/* Returns the shortcut of a block: its input, projected if the shape changes. */
static Image shortcut(Run *run, const char *prefix, Image x, int channels, int stride)
{
    char name[NAME_CHARS];
    if (x.C == channels && stride == 1) return x;
    snprintf(name, sizeof name, "%sdownsample.0", prefix);
    x = conv(run, name, x, channels, 1, stride);
    snprintf(name, sizeof name, "%sdownsample.1", prefix);
    return batch_norm(run, name, x);
}

static Image basic_block(Run *run, const char *prefix, Image x, int width, int stride)
{
    Image y = relu(run, conv_norm(run, prefix, 1, x, width, 3, stride));
    y = conv_norm(run, prefix, 2, y, width, 3, 1);
    x = shortcut(run, prefix, x, width, stride);
    y.at = add(run, y.at, x.at, y.N * y.C * y.H * y.W);
    return relu(run, y);
}

static Image bottleneck(Run *run, const char *prefix, Image x, int width, int stride)
{
    Image y = relu(run, conv_norm(run, prefix, 1, x, width, 1, 1));
    y = relu(run, conv_norm(run, prefix, 2, y, width, 3, stride));
    y = conv_norm(run, prefix, 3, y, 4 * width, 1, 1);
    x = shortcut(run, prefix, x, 4 * width, stride);
    y.at = add(run, y.at, x.at, y.N * y.C * y.H * y.W);
    return relu(run, y);
}

double reference_resnet(ReferenceParams params, ReferenceResnet m, const double *data,
                        const int *label)
{
    Run all = {.params = params}, *run = &all;
    char prefix[NAME_CHARS];
    Image x = image(run, m.N, m.C, m.H, m.W);
    memcpy(x.at, data, (size_t)m.N * m.C * m.H * m.W * sizeof *data);

    x = relu(run, conv_norm(run, "", 1, x, 64, m.small_stem ? 3 : 7, m.small_stem ? 1 : 2));
    if (!m.small_stem) x = max_pool(run, x);
    for (int s = 0; s < 4; ++s)
        for (int b = 0; b < m.blocks[s]; ++b) {
            int width = 64 << s, stride = s > 0 && b == 0 ? 2 : 1;
            snprintf(prefix, sizeof prefix, "layer%d.%d.", s + 1, b);
            x = m.bottleneck ? bottleneck(run, prefix, x, width, stride)
                             : basic_block(run, prefix, x, width, stride);
        }
    double *pooled = global_pool(run, x);
    double *logits = dense(run, pooled, param(run, "fc", "weight", m.classes * x.C),
                           param(run, "fc", "bias", m.classes), m.N, x.C, m.classes);
    return finish(run, cross_entropy(logits, label, m.N, m.classes));
}
