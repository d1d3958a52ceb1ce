/* Sums over rows for the gradients of norms and biases, with an order that depends neither on the
 * number of threads nor, if the operation's sums are cut (OpSpec.tokens), on the number of ranks of
 * a tensor group:
 *
 *     samples   s0 s0 s0 s0 s1 s1 s1 s1     rows of one sample are tokens of its sequence
 *     slices    0  0  1  1  0  0  1  1      the same tokens of all samples
 *     parts     a  a  c  c  b  b  d  d      rows of a slice, in order; a thread adds whole parts
 *
 * The sum of a slice is the sum of its parts in order, and the sums of slices are joined by a
 * binary tree. A rank of a tensor group has whole slices, which form a subtree, and gathers the
 * other ranks' sums. */
#ifndef WEFT_TENSOR_CPU_TOKEN_SUMS_H
#define WEFT_TENSOR_CPU_TOKEN_SUMS_H

#include "view.h"

typedef struct TokenSums {
    /* cut of the tokens; total 0: all rows are one slice, and all are on this rank */
    SumSlices cut;
    /* rows of a sample on this rank; floats of one sum */
    int64_t tokens, width;
    /* number of sums: gradients of one or two parameters */
    int sums;
    /* number of slices on this rank, and maximum number of parts of a slice */
    int64_t slices, parts;
    int64_t samples;
} TokenSums;

/* Adds the terms of a row to float[sums][width]. */
typedef void (*TokenRow)(const void *task, int64_t row, float *sum);

/* Makes the plan. y: shape (N,T,C), or (N,C), whose rows are not tokens. sums: number of sums, 1 or
 * 2, to which each row adds. */
TokenSums token_sums_plan(const SumSlices *cut, Shape y, int sums);
/* Bytes of workspace. */
size_t token_sums_bytes(const TokenSums *t);
/* Writes the sums over the rows of all samples that are not padding: the first sum to
 * run->dw[first], the second to run->dw[first + 1]. work: workspace. Collective on the tensor group
 * if the tokens are divided. */
void token_sums_run(const TokenSums *t, const OpRun *run, TokenRow add, const void *task,
                    float *work, int first);

#endif
