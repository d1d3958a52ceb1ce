/* Sums a range in blocks that fit into the first-level cache. Partial sums of a block are on a
 * stack as in tree.c, one per level. For two ranks, the most common case, loops without the stack
 * need less memory bandwidth. On x86-64 all loops are compiled for two vector widths, and the width
 * is chosen at run time; both versions add the same numbers in the same order. */
#include "tree_sum.h"
#include "cut.h"

#include "parallel.h"

#include <string.h>

/* BLOCK: floats of a block. LEVELS: levels of the stack, enough for 2^31 leaves. */
enum { BLOCK = 512, LEVELS = 32 };
/* smallest number of elements of a push that is added by several threads */
enum { PARALLEL_ELEMENTS = 1 << 17 };

/* Declares a function that is inlined into its callers, which exist once per vector width, and is
 * thereby compiled for each width. */
#define INLINE static inline __attribute__((always_inline))

/* Adds a and b into `to`, which may equal a. */
INLINE void add_two(float *to, const float *a, const float *b, int n)
{
#pragma omp simd
    for (int k = 0; k < n; ++k) to[k] = a[k] + b[k];
}

/* Adds the arenas a and b of two ranks, and writes the sum to both: each element is read and
 * written once. */
INLINE void sum_pair(float *restrict a, float *restrict b, int64_t n)
{
#pragma omp simd
    for (int64_t k = 0; k < n; ++k) a[k] = b[k] = a[k] + b[k];
}

/* Adds the arenas a and b of two ranks, and writes the sum to `out`, which may be a or b. */
INLINE void sum_pair_once(float *out, const float *a, const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t k = 0; k < n; ++k) out[k] = a[k] + b[k];
}

/* Adds leaves `first` .. first + ins - 1 to the partial sums of one block of n elements. In each
 * array in[i] the block of leaf first + i begins at element `at`. part[k]: the sum at level k of
 * the stack, which is a leaf, a partial sum in an arena, or sum[k]. New sums are written to
 * sum[k]. */
INLINE void grow(const float **part, float (*sum)[BLOCK], const float *const *in, int ins,
                 int64_t at, int first, int leaves, int n)
{
    for (int i = 0; i < ins; ++i) {
        TreeStep step = tree_step(first + i, leaves);
        part[step.write] = in[i] + at;
        for (int j = 0; j < step.join_count; ++j) {
            int to = step.to[j];
            add_two(sum[to], part[to], part[to + 1], n);
            part[to] = sum[to];
        }
    }
}

int tree_partial_count(int leaf, int leaves)
{
    return leaf == leaves ? 1 : __builtin_popcount((unsigned)leaf);
}

/* Copies a sum of n elements to `to`, unless it is there already. */
INLINE void settle(float *to, const float *sum, int n)
{
    if (sum != to) memcpy(to, sum, (size_t)n * sizeof *to);
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
    float sum[LEVELS][BLOCK];
    const float *part[LEVELS];
    for (int64_t end = at + n; at < end; at += BLOCK) {
        int count = end - at < BLOCK ? (int)(end - at) : BLOCK;
        grow(part, sum, in, ins, at, 0, ins, count);
        for (int i = 0; i < outs; ++i) settle(out[i] + at, part[0], count);
    }
}

INLINE void push_range(const TreePush *p, int64_t at, int64_t n)
{
    float sum[LEVELS][BLOCK];
    const float *part[LEVELS];
    int before = tree_partial_count(p->first, p->leaves);
    int after = tree_partial_count(p->first + p->ins, p->leaves);
    /* true: the push has the last leaf, and the complete sum is written to `out`, not to
     * level[0] */
    bool completes = p->outs > 0 && p->first + p->ins == p->leaves;
    for (int64_t end = at + n; at < end; at += BLOCK) {
        int count = end - at < BLOCK ? (int)(end - at) : BLOCK;
        for (int k = 0; k < before; ++k) part[k] = p->level[k] + p->level_at + at;
        grow(part, sum, p->in, p->ins, p->in_at + at, p->first, p->leaves, count);
        for (int k = 0; k < after && !completes; ++k)
            settle(p->level[k] + p->level_at + at, part[k], count);
        for (int i = 0; i < p->outs && completes; ++i)
            settle(p->out[i] + p->in_at + at, part[0], count);
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void
sum_range_avx2(float *const *out, int outs, const float *const *in, int ins, int64_t at, int64_t n)
{
    sum_range(out, outs, in, ins, at, n);
}

__attribute__((target("avx2"))) static void push_range_avx2(const TreePush *p, int64_t at,
                                                            int64_t n)
{
    push_range(p, at, n);
}

static bool use_avx2(void)
{
    return cpu_used() >= CPU_AVX2;
}
#else
#define sum_range_avx2  sum_range
#define push_range_avx2 push_range
static bool use_avx2(void)
{
    return false;
}
#endif

void tree_sum(float *const *out, int outs, const float *const *in, int ins, int64_t at, int64_t n)
{
    if (use_avx2())
        sum_range_avx2(out, outs, in, ins, at, n);
    else
        sum_range(out, outs, in, ins, at, n);
}

void tree_push(const TreePush *push, int64_t n, int threads)
{
    int parts = n < PARALLEL_ELEMENTS ? 1 : threads;
#pragma omp parallel for num_threads(parts) if (parts > 1)
    for (int i = 0; i < parts; ++i) {
        int64_t at = slice_bound(0, n, parts, i), end = slice_bound(0, n, parts, i + 1);
        if (use_avx2())
            push_range_avx2(push, at, end - at);
        else
            push_range(push, at, end - at);
    }
}
