/* The header of the vector kernels. A SimdTable has the functions of one instruction set for one
 * type of activations. Each .c file of this folder is compiled once per instruction set (SIMD_ISA
 * is base, avx2 or avx512) for fp32. Files whose kernels also work on bf16 are compiled again with
 * SIMD_BF16: all of them for avx512, and for avx2 those that pools of narrow planes need. The first
 * call of simd_table or simd_table_narrow chooses the tables of the set cpu_used(), unless simd_use
 * has chosen tables before.
 *
 * A void pointer points to activations or to gradients of activations, of the table's type. Kernels
 * compute in fp32 and round an element once, when they store it (in bf16, attention also rounds the
 * factors of its products). The rounding is the same on every instruction set. A kernel runs on the
 * calling thread alone; callers divide the work. Kernels allocate nothing. Pointers need only the
 * alignment of their elements.
 *
 * A plane is one block of channels of one sample (cpu/view.h). Each of its pixels has `lanes`
 * channels, which are neighbours in memory. A plane with one lane is called plain. The elements of
 * a vector are also called lanes: in a plane with many lanes, a vector holds lanes of one pixel.
 *
 * In batch_norm_*, mean_rows and spread_rows, a row is `lanes` neighbouring elements of a plane:
 * usually the lanes of one pixel. If the number of lanes is below 16 and divides 16, the callers of
 * batch_norm_* pass several pixels as one row of 16 lanes, and repeat the coefficients. */
#ifndef WEFT_TENSOR_SIMD_H
#define WEFT_TENSOR_SIMD_H

#include "tensor.h"
#include "conv_weight.h"
#include "dense.h"
#include "depthwise.h"
#include "first_conv.h"
#include "winograd.h"

/* elements that kernels process at a time: one or several whole vectors on every instruction set */
enum { SIMD_LANES = 16 };

/* Arguments of batch_norm_apply: y = act((x - mean) * scale + shift (+ residual)) for `rows`
 * contiguous rows. With ACT_SILU, residual and keep are not used. */
typedef struct BatchNormApply {
    const void *x;
    /* NULL: no residual */
    const void *residual;
    /* coefficients, [lanes] */
    const float *mean, *scale, *shift;
    void *y;
    /* Output: one bit per element, 1 where act did not clip the element, so that backward need not
     * read y. A word has the bits of up to 16 lanes of one row; each row begins a new word. NULL:
     * the bits are not needed. */
    uint16_t *keep;
    int64_t rows;
    int lanes;
    /* ACT_NONE, ACT_RELU, ACT_RELU6 or ACT_SILU */
    Act act;
} BatchNormApply;

/* Arguments of batch_norm_sums, which adds sum(dy) and sum(dy * (x - mean)) over contiguous rows to
 * `sum` and `sum_x`. */
typedef struct BatchNormSums {
    const void *x;
    /* coefficients, [lanes] */
    const float *mean;
    /* Coefficients of silu's input (x - mean) * scale + shift, [lanes]. With silu, dy is first
     * multiplied by silu's slope at this input, also in memory, and keep and store are not used.
     * NULL: no silu. */
    const float *scale, *shift;
    void *dy;
    /* bits of BatchNormApply.keep: elements of dy whose bit is 0 count as 0. NULL: all elements
     * count. */
    const uint16_t *keep;
    /* the sums, [lanes] */
    double *sum, *sum_x;
    int64_t rows;
    int lanes;
    /* true: elements of dy whose bit is 0 are also set to 0 in memory; used only with keep */
    bool store;
} BatchNormSums;

/* Arguments of batch_norm_grad: dx = by_dy * dy + by_x * (x - mean) + shift for `rows` contiguous
 * rows. dx may be dy. */
typedef struct BatchNormGrad {
    const void *x, *dy;
    /* coefficients, [lanes] */
    const float *mean, *by_dy, *by_x, *shift;
    /* bits of BatchNormApply.keep: elements of dy whose bit is 0 count as 0. NULL: all elements
     * count. */
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
    /* `eps` is an input. The forward kernels write `mean` and `inverse`; the other kernels read
     * them. inverse is 1 / sqrt(v + eps), where v is the variance, or in rms_norm the mean
     * square. */
    float eps, mean, inverse;
} LayerNormRow;

/* Pooling of one plane: from h x w pixels to out_rows x out_columns pixels, of `lanes` elements
 * each. Each pixel of the result is computed from one window of kernel[0] x kernel[1] pixels. */
typedef struct PoolPlane {
    int h, w, out_rows, out_columns, lanes;
    /* sizes along rows [0] and along columns [1] */
    int kernel[2], stride[2], pad[2];
    /* true: max_pool applies relu to the maxima; not used by the other kernels */
    bool relu;
    /* The windows that contain a pixel of row i are those of the rows row_low[i] .. row_high[i] of
     * the result; none if row_low[i] > row_high[i]. Borrowed from the op. */
    const int *row_low, *row_high;
    /* the same for a pixel of column j, by columns of the result; borrowed from the op */
    const int *col_low, *col_high;
} PoolPlane;

/* The sums of one dimension of resampling. A place is a row or a column. Place i of the result is
 * the sum of weight[k] times place `place[k]` of the source, for k from first[i] to first[i + 1] -
 * 1. Each sum has at least one term. The place of a sum's first term does not decrease from one i
 * to the next, nor does the place of its last term. */
typedef struct ResampleTaps {
    const int *first, *place;
    const float *weight;
} ResampleTaps;
/* Resampling of one plane. All terms of a column of the result are among RESAMPLE_SPAN neighbouring
 * pixels of a row of the source. */
typedef struct ResamplePlane {
    ResampleTaps rows, columns;
    /* number of columns of the source */
    int source_columns;
    /* number of columns of the result */
    int result_columns;
    /* elements of a pixel */
    int lanes;
} ResamplePlane;
enum {
    /* floats of resample_row's buffer of sums over rows */
    RESAMPLE_FLOATS = 4096,
    /* number of pixels with SIMD_LANES lanes that this buffer can hold */
    RESAMPLE_SPAN = RESAMPLE_FLOATS / SIMD_LANES
};

/* Statistics of a row of logits. */
typedef struct SoftmaxRow {
    /* logarithm of the sum of the logits' exponentials */
    float lse;
    /* sum of the logits */
    float sum;
    float label_logit;
    /* number of logits that rank above the label's: larger ones, and equal ones of a lower index */
    int label_rank;
    /* index of the largest logit */
    int argmax;
} SoftmaxRow;

/* Arguments of softmax_grad: dx = scale * (exp(x - lse) - base) for n logits. From the element at
 * index `label`, hit is subtracted, unless label is -1. From the element at index `other`,
 * hit_other is subtracted. The two indices may be equal. `other` must be a valid index even if
 * hit_other is 0. dx may be x. */
typedef struct SoftmaxGrad {
    const void *x;
    void *dx;
    int64_t n;
    int label, other;
    float lse, scale, base, hit, hit_other;
} SoftmaxGrad;

/* maximum number of values in one call of point_loss or point_grad */
enum { POINT_PIECE = 2048 };
/* Neighbouring values of one sample. A target that is NaN is missing. */
typedef struct PointArgs {
    PointLoss loss;
    /* delta of POINT_HUBER, eps of POINT_CHARBONNIER; not used by the other losses */
    float parameter;
    const void *x;
    const float *target;
    /* weights of the targets; NULL: all 1 */
    const float *weight;
    /* number of values, at most POINT_PIECE */
    int64_t n;
} PointArgs;
/* Sums over the targets that are not missing. */
typedef struct PointSum {
    /* sum of weight * loss */
    float loss;
    /* sum of the weights */
    float weight;
} PointSum;

/* maximum number of pixels in a piece of a sample */
enum { PIXEL_PIECE = 512 };
/* Neighbouring pixels of one sample. The logits of class c begin at element c * stride of x. The
 * label of a pixel is a class, or -1 if the pixel has none. */
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
/* Statistics of each pixel's logits. label_rank and argmax are whole numbers. */
typedef struct PixelStats {
    /* logarithm of the sum of the logits' exponentials */
    float lse[PIXEL_PIECE];
    /* logit of the label; 0 if the pixel has no label */
    float label_logit[PIXEL_PIECE];
    /* sum over the classes of weight * logit */
    float sum[PIXEL_PIECE];
    /* number of logits that rank above the label's, as in SoftmaxRow */
    float label_rank[PIXEL_PIECE];
    /* class of the largest logit */
    float argmax[PIXEL_PIECE];
} PixelStats;
/* Arguments of pixel_grad, one number for each pixel: dx of class c is factor * exp(x - lse) -
 * weight[c] * base, minus hit if c is the pixel's label. */
typedef struct PixelGrad {
    const float *lse;
    float factor[PIXEL_PIECE], base[PIXEL_PIECE], hit[PIXEL_PIECE];
} PixelGrad;
/* Sums of one class over the pixels of a piece. p = exp(x - lse) is the probability of the class at
 * a pixel. */
typedef struct RegionSums {
    /* sum of p over the pixels whose label is the class */
    float inside;
    /* sum of p over all pixels that have a label */
    float all;
    /* number of pixels whose label is the class */
    float labelled;
} RegionSums;
/* Arguments of region_grad. With p = exp(x - lse), and with s = all[class], plus inside[class] if
 * the class is the pixel's label: dx = scale * p * (s - sum over the classes of p * s). Pixels
 * without a label get 0. */
typedef struct RegionGrad {
    /* one number for each pixel */
    const float *lse;
    /* one number for each class */
    const float *all, *inside;
    float scale;
} RegionGrad;

/* One query head of attention. A row is the `width` elements of one token. In backward, `group`
 * query heads share the keys and values: the next query head begins `width` elements further on in
 * q, dq, y and dy, and `length` floats further on in lse. */
typedef struct AttentionHead {
    const void *q, *k, *v, *dy;
    void *y, *dq, *dk, *dv;
    /* logarithm of the sum of the exponentials of each query's scores, float[length] */
    float *lse;
    /* cosines and sines of the rotary angles of each position, times a common factor,
     * float[length][width / 2]; NULL: no rotation */
    const float *cosine, *sine;
    /* elements from one row to the next in q, k, v and dq */
    int64_t stride;
    /* elements from one row to the next in dk and dv */
    int64_t key_stride;
    /* elements from one row to the next in y and dy */
    int64_t y_stride;
    /* number of tokens */
    int64_t length;
    /* elements of a row */
    int64_t width;
    /* number of query heads that share the keys and values */
    int64_t group;
    /* number of keys to which a query attends: its own key and those before it; 0: all keys up to
     * its own */
    int64_t window;
    /* true: a query attends to all keys */
    bool full;
    /* factor by which the scores are multiplied */
    float scale;
} AttentionHead;
/* number of queries in a tile of queries, and of keys in a tile of keys */
enum { ATTENTION_TILE = 64 };

/* A part of the output of a MatrixProduct. All four numbers are multiples of MATRIX_PAD. There are
 * at most MATRIX_TILE_COLUMNS columns. */
typedef struct MatrixTile {
    /* the tile's first row and first column */
    int64_t row, column;
    /* numbers of rows and columns */
    int64_t rows, columns;
} MatrixTile;
enum { MATRIX_TILE_ROWS = 128, MATRIX_TILE_COLUMNS = 64 };

/* Returns the floats of scratch for one call of an attention kernel: for tiles, and in bf16 also
 * for rounded factors of products and for the fp32 sums of dk and dv of one key head. */
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
    /* Adds sum(x) and sum(x * x) over contiguous rows to sum[lanes] and square[lanes]. The result
     * is accurate for any mean: the rows are cut into chunks of at most 128, the differences of a
     * chunk's rows from its first row are summed in float, and these sums are converted to sums of
     * x and of x * x in double. */
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

    /* Elementwise; the output may share an input's memory. factor: OpSpec.act_factor. act_grad
     * reads y if the activation has ACT_FROM_Y, else x. */
    void (*act)(Act act, float factor, void *y, const void *x, int64_t n);
    void (*act_grad)(Act act, float factor, void *dx, const void *dy, const void *x_or_y,
                     int64_t n);
    /* One row of swiglu. x, and also dx, consists of n elements of the gate, followed by n of the
     * value. Outputs share no memory with inputs. */
    void (*swiglu)(void *y, const void *x, int64_t n);
    void (*swiglu_grad)(void *dx, const void *dy, const void *x, int64_t n);
    /* act: none, relu or relu6 */
    void (*add_act)(Act act, void *y, const void *a, const void *b, int64_t n);
    /* y = x * by */
    void (*mul)(void *y, const void *x, const float *by, int64_t n);
    /* y = x + more */
    void (*add_floats)(void *y, const void *x, const float *more, int64_t n);
    /* sum += x */
    void (*add_into)(float *sum, const void *x, int64_t n);
    /* Convert n elements; the output shares no memory with the input. */
    void (*from_floats)(void *y, const float *x, int64_t n);
    void (*to_floats)(float *y, const void *x, int64_t n);
    /* For i < count: out[i * stride] = scale if element first + i is kept, else 0. An element is
     * kept if its 24 random bits are >= threshold. */
    void (*dropout)(RngKey key, uint64_t first, int count, uint32_t threshold, float scale,
                    float *out, int stride);

    /* index: one byte per element of y: the position of the maximum in the window, row by row, or
     * POOL_NO_POSITION */
    void (*max_pool)(const PoolPlane *p, const void *x, void *y, uint8_t *index);
    void (*max_pool_grad)(const PoolPlane *p, const void *dy, const uint8_t *index, void *dx);
    void (*avg_pool)(const PoolPlane *p, const void *x, void *y);
    void (*avg_pool_grad)(const PoolPlane *p, const void *dy, void *dx);
    /* mean of each lane over the rows */
    void (*mean_rows)(const void *x, int64_t rows, int lanes, void *mean);
    /* dx = dy / rows for each row */
    void (*spread_rows)(void *dx, const void *dy, int64_t rows, int lanes);

    /* Computes row `row` of the result from the source's plane; `to` is the beginning of that
     * row. */
    void (*resample_row)(const ResamplePlane *p, int row, const void *plane, void *to);

    /* Returns the statistics of n logits. x may be a slice of a row of logits. `label` is then
     * relative to the slice and may be outside of it, but x[label] must be readable. */
    SoftmaxRow (*softmax)(const void *x, int64_t n, int label);
    /* Returns the number of logits that rank above the label's. If x is a slice, `label` may be
     * outside of it as in softmax, and x[label] is not read. */
    int (*softmax_label_rank)(const void *x, int64_t n, int label, float label_logit);
    void (*softmax_grad)(const SoftmaxGrad *a);
    /* Computes y and lse of one tile of queries. */
    void (*attention_forward)(const AttentionHead *h, int64_t tile, float *scratch);
    /* attention_grad computes dk and dv of a key head, and dq of all `group` query heads that share
     * it. attention_grad_queries computes only dq of one tile of queries of one query head.
     * attention_grad_keys computes only dk and dv of one tile of keys, over all `group` query
     * heads. One call of attention_grad gives the same bits as calls of the other two for all tiles
     * and heads. */
    void (*attention_grad)(const AttentionHead *h, float *scratch);
    void (*attention_grad_queries)(const AttentionHead *h, int64_t tile, float *scratch);
    void (*attention_grad_keys)(const AttentionHead *h, int64_t tile, float *scratch);

    void (*pixel_softmax)(const PixelArgs *a, PixelStats *s);
    void (*pixel_grad)(const PixelArgs *a, const PixelGrad *g, void *dx);
    /* writes sums[classes] */
    void (*region_sums)(const PixelArgs *a, const float *lse, RegionSums *sums);
    void (*region_grad)(const PixelArgs *a, const RegionGrad *g, void *dx);
    PointSum (*point_loss)(const PointArgs *a);
    /* dx = scale * weight * (slope of the loss at x - target); 0 where the target is missing */
    void (*point_grad)(const PointArgs *a, float scale, void *dx);

    /* Functions on fp32. The tables of one instruction set have the same functions for all types.
     * scale_add, sgd, adam, adam_direction and average compute what FlatTable's slots with these
     * names do, for one piece, but ignore the field `numbers` and the piece's average. squares
     * returns the sum of squares of one chunk. */
    void (*scale_add)(float *y, float alpha, const float *x, float beta, int64_t n);
    double (*squares)(const float *x, int64_t n);
    /* returns the exact sum of squares of at most FLAT_CHUNK elements */
    SquareSum (*exact_squares)(const float *x, int64_t n);
    /* returns true if an element is infinite or NaN */
    bool (*not_finite)(const float *x, int64_t n);
    /* returns the same as not_finite, and copies x to `to` with non-temporal stores */
    bool (*copy)(float *to, const float *x, int64_t n);
    void (*sgd)(const SgdArgs *a, const UpdatePiece *piece);
    void (*adam)(const AdamArgs *a, const UpdatePiece *piece);
    void (*adam_direction)(const AdamArgs *a, float *u, const UpdatePiece *piece);
    void (*average)(float *to, float rate, const float *w, int64_t n);
    void (*matrix_tile)(const MatrixProduct *p, const MatrixTile *tile);

    /* L, the number of channels in a block for the Winograd, conv_weight and depthwise kernels
     * below. It is the number of floats in a vector. Without AVX2, L is 0, and the slots of all
     * kernels from here to depthwise_weight are NULL. */
    int conv_lanes;
    /* These three transform `count` tiles, from tile `first` on, of block `block` of channels.
     * winograd_input transforms patches of x to v. winograd_gradient transforms tiles of dy to z.
     * winograd_output transforms products m to tiles of y, and applies bias (NULL: none) and relu.
     * slice: floats from one of the 36 slices of v, z or m to the next (winograd.h). */
    void (*winograd_input)(const WinogradImage *im, int64_t block, int64_t first, int64_t count,
                           const float *x, float *v, int64_t slice);
    void (*winograd_gradient)(const WinogradImage *im, int64_t block, int64_t first, int64_t count,
                              const float *dy, float *z, int64_t slice);
    void (*winograd_output)(const WinogradImage *im, int64_t block, int64_t first, int64_t count,
                            const float *m, int64_t slice, float *y, const float *bias, bool relu);
    /* winograd_kernel transforms one block [3][3][L of c][L of o] of a weight to u, whose rows are
     * `row` floats apart. The rows are channels c; if `rotated` is true, the kernel is rotated by
     * 180 degrees and the rows are channels o. winograd_taps transforms products d, whose rows are
     * `row` floats apart, to such a block of dw; `add`: adds them to dw. */
    void (*winograd_kernel)(const float *w, bool rotated, float *u, int64_t slice, int64_t row);
    void (*winograd_taps)(const float *d, int64_t slice, int64_t row, float *dw, bool add);
    /* winograd_forward: out[tile][o] = sum over c of a[tile][c] b[c][o], for p->rows tiles.
     * winograd_weight: out[c][o] = sum over tiles of a[tile][c] b[tile][o], for p->rows channels
     * c. */
    void (*winograd_forward)(const WinogradProduct *p);
    void (*winograd_weight)(const WinogradProduct *p);

    /* Computes one tap of dw of a direct convolution. */
    void (*conv_weight)(const ConvWeight *a);

    /* NULL without AVX2. Blocks of output channels have FIRST_BLOCK channels on every instruction
     * set. first_forward computes y and applies bias (NULL: none) and relu. first_weight adds to
     * dw, and to db if db is not NULL. */
    void (*first_forward)(const FirstConv *f, const float *w, const float *bias, bool relu,
                          float *y);
    void (*first_weight)(const FirstConv *f, const float *dy, float *dw, float *db);
    /* NULL without AVX2. Each call computes one plane with L channels (conv_lanes).
     * depthwise_weight overwrites dw and db. */
    void (*depthwise_forward)(const DepthwisePlane *a, const float *x, const float *w,
                              const float *bias, bool relu, float *y);
    void (*depthwise_data)(const DepthwisePlane *a, const float *dy, const float *w, float *dx);
    void (*depthwise_weight)(const DepthwisePlane *a, const float *x, const float *dy, float *dw,
                             float *db);
    /* Compute one part of a product's out. dense_product's scratch is aligned to 64 bytes. Without
     * slices it has DENSE_SCRATCH floats. With slices it has DENSE_ROWS_ROOM floats, DENSE_LEVEL
     * floats for each level of the tree of slices, and p->k floats for each of
     * dense_slice_columns(p->k) columns. dense_few is for products without slices whose out has at
     * most DENSE_FEW rows or whose sums have at most DENSE_FEW terms. */
    void (*dense_product)(const DenseProduct *p, const DensePart *part, float *scratch);
    void (*dense_few)(const DenseProduct *p, const DensePart *part);
    /* Writes to sum[c] the sum of column c over the rows of x, for c from `column` to end - 1.
     * rows: number of rows; row: floats from one row to the next. */
    void (*dense_columns)(const float *x, int64_t rows, int64_t row, int64_t column, int64_t end,
                          float *sum);
} SimdTable;

/* Returns the table in use for activations of this type: one of the tables of cpu_used(), unless
 * simd_use chose another instruction set. NULL for bf16 if weft has no bf16 kernels for the
 * instruction set in use or the CPU lacks AVX512_BF16. */
const SimdTable *simd_table(DType type);
/* Returns the table with vectors of at most 8 floats, for planes too narrow for wider vectors. Only
 * for pools: their bits do not depend on the width of vectors. The table for bf16 has most of its
 * other slots NULL. */
const SimdTable *simd_table_narrow(DType type);
/* Makes the tables of an instruction set ("base", "avx2", "avx512") those in use. Returns false if
 * the set is not built in or this CPU cannot run it. For tests and benchmarks that compare several
 * sets in one process. Do not call it while kernels run. */
bool simd_use(const char *name);

#endif
