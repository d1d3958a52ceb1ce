/* Work on flat ranges of fp32 in a backend's memory: sums of gradients, norms, updates of
 * parameters, moving averages, sums of losses, and matrix products for optimizers. No function is
 * collective. */
#ifndef WEFT_TENSOR_FLAT_H
#define WEFT_TENSOR_FLAT_H

#include "tensor/shape.h"

/* A queue of a backend's work. A CPU backend has one queue and runs each call at once. A GPU has
 * several queues; the calls of a queue run later, in order. */
typedef struct Stream Stream;

/* The numbers of an update that change from step to step, in the backend's memory: a recorded step
 * reads them when it is replayed. */
typedef struct UpdateNumbers {
    /* lr, grad_scale: as in SgdArgs; momentum: as in SgdArgs, or AdamArgs.beta1; correct1,
     * correct2: as in AdamArgs; average_rate: Average.rate */
    float lr, grad_scale, momentum, correct1, correct2, average_rate;
} UpdateNumbers;
/* An exponential moving average of the parameters. An update changes w, and then in the same pass
 * the average: to += rate (w - to). */
typedef struct Average {
    /* the average, with the same number of floats as w; NULL: there is no average */
    float *to;
    float rate;
} Average;
/* The arrays of a piece of the parameters, which an update changes as one, each with n elements. */
typedef struct UpdatePiece {
    /* w: parameters; g: gradient, which does not change */
    float *w;
    const float *g;
    /* state: SGD has its momentum in m, and does not use v; Adam has its moments in m and v */
    float *m, *v;
    /* the piece's average (Average.to); NULL: there is none */
    float *average;
    /* array that also gets w, rounded to the update's argument copy_type; NULL: there is none, as
     * always if the memory is the host's */
    void *copy;
    int64_t n;
    float weight_decay;
} UpdatePiece;
/* Arguments of FlatTable.sgd. */
typedef struct SgdArgs {
    /* grad_scale: factor by which g is multiplied first */
    float lr, momentum, grad_scale;
    /* Average.rate of all pieces */
    float average_rate;
    /* type of the copies (UpdatePiece.copy): bf16 or fp16; not used if no piece has a copy */
    DType copy_type;
    /* nesterov: true for Nesterov momentum. m_is_empty: true if m has no value yet; the update then
     * sets m to g. */
    bool nesterov, m_is_empty;
    /* values that replace lr, grad_scale, momentum and average_rate, in the backend's memory; NULL:
     * the fields above are used */
    const UpdateNumbers *numbers;
} SgdArgs;
/* Arguments of FlatTable.adam and FlatTable.adam_direction. */
typedef struct AdamArgs {
    /* grad_scale: factor by which g is multiplied first */
    float lr, beta1, beta2, eps, grad_scale;
    /* the fields of SgdArgs with these names; adam_direction uses neither, because it does not
     * change w */
    float average_rate;
    DType copy_type;
    /* bias corrections after t updates: correct1 = 1 - beta1^t, correct2 = 1 - beta2^t */
    float correct1, correct2;
    /* true: weight decay is decoupled from the gradient (AdamW) */
    bool decoupled;
    /* values that replace lr, beta1, grad_scale, both corrections and average_rate, in the
     * backend's memory; NULL: the fields above are used */
    const UpdateNumbers *numbers;
} AdamArgs;
/* A product of matrices: out[m][n] = sum over k of a[m][k] b[k][n], or of a[m][k] b[n][k] if
 * b_transposed is true. The rows of out, a and b begin out_row, a_row and b_row floats apart; m and
 * n are multiples of MATRIX_PAD. out overlaps neither a nor b. */
typedef struct MatrixProduct {
    float *out;
    const float *a, *b;
    int64_t m, n, k, out_row, a_row, b_row;
    bool b_transposed;
    /* true: the product is symmetric to the bit, like a matrix times its transpose, so only one
     * half of out is computed and then copied to the other half */
    bool symmetric;
} MatrixProduct;
enum { MATRIX_PAD = 16 };
/* largest number of arrays of an ElementBody */
enum { FLAT_ARRAYS = 4 };
/* Applies a rule to elements 0 .. n - 1 of each array. Each element is independent of the others,
 * so the cuts between calls do not change the result. */
typedef void (*ElementBody)(const void *args, float *const array[FLAT_ARRAYS], int64_t n);
/* number of elements of a chunk, for which one partial sum of squares is taken; the first chunk of
 * a tensor begins at its first element */
enum { FLAT_CHUNK = 4096 };
/* A piece of one tensor: `elements` floats, at most FLAT_CHUNK, from float `offset` of an arena
 * on. */
typedef struct FlatChunk {
    int64_t offset, elements;
    /* index of this chunk's sum in the output */
    int64_t sum;
} FlatChunk;
/* A sum of squares whose bits depend only on the set of its terms, not on their order or grouping:
 * the sum of a tensor does not depend on how ranks divide it. A term x^2 is exact in double. It is
 * split into whole multiples of three units, each 2^32 times the next smaller one; the remainder,
 * which is less than the smallest unit, is dropped. `part` counts the multiples of each unit, the
 * largest unit first, as integers, without rounding. `scale` is the index of the largest of the
 * three units. That unit is the smallest one for which every term is at most 2^31 units. In a sum
 * that is infinite or NaN, `scale` is SQUARES_INFINITE or SQUARES_NAN. Zeroed memory is the sum of
 * no terms. A sum has at most 2^32 terms (Demmel & Nguyen 2015, "Parallel reproducible
 * summation"). */
typedef struct SquareSum {
    int64_t part[3], scale;
} SquareSum;
/* values of SquareSum.scale: for the unit 2^0, for an infinite sum, and for a sum that is NaN */
enum { SQUARES_SCALE_0 = 8, SQUARES_INFINITE = 64, SQUARES_NAN };
/* Adds the terms of `from` to `to`. */
void square_sum_add(SquareSum *to, const SquareSum *from);
/* Returns the sum, rounded to double. */
double square_sum_value(const SquareSum *sum);

/* largest number of bytes that FlatTable.put copies */
enum { FLAT_PUT = 128 };
/* Indexes of the numbers that FlatTable.loss_sums writes. A line is one row of a loss's y. */
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
    /* sums of columns 1 and 2 (LossResults in layers.h) */
    LOSS_COLUMN1,
    LOSS_COLUMN2,
    LOSS_SUMS
};

/* Operations on flat ranges of fp32; all pointers are into the backend's memory. */
typedef struct FlatTable {
    /* Fills to[0 .. n - 1] with value, including its sign bit: -0 and 0 differ. */
    void (*fill)(Stream *s, float *to, float value, int64_t n);
    /* Computes out = a + b for n elements. out may be a or b. */
    void (*add)(Stream *s, float *out, const float *a, const float *b, int64_t n);
    /* Both do what `add` does, in bf16 and in fp16, for gradients of activations. The members are
     * NULL if the backend lacks the type (BackendTable.bf16, f16). */
    void (*add_bf16)(Stream *s, Bf16 *out, const Bf16 *a, const Bf16 *b, int64_t n);
    void (*add_f16)(Stream *s, F16 *out, const F16 *a, const F16 *b, int64_t n);
    /* Sets *found to 1 if an element of x is infinite or NaN; otherwise *found does not change. */
    void (*find_not_finite)(Stream *s, float *found, const float *x, int64_t n);
    /* Returns true if an element of x is infinite or NaN. Unless `to` is NULL, also copies x to
     * `to` in the same pass. Runs on the calling thread, inside a body of run_elements. The member
     * is NULL if the memory is not the host's. */
    bool (*find_and_copy)(float *to, const float *x, int64_t n);
    /* Computes y = alpha x + beta y for n elements. */
    void (*scale_add)(Stream *s, float *y, float alpha, const float *x, float beta, int64_t n);
    /* Adds up `count` slices of n elements of `type`, which begin `stride` elements apart, into
     * `out`. The slices are added in order, in fp32, and the sum is rounded once. out may be one of
     * the slices. The member is NULL if the memory is the host's: each slice is then added when it
     * arrives. */
    void (*add_slices)(Stream *s, DType type, void *out, const void *slices, int count,
                       int64_t stride, int64_t n);
    /* Sets out[i] to the sum of squares of chunk i of x, for its ceil(n / FLAT_CHUNK) chunks of
     * FLAT_CHUNK elements; the last chunk may be shorter. The bits do not depend on the alignment
     * of x. */
    void (*squares)(Stream *s, double *out, const float *x, int64_t n);
    /* Sets out[chunk[i].sum] to the sum of squares of the piece chunk[i] of the arena x, in one
     * launch, with the same bits as `squares`. chunk is in the backend's memory. */
    void (*chunk_squares)(Stream *s, double *out, const float *x, const FlatChunk *chunk,
                          int64_t count);
    /* Both compute exact sums: exact_squares those of `squares`, exact_chunk_squares those of
     * chunk_squares. */
    void (*exact_squares)(Stream *s, SquareSum *out, const float *x, int64_t n);
    void (*exact_chunk_squares)(Stream *s, SquareSum *out, const float *x, const FlatChunk *chunk,
                                int64_t count);
    /* Sets out[i] to the sum of x[first[i]] .. x[first[i + 1] - 1], and value[i] to out[i] as a
     * double, for i < count. first has count + 1 entries. */
    void (*join_squares)(Stream *s, SquareSum *out, double *value, const SquareSum *x,
                         const int64_t *first, int count);
    /* Makes an update of SGD with PyTorch's formula: g += wd w; m = momentum m + g (if
     * a->m_is_empty: m = g); w -= lr (if a->nesterov: g + momentum m, else m). If momentum is 0, m
     * is not used and may be NULL. g in memory does not change. piece: `count` pieces, which do not
     * overlap; on a GPU one launch updates many of them. The array is read before the call
     * returns. */
    void (*sgd)(Stream *s, const SgdArgs *a, const UpdatePiece *piece, int count);
    /* Makes an update of Adam or AdamW with PyTorch's formulas (Kingma & Ba 2015; Loshchilov &
     * Hutter 2019). piece, count: as for sgd. */
    void (*adam)(Stream *s, const AdamArgs *a, const UpdatePiece *piece, int count);
    /* Computes LAMB's direction (You et al. 2020) for one piece: updates m and v, not w; u = mhat /
     * (sqrt(vhat) + eps) + wd w. u: piece->n floats. */
    void (*adam_direction)(Stream *s, const AdamArgs *a, float *u, const UpdatePiece *piece);
    /* Moves only the average, after other calls have changed w. numbers: NULL, or has the rate that
     * replaces average.rate. */
    void (*average)(Stream *s, Average average, const UpdateNumbers *numbers, const float *w,
                    int64_t n);
    /* Exchanges the n values of a and b. */
    void (*swap)(Stream *s, float *a, float *b, int64_t n);
    /* Copies `bytes` bytes, at most FLAT_PUT, from host memory to the backend's memory. `from` is
     * read before the call returns, and the host does not wait. */
    void (*put)(Stream *s, void *to, const void *from, size_t bytes);
    /* Adds up the y of a loss, (lines, LOSS_COLUMNS), into out[LOSS_SUMS]. Lines are added in
     * double, in an order that depends only on their number. */
    void (*loss_sums)(Stream *s, float *out, const float *results, int64_t lines);
    /* Sets out[i] to the sum of x[first[i]] .. x[first[i + 1] - 1] for i < count, in an order that
     * depends only on the number of terms. first has count + 1 entries. */
    void (*range_sums)(Stream *s, double *out, const double *x, const int64_t *first, int count);
    /* Sets *grad_scale to limit / norm if that is less than 1, else to 1; norm is the square root
     * of the sum of `count` squares, added in order. The member is NULL if the memory is the
     * host's. */
    void (*clip)(Stream *s, float *grad_scale, const double *squares, int count, double limit);
    /* Runs `body` on parts of the arrays of n elements, in parallel. array: up to FLAT_ARRAYS
     * arrays. The member is NULL if the memory is not the host's. */
    void (*run_elements)(Stream *s, ElementBody body, const void *args,
                         float *const array[FLAT_ARRAYS], int64_t n);
    /* Computes the product p. The order of each sum depends only on the shapes, so the bits are
     * equal for any number of threads. The member is NULL if the memory is not the host's. */
    void (*matrix_product)(Stream *s, const MatrixProduct *p);
} FlatTable;

#endif
