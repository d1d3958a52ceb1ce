/* What Winograd's kernels take (simd/winograd.c): F(4x4, 3x3) of Lavin & Gray 2016, "Fast
 * algorithms for convolutional neural networks", section 4.3, and its two gradients. With d a patch
 * of 6x6 pixels, g a kernel and e a 4x4 tile of the output's gradient:
 *
 *   y  = A^T [(G g G^T) * (B^T d B)] A          * element by element, summed over the channels
 *   dg = G^T [(A e A^T) * (B^T d B)] G          summed over the tiles
 *
 * All is fp32 in blocks of 8 channels. The 36 elements of a transform are its slices, `slice`
 * floats apart; a slice of tiles is [block][tile][8]. */
#ifndef WEFT_TENSOR_CPU_SIMD_WINOGRAD_H
#define WEFT_TENSOR_CPU_SIMD_WINOGRAD_H

#include "base.h"

/* PANEL: the most blocks that one product writes; GROUP: what sums go by, and rows of a slice are
 * padded to with zeros. */
enum { WINOGRAD_BLOCK = 8, WINOGRAD_SLICES = 36, WINOGRAD_PANEL = 3, WINOGRAD_GROUP = 8 };

/* Images [n][blocks][h][w][8], cut into down x across tiles each. pad: rows and columns of zeros
 * before the image in its first patch. Tiles from `tiles` on are padding: zeros. */
typedef struct WinogradImage {
    int64_t blocks, h, w, down, across, tiles;
    int64_t pad[2];
} WinogradImage;

/* 36 products of a group's slices. */
typedef struct WinogradProduct {
    const float *a, *b;
    float *out;
    int64_t a_slice, b_slice, out_slice;
    /* multiples of ROWS (4) and of WINOGRAD_GROUP */
    int64_t rows, k;
    /* from a group of k to the next; forward: */
    int64_t a_group;
    /* weight: of a, a block of channels to the next */
    int64_t a_row;
    /* from a vector of 8 to the next: of b (weight) and of out (forward) */
    int64_t b_vector, out_vector;
    /* 1 to WINOGRAD_PANEL */
    int vectors;
    /* to what is in out */
    bool add;
} WinogradProduct;

#endif
