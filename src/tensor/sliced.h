/* Operations on slices, the parts that all backends share: which slices an exchange moves and when,
 * and where a slice's elements lie in the whole sample. */
#ifndef WEFT_TENSOR_SLICED_H
#define WEFT_TENSOR_SLICED_H

#include "tensor.h"

/* The plan of an exchange, in Op.impl. */
typedef struct Swap {
    ExchangeKind kind;
    /* the tensor that is summed and cut, or gathered */
    Slices divided;
    /* shape of y: shape_count / width, last dimension */
    int64_t rows, width;
} Swap;

/* Plans an exchange. y: its layout, without padding; x[0] has the same. Sets spec.y, impl and the
 * sizes of op. ERR_BUG if the shapes do not fit. */
Status exchange_plan(Op *op, Desc y);
void exchange_free(Op *op);
/* Compute y without the bias, and dx. */
void exchange_forward(const Op *op, const OpRun *run);
void exchange_backward_data(Op *op, const OpRun *run);

/* Maps the elements of a slice to the whole sample: element i of a sample of y is element i / run *
 * stride + first + i % run of the whole. The slice is of a plain tensor's sequence or of its last
 * dimension; without a slice, run is the sample. */
typedef struct SampleSlice {
    int64_t run, stride, first;
} SampleSlice;
SampleSlice sample_slice(const OpSpec *spec);

#endif
