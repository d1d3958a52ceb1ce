/* Sums blocks that stay in the first-level cache: a stack of partial sums as in tree.c, one block a level. Two ranks, the
 * commonest case and bound by memory alone, have a loop of their own. Built for two widths of vectors, of which the one
 * that the CPU has is taken: both add the same numbers in the same order. */
#include "tree_sum.h"

#include "parallel.h"

#include <string.h>

enum { BLOCK = 512, LEVELS = 21, SLICE_ALIGN = 16 }; /* floats; 2^20 ranks; floats in 64 bytes */

/* Inlined into a function for each width, so that it takes that one's instructions. */
#define INLINE static inline __attribute__((always_inline))

INLINE void add(float *restrict to, const float *restrict more, int n)
{
#pragma omp simd
    for (int k = 0; k < n; ++k) to[k] += more[k];
}

INLINE void add_two(float *restrict to, const float *restrict a, const float *restrict b, int n)
{
#pragma omp simd
    for (int k = 0; k < n; ++k) to[k] = a[k] + b[k];
}

/* Both arenas of two ranks at once: every element is read and written once. */
INLINE void sum_pair(float *restrict a, float *restrict b, int64_t n)
{
#pragma omp simd
    for (int64_t k = 0; k < n; ++k) a[k] = b[k] = a[k] + b[k];
}

/* One arena of two ranks: out may be one of them. */
INLINE void sum_pair_once(float *out, const float *a, const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t k = 0; k < n; ++k) out[k] = a[k] + b[k];
}

/* The tree's result for one block ends in level[0]. */
INLINE void sum_block(float (*level)[BLOCK], const float *const *in, int ins, int64_t at, int n)
{
    for (int i = 0; i < ins; ++i) {
        TreeStep step = tree_step(i, ins);
        /* An even input waits for its odd neighbour: both are joined as they are read. */
        if (i % 2 == 0 && i + 1 < ins) continue;
        bool paired = i % 2 == 1;
        int top = step.write - (paired ? 1 : 0);
        if (paired)
            add_two(level[top], in[i - 1] + at, in[i] + at, n);
        else
            memcpy(level[top], in[i] + at, (size_t)n * sizeof(float));
        for (int j = paired ? 1 : 0; j < step.join_count; ++j)
            add(level[step.to[j]], level[step.to[j] + 1], n);
    }
}

INLINE void sum_range(float *const *out, int outs, const float *const *in, int ins, int64_t at,
                      int64_t n)
{
    if (ins == 2 && outs == 2 && out[0] == in[0] && out[1] == in[1]) {
        sum_pair(out[0] + at, out[1] + at, n);
        return;
    }
    if (ins == 2 && outs == 1) {
        sum_pair_once(out[0] + at, in[0] + at, in[1] + at, n);
        return;
    }
    float level[LEVELS][BLOCK];
    for (int64_t end = at + n; at < end; at += BLOCK) {
        int part = end - at < BLOCK ? (int)(end - at) : BLOCK;
        sum_block(level, in, ins, at, part);
        for (int i = 0; i < outs; ++i) memcpy(out[i] + at, level[0], (size_t)part * sizeof(float));
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void
sum_range_avx2(float *const *out, int outs, const float *const *in, int ins, int64_t at, int64_t n)
{
    sum_range(out, outs, in, ins, at, n);
}

static bool have_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
#define sum_range_avx2 sum_range
static bool have_avx2(void)
{
    return false;
}
#endif

void tree_sum(float *const *out, int outs, const float *const *in, int ins, int64_t at, int64_t n)
{
    if (have_avx2())
        sum_range_avx2(out, outs, in, ins, at, n);
    else
        sum_range(out, outs, in, ins, at, n);
}

int64_t slice_border(int64_t offset, int64_t count, int parts, int part)
{
    if (part == 0) return offset;
    if (part == parts) return offset + count;
    /* count * part / parts without overflow */
    int64_t even = count / parts * part + count % parts * part / parts;
    int64_t border = (offset + even + SLICE_ALIGN - 1) / SLICE_ALIGN * SLICE_ALIGN;
    return border < offset + count ? border : offset + count;
}

int64_t cut_longest(const Cut *cut, int parts)
{
    int64_t longest = 0;
    for (int i = 0; i < parts; ++i) {
        int64_t length = cut_border(cut, parts, i + 1) - cut_border(cut, parts, i);
        longest = length > longest ? length : longest;
    }
    return longest;
}
