/* The sum over ranks of one range, element by element, in the fixed order: neighbours 2i and 2i+1 join, an odd one moves
 * up. The bits depend on nothing but the inputs and their order: not on how a range is cut, nor on the transport. */
#ifndef WEFT_PARALLEL_TREE_SUM_H
#define WEFT_PARALLEL_TREE_SUM_H

#include <stdint.h>

/* out[0..outs)[k] = tree sum of in[0..ins)[k], at <= k < at + n. ins <= 2^31. An out may be one of the ins; else they do
 * not overlap. */
void tree_sum(float *const *out, int outs, const float *const *in, int ins, int64_t at, int64_t n);

/* A tree of `leaves` leaves grows by in[0..ins), numbers first .. first + ins - 1. level[k] is arena k of tree_step, before
 * and after; the last leaves leave the whole sum in level[0]. */
typedef struct TreePush {
    float *const *level;
    int64_t level_at; /* where the sums begin in each level, */
    const float *const *in;
    int64_t in_at; /* and the leaves in each in */
    int ins, first, leaves;
} TreePush;
void tree_push(const TreePush *push, int64_t n, int threads);
/* Partial sums on the stack before leaf number `leaf` comes; after the last one it is one. */
int tree_depth_at(int leaf, int leaves);

/* Border `part` (0..parts) of [offset, offset + count) cut in `parts` slices that begin on 64 bytes of an arena that
 * does; slices of small ranges may be empty. */
int64_t slice_bound(int64_t offset, int64_t count, int parts, int part);

/* How a range is cut among ranks: at given bounds, or, where there are none, evenly as slice_bound does. */
typedef struct Cut {
    int64_t offset, count;
    const int64_t *bound; /* borrowed; NULL: even */
} Cut;
static inline int64_t cut_bound(const Cut *cut, int parts, int part)
{
    return cut->bound ? cut->bound[part] : slice_bound(cut->offset, cut->count, parts, part);
}
/* Elements of the longest part. */
int64_t cut_longest(const Cut *cut, int parts);

#endif
