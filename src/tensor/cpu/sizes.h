/* Arithmetic of integers: numbers of parts, and sizes of arrays that are placed one after the other
 * in memory. */
#ifndef WEFT_TENSOR_CPU_SIZES_H
#define WEFT_TENSOR_CPU_SIZES_H

#include <stddef.h>
#include <stdint.h>

/* Returns a / b, rounded up; a >= 0, b > 0. */
static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Returns the smallest multiple of `unit` that is at least n. */
static inline int64_t round_up(int64_t n, int64_t unit)
{
    return ceil_div(n, unit) * unit;
}

/* Returns `bytes` rounded up to a multiple of a cache line, so that arrays that are placed one
 * after the other all begin at cache lines. */
static inline size_t align_up(size_t bytes)
{
    enum { LINE_BYTES = 64 };
    return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

#endif
