/* Matrix products of a dense layer, forward and both gradients, for two cases in which oneDNN is
 * slow: few rows, and up to some hundred rows on AVX2, where oneDNN reaches half of the processor's
 * rate. All tensors are plain fp32: x [rows][in], weight [out][in], y [rows][out]. The result does
 * not depend on the number of threads. */
#ifndef WEFT_TENSOR_CPU_DENSE_PRODUCT_H
#define WEFT_TENSOR_CPU_DENSE_PRODUCT_H

#include "dnnl.h"

typedef struct DenseRun DenseRun;

typedef struct DenseSpec {
    /* KERNEL_DENSE_FORWARD, KERNEL_DENSE_DATA or KERNEL_DENSE_WEIGHT */
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
/* data[role]: pointers as in kernel_run; ROLE_B may be NULL. scratch: aligned to 64 bytes. */
void dense_product_run(const DenseRun *run, void *const data[ROLES], void *scratch);

#endif
