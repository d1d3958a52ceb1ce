/* Matrix products of a dense layer, forward and both gradients, by oneDNN's matrix product on parts
 * of the result, or by weft's kernels where oneDNN is slow: with few rows, and up to some hundred
 * rows on AVX2, where oneDNN reaches half of the processor's rate. All tensors are fp32: x
 * [rows][in], weight [out][in], y [rows][out], where `in` has any order, with padding. The result
 * does not depend on the number of threads.
 *
 * With slices, no bit depends on the number of ranks that divide the layer. Each sum of one
 * direction, forward if slices_inputs, else the gradient of x, is a tree of slices. In the other
 * two directions, the order of a sum's terms does not depend on the number of inputs or outputs
 * that the rank has. All sums are cut into chains at multiples of DENSE_DEPTH, so that oneDNN and
 * weft's kernel give the same bits. */
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
    SumSlices slices;
    bool slices_inputs;
    int threads;
} DenseSpec;

/* Returns the ranges of terms of this rank's slices, among the rank's k terms: range[slice * parts
 * + part]. Owner: the caller. */
DenseRange *dense_ranges(const SumSlices *slices, int64_t k);
/* True if weft's kernels are faster than oneDNN's for that number of rows. */
bool dense_product_own(int64_t rows);
/* Owner: the caller. */
DenseRun *dense_product_new(const DenseSpec *spec);
void dense_product_free(DenseRun **run);
size_t dense_product_scratch_bytes(const DenseRun *run);
/* data[role]: pointers as in kernel_run: forward writes Y; data writes X (dx) from Y (dy); weight
 * writes W (dw) and, unless it is NULL, B (db). scratch: aligned to 64 bytes. */
void dense_product_run(const DenseRun *run, void *const data[ROLES], void *scratch);

#endif
