/* How a range of an arena is cut among ranks, a shard each: at given bounds, or evenly. */
#ifndef WEFT_PARALLEL_CUT_H
#define WEFT_PARALLEL_CUT_H

#include "parallel/order.h"

/* Border `part` (0..parts) of [offset, offset + count) cut in `parts` slices that begin on 64 bytes
 * of an arena that does; slices of small ranges may be empty. */
int64_t slice_bound(int64_t offset, int64_t count, int parts, int part);

/* How a range is cut among ranks: at given bounds, which may begin before and end behind it, or,
 * where there are none, evenly as slice_bound does. */
typedef struct Cut {
    int64_t offset, count;
    /* borrowed; NULL: even */
    const Bounds *bounds;
} Cut;
/* All of what they cut. */
Cut cut_at(const Bounds *bounds);
int64_t cut_bound(const Cut *cut, int parts, int part);
/* Elements of the longest part; at given bounds, of all that they cut. */
int64_t cut_longest(const Cut *cut, int parts);

#endif
