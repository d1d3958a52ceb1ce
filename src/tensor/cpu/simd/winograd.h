/* Arguments of Winograd's kernels (simd/winograd.c): F(4x4, 3x3) of Lavin & Gray 2016, "Fast
 * algorithms for convolutional neural networks", section 4.3, and its two gradients. With d a patch
 * of 6x6 pixels, g a kernel and e a 4x4 tile of the output's gradient:
 *
 *   y  = A^T [(G g G^T) * (B^T d B)] A          * element by element, summed over the channels
 *   dg = G^T [(A e A^T) * (B^T d B)] G          summed over the tiles
 *
 * All tensors are fp32 in blocks of L channels, the floats of a vector: 8 or 16. The 36 elements of
 * a transform are called slices, `slice` floats apart; a slice of tiles is [block][tile][L]. */
#ifndef WEFT_TENSOR_CPU_SIMD_WINOGRAD_H
#define WEFT_TENSOR_CPU_SIMD_WINOGRAD_H

#include "base.h"

/* PANEL: maximum number of blocks of output channels in one product. */
enum { WINOGRAD_SLICES = 36, WINOGRAD_PANEL = 3 };

/* Images [n][blocks][h][w][L], each cut into down x across tiles. pad: rows and columns of zeros
 * before the image in its first patch. Tiles from `tiles` on are padding and contain zeros. */
typedef struct WinogradImage {
    int64_t blocks, h, w, down, across, tiles;
    int64_t pad[2];
} WinogradImage;

/* 36 products, one per slice. Sums run over groups of L channels or tiles; the tiles of a slice are
 * padded to full groups with zeros. */
typedef struct WinogradProduct {
    const float *a, *b;
    float *out;
    /* floats from one slice to the next */
    int64_t a_slice, b_slice, out_slice;
    /* rows of out and terms of each sum; multiples of L */
    int64_t rows, k;
    /* floats from one group of terms to the next in a */
    int64_t a_group;
    /* weight: floats from one block of channels of a to the next */
    int64_t a_row;
    /* floats from one vector of columns to the next, in b (weight) and in out (forward); in b of
     * forward and in out of weight these vectors are contiguous */
    int64_t b_vector, out_vector;
    /* vectors of columns, 1 to WINOGRAD_PANEL */
    int vectors;
    /* add to out instead of overwriting it */
    bool add;
} WinogradProduct;

#endif
