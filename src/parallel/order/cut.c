/* Bounds of even slices, and the longest part of a cut. */
#include "cut.h"

/* floats in 64 bytes */
enum { SLICE_ALIGN = 16 };

int64_t slice_bound(int64_t offset, int64_t count, int parts, int part)
{
    if (part == 0) return offset;
    if (part == parts) return offset + count;
    /* count * part / parts without overflow */
    int64_t even = count / parts * part + count % parts * part / parts;
    int64_t bound = (offset + even + SLICE_ALIGN - 1) / SLICE_ALIGN * SLICE_ALIGN;
    return bound < offset + count ? bound : offset + count;
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
