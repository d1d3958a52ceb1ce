/* Launchers of the CUDA kernels of losses. The file comment of cuda_kernels.h holds for them,
 * too. */
#ifndef WEFT_CUDA_LOSS_KERNELS_H
#define WEFT_CUDA_LOSS_KERNELS_H

#include "../cuda_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* loss.cu: x (rows, width), whose rows begin `stride` elements apart. Results and gradients of
 * padded rows are 0, and so are the gradients of the padding in each row. For softmax_loss the
 * columns of x are logits first .. first + width - 1 of `classes` classes. */
typedef struct LossRun {
    DType type;
    const void *x;
    /* softmax_loss: class of each row, [rows] */
    const int32_t *labels;
    /* point_loss: target of each number, (rows, width); NaN: missing */
    const float *targets;
    /* point_loss: the loss of one number */
    PointLoss point;
    /* point_loss: point_parameter of the operation */
    float point_parameter;
    /* point_loss: weights of the targets of row 0, [width]; NULL: all weights are 1 */
    const float *weights;
    /* point_loss: floats from the weights of one row to those of the next; 0: rows share weights */
    int64_t weights_stride;
    /* results, (rows, LOSS_COLUMNS), written by forward */
    float *results;
    /* softmax_loss: log of the sum of each row's exponentials, [rows]; forward writes it, backward
     * reads it */
    float *log_sum;
    /* point_loss: sum of the weights of each row's targets that are not missing, [rows]; forward
     * writes it, backward reads it */
    float *row_weight;
    /* point_loss: scratch of rows x cuda_point_parts(width) x 2 doubles */
    double *partial;
    /* Gradient, in the layout of x; may be in x's memory. launch_softmax_loss writes it, too,
     * unless it is NULL. */
    void *dx;
    /* smoothing: label smoothing; scale: OpRun.loss_factor, a factor of the gradient */
    float smoothing, scale;
    /* source of the loss factor, read when the kernel runs; NULL: `scale` is used */
    const StepNumbers *numbers;
    int64_t rows, real, width, stride, first, classes;
    /* bytes of shared memory in which a block of softmax_loss may keep its row
     * (cuda_softmax_shared_bytes) */
    int64_t shared_bytes;
} LossRun;
/* Returns the number of parts into which point_loss divides a row. A wide row, such as a field, has
 * several parts, each of which a block computes. Any other row is one part, which a warp
 * computes. */
enum { CUDA_POINT_COLUMNS = 8192 };
static inline int64_t cuda_point_parts(int64_t width)
{
    int64_t parts = width / CUDA_POINT_COLUMNS;
    if (parts > CUDA_SUM_BLOCKS) parts = CUDA_SUM_BLOCKS;
    return parts > 1 ? parts : 1;
}
/* Sets *bytes to the bytes of shared memory in which a block of softmax_loss may keep its row on
 * GPU `device`. */
cudaError_t cuda_softmax_shared_bytes(int device, int64_t *bytes);
cudaError_t launch_softmax_loss(cudaStream_t stream, LossRun run);
cudaError_t launch_softmax_loss_backward(cudaStream_t stream, LossRun run);
cudaError_t launch_point_loss(cudaStream_t stream, LossRun run);
cudaError_t launch_point_loss_backward(cudaStream_t stream, LossRun run);

/* pixel_loss.cu: losses with a label for each pixel of x (samples, pixels, classes), channels last.
 * A pixel with label -1 has no label. Rows are the pixels of all samples. Results and gradients of
 * padded samples are 0, and a label out of range makes a loss NaN. dx may be in x's memory. A
 * forward launcher writes loss_results, and arrays for backward:
 *     launch_pixel_loss    cross-entropy, focal loss: loss_results (rows, LOSS_COLUMNS), log_sum,
 *                          factor
 *     launch_region_loss   Dice and IoU: loss_results (samples, LOSS_COLUMNS), log_sum, slopes
 *     launch_sigmoid_loss  x has one logit for each sample and labels are 0 or 1: loss_results
 *                          (samples, LOSS_COLUMNS) */
typedef struct PixelRun {
    DType type;
    const void *x;
    const int32_t *labels;
    float *loss_results;
    void *dx;
    /* The next three are written by forward and read by backward. */
    /* log of the sum of each pixel's exponentials, [rows] */
    float *log_sum;
    /* pixel_loss: number of pixels of a sample / sum of the weights of their labels, [samples] */
    float *factor;
    /* region_loss: derivatives of each class's overlap, (samples, 2, classes): [0] by the sum of
     * the class's probabilities, [1] by the part of this sum in pixels with its label */
    float *slopes;
    /* scratch; pixel_loss: sums of weights (samples, parts); region_loss: sums of classes (samples,
     * cuda_sum_parts(type, pixels, classes), 3, classes) */
    double *partial;
    ClassWeights weights;
    RegionLoss region;
    /* weight_sum: sum of the weights of all classes; smoothing: label smoothing; focus: gamma of
     * focal loss; scale: OpRun.loss_factor */
    float weight_sum, smoothing, focus, scale;
    /* source of the loss factor, as in LossRun */
    const StepNumbers *numbers;
    /* parts: number of blocks that compute a sample */
    int64_t samples, real, pixels, classes, parts;
} PixelRun;
cudaError_t launch_pixel_loss(cudaStream_t stream, PixelRun run);
cudaError_t launch_pixel_loss_backward(cudaStream_t stream, PixelRun run);
cudaError_t launch_region_loss(cudaStream_t stream, PixelRun run);
cudaError_t launch_region_loss_backward(cudaStream_t stream, PixelRun run);
cudaError_t launch_sigmoid_loss(cudaStream_t stream, PixelRun run);
cudaError_t launch_sigmoid_loss_backward(cudaStream_t stream, PixelRun run);

/* yolo_loss.cu: one level of the detection loss, on a grid that is channels last. launch_yolo_loss
 * writes `overlap` and `parts` of its level. launch_yolo_results adds the parts of all levels and
 * writes the results (samples, LOSS_COLUMNS). */
typedef struct YoloRun {
    DType type;
    const void *x;
    void *dx;
    /* for each anchor and cell: the largest overlap of its matches, at least 0; it is the target of
     * the object channel; forward writes it, backward reads it */
    float *overlap;
    /* floats of `overlap` from one sample to the next */
    int64_t overlap_stride;
    /* the three parts of the loss, of boxes, objects and classes: (samples, levels, 3) */
    double *parts;
    BoxGrid grid;
    int level, levels, classes;
    /* BoxTargets.start: index of the first target box of each sample */
    const int32_t *start;
    /* BoxTargets.box: BOX_NUMBERS numbers for each target box */
    const float *box;
    /* BoxTargets.match_counts, [levels + 1]: number of matches of each level, then of samples */
    const int64_t *match_counts;
    int64_t real;
    /* smoothing: label smoothing; area: pixels of a picture */
    double smoothing, area;
    /* OpRun.loss_factor */
    float scale;
    /* source of the loss factor, as in LossRun */
    const StepNumbers *numbers;
} YoloRun;
cudaError_t launch_yolo_loss(cudaStream_t stream, YoloRun run, int64_t samples);
cudaError_t launch_yolo_results(cudaStream_t stream, YoloRun run, float *results, int64_t samples);
cudaError_t launch_yolo_loss_backward(cudaStream_t stream, YoloRun run, int64_t samples);

/* softmax_sliced.cu: softmax_loss if each row of logits is cut into slices, of which each rank has
 * one or several. The first two launchers are called for each slice. After each of the two, the
 * caller gathers the results of all ranks:
 *     launch_softmax_label       the label's logit, or 0 if another slice has it
 *     launch_softmax_summary     LOSS_SUMMARY numbers that describe the slice
 *     launch_softmax_merge       results and log_sum, the same bits on all ranks
 * For padded rows launch_softmax_merge writes zeros, and the other two compute nothing. */
enum { LOSS_SUMMARY = 5 };
typedef struct LossSlices {
    LossRun loss;
    /* number of slices of all ranks */
    int slices;
    /* true: the order of a slice's sums depends on the slice's width alone, not on the stride of
     * its rows */
    bool by_width;
    /* logit of the label of each row, or 0 if another slice has it, [rows] */
    float *label_logit;
    /* label_logit of all slices, (slices, rows) */
    float *all_label_logits;
    /* summary of this slice of each row, (rows, LOSS_SUMMARY) */
    float *summary;
    /* summaries of all slices, (slices, rows, LOSS_SUMMARY) */
    float *all_summaries;
} LossSlices;
cudaError_t launch_softmax_label(cudaStream_t stream, LossSlices run);
cudaError_t launch_softmax_summary(cudaStream_t stream, LossSlices run);
cudaError_t launch_softmax_merge(cudaStream_t stream, LossSlices run);

#ifdef __cplusplus
}
#endif
#endif
