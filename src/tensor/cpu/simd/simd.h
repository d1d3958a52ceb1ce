/* The vector kernels' door: a const table of functions per instruction set and per type of activations. Every file of this
 * folder but this one is compiled once for each pair (SIMD_ISA=base|avx2|avx512, SIMD_BF16 or not; flat.c for fp32 only)
 * and the best tables that this CPU runs are taken at start. `void` points to activations or their gradients, elements of
 * the table's type; all else is what it says. Computing is in fp32 whatever the type, and rounds once, where an element is
 * stored, to the same bits on every instruction set.
 * Kernels are serial: callers split the work. A "row" is `lanes` neighbouring elements that share coefficients by lane;
 * a plane of block B | 16 is seen as rows of 16 lanes, whatever B is, its coefficients repeated. Nothing here
 * allocates; pointers need their elements' alignment only. */
#ifndef WEFT_TENSOR_SIMD_H
#define WEFT_TENSOR_SIMD_H

#include "tensor.h"

enum { SIMD_LANES = 16 };

/* y = act((x - mean) * scale + shift (+ residual)): `rows` contiguous rows. keep: a bit for each element that act did not
 * cut, 16 lanes a word, each row from a word of its own, so that backward need not read y; NULL if not wanted. */
typedef struct BnApply {
    const void *x, *residual;          /* residual: NULL if none */
    const float *mean, *scale, *shift; /* by lane */
    void *y;
    uint16_t *keep;
    int64_t rows;
    int lanes;
    Act act;
} BnApply;

/* Adds sum(dy) and sum(dy * (x - mean)) to doubles by lane: contiguous rows. Where keep is given, dy counts only where
 * its bit is set, and is masked in memory, too, if `store`. */
typedef struct BnSums {
    const void *x;
    const float *mean;
    void *dy;
    const uint16_t *keep;
    double *sum, *sum_x;
    int64_t rows;
    int lanes;
    bool store;
} BnSums;

/* dx = by_dy * dy + by_x * (x - mean) + shift: contiguous rows, dy masked by keep where given. dx may be dy. */
typedef struct BnGrad {
    const void *x, *dy;
    const float *mean, *by_dy, *by_x, *shift; /* by lane */
    const uint16_t *keep;
    void *dx;
    int64_t rows;
    int lanes;
} BnGrad;

/* One row of layer_norm, width elements. */
typedef struct LnRow {
    const void *x, *dy;
    const float *scale, *shift;
    void *y, *dx;
    int64_t width;
    float eps, mean, inverse; /* written by forward, read by the others */
} LnRow;

/* Pooling of one plane: h x w pixels of `lanes` elements to p x q pixels. The windows that hold input row i are
 * row_low[i]..row_high[i], and so for columns. */
typedef struct PoolPlane {
    int h, w, p, q, lanes;
    int kernel[2], stride[2], pad[2];
    bool relu;                                          /* max: fused on the output */
    const int *row_low, *row_high, *col_low, *col_high; /* borrowed from the op */
} PoolPlane;
enum { POOL_CUT = 255 }; /* index of a maximum that relu cut off: no gradient */

/* What a row of logits gives. lse: log of the sum of exponentials. beats: logits above the label's, ties by index. */
typedef struct SoftmaxRow {
    float lse, sum;
    int beats, argmax;
} SoftmaxRow;

/* One head of attention. Rows of q, k, v and of their gradients are `stride` apart, those of y and dy `y_stride`. */
typedef struct AttentionHead {
    const float *q, *k, *v, *dy;
    float *y, *dq, *dk, *dv;
    float *lse; /* [length]: log of the sum of exponentials of each query's scores */
    const float *cosine,
        *sine; /* [length][width / 2]: the positions' angles; NULL: rows are not turned */
    int64_t stride, y_stride, length, width;
    float scale; /* of the scores */
} AttentionHead;
enum { ATTENTION_TILE = 64 }; /* queries, keys */
/* Floats of scratch that one call needs. */
static inline int64_t attention_scratch(int64_t width)
{
    int64_t wide = (width + SIMD_LANES - 1) / SIMD_LANES * SIMD_LANES;
    return ATTENTION_TILE * (8 * wide + 2 * ATTENTION_TILE + 4);
}

typedef struct SimdTable {
    const char *name;
    /* Adds sum(x) and sum(x*x) of contiguous rows to doubles by lane. Sound for any mean: sums run in float around a
     * value of the data, over at most 128 rows, and are moved to zero in double. */
    void (*bn_stats)(const float *x, int64_t rows, int lanes, double *sum, double *square);
    void (*bn_apply)(const BnApply *a);
    void (*bn_sums)(const BnSums *a);
    void (*bn_grad)(const BnGrad *a);

    void (*ln_forward)(LnRow *a);
    void (*ln_grad)(const LnRow *a);
    void (*ln_sums)(const LnRow *a, float *dscale, float *dshift); /* adds */

    /* Element by element; outputs may be an input's memory. */
    void (*act)(Act act, float *y, const float *x, int64_t n);
    void (*act_grad)(Act act, float *dx, const float *dy, const float *x_or_y,
                     int64_t n); /* y for relu, relu6 */
    void (*add_act)(Act act, float *y, const float *a, const float *b, int64_t n);
    void (*mul)(float *y, const float *a, const float *b, int64_t n);
    /* out[i * stride] = keep ? scale : 0 for elements first + i; keep: 24 random bits of the element >= cut. */
    void (*dropout)(RngKey key, uint64_t first, int count, uint32_t cut, float scale, float *out,
                    int stride);

    void (*max_pool)(const PoolPlane *p, const float *x, float *y, uint8_t *index);
    void (*max_pool_grad)(const PoolPlane *p, const float *dy, const uint8_t *index, float *dx);
    void (*avg_pool)(const PoolPlane *p, const float *x, float *y);
    void (*avg_pool_grad)(const PoolPlane *p, const float *dy, float *dx);
    void (*mean_rows)(const float *x, int64_t rows, int64_t stride, int lanes, float *mean);

    SoftmaxRow (*softmax)(const float *x, int64_t n, int label);
    void (*softmax_grad)(float *dx, const float *x, int64_t n, float lse, float scale, float base);
    /* One tile of queries: y and lse. */
    void (*attention_forward)(const AttentionHead *h, int64_t tile, float *scratch);
    /* All of dq, dk and dv; or one tile of queries' dq; or one tile of keys' dk and dv. The same bits either way. */
    void (*attention_grad)(const AttentionHead *h, float *scratch);
    void (*attention_grad_queries)(const AttentionHead *h, int64_t tile, float *scratch);
    void (*attention_grad_keys)(const AttentionHead *h, int64_t tile, float *scratch);

    double (*squared_error)(const float *x, const float *target, int64_t n);
    void (*scaled_difference)(float *out, const float *a, const float *b, float scale, int64_t n);

    void (*scale_add)(float *y, float alpha, const float *x, float beta, int64_t n);
    double (*squares)(const float *x, int64_t n);
    void (*sgd)(const SgdArgs *a, float *w, const float *g, float *m, int64_t n);
    void (*adam)(const AdamArgs *a, float *w, const float *g, float *m, float *v, int64_t n);
    void (*adam_direction)(const AdamArgs *a, float *u, const float *w, const float *g, float *m,
                           float *v, int64_t n);
} SimdTable;

/* The table in use: the best for this CPU unless simd_use chose another. */
const SimdTable *simd_table(void);
/* Takes the table of that name ("base", "avx2", "avx512"); false where it is not built in or this CPU cannot run it.
 * For tests and benchmarks; not while kernels run. */
bool simd_use(const char *name);

#endif
