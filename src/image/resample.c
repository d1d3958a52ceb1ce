/* Resamples with the same bits as Pillow, by Pillow's description: in a pass along the rows and a
 * pass down the columns, each rounded to bytes. Let scale be inputs / outputs. If the picture
 * shrinks, the filter is widened (antialiasing): its support is the support of the kernel times
 * max(scale, 1). The window of output i is centred at (i + 1/2) * scale and cut at the edge of the
 * box; weights are divided by their sum and rounded to multiples of 2^-22. All sums are sums of
 * integers, so all processors, with and without AVX2, give the same bytes. A pass that would keep
 * the size is skipped. */
#include "resample.h"

#include <math.h>
#include <string.h>

struct ImageResampler {
    /* weights of the pass along the rows */
    Weights across;
    /* weights of the pass down the columns */
    Weights down;
    /* owned: output of the first pass */
    uint8_t *intermediate;
    /* size of `intermediate` */
    size_t intermediate_bytes;
};

typedef double Kernel(double x);

static double triangle(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

/* Returns the cubic kernel (Keys 1981, "Cubic convolution interpolation") with a = -1/2. */
static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static const struct {
    Kernel *kernel;
    double support;
} filters[] = {[IMAGE_BILINEAR] = {triangle, 1}, [IMAGE_BICUBIC] = {cubic, 2}};

/* Allocates the arrays, unless their memory is large enough, and sets all weights to zero. */
static void weights_allocate(Weights *w, int outputs, int stride)
{
    int64_t n = outputs, cells = n * stride;
    int64_t bytes = (2 * n + 2 * cells) * (int64_t)sizeof(int32_t);
    if (bytes > w->memory_bytes) {
        mem_free(&w->memory);
        w->memory = mem_new((size_t)bytes);
        w->memory_bytes = bytes;
    }
    w->outputs = outputs;
    w->stride = stride;
    w->first = (int32_t *)w->memory;
    w->taps = w->first + n;
    w->weight = w->taps + n;
    w->low = (uint32_t *)(w->weight + cells);
    w->high = w->low + cells / 2;
    memset(w->weight, 0, (size_t)cells * sizeof *w->weight);
}

/* Splits the weights of one output into low and high parts. */
static void weights_split(Weights *w, int output)
{
    const int32_t *weight = w->weight + (int64_t)output * w->stride;
    uint32_t *low = w->low + (int64_t)output * w->stride / 2;
    uint32_t *high = w->high + (int64_t)output * w->stride / 2;
    const int32_t mask = (1 << SPLIT_BITS) - 1;
    for (int i = 0; i < w->stride / 2; ++i) {
        int32_t a = weight[2 * i], b = weight[2 * i + 1];
        low[i] = (uint32_t)(a & mask) | (uint32_t)(b & mask) << 16;
        high[i] = ((uint32_t)(a >> SPLIT_BITS) & 0xffff) | (uint32_t)(b >> SPLIT_BITS) << 16;
    }
}

/* Computes the weights for resampling `inputs` values to `total` values, of which only values
 * `begin` to begin + outputs - 1 are needed. */
static void weights_set(Weights *w, int inputs, int total, int begin, int outputs,
                        ImageFilter filter)
{
    Kernel *kernel = filters[filter].kernel;
    double scale = (double)inputs / total, widening = scale < 1 ? 1 : scale;
    double support = filters[filter].support * widening, narrowing = 1 / widening;
    int taps_max = (int)ceil(support) * 2 + 1;
    weights_allocate(w, outputs, (taps_max + TAP_GROUP - 1) / TAP_GROUP * TAP_GROUP);
    double *exact = mem_new((size_t)taps_max * sizeof *exact);
    for (int i = 0; i < outputs; ++i) {
        double centre = (begin + i + 0.5) * scale, sum = 0;
        int first = (int)(centre - support + 0.5), end = (int)(centre + support + 0.5);
        if (first < 0) first = 0;
        if (end > inputs) end = inputs;
        w->first[i] = first;
        w->taps[i] = end - first;
        for (int t = 0; t < end - first; ++t) {
            exact[t] = kernel((t + first - centre + 0.5) * narrowing);
            sum += exact[t];
        }
        for (int t = 0; t < end - first; ++t) {
            double v = (sum != 0 ? exact[t] / sum : exact[t]) * (1 << WEIGHT_BITS);
            w->weight[(int64_t)i * w->stride + t] = (int32_t)(v < 0 ? v - 0.5 : v + 0.5);
        }
        weights_split(w, i);
    }
    mem_free(&exact);
}

static void rows_resample(const Weights *w, const RowPass *pass)
{
    for (int y = 0; y < pass->rows; ++y) {
        const uint8_t *from = pass->from + (size_t)y * pass->from_step;
        uint8_t *to = pass->to + (size_t)y * pass->to_step;
        for (int x = 0; x < w->outputs; ++x) {
            const int32_t *weight = w->weight + (int64_t)x * w->stride;
            const uint8_t *p = from + (size_t)w->first[x] * 3;
            int32_t sum[3] = {1 << (WEIGHT_BITS - 1), 1 << (WEIGHT_BITS - 1),
                              1 << (WEIGHT_BITS - 1)};
            for (int t = 0; t < w->taps[x]; ++t, p += 3)
                for (int c = 0; c < 3; ++c) sum[c] += p[c] * weight[t];
            for (int c = 0; c < 3; ++c) *to++ = weights_clip(sum[c]);
        }
    }
}

static void column_resample(const Weights *w, int output, const uint8_t *from, size_t from_step,
                            uint8_t *to, int bytes)
{
    enum { BLOCK = 512 };
    const int32_t *weight = w->weight + (int64_t)output * w->stride;
    int32_t sum[BLOCK];
    from += (size_t)w->first[output] * from_step;
    for (int at = 0; at < bytes; at += BLOCK) {
        int n = bytes - at < BLOCK ? bytes - at : BLOCK;
        for (int i = 0; i < n; ++i) sum[i] = 1 << (WEIGHT_BITS - 1);
        for (int t = 0; t < w->taps[output]; ++t) {
            const uint8_t *p = from + (size_t)t * from_step + at;
            for (int i = 0; i < n; ++i) sum[i] += p[i] * weight[t];
        }
        for (int i = 0; i < n; ++i) to[at + i] = weights_clip(sum[i]);
    }
}

#if !defined(__x86_64__)
#define rows_resample_avx2   rows_resample
#define column_resample_avx2 column_resample
#endif

ImageResampler *image_resampler_new(void)
{
    return mem_new(sizeof(ImageResampler));
}

void image_resampler_free(ImageResampler **resampler)
{
    if (!*resampler) return;
    mem_free(&(*resampler)->across.memory);
    mem_free(&(*resampler)->down.memory);
    mem_free(&(*resampler)->intermediate);
    mem_free(resampler);
}

/* Rows of a picture. */
typedef struct Rows {
    /* first pixel of the first row */
    const uint8_t *pixel;
    /* bytes from one row to the next */
    size_t step;
} Rows;

/* Returns memory for the output of the first pass, width x height pixels; borrowed. */
static uint8_t *intermediate(ImageResampler *r, int width, int height)
{
    size_t bytes = (size_t)width * (size_t)height * 3 + IMAGE_SLACK;
    if (bytes > r->intermediate_bytes) {
        mem_free(&r->intermediate);
        r->intermediate = mem_new(bytes);
        r->intermediate_bytes = bytes;
    }
    return r->intermediate;
}

/* Resamples each of `rows` rows to r->across.outputs pixels, and returns the new rows, in `to`. */
static Rows pass_across(const ImageResampler *r, Rows from, int rows, uint8_t *to)
{
    size_t step = (size_t)r->across.outputs * 3;
    RowPass pass = {from.pixel, to, from.step, step, rows};
    (cpu_used() >= CPU_AVX2 ? rows_resample_avx2 : rows_resample)(&r->across, &pass);
    return (Rows){to, step};
}

/* Resamples rows of `width` pixels to r->down.outputs rows, and returns the new rows, in `to`. */
static Rows pass_down(const ImageResampler *r, Rows from, int width, uint8_t *to)
{
    size_t step = (size_t)width * 3;
    ColumnResample *column = cpu_used() >= CPU_AVX2 ? column_resample_avx2 : column_resample;
    for (int y = 0; y < r->down.outputs; ++y)
        column(&r->down, y, from.pixel, from.step, to + (size_t)y * step, (int)step);
    return (Rows){to, step};
}

/* Returns whether the pass down the columns comes first. The bytes depend on the order of the two
 * passes, since each pass rounds. The rule is that of Pillow 13; it was found by comparing both
 * orders with Pillow's results. */
static bool is_down_first(ImageBox box, int width, int height)
{
    int removed_columns = box.width - width, removed_rows = box.height - height;
    return removed_rows > 0 && 2 * (int64_t)removed_columns < removed_rows;
}

/* Returns the first input that the outputs need, and makes w->first relative to it. *count: number
 * of inputs from the first to the last that is needed. */
static int weights_trim(Weights *w, int *count)
{
    int first = w->first[0], last = w->outputs - 1;
    *count = w->first[last] + w->taps[last] - first;
    for (int i = 0; i <= last; ++i) w->first[i] -= first;
    return first;
}

static void copy_rows(Rows from, int width, int height, uint8_t *to)
{
    size_t row = (size_t)width * 3;
    for (int y = 0; y < height; ++y)
        memcpy(to + (size_t)y * row, from.pixel + (size_t)y * from.step, row);
}

void image_resample_part(ImageResampler *resampler, const Image *from, ImageBox box, int width,
                         int height, ImageBox part, Image *to, ImageFilter filter)
{
    ImageResampler *r = resampler;
    Rows rows = {from->pixel, (size_t)from->width * 3};
    bool across = box.width != width, down = box.height != height;
    /* the rectangle of the box that the part needs */
    int in_width = part.width, in_height = part.height, x = part.x, y = part.y;
    if (across) {
        weights_set(&r->across, box.width, width, part.x, part.width, filter);
        x = weights_trim(&r->across, &in_width);
    }
    if (down) {
        weights_set(&r->down, box.height, height, part.y, part.height, filter);
        y = weights_trim(&r->down, &in_height);
    }
    rows.pixel += (size_t)(box.y + y) * rows.step + (size_t)(box.x + x) * 3;
    if (across && down && is_down_first(box, width, height)) {
        rows = pass_down(r, rows, in_width, intermediate(r, in_width, part.height));
        pass_across(r, rows, part.height, to->pixel);
    } else if (across && down) {
        rows = pass_across(r, rows, in_height, intermediate(r, part.width, in_height));
        pass_down(r, rows, part.width, to->pixel);
    } else if (across) {
        pass_across(r, rows, part.height, to->pixel);
    } else if (down) {
        pass_down(r, rows, part.width, to->pixel);
    } else {
        copy_rows(rows, part.width, part.height, to->pixel);
    }
}

void image_resample(ImageResampler *resampler, const Image *from, ImageBox box, Image *to,
                    ImageFilter filter)
{
    ImageBox all = {0, 0, to->width, to->height};
    image_resample_part(resampler, from, box, to->width, to->height, all, to, filter);
}
