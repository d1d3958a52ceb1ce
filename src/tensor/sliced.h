/* Code for operations on slices, shared by all backends: the terms of a sum's slices, the plan and
 * the communication of `exchange`, and the positions of a slice's elements in the whole sample. */
#ifndef WEFT_TENSOR_SLICED_H
#define WEFT_TENSOR_SLICED_H

#include "tensor.h"

/* The terms `first` to `end` - 1 of a sum. */
typedef struct SumRange {
    int64_t first, end;
} SumRange;
/* Returns the terms of part number `part` (SumSlices.parts) of this rank's slice i, as numbers from
 * 0 to k - 1 among the k terms that this rank has. */
SumRange sum_range(const SumSlices *slices, int64_t k, int i, int part);
/* Returns a lower bound of the number of terms of a slice. It is the same for all slices, ranks and
 * numbers of ranks. k: number of terms that this rank has. */
int64_t sum_least_terms(const SumSlices *slices, int64_t k);
/* Returns the number of levels of the binary tree that joins `slices` slices, a power of two. At
 * any time, at most that number of sums wait to be joined. */
int64_t sum_levels(int slices);

/* Converts n elements between fp32 and the backend's type; `from` and `to` do not overlap. */
typedef void (*ExchangeConvert)(const Op *op, const void *from, DType from_type, void *to,
                                DType to_type, int64_t n);
/* Copies `rows` rows of `bytes` bytes. Rows begin to_pitch bytes apart in `to`, and from_pitch
 * bytes apart in `from`. `from` and `to` do not overlap. */
typedef void (*ExchangeCopyRows)(const Op *op, void *to, size_t to_pitch, const void *from,
                                 size_t from_pitch, size_t bytes, int64_t rows);
/* The functions by which a backend converts and copies. */
typedef struct ExchangeCopies {
    ExchangeConvert convert;
    ExchangeCopyRows rows;
} ExchangeCopies;
/* The plan of an exchange, in Op.impl. */
typedef struct ExchangePlan {
    ExchangeKind kind;
    /* how the tensor that is divided into slices, or gathered from them, is divided */
    Slices divided;
    /* last dimension of y */
    int64_t width;
    /* product of the other dimensions of y */
    int64_t rows;
    /* Set if the backend's precision is a 16-bit type and sums are cut into slices, except after a
     * divided embedding. The tensor on the side of divided layers (y of ENTER and GATHER, x of
     * LEAVE and SCATTER) and its gradient are then fp32, so that the ranks' partial sums are not
     * rounded. NULL: both sides have the same type. */
    ExchangeConvert convert;
    ExchangeCopyRows copy_rows;
    /* type of the tensor on the side of undivided layers */
    DType type;
    /* elements of this rank's slice, or an upper bound of their number */
    int64_t slice;
} ExchangePlan;

/* Plans an exchange. y: layout of y, without padding; x[0] has the same layout. Sets spec.y, impl
 * and the sizes in *op. ERR_BUG if the shapes do not match, or if keys are not fp32 although sums
 * are cut into slices. */
Status exchange_plan(Op *op, Desc y, const ExchangeCopies *copies);
/* Returns the type that x must have: fp32 if the exchange adds partial sums that have not been
 * rounded, else the backend's precision. */
DType exchange_input(const Op *op);
void exchange_free(Op *op);
/* exchange_forward computes y without the bias and returns run->y. If the result is an fp32 sum
 * that has to be rounded, exchange_forward returns this sum instead, in the workspace, and the
 * caller makes y from the sum. exchange_backward_data computes dx. Both are collective on the
 * tensor-parallel group. */
void *exchange_forward(const Op *op, const OpRun *run);
void exchange_backward_data(Op *op, const OpRun *run);

/* Positions of the elements of this rank's slice of a sample in the whole sample. Element i of a
 * sample of y is element (i / contiguous) * stride + first + i % contiguous of the whole sample.
 * The tensor is plain, and divided along its sequence or its last dimension. */
typedef struct SampleSlice {
    /* number of consecutive elements of the slice that are also consecutive in the whole sample;
     * the sample's elements if the tensor is not divided */
    int64_t contiguous;
    /* elements of the whole sample from the beginning of one such range to the beginning of the
     * next */
    int64_t stride;
    /* index in the whole sample of the slice's element 0 */
    int64_t first;
} SampleSlice;
/* Returns the positions for the tensor y of `spec` and its slice spec.slice. */
SampleSlice sample_slice(const OpSpec *spec);

#endif
