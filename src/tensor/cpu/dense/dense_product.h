/* The three matrix products of a dense layer: forward, the gradient of x, and the gradient of the
 * weight. All tensors are fp32: x [rows][in], weight [out][in], y [rows][out]. The elements of a
 * row of x and of a row of the weight have the same order, which may be any order and may contain
 * padding with zeros. The result does not depend on the number of threads.
 *
 * Not every fp32 layer uses these products. With slices (SumSlices) it always does. Without slices
 * product_is_faster (dense.c) chooses between these products and oneDNN's inner product.
 *
 * A product is computed either by oneDNN's matrix product or by weft's kernels (simd/dense.c,
 * simd/dense_few.c). Without slices dense_product_own chooses by the number of rows, and with
 * slices onednn_is_faster (dense_product.c) chooses by the sizes. CPU_PORTABLE always uses weft's
 * kernels: dense_product_own tests for it, and onednn_is_faster allows oneDNN only with the vectors
 * of AVX-512, which CPU_PORTABLE does not use.
 *
 * With slices, the bits of the result do not depend on the number of ranks that divide the layer.
 * If slices_inputs is set, the sums of forward are cut into slices, else the sums of the gradient
 * of x. The slices are joined by a binary tree. In the other two directions, the order of a sum's
 * terms does not depend on how many inputs or outputs the rank has. In all three directions, each
 * DENSE_DEPTH consecutive terms are summed separately and then added to the sum of the earlier
 * terms, so that oneDNN and weft's kernels give the same bits. */
#ifndef WEFT_TENSOR_CPU_DENSE_PRODUCT_H
#define WEFT_TENSOR_CPU_DENSE_PRODUCT_H

#include "../dnnl/dnnl.h"

typedef struct DenseRun DenseRun;

typedef struct DenseSpec {
    /* KERNEL_DENSE_FORWARD, KERNEL_DENSE_DATA or KERNEL_DENSE_WEIGHT */
    KernelKind kind;
    int64_t rows, in, out;
    /* true: forward applies relu to y */
    bool relu;
    /* OpSpec.slices */
    SumSlices slices;
    /* true: the sums over inputs in forward are cut into slices; false: the sums over outputs in
     * dx */
    bool slices_inputs;
    int threads;
} DenseSpec;

/* Returns the terms of this rank's slices. k: number of terms of each sum that this rank has; they
 * are numbered from 0. The terms are divided into slices->parts parts, such as queries, keys and
 * values (SumSlices.parts), and each slice has a range of each part. Entry i * slices->parts + p of
 * the result is the range of part p in this rank's slice i. Owner: the caller. */
DenseRange *dense_ranges(const SumSlices *slices, int64_t k);
/* Returns whether weft's kernels compute products of that number of rows without slices. They do
 * for up to DENSE_FEW rows, and on AVX2 for 16 to 255 rows, where oneDNN reaches half of the
 * processor's rate; with CPU_PORTABLE for any number. */
bool dense_product_own(int64_t rows);
/* Owner: the caller. */
DenseRun *dense_product_new(const DenseSpec *spec);
void dense_product_free(DenseRun **run);
size_t dense_product_scratch_bytes(const DenseRun *run);
/* Runs the direction of the spec. data[role]: pointers as in kernel_run. KERNEL_DENSE_FORWARD
 * writes Y. KERNEL_DENSE_DATA writes X (dx) from Y (dy) and W. KERNEL_DENSE_WEIGHT writes W (dw),
 * and B (db) if B is not NULL. scratch: dense_product_scratch_bytes, aligned to 64 bytes. */
void dense_product_run(const DenseRun *run, void *const data[ROLES], void *scratch);

#endif
