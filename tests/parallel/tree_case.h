/* Numbers for tests of sums, and their sum by the definition of the summation tree. The numbers are
 * such that another order of additions gives other bits. */
#ifndef WEFT_TEST_TREE_CASE_H
#define WEFT_TEST_TREE_CASE_H

#include <stdint.h>

/* Returns the number that a rank adds to the sum of an element in a round. */
static inline float tree_value(int rank, int64_t element, int round)
{
    uint64_t mixed =
        ((uint64_t)element * 64 + (uint64_t)rank * 8 + (uint64_t)round + 1) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9u;
    return (float)(int32_t)(mixed >> 32) * 0x1p-31f * (float)(1 << (element + rank) % 11);
}

/* Returns the sum of an element over `size` ranks, by definition: neighbours are added, and a last
 * number without a neighbour is taken over to the next level. */
static inline float tree_reference(int size, int64_t element, int round)
{
    float level[4096];
    for (int r = 0; r < size; ++r) level[r] = tree_value(r, element, round);
    for (int n = size; n > 1; n = (n + 1) / 2) {
        for (int i = 0; 2 * i < n; ++i)
            level[i] = 2 * i + 1 < n ? level[2 * i] + level[2 * i + 1] : level[2 * i];
    }
    return level[0];
}

#endif
