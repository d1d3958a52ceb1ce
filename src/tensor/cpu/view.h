/* Views of tensors for weft's own CPU operations. A View is [n][groups][hw][block]. An image, or a
 * vector that is a flattened image (Desc.flat), keeps its blocked layout. Other (N,C) and (N,T,C)
 * are one row of plain elements per sample: groups and channels are C or T * C, hw and block are
 * 1. */
#ifndef WEFT_TENSOR_VIEW_H
#define WEFT_TENSOR_VIEW_H

#include "cpu.h"
#include "simd/simd.h"
#include "work.h"

typedef struct View {
    /* samples, channels, groups of channels, pixels */
    int64_t n, channels, groups, hw;
    /* channels of a group in memory, padding included */
    int block;
    /* elements of a plane, hw * block, and of a sample, groups * plane */
    int64_t plane, sample;
} View;

View view_of(Desc d);
/* Number of real channels in group g: `block`, or fewer in the last group. The other lanes of the
 * group are padding, which is 0 in every tensor. */
int view_lanes(const View *v, int64_t g);

/* Returns d with the element type in which the backend computes; an int32 tensor (tokens) is
 * returned unchanged. */
Desc in_precision(const Op *op, Desc d);
/* Return the address of element i of an array of this type, to read or to write. */
static inline const void *element_at(const void *p, int64_t i, DType type)
{
    return (const char *)p + (size_t)i * dtype_bytes(type);
}
static inline void *element_out(void *p, int64_t i, DType type)
{
    return (char *)p + (size_t)i * dtype_bytes(type);
}
/* Sets n elements to 0. */
static inline void elements_zero(void *p, int64_t n, DType type)
{
    memset(p, 0, (size_t)n * dtype_bytes(type));
}

/* Returns one layout for all inputs of an operation whose inputs have one shape: the first blocked
 * layout among them, or the plain one if two of them are flattened images of different shapes. */
Desc layout_common(const OpSpec *spec);
/* Returns d with the plain layout. */
Desc layout_plain(Desc d);

#endif
