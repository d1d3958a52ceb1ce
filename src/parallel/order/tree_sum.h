/* The sum over ranks of one range, element by element, in the fixed order: neighbours 2i and 2i+1
 * are added, and a last summand without a neighbour moves up a level. The bits depend only on the
 * inputs and their order, not on the cut of a range or on the transport. */
#ifndef WEFT_PARALLEL_TREE_SUM_H
#define WEFT_PARALLEL_TREE_SUM_H

#include <stdint.h>

/* out[0..outs)[k] = tree sum of in[0..ins)[k] for at <= k < at + n. An array of `out`
 * may also be an array of `in`; apart from that the arrays must not overlap. */
void tree_sum(float *const *out, int outs, const float *const *in, int ins, int64_t at, int64_t n);

/* A push: adds the next `ins` leaves, numbered first .. first + ins - 1, to a tree of `leaves`
 * leaves. Pushes in ascending order sum a tree; `level` keeps the partial sums between them. */
typedef struct TreePush {
    /* the tree's partial sums: level[k] is arena k of tree_step (parallel/order.h); after the last
     * leaf, level[0] has the whole sum if outs is 0 */
    float *const *level;
    /* first element of the partial sums in each level */
    int64_t level_at;
    /* arrays with the leaves, [ins]; borrowed, like level and out */
    const float *const *in;
    /* first element of the leaf in each array of `in` */
    int64_t in_at;
    int ins, first, leaves;
    /* arrays, [outs], that get the whole sum from element in_at on once the last leaf is added;
     * they may be arrays of `in` */
    float *const *out;
    int outs;
} TreePush;
/* Adds the leaves of a push. n: elements of each leaf; threads: the most threads that add. */
void tree_push(const TreePush *push, int64_t n, int threads);
/* Number of partial sums (level[0], level[1], ...) that are in use before leaf number `leaf` is
 * added; leaf == leaves: after the last leaf, where it is 1. */
int tree_depth_at(int leaf, int leaves);

#endif
