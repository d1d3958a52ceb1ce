/* A dense layer in bf16 whose sums are cut into slices (OpSpec.slices). It is computed as one
 * smaller layer for each slice of its inputs or outputs, by oneDNN's kernels for that size. The
 * smaller layers are the same on any number of ranks, and so are their bits. Where the layer's
 * result is a sum over slices (forward if its inputs are divided, else the gradient of x), each
 * gives its part in fp32; parts are joined by the binary tree of neighbours, and rounded once. If
 * other ranks have slices, too, the sum stays in fp32, because an exchange completes it: y, or x
 * with its gradient, is then fp32, though the values that come from the exchange are bf16. */
#ifndef WEFT_TENSOR_CPU_DENSE_SLICES_H
#define WEFT_TENSOR_CPU_DENSE_SLICES_H

#include "tensor.h"

extern const OpTable dense_slices_table;

/* True if the layer is in bf16 and has slices. */
bool dense_slices_fit(const Op *op);
/* OpTable.plan of such a layer; sets op->table. */
Status dense_slices_plan(Op *op, Desc preferred[SPEC_INPUTS]);
/* Computes the gradient of a bias as a sum over slices of the sequence (OpSpec.tokens). */
void dense_token_bias(const Op *op, const OpRun *run);

#endif
