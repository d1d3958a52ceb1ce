/* The sum over ranks of one range, element by element, in the fixed order: neighbours 2i and 2i+1
 * join, an odd one moves up. The bits depend on nothing but the inputs and their order: not on how
 * a range is cut, nor on the transport. */
#ifndef WEFT_PARALLEL_TREE_SUM_H
#define WEFT_PARALLEL_TREE_SUM_H

#include <stdint.h>

/* out[0..outs)[k] = tree sum of in[0..ins)[k], at <= k < at + n. ins <= 2^31. An out may be one of
 * the ins; else they do not overlap. */
void tree_sum(float *const *out, int outs, const float *const *in, int ins, int64_t at, int64_t n);

/* A tree of `leaves` leaves grows by in[0..ins), numbers first .. first + ins - 1. level[k] is
 * arena k of tree_step, before and after; the last leaves leave the whole sum in level[0]. */
typedef struct TreePush {
    float *const *level;
    /* where the sums begin in each level, */
    int64_t level_at;
    const float *const *in;
    /* and the leaves in each in */
    int64_t in_at;
    int ins, first, leaves;
} TreePush;
void tree_push(const TreePush *push, int64_t n, int threads);
/* Partial sums on the stack before leaf number `leaf` comes; after the last one it is one. */
int tree_depth_at(int leaf, int leaves);

#endif
