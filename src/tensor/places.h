/* Formulas along one dimension of an image, for padding and upsampling. A place is a row or a
 * column of the output. The formulas say which pixel of the input a place copies, or between which
 * two pixels it interpolates. All backends use them. */
#ifndef WEFT_TENSOR_PLACES_H
#define WEFT_TENSOR_PLACES_H

#include "tensor/op_spec.h"

#ifdef __CUDACC__
#define PLACES_INLINE static __host__ __device__ inline
#else
#define PLACES_INLINE static inline
#endif

/* Returns the pixel, 0 .. size - 1, that place `at` of the padded dimension copies; -1 if the place
 * is 0. low: number of places before the first pixel; a negative `low` means that -low pixels are
 * cut off. size: pixels of the input. */
PLACES_INLINE int64_t pad_source(PadMode mode, int64_t low, int64_t size, int64_t at)
{
    const int64_t i = at - low;
    if (i >= 0 && i < size) return i;
    switch (mode) {
    case PAD_ZERO:
        return -1;
    case PAD_REPLICATE:
        return i < 0 ? 0 : size - 1;
    case PAD_REFLECT:
        return i < 0 ? -i : 2 * (size - 1) - i;
    case PAD_CIRCULAR:
        return i < 0 ? i + size : i - size;
    }
    return -1;
}

/* A position between pixel `first` and the next pixel. */
typedef struct LinearPlace {
    int64_t first;
    /* weight of the next pixel; 0 if there is no next pixel; the weight of `first` is 1 - above */
    float above;
} LinearPlace;

/* Returns the position, among the `size` pixels of the input, of pixel `at` of the upsampled
 * dimension, which has size * scale pixels. */
PLACES_INLINE LinearPlace linear_place(int64_t size, int scale, bool align_corners, int64_t at)
{
    const int64_t out = size * scale;
    double place = ((double)at + 0.5) / scale - 0.5;
    if (align_corners) place = out > 1 ? (double)(at * (size - 1)) / (double)(out - 1) : 0;
    if (place < 0) place = 0;
    const int64_t first = (int64_t)place;
    LinearPlace p = {first, 0};
    if (first + 1 < size) p.above = (float)(place - (double)first);
    return p;
}

#endif
