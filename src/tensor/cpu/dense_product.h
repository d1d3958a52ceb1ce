/* A dense layer's products, forward and both gradients: of few rows, and for processors whose
 * vectors have 8 floats, where oneDNN's reach half of what the processor can below some hundred.
 * All is plain and fp32: x [rows][in], the weight [out][in], y [rows][out]. The result of a run
 * depends neither on the number of threads nor on who computes what. */
#ifndef WEFT_TENSOR_CPU_DENSE_PRODUCT_H
#define WEFT_TENSOR_CPU_DENSE_PRODUCT_H

#include "dnnl.h"

typedef struct DenseRun DenseRun;

typedef struct DenseSpec {
    /* of a dense layer */
    KernelKind kind;
    int64_t rows, in, out;
    /* forward: y = max(y, 0) */
    bool relu;
    int threads;
} DenseSpec;

/* Owner: the caller. */
DenseRun *dense_product_new(const DenseSpec *spec);
void dense_product_free(DenseRun **run);
size_t dense_product_scratch_bytes(const DenseRun *run);
/* data[role] as kernel_run has it; ROLE_B may be NULL. scratch: at a border of 64 bytes. */
void dense_product_run(const DenseRun *run, void *const data[ROLES], void *scratch);

#endif
