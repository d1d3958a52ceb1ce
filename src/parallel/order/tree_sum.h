/* The sum over ranks of one range, element by element, in the fixed order: neighbours 2i and 2i+1
 * are added, an odd last one moves up a level. The bits depend on the inputs and their order alone,
 * not on how a range is cut or on the transport. */
#ifndef WEFT_PARALLEL_TREE_SUM_H
#define WEFT_PARALLEL_TREE_SUM_H

#include <stdint.h>

/* out[0..outs)[k] = tree sum of in[0..ins)[k] for at <= k < at + n. ins <= 2^31. An out may be one
 * of the ins; otherwise they must not overlap. */
void tree_sum(float *const *out, int outs, const float *const *in, int ins, int64_t at, int64_t n);

/* Adds the leaves in[0..ins), numbered first .. first + ins - 1, to a tree of `leaves` leaves. */
typedef struct TreePush {
    /* the tree's partial sums: level[k] is arena k of tree_step; level[0] has the whole sum after
     * the last leaf */
    float *const *level;
    /* first element of the partial sums in each level */
    int64_t level_at;
    const float *const *in;
    /* first element of the leaf in each in */
    int64_t in_at;
    int ins, first, leaves;
    /* arrays that get the whole sum after the last leaf, at in_at, instead of level[0]; they may be
     * among the ins */
    float *const *out;
    int outs;
} TreePush;
/* n: elements of each leaf. */
void tree_push(const TreePush *push, int64_t n, int threads);
/* Number of partial sums on the stack before leaf number `leaf` is added; 1 after the last leaf. */
int tree_depth_at(int leaf, int leaves);

#endif
