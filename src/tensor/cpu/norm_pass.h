/* The common part of batch_norm and group_norm: their view of a tensor, and the passes over one
 * block of channels in one part of the samples: sums for the statistics, the result, sums for the
 * gradients, the gradient. The samples are cut into parts by shape alone, and the operation joins
 * the parts' sums in order, so that any number of threads gives the same bits. */
#ifndef WEFT_TENSOR_NORM_PASS_H
#define WEFT_TENSOR_NORM_PASS_H

#include "view.h"

/* Coefficients of a channel. forward: y = (x - mean) by_x + shift; backward: dx = by_dy dy + by_x
 * (x - mean) + shift. */
enum { COEF_MEAN, COEF_X, COEF_SHIFT, COEF_DY, COEFS };

typedef struct NormPlan {
    /* the tensor; its groups are blocks of channels */
    View v;
    /* type of x and y */
    DType type;
    /* parts of the samples; channels in memory, padding included */
    int64_t parts, padded;
    /* 16-bit words of `keep` per plane */
    int64_t words;
    /* elements that the kernels process as a row: one pixel of a block, or 16 elements of several
     * pixels */
    int lanes;
} NormPlan;

typedef struct NormTask NormTask;
typedef void (*NormPass)(const NormTask *t, int64_t part, int64_t g);
typedef void (*NormFinish)(const NormTask *t, int64_t which);
struct NormTask {
    const Op *op;
    const NormPlan *b;
    const OpRun *run;
    /* sums of each part, double[parts][2][padded] */
    double *sums;
    /* sums of all parts, double[2][padded], if they are joined already; else NULL */
    double *total;
    /* coefficients, float[COEFS][padded]; those of part p begin p * coef_step further on */
    float *coef;
    /* 0: all parts have the same coefficients */
    int64_t coef_step;
    /* one bit per element, set if act did not cut it; NULL: no bits are kept */
    uint16_t *keep;
    /* the operation's two passes; NULL: none */
    NormPass sum, map;
    /* computes saved and coef from sums, between the two passes */
    NormFinish finish;
};

/* The plan for an input of this layout. The caller sets `parts`. */
NormPlan norm_plan(Desc x);
/* Bytes of the `keep` bits, if there is an act. */
size_t norm_keep_bytes(const NormPlan *b);
/* Makes a task without passes. sums and coef lie in the workspace of run, which has
 * norm_workspace_bytes(b, coefs); coefs is the number of coefficient sets of COEFS x padded: 1, or
 * one per part. saved_floats: floats in front of the keep bits in run's saved. */
NormTask norm_task(const Op *op, const OpRun *run, const NormPlan *b, int64_t coefs,
                   int64_t saved_floats);
size_t norm_workspace_bytes(const NormPlan *b, int64_t coefs);

/* Sums x and its squares. */
void norm_stats(const NormTask *t, int64_t part, int64_t g);
/* Computes y with coef. */
void norm_apply(const NormTask *t, int64_t part, int64_t g);
/* Sums dy and dy (x - mean). If the residual's gradient shares the memory of dy, also masks dy in
 * memory. */
void norm_grad_sums(const NormTask *t, int64_t part, int64_t g);
/* Computes dx with coef. */
void norm_grad(const NormTask *t, int64_t part, int64_t g);

/* Sets a channel's coefficients in one part. */
void norm_coef_set(const NormTask *t, int64_t part, int64_t c, const double value[COEFS]);
/* Sets y = (x - mean) scale + shift with the mean as a float; the shift includes what rounding the
 * mean lost. */
void norm_forward_coef(const NormTask *t, int64_t part, int64_t c, double mean, double inverse);

/* The sum pass and the map pass over items [begin, end) of parts x blocks; bodies for work_run. */
void norm_sum_body(const void *task, int64_t begin, int64_t end);
void norm_map_body(const void *task, int64_t begin, int64_t end);

#endif
