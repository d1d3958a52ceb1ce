/* How the CPU's own operations see memory, and how they share out work. A View is
 * [n][groups][hw][block]: images in their blocked layout; (N,C) and (N,T,C) as one row of plain
 * elements per sample: groups and channels are C or T C, hw and block are 1. Work is cut into items
 * whose results do not depend on which thread takes them. */
#ifndef WEFT_TENSOR_VIEW_H
#define WEFT_TENSOR_VIEW_H

#include "cpu.h"
#include "simd/simd.h"

typedef struct View {
    int64_t n, channels, groups, hw;
    int block;
    /* elements: hw * block, groups * plane */
    int64_t plane, sample;
} View;

View view_of(Desc d);
/* Channels of group g: block, or what is left in the last one. The lanes behind them are padding,
 * which is 0 in every tensor. */
int view_lanes(const View *v, int64_t g);

/* d in the type that the backend computes in, where it holds numbers at all (tokens stay). */
Desc in_precision(const Op *op, Desc d);
/* Element i of an activation of that type. */
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

/* Runs body on [begin, end) parts of [0, count), in parallel where `elements` touched are worth
 * it. */
typedef void (*WorkBody)(const void *task, int64_t begin, int64_t end);
void work_run(WorkBody body, const void *task, int64_t count, int64_t elements);

/* An operation on equal tensors wants one layout: the first blocked one among its inputs, plain
 * where two are flattened images of different shapes. */
Desc layout_common(const OpSpec *spec);
/* d's shape in plain order. */
Desc layout_plain(Desc d);

/* dy = 0 where act was cut, by the output, which is like `like`. For backward_begin of fused relu
 * and relu6. */
void mask_gradient(Act act, void *dy, const void *y, Desc like);

#endif
