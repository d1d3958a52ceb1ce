/* The three matrix products of a dense layer: forward, the gradient of x, and the gradient of the
 * weight. All tensors are fp32: x [rows][in], weight [out][in], y [rows][out]. The elements of a
 * row of x and of the weight have the same order, which may be any order and may contain zero
 * padding. The result does not depend on the number of threads.
 *
 * A product is computed either by oneDNN, in parts, or by weft's kernels (simd/dense.c,
 * simd/dense_few.c). CPU_PORTABLE always uses weft's kernels. Without slices, dense_product_own
 * chooses by the number of rows; with slices, onednn_is_faster chooses by the sizes.
 *
 * With slices (SumSlices), the bits of the result do not depend on the number of ranks that divide
 * the layer. If slices_inputs is set, the sums of forward are cut into slices, else the sums of the
 * gradient of x; the slices are joined by a binary tree. In the other two directions, the order of
 * a sum's terms does not depend on how many inputs or outputs the rank has. In all three
 * directions, each DENSE_DEPTH consecutive terms are summed separately and then added to the sum of
 * the earlier terms: oneDNN and weft's kernels then give the same bits. */
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
    /* OpSpec.slices and OpSpec.slices_inputs */
    SumSlices slices;
    bool slices_inputs;
    int threads;
} DenseSpec;

/* Returns an array with slices->count * slices->parts ranges of terms. Entry i * parts + p is the
 * range of this rank's slice i in part p (SumSlices.parts), counted among the rank's k terms.
 * Owner: the caller. */
DenseRange *dense_ranges(const SumSlices *slices, int64_t k);
/* True if weft's kernels compute products of that number of rows without slices: up to DENSE_FEW
 * rows, and 16 to 255 rows on AVX2, where oneDNN reaches half of the processor's rate; with
 * CPU_PORTABLE, any number. */
bool dense_product_own(int64_t rows);
/* Owner: the caller. */
DenseRun *dense_product_new(const DenseSpec *spec);
void dense_product_free(DenseRun **run);
size_t dense_product_scratch_bytes(const DenseRun *run);
/* data[role]: pointers to the tensors, as in kernel_run. Forward writes Y. The gradient of x is
 * written to X and read from Y (dy) and W. The gradient of the weight is written to W, and the
 * gradient of the bias to B if B is not NULL. scratch: dense_product_scratch_bytes, aligned to 64
 * bytes. */
void dense_product_run(const DenseRun *run, void *const data[ROLES], void *scratch);

#endif
