/* The vector kernels' header: a const table of functions per instruction set and per type of
 * activations. Every file of this folder but this one is compiled once for each pair
 * (SIMD_ISA=base|avx2|avx512, SIMD_BF16 or not; flat.c for fp32 only) and the best tables that this
 * CPU runs are taken at start. `void` points to activations or their gradients, elements of the
 * table's type; all else is what it says. Computing is in fp32 whatever the type, and rounds once,
 * where an element is stored, to the same bits on every instruction set. Kernels are serial:
 * callers split the work. A "row" is `lanes` neighbouring elements that share coefficients by lane;
 * a plane of block B | 16 is seen as rows of 16 lanes, whatever B is, its coefficients repeated.
 * Nothing here allocates; pointers need their elements' alignment only. */
#ifndef WEFT_TENSOR_SIMD_H
#define WEFT_TENSOR_SIMD_H

#include "tensor.h"
#include "dense.h"
#include "depthwise.h"
#include "first_conv.h"
#include "winograd.h"

enum { SIMD_LANES = 16 };

/* y = act((x - mean) * scale + shift (+ residual)): `rows` contiguous rows. keep: a bit for each
 * element that act did not cut, 16 lanes a word, each row from a word of its own, so that backward
 * need not read y; NULL if not wanted. */
typedef struct BatchNormApply {
    /* residual: NULL if none */
    const void *x, *residual;
    /* by lane */
    const float *mean, *scale, *shift;
    void *y;
    uint16_t *keep;
    int64_t rows;
    int lanes;
    Act act;
} BatchNormApply;

/* Adds sum(dy) and sum(dy * (x - mean)) to doubles by lane: contiguous rows. Where keep is given,
 * dy counts only where its bit is set, and is masked in memory, too, if `store`. */
typedef struct BatchNormSums {
    const void *x;
    const float *mean;
    void *dy;
    const uint16_t *keep;
    double *sum, *sum_x;
    int64_t rows;
    int lanes;
    bool store;
} BatchNormSums;

/* dx = by_dy * dy + by_x * (x - mean) + shift: contiguous rows, dy masked by keep where given. dx
 * may be dy. */
typedef struct BatchNormGrad {
    const void *x, *dy;
    /* by lane */
    const float *mean, *by_dy, *by_x, *shift;
    const uint16_t *keep;
    void *dx;
    int64_t rows;
    int lanes;
} BatchNormGrad;

/* One row of layer_norm or rms_norm, width elements. rms_norm has neither shift nor mean. */
typedef struct LayerNormRow {
    const void *x, *dy;
    const float *scale, *shift;
    void *y, *dx;
    int64_t width;
    /* written by forward, read by the others */
    float eps, mean, inverse;
} LayerNormRow;

/* Pooling of one plane: h x w pixels of `lanes` elements to p x q pixels. The windows that hold
 * input row i are row_low[i]..row_high[i], and so for columns. */
typedef struct PoolPlane {
    int h, w, p, q, lanes;
    int kernel[2], stride[2], pad[2];
    /* max: fused on the output */
    bool relu;
    /* borrowed from the op */
    const int *row_low, *row_high, *col_low, *col_high;
} PoolPlane;

/* What a row of logits gives. lse: log of the sum of exponentials. label_rank: logits above the
 * label's, ties by index. */
typedef struct SoftmaxRow {
    /* truth: the label's logit */
    float lse, sum, truth;
    int label_rank, argmax;
} SoftmaxRow;

/* dx = scale * (exp(x - lse) - base), less `hit` at the label and `hit_other` at another, which may
 * be the same. dx may be x. */
typedef struct SoftmaxGrad {
    const void *x;
    void *dx;
    int64_t n;
    int label, other;
    float lse, scale, base, hit, hit_other;
} SoftmaxGrad;

/* One head of attention. Rows of q, k, v and of their gradients are `stride` apart, those of y and
 * dy `y_stride`. In backward `group` heads of queries have these keys and values: the next one's q,
 * dq, y and dy lie `width` further on, its lse `length`. */
typedef struct AttentionHead {
    const void *q, *k, *v, *dy;
    void *y, *dq, *dk, *dv;
    /* [length]: log of the sum of exponentials of each query's scores */
    float *lse;
    const float *cosine,
        *sine; /* [length][width / 2]: the positions' angles; NULL: rows are not turned */
    int64_t stride, y_stride, length, width, group;
    /* number of keys that a query attends to, its own the last of them; 0: all up to its own */
    int64_t window;
    /* of the scores */
    float scale;
} AttentionHead;
/* queries, keys */
enum { ATTENTION_TILE = 64 };

/* A part of a MatrixProduct's out: rows a multiple of MATRIX_PAD, columns too and
 * MATRIX_TILE_COLUMNS at most. */
typedef struct MatrixTile {
    int64_t row, column, rows, columns;
} MatrixTile;
enum { MATRIX_TILE_ROWS = 128, MATRIX_TILE_COLUMNS = 64 };

/* Floats of scratch that one call needs: tiles, and for bf16 factors of products and a head's sums
 * into dk and dv. */
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
    /* Adds sum(x) and sum(x*x) of contiguous rows to doubles by lane. Sound for any mean: sums run
     * in float around a value of the data, over at most 128 rows, and are moved to zero in
     * double. */
    void (*batch_norm_stats)(const void *x, int64_t rows, int lanes, double *sum, double *square);
    void (*batch_norm_apply)(const BatchNormApply *a);
    void (*batch_norm_sums)(const BatchNormSums *a);
    void (*batch_norm_grad)(const BatchNormGrad *a);

    void (*layer_norm_forward)(LayerNormRow *a);
    void (*layer_norm_grad)(const LayerNormRow *a);
    /* adds */
    void (*layer_norm_sums)(const LayerNormRow *a, float *dscale, float *dshift);
    void (*rms_norm_forward)(LayerNormRow *a);
    void (*rms_norm_grad)(const LayerNormRow *a);
    /* adds */
    void (*rms_norm_sums)(const LayerNormRow *a, float *dscale, float *ignored);

    /* Element by element; outputs may be an input's memory. */
    void (*act)(Act act, void *y, const void *x, int64_t n);
    void (*act_grad)(Act act, void *dx, const void *dy, const void *x_or_y,
                     int64_t n); /* y for relu, relu6 */
    /* Of one row: x and dx are n elements of the gate and n of what it lets through. Nothing may be
     * an input's memory. */
    void (*swiglu)(void *y, const void *x, int64_t n);
    void (*swiglu_grad)(void *dx, const void *dy, const void *x, int64_t n);
    void (*add_act)(Act act, void *y, const void *a, const void *b, int64_t n);
    void (*mul)(void *y, const void *x, const float *by, int64_t n);
    void (*add_floats)(void *y, const void *x, const float *more, int64_t n);
    void (*add_into)(float *sum, const void *x, int64_t n);
    /* no memory in common */
    void (*from_floats)(void *y, const float *x, int64_t n);
    void (*to_floats)(float *y, const void *x, int64_t n);
    /* out[i * stride] = keep ? scale : 0 for elements first + i; keep: 24 random bits of the
     * element >= cut. */
    void (*dropout)(RngKey key, uint64_t first, int count, uint32_t cut, float scale, float *out,
                    int stride);

    void (*max_pool)(const PoolPlane *p, const void *x, void *y, uint8_t *index);
    void (*max_pool_grad)(const PoolPlane *p, const void *dy, const uint8_t *index, void *dx);
    void (*avg_pool)(const PoolPlane *p, const void *x, void *y);
    void (*avg_pool_grad)(const PoolPlane *p, const void *dy, void *dx);
    void (*mean_rows)(const void *x, int64_t rows, int lanes, void *mean);
    /* dx = dy / rows */
    void (*spread_rows)(void *dx, const void *dy, int64_t rows, int lanes);

    SoftmaxRow (*softmax)(const void *x, int64_t n, int label);
    /* How many of x beat a label's logit; label counts from x's first and may lie outside. */
    int (*softmax_label_rank)(const void *x, int64_t n, int label, float truth);
    void (*softmax_grad)(const SoftmaxGrad *a);
    /* One tile of queries: y and lse. */
    void (*attention_forward)(const AttentionHead *h, int64_t tile, float *scratch);
    /* All of the group's dq, dk and dv; or one head's tile of queries' dq; or one tile of keys' dk
     * and dv. The same bits either way. */
    void (*attention_grad)(const AttentionHead *h, float *scratch);
    void (*attention_grad_queries)(const AttentionHead *h, int64_t tile, float *scratch);
    void (*attention_grad_keys)(const AttentionHead *h, int64_t tile, float *scratch);

    double (*squared_error)(const void *x, const float *target, int64_t n);
    void (*scaled_difference)(void *dx, const void *x, const float *target, float scale, int64_t n);

    /* fp32 whatever the table's type. */
    void (*scale_add)(float *y, float alpha, const float *x, float beta, int64_t n);
    double (*squares)(const float *x, int64_t n);
    /* is any of them infinite or no number? */
    bool (*overflow)(const float *x, int64_t n);
    /* the same, and copies them, past the caches */
    bool (*copy)(float *to, const float *x, int64_t n);
    void (*sgd)(const SgdArgs *a, float *w, const float *g, float *m, int64_t n);
    void (*adam)(const AdamArgs *a, float *w, const float *g, float *m, float *v, int64_t n);
    void (*adam_direction)(const AdamArgs *a, float *u, const float *w, const float *g, float *m,
                           float *v, int64_t n);
    void (*matrix_tile)(const MatrixProduct *p, const MatrixTile *tile);

    /* Channels of a block, L, of all convolutions from here on; 0 and NULL without AVX2. */
    int conv_lanes;
    /* Transforms of `count` tiles of one block of channels from tile `first` on: patches of x;
     * tiles of dy; and from products to y, with bias (NULL: none) and relu. */
    void (*winograd_input)(const WinogradImage *im, int64_t block, int64_t first, int64_t count,
                           const float *x, float *v, int64_t slice);
    void (*winograd_gradient)(const WinogradImage *im, int64_t block, int64_t first, int64_t count,
                              const float *dy, float *z, int64_t slice);
    void (*winograd_output)(const WinogradImage *im, int64_t block, int64_t first, int64_t count,
                            const float *m, int64_t slice, float *y, const float *bias, bool relu);
    /* Of one block [3][3][L of c][L of o] of a weight, rows of u `row` apart; turned: by half a
     * turn, rows are o's. And from products to such a block of dw, added to it if `add`. */
    void (*winograd_kernel)(const float *w, bool turned, float *u, int64_t slice, int64_t row);
    void (*winograd_taps)(const float *d, int64_t slice, int64_t row, float *dw, bool add);
    /* out[row = tile][o] = a[tile][c] b[c][o]; and out[row = c][o] = sum over tiles. */
    void (*winograd_forward)(const WinogradProduct *p);
    void (*winograd_weight)(const WinogradProduct *p);

    /* NULL without AVX2. y from bias (NULL: 0), with relu; and adding to dw and db (NULL: not
     * wanted). */
    void (*first_forward)(const FirstConv *f, const float *w, const float *bias, bool relu,
                          float *y);
    void (*first_weight)(const FirstConv *f, const float *dy, float *dw, float *db);
    /* NULL without AVX2. One plane, of a block as wide as this set's vectors; dw and db are
     * written. */
    void (*depthwise_forward)(const DepthwisePlane *a, const float *x, const float *w,
                              const float *bias, bool relu, float *y);
    void (*depthwise_data)(const DepthwisePlane *a, const float *dy, const float *w, float *dx);
    void (*depthwise_weight)(const DepthwisePlane *a, const float *x, const float *dy, float *dw,
                             float *db);
    /* A part of out. The first: NULL but with AVX2 alone, DENSE_SCRATCH floats of scratch at a
     * border of 64 bytes. The second: of out's rows or of a sum's terms there are at most
     * DENSE_FEW. */
    void (*dense_product)(const DenseProduct *p, const DensePart *part, float *scratch);
    void (*dense_few)(const DenseProduct *p, const DensePart *part);
    /* sum[column .. end) of rows of x, `row` floats apart. */
    void (*dense_columns)(const float *x, int64_t rows, int64_t row, int64_t column, int64_t end,
                          float *sum);
} SimdTable;

/* The table in use for activations of that type: cpu_used's, unless simd_use chose another. */
const SimdTable *simd_table(DType type);
/* The like with vectors of at most 8 floats: for what does not fill wider ones and gives the same
 * bits with any. */
const SimdTable *simd_table_narrow(DType type);
/* Takes the tables of that set ("base", "avx2", "avx512"); false where it is not built in or this
 * CPU cannot run it. For tests and benchmarks, which compare kernels of several sets in one
 * process; not while kernels run. */
bool simd_use(const char *name);

#endif
