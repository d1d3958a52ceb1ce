/* The vector kernels' header: a const table of functions per instruction set and per type of
 * activations. Each .c file of this folder is compiled once per instruction set (SIMD_ISA is base,
 * avx2 or avx512) for fp32. Files whose kernels also work on bf16 are compiled once more for avx512
 * (SIMD_BF16); those of them that pools of narrow planes need are also compiled for avx2. The first
 * call of simd_table or simd_table_narrow chooses the tables of the set cpu_used(), unless simd_use
 * has chosen before.
 *
 * Pointers to void are activations or their gradients, of the table's type; all other types are as
 * written. Kernels compute in fp32 and round once, when an element is stored (in bf16, attention
 * also rounds factors of its products); the rounding is the same on every instruction set. They are
 * serial: callers divide the work. In batch_norm_*, mean_rows and spread_rows, a "row" is `lanes`
 * neighbouring elements of a plane. If a block has fewer than 16 channels and their number divides
 * 16, the callers of batch_norm_* pass its plane as rows of 16 lanes, with repeated coefficients.
 * Kernels allocate nothing; pointers need only the alignment of their elements. */
#ifndef WEFT_TENSOR_SIMD_H
#define WEFT_TENSOR_SIMD_H

#include "tensor.h"
#include "conv_weight.h"
#include "dense.h"
#include "depthwise.h"
#include "first_conv.h"
#include "winograd.h"

/* lanes that kernels process at a time: whole vectors on every instruction set */
enum { SIMD_LANES = 16 };

/* y = act((x - mean) * scale + shift (+ residual)) for `rows` contiguous rows. With ACT_SILU,
 * residual and keep are not used. keep: one bit per element, set if act did not clip it, so that
 * backward need not read y; 16 lanes per word, each row starting a new word; NULL if not wanted. */
typedef struct BatchNormApply {
    /* x; residual, NULL if none */
    const void *x, *residual;
    /* coefficients by lane */
    const float *mean, *scale, *shift;
    void *y;
    uint16_t *keep;
    int64_t rows;
    int lanes;
    Act act;
} BatchNormApply;

/* Adds sum(dy) and sum(dy * (x - mean)) over contiguous rows to doubles by lane. With keep, only
 * elements of dy whose bit is set count, and with `store` the others are also set to 0 in memory.
 * If scale is not NULL, dy is first multiplied by silu'((x - mean) * scale + shift), in memory,
 * too; keep and store are then not used. */
typedef struct BatchNormSums {
    const void *x;
    /* coefficients by lane; scale and shift of silu's input, NULL: no silu */
    const float *mean, *scale, *shift;
    void *dy;
    const uint16_t *keep;
    double *sum, *sum_x;
    int64_t rows;
    int lanes;
    bool store;
} BatchNormSums;

/* dx = by_dy * dy + by_x * (x - mean) + shift over contiguous rows. If keep is not NULL, elements
 * of dy whose bit is 0 count as 0. dx may be dy. */
typedef struct BatchNormGrad {
    const void *x, *dy;
    /* coefficients by lane */
    const float *mean, *by_dy, *by_x, *shift;
    const uint16_t *keep;
    void *dx;
    int64_t rows;
    int lanes;
} BatchNormGrad;

/* One row of `width` elements of layer_norm or rms_norm. rms_norm has no shift, and its mean is 0.
 * dx may be dy. */
typedef struct LayerNormRow {
    const void *x, *dy;
    const float *scale, *shift;
    void *y, *dx;
    int64_t width;
    /* eps is an input. forward writes mean and inverse, which the other calls read. inverse is 1 /
     * sqrt(v + eps); v is the variance, or in rms_norm the mean square. */
    float eps, mean, inverse;
} LayerNormRow;

/* Pooling of one plane: h x w pixels of `lanes` elements each to p x q pixels. The windows that
 * contain input row i are row_low[i] .. row_high[i]; col_low and col_high are the same for
 * columns. */
typedef struct PoolPlane {
    int h, w, p, q, lanes;
    int kernel[2], stride[2], pad[2];
    /* max_pool: relu is applied to the maxima */
    bool relu;
    /* borrowed from the op */
    const int *row_low, *row_high, *col_low, *col_high;
} PoolPlane;

/* The sums of one dimension of resampling: place i of the result is the sum of weight[k] times
 * place place[k] of the source, for k from first[i] to first[i + 1] - 1. A sum has at least one
 * term; the places of its first term and of its last term ascend with i. */
typedef struct ResampleTaps {
    const int *first, *place;
    const float *weight;
} ResampleTaps;
/* Resampling of one plane. The terms of one column of the result are within RESAMPLE_SPAN
 * neighbouring pixels of a row. */
typedef struct ResamplePlane {
    ResampleTaps rows, columns;
    /* columns of the source and of the result; elements of a pixel */
    int from, to, lanes;
} ResamplePlane;
/* floats of resample_row's buffer of sums over rows; pixels of SIMD_LANES lanes that fit it */
enum { RESAMPLE_FLOATS = 4096, RESAMPLE_SPAN = RESAMPLE_FLOATS / SIMD_LANES };

/* Statistics of a row of logits: log of the sum of their exponentials, their sum, the label's
 * logit, and the index of the largest. label_rank: number of logits that are larger than the
 * label's, or equal to it with a lower index. */
typedef struct SoftmaxRow {
    float lse, sum, label_logit;
    int label_rank, argmax;
} SoftmaxRow;

/* dx = scale * (exp(x - lse) - base). At index `label`, `hit` is subtracted, if label is not -1; at
 * index `other`, `hit_other` is subtracted. Both indices may be equal; `other` is a valid index
 * even if hit_other is 0. dx may be x. */
typedef struct SoftmaxGrad {
    const void *x;
    void *dx;
    int64_t n;
    int label, other;
    float lse, scale, base, hit, hit_other;
} SoftmaxGrad;

/* numbers in a piece of a sample; the last piece may have fewer */
enum { POINT_PIECE = 2048 };
/* At most POINT_PIECE numbers. A target that is NaN is missing. size: delta or eps of the loss. */
typedef struct PointArgs {
    PointLoss loss;
    float size;
    const void *x;
    const float *target;
    /* weights of the targets; NULL: all 1 */
    const float *weight;
    int64_t n;
} PointArgs;
/* Sums of weight * loss and of the weights, over the targets that are not missing. */
typedef struct PointSum {
    float loss, weight;
} PointSum;

/* maximum number of pixels in a piece of a sample */
enum { PIXEL_PIECE = 512 };
/* Neighbouring pixels of one sample: logits of class c begin at element c * stride of x. A pixel's
 * label is a class, or -1 if it has none. */
typedef struct PixelArgs {
    const void *x;
    const int32_t *label;
    /* weight of each class; NULL: all 1 */
    const float *weight;
    int64_t stride;
    /* number of pixels, at most PIXEL_PIECE */
    int64_t n;
    int classes;
} PixelArgs;
/* Log of the sum of exponentials of each pixel, logit of its label (0 if it has none), sum of
 * weight * logit, number of logits above the label's as in SoftmaxRow, and index of the largest
 * logit. */
typedef struct PixelStats {
    float lse[PIXEL_PIECE], label_logit[PIXEL_PIECE], sum[PIXEL_PIECE], label_rank[PIXEL_PIECE],
        best[PIXEL_PIECE];
} PixelStats;
/* dx = factor * exp(x - lse) - weight * base, minus hit where the class is the label. */
typedef struct PixelGrad {
    const float *lse;
    float factor[PIXEL_PIECE], base[PIXEL_PIECE], hit[PIXEL_PIECE];
} PixelGrad;
/* Sums of one class, with p = exp(x - lse): sum of p over the pixels whose label is the class; sum
 * of p over all pixels that have a label; number of pixels whose label is the class. */
typedef struct RegionSums {
    float inside, all, labelled;
} RegionSums;
/* dx = scale * p * (s - sum over classes of p * s), where p = exp(x - lse) and s is all[class],
 * plus inside[class] for the class of the label. Pixels without a label get 0. */
typedef struct RegionGrad {
    const float *lse, *all, *inside;
    float scale;
} RegionGrad;

/* One query head of attention. Rows of q, k, v and dq are `stride` elements apart, those of dk and
 * dv `key_stride`, those of y and dy `y_stride`. In backward `group` query heads share these keys
 * and values: the next head's q, dq, y and dy are `width` elements further on, its lse `length`
 * floats. */
typedef struct AttentionHead {
    const void *q, *k, *v, *dy;
    void *y, *dq, *dk, *dv;
    /* log of the sum of exponentials of each query's scores, float[length] */
    float *lse;
    /* cosines and sines of the positions' angles, times a factor, float[length][width / 2]; NULL:
     * no rotation */
    const float *cosine, *sine;
    int64_t stride, key_stride, y_stride, length, width, group;
    /* A query attends to `window` keys: its own key and those before it. 0: to all keys up to its
     * own. */
    int64_t window;
    /* a query attends to all keys */
    bool full;
    /* factor on the scores */
    float scale;
} AttentionHead;
/* queries per tile, and keys per tile */
enum { ATTENTION_TILE = 64 };

/* A part of the output of a MatrixProduct: rows and columns are multiples of MATRIX_PAD, columns at
 * most MATRIX_TILE_COLUMNS. */
typedef struct MatrixTile {
    int64_t row, column, rows, columns;
} MatrixTile;
enum { MATRIX_TILE_ROWS = 128, MATRIX_TILE_COLUMNS = 64 };

/* Floats of scratch for one call of an attention kernel: tiles, and for bf16 also the packed
 * factors of products and fp32 sums of one head's dk and dv. */
static inline int64_t attention_scratch(int64_t length, int64_t width, DType type)
{
    const int64_t wide = (width + SIMD_LANES - 1) / SIMD_LANES * SIMD_LANES;
    const int64_t rows = (length + ATTENTION_TILE - 1) / ATTENTION_TILE * ATTENTION_TILE;
    const int64_t scores = ATTENTION_TILE * (2 * ATTENTION_TILE + 4), tile = ATTENTION_TILE * wide;
    if (type == DTYPE_F32) return 8 * tile + scores;
    return 13 * tile / 2 + scores + ATTENTION_TILE * ATTENTION_TILE + 2 * rows * wide;
}

typedef struct SimdTable {
    const char *name;
    /* Adds sum(x) and sum(x*x) over contiguous rows to doubles by lane. Accurate for any mean: the
     * differences of at most 128 rows from the first of them are summed in float, and these sums
     * are converted to sums of x and of x*x in double. */
    void (*batch_norm_stats)(const void *x, int64_t rows, int lanes, double *sum, double *square);
    void (*batch_norm_apply)(const BatchNormApply *a);
    void (*batch_norm_sums)(const BatchNormSums *a);
    void (*batch_norm_grad)(const BatchNormGrad *a);

    void (*layer_norm_forward)(LayerNormRow *a);
    void (*layer_norm_grad)(const LayerNormRow *a);
    /* adds to dscale and dshift */
    void (*layer_norm_sums)(const LayerNormRow *a, float *dscale, float *dshift);
    void (*rms_norm_forward)(LayerNormRow *a);
    void (*rms_norm_grad)(const LayerNormRow *a);
    /* adds to dscale */
    void (*rms_norm_sums)(const LayerNormRow *a, float *dscale, float *ignored);

    /* Elementwise; outputs may share an input's memory. factor: OpSpec.act_factor. act_grad reads y
     * with ACT_FROM_Y, else x. */
    void (*act)(Act act, float factor, void *y, const void *x, int64_t n);
    void (*act_grad)(Act act, float factor, void *dx, const void *dy, const void *x_or_y,
                     int64_t n);
    /* One row: x and dx are n elements of the gate, then n of the value. No memory is shared. */
    void (*swiglu)(void *y, const void *x, int64_t n);
    void (*swiglu_grad)(void *dx, const void *dy, const void *x, int64_t n);
    /* act: none, relu or relu6 */
    void (*add_act)(Act act, void *y, const void *a, const void *b, int64_t n);
    /* y = x * by; y = x + more; sum += x */
    void (*mul)(void *y, const void *x, const float *by, int64_t n);
    void (*add_floats)(void *y, const void *x, const float *more, int64_t n);
    void (*add_into)(float *sum, const void *x, int64_t n);
    /* conversions; no memory is shared */
    void (*from_floats)(void *y, const float *x, int64_t n);
    void (*to_floats)(float *y, const void *x, int64_t n);
    /* out[i * stride] = keep ? scale : 0 for elements first + i. An element is kept if its 24
     * random bits are >= threshold. */
    void (*dropout)(RngKey key, uint64_t first, int count, uint32_t threshold, float scale,
                    float *out, int stride);

    /* index: one byte per element of y, the position of the maximum in the kernel, or POOL_CUT */
    void (*max_pool)(const PoolPlane *p, const void *x, void *y, uint8_t *index);
    void (*max_pool_grad)(const PoolPlane *p, const void *dy, const uint8_t *index, void *dx);
    void (*avg_pool)(const PoolPlane *p, const void *x, void *y);
    void (*avg_pool_grad)(const PoolPlane *p, const void *dy, void *dx);
    /* mean of each lane over the rows */
    void (*mean_rows)(const void *x, int64_t rows, int lanes, void *mean);
    /* dx = dy / rows for each row */
    void (*spread_rows)(void *dx, const void *dy, int64_t rows, int lanes);

    /* Computes one row of the result from the source's plane. */
    void (*resample_row)(const ResamplePlane *p, int row, const void *plane, void *to);

    /* x may be a slice of a row of logits: label is then relative to the slice and may be negative,
     * or n or more, but x[label] must be readable. */
    SoftmaxRow (*softmax)(const void *x, int64_t n, int label);
    /* Returns the number of logits above the label's. If x is a slice, label may be out of range as
     * in softmax, and x[label] is not read. */
    int (*softmax_label_rank)(const void *x, int64_t n, int label, float label_logit);
    void (*softmax_grad)(const SoftmaxGrad *a);
    /* Computes y and lse of one tile of queries. */
    void (*attention_forward)(const AttentionHead *h, int64_t tile, float *scratch);
    /* attention_grad computes dq, dk and dv of a whole group; attention_grad_queries only dq of one
     * tile of queries of one head; attention_grad_keys only dk and dv of one tile of keys. One call
     * of attention_grad gives the same bits as calls of the other two for all tiles. */
    void (*attention_grad)(const AttentionHead *h, float *scratch);
    void (*attention_grad_queries)(const AttentionHead *h, int64_t tile, float *scratch);
    void (*attention_grad_keys)(const AttentionHead *h, int64_t tile, float *scratch);

    void (*pixel_softmax)(const PixelArgs *a, PixelStats *s);
    void (*pixel_grad)(const PixelArgs *a, const PixelGrad *g, void *dx);
    /* writes sums[classes] */
    void (*region_sums)(const PixelArgs *a, const float *lse, RegionSums *sums);
    void (*region_grad)(const PixelArgs *a, const RegionGrad *g, void *dx);
    PointSum (*point_loss)(const PointArgs *a);
    /* dx = scale * weight * slope of the loss at x - target; 0 where the target is missing */
    void (*point_grad)(const PointArgs *a, float scale, void *dx);

    /* Functions on fp32, the same in the tables of all types. scale_add, sgd, adam, adam_direction
     * and average compute what FlatTable's slots with these names do, but ignore the fields `now`
     * and `average` of their arguments. squares returns the sum of squares of one chunk. */
    void (*scale_add)(float *y, float alpha, const float *x, float beta, int64_t n);
    double (*squares)(const float *x, int64_t n);
    /* returns the exact sum of squares of at most FLAT_CHUNK elements */
    SquareSum (*exact_squares)(const float *x, int64_t n);
    /* returns true if an element is infinite or NaN */
    bool (*not_finite)(const float *x, int64_t n);
    /* returns the same as not_finite, and copies x to `to` with non-temporal stores */
    bool (*copy)(float *to, const float *x, int64_t n);
    void (*sgd)(const SgdArgs *a, float *w, const float *g, float *m, int64_t n);
    void (*adam)(const AdamArgs *a, float *w, const float *g, float *m, float *v, int64_t n);
    void (*adam_direction)(const AdamArgs *a, float *u, const float *w, const float *g, float *m,
                           float *v, int64_t n);
    void (*average)(float *to, float rate, const float *w, int64_t n);
    void (*matrix_tile)(const MatrixProduct *p, const MatrixTile *tile);

    /* L, the channels per block of the Winograd, conv_weight and depthwise kernels below: the
     * floats of a vector. 0, and NULL slots, without AVX2. */
    int conv_lanes;
    /* Transforms of `count` tiles, from tile `first` on, of one block of channels. winograd_input
     * transforms patches of x to v, winograd_gradient tiles of dy to z, and winograd_output
     * products m to tiles of y, with bias (NULL: none) and relu. slice: floats from one of the 36
     * slices of v, z or m to the next (winograd.h). */
    void (*winograd_input)(const WinogradImage *im, int64_t block, int64_t first, int64_t count,
                           const float *x, float *v, int64_t slice);
    void (*winograd_gradient)(const WinogradImage *im, int64_t block, int64_t first, int64_t count,
                              const float *dy, float *z, int64_t slice);
    void (*winograd_output)(const WinogradImage *im, int64_t block, int64_t first, int64_t count,
                            const float *m, int64_t slice, float *y, const float *bias, bool relu);
    /* winograd_kernel transforms one block [3][3][L of c][L of o] of a weight; rows of u are `row`
     * floats apart. `rotated`: the kernel is rotated by 180 degrees, and rows are o instead of c.
     * winograd_taps transforms products d to such a block of dw, and adds them to it if `add` is
     * true. */
    void (*winograd_kernel)(const float *w, bool rotated, float *u, int64_t slice, int64_t row);
    void (*winograd_taps)(const float *d, int64_t slice, int64_t row, float *dw, bool add);
    /* forward: out[tile][o] = sum over c of a[tile][c] b[c][o], for p->rows tiles. weight:
     * out[c][o] = sum over tiles of a[tile][c] b[tile][o], for p->rows channels c. */
    void (*winograd_forward)(const WinogradProduct *p);
    void (*winograd_weight)(const WinogradProduct *p);

    /* Computes one tap of dw of a direct convolution. */
    void (*conv_weight)(const ConvWeight *a);

    /* NULL without AVX2. Blocks of output channels have FIRST_BLOCK channels on every instruction
     * set. first_forward computes y with bias (NULL: none) and relu. first_weight adds to dw, and
     * to db if db is not NULL. */
    void (*first_forward)(const FirstConv *f, const float *w, const float *bias, bool relu,
                          float *y);
    void (*first_weight)(const FirstConv *f, const float *dy, float *dw, float *db);
    /* NULL without AVX2. One plane of one block as wide as this instruction set's vectors; dw and
     * db are overwritten. */
    void (*depthwise_forward)(const DepthwisePlane *a, const float *x, const float *w,
                              const float *bias, bool relu, float *y);
    void (*depthwise_data)(const DepthwisePlane *a, const float *dy, const float *w, float *dx);
    void (*depthwise_weight)(const DepthwisePlane *a, const float *x, const float *dy, float *dw,
                             float *db);
    /* Compute one part of out. dense_product's scratch, aligned to 64 bytes, has DENSE_SCRATCH
     * floats; with slices it has DENSE_ROWS_ROOM floats, DENSE_LEVEL floats for each level of the
     * tree of slices, and p->k floats for each of dense_slice_columns(p->k) columns. dense_few is
     * for products without slices whose out has at most DENSE_FEW rows or whose sums have at most
     * DENSE_FEW terms. */
    void (*dense_product)(const DenseProduct *p, const DensePart *part, float *scratch);
    void (*dense_few)(const DenseProduct *p, const DensePart *part);
    /* Writes sum[c], the sum of column c over the rows of x, for c from column to end - 1. Rows are
     * `row` floats apart. */
    void (*dense_columns)(const float *x, int64_t rows, int64_t row, int64_t column, int64_t end,
                          float *sum);
} SimdTable;

/* Returns the table in use for activations of this type: the table of cpu_used(), unless simd_use
 * chose another. NULL for bf16 on CPUs on which weft does not support bf16. */
const SimdTable *simd_table(DType type);
/* Returns the table with vectors of at most 8 floats, for planes too narrow for wider vectors. Only
 * for pools: they give the same bits with any width, and in the table for bf16 most other slots are
 * NULL. */
const SimdTable *simd_table_narrow(DType type);
/* Chooses the tables of an instruction set ("base", "avx2", "avx512"). Returns false if it is not
 * built in or this CPU cannot run it. For tests and benchmarks that compare several sets in one
 * process; not while kernels run. */
bool simd_use(const char *name);

#endif
