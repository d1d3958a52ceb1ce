/* Stores the bounds of shards that are not empty. A search for a rank starts at the entry that the
 * rank would have if the stored shards were spread evenly over the ranks. Most buckets are cut
 * about evenly, so the rank's real entry is usually near. */
#include "cut.h"
#include "parallel.h"

void bounds_init(Bounds *bounds, const int64_t *bound, int ranks)
{
    int count = 0;
    for (int r = 0; r < ranks; ++r) count += bound[r] != bound[r + 1];
    *bounds = (Bounds){.ranks = ranks,
                       .rank = mem_new((size_t)(count + 1) * sizeof *bounds->rank),
                       .begin = mem_new((size_t)(count + 1) * sizeof *bounds->begin)};
    for (int r = 0; r < ranks; ++r) {
        if (bound[r] == bound[r + 1]) continue;
        bounds->rank[bounds->count] = r;
        bounds->begin[bounds->count++] = bound[r];
    }
    bounds->begin[count] = bound[ranks];
}

void bounds_init_even(Bounds *bounds, int64_t offset, int64_t elements, int ranks)
{
    int64_t *bound = mem_new((size_t)(ranks + 1) * sizeof *bound);
    for (int r = 0; r <= ranks; ++r) bound[r] = slice_bound(offset, elements, ranks, r);
    bounds_init(bounds, bound, ranks);
    mem_free(&bound);
}

void bounds_fini(Bounds *bounds)
{
    mem_free(&bounds->rank);
    mem_free(&bounds->begin);
    *bounds = (Bounds){0};
}

int bounds_find(const Bounds *b, int rank)
{
    int i = (int)((int64_t)rank * b->count / b->ranks);
    while (i > 0 && b->rank[i - 1] >= rank) --i;
    while (i < b->count && b->rank[i] < rank) ++i;
    return i;
}

bool bounds_has(const Bounds *b, int shard, int rank)
{
    return shard < b->count && b->rank[shard] == rank;
}

int64_t bounds_at(const Bounds *b, int rank)
{
    return b->begin[bounds_find(b, rank)];
}

int64_t bounds_length(const Bounds *b, int rank)
{
    int i = bounds_find(b, rank);
    return bounds_has(b, i, rank) ? b->begin[i + 1] - b->begin[i] : 0;
}

int64_t bounds_longest(const Bounds *b)
{
    int64_t longest = 0;
    for (int i = 0; i < b->count; ++i) {
        int64_t length = b->begin[i + 1] - b->begin[i];
        longest = length > longest ? length : longest;
    }
    return longest;
}
