/* A dense layer whose sums are cut into slices (OpSpec.slices), as one smaller layer for each slice
 * of its inputs or outputs: the products are the same on any number of ranks, and so are their
 * bits. Where the result is a sum over slices (forward if the inputs are divided, else the gradient
 * of x), each product is fp32; products are joined by the binary tree of neighbours and rounded
 * once. If other ranks have slices, too, the sum stays fp32, because an exchange completes it. */
#ifndef WEFT_CUDA_DENSE_SLICES_H
#define WEFT_CUDA_DENSE_SLICES_H

#include "cuda.h"

/* OpTable.plan of such a layer; sets op->table. The caller has checked the sizes and set the layout
 * of y; that of x may be plain only. */
Status cuda_dense_slices_plan(Op *op, Desc preferred[SPEC_INPUTS]);
/* dense.c. Queues what a product has not done to y: adding the residual, then the activation; or,
 * without a residual, the activation, which for gelu reads `saved`. */
void cuda_dense_finish(const Op *op, const OpRun *run, bool adds, bool activates);
/* dense.c. OpTable.backward_begin: multiplies dy by the activation's slope. */
void cuda_dense_backward_begin(Op *op, const OpRun *run);

#endif
