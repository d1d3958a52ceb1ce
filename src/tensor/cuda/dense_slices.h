/* A dense layer whose sums are cut into slices (OpSpec.slices), as one smaller layer for each slice
 * of its inputs or outputs: the products are the same on any number of ranks, and so are their
 * bits. If the result is a sum over slices (forward if the inputs are divided, else the gradient of
 * x), each product is fp32; products are joined by the binary tree of neighbours, and the sum is
 * rounded once. If other ranks have slices, too, an exchange completes the sum, so it stays
 * fp32. */
#ifndef WEFT_CUDA_DENSE_SLICES_H
#define WEFT_CUDA_DENSE_SLICES_H

#include "cuda.h"

/* OpTable.plan of such a layer; sets op->table. The caller has checked the sizes and set the layout
 * of y; x must have the plain layout. */
Status cuda_dense_slices_plan(Op *op, Desc preferred[SPEC_INPUTS]);
/* In dense.c. Queues the steps of forward that the product has not done. adds: the residual is
 * added to y, and the activation is applied. activates: without `adds`, only the activation is
 * applied; gelu then reads `saved` instead of y. */
void cuda_dense_finish(const Op *op, const OpRun *run, bool adds, bool activates);
/* In dense.c. OpTable.backward_begin: multiplies dy by the activation's slope, unless the next
 * operation has done so (OpSpec.act_passed). */
void cuda_dense_backward_begin(Op *op, const OpRun *run);

#endif
