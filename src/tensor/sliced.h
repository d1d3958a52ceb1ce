/* What operations on slices are whatever the backend: which slices an exchange moves and when, and
 * which elements of a whole sample a slice's are. */
#ifndef WEFT_TENSOR_SLICED_H
#define WEFT_TENSOR_SLICED_H

#include "tensor.h"

/* What an exchange keeps in impl. */
typedef struct Swap {
    ExchangeKind kind;
    /* what is summed and cut, or put together */
    Slices divided;
    /* of y */
    int64_t rows, width;
} Swap;

/* y: its layout, without padding, and x[0]'s, too. Sets spec.y, impl and op's sizes; ERR_BUG where
 * the shapes do not fit. */
Status exchange_plan(Op *op, Desc y);
void exchange_free(Op *op);
/* y, all but the bias; dx, which needs nothing else. */
void exchange_forward(const Op *op, const OpRun *run);
void exchange_backward_data(Op *op, const OpRun *run);

/* Element i of a sample of y is number i / run * stride + first + i % run of the whole sample. A
 * slice is of a plain tensor's sequence, or of its last dimension; without one, run is the
 * sample. */
typedef struct SampleSlice {
    int64_t run, stride, first;
} SampleSlice;
SampleSlice sample_slice(const OpSpec *spec);

#endif
