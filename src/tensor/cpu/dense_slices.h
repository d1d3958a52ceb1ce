/* A dense layer in bf16 whose sums are cut into slices (OpSpec.slices). It is computed as one
 * smaller layer for each slice of its inputs or outputs, by oneDNN's kernels for that size. The
 * smaller layers are the same on any number of ranks, and so are their bits. If a result is a sum
 * over slices (forward if the inputs are divided, else the gradient of x), each smaller layer gives
 * a partial sum in fp32; the partial sums are joined by the binary tree of neighbours, and the
 * result is rounded once. If other ranks have slices, too, an exchange next to the layer completes
 * the sum. The tensor between layer and exchange, y if the inputs are divided, else x, is then
 * fp32, and so is its gradient. One of the two is the layer's partial sum. The other, dy or x,
 * comes from the exchange, already rounded to bf16. */
#ifndef WEFT_TENSOR_CPU_DENSE_SLICES_H
#define WEFT_TENSOR_CPU_DENSE_SLICES_H

#include "tensor.h"

extern const OpTable dense_slices_table;

/* True if the layer is in bf16 and has slices. */
bool dense_slices_fit(const Op *op);
/* OpTable.plan of such a layer; sets op->table. */
Status dense_slices_plan(Op *op, Desc preferred[SPEC_INPUTS]);
/* Computes the gradient of the bias, run->dw[1], as a sum over slices of the sequence
 * (OpSpec.tokens). */
void dense_token_bias(const Op *op, const OpRun *run);

#endif
