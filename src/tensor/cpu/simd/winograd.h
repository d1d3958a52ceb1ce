/* What Winograd's kernels take (simd/winograd.c): F(4x4, 3x3) of Lavin & Gray 2016, "Fast
 * algorithms for convolutional neural networks", section 4.3, and its two gradients. With d a patch
 * of 6x6 pixels, g a kernel and e a 4x4 tile of the output's gradient:
 *
 *   y  = A^T [(G g G^T) * (B^T d B)] A          * element by element, summed over the channels
 *   dg = G^T [(A e A^T) * (B^T d B)] G          summed over the tiles
 *
 * All is fp32 in blocks of as many channels as a vector has floats, L: 8 or 16. The 36 elements of
 * a transform are its slices, `slice` floats apart; a slice of tiles is [block][tile][L]. */
#ifndef WEFT_TENSOR_CPU_SIMD_WINOGRAD_H
#define WEFT_TENSOR_CPU_SIMD_WINOGRAD_H

#include "base.h"

/* PANEL: the most blocks that one product writes. */
enum { WINOGRAD_SLICES = 36, WINOGRAD_PANEL = 3 };

/* Images [n][blocks][h][w][L], cut into down x across tiles each. pad: rows and columns of zeros
 * before the image in its first patch. Tiles from `tiles` on are padding: zeros. */
typedef struct WinogradImage {
    int64_t blocks, h, w, down, across, tiles;
    int64_t pad[2];
} WinogradImage;

/* 36 products of slices. Sums go by groups of L channels or tiles: a slice's tiles are padded to
 * full groups with zeros. */
typedef struct WinogradProduct {
    const float *a, *b;
    float *out;
    int64_t a_slice, b_slice, out_slice;
    /* multiples of L */
    int64_t rows, k;
    /* from a group of k to the next; forward: */
    int64_t a_group;
    /* weight: of a, a block of channels to the next */
    int64_t a_row;
    /* from a vector to the next: of b (weight) and of out (forward) */
    int64_t b_vector, out_vector;
    /* 1 to WINOGRAD_PANEL */
    int vectors;
    /* to what is in out */
    bool add;
} WinogradProduct;

#endif
