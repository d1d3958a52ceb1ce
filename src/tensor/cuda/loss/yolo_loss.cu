/* The detection loss, channels last. A block computes one level of one sample. Each combination of
 * an anchor and a channel belongs to the same thread for all boxes, and a thread reads the boxes in
 * the order of the labels. So no two threads add to the same number: sums and gradients need no
 * atomics, and have the same bits each time. Sums are in double; a tree adds the sums of the
 * threads. */
#include "cuda_loss_kernels.h"
#include "../passes/elem.cuh"

#include "../../yolo_terms.h"

enum { PART_BOX, PART_OBJECT, PART_CLASS, PARTS };

static __device__ YoloFactors factors_of(const YoloRun &run, double scale)
{
    return yolo_factors(run.levels, run.level, run.classes, (double)run.match_counts[run.level],
                        (double)run.match_counts[run.levels],
                        (double)run.grid.columns * run.grid.rows * run.grid.anchors, run.area,
                        run.smoothing, scale);
}

/* Returns the index in x of channel 0 of an anchor in one cell of a sample. */
static __device__ int64_t anchor_index(const YoloRun &run, int64_t sample, int anchor, int cell)
{
    const int64_t each = BOX_CHANNELS + run.classes;
    const int64_t cells = (int64_t)run.grid.columns * run.grid.rows;
    return (sample * cells + cell) * each * run.grid.anchors + anchor * each;
}

/* All threads of a block call this function. Each pair of an anchor and a number k belongs to one
 * thread. For its pairs, the thread calls f(box, match, k) for every match of the anchor in the
 * sample, in the order of the boxes. box: the numbers of the target box. k: 0 for the box part of
 * the loss, 1 + c for class c. */
template <class F> static __device__ void each_match(const YoloRun &run, int64_t sample, F f)
{
    const int each = run.classes > 1 ? 1 + run.classes : 1;
    for (int32_t r = run.start[sample]; r < run.start[sample + 1]; ++r) {
        const float *box = run.box + (int64_t)r * BOX_NUMBERS;
        for (int i = (int)threadIdx.x; i < run.grid.anchors * each; i += THREADS) {
            if (!yolo_sides_match(&run.grid, box, i / each)) continue;
            BoxMatch m;
            for (int slot = 0; slot < YOLO_SLOTS; ++slot)
                if (yolo_match_slot(&run.grid, box, i / each, slot, &m)) f(box, m, i % each);
        }
    }
}

static __device__ double class_target(const YoloFactors &f, const float *box, int k)
{
    return k == (int)box[BOX_CLASS] ? f.positive : f.negative;
}

static __device__ double cross_entropy(double x, double target)
{
    return (x > 0 ? x : 0) - x * target + log1p(exp(-fabs(x)));
}

template <class T> static __global__ void yolo_kernel(YoloRun run)
{
    const int64_t sample = blockIdx.x;
    const int cells = run.grid.columns * run.grid.rows, places = cells * run.grid.anchors;
    const T *x = (const T *)run.x;
    double *parts = run.parts + (sample * run.levels + run.level) * PARTS;
    float *overlap = run.overlap + sample * run.overlap_stride;
    double part[PARTS] = {0, 0, 0};
    YoloFactors f = {};
    if (sample < run.real) {
        f = factors_of(run, 1);
        for (int i = (int)threadIdx.x; i < places; i += THREADS) overlap[i] = 0;
        __syncthreads();
        each_match(run, sample, [&](const float *box, const BoxMatch &m, int k) {
            const int cell = m.row * run.grid.columns + m.column;
            const T *logit = x + anchor_index(run, sample, m.anchor, cell);
            if (k > 0) {
                part[PART_CLASS] += cross_entropy(as_float(logit[BOX_CHANNELS + k - 1]),
                                                  class_target(f, box, k - 1));
                return;
            }
            float t[4];
            double decoded[4];
            for (int i = 0; i < 4; ++i) t[i] = as_float(logit[i]);
            yolo_decode(t, run.grid.anchor[m.anchor], decoded, nullptr);
            const double ciou = yolo_ciou(decoded, &m, nullptr);
            float *place = &overlap[m.anchor * cells + cell];
            if ((float)ciou > *place) *place = (float)ciou;
            part[PART_BOX] += 1 - ciou;
            /* a label whose class is not in 0 .. classes - 1 makes the loss NaN */
            if (!(box[BOX_CLASS] >= 0 && box[BOX_CLASS] < run.classes)) part[PART_BOX] = NAN;
        });
        __syncthreads();
        for (int i = (int)threadIdx.x; i < places; i += THREADS) {
            const T *logit = x + anchor_index(run, sample, i / cells, i % cells);
            part[PART_OBJECT] += cross_entropy(as_float(logit[BOX_CHANNELS - 1]), overlap[i]);
        }
    }
    const double factor[PARTS] = {f.box, f.object, f.classes};
    for (int p = 0; p < PARTS; ++p) {
        const double sum = block_sum(part[p]);
        if (threadIdx.x == 0) parts[p] = sum * factor[p];
    }
}

/* Adds the parts of all levels of each sample, and writes the results of the sample. */
static __global__ void columns_kernel(YoloRun run, float *results, int64_t samples)
{
    const int64_t sample = element();
    if (sample >= samples) return;
    double sum[PARTS] = {0, 0, 0};
    for (int l = 0; l < run.levels; ++l)
        for (int p = 0; p < PARTS; ++p) sum[p] += run.parts[(sample * run.levels + l) * PARTS + p];
    float *y = results + sample * LOSS_COLUMNS;
    y[0] = (float)(sum[PART_BOX] + sum[PART_OBJECT] + sum[PART_CLASS]);
    y[1] = (float)sum[PART_BOX];
    y[2] = (float)sum[PART_OBJECT];
}

template <class T> static __device__ void add_to(T *at, double more)
{
    store_float(at, (float)((double)as_float(*at) + more));
}

template <class T> static __global__ void yolo_grad_kernel(YoloRun run)
{
    const int64_t sample = blockIdx.x;
    const int cells = run.grid.columns * run.grid.rows, places = cells * run.grid.anchors;
    const int64_t each = BOX_CHANNELS + run.classes, all = each * places;
    const T *x = (const T *)run.x;
    T *dx = (T *)run.dx;
    const float *overlap = run.overlap + sample * run.overlap_stride;
    for (int64_t i = threadIdx.x; i < all; i += THREADS) store_float(dx + sample * all + i, 0);
    if (sample >= run.real) return;
    const YoloFactors f =
        factors_of(run, (double)(run.numbers ? run.numbers->loss_factor : run.scale));
    __syncthreads();
    for (int i = (int)threadIdx.x; i < places; i += THREADS) {
        const int64_t at = anchor_index(run, sample, i / cells, i % cells) + BOX_CHANNELS - 1;
        store_float(dx + at, (float)(f.object * (yolo_sigmoid(as_float(x[at])) - overlap[i])));
    }
    each_match(run, sample, [&](const float *box, const BoxMatch &m, int k) {
        const int64_t at = anchor_index(run, sample, m.anchor, m.row * run.grid.columns + m.column);
        const int channel = BOX_CHANNELS + k - 1;
        if (k > 0) {
            add_to(dx + at + channel, f.classes * (yolo_sigmoid(as_float(x[at + channel])) -
                                                   class_target(f, box, k - 1)));
            return;
        }
        float t[4];
        double decoded[4], slope[4], grad[4];
        for (int i = 0; i < 4; ++i) t[i] = as_float(x[at + i]);
        yolo_decode(t, run.grid.anchor[m.anchor], decoded, slope);
        yolo_ciou(decoded, &m, grad);
        for (int i = 0; i < 4; ++i) add_to(dx + at + i, -f.box * grad[i] * slope[i]);
    });
}

cudaError_t launch_yolo_loss(cudaStream_t stream, YoloRun run, int64_t samples)
{
#define LAUNCH(T) yolo_kernel<T><<<(unsigned)samples, THREADS, 0, stream>>>(run)
    if (samples > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_yolo_results(cudaStream_t stream, YoloRun run, float *results, int64_t samples)
{
    if (samples > 0)
        columns_kernel<<<blocks_for(samples, THREADS), THREADS, 0, stream>>>(run, results, samples);
    return cudaGetLastError();
}

cudaError_t launch_yolo_loss_backward(cudaStream_t stream, YoloRun run, int64_t samples)
{
#define LAUNCH(T) yolo_grad_kernel<T><<<(unsigned)samples, THREADS, 0, stream>>>(run)
    if (samples > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
