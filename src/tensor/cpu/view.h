/* How the CPU's own operations see memory, and how they share out work. A View is [n][groups][hw][block]: images in
 * their blocked layout; everything else as one row of plain elements per sample. Work is cut into items whose results
 * do not depend on which thread takes them. */
#ifndef WEFT_TENSOR_VIEW_H
#define WEFT_TENSOR_VIEW_H

#include "cpu.h"
#include "simd/simd.h"

typedef struct View {
    int64_t n, channels, groups, hw;
    int block;
    int64_t plane, sample; /* floats: hw * block, groups * plane */
} View;

View view_of(Desc d);
/* Channels of group g: block, or what is left in the last one. */
int view_lanes(const View *v, int64_t g);

/* Runs body on [begin, end) parts of [0, count), in parallel where `elements` touched are worth it. */
typedef void (*WorkBody)(const void *task, int64_t begin, int64_t end);
void work_run(WorkBody body, const void *task, int64_t count, int64_t elements);

/* An operation on equal tensors wants one layout: the first blocked one among its inputs, plain where two are flattened
 * images of different shapes. */
Desc layout_common(const OpSpec *spec);
/* d's shape in plain order. */
Desc layout_plain(Desc d);

/* dy = 0 where act was cut, by the output; n floats. For backward_begin of fused relu and relu6. */
void mask_gradient(Act act, float *dy, const float *y, int64_t n);

#endif
