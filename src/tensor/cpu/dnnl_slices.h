/* The plan of a dense layer in bf16 whose sums are cut into slices (dense_slices.h): written by
 * dnnl_slices_plan.c, read by dnnl_slices.c. */
#ifndef WEFT_TENSOR_CPU_DNNL_SLICES_H
#define WEFT_TENSOR_CPU_DNNL_SLICES_H

#include "dense_product.h"
#include "dnnl_api.h"

/* maximum number of different sizes of slices: sizes differ by at most one unit */
enum { SLICE_WIDTHS = 2 };

/* The kernels of slices with `width` divided inputs or outputs. */
typedef struct DenseSlice {
    int64_t width;
    /* forward and data: [0]: kernels for all blocks of rows except the last; [1]: kernels for the
     * last block; data NULL: dx is not needed. weight: kernels for all rows; NULL: the layer is
     * frozen. There is one kernel for each thread, because a kernel stores the addresses of its
     * tensors; owned. */
    Kernel **forward[2], **data[2], **weight;
    /* conversions of the fp32 weight to the formats that the kernels `forward` and `data` read;
     * data_copy is NULL if both read the same format or dx is not needed; owned */
    Kernel *forward_copy, *data_copy;
    /* bytes of the converted weights; data_bytes is 0 without a data_copy */
    size_t forward_bytes, data_bytes;
} DenseSlice;

typedef struct SlicedDense {
    int64_t rows, in, out;
    /* rows of a block and number of blocks */
    int64_t each, blocks;
    /* threads; slices on this rank; ranges of columns of a slice */
    int threads, slices, ranges;
    /* the inputs are divided, not the outputs */
    bool inputs;
    /* relu: forward applies relu to y. bias: the kernels `forward` add the bias. */
    bool relu, bias;
    /* x or y is fp32, because an exchange writes x or reads y */
    bool wide;
    /* ranges of each slice: range[slice * ranges + i]; owned */
    DenseRange *range;
    /* the different sizes of slices, and their number */
    DenseSlice kind[SLICE_WIDTHS];
    int kinds;
    /* bytes, at the beginning of the workspace, for the undivided tensor that backward_weight
     * converts to bf16; 0 if that tensor is in bf16 */
    size_t converted;
    /* bytes of each part of a thread's memory (Memory in dnnl_slices.c) */
    size_t scratch, block, columns, sums;
} SlicedDense;

/* Returns the size of the dimension that is not divided. */
int64_t dense_undivided(const SlicedDense *layer);
/* Returns the kernels of a slice of this rank; borrowed. */
const DenseSlice *dense_slice(const SlicedDense *layer, int slice);
/* OpTable.free */
void dense_slices_free(Op *op);

#endif
