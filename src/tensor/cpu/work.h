/* A parallel loop over items, by OpenMP. The result of an item must not depend on the thread that
 * computes it. */
#ifndef WEFT_TENSOR_CPU_WORK_H
#define WEFT_TENSOR_CPU_WORK_H

#include <stdint.h>

/* Computes items `begin` to `end` - 1. */
typedef void (*WorkBody)(const void *task, int64_t begin, int64_t end);
/* Calls `body` so that all items 0 .. count - 1 are computed; each thread gets consecutive items.
 * elements: number of tensor elements that all items process; if it is small, the calling thread
 * computes all items. */
void work_run(WorkBody body, const void *task, int64_t count, int64_t elements);
/* Adds the `count` arrays in `others` to `sum`, by a binary tree whose first leaf is `sum`. Each
 * array has n floats. The arrays in `others` are contiguous, and are overwritten. */
void work_sum_tree(float *sum, float *others, int64_t count, int64_t n);

#endif
