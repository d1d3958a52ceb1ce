/* The shared code of batch_norm, group_norm, film and the bias of conv_transpose2d: their view of a
 * tensor, and four passes, which compute sums for the statistics, the result, sums for the
 * gradients, and the gradient. One call of a pass processes one block of channels in one part of
 * the samples. The samples are divided into parts by shape alone, and the operation adds the sums
 * of the parts in order, so any number of threads gives the same bits. */
#ifndef WEFT_TENSOR_NORM_PASS_H
#define WEFT_TENSOR_NORM_PASS_H

#include "../view.h"

/* Coefficients of a channel. In forward: y = (x - mean) by_x + shift. In backward: dx = by_dy dy +
 * by_x (x - mean) + shift. */
enum { COEF_MEAN, COEF_X, COEF_SHIFT, COEF_DY, COEFS };

typedef struct NormPlan {
    /* view of x and y; its groups are blocks of channels */
    View v;
    /* type of x and y */
    DType type;
    /* number of parts of the samples */
    int64_t parts;
    /* channels in memory, padded channels included */
    int64_t padded;
    /* 16-bit words of `keep` for one plane */
    int64_t words;
    /* Elements of a kernel's row. If v.block divides SIMD_LANES: SIMD_LANES, the channels of the
     * block at one or several pixels. Otherwise: v.block, the channels at one pixel. */
    int lanes;
} NormPlan;

typedef struct NormTask NormTask;
/* Processes block g in one part of the samples. */
typedef void (*NormPass)(const NormTask *t, int64_t part, int64_t g);
/* Computes coefficients from sums, or saves the sums. index: of a block in batch_norm, of a sample
 * in group_norm. */
typedef void (*NormFinish)(const NormTask *t, int64_t index);
struct NormTask {
    const Op *op;
    const NormPlan *plan;
    const OpRun *run;
    /* two sums of each part and channel, double[parts][2][padded] */
    double *sums;
    /* Set only by a synced batch_norm: the two sums of each channel over all parts, and later over
     * all replicas, double[2][padded], followed by the number of values per channel. NULL:
     * norm_total adds the sums of the parts. */
    double *total;
    /* coefficients, float[COEFS][padded]; those of part p begin at coef[p * coef_step] */
    float *coef;
    /* 0: all parts have the same coefficients */
    int64_t coef_step;
    /* gradients of batch_norm with silu: coefficients of silu's input, (x - mean) silu_scale +
     * silu_shift, one for each channel; NULL: no silu */
    const float *silu_scale, *silu_shift;
    /* one bit per element, 0 where act clipped its input (its derivative is 0); NULL: not stored */
    uint16_t *keep;
    /* the pass that computes sums; NULL: left out */
    NormPass sum;
    /* the pass that computes each element of y or dx; NULL: left out */
    NormPass map;
    /* called between the two passes */
    NormFinish finish;
};

/* Returns the plan for an input of this layout. The caller sets `parts`. */
NormPlan norm_plan(Desc x);
/* Returns the bytes of NormTask.keep, which is needed only with a fused relu or relu6. */
size_t norm_keep_bytes(const NormPlan *plan);
/* Makes a task without passes. Its sums and coef are in the workspace of `run`, which has
 * norm_workspace_bytes(plan, coefs). coefs: number of sets of coefficients: 1, or one for each
 * part. saved_floats: number of floats in run->saved before the `keep` bits. */
NormTask norm_task(const Op *op, const OpRun *run, const NormPlan *plan, int64_t coefs,
                   int64_t saved_floats);
size_t norm_workspace_bytes(const NormPlan *plan, int64_t coefs);

/* Sums x and its squares. */
void norm_stats(const NormTask *t, int64_t part, int64_t g);
/* Computes y with coef. */
void norm_apply(const NormTask *t, int64_t part, int64_t g);
/* Sums dy and dy (x - mean). An element of dy counts as 0 if its bit in `keep` is 0. If there is a
 * residual, whose gradient shares the memory of dy, such elements are also set to 0 in memory. With
 * silu, dy is first multiplied by silu's slope, also in memory. */
void norm_grad_sums(const NormTask *t, int64_t part, int64_t g);
/* Computes dx with coef. */
void norm_grad(const NormTask *t, int64_t part, int64_t g);

/* Returns a sum of channel c over all parts. which: 0: of x or of dy; 1: of the squares of x or of
 * dy (x - mean). */
double norm_total(const NormTask *t, int64_t c, int which);
/* Sets a channel's coefficients in one part. */
void norm_coef_set(const NormTask *t, int64_t part, int64_t c, const double value[COEFS]);
/* Returns the weight of a channel; 1 without parameters. */
double norm_scale(const NormTask *t, int64_t c);
/* Sets the coefficients of y = (x - mean) inverse * weight + bias of channel c; inverse: 1 /
 * sqrt(variance + eps). The mean is rounded to float; the shift corrects for the rounding. */
void norm_forward_coef(const NormTask *t, int64_t part, int64_t c, double mean, double inverse);

/* Bodies for work_run: run the pass `sum` or the pass `map`. An item is a block in a part of the
 * samples; its number is part * (number of blocks) + block. */
void norm_sum_body(const void *task, int64_t begin, int64_t end);
void norm_map_body(const void *task, int64_t begin, int64_t end);

#endif
