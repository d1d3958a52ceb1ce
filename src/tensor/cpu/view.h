/* Views of tensors for weft's own CPU operations. A View is [n][groups][hw][block]: samples, groups
 * of channels, pixels, and the channels of a group. [hw][block] is called a plane, and the channels
 * of a group are its lanes. An image, or a vector that is a flattened image (Desc.flat), is viewed
 * in its blocked layout. Any other (N,C) or (N,T,C) is viewed as one row of elements per sample:
 * groups and channels are C or T * C, and hw and block are 1. */
#ifndef WEFT_TENSOR_VIEW_H
#define WEFT_TENSOR_VIEW_H

#include "cpu.h"
#include "simd/simd.h"
#include "work.h"

typedef struct View {
    /* number of samples */
    int64_t n;
    /* number of channels, without padding */
    int64_t channels;
    /* number of groups of channels */
    int64_t groups;
    /* number of pixels */
    int64_t hw;
    /* channels of a group in memory, padding included */
    int block;
    /* elements of a plane, hw * block */
    int64_t plane;
    /* elements of a sample, groups * plane */
    int64_t sample;
} View;

View view_of(Desc d);
/* Returns the number of channels in group g that are not padding: `block`, or fewer in the last
 * group. The padded channels are 0 in every tensor. */
int view_lanes(const View *v, int64_t g);

/* Returns d with the element type of the backend's precision; returns an int32 tensor (tokens)
 * unchanged. */
Desc in_precision(const Op *op, Desc d);
/* Return the address of element i of an array of this type. element_at: for reading; element_out:
 * for writing. */
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

/* Returns one layout for all inputs of an operation whose inputs have the same shape: the first
 * layout among them that is blocked or flat, else the plain one. If two inputs are flattened images
 * of different shapes, returns the plain layout. */
Desc layout_common(const OpSpec *spec);
/* Returns d with the plain layout. */
Desc layout_plain(Desc d);

#endif
