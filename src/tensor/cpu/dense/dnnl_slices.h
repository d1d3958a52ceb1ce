/* The plan of a dense layer in bf16 whose sums are cut into slices (dense_slices.h): written by
 * dnnl_slices_plan.c, read by dnnl_slices.c. */
#ifndef WEFT_TENSOR_CPU_DNNL_SLICES_H
#define WEFT_TENSOR_CPU_DNNL_SLICES_H

#include "dense_product.h"
#include "../dnnl/dnnl_api.h"

/* maximum number of different widths of slices: widths differ by at most one unit */
enum { SLICE_WIDTHS = 2 };

/* The kernels of slices with `width` divided inputs or outputs. */
typedef struct DenseSlice {
    int64_t width;
    /* Kernels of forward: [0]: for all blocks of rows except the last; [1]: for the last block.
     * There is one kernel for each thread, because a kernel stores the addresses of its tensors.
     * Owned. */
    Kernel **forward[2];
    /* the same kernels for the gradient of x; NULL: dx is not needed */
    Kernel **data[2];
    /* kernels of the weight's gradient for all rows, one for each thread; owned; NULL: the layer is
     * frozen */
    Kernel **weight;
    /* conversion of the fp32 weight to the format that the kernels `forward` read; owned */
    Kernel *forward_copy;
    /* conversion of the fp32 weight to the format that the kernels `data` read; owned; NULL: they
     * read the same format as `forward`, or dx is not needed */
    Kernel *data_copy;
    /* bytes of the weight that forward_copy writes */
    size_t forward_bytes;
    /* bytes of the weight that data_copy writes; 0 without it */
    size_t data_bytes;
} DenseSlice;

typedef struct SlicedDense {
    int64_t rows, in, out;
    /* rows of a block */
    int64_t each;
    /* number of blocks */
    int64_t blocks;
    int threads;
    /* number of slices on this rank */
    int slices;
    /* number of ranges of columns of a slice */
    int ranges;
    /* true: the inputs are divided; false: the outputs are */
    bool inputs;
    /* true: forward applies relu to y */
    bool relu;
    /* true: the kernels `forward` add the bias */
    bool bias;
    /* true: the undivided tensor is fp32, because an exchange writes or reads it: y if the inputs
     * are divided, else x */
    bool wide;
    /* range i of a slice is range[slice * ranges + i]; owned */
    DenseRange *range;
    /* kernels of each width of slices, [kinds] */
    DenseSlice kind[SLICE_WIDTHS];
    /* number of different widths */
    int kinds;
    /* bytes, at the beginning of the workspace, for the undivided tensor that backward_weight
     * converts to bf16; 0 if that tensor is in bf16 */
    size_t converted;
    /* bytes of the parts of a thread's memory that Memory in dnnl_slices.c names */
    size_t scratch, block, columns, sums;
} SlicedDense;

/* Returns the size of the undivided dimension: the number of outputs or of inputs. */
int64_t dense_undivided(const SlicedDense *layer);
/* Returns the kernels of a slice of this rank; borrowed. */
const DenseSlice *dense_slice(const SlicedDense *layer, int slice);
/* Frees op->impl, a SlicedDense, as OpTable.free does. */
void dense_slices_free(Op *op);

#endif
