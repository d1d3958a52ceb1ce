/* Code for operations on slices that all backends share: the plan and the communication of
 * `exchange`, and the positions of a slice's elements in the whole sample. */
#ifndef WEFT_TENSOR_SLICED_H
#define WEFT_TENSOR_SLICED_H

#include "tensor.h"

/* The plan of an exchange, in Op.impl. */
typedef struct ExchangePlan {
    ExchangeKind kind;
    /* the tensor that is divided into slices, or gathered from them */
    Slices divided;
    /* last dimension of y, and the product of its other dimensions */
    int64_t width, rows;
} ExchangePlan;

/* Plans an exchange. y: layout of y, without padding; x[0] has the same. Sets spec.y, impl and the
 * sizes in op. ERR_BUG if the shapes do not match. */
Status exchange_plan(Op *op, Desc y);
void exchange_free(Op *op);
/* Compute y without the bias; compute dx. */
void exchange_forward(const Op *op, const OpRun *run);
void exchange_backward_data(Op *op, const OpRun *run);

/* Maps elements of this rank's slice of a sample to the whole sample. Element i of a sample of y is
 * element (i / run) * stride + first + i % run of the whole. The tensor is plain and divided along
 * its sequence or its last dimension; if it is not divided, run and stride are the sample's
 * elements. */
typedef struct SampleSlice {
    int64_t run, stride, first;
} SampleSlice;
SampleSlice sample_slice(const OpSpec *spec);

#endif
