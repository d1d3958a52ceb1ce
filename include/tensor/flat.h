/* Elementwise work on flat ranges of fp32 on a backend: sums of gradients, norms, updates. */
#ifndef WEFT_TENSOR_FLAT_H
#define WEFT_TENSOR_FLAT_H

#include "tensor/shape.h"

/* a CPU backend has one, and works at once; a GPU queues */
typedef struct Stream Stream;

/* What of an update is another number at every step: see StepNumbers. */
typedef struct UpdateNumbers {
    float lr, grad_scale, correct1, correct2;
} UpdateNumbers;
typedef struct SgdArgs {
    float lr, momentum, weight_decay, grad_scale;
    bool nesterov, first;
    /* Those hold in place of lr and grad_scale; NULL, as where nothing is recorded: these. */
    const UpdateNumbers *now;
} SgdArgs;
typedef struct AdamArgs {
    float lr, beta1, beta2, eps, weight_decay, grad_scale;
    /* 1 - beta^t */
    float correct1, correct2;
    /* AdamW */
    bool decoupled;
    /* as SgdArgs', the corrections, too */
    const UpdateNumbers *now;
} AdamArgs;
/* out[m][n] = the sum over k of a[m][k] b[k][n], or b[n][k] where b_transposed. Rows begin `_row`
 * floats apart; m and n are multiples of MATRIX_PAD. out is neither a's nor b's memory. */
typedef struct MatrixProduct {
    float *out;
    const float *a, *b;
    int64_t m, n, k, out_row, a_row, b_row;
    bool b_transposed;
    /* out is, to the bit, as of a matrix with itself: half of it is computed */
    bool symmetric;
} MatrixProduct;
enum { MATRIX_PAD = 16 };
/* of memory that an ElementBody sees, at most */
enum { FLAT_RANGES = 4 };
/* What a rule does to elements 0 .. n - 1 of each range: each by itself, so that it does not matter
 * where ranges are cut. */
typedef void (*ElementBody)(const void *args, float *const range[FLAT_RANGES], int64_t n);
/* elements a partial norm covers, from each tensor's own start */
enum { FLAT_CHUNK = 4096 };
/* A chunk of a tensor: `elements` of them (FLAT_CHUNK at most) at `offset` of an arena. */
typedef struct FlatChunk {
    int64_t offset, elements;
    /* index of its sum in the output */
    int64_t sum;
} FlatChunk;
/* bytes that put takes at most */
enum { FLAT_PUT = 64 };
/* What loss_sums counts: the losses' sum, lines, right ones, those among the top five, and that
 * there are any. */
enum { LOSS_SUM, LOSS_LINES, LOSS_TOP1, LOSS_TOP5, LOSS_ANY, LOSS_SUMS };

/* Elementwise work on flat ranges of fp32, device pointers. */
typedef struct FlatTable {
    /* -0 is another value than 0 */
    void (*fill)(Stream *s, float *to, float value, int64_t n);
    void (*add)(Stream *s, float *out, const float *a, const float *b,
                int64_t n); /* out may be a or b */
    /* The same in bf16 and fp16, for gradients of activations; NULL where the backend lacks the
     * type. */
    void (*add_bf16)(Stream *s, Bf16 *out, const Bf16 *a, const Bf16 *b, int64_t n);
    void (*add_f16)(Stream *s, F16 *out, const F16 *a, const F16 *b, int64_t n);
    /* *found = 1 where an element of x is infinite or no number; else it stays. */
    void (*find_overflow)(Stream *s, float *found, const float *x, int64_t n);
    /* The same by the calling thread alone, as a part of what each does; to: where they are copied
     * meanwhile, or NULL. NULL as each */
    bool (*find_and_copy)(float *to, const float *x, int64_t n);
    void (*scale_add)(Stream *s, float *y, float alpha, const float *x, float beta,
                      int64_t n); /* y = alpha x + beta y */
    /* out[n] = the sum of `count` slices of so many elements of `type`, `stride` of them apart, in
     * their order in fp32, rounded once. out may be one of them. NULL in host memory, where slices
     * are added as they come */
    void (*add_slices)(Stream *s, DType type, void *out, const void *slices, int count,
                       int64_t stride, int64_t n);
    /* out[i] = sum of squares of chunk i (FLAT_CHUNK elements), ceil(n/FLAT_CHUNK) of them, same
     * bits however x lies */
    void (*squares)(Stream *s, double *out, const float *x, int64_t n);
    /* out[chunk[i].sum] = sum of squares of chunk i of the arena x, the same bits as squares gives;
     * one launch for all of them. chunk: the backend's memory */
    void (*chunk_squares)(Stream *s, double *out, const float *x, const FlatChunk *chunk,
                          int64_t count);
    /* SGD as PyTorch's: g += wd w; m = momentum m + g (first: m = g); w -= lr (nesterov ? g +
     * momentum m : m) */
    void (*sgd)(Stream *s, const SgdArgs *a, float *w, const float *g, float *m, int64_t n);
    /* Adam, AdamW as PyTorch's (Kingma & Ba 2015; Loshchilov & Hutter 2019) */
    void (*adam)(Stream *s, const AdamArgs *a, float *w, const float *g, float *m, float *v,
                 int64_t n);
    /* LAMB's direction (You et al. 2020): updates m, v; u = mhat/(sqrt(vhat)+eps) + wd w */
    void (*adam_direction)(Stream *s, const AdamArgs *a, float *u, const float *w, const float *g,
                           float *m, float *v, int64_t n);
    /* *to = the bytes at from, host memory, which is read before the call returns, and the host
     * does not wait */
    void (*put)(Stream *s, void *to, const void *from, size_t bytes);
    /* out[LOSS_SUMS], of a loss's y (lines, LOSS_COLUMNS); lines added in double, in an order that
     * their number decides */
    void (*loss_sums)(Stream *s, float *out, const float *columns, int64_t lines);
    /* out[i] = sum of x[first[i]] .. x[first[i + 1] - 1], in an order that their number decides;
     * first: count + 1 of them */
    void (*range_sums)(Stream *s, double *out, const double *x, const int64_t *first, int count);
    /* *grad_scale = limit / norm where that is less than 1, else 1. norm: root of the sum of count
     * squares, in order. A backend that records has it */
    void (*clip)(Stream *s, float *grad_scale, const double *squares, int count, double limit);
    /* body on parts of so many ranges of n elements, in parallel. NULL in memory that is not the
     * host's */
    void (*each)(Stream *s, ElementBody body, const void *args, float *const range[FLAT_RANGES],
                 int64_t n);
    /* The order of each sum is the shapes' alone: the same bits on any number of threads. NULL as
     * each */
    void (*matrix_product)(Stream *s, const MatrixProduct *p);
} FlatTable;

#endif
