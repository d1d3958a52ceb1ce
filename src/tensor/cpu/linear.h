/* The shared code of dense, conv2d and conv_transpose2d: three kernels (forward, backward data,
 * backward weight), one stored order of the weight, and reorders between the stored order and the
 * orders that the kernels need. In fp32 the stored order is the forward kernel's, in bf16 that of
 * the fp32 gradient; if such an order is not a permutation of the elements, the stored order is the
 * plain one. If forward or data needs another order, `refresh` makes a copy once per step. If
 * oneDNN uses another implementation of the weight kernel for the stored order than for the order
 * that it prefers, the weight kernel writes the preferred order, and its result is reordered. In
 * bf16 both kernels that read the weight get a bf16 copy. */
#ifndef WEFT_TENSOR_CPU_LINEAR_H
#define WEFT_TENSOR_CPU_LINEAR_H

#include "dnnl.h"

/* Directions, in the order of the three KernelKinds of an operation. */
enum { LINEAR_FORWARD, LINEAR_DATA, LINEAR_WEIGHT, LINEAR_DIRECTIONS };

typedef struct LinearSpec {
    /* KERNEL_CONV_FORWARD or KERNEL_DENSE_FORWARD; the backward kinds follow it in KernelKind */
    KernelKind forward;
    /* formats of x, y and bias, borrowed; b NULL: no bias */
    const Format *x, *y, *b;
    /* formats of the weight in the kernels' type and of its fp32 gradient, borrowed; format_any
     * lets oneDNN choose */
    const Format *w_any, *dw_any;
    /* plain format of the fp32 weight, borrowed */
    const Format *w_plain;
    int stride[2], pad[2];
    /* convolutions: use Winograd kernels (winograd.h) */
    bool winograd;
    /* KernelSpec.direct for each direction */
    bool direct[LINEAR_DIRECTIONS];
    /* KernelSpec.product, slices and slices_inputs for all directions */
    bool product;
    SumSlices slices;
    bool slices_inputs;
    /* the data kernel is needed */
    bool need_data;
    /* Some taps of the weight read nothing but padding. oneDNN 2.6 does not write their gradient in
     * bf16, so dw and the scratch memory are set to 0 first. */
    bool dead_taps;
} LinearSpec;

/* ERR_CONFIG if the fused activation is not relu. */
Status linear_check_act(const Op *op);
/* Fills op->impl and the sizes of op. ERR_CONFIG if oneDNN has no kernel or the fused activation is
 * not relu. */
Status linear_plan(Op *op, const LinearSpec *spec);
/* True if one of the kernels is oneDNN's reference, which is hundreds of times slower. */
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
