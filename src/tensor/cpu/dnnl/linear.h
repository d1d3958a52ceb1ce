/* The shared code of dense, conv2d and conv_transpose2d: three kernels (for forward, the gradient
 * of x, and the gradient of the weight), one stored order of the weight, and reorders between the
 * stored order and the orders that the kernels need.
 *
 * In fp32 the stored order is the forward kernel's, in bf16 that of the fp32 gradient. If such an
 * order is not a permutation of the elements, the stored order is the plain one. If the kernel for
 * forward or for the gradient of x reads another order, `refresh` makes a copy of the weight once
 * per step; in bf16 both kernels read a bf16 copy. If oneDNN uses another implementation of the
 * weight kernel for the stored order than for the order that it prefers, the weight kernel writes
 * the preferred order, and its result is reordered. */
#ifndef WEFT_TENSOR_CPU_LINEAR_H
#define WEFT_TENSOR_CPU_LINEAR_H

#include "dnnl.h"

/* Directions, in the order of the three KernelKinds of an operation. */
enum { LINEAR_FORWARD, LINEAR_DATA, LINEAR_WEIGHT, LINEAR_DIRECTIONS };

typedef struct LinearSpec {
    /* KERNEL_CONV_FORWARD or KERNEL_DENSE_FORWARD; in KernelKind, the other two directions follow
     * it */
    KernelKind forward;
    /* formats of x and y, borrowed */
    const Format *x, *y;
    /* format of the bias, borrowed; NULL: no bias */
    const Format *b;
    /* format of the weight that the kernels read, borrowed; format_any lets oneDNN choose it */
    const Format *w_any;
    /* format of the weight's fp32 gradient, borrowed; format_any lets oneDNN choose it */
    const Format *dw_any;
    /* plain format of the fp32 weight, borrowed */
    const Format *w_plain;
    int stride[2], pad[2];
    /* true: KernelSpec.winograd is set in all directions */
    bool winograd;
    /* KernelSpec.direct for each direction */
    bool direct[LINEAR_DIRECTIONS];
    /* true: KernelSpec.product is set in all directions */
    bool product;
    /* KernelSpec.slices for all directions */
    SumSlices slices;
    /* true: the sums over inputs in forward are cut into slices; false: the sums over outputs in
     * dx */
    bool slices_inputs;
    /* true: the kernel for the gradient of x is needed */
    bool need_data;
    /* true: some rows or columns of the convolution's kernel read nothing but padding. oneDNN 2.6
     * does not write their gradient in bf16, so dw and the scratch memory are set to 0 first. */
    bool dead_taps;
} LinearSpec;

/* Fails with ERR_CONFIG if there is a fused activation other than relu. */
Status linear_check_act(const Op *op);
/* Fills op->impl and the sizes in *op. ERR_CONFIG if oneDNN has no kernel, or if there is a fused
 * activation other than relu. */
Status linear_plan(Op *op, const LinearSpec *spec);
/* Returns whether one of the kernels is oneDNN's reference kernel, which is hundreds of times
 * slower. */
bool linear_is_reference(const Op *op);
void linear_refresh(Op *op, const OpRun *run);
void linear_forward(Op *op, const OpRun *run);
void linear_backward_begin(Op *op, const OpRun *run);
void linear_backward_data(Op *op, const OpRun *run);
void linear_backward_weight(Op *op, const OpRun *run);
void linear_pack(Op *op, int i, const float *plain, float *stored);
bool linear_stored_plain(const Op *op, int i);
void linear_unpack(Op *op, int i, const float *stored, float *plain);
void linear_free(Op *op);
/* Writes the names of the implementations, "forward, data, weight; copies", to out, at least 256
 * chars; returns out. */
char *linear_text(const Op *op, char *out);

#endif
