/* Gradients of norms and biases as sums over slices of the sequence (OpSpec.tokens): each slice's
 * rows are copied side by side and summed alone, and sums are joined by the binary tree of
 * neighbours: first the sums of this rank's slices, then the sums of the ranks. */
#ifndef WEFT_CUDA_TOKEN_SUMS_H
#define WEFT_CUDA_TOKEN_SUMS_H

#include "cuda.h"

/* Returns `bytes` rounded up to the alignment of arrays in a workspace. */
static inline size_t cuda_aligned(size_t bytes)
{
    enum { ALIGN_BYTES = 256 };
    return (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

/* Rows of one slice: of x (not valid unless TokenSums.reads_x), of dy, and of the numbers that
 * forward saved for each row. */
typedef struct TokenRows {
    const void *x, *dy;
    float *saved;
    /* number of rows, and of rows of real samples, which come first */
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
/* Writes the sums to run->dw[first], run->dw[first + 1], ... Collective on the tensor group if
 * other ranks have slices of the sequence. */
void cuda_token_sums_run(const Op *op, const OpRun *run, const TokenSums *t, int first);
/* Returns the number of rows of the largest slice. */
int64_t cuda_token_rows_most(const OpSpec *spec);

/* Describes the sum for the gradient of a bias, which is the sum of dy. */
TokenSums cuda_token_bias(const Op *op);

#endif
