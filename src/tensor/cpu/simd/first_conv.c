/* Direct convolutions whose input has too few channels to fill a block. A vector has 8 output
 * channels, on every instruction set. Up to 12 vectors of sums (3 pixels, or 3 taps of dw, by 4
 * blocks) take 12 of AVX2's 16 registers; the other registers hold factors. */
#include "vector.h"

#ifdef __AVX2__
enum { LANES = FIRST_BLOCK };
typedef float V8 __attribute__((vector_size(LANES * 4)));
typedef int32_t Vi8 __attribute__((vector_size(LANES * 4)));

SIMD_INLINE V8 all_of(float value)
{
    const V8 zero = {0};
    return value + zero;
}

/* ---- forward ---- */
/* Computes FIRST_PIXELS neighbouring pixels of a row of y, for `blocks` blocks of channels. x: the
 * element of the input to which FirstConv.tap is relative for the first pixel; y: the first
 * pixel. */
SIMD_INLINE void forward_pixels(const FirstConv *f, const float *x, const float *w,
                                const float *bias, bool relu, float *y, const int blocks)
{
    const V8 zero = {0};
    V8 sum[FIRST_PIXELS][FIRST_BLOCKS];
#pragma GCC unroll 4
    for (int b = 0; b < blocks; ++b) {
        V8 start = zero;
        if (bias) VECTOR_LOAD(start, bias + b * LANES);
#pragma GCC unroll 3
        for (int i = 0; i < FIRST_PIXELS; ++i) sum[i][b] = start;
    }
    for (int64_t k = 0; k < f->taps; ++k) {
        const float *from = x + f->tap[k];
        V8 factor[FIRST_BLOCKS];
#pragma GCC unroll 4
        for (int b = 0; b < blocks; ++b) VECTOR_LOAD(factor[b], w + (b * f->taps + k) * LANES);
#pragma GCC unroll 3
        for (int i = 0; i < FIRST_PIXELS; ++i) {
            const V8 pixel = all_of(from[i * f->stride]);
#pragma GCC unroll 4
            for (int b = 0; b < blocks; ++b) sum[i][b] += pixel * factor[b];
        }
    }
#pragma GCC unroll 4
    for (int b = 0; b < blocks; ++b)
#pragma GCC unroll 3
        for (int i = 0; i < FIRST_PIXELS; ++i) {
            V8 v = sum[i][b];
            if (relu) v = (V8)((Vi8)v & ~(Vi8)(v < zero));
            VECTOR_STORE(y + b * f->y_block + i * LANES, v);
        }
}

/* Computes FIRST_PIXELS pixels at a time; the last group of pixels of a row overlaps the one before
 * it. */
SIMD_INLINE void forward_blocks(const FirstConv *f, const float *w, const float *bias, bool relu,
                                float *y, const int blocks)
{
    const int64_t last = f->columns - FIRST_PIXELS;
    for (int64_t row = 0; row < f->rows; ++row)
        for (int64_t q = 0; q < f->columns; q += FIRST_PIXELS) {
            const int64_t at = q < last ? q : last;
            forward_pixels(f, f->x + row * f->x_row + at * f->stride, w, bias, relu,
                           y + (row * f->columns + at) * LANES, blocks);
        }
}

void SIMD_FLOAT_NAME(first_forward)(const FirstConv *f, const float *w, const float *bias,
                                    bool relu, float *y)
{
    for (int64_t b = 0; b < f->blocks; b += FIRST_BLOCKS) {
        const float *from = w + b * f->taps * LANES, *shift = bias ? bias + b * LANES : NULL;
        float *to = y + b * f->y_block;
        switch (f->blocks - b) {
        case 1:
            forward_blocks(f, from, shift, relu, to, 1);
            break;
        case 2:
            forward_blocks(f, from, shift, relu, to, 2);
            break;
        case 3:
            forward_blocks(f, from, shift, relu, to, 3);
            break;
        default:
            forward_blocks(f, from, shift, relu, to, FIRST_BLOCKS);
        }
    }
}

/* ---- gradient of the weight ---- */
/* Adds to dw the sums of taps k to k + FIRST_TAPS - 1, for `blocks` blocks of channels. */
SIMD_INLINE void weight_taps(const FirstConv *f, int64_t k, const float *dy, float *dw,
                             const int blocks)
{
    V8 sum[FIRST_TAPS][FIRST_BLOCKS] = {0};
    for (int64_t row = 0; row < f->rows; ++row) {
        const float *x = f->x + row * f->x_row, *g = dy + row * f->columns * LANES;
        for (int64_t q = 0; q < f->columns; ++q, g += LANES, x += f->stride) {
            V8 factor[FIRST_BLOCKS];
#pragma GCC unroll 4
            for (int b = 0; b < blocks; ++b) VECTOR_LOAD(factor[b], g + b * f->y_block);
#pragma GCC unroll 3
            for (int i = 0; i < FIRST_TAPS; ++i) {
                const V8 pixel = all_of(x[f->tap[k + i]]);
#pragma GCC unroll 4
                for (int b = 0; b < blocks; ++b) sum[i][b] += pixel * factor[b];
            }
        }
    }
#pragma GCC unroll 4
    for (int b = 0; b < blocks; ++b)
#pragma GCC unroll 3
        for (int i = 0; i < FIRST_TAPS; ++i) {
            float *to = dw + (b * f->taps + k + i) * LANES;
            V8 v;
            if (k + i >= f->taps) continue;
            VECTOR_LOAD(v, to);
            v += sum[i][b];
            VECTOR_STORE(to, v);
        }
}

SIMD_INLINE void weight_blocks(const FirstConv *f, const float *dy, float *dw, const int blocks)
{
    for (int64_t k = 0; k < f->taps; k += FIRST_TAPS) weight_taps(f, k, dy, dw, blocks);
}

SIMD_INLINE void bias_block(const FirstConv *f, const float *dy, float *db)
{
    enum { CHAINS = 4 };
    const int64_t pixels = f->rows * f->columns;
    V8 sum[CHAINS] = {0}, v;
    int64_t i = 0;
    for (; i + CHAINS <= pixels; i += CHAINS)
        for (int c = 0; c < CHAINS; ++c) {
            VECTOR_LOAD(v, dy + (i + c) * LANES);
            sum[c] += v;
        }
    for (; i < pixels; ++i) {
        VECTOR_LOAD(v, dy + i * LANES);
        sum[0] += v;
    }
    VECTOR_LOAD(v, db);
    v += (sum[0] + sum[1]) + (sum[2] + sum[3]);
    VECTOR_STORE(db, v);
}

void SIMD_FLOAT_NAME(first_weight)(const FirstConv *f, const float *dy, float *dw, float *db)
{
    for (int64_t b = 0; b < f->blocks; b += FIRST_BLOCKS) {
        const float *from = dy + b * f->y_block;
        float *to = dw + b * f->taps * LANES;
        switch (f->blocks - b) {
        case 1:
            weight_blocks(f, from, to, 1);
            break;
        case 2:
            weight_blocks(f, from, to, 2);
            break;
        case 3:
            weight_blocks(f, from, to, 3);
            break;
        default:
            weight_blocks(f, from, to, FIRST_BLOCKS);
        }
    }
    for (int64_t b = 0; db && b < f->blocks; ++b)
        bias_block(f, dy + b * f->y_block, db + b * LANES);
}
#endif
