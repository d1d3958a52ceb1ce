/* Adds one range of several ranks, element by element, in a fixed order: neighbours 2i and 2i+1 are
 * added, and a last summand without a neighbour moves up a level. The bits of the sum depend on the
 * inputs and their order, not on the cut of the range or on the transport. */
#ifndef WEFT_PARALLEL_TREE_SUM_H
#define WEFT_PARALLEL_TREE_SUM_H

#include <stdint.h>

/* Sets out[i][k] to the tree sum of in[0][k] .. in[ins - 1][k], for each i below `outs` and each k
 * from `at` to at + n - 1. An array of `out` may also be an array of `in`; other arrays must not
 * overlap. */
void tree_sum(float *const *out, int outs, const float *const *in, int ins, int64_t at, int64_t n);

/* A push: adds the next leaves to a tree. A tree is summed by pushes in ascending order of their
 * leaves, and the partial sums are kept between them. */
typedef struct TreePush {
    /* partial sums of the tree: level[k] is arena k of the stack that is described at tree_levels
     * (parallel/order.h); after the last leaf, level[0] has the complete sum if outs is 0;
     * borrowed */
    float *const *level;
    /* first element of the partial sums in each array of `level` */
    int64_t level_at;
    /* arrays that contain the leaves of this push, [ins]; borrowed */
    const float *const *in;
    /* first element of the leaf in each array of `in` */
    int64_t in_at;
    /* number of leaves of this push */
    int ins;
    /* index of this push's first leaf in the tree */
    int first;
    /* number of leaves of the tree */
    int leaves;
    /* arrays that get the complete sum, from element in_at on, when the last leaf has been added,
     * [outs]; they may be arrays of `in`; borrowed */
    float *const *out;
    int outs;
} TreePush;
/* Adds the leaves of a push. n: elements of each leaf. threads: largest number of threads that
 * add. */
void tree_push(const TreePush *push, int64_t n, int threads);
/* Returns the number of partial sums (level[0], level[1], ...) that are in use before the leaf with
 * index `leaf` is added; for leaf == leaves, after the last leaf, it is 1. */
int tree_partial_count(int leaf, int leaves);

#endif
