/* Cuts a range of an arena into one part per rank, at given bounds or evenly. */
#ifndef WEFT_PARALLEL_CUT_H
#define WEFT_PARALLEL_CUT_H

#include "parallel/order.h"

/* Returns the first element of slice `part` if [offset, offset + count) is cut into `parts` even
 * slices; for part == parts, the end of the range. The first slice begins at offset. Every other
 * slice begins at a multiple of 16 floats (64 bytes) of the arena or, if it is empty, at the end of
 * the range. */
int64_t slice_bound(int64_t offset, int64_t count, int parts, int part);

/* A range of an arena, and how it is cut among ranks: at given bounds, or evenly by slice_bound.
 * The bounds may begin before the range and end after it. */
typedef struct Cut {
    /* first element of the range in the arena */
    int64_t offset;
    /* number of elements of the range */
    int64_t count;
    /* bounds of the shards; borrowed; NULL: the range is cut evenly */
    const Bounds *bounds;
} Cut;
/* Returns the complete range between the first and the last bound, cut at the bounds, which the
 * result borrows. */
Cut cut_at(const Bounds *bounds);
/* Returns the first element of part `part` of the range; for part == parts, the end of the range.
 * With given bounds, `parts` is the number of ranks, and the result is the first element of the
 * shard, moved into the range if it is outside. */
int64_t cut_bound(const Cut *cut, int parts, int part);
/* Returns the number of elements of the longest part. With given bounds this is the longest shard,
 * even if it is outside the range. */
int64_t cut_longest(const Cut *cut, int parts);

#endif
