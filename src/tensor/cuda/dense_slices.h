/* A dense layer whose sums are cut into slices (OpSpec.slices), computed as one smaller layer for
 * each slice of its inputs or outputs. Therefore the products, and their bits, are the same on any
 * number of ranks. y is a sum over slices if the inputs are divided, dx if the outputs are. The
 * products of such a sum are fp32, and the binary tree of neighbours joins them. If this rank has
 * all slices, the sum is rounded once, at the end. If other ranks have slices, too, the sum stays
 * fp32, and an exchange completes it. */
#ifndef WEFT_CUDA_DENSE_SLICES_H
#define WEFT_CUDA_DENSE_SLICES_H

#include "cuda.h"

/* OpTable.plan of such a layer; sets op->table and op->impl. The caller has checked the sizes and
 * set y's layout, which is replaced by the plain one if the inputs are divided. Prefers x in plain
 * layout; if an input has another layout than the preferred one, plans nothing more. */
Status cuda_dense_slices_plan(Op *op, Desc preferred[SPEC_INPUTS]);
/* In dense.c. Queues the steps of forward that the product has not done. adds: the residual is
 * added to y, and then the activation is applied; `activates` is ignored. activates: the activation
 * is applied to y; gelu reads `saved` instead of y. */
void cuda_dense_finish(const Op *op, const OpRun *run, bool adds, bool activates);
/* In dense.c. OpTable.backward_begin: multiplies dy, in place, by the activation's slope, unless
 * the next operation has done so (OpSpec.act_passed). */
void cuda_dense_backward_begin(Op *op, const OpRun *run);

#endif
