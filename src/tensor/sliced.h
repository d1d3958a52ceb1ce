/* Code for operations on slices that all backends share: the terms of a sum's slices, the plan and
 * the communication of `exchange`, and the positions of a slice's elements in the whole sample. */
#ifndef WEFT_TENSOR_SLICED_H
#define WEFT_TENSOR_SLICED_H

#include "tensor.h"

/* Terms first .. end - 1 of a sum. */
typedef struct SumRange {
    int64_t first, end;
} SumRange;
/* Returns the terms of part number `part` (SumSlices.parts) of this rank's slice i, counted among
 * the rank's k terms. */
SumRange sum_range(const SumSlices *slices, int64_t k, int i, int part);
/* Returns a lower bound of the number of terms of a slice, which is the same for all slices, ranks
 * and numbers of ranks. k: number of terms that this rank has. */
int64_t sum_least_terms(const SumSlices *slices, int64_t k);
/* Returns the number of levels of the binary tree that joins `slices` slices, a power of two. At
 * most that number of sums wait to be joined at any time. */
int64_t sum_levels(int slices);

/* Converts n elements between fp32 and the backend's type; `from` and `to` do not overlap. */
typedef void (*ExchangeConvert)(const Op *op, const void *from, DType from_type, void *to,
                                DType to_type, int64_t n);
/* Copies `rows` rows of `bytes` bytes; rows begin to_pitch and from_pitch bytes apart; `from` and
 * `to` do not overlap. */
typedef void (*ExchangeCopyRows)(const Op *op, void *to, size_t to_pitch, const void *from,
                                 size_t from_pitch, size_t bytes, int64_t rows);
/* A backend's copies. */
typedef struct ExchangeCopies {
    ExchangeConvert convert;
    ExchangeCopyRows rows;
} ExchangeCopies;
/* The plan of an exchange, in Op.impl. */
typedef struct ExchangePlan {
    ExchangeKind kind;
    /* the tensor that is divided into slices, or gathered from them */
    Slices divided;
    /* last dimension of y, and the product of its other dimensions */
    int64_t width, rows;
    /* Set if the backend computes in 16 bits and sums are cut into slices, except after a divided
     * embedding: the tensor on the side of divided layers (y of ENTER and GATHER, x of LEAVE and
     * SCATTER) and its gradient are then fp32, so that the ranks' partial sums are not rounded.
     * NULL: both sides have one type. */
    ExchangeConvert convert;
    ExchangeCopyRows copy_rows;
    /* type of the tensor on the side of layers that are not divided */
    DType type;
    /* elements of this rank's slice, or an upper bound of their number */
    int64_t slice;
} ExchangePlan;

/* Plans an exchange. y: layout of y, without padding; x[0] has the same layout. Sets spec.y, impl
 * and the sizes in op. ERR_BUG if the shapes do not match, or keys are not fp32 although sums are
 * cut into slices. */
Status exchange_plan(Op *op, Desc y, const ExchangeCopies *copies);
/* Returns the type that x must have: fp32 if the exchange adds partial sums that have not been
 * rounded, else the backend's precision. */
DType exchange_input(const Op *op);
void exchange_free(Op *op);
/* exchange_forward computes y without the bias and returns run->y. If the result is an fp32 sum
 * that has to be rounded, exchange_forward returns this sum instead, in the workspace, and the
 * caller makes y from the sum. exchange_backward_data computes dx. Both are collective on the
 * tensor group. */
void *exchange_forward(const Op *op, const OpRun *run);
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
