/* A dense layer in bf16 whose sums are cut into slices (OpSpec.slices). It is computed as one
 * smaller layer for each slice of its inputs or outputs, by oneDNN's kernels for that size. The
 * smaller layers, and therefore their bits, are the same on any number of ranks. The result is a
 * sum over slices in two cases: in forward if the inputs are divided, and in the gradient of x if
 * the outputs are divided. Each smaller layer then gives a partial sum in fp32; the partial sums
 * are joined by the binary tree of neighbours, and the result is rounded once.
 *
 * If other ranks have slices, too, an exchange next to the layer completes the sum. The tensor
 * between layer and exchange is y if the inputs are divided, else x. This tensor and its gradient
 * are then fp32: one of the two is the layer's partial sum, and the other comes from the exchange,
 * already rounded to bf16. */
#ifndef WEFT_TENSOR_CPU_DENSE_SLICES_H
#define WEFT_TENSOR_CPU_DENSE_SLICES_H

#include "tensor.h"

extern const OpTable dense_slices_table;

/* Returns whether the layer is in bf16 and has slices. */
bool dense_slices_fit(const Op *op);
/* Plans such a layer, as OpTable.plan does; also sets op->table to dense_slices_table. */
Status dense_slices_plan(Op *op, Desc preferred[SPEC_INPUTS]);
/* Computes the gradient of the bias, run->dw[1], as a sum over slices of the sequence
 * (OpSpec.token_slices). */
void dense_token_bias(const Op *op, const OpRun *run);

#endif
