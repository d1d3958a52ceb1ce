/* What batch_norm and group_norm share: how they see a tensor, and the passes over one block of
 * channels in a part of the samples: sums for the statistics, the result, sums for the gradients,
 * the gradient. Sums are taken in parts, a cut of the samples by shape alone, that the operation
 * joins in order, so that any number of threads gives the same bits. */
#ifndef WEFT_TENSOR_NORM_PASS_H
#define WEFT_TENSOR_NORM_PASS_H

#include "view.h"

/* y = (x - mean) by_x + shift in forward; dx = by_dy dy + by_x (x - mean) + shift in backward. */
enum { COEF_MEAN, COEF_X, COEF_SHIFT, COEF_DY, COEFS };

typedef struct NormPlan {
    /* its groups are blocks of channels */
    View v;
    DType type;
    /* padded: channels in memory */
    int64_t parts, padded;
    /* of a plane's bits */
    int64_t words;
    /* a row of the kernels: one pixel of a block, or 16 elements of several pixels */
    int lanes;
} NormPlan;

typedef struct NormTask NormTask;
typedef void (*NormPass)(const NormTask *t, int64_t part, int64_t g);
typedef void (*NormFinish)(const NormTask *t, int64_t which);
struct NormTask {
    const Op *op;
    const NormPlan *b;
    const OpRun *run;
    /* [parts][2][padded] */
    double *sums;
    /* [2][padded], of all parts, where they are joined already; NULL: they are not */
    double *total;
    /* [COEFS][padded]; a part's are coef_step further on than the last one's */
    float *coef;
    /* 0: all parts have the same */
    int64_t coef_step;
    /* a bit for each element that act did not cut; NULL where none are kept */
    uint16_t *keep;
    /* the operation's passes; NULL: none */
    NormPass sum, map;
    /* sums -> saved and coef, between the two */
    NormFinish finish;
};

/* Of an input with this layout. The caller sets `parts`. */
NormPlan norm_plan(Desc x);
/* Of the bits, if there is an act. */
size_t norm_keep_bytes(const NormPlan *b);
/* A task without passes; sums and coef lie in run's workspace, of norm_workspace_bytes(b, coefs),
 * with coefs of COEFS x padded: 1 or one for each part. saved_floats: before the bits in run's
 * saved. */
NormTask norm_task(const Op *op, const OpRun *run, const NormPlan *b, int64_t coefs,
                   int64_t saved_floats);
size_t norm_workspace_bytes(const NormPlan *b, int64_t coefs);

/* sums: of x, of its squares */
void norm_stats(const NormTask *t, int64_t part, int64_t g);
/* y, by coef */
void norm_apply(const NormTask *t, int64_t part, int64_t g);
/* Sums: of dy, of dy (x - mean). Where the residual's gradient is dy, that is masked in memory,
 * too. */
void norm_grad_sums(const NormTask *t, int64_t part, int64_t g);
/* dx, by coef */
void norm_grad(const NormTask *t, int64_t part, int64_t g);

/* A channel's coefficients in a part. */
void norm_coef_set(const NormTask *t, int64_t part, int64_t c, const double value[COEFS]);
/* y = (x - mean) scale + shift with the mean in float; what the mean lost there goes into the
 * shift. */
void norm_forward_coef(const NormTask *t, int64_t part, int64_t c, double mean, double inverse);

/* A pass over items [begin, end) of parts x blocks; for work_run. */
void norm_sum_body(const void *task, int64_t begin, int64_t end);
void norm_map_body(const void *task, int64_t begin, int64_t end);

#endif
