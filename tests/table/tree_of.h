/* Sums over the leaves of the summation tree (tree_step), like those of gradients. Some leaves are
 * absent. An absent leaf is -0, which leaves the other summand unchanged. */
#ifndef WEFT_TEST_TREE_OF_H
#define WEFT_TEST_TREE_OF_H

#include "parallel.h"

#include <string.h>

enum { TREE_LEAVES = 70, TREE_WIDTH = 5 };

/* Writes the sum of the leaves to out[width]. leaf[i]: the leaf at position i, [width]; NULL: it is
 * absent. */
static inline void tree_of(const float *const *leaf, int leaves, int width, float *out)
{
    float arena[TREE_LEAVES][TREE_WIDTH];
    for (int i = 0; i < leaves; ++i) {
        TreeStep step = tree_step(i, leaves);
        for (int c = 0; c < width; ++c) arena[step.write][c] = leaf[i] ? leaf[i][c] : -0.0f;
        for (int j = 0; j < step.join_count; ++j)
            for (int c = 0; c < width; ++c) arena[step.to[j]][c] += arena[step.to[j] + 1][c];
    }
    memcpy(out, arena[0], (size_t)width * sizeof *out);
}

/* Returns number n of a sequence. Sums of its numbers have other bits in another order. The number
 * is never 0. */
static inline float some_value(uint64_t n)
{
    uint64_t mix = row_hash(12345, n);
    return ((float)(int32_t)(mix >> 32) + 0.5f) * 0x1p-31f * (float)(1 << (mix & 7));
}

#endif
