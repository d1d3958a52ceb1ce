/* What dense and conv2d share: three kernels (forward, backward data, backward weight) around one
 * stored order of the weight, and the reorders between what the kernels want. In fp32 the stored
 * order is the forward kernel's; the backward kernels use it too where oneDNN is as good with it.
 * Otherwise `refresh` makes their copy once a step. In bf16 the two kernels that read the weight
 * get such a copy anyway, and the stored order is that of the gradient, which is fp32. */
#ifndef WEFT_TENSOR_CPU_LINEAR_H
#define WEFT_TENSOR_CPU_LINEAR_H

#include "dnnl.h"

/* The order of a kind's three KernelKinds, too. */
enum { LINEAR_FORWARD, LINEAR_DATA, LINEAR_WEIGHT, LINEAR_DIRECTIONS };

typedef struct LinearSpec {
    /* KERNEL_CONV_FORWARD or KERNEL_DENSE_FORWARD; backward kinds follow it */
    KernelKind forward;
    /* borrowed; b NULL: no bias */
    const Format *x, *y, *b;
    /* borrowed: of the kernels' type, and fp32 */
    const Format *w_any, *dw_any;
    /* borrowed: fp32 */
    const Format *w_plain;
    int stride[2], pad[2];
    /* convolutions: by our own kernels (winograd.h) */
    bool winograd;
    /* as KernelSpec has them */
    bool direct[LINEAR_DIRECTIONS], product;
    /* Some of the weight meets padding only. oneDNN 2.6 in bf16 leaves that part of its sums
     * unwritten: they begin as zero. */
    bool dead_taps;
} LinearSpec;

/* Fills op->impl and op's sizes. ERR_CONFIG where oneDNN has no kernel or the fused activation is
 * not ReLU. */
Status linear_plan(Op *op, const LinearSpec *spec);
/* Is one of its kernels oneDNN's reference, hundreds of times slower than the others? */
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
/* oneDNN's implementations: "forward, data, weight; copies", into out of at least 256 chars,
 * returned. */
char *linear_text(const Op *op, char *out);

#endif
