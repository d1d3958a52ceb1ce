/* Launchers of the CUDA kernels of losses, by the rules of cuda_kernels.h. */
#ifndef WEFT_CUDA_LOSS_KERNELS_H
#define WEFT_CUDA_LOSS_KERNELS_H

#include "cuda_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* loss.cu: x (rows, width), whose rows begin `stride` elements apart. The gradients of rows from
 * `real` on and of the padding of each row are zero, and so are the results of rows from `real` on.
 * For softmax_loss the columns of x are logits first .. first + width - 1 of `classes`. */
typedef struct LossRun {
    DType type;
    const void *x;
    /* softmax_loss: class of each row */
    const int32_t *labels;
    /* point_loss: (rows, width); NaN: missing */
    const float *targets;
    /* the loss of point_loss; its delta (POINT_HUBER) or eps */
    PointLoss point;
    float size;
    /* point_loss: weights of a row's targets, those of the next row weights_step further; NULL: all
     * 1 */
    const float *weights;
    int64_t weights_step;
    /* output of forward: (rows, LOSS_COLUMNS) */
    float *columns;
    /* softmax_loss: log of the sum of a row's exponentials (rows); forward writes it, backward
     * reads it */
    float *log_sum;
    /* point_loss: sum of the weights of a row's targets that are not missing (rows); forward writes
     * it, backward reads it */
    float *row_weight;
    /* point_loss: scratch of rows x cuda_point_parts(width) x 2 */
    double *partial;
    /* gradient, in the layout of x; may be x. launch_softmax_loss writes it, too, unless it is
     * NULL. */
    void *dx;
    float smoothing, scale;
    /* source of the loss scale, read when the kernel runs; NULL: `scale` is used */
    const StepNumbers *numbers;
    int64_t rows, real, width, stride, first, classes;
    /* bytes of shared memory in which a block may keep its row (cuda_softmax_shared_bytes) */
    int64_t shared_bytes;
} LossRun;
/* Number of parts that point_loss divides a row into. Each part of a wide row, such as a field, has
 * a block; any other row is one part, which has a warp. */
enum { CUDA_POINT_COLUMNS = 8192 };
static inline int64_t cuda_point_parts(int64_t width)
{
    int64_t parts = width / CUDA_POINT_COLUMNS;
    if (parts > CUDA_SUM_BLOCKS) parts = CUDA_SUM_BLOCKS;
    return parts > 1 ? parts : 1;
}
/* Sets *bytes to the shared memory in which a block of softmax_loss may keep its row on GPU
 * `device`. */
cudaError_t cuda_softmax_shared_bytes(int device, int64_t *bytes);
cudaError_t launch_softmax_loss(cudaStream_t stream, LossRun run);
cudaError_t launch_softmax_loss_backward(cudaStream_t stream, LossRun run);
cudaError_t launch_point_loss(cudaStream_t stream, LossRun run);
cudaError_t launch_point_loss_backward(cudaStream_t stream, LossRun run);

/* pixel_loss.cu: losses with a label for each pixel of x (samples, pixels, classes), channels last;
 * a label of -1 is none. Rows are pixels of all samples. Results and gradients of padded samples
 * are 0, and a label out of range makes a loss NaN. dx may be x.
 *     launch_pixel_loss    cross-entropy, focal loss: columns (rows, LOSS_COLUMNS), log_sum, factor
 *     launch_region_loss   Dice and IoU: columns (samples, LOSS_COLUMNS), log_sum, slopes
 *     launch_sigmoid_loss  x has one logit for each sample and labels are 0 or 1: columns */
typedef struct PixelRun {
    DType type;
    const void *x;
    const int32_t *labels;
    float *columns;
    void *dx;
    /* Forward writes them, backward reads them. log_sum (rows): log of the sum of a pixel's
     * exponentials. factor (samples): pixels / sum of the weights of their labels. slopes (samples,
     * 2, classes), for region_loss: derivatives of a class's overlap by the sum of its
     * probabilities, and by the part of this sum in pixels with its label. */
    float *log_sum, *factor, *slopes;
    /* scratch: sums of weights (samples, parts), or of classes (samples, cuda_sum_parts(type,
     * pixels, classes), 3, classes) */
    double *partial;
    ClassWeights weights;
    RegionLoss region;
    /* weight_sum: sum of the weights of all classes; focus: gamma of focal loss */
    float weight_sum, smoothing, focus, scale;
    /* source of the loss scale, as in LossRun */
    const StepNumbers *numbers;
    /* parts: blocks of a sample */
    int64_t samples, real, pixels, classes, parts;
} PixelRun;
cudaError_t launch_pixel_loss(cudaStream_t stream, PixelRun run);
cudaError_t launch_pixel_loss_backward(cudaStream_t stream, PixelRun run);
cudaError_t launch_region_loss(cudaStream_t stream, PixelRun run);
cudaError_t launch_region_loss_backward(cudaStream_t stream, PixelRun run);
cudaError_t launch_sigmoid_loss(cudaStream_t stream, PixelRun run);
cudaError_t launch_sigmoid_loss_backward(cudaStream_t stream, PixelRun run);

/* yolo_loss.cu: one level of the detection loss, on a grid that is channels last. launch_yolo_loss
 * writes `best` and `parts` of its level; launch_yolo_columns adds the parts of all levels. */
typedef struct YoloRun {
    DType type;
    const void *x;
    void *dx;
    /* largest overlap of the matches of each anchor and cell; forward writes it, backward reads it.
     * best_step: floats from one sample to the next */
    float *best;
    int64_t best_step;
    /* double (samples, levels, 3): parts of boxes, objects and classes */
    double *parts;
    BoxGrid grid;
    int level, levels, classes;
    /* the target boxes, as in BoxTargets */
    const int32_t *start;
    const float *row;
    const int64_t *normaliser;
    int64_t real;
    /* area: pixels of a picture */
    double smoothing, area;
    float scale;
    /* source of the loss scale, as in LossRun */
    const StepNumbers *numbers;
} YoloRun;
cudaError_t launch_yolo_loss(cudaStream_t stream, YoloRun run, int64_t samples);
cudaError_t launch_yolo_columns(cudaStream_t stream, YoloRun run, float *columns, int64_t samples);
cudaError_t launch_yolo_loss_backward(cudaStream_t stream, YoloRun run, int64_t samples);

/* softmax_sliced.cu: softmax_loss on slices of every row of logits, of which each rank has one or
 * several. The first two launchers are called for each slice. Between the launches the caller
 * gathers the results of all ranks:
 *     launch_softmax_label       the label's logit, or 0 if another slice has it
 *     launch_softmax_summary     LOSS_SUMMARY numbers that describe the slice
 *     launch_softmax_merge       columns and log_sum, the same bits on all ranks
 * For rows from `real` on, launch_softmax_merge writes zeros, and the others compute nothing. */
enum { LOSS_SUMMARY = 5 };
typedef struct LossSlices {
    LossRun loss;
    /* number of slices of all ranks */
    int slices;
    /* true: the order of a slice's sums depends on the slice's width alone, not on the stride of
     * its rows */
    bool by_width;
    /* logit of the label: from this slice (rows), from all slices (slices, rows) */
    float *label_logit, *all_label_logits;
    /* this slice's summary (rows, LOSS_SUMMARY), those of all (slices, rows, LOSS_SUMMARY) */
    float *summary, *all_summaries;
} LossSlices;
cudaError_t launch_softmax_label(cudaStream_t stream, LossSlices run);
cudaError_t launch_softmax_summary(cudaStream_t stream, LossSlices run);
cudaError_t launch_softmax_merge(cudaStream_t stream, LossSlices run);

#ifdef __cplusplus
}
#endif
#endif
