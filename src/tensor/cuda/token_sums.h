/* Gradients of norms and biases as sums over slices of the sequence (OpSpec.token_slices). The rows
 * of each slice are copied next to each other, and each slice is summed separately. Then the binary
 * tree of neighbours adds the sums of this rank's slices, and after that the sums of the ranks. */
#ifndef WEFT_CUDA_TOKEN_SUMS_H
#define WEFT_CUDA_TOKEN_SUMS_H

#include "cuda.h"

/* Returns `bytes` rounded up to the alignment of arrays in a workspace. */
static inline size_t cuda_aligned(size_t bytes)
{
    enum { ALIGN_BYTES = 256 };
    return (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

/* The rows of one slice. */
typedef struct TokenRows {
    /* x: rows of x, valid only if TokenSums.reads_x is true; dy: rows of dy */
    const void *x, *dy;
    /* the numbers that forward saved for each row, [rows][TokenSums.saved] */
    float *saved;
    /* number of rows */
    int64_t rows;
    /* number of rows of real samples, which come first */
    int64_t real;
} TokenRows;
/* Queues the kernels that sum over the rows. There are TokenSums.sums sums of TokenSums.width
 * floats each, which are written to `out` one after the other. partial: scratch of
 * TokenSums.partial floats. */
typedef void (*TokenSum)(const Op *op, const TokenRows *rows, float *out, float *partial);

typedef struct TokenSums {
    /* number of sums */
    int sums;
    /* floats of each sum */
    int64_t width;
    /* floats of scratch that `sum` needs */
    int64_t partial;
    /* number of floats that forward saved for each row */
    int saved;
    /* true: `sum` reads TokenRows.x */
    bool reads_x;
    TokenSum sum;
} TokenSums;

/* Returns the bytes of the workspace that cuda_token_sums_run needs. */
size_t cuda_token_sums_bytes(const Op *op, const TokenSums *t);
/* Writes the sums to run->dw[first], run->dw[first + 1], ... Collective on the tensor-parallel
 * group if other ranks have slices of the sequence. */
void cuda_token_sums_run(const Op *op, const OpRun *run, const TokenSums *t, int first);
/* Returns the number of rows of the largest slice. */
int64_t cuda_token_rows_most(const OpSpec *spec);

/* Returns the description of the sum for the gradient of a bias, which is the sum of dy over its
 * rows. */
TokenSums cuda_token_bias(const Op *op);

#endif
