/* Arguments of the kernels for Winograd's algorithm (simd/winograd.c): F(4x4, 3x3) of Lavin & Gray
 * 2016, "Fast algorithms for convolutional neural networks", section 4.3, and its two gradients.
 * With d a patch of 6x6 pixels, g a kernel and e a 4x4 tile of the output's gradient:
 *
 *   y  = A^T [(G g G^T) * (B^T d B)] A          * element by element, summed over the channels
 *   dg = G^T [(A e A^T) * (B^T d B)] G          summed over the tiles
 *
 * All tensors are fp32 in blocks of L channels; L is the number of floats in a vector, 8 or 16. The
 * 36 elements of a transform are called slices. Slice i of all tiles is one array,
 * [block][tile][L]; the arrays of the slices begin `slice` floats apart. */
#ifndef WEFT_TENSOR_CPU_SIMD_WINOGRAD_H
#define WEFT_TENSOR_CPU_SIMD_WINOGRAD_H

#include "base.h"

/* WINOGRAD_PANEL: maximum number of blocks of output channels in one product */
enum { WINOGRAD_SLICES = 36, WINOGRAD_PANEL = 3 };

/* Images [n][blocks][h][w][L]. Each image is cut into down x across tiles. */
typedef struct WinogradImage {
    int64_t blocks, h, w, down, across;
    /* number of tiles of all images; later tiles are padding, and contain zeros */
    int64_t tiles;
    /* padding: number of rows of zeros above an image, and of columns of zeros to its left */
    int64_t pad[2];
} WinogradImage;

/* The 36 products of two transforms, one for each slice. Sums run over groups of L terms: channels
 * in winograd_forward, tiles in winograd_weight. The tiles of a slice are padded with zeros to
 * complete groups. */
typedef struct WinogradProduct {
    const float *a, *b;
    float *out;
    /* floats from one slice to the next */
    int64_t a_slice, b_slice, out_slice;
    /* number of rows of out, a multiple of L */
    int64_t rows;
    /* number of terms of each sum, a multiple of L */
    int64_t k;
    /* floats in a from one group of L terms to the next */
    int64_t a_group;
    /* winograd_weight: floats in a from one block of channels to the next */
    int64_t a_row;
    /* winograd_weight: floats in b from one vector of columns to the next; in winograd_forward
     * these vectors are contiguous */
    int64_t b_vector;
    /* winograd_forward: floats in out from one vector of columns to the next; in winograd_weight
     * these vectors are contiguous */
    int64_t out_vector;
    /* number of vectors of columns, 1 to WINOGRAD_PANEL */
    int vectors;
    /* true: the products are added to out; false: out is overwritten */
    bool add;
} WinogradProduct;

#endif
