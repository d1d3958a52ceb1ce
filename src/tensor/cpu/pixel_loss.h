/* The shared code of the losses with a label for each pixel: pixel_loss.c and region_loss.c. The
 * work is cut into pieces of up to PIXEL_PIECE pixels of one sample. */
#ifndef WEFT_TENSOR_CPU_PIXEL_LOSS_H
#define WEFT_TENSOR_CPU_PIXEL_LOSS_H

#include "loss.h"

typedef struct PixelTask {
    LossTask loss;
    /* pieces of a sample */
    int64_t pieces;
    /* number of samples, and of samples that are not padding (loss.real counts rows) */
    int64_t samples, real;
    /* weights of the classes, NULL if all are 1; sum of the weights */
    const float *weight;
    float weight_sum;
} PixelTask;

/* One piece: its sample, the index of its first pixel among those of all samples (row), its number
 * of pixels (n), and the index in x of its first pixel's logit of class 0 (at); the logits of class
 * c are c * per_sample elements further on. */
typedef struct PixelPiece {
    int64_t sample, row, n, at;
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
/* Returns the kernels' arguments for a piece, which point into x and the labels. Ends the job if a
 * label is neither a class nor -1. */
PixelArgs pixel_args(const PixelTask *t, const PixelPiece *p);
/* Sets the gradient of a piece to 0. */
void pixel_zero(const PixelTask *t, const PixelPiece *p);
/* Runs body on all pieces. */
void pixel_run(WorkBody body, const PixelTask *t);

/* Cross-entropy and focal loss with a label for each pixel. */
Status pixel_plan(Op *op, Desc preferred[SPEC_INPUTS]);
void pixel_forward(Op *op, const OpRun *run);
void pixel_backward_data(Op *op, const OpRun *run);

#endif
