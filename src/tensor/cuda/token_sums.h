/* Gradients of norms and biases as sums over slices of the sequence (OpSpec.tokens): each slice's
 * rows are copied side by side and summed alone, and sums are joined by the binary tree of
 * neighbours, those of this rank first, then the ranks'. */
#ifndef WEFT_CUDA_TOKEN_SUMS_H
#define WEFT_CUDA_TOKEN_SUMS_H

#include "cuda.h"

/* Returns the distance of arrays of `bytes` bytes in a workspace. */
static inline size_t cuda_aligned(size_t bytes)
{
    enum { ALIGN_BYTES = 256 };
    return (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

/* Rows of one slice: of x (NULL: not needed), of dy, and of what forward saved for each row. */
typedef struct TokenRows {
    const void *x, *dy;
    float *saved;
    int64_t rows, real;
} TokenRows;
/* Queues the kernels that write the `sums` sums over the rows, each of `width` floats, to out. */
typedef void (*TokenSum)(const Op *op, const TokenRows *rows, float *out, float *partial);

typedef struct TokenSums {
    /* number of sums, and floats of each */
    int sums;
    int64_t width;
    /* floats of scratch of TokenSum */
    int64_t partial;
    /* floats that forward saved for each row */
    int saved;
    bool reads_x;
    TokenSum sum;
} TokenSums;

size_t cuda_token_sums_bytes(const Op *op, const TokenSums *t);
/* Writes the sums to run->dw[first], run->dw[first + 1], ... */
void cuda_token_sums_run(const Op *op, const OpRun *run, const TokenSums *t, int first);
/* The most rows of a slice. */
int64_t cuda_token_rows_most(const OpSpec *spec);

/* The gradient of a bias: the sum of dy. */
TokenSums cuda_token_bias(const Op *op);

#endif
