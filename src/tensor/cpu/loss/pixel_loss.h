/* The shared code of the losses with a label for each pixel: pixel_loss.c and region_loss.c. The
 * work is cut into pieces of up to PIXEL_PIECE pixels of one sample. */
#ifndef WEFT_TENSOR_CPU_PIXEL_LOSS_H
#define WEFT_TENSOR_CPU_PIXEL_LOSS_H

#include "loss.h"

typedef struct PixelTask {
    LossTask loss;
    /* number of pieces of a sample */
    int64_t pieces;
    int64_t samples;
    /* number of samples that are not padding (loss.real counts rows) */
    int64_t real;
    /* weights of the classes; NULL: all are 1 */
    const float *weight;
    /* sum of the weights of the classes */
    float weight_sum;
} PixelTask;

/* One piece. */
typedef struct PixelPiece {
    int64_t sample;
    /* index of the first pixel among the pixels of all samples */
    int64_t row;
    /* number of pixels */
    int64_t n;
    /* index in x of the first pixel's logit of class 0; its logit of class c is c * per_sample
     * elements further on */
    int64_t at;
} PixelPiece;

static inline int64_t pixel_pieces(const Loss *l)
{
    return (l->per_sample + PIXEL_PIECE - 1) / PIXEL_PIECE;
}

static inline PixelPiece pixel_piece(const PixelTask *t, int64_t item)
{
    const Loss *l = t->loss.l;
    const int64_t sample = item / t->pieces, first = item % t->pieces * PIXEL_PIECE;
    const int64_t left = l->per_sample - first;
    return (PixelPiece){.sample = sample,
                        .row = sample * l->per_sample + first,
                        .n = left < PIXEL_PIECE ? left : PIXEL_PIECE,
                        .at = sample * l->per_sample * l->width + first};
}

PixelTask pixel_task(Op *op, const OpRun *run);
/* Returns the kernels' arguments for a piece; they point into x, the labels and the weights. Ends
 * the job if a label is neither a class nor -1. */
PixelArgs pixel_args(const PixelTask *t, const PixelPiece *p);
/* Sets the gradient of a piece to 0. */
void pixel_zero(const PixelTask *t, const PixelPiece *p);
/* Runs body on all pieces. */
void pixel_run(WorkBody body, const PixelTask *t);

/* functions of OpTable for cross-entropy and focal loss with a label for each pixel */
Status pixel_plan(Op *op, Desc preferred[SPEC_INPUTS]);
void pixel_forward(Op *op, const OpRun *run);
void pixel_backward_data(Op *op, const OpRun *run);

#endif
