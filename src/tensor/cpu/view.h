/* Memory views for the CPU's own operations. A View is [n][groups][hw][block]. Images have their
 * blocked layout; (N,C) and (N,T,C) are one row of plain elements per sample: groups and channels
 * are C or T * C, hw and block are 1. */
#ifndef WEFT_TENSOR_VIEW_H
#define WEFT_TENSOR_VIEW_H

#include "cpu.h"
#include "simd/simd.h"
#include "work.h"

typedef struct View {
    int64_t n, channels, groups, hw;
    int block;
    /* elements of a plane, hw * block, and of a sample, groups * plane */
    int64_t plane, sample;
} View;

View view_of(Desc d);
/* Channels of group g: block, or the rest in the last group. The other lanes are padding, which is
 * 0 in every tensor. */
int view_lanes(const View *v, int64_t g);

/* d with the type that the backend computes in; int32 tensors (tokens) stay as they are. */
Desc in_precision(const Op *op, Desc d);
/* The address of element i of an activation of that type. */
static inline const void *element_at(const void *p, int64_t i, DType type)
{
    return (const char *)p + (size_t)i * dtype_bytes(type);
}
static inline void *element_out(void *p, int64_t i, DType type)
{
    return (char *)p + (size_t)i * dtype_bytes(type);
}
static inline void elements_zero(void *p, int64_t n, DType type)
{
    memset(p, 0, (size_t)n * dtype_bytes(type));
}

/* The common layout for an operation on equal tensors: the first blocked layout among its inputs,
 * or plain if two of them are flattened images of different shapes. */
Desc layout_common(const OpSpec *spec);
/* d in plain order. */
Desc layout_plain(Desc d);

#endif
