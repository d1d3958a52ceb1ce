/* Computes the bounds of the parts of a range that is cut among ranks, and their longest length. */
#include "cut.h"

#include "base.h"

int64_t slice_bound(int64_t offset, int64_t count, int parts, int part)
{
    if (part == 0) return offset;
    if (part == parts) return offset + count;
    /* count * part / parts without overflow */
    int64_t even = count / parts * part + count % parts * part / parts;
    int64_t bound = arena_align(offset + even);
    return bound < offset + count ? bound : offset + count;
}

Cut cut_at(const Bounds *bounds)
{
    int64_t begin = bounds->begin[0];
    return (Cut){.offset = begin, .count = bounds->begin[bounds->count] - begin, .bounds = bounds};
}

int64_t cut_bound(const Cut *cut, int parts, int part)
{
    if (!cut->bounds) return slice_bound(cut->offset, cut->count, parts, part);
    int64_t bound = bounds_at(cut->bounds, part), end = cut->offset + cut->count;
    return bound < cut->offset ? cut->offset : bound > end ? end : bound;
}

int64_t cut_longest(const Cut *cut, int parts)
{
    int64_t longest = 0;
    if (cut->bounds) return bounds_longest(cut->bounds);
    for (int i = 0; i < parts; ++i) {
        int64_t length = cut_bound(cut, parts, i + 1) - cut_bound(cut, parts, i);
        longest = length > longest ? length : longest;
    }
    return longest;
}
