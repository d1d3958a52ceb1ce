/* Work on flat ranges of fp32 in a backend's memory: sums of gradients, norms, updates of
 * parameters, moving averages, sums of losses, and matrix products for optimizers. */
#ifndef WEFT_TENSOR_FLAT_H
#define WEFT_TENSOR_FLAT_H

#include "tensor/shape.h"

/* A queue of a backend's work. A CPU backend has one and runs each call at once; a GPU has several
 * and runs calls later, in order. */
typedef struct Stream Stream;

/* The numbers of an update that change from step to step, in the backend's memory: a recorded step
 * reads them when it is replayed. */
typedef struct UpdateNumbers {
    /* momentum: also Adam's beta1; average_rate: Average.rate */
    float lr, grad_scale, momentum, correct1, correct2, average_rate;
} UpdateNumbers;
/* An exponential moving average of the parameters. An update changes w and then the average, in the
 * same pass: to += rate (w - to). */
typedef struct Average {
    /* the average, with the same number of floats as w; NULL: there is none */
    float *to;
    float rate;
} Average;
typedef struct SgdArgs {
    /* grad_scale: factor by which g is multiplied first */
    float lr, momentum, weight_decay, grad_scale;
    /* nesterov: true for Nesterov momentum. first: true before m has a value, which it then gets
     * from g (sgd, below). */
    bool nesterov, first;
    Average average;
    /* values that replace lr, grad_scale, momentum and the average's rate, in the backend's memory;
     * NULL: the fields above are used */
    const UpdateNumbers *now;
} SgdArgs;
typedef struct AdamArgs {
    /* grad_scale: factor by which g is multiplied first */
    float lr, beta1, beta2, eps, weight_decay, grad_scale;
    /* bias corrections, 1 - beta1^t and 1 - beta2^t */
    float correct1, correct2;
    /* true: weight decay is decoupled from the gradient (AdamW) */
    bool decoupled;
    /* not used by adam_direction, which does not change w */
    Average average;
    /* values that replace lr, beta1, grad_scale, both corrections and the average's rate; NULL: the
     * fields above are used */
    const UpdateNumbers *now;
} AdamArgs;
/* out[m][n] = sum over k of a[m][k] b[k][n], or of a[m][k] b[n][k] if b_transposed. Rows begin
 * out_row, a_row and b_row floats apart; m and n are multiples of MATRIX_PAD. out overlaps neither
 * a nor b. */
typedef struct MatrixProduct {
    float *out;
    const float *a, *b;
    int64_t m, n, k, out_row, a_row, b_row;
    bool b_transposed;
    /* true: the product is symmetric to the bit, as is a matrix times its transpose: only one half
     * of out is computed, and the other half is copied from it */
    bool symmetric;
} MatrixProduct;
enum { MATRIX_PAD = 16 };
/* maximum number of arrays of an ElementBody */
enum { FLAT_ARRAYS = 4 };
/* Applies a rule to elements 0 .. n - 1 of each array. Each element is independent of the others,
 * so the cuts between calls do not change the result. */
typedef void (*ElementBody)(const void *args, float *const array[FLAT_ARRAYS], int64_t n);
/* elements of a chunk, over which a partial sum of squares is taken; a tensor's first chunk begins
 * at its first element */
enum { FLAT_CHUNK = 4096 };
/* A piece of one tensor: `elements` floats (FLAT_CHUNK at most) at `offset` of an arena. */
typedef struct FlatChunk {
    int64_t offset, elements;
    /* index of this chunk's sum in the output */
    int64_t sum;
} FlatChunk;
/* A sum of squares whose bits depend on the set of terms alone, not on their order or grouping: the
 * sum of a tensor does not depend on how ranks divide it. A term x^2 is exact in double. It is
 * split into whole multiples of three units, each 2^32 times the next smaller one; the rest, which
 * is less than the smallest unit, is dropped. `part` counts each unit in integers, the largest unit
 * first, without rounding. `scale` is the index of the largest unit, which is the smallest unit
 * with x^2 <= 2^31 units for every term; SQUARES_INFINITE and SQUARES_NAN replace it in a sum that
 * is infinite or NaN. Zeroed memory is the sum of no terms. A sum has at most 2^32 terms (Demmel &
 * Nguyen 2015, "Parallel reproducible summation"). */
typedef struct SquareSum {
    int64_t part[3], scale;
} SquareSum;
/* `scale` of the unit 2^0; values of `scale` for infinity and NaN */
enum { SQUARES_SCALE_0 = 8, SQUARES_INFINITE = 64, SQUARES_NAN };
/* Adds the terms of `from` to `to`. */
void square_sum_add(SquareSum *to, const SquareSum *from);
/* The sum, rounded. */
double square_sum_value(const SquareSum *sum);

/* maximum number of bytes that FlatTable.put copies */
enum { FLAT_PUT = 128 };
/* Indices of the numbers that loss_sums writes. A line is one row of a loss's y. */
enum {
    /* sum of the losses */
    LOSS_SUM,
    /* number of lines */
    LOSS_LINES,
    /* number of lines whose label is the likeliest class */
    LOSS_TOP1,
    /* number of lines whose label is among the five likeliest classes */
    LOSS_TOP5,
    /* 1 if there is a line, else 0 */
    LOSS_ANY,
    /* sums of columns 1 and 2, which some losses fill with parts of the loss */
    LOSS_COLUMN1,
    LOSS_COLUMN2,
    LOSS_SUMS
};

/* Operations on flat ranges of fp32; all pointers are into the backend's memory. */
typedef struct FlatTable {
    /* Fills to[0 .. n - 1] with value, including its sign bit: -0 and 0 differ. */
    void (*fill)(Stream *s, float *to, float value, int64_t n);
    /* out = a + b; out may be a or b */
    void (*add)(Stream *s, float *out, const float *a, const float *b, int64_t n);
    /* add in bf16 and fp16, for gradients of activations; NULL where the backend lacks the type */
    void (*add_bf16)(Stream *s, Bf16 *out, const Bf16 *a, const Bf16 *b, int64_t n);
    void (*add_f16)(Stream *s, F16 *out, const F16 *a, const F16 *b, int64_t n);
    /* Sets *found to 1 if an element of x is infinite or NaN, else leaves it unchanged. */
    void (*find_not_finite)(Stream *s, float *found, const float *x, int64_t n);
    /* Returns whether an element of x is infinite or NaN. Runs on the calling thread, inside a body
     * of `each`; copies x to `to` in the same pass unless `to` is NULL. NULL where `each` is
     * NULL. */
    bool (*find_and_copy)(float *to, const float *x, int64_t n);
    /* y = alpha x + beta y */
    void (*scale_add)(Stream *s, float *y, float alpha, const float *x, float beta, int64_t n);
    /* out[n] = the sum of `count` slices of n elements of `type`, which begin `stride` elements
     * apart. Slices are added in order, in fp32, and rounded once. out may be one of the slices.
     * NULL if the memory is the host's: each slice is then added when it arrives. */
    void (*add_slices)(Stream *s, DType type, void *out, const void *slices, int count,
                       int64_t stride, int64_t n);
    /* out[i] = sum of squares of chunk i of x, for each of its ceil(n / FLAT_CHUNK) chunks of
     * FLAT_CHUNK elements; the last chunk may be shorter. The bits do not depend on the alignment
     * of x. */
    void (*squares)(Stream *s, double *out, const float *x, int64_t n);
    /* out[chunk[i].sum] = sum of squares of chunk i of the arena x, bit-equal to `squares`, in one
     * launch. chunk is in the backend's memory. */
    void (*chunk_squares)(Stream *s, double *out, const float *x, const FlatChunk *chunk,
                          int64_t count);
    /* the same sums as squares and chunk_squares, but exact */
    void (*exact_squares)(Stream *s, SquareSum *out, const float *x, int64_t n);
    void (*exact_chunk_squares)(Stream *s, SquareSum *out, const float *x, const FlatChunk *chunk,
                                int64_t count);
    /* out[i] = sum of x[first[i]] .. x[first[i + 1] - 1]; value[i] = out[i] as a double. first has
     * count + 1 entries. */
    void (*join_squares)(Stream *s, SquareSum *out, double *value, const SquareSum *x,
                         const int64_t *first, int count);
    /* SGD with PyTorch's formula: g += wd w; m = momentum m + g (first: m = g); w -= lr (nesterov ?
     * g + momentum m : m). m is not used, and may be NULL, if momentum is 0. g does not change. */
    void (*sgd)(Stream *s, const SgdArgs *a, float *w, const float *g, float *m, int64_t n);
    /* Adam and AdamW with PyTorch's formulas (Kingma & Ba 2015; Loshchilov & Hutter 2019) */
    void (*adam)(Stream *s, const AdamArgs *a, float *w, const float *g, float *m, float *v,
                 int64_t n);
    /* LAMB's direction (You et al. 2020): updates m and v; u = mhat / (sqrt(vhat) + eps) + wd w */
    void (*adam_direction)(Stream *s, const AdamArgs *a, float *u, const float *w, const float *g,
                           float *m, float *v, int64_t n);
    /* Moves the average only, after other calls have changed w. now: NULL, or holds the rate that
     * replaces average.rate. */
    void (*average)(Stream *s, Average average, const UpdateNumbers *now, const float *w,
                    int64_t n);
    /* Exchanges the values of a and b. */
    void (*swap)(Stream *s, float *a, float *b, int64_t n);
    /* Copies `bytes` from host memory to the backend's memory. `from` is read before the call
     * returns, and the host does not wait. */
    void (*put)(Stream *s, void *to, const void *from, size_t bytes);
    /* Sums a loss's y (lines, LOSS_COLUMNS) into out[LOSS_SUMS]. Lines are added in double, in an
     * order that depends on their number only. */
    void (*loss_sums)(Stream *s, float *out, const float *columns, int64_t lines);
    /* out[i] = sum of x[first[i]] .. x[first[i + 1] - 1], in an order that depends on the number of
     * terms only. first has count + 1 entries. */
    void (*range_sums)(Stream *s, double *out, const double *x, const int64_t *first, int count);
    /* *grad_scale = limit / norm if that is less than 1, else 1; norm is the root of the sum of
     * `count` squares, added in order. NULL only if the backend cannot record work
     * (BackendTable.record_begin). */
    void (*clip)(Stream *s, float *grad_scale, const double *squares, int count, double limit);
    /* Runs body on parts of up to FLAT_ARRAYS arrays of n elements, in parallel. NULL if the memory
     * is not the host's. */
    void (*each)(Stream *s, ElementBody body, const void *args, float *const array[FLAT_ARRAYS],
                 int64_t n);
    /* Computes p. The order of each sum depends on the shapes only: the bits are equal for any
     * number of threads. NULL where `each` is NULL. */
    void (*matrix_product)(Stream *s, const MatrixProduct *p);
} FlatTable;

#endif
