/* The cut of a range of an arena into one part per rank: at given bounds, or evenly. */
#ifndef WEFT_PARALLEL_CUT_H
#define WEFT_PARALLEL_CUT_H

#include "parallel/order.h"

/* First element of slice `part` of [offset, offset + count) when it is cut into `parts` even
 * slices; part == parts: the end of the range. All slices but the first, which begins at offset,
 * begin on multiples of 16 floats (64 bytes) of the arena or, if they are empty, at the range's
 * end. */
int64_t slice_bound(int64_t offset, int64_t count, int parts, int part);

/* A range of an arena and its cut among ranks: at given bounds, which may begin before the range
 * and end after it, or evenly by slice_bound. */
typedef struct Cut {
    /* first element of the range in the arena, and number of elements */
    int64_t offset, count;
    /* borrowed; NULL: an even cut */
    const Bounds *bounds;
} Cut;
/* The cut of the whole range that the bounds cover. */
Cut cut_at(const Bounds *bounds);
/* First element of part `part` of the range; part == parts: the end of the range. With given
 * bounds, parts is the number of ranks, and the result is the shard's first element, moved into the
 * range if it is outside. */
int64_t cut_bound(const Cut *cut, int parts, int part);
/* Elements of the longest of the parts. With given bounds: elements of the longest shard, even if
 * it is outside the range. */
int64_t cut_longest(const Cut *cut, int parts);

#endif
