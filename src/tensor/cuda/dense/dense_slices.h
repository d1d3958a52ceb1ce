/* A dense layer whose sums are cut into slices (OpSpec.slices). It is computed as one smaller layer
 * for each slice of its inputs or outputs, so the products, and their bits, are the same on any
 * number of ranks. If the inputs are divided, y is a sum over slices; if the outputs are divided,
 * dx is. The products of such a sum are fp32, and the binary tree of neighbours adds them. If this
 * rank has all slices, the sum is rounded once, at the end. If other ranks have slices, too, the
 * sum stays fp32, and an exchange (exchange.c) completes it. */
#ifndef WEFT_CUDA_DENSE_SLICES_H
#define WEFT_CUDA_DENSE_SLICES_H

#include "../cuda.h"

/* Plans such a layer; sets op->table and op->impl. The caller has checked the sizes and set y's
 * layout; if the inputs are divided, this function sets cuda_desc's layout instead. If an input
 * does not have its preferred layout, returns before anything else is planned. */
Status cuda_dense_slices_plan(Op *op, Desc preferred[SPEC_INPUTS]);
/* Queues the steps of forward that the product has not done (dense.c). adds = true: adds the
 * residual to y and then applies the activation; `activates` is not used. activates = true: applies
 * the activation to y; gelu reads run->saved instead of y. */
void cuda_dense_finish(const Op *op, const OpRun *run, bool adds, bool activates);
/* Implements OpTable.backward_begin (dense.c): multiplies dy, in place, by the activation's slope,
 * unless the next operation has done so (OpSpec.act_passed). */
void cuda_dense_backward_begin(Op *op, const OpRun *run);

#endif
