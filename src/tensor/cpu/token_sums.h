/* Sums over rows, for the gradients of norms and biases. The order of addition does not depend on
 * the number of threads. If the operation's sums are cut (OpSpec.token_slices), it does not depend
 * on the number of ranks of a tensor group either:
 *
 *     samples   s0 s0 s0 s0 s1 s1 s1 s1     rows of one sample are tokens of its sequence
 *     slices    0  0  1  1  0  0  1  1      the same tokens of all samples
 *     parts     a  a  c  c  b  b  d  d      rows of a slice, in order; a thread adds whole parts
 *
 * The sum of a slice is the sum of its parts in order, and the sums of slices are joined by a
 * binary tree. A rank of a tensor group has complete slices, which form a subtree, and gathers the
 * sums of the other ranks. */
#ifndef WEFT_TENSOR_CPU_TOKEN_SUMS_H
#define WEFT_TENSOR_CPU_TOKEN_SUMS_H

#include "view.h"

typedef struct TokenSums {
    /* How the tokens are cut into slices. cut.total 0: all rows are one slice, and this rank has
     * all of them. */
    SumSlices cut;
    /* rows of a sample on this rank */
    int64_t tokens;
    /* floats of one sum */
    int64_t width;
    /* number of sums, 1 or 2: each is the gradient of one parameter */
    int sums;
    /* number of slices on this rank */
    int64_t slices;
    /* maximum number of parts of a slice */
    int64_t parts;
    int64_t samples;
} TokenSums;

/* Adds the terms of a row to sum[sums][width]. task: the argument of token_sums_run. */
typedef void (*TokenRow)(const void *task, int64_t row, float *sum);

/* Makes the plan. y: shape (N,T,C), or (N,C), in which a sample has one row. sums: number of sums,
 * 1 or 2, to which each row adds. */
TokenSums token_sums_plan(const SumSlices *cut, Shape y, int sums);
/* Returns the bytes of workspace. */
size_t token_sums_bytes(const TokenSums *t);
/* Writes the sums over the rows of all samples that are not padding: the first sum to
 * run->dw[first], the second to run->dw[first + 1]. add: called with `task` for each row. work:
 * workspace, token_sums_bytes. Collective on the tensor group if it divides the tokens. */
void token_sums_run(const TokenSums *t, const OpRun *run, TokenRow add, const void *task,
                    float *work, int first);

#endif
